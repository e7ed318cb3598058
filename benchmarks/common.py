"""What all benchmarks share: models on both sides, timing in turns, and tables."""

from __future__ import annotations

import argparse
import gc
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib.metadata import version
from math import exp, isfinite, log
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from benchmarks.agreement import require_agreement
from benchmarks.figures import ROOT, write_table
from ovir.core.arrays import Array

Run = Callable[[], Any]
Row = Sequence[str | float]
Rows = Iterator[Row]
PRECISE = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}

PEAK = """
import re
def peak():  # in KiB; unlike ru_maxrss, without the memory of the process that has started this one
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\\s*(\\d+)", file.read())[1])
"""
"""Code of a function that returns the peak of the memory of a process, for processes that measure themselves."""

# --------------------------------------------------------------------------- timing

# One measurement lasts at least this long, so that the clock and a single interruption do not matter.
MIN_SECONDS = 0.003


def in_turns(runs: Mapping[str, Run], rounds: int, clock: Callable[[], float] = time.perf_counter) -> dict[str, float]:
    """Return the median seconds of each run; all run in each round, so that a busy moment affects all."""
    repeats = {}
    for name, run in runs.items():
        run()
        repeats[name] = 1 + int(MIN_SECONDS / max(_seconds(run, 2, clock), 1e-7))
    times: dict[str, list[float]] = {name: [] for name in runs}
    gc.disable()
    for _ in range(rounds):
        for name, run in runs.items():
            if repeats[name] > 1:
                run()  # once to refill the caches after the other side
            times[name].append(_seconds(run, repeats[name], clock))
    gc.enable()
    return {name: median(found) for name, found in times.items()}


def _seconds(run: Run, repeat: int, clock: Callable[[], float]) -> float:
    begin = clock()
    for _ in range(repeat):
        run()
    return (clock() - begin) / repeat


def output(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Run a process of Python in the root of the project, and return what it prints."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


@contextmanager
def with_bytecode() -> Iterator[dict[str, str]]:
    """Yield an environment for processes that run ovir from its compiled bytecode, as an installed package is run."""
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        output(["-m", "compileall", "-q", "ovir"], environment)
        yield environment


def largest_difference(ours: Array, theirs: Array) -> float:
    """Return the largest difference of the results, relative to the largest finite number; infinity if they do not
    compare."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return float("inf")
    if ours.dtype.kind not in "f":
        return 0.0 if np.array_equal(ours, theirs) else float("inf")
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)):
        return float("inf")
    return float(np.abs(a[finite] - b[finite]).max(initial=0) / max(np.abs(b[finite]).max(initial=0), 1e-30))


# --------------------------------------------------------------------------- tables


def folder_of_models(parser: argparse.ArgumentParser) -> None:
    default = ROOT.parent / "shared" / "models"
    parser.add_argument(
        "folder", nargs="?", type=Path, default=default, help="holds NAME/model.xml and NAME/inputs.npz"
    )


def folder_to_keep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=Path, help="keeps the models that are made")


def report(
    doc: str | None,
    table: str,
    head: Sequence[str],
    measure: Callable[[argparse.Namespace], Rows],
    *,
    rounds: int,
    passes: int = 1,
    only: str = "",
    page: str = "performance.md",
    means: Sequence[str] = (),
    keep: Callable[[dict[str, float]], bool] = lambda row: True,
    options: Callable[[argparse.ArgumentParser], object] = lambda parser: None,
) -> None:
    """Print what ``measure`` finds as a table in Markdown, and with ``--write`` write it to a page of docs, if a run
    some time before has found nearly the same numbers. A dash stands for a number in which the two runs differ.

    The whole table is measured ``passes`` times, with arrays and requests made anew, and a number is the median of
    them. The geometric mean and the largest number of the columns ``means`` follow the rows. The page gets only rows
    that ``keep`` chooses by their numbers, but all are printed, and count.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    options(parser)
    parser.add_argument("--only", default=only, metavar="REGEX", help="what is measured, by its name")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument(
        "--write", action="store_true", help=f"write the table to docs/{page}, if a run half an hour before agrees"
    )
    given = parser.parse_args()
    if given.write and (forced := os.environ.get("OPENBLAS_CORETYPE")):
        raise SystemExit(f"OPENBLAS_CORETYPE={forced} is set, and may be slower than what OpenBLAS chooses: unset it")
    busy, own = _processor_seconds(), sum(os.times()[:4])
    start = time.perf_counter()
    print(_line(head), _line(["---"] * len(head)), sep="\n")
    before = [list(measure(given)) for _ in range(passes - 1)]
    rows: list[Row] = []
    for same in zip(measure(given), *before, strict=True):
        row = [cells[0] if isinstance(cells[0], str) else median(cells) for cells in zip(*same, strict=True)]
        print(_line(row), flush=True)
        rows.append(row)
    summaries: list[Row] = []
    for title, summarize in SUMMARIES.items() if means else ():
        columns = {name: [numbers[name] for row in rows if name in (numbers := _numbers(head, row))] for name in means}
        summaries.append([title, *(_of(summarize, columns.get(name)) for name in head[1:])])
        print(_line(summaries[-1]))
    others = _processor_seconds() - busy - (sum(os.times()[:4]) - own)
    share = max(others, 0) / (time.perf_counter() - start) / (os.cpu_count() or 1)
    state = f"{_state()} Other programs took {share:.0%} of the processor's time."
    print(f"\n{state} Measured in {time.perf_counter() - start:.0f} s.")
    if not given.write:
        return
    figures = {
        _figure(row, name): number for row in [*rows, *summaries] for name, number in _numbers(head, row).items()
    }
    state, differing = require_agreement(table, state, figures) if figures else (state, set())
    lines = [
        _line("–" if _figure(row, name) in differing else cell for name, cell in zip(head, row, strict=True))
        for row in [*(row for row in rows if keep(_numbers(head, row))), *summaries]
    ]
    write_table(table, [state, "", _line(head), _line(["---"] * len(head)), *lines], page)


def _numbers(head: Sequence[str], row: Row) -> dict[str, float]:
    """Return the numbers of a row by their columns."""
    return {name: cell for name, cell in zip(head, row, strict=True) if isinstance(cell, float)}


def _figure(row: Row, column: str) -> str:
    return f"{row[0]} | {column}"


def _of(summarize: Callable[[Sequence[float]], float], values: Sequence[float] | None) -> str | float:
    return summarize(values) if values else ""


def _line(cells: Iterable[str | float]) -> str:
    return f"| {' | '.join(cell if isinstance(cell, str) else shown(cell) for cell in cells)} |"


def shown(number: float) -> str:
    """Return a number with three significant digits, but no more than its integers."""
    if not isfinite(number) or 0 < abs(number) < 1e-3:
        return f"{number:.0e}"
    digits = max(2 - int(np.floor(np.log10(abs(number) or 1))), 0)
    return f"{number:,.{min(digits, 3)}f}"


def geometric_mean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


SUMMARIES: Mapping[str, Callable[[Sequence[float]], float]] = {"geometric mean": geometric_mean, "largest": max}


def _state() -> str:
    """Say what was measured, when and where."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "ovir", "benchmarks"], capture_output=True).stdout
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    machine = f"{cpu[1] if cpu else 'unknown processor'}, {os.cpu_count()} cores, Python {sys.version.split()[0]}"
    packages = {"NumPy": "numpy", "OpenVINO": "openvino", "onnxruntime": "onnxruntime"}
    versions = ", ".join(f"{name} {version(package).partition('-')[0]}" for name, package in packages.items())
    blas = [library.get("architecture", "unknown") for library in threadpool_info() if library["user_api"] == "blas"]
    versions += f", kernels of OpenBLAS for {' and '.join(blas)}"
    what = f"commit {commit or 'unknown'}{' with changes' if changed else ''}"
    return f"Measured at {what} on {datetime.now():%Y-%m-%d, %H:%M}: {machine}, {versions}."


def _processor_seconds() -> float:
    """Return how long all processors have been busy."""
    user, nice, system, _, _, irq, soft, *_ = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")
