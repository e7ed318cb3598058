"""Measure how processor time grows with a model: ten times as much of anything may take at most twelve times as long.

    python -m benchmarks.growth [--only NAME ...] [--stages NAME ...] [--least MS]

Each file of ``growth_models`` grows in one respect: layers, ports, results, names, edges, constants, bodies, faults and
others. For each file and stage, n is the first size at which the stage takes at least 15 ms, and at most 10,000; the
table shows the time at 10 n divided by the time at n (by 15 ms if the stage is faster at 10,000). Times are minima. The
exit status is 1 if a ratio exceeds 12.

Before each measurement the processor's caches are filled with other data, because a small model that is still in them
would be faster than its share of a large one. A sequence of edits runs without Python's garbage collector, because
nobody can pause it between the edits but the caller: it passes over the whole model each time that this has grown by
a quarter, so that it takes as long as the edits, but not in models that are small compared with the interpreter.
"""

from __future__ import annotations

import argparse
import gc
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np

import ovir
from benchmarks.growth_models import BAD, GOOD, MOST, File
from ovir.core.interpreter import without_garbage_collection
from ovir.ops.activation import ReLU

LIMIT = 12.0
LARGEST = 10_000
"""The largest n; a stage that takes less than 180 ms for ten times as much is not steep in any real model."""
OTHER_DATA = np.zeros(12_000_000)
"""More than the caches hold."""


@dataclass(frozen=True)
class Stage:
    """An action to measure, and how to prepare it before the clock starts."""

    prepare: Callable[[File], Any]
    run: Callable[[Any], Any]


def _source(file: File) -> tuple[bytes, bytes]:
    return file.text().encode(), bytes(file.weights)


def _model(file: File) -> ovir.Model:
    return ovir.read_model(*_source(file))


def _compiled(file: File) -> tuple[ovir.CompiledModel, list[Any]]:
    compiled = ovir.compile_model(_model(file))
    shapes = [[dim.length if dim.is_static else 2 for dim in port.shape] for port in compiled.inputs]
    return compiled, [np.ones(shape, np.float32) for shape in shapes]


def _relu(model: ovir.Model) -> ovir.Layer:
    layer = ovir.Layer(number := model.next_id, f"new_{number}", "ReLU", "opset1", operator=ReLU())
    layer.inputs.append(ovir.Port(layer, 0, 0, False))
    layer.outputs.append(ovir.Port(layer, 0, 1, True))
    return layer


def insert(model: ovir.Model) -> None:
    """Insert a layer after the first output of each layer that has readers."""
    with model.editing():
        for layer in list(model.layers):
            if layer.outputs and layer.outputs[0].readers:
                model.insert_after(layer.outputs[0], _relu(model))


def add_and_connect(model: ovir.Model) -> None:
    """Add a layer behind the first output of each layer, and let one of its readers read the new layer."""
    for layer in list(model.layers):
        if layer.outputs and (readers := layer.outputs[0].readers):
            new = model.add_layer(_relu(model), [layer.outputs[0]])
            model.connect(new.outputs[0], readers[0])


def remove(model: ovir.Model) -> None:
    """Remove all layers with one input and one output."""
    for layer in list(model.layers):
        if len(layer.inputs) == len(layer.outputs) == 1:
            model.remove_layer(layer, bypass=True)


def replace(model: ovir.Model) -> None:
    """Replace all layers with one input and one output."""
    for layer in list(model.layers):
        if len(layer.inputs) == len(layer.outputs) == 1:
            source = layer.inputs[0].source
            assert source is not None
            model.replace_layer(layer, _relu(model), [source])


def look_up(model: ovir.Model) -> None:
    """Look up each layer by its id, its name and its key."""
    for layer in model.layers:
        model.layer(layer.id)
        model.layer(layer.name)
        model.layer(layer.key)


def _with_new_names(file: File) -> tuple[ovir.Model, dict[str, str]]:
    model = _model(file)
    return model, {layer.name: f"renamed_{layer.name}" for layer in model.layers}


def without_collections(act: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return the function without garbage collections, which make any large pickle, and any long sequence of edits,
    take longer than in proportion to its size."""

    def run(made: Any) -> None:
        with without_garbage_collection():
            act(made)

    return run


def pickled(model: ovir.Model) -> None:
    """Pickle a model and restore it."""
    pickle.loads(pickle.dumps(model))


def refused(source: tuple[bytes, bytes]) -> None:
    """Read a file that may have errors."""
    try:
        ovir.read_model(*source)
    except ovir.OvirError as error:
        str(error)


READING = {
    "read": Stage(_source, refused),
    "check": Stage(_source, lambda source: ovir.check(*source)),
}
RUNNING = {
    "infer": Stage(_model, lambda model: model.infer_shapes()),
    "compile": Stage(_model, ovir.compile_model),
    "run": Stage(_compiled, lambda made: made[0](made[1]).to_dict()),
    "clone": Stage(_model, lambda model: model.clone()),
    "pickle": Stage(_model, without_collections(pickled)),
}
EDITS = {
    "look up": Stage(_model, look_up),
    "rename": Stage(_with_new_names, lambda made: made[0].rename_layers(made[1])),
    "insert": Stage(_model, without_collections(insert)),
    "connect": Stage(_model, without_collections(add_and_connect)),
    "remove": Stage(_model, without_collections(remove)),
    "replace": Stage(_model, without_collections(replace)),
}
EDITED = ("chain", "wide", "ports", "equal_names", "parameters", "bodies", "long_body", "variables", "backwards")
"""The files whose growth edits may notice."""


def seconds(stage: Stage, file: File, rounds: int) -> float:
    """Return the smallest processor time of some rounds, each with new objects."""
    times = []
    for _ in range(rounds):
        prepared = stage.prepare(file)
        gc.collect()
        np.add(OTHER_DATA, 1, OTHER_DATA)
        start = process_time()
        stage.run(prepared)
        times.append(process_time() - start)
    return min(times)


def growth(make: Callable[[int], File], stage: Stage, least: float, largest: int) -> tuple[int, float, float]:
    """Return n, the time at n, and the time at 10 n divided by it; n is at most ``largest``."""
    seconds(stage, make(100), 1)  # what is imported and cached the first time does not count
    n = 200
    while (small := seconds(stage, make(n), 1)) < least and n < largest:
        n = min(largest, max(2 * n, int(n * 1.2 * least / max(small, least / 20))))
    small = min(small, seconds(stage, make(n), 2))
    ratio = 0.0
    for rounds in (1, 2):  # a busy moment must not fail the benchmark
        ratio = seconds(stage, make(10 * n), rounds) / max(small, least)
        if ratio <= LIMIT:
            break
        small = max(small, seconds(stage, make(n), 3))
    return n, small, ratio


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=[*GOOD, *BAD], default=[*GOOD, *BAD], help="files")
    stages = READING | RUNNING | EDITS
    parser.add_argument("--stages", nargs="*", choices=stages, default=list(stages), help="what is measured")
    parser.add_argument("--least", type=float, default=15.0, help="the least time in ms of the smaller model")
    options = parser.parse_args()
    print(f"{'file':15}{'stage':10}{'n':>8}{'ms':>9}{'ratio':>8}")
    steep = 0
    for name in options.only:
        for stage in options.stages:
            if (name in BAD and stage not in READING) or (stage in EDITS and name not in EDITED):
                continue
            largest = min(LARGEST, MOST.get(name, 10 * LARGEST) // 10)
            n, small, ratio = growth((GOOD | BAD)[name], stages[stage], options.least / 1000, largest)
            steep += ratio > LIMIT
            mark = "  too steep" if ratio > LIMIT else ""
            print(f"{name:15}{stage:10}{n:8}{small * 1e3:9.1f}{ratio:8.1f}{mark}", flush=True)
    print(f"{steep} ratios above {LIMIT:g}")
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main())
