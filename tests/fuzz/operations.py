"""Fuzz single operations: ``python -m tests.fuzz.operations --count 100000 --seed 1``.

Makes models of one operation each, of every version of every operation, with random attributes, shapes, element types,
constants and memory layouts. Each is checked, inferred and run in a worker process with limits of time and memory. It
is a fault if ovir blames itself, takes too long or too much memory, crashes, infers other types than a run gives, or
gives results that depend on the layout of the inputs or on the processor. Models with faults are written to a folder,
and the faults are listed once for each kind. ``tests/fuzz/test_operations.py`` does the same with a few hundred models.

With ``--broken FOLDER`` the models are files of the folder that are broken at random, see ``tests/support/mutants.py``.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

if __name__ == "__main__":  # as a module of the repository, not of the tests
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from fuzz.cases import Case
from fuzz.trial import Trial, source_of, try_case
from ovir.workers.tasks import Tasks

_CHUNK = 30


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="how many models to try")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first model; the others count on")
    parser.add_argument("--extreme", action="store_true", help="put NaN, infinities and large numbers into real inputs")
    parser.add_argument("--limits", action="store_true", help="put the least and the greatest integers into inputs")
    parser.add_argument("--broken", nargs="+", metavar="FOLDER", help="break the files of these folders")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write models with faults to this folder")
    parser.add_argument("--shares", action="store_true", help="list the share of models that ran for each operation")
    options = parser.parse_args(arguments)
    flags = [flag for flag in ("--extreme", "--limits") if getattr(options, flag[2:])]
    flags += ["--broken", *options.broken] if options.broken else []
    trials = []
    cases = ((seed, tuple(flags)) for seed in range(options.seed, options.seed + options.count))
    for trial in fuzz(cases, options.processes):
        trials.append(trial)
        if trial.fault and options.keep:
            keep(trial, options.keep, source_of(*flags)(trial.seed))
        if len(trials) % 10_000 == 0:
            print(f"{len(trials)} models, {sum(bool(t.fault) for t in trials)} with faults", flush=True)
    print(summary(trials, shares=options.shares))
    return 1 if any(trial.fault for trial in trials) else 0


def fuzz(cases: Iterable[tuple[int, tuple[str, ...]]], processes: int = 1) -> Iterator[Trial]:
    """Try the models of seeds and flags in worker processes; one that crashes is replaced by another."""
    with Tasks(try_case, cases, workers=processes, chunk=_CHUNK) as outcomes:
        for outcome in outcomes:
            if outcome.result is None:
                seed, flags = outcome.item
                yield Trial(seed, flags, source_of(*flags)(seed).name, "crash", str(outcome.error), 0)
            else:
                yield outcome.result


def keep(trial: Trial, folder: Path, case: Case) -> None:
    """Write the model of a fault, with its seed, to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{trial.name}-{trial.seed}"
    path.with_suffix(".xml").write_bytes(case.text)
    path.with_suffix(".bin").write_bytes(case.weights or b"")
    path.with_suffix(".txt").write_text(f"seed {trial.seed}\n{trial.fault}\n")


def summary(trials: list[Trial], *, shares: bool = False) -> str:
    """Return the figures of the trials, and each kind of fault with the seeds of some models."""
    lines, total = [], len(trials)
    kinds: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.fault:
            kinds[trial.name, re.sub(r"-?[0-9]+(\.[0-9]+)?", "#", trial.fault)].append(trial)
    for (name, _), found in sorted(kinds.items()):
        seeds = ", ".join(str(trial.seed) for trial in found[:5])
        lines.append(f"{name}: {found[0].fault} ({len(found)} times; seeds {seeds})")
    if shares:
        by_name: dict[str, Counter[str]] = defaultdict(Counter)
        for trial in trials:
            by_name[trial.name][trial.status] += 1
        for name, count in sorted(by_name.items(), key=lambda item: item[1]["ran"] / item[1].total()):
            lines.append(f"{name}: {100 * count['ran'] / count.total():.0f} % ran of {count.total()}: {dict(count)}")
    states = Counter(trial.status for trial in trials)
    reached = sum(states[status] for status in ("ran", "failed", "fault", "late")) / max(total, 1)
    ran = f"{100 * states['ran'] / max(total, 1):.0f} % ran, {100 * reached:.0f} % reached the run"
    slowest = max((trial.seconds for trial in trials), default=0)
    lines.append(
        f"{total} models of {len({t.name for t in trials})} operation versions: {ran}; slowest {slowest:.2f} s"
    )
    lines.append(f"{sum(bool(t.fault) for t in trials)} models with faults, of {len(kinds)} kinds")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
