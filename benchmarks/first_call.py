"""The first call of models with static inputs, and what a profile says of later calls.

    python -m benchmarks.first_call [FOLDER] [--only REGEX] [--rounds N] [--write]

Two models of real size with random weights are added to those of the folder. Prints for each model the time to bind,
which makes the arrays and the calls of all steps; the first run after that, the median of later runs, and their ratio;
and the sum of a profile (``ovir run --profile``) over the median run without one. Each round compiles the model anew.
"""

from __future__ import annotations

import argparse
import gc
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

import ovir
from benchmarks.common import Rows, folder_of_models, report
from benchmarks.models import found_models
from benchmarks.real_models import Inputs, Made, Weights, encoder, resnet50
from ovir.analysis.profile import profile_runs

HEAD = ["model", "bind, ms", "first run, ms", "later run, ms", "ratio", "profile"]


def static_models(options: argparse.Namespace) -> Iterator[tuple[str, ovir.Model, Inputs]]:
    made: dict[str, Callable[[Weights], Made]] = {
        "encoder": partial(encoder, width=384, heads=12, layers=6),
        "resnet50": resnet50,
    }
    for name, make in made.items():
        if re.search(options.only, name):
            yield name, *make(Weights("f32"))
    for name, path, inputs in found_models(options.folder, options.only):
        model = ovir.read_model(path)
        if all(port.shape.is_static for port in model.inputs):
            yield name, model, inputs


def measure(options: argparse.Namespace) -> Rows:
    for name, model, inputs in static_models(options):
        found = [_round(ovir.compile_model(model), inputs) for _ in range(options.rounds)]
        bind, first, later, profile = (median(times) for times in zip(*found, strict=True))
        yield [name, bind * 1e3, first * 1e3, later * 1e3, first / later, profile]


def _round(compiled: ovir.CompiledModel, inputs: Inputs) -> tuple[float, float, float, float]:
    """Return the seconds to bind, of the first and a later run, and the sum of a profile relative to a run."""
    request = compiled.create_infer_request()
    arrays = request._collect(inputs)
    gc.collect()
    start = time.perf_counter()
    request._bindings.executor_for(arrays)
    bind = time.perf_counter() - start
    first = _seconds(request, inputs)
    for _ in range(3):  # unbound steps bind themselves to shapes that come again
        _seconds(request, inputs)
    times = [_seconds(request, inputs) for _ in range(10)]
    profile, _ = profile_runs(compiled, inputs)
    later = median(times + [_seconds(request, inputs) for _ in range(10)])
    return bind, first, later, profile.seconds / later


def _seconds(request: ovir.InferRequest, inputs: Inputs) -> float:
    request.reset_state()
    start = time.perf_counter()
    request.infer(inputs, share_outputs=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    report(__doc__, "first call", HEAD, measure, rounds=5, passes=3, means=["ratio"], options=folder_of_models)
