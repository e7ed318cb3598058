"""Compare the time of two states of ovir, and fail where the new one is slower.

    python -m benchmarks.regressions [BASE] [--only REGEX] [--seconds N] [--over 1.5] [--repository FOLDER]

The new state is the working tree, the old one the commit BASE of the repository, by default that in the file
``base_commit``. ``benchmarks/cases.py`` has the cases; the new state writes the models, and both read them. Each state
runs in processes of its own, in turns, and a figure is the smallest time of all rounds: minima of alternating rounds
hold on a busy machine, where single times and medians do not. All but calls is measured in processor time. What seems
to be slower by more than the factor is measured in further rounds, until it is not, but in 20 at least; the exit status
is 1 if it stays so. Prints a table for the text of the commit that raises the base.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import cases

ROOT = Path(__file__).parents[1]
CHILD = Path(__file__).with_name("regressions_child.py")
BUSY = 4
"""The load per processor above which calls, which are not measured in processor time, are not judged."""
Times = dict[str, float]
"""The smallest seconds by figure, which is the name of a case and of what was measured."""


class State:
    """A tree with ovir, and the times of its processes."""

    def __init__(self, tree: Path, bytecode: Path, *options: str) -> None:
        """Prepare to measure a tree with the ``options`` of the child."""
        self.times: Times = {}
        self._options = options
        self._environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(bytecode)}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._run("-m", "compileall", "-q", str(tree / "ovir"))

    def measure(self, names: set[str], models: Mapping[str, Path]) -> None:
        """Measure some cases and commands once, and keep what is faster than before."""
        chosen = {str(path): name for name, path in models.items() if name in names}
        for path, found in json.loads(self._run("-P", str(CHILD), *self._options, *chosen) if chosen else "{}").items():
            for kind, seconds in found.items():
                self._keep(f"{chosen[path]}: {kind}", seconds)
        for name in cases.COMMANDS.keys() & names:
            words = [re.sub(r"\{(.*)\}", lambda m: str(models[m[1]]), word) for word in cases.COMMANDS[name]]
            start = _seconds_of_processes()
            self._run(*words)
            self._keep(f"{name}: process", _seconds_of_processes() - start)

    def _keep(self, figure: str, seconds: float) -> None:
        self.times[figure] = min(seconds, self.times.get(figure, seconds))

    def _run(self, *words: str) -> str:
        command = [sys.executable, *words]
        done = subprocess.run(command, capture_output=True, text=True, env=self._environment, cwd=tempfile.gettempdir())
        if done.returncode:
            raise SystemExit(
                f"{' '.join(words)[:500]} failed in {self._environment['PYTHONPATH']}:\n{done.stderr[-2000:]}"
            )
        return done.stdout


def _seconds_of_processes() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def slower(states: Sequence[State], over: float) -> dict[str, float]:
    """Return the figures whose ratio new / old is above a number, the largest one first."""
    old, new = (state.times for state in states)
    found = {figure: new[figure] / old[figure] for figure in new.keys() & old.keys()}
    return {figure: ratio for figure, ratio in sorted(found.items(), key=lambda item: -item[1]) if ratio > over}


def table(states: Sequence[State], base: str, over: float = 0) -> Iterator[str]:
    """Yield the lines of the table of ratios above a number, and the figures that were not compared."""
    old, new = (state.times for state in states)
    yield f"| new / {base} | new, ms | figure |\n|---|---|---|"
    for figure, ratio in slower(states, over).items():
        yield f"| {ratio:.2f} | {new[figure] * 1e3:.3f} | {figure} |"
    if missing := new.keys() - old.keys():
        yield f"not compared, because {base} does not run it: {', '.join(sorted(missing))}"


def rounds(least: int, seconds: float) -> Iterator[int]:
    """Count rounds until another one would take more than some seconds in all, but to the least number."""
    start, number = time.perf_counter(), 0
    while number < least or (time.perf_counter() - start) * (number + 1) / number < seconds:
        yield number
        number += 1


def compare(states: Sequence[State], models: Mapping[str, Path], names: set[str], options: argparse.Namespace) -> None:
    """Measure the old and the new state in turns, and then again, in more rounds, what seems to be slower."""

    def measure(number: int, names: set[str]) -> set[str]:
        for state in states if number % 2 else reversed(states):
            state.measure(names, models)
        return names & _cases(slower(states, options.over))

    suspects: set[str] = set()
    for number in rounds(3, options.seconds):
        suspects = measure(number, names)
    if suspects:
        print(f"measured again: {', '.join(sorted(suspects))}", flush=True)
    for number in rounds(20, 2 * options.seconds):  # what is no slower needs a few of them
        if not suspects:
            break
        suspects = measure(number, suspects)


def _cases(figures: Iterable[str]) -> set[str]:
    return {figure.rpartition(": ")[0] for figure in figures}


def extract(commit: str, repository: Path, target: Path) -> str:
    """Write the package of a commit to a folder, and return the short name of the commit."""
    git = ["git", "-C", str(repository)]
    archive = subprocess.check_output([*git, "archive", commit, "ovir", "docs/diagnostics.md"])
    subprocess.run(["tar", "-x", "-C", str(target)], input=archive, check=True)
    return subprocess.check_output([*git, "rev-parse", "--short", commit], text=True).strip()


def parsed(doc: str | None, *, seconds: float, over: float) -> argparse.Namespace:
    """Return the options of a comparison, whose defaults these are."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", default=Path(__file__).with_name("base_commit").read_text().strip())
    parser.add_argument("--only", default="", metavar="REGEX", help="the cases whose names match")
    parser.add_argument("--seconds", type=float, default=seconds, help="of a measurement")
    parser.add_argument("--over", type=float, default=over, help="the largest ratio that passes")
    parser.add_argument("--repository", type=Path, default=ROOT, help="the folder of a repository that has the base")
    return parser.parse_args()


def main() -> int:
    options = parsed(__doc__, seconds=30.0, over=1.5)
    names = {name for name in (*cases.CASES, *cases.COMMANDS) if re.search(options.only, name)}
    with tempfile.TemporaryDirectory(prefix="ovir-regressions-") as name:
        folder = Path(name)
        base = extract(options.base, options.repository, folder)
        models = {case: cases.write(case, folder / str(number)) for number, case in enumerate(cases.CASES)}
        states = State(folder, folder / "bytecode"), State(ROOT, folder / "new-bytecode")
        compare(states, models, names, options)
    new = states[1].times
    if missing := names - _cases(new):
        raise SystemExit(f"not measured: {', '.join(sorted(missing))}")
    print("\n".join(table(states, base)))
    worse = slower(states, options.over)
    calls = {figure for figure in worse if ": call" in figure}
    if calls and (load := os.getloadavg()[0]) > BUSY * (os.cpu_count() or 1):
        print(f"NOT DECIDED: calls are not judged, because the load is {load:.0f}; repeat it when less runs")
        worse = {figure: ratio for figure, ratio in worse.items() if figure not in calls}
    print(f"{len(worse)} of {len(new)} figures are above {options.over}{': ' * bool(worse)}{', '.join(worse)}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
