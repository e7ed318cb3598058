"""Time grows with the size of a model, not with its square.

Ten times as large a model would take a hundred times as long if anything were quadratic. The limit is generous, because
other processes and the garbage collector disturb short measurements.
"""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
import pytest
from support.builder import Net
from support.growth_models import BAD, GOOD, chain

import ovir
from ovir.ops.activation import ReLU
from ovir.system.python_runtime import without_garbage_collection

pytestmark = pytest.mark.slow

OTHER_DATA = np.zeros(6_000_000)
"""More than the processor's caches hold; small models that are still in them would be faster than their share of a large one."""


@dataclass(frozen=True)
class Stage:
    """An action to measure, and how to prepare it before the clock starts."""

    prepare: Callable[[Net], Any]
    run: Callable[[Any], Any]


def _source(net: Net) -> tuple[bytes, bytes]:
    return net.xml().encode(), bytes(net.blob)


def _model(net: Net) -> ovir.Model:
    return ovir.read_model(*_source(net))


def _compiled(net: Net) -> tuple[ovir.CompiledModel, list[Any]]:
    compiled = ovir.compile_model(_model(net))
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


def _with_new_names(net: Net) -> tuple[ovir.Model, dict[str, str]]:
    model = _model(net)
    return model, {layer.name: f"renamed_{layer.name}" for layer in model.layers}


def without_collections(act: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return the function without garbage collections, which make any long sequence of edits take longer than in proportion to
    its length."""

    def run(made: Any) -> None:
        with without_garbage_collection():
            act(made)

    return run


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
}
EDITS = {
    "look up": Stage(_model, look_up),
    "rename": Stage(_with_new_names, lambda made: made[0].rename_layers(made[1])),
    "insert": Stage(_model, without_collections(insert)),
    "connect": Stage(_model, without_collections(add_and_connect)),
    "remove": Stage(_model, without_collections(remove)),
    "replace": Stage(_model, without_collections(replace)),
}


def seconds(stage: Stage, net: Net, rounds: int) -> float:
    """Return the smallest processor time of some rounds, each with new objects."""
    times = []
    for _ in range(rounds):
        prepared = stage.prepare(net)
        gc.collect()
        if rounds > 1:
            np.add(OTHER_DATA, 1, OTHER_DATA)
        start = process_time()
        stage.run(prepared)
        times.append(process_time() - start)
    return min(times)


# --------------------------------------------------------------------------- tests


@pytest.fixture(scope="module", autouse=True)
def _objects_of_earlier_tests_stay() -> None:
    """Leave the objects of earlier tests out of collections, each of which would pass over hundreds of thousands."""
    gc.collect()
    gc.freeze()


SIZE, LIMIT, TRIALS = 100, 35, 3
STAGES = READING | RUNNING | EDITS
CASES = [
    *((name, "check") for name in ("split_results", "alike_results", "ports", "bodies")),
    ("alike_results", "run"),  # where a layer has many outputs, the watch over all kernels takes longer than the run
    *(("chain", stage) for stage in ("read", "infer", "compile", "run", "clone", *EDITS)),
    *((name, stage) for name in ("bodies", "equal_names") for stage in ("look up", "rename")),
    ("equal_names", "run"),
    ("variables", "connect"),
    ("attributes", "check"),
    ("contradicted", "read"),
    *((name, "check") for name in BAD),
]


@pytest.mark.parametrize(("name", "stage"), CASES)
def test_time_is_not_quadratic(name: str, stage: str) -> None:
    make = (GOOD | BAD)[name]
    small, large = make(SIZE), make(10 * SIZE)
    seconds(STAGES[stage], small, 1)
    for _ in range(TRIALS):
        ratio = seconds(STAGES[stage], large, 1) / max(seconds(STAGES[stage], small, 3), 0.002)
        if ratio < LIMIT:
            return
    pytest.fail(f"{stage} of {name}: ten times the size takes {ratio:.0f} times as long")


@pytest.mark.parametrize(
    "act",
    [ovir.compile_model, lambda model: model.infer_shapes(), lambda model: model.reshape([3]), ovir.Model.__getstate__],
    ids=["compile", "infer", "reshape", "pickle"],
)
def test_no_garbage_is_collected_while_many_objects_are_made(act: Callable[[ovir.Model], Any]) -> None:
    """All of them stay alive, and each full collection passes over the whole model."""
    model = chain(2000).model()
    collections: list[dict[str, int]] = []

    def count(phase: str, info: dict[str, int]) -> None:
        collections.append(info)

    gc.callbacks.append(count)
    try:
        made = act(model)
    finally:
        gc.callbacks.remove(count)
    assert len(collections) <= 4, "one collection may follow, and it is reported twice"
    del made
