"""Check mutated files as untrusted files: no crash, no hang, no more than the budget.

``python -m tests.fuzz.untrusted --minutes 10 [FOLDER ...]`` changes examples, or the models of the folders, as
``tests/support/mutants.py`` does, and bytes and the length of the weights. It prints each file
whose check ended without a verdict or took more than the budget, and the most that a check took. With ``--tricks`` it
plays two tricks of ``tests/support/hostile.py`` on one package instead, which must be refused.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count, takewhile
from pathlib import Path

from ovir.checks.options import CheckOptions
from ovir.checks.untrusted.budget import Budget
from ovir.checks.untrusted.guard import Guard, Verdict
from tests.support import mutants
from tests.support.hostile import composed

EXAMPLES = Path(__file__).parents[2] / "examples" / "xml"
BUDGET = Budget(seconds=10.0)
Source = Callable[[int], tuple[str, bytes, bytes]]
"""Makes the name, the topology and the weights of the file of a number."""


@dataclass
class Result:
    """What the checks of many files came to."""

    files: int = 0
    errors: int = 0
    seconds: float = 0.0
    memory: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, name: str, verdict: Verdict, budget: Budget) -> None:
        """Count a verdict; OVIR001 and OVIR999 are faults of ovir, because no mutation needs so much."""
        found = verdict.diagnostics
        self.files += 1
        self.errors += any(d.severity == "error" for d in found)
        self.seconds = max(self.seconds, verdict.seconds)
        self.memory = max(self.memory, verdict.memory)
        self.codes.update({d.code for d in found})
        self.faults += [f"{name}: {d}" for d in found if d.code in ("OVIR001", "OVIR999")]
        if verdict.seconds > (budget.seconds or 0) + 1:
            self.faults.append(f"{name}: took {verdict.seconds:.1f} s")


def mutate(seeds: list[tuple[str, bytes, bytes | None]], number: int) -> tuple[str, bytes, bytes]:
    """Return one of the models after mutations of its topology or its weights that the number chooses."""
    name, xml, weights = seeds[number % len(seeds)]
    rng = random.Random(number)
    if weights and rng.random() < 0.2:
        weights = rng.choice(mutants.OF_BYTES)(weights, rng)
    else:
        xml = mutants.mutate(xml, number)[: 1 << 24]
    return f"seed {number} of {Path(name).name}", xml, weights or b""


def fuzz(source: Source, numbers: Iterable[int]) -> Result:
    """Check the files of these numbers."""
    result = Result()
    with tempfile.TemporaryDirectory() as folder, Guard(CheckOptions(), BUDGET) as guard:
        path = Path(folder) / "model.xml"
        for number in numbers:
            name, xml, weights = source(number)
            path.write_bytes(xml)
            path.with_suffix(".bin").write_bytes(weights)
            errors = result.errors
            result.add(name, guard.check(str(path)), BUDGET)
            if source is composed and errors == result.errors:
                result.faults.append(f"{name}: passes")
    return result


def _numbers(first: int, step: int, seconds: float) -> Iterator[int]:
    end = time.monotonic() + seconds
    return takewhile(lambda _: time.monotonic() < end, count(first, step))


def _joined(results: Iterator[Result]) -> Result:
    total = Result()
    for result in results:
        total.files += result.files
        total.errors += result.errors
        total.seconds = max(total.seconds, result.seconds)
        total.memory = max(total.memory, result.memory)
        total.codes += result.codes
        total.faults += result.faults
    return total


def main() -> int:
    """Fuzz and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[EXAMPLES])
    parser.add_argument("--tricks", action="store_true")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    source: Source = composed if arguments.tricks else partial(mutate, mutants.seeds(arguments.folders))
    first, processes, seconds = arguments.first, arguments.processes, 60 * arguments.minutes
    with ThreadPoolExecutor(processes) as pool:
        starts = range(first, first + processes)
        total = _joined(pool.map(lambda start: fuzz(source, _numbers(start, processes, seconds)), starts))
    for fault in total.faults[:20]:
        print(fault)
    print(f"{total.files:,} files, {total.errors:,} with errors, {len(total.faults)} faults")
    print(f"slowest {total.seconds:.2f} s, most memory {total.memory / 1e6:.0f} MB, {len(total.codes)} codes")
    return 1 if total.faults else 0


if __name__ == "__main__":
    sys.exit(main())
