"""Time ``ovir.map``: two workers against one, what an input costs beside its run, and the memory of the caller.

    python -m benchmarks.many_inputs [FOLDER] [--inputs 300] [--rounds 3] [--dask] [--write]

FOLDER holds ``<name>/model.xml`` and ``<name>/inputs.npz``; the models that take at least 20 ms on one thread are
measured. One and two workers take turns in one process, and the time includes their start. ``--dask`` also measures a
dask cluster of two processes on this machine. From the figures the script computes what a cluster of 1 to 1,000
workers takes; ``--write`` writes both to docs/many-inputs.md.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

import ovir
from benchmarks.common import write_figures
from benchmarks.models import MODELS
from ovir import opset13 as ops
from ovir.workers.executors import open_executor

PAGE = "many-inputs.md"
LARGE = 0.02
"""Seconds that a run takes at least, for a model that is measured."""
CHUNK = 16
"""The inputs that a worker gets together, where more than one is measured."""
NETWORK = 125e6
"""Bytes per second of a network of 1 Gbit/s, for what is computed."""


@dataclass
class Cost:
    """What one input costs, in seconds."""

    total: float
    """From the call until all results are there, divided by the number of inputs."""
    caller: float
    """The time that the calling process computes."""


def cost(model: Any, inputs: Iterable[Any], count: int, executor: Executor | None = None, **options: Any) -> Cost:
    """Run all inputs, and return what each has cost, the start of the workers included."""
    start, own = perf_counter(), process_time()
    found = sum(1 for _ in ovir.map(model, inputs, executor, ordered=False, **options))
    assert found == count
    return Cost((perf_counter() - start) / count, (process_time() - own) / count)


def large_models(folder: Path) -> Iterator[tuple[str, Path, dict[str, Any], float]]:
    """Yield the models that take long enough, with their inputs and the time of a run on one thread."""
    for path in sorted(folder.glob("*/model.xml")):
        inputs = dict(np.load(path.with_name("inputs.npz")))
        request = ovir.compile_model(path, threads=1).create_infer_request()
        times = []
        for _ in range(7):
            request.reset_state()
            start = perf_counter()
            request.infer(inputs)
            times.append(perf_counter() - start)
        if (seconds := median(times[2:])) >= LARGE:
            yield path.parent.name, path, inputs, seconds


def speedups(folder: Path, count: int, rounds: int) -> tuple[list[str], float, int]:
    """Print and return a row for each large model, the time of a run and the bytes of an input with its result."""
    rows, seconds, size = ["| model | a run on one thread, ms | 2 workers against 1 |", "|---|---|---|"], 0.0, 0
    for name, path, inputs, alone in large_models(folder):
        ratios = []
        for _ in range(rounds):
            one, two = (cost(path, itertools.repeat(inputs, count), count, workers=n).total for n in (1, 2))
            ratios.append(one / two)
        rows.append(f"| {name} | {alone * 1000:.1f} | {median(ratios):.2f} times as fast |")
        print(rows[-1], [f"{ratio:.2f}" for ratio in ratios], flush=True)
        outputs = ovir.compile_model(path)(inputs).values()
        seconds, size = alone, sum(array.nbytes for array in (*inputs.values(), *outputs))
    return rows, seconds, size


def small_model() -> tuple[ovir.Model, dict[str, Any]]:
    x = ops.parameter([1, 64], "f32", name="x")
    return ovir.Model([ops.relu(x)], [x], "small"), {"x": np.ones((1, 64), np.float32)}


@contextmanager
def executors(dask: bool) -> Iterator[dict[str, Executor | None]]:
    """Yield the executors to measure, by name."""
    with open_executor(dask="local" if dask else None, workers=2 if dask else None) as executor:
        yield {"two processes": None} | ({"dask, two processes": executor} if executor is not None else {})


def overheads(dask: bool) -> tuple[list[str], dict[str, Cost]]:
    """Print and return what an input costs whose run takes next to no time."""
    model, inputs = small_model()
    rows, found = ["| executor | an input takes, ms | of this the caller, ms |", "|---|---|---|"], {}
    with executors(dask) as measured:
        for (name, executor), chunk in itertools.product(measured.items(), (1, CHUNK)):
            options: dict[str, int] = {"workers": 2} if executor is None else {}
            cost(model, [inputs] * 20, 20, executor, **options)
            name += f", chunks of {chunk}" if chunk > 1 else ""
            found[name] = cost(model, itertools.repeat(inputs, 3000), 3000, executor, chunksize=chunk, **options)
            rows.append(f"| {name} | {found[name].total * 1000:.2f} | {found[name].caller * 1000:.2f} |")
            print(rows[-1], flush=True)
    return rows, found


def memory_growth() -> str:
    """Print and return how the memory of the caller grows from 1,000 to 10,000 inputs."""
    model, inputs = small_model()
    sizes = []
    for index, _ in enumerate(ovir.map(model, itertools.repeat(inputs, 10_000), workers=2)):
        if index in (1000, 9999):
            sizes.append(_resident())
    text = f"{sizes[0] / 1e6:.1f} MB after 1,000 inputs, {sizes[1] / 1e6:.1f} MB after 10,000"
    print(text)
    return text


def _resident() -> int:
    """Return the bytes of this process that are in memory."""
    import os

    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def computed(run: float, size: int, caller: float, opening: float, model_bytes: int, count: int = 100_000) -> list[str]:
    """Print and return what clusters take for many inputs: workers share the runs; the caller and its network do not
    become faster."""
    head = f"| workers | {count:,} inputs, s | limited by |"
    rows = [head, "|---|---|---|"]
    for workers in (1, 2, 4, 8, 16, 32, 64, 125, 250, 500, 1000):
        parts = {
            "the runs": count * run / workers,
            "the caller": count * caller,
            "the network": count * size / NETWORK,
        }
        start = opening + workers * model_bytes / NETWORK
        slowest = max(parts, key=lambda name: parts[name])
        rows.append(f"| {workers:,} | {parts[slowest] + start:,.0f} | {slowest} |")
    print("\n".join(rows))
    return rows


def opening_time(path: Path) -> float:
    """Return the seconds in which a process that has imported ovir opens a model from its recipe."""
    recipe = ovir.compile_model(path).recipe()
    start = perf_counter()
    recipe.compile()
    return perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=MODELS)
    parser.add_argument("--inputs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dask", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"write the figures to docs/{PAGE}")
    options = parser.parse_args()
    speed, run, size = speedups(options.folder, options.inputs, options.rounds)
    overhead, costs = overheads(options.dask)
    memory = memory_growth()
    caller = list(costs.values())[-1].caller
    *_, (_, path, _, _) = large_models(options.folder)
    weights = path.with_suffix(".bin").stat().st_size
    opening = opening_time(path)
    print(f"opening {opening:.2f} s, weights {weights / 1e6:.1f} MB, an input with its result {size / 1e6:.2f} MB")
    cluster = computed(run, size, caller, opening, weights)
    if options.write:
        write_figures("speed of workers", speed, PAGE)
        write_figures("cost of inputs", overhead, PAGE)
        write_figures("memory of the caller", [f"Memory of the calling process: {memory}."], PAGE)
        given = (
            f"Computed for a run of {run * 1000:.0f} ms, {size / 1e6:.2f} MB of input and result, "
            f"{caller * 1000:.2f} ms of the caller for each input ({list(costs)[-1]}), 1 Gbit/s at the caller, "
            f"{weights / 1e6:.1f} MB of weights that each worker gets from it, and {opening:.2f} s to open the model:"
        )
        write_figures("cost of clusters", [given, "", *cluster], PAGE)


if __name__ == "__main__":
    main()
