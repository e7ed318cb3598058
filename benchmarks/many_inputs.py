"""Time ``ovir.map``: what an input costs, and how much faster two workers are than one.

    python -m benchmarks.many_inputs [--only REGEX] [--rounds N] [--write]

Each executor runs a model whose runs take next to no time, and one whose runs take some 20 ms. The time includes the
start of the workers, except for that of dask.
"""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

import ovir
from benchmarks.common import Rows, report
from benchmarks.real_models import Made, Weights, encoder
from ovir import opset13 as ops
from ovir.workers.executors import open_executor

HEAD = ["executor", "a short run, ms", "of this the caller, ms", "a long run, ms"]


def short() -> Made:
    x = ops.parameter([1, 64], "f32", name="x")
    return ovir.Model([ops.relu(x)], [x], "short"), {"x": np.ones((1, 64), np.float32)}


def cost(made: Made, count: int, executor: Executor | None, **options: Any) -> tuple[float, float]:
    """Return the ms of one input, and those that the caller computes."""
    model, inputs = made
    start, own = perf_counter(), process_time()
    found = sum(1 for _ in ovir.map(model, itertools.repeat(inputs, count), executor, ordered=False, **options))
    return (perf_counter() - start) / found * 1e3, (process_time() - own) / found * 1e3


@contextmanager
def executors() -> Iterator[dict[str, tuple[Executor | None, dict[str, int]]]]:
    with open_executor(dask="local", workers=2) as dask:
        yield {
            "one process": (None, {"workers": 1}),
            "two processes": (None, {"workers": 2}),
            "two processes, chunks of 16": (None, {"workers": 2, "chunksize": 16}),
            "dask, two processes": (dask, {}),
            "dask, two processes, chunks of 16": (dask, {"chunksize": 16}),
        }


def measure(options: argparse.Namespace) -> Rows:
    long = encoder(Weights("f32"), width=384, heads=12, layers=6)
    with executors() as measured:
        for name, (executor, given) in measured.items():
            if re.search(options.only, name):
                cost(short(), 40, executor, **given)
                costs = [cost(short(), 2000, executor, **given) for _ in range(options.rounds)]
                total, caller = map(median, zip(*costs, strict=True))
                others = [cost(long, 100, executor, **given)[0] for _ in range(options.rounds)]
                yield [name, total, caller, median(others)]


if __name__ == "__main__":
    report(__doc__, "many inputs", HEAD, measure, rounds=2, page="many-inputs.md")
