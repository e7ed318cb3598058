"""Compare the time of two states of ovir, and fail where the new one is slower.

    python -m benchmarks.regressions [BASE] [--only REGEX] [--seconds N] [--over 1.5] [--repository FOLDER]

The new state is the working tree, the old one the commit BASE of the repository, by default that in the file
``base_commit``. ``benchmarks/cases.py`` has the cases; the new state writes the models, and both read them. Each state
runs in processes of its own, in turns, and a figure is the smallest time of all rounds: minima of alternating rounds
hold on a busy machine, where single times and medians do not. What is slower by more than the factor is measured
again, alone and in more rounds. The exit status is 1 if a second measurement confirms it. Prints a table for the text
of the commit that raises the base.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks import cases

ROOT = Path(__file__).parents[1]
CHILD = Path(__file__).with_name("regressions_child.py")
Times = dict[str, float]
"""The smallest seconds by figure, which is the name of a case and of what was measured."""


class State:
    """A tree with ovir, and the times of its processes."""

    def __init__(self, tree: Path, bytecode: Path) -> None:
        self.times: Times = {}
        self._environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(bytecode)}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._run("-m", "compileall", "-q", str(tree / "ovir"))

    def measure(self, names: Iterable[str], models: Mapping[str, Path]) -> None:
        """Measure some cases and commands once, and keep what is faster than before."""
        chosen = {str(path): name for name, path in models.items() if name in names}
        for path, found in json.loads(self._run("-P", str(CHILD), *chosen) if chosen else "{}").items():
            for kind, seconds in found.items():
                self._keep(f"{chosen[path]}: {kind}", seconds)
        for name in cases.COMMANDS.keys() & names:
            words = [re.sub(r"\{(.*)\}", lambda m: str(models[m[1]]), word) for word in cases.COMMANDS[name]]
            start = time.perf_counter()
            self._run(*words)
            self._keep(f"{name}: process", time.perf_counter() - start)

    def _keep(self, figure: str, seconds: float) -> None:
        self.times[figure] = min(seconds, self.times.get(figure, seconds))

    def _run(self, *words: str) -> str:
        command = [sys.executable, *words]
        done = subprocess.run(command, capture_output=True, text=True, env=self._environment, cwd=tempfile.gettempdir())
        sys.stderr.write(done.stderr)
        if done.returncode:
            raise SystemExit(f"{' '.join(words)} failed in {self._environment['PYTHONPATH']}")
        return done.stdout


def compared(folder: Path, names: list[str], models: Mapping[str, Path], seconds: float) -> tuple[Times, Times]:
    """Return the times of the old state, in a folder, and of the new one, measured in turns for some seconds, but three
    rounds at least."""
    states = [State(folder, folder / "bytecode"), State(ROOT, folder / "new-bytecode")]
    start, rounds = time.perf_counter(), 0
    while rounds < 3 or (time.perf_counter() - start) * (rounds + 1) / rounds < seconds:
        for state in states if rounds % 2 else reversed(states):
            state.measure(names, models)
        rounds += 1
    return states[0].times, states[1].times


def extract(commit: str, repository: Path, target: Path) -> str:
    """Write the package of a commit to a folder, and return the short name of the commit."""
    git = ["git", "-C", str(repository)]
    archive = subprocess.run(
        [*git, "archive", commit, "ovir", "docs/diagnostics.md"], stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(target)], input=archive.stdout, check=True)
    return subprocess.run(
        [*git, "rev-parse", "--short", commit], capture_output=True, text=True, check=True
    ).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", default=Path(__file__).with_name("base_commit").read_text().strip())
    parser.add_argument("--only", default="", metavar="REGEX", help="the cases whose names match")
    parser.add_argument("--seconds", type=float, default=30.0, help="of a measurement")
    parser.add_argument("--over", type=float, default=1.5, help="the largest ratio that passes")
    parser.add_argument("--repository", type=Path, default=ROOT, help="the folder of a repository that has the base")
    options = parser.parse_args()
    names = [name for name in (*cases.CASES, *cases.COMMANDS) if re.search(options.only, name)]
    with tempfile.TemporaryDirectory(prefix="ovir-regressions-") as name:
        folder = Path(name)
        base = extract(options.base, options.repository, folder)
        models = {case: folder / f"{number}.xml" for number, case in enumerate(cases.CASES)}
        for case, path in models.items():
            cases.write(case, path)
        old, new = compared(folder, names, models, options.seconds)
        if missing := set(names) - {figure.rpartition(": ")[0] for figure in new}:
            raise SystemExit(f"not measured: {', '.join(sorted(missing))}")
        found = {figure: new[figure] / old[figure] for figure in new.keys() & old.keys()}
        slower = {figure for figure, ratio in found.items() if ratio > options.over}
        if slower:
            print(f"a second measurement of {', '.join(sorted(slower))}", flush=True)
            old, again = compared(folder, [figure.rpartition(": ")[0] for figure in slower], models, options.seconds)
            found |= {figure: min(found[figure], again[figure] / old[figure]) for figure in slower}
    slower = {figure for figure in slower if found[figure] > options.over}
    print(f"| new / {base} | new, ms | figure |\n|---|---|---|")
    for figure, ratio in sorted(found.items(), key=lambda item: -item[1]):
        print(f"| {ratio:.2f} | {new[figure] * 1e3:.3f} | {figure}{', slower' if figure in slower else ''} |")
    print(f"{len(slower)} of {len(found)} figures are above {options.over}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
