"""Helpers of the benchmarks: one-layer models on both sides, and timing in turns."""

from __future__ import annotations

import gc
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import openvino

import ovir
from ovir.core.arrays import Array

Run = Callable[[], Any]
DOCS = Path(__file__).parents[1] / "docs"

PEAK = """
import re
def peak():  # in KiB; unlike ru_maxrss, without the memory of the process that has started this one
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\\s*(\\d+)", file.read())[1])
"""
"""Code of a function that returns the peak of the memory of a process, for processes that measure themselves."""

# One measurement lasts at least this long, so that the clock and a single interruption do not matter.
MIN_SECONDS = 0.003


def infer_requests(model: openvino.Model, inputs: Sequence[Array], core: openvino.Core) -> dict[str, Run]:
    """Write the model as IR, let both sides read it, and return their infer calls, which copy neither inputs nor
    outputs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        openvino.save_model(model, path, compress_to_fp16=False)
        ours = ovir.compile_model(path).create_infer_request()
        compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    theirs = compiled.create_infer_request()
    arrays = list(inputs)
    return {
        "ovir": lambda: ours.infer(arrays, share_outputs=True),
        "openvino": lambda: theirs.infer(arrays, share_inputs=True, share_outputs=True),
    }


@contextmanager
def with_bytecode() -> Iterator[dict[str, str]]:
    """Yield an environment for processes that run ovir from its compiled bytecode, as an installed package is run.

    The bytecode is in a folder of its own, and the first process of a kind writes it.
    """
    with tempfile.TemporaryDirectory() as bytecode:
        root = Path(__file__).parents[1]
        environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        yield environment


def in_turns(runs: Mapping[str, Run], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each run in each round; all run in each round, so that a busy moment affects all."""
    repeats = {}
    for name, run in runs.items():
        run()
        repeats[name] = 1 + int(MIN_SECONDS / max(_seconds(run, 2), 1e-7))
    times: dict[str, list[float]] = {name: [] for name in runs}
    gc.disable()
    for _ in range(rounds):
        for name, run in runs.items():
            run()  # once to refill the caches after the other side
            times[name].append(_seconds(run, repeats[name]))
    gc.enable()
    return times


def _seconds(run: Run, repeat: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeat):
        run()
    return (time.perf_counter() - begin) / repeat


def figures(name: str, page: str = "performance.md") -> list[str]:
    """Return the lines between the comments ``begin: name`` and ``end: name`` of a page of docs."""
    return _around_figures(name, page)[1].splitlines()


def write_figures(name: str, lines: Sequence[str], page: str = "performance.md") -> None:
    """Replace the lines between the comments ``begin: name`` and ``end: name`` of a page of docs."""
    before, _, after = _around_figures(name, page)
    (DOCS / page).write_text("".join([before, *(f"{line}\n" for line in lines), after]), encoding="utf-8")


def _around_figures(name: str, page: str) -> tuple[str, str, str]:
    """Return a page of docs in three parts: to the first comment, between the comments, from the last comment on."""
    text = (DOCS / page).read_text(encoding="utf-8")
    begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
    before, _, rest = text.partition(begin)
    between, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{DOCS / page} has no place for the figures of {name}")
    return before + begin, between, found + after


def geometric_mean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def largest_difference(ours: Array, theirs: Array) -> float:
    """Return the largest difference of the results, relative to the largest finite number; infinity if they do not
    compare."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return float("inf")
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return float("inf")
    finite = np.isfinite(a)
    return float(np.abs(a[finite] - b[finite]).max(initial=0) / max(np.abs(b[finite]).max(initial=0), 1e-30))
