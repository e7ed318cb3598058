"""Models that are simpler than they look, and look-alikes that are not."""

from collections.abc import Callable
from typing import Any

import numpy as np

import ovir
from ovir import opset16 as ops
from ovir.graph.layers import Layer, Port

Tensor = Layer | Port
Build = Callable[[Tensor], Tensor]


def around(build: Build, shape: Any = (2, 3, 4), kind: str = "f32", *, dead_end: bool = False) -> ovir.Model:
    """Return a model that computes ReLU, what ``build`` adds, and again ReLU, all with names of tensors."""
    x = ops.parameter(list(shape), kind, name="x", tensor_names={"x"})
    first = ops.relu(x, name="first", tensor_names={"first"})
    return ovir.Model([ops.result(ops.relu(build(first), name="last", tensor_names={"last"}), name="out")], [x], "m")


def vad() -> ovir.Model:
    """A detector of speech: the sample rate chooses a branch, and an LSTM keeps its state."""
    x = ops.parameter([1, 8], "f32", name="input", tensor_names={"input"})
    rate = ops.parameter([], "i64", name="sr", tensor_names={"sr"})
    chosen = ops.if_op(ops.equal(rate, np.int64(16000)), name="rate")
    branches = []
    for size in (4, 2):
        p = ops.parameter([1, 8], "f32", name="p")
        parts = ops.reshape(p, [1, 8 // size, size], False, name="frames")
        weights = np.random.default_rng(size).standard_normal((size, 3)).astype(np.float32)
        frames = ops.matmul(parts, weights, False, False, name="frames_out", tensor_names={"frames"})
        branches.append(ovir.Model([ops.result(ops.reduce_mean(frames, [1], False))], [p], "branch"))
    chosen.set_then_body(branches[0])
    chosen.set_else_body(branches[1])
    chosen.set_input(x, branches[0].inputs[0], branches[1].inputs[0])
    features = chosen.set_output(branches[0].outputs[0], branches[1].outputs[0])
    start = ops.convert_like(np.zeros((1, 4), np.float32), x)
    states = [ops.read_value(start, name, "f32", [1, 4]) for name in ("h", "c")]
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(shape).astype(np.float32) for shape in ((16, 3), (16, 4), (16,))]
    cell = ops.lstm_cell(features, *states, *weights, 4)
    sinks = [ops.assign(cell.output(i), name) for i, name in enumerate(("h", "c"))]
    twice = ops.transpose(ops.transpose(cell.output(0), [1, 0]), [1, 0])
    out = ops.sigmoid(twice, name="probability", tensor_names={"output"})
    return ovir.Model([ops.result(out)], sinks, [x, rate], "vad")


def loop(trips: int | None, again: bool = True, start: bool = True) -> ovir.Model:
    """A Loop that adds its number and an input to a total; without ``trips`` an input has their number."""
    x = ops.parameter([1, 3], "f32", name="x", tensor_names={"x"})
    count = ops.parameter([], "i64", name="trips", tensor_names={"trips"})
    number, total, part = ops.parameter([], "i64"), ops.parameter([1, 3], "f32"), ops.parameter([1, 3], "f32")
    added = ops.add(ops.add(total, part), ops.convert(ops.add(number, np.int64(1)), "f32"), name="added")
    body = ovir.Model([ops.result(ops.constant(np.array(again))), ops.result(added)], [number, total, part], "body")
    layer = ops.loop(count if trips is None else np.int64(trips), start, name="loop")
    layer.set_function(body)
    layer.set_special_body_ports([0, 0])
    layer.set_merged_input(total, ops.abs(x), body.outputs[1].layer)
    layer.set_sliced_input(part, x, 0, 1, 1, -1, 0)
    last = layer.get_iter_value(body.outputs[1].layer, -1)
    parts = layer.get_concatenated_slices(body.outputs[1].layer, 0, 1, 1, -1, 0)
    results = [ops.result(port, name=name) for port, name in ((last, "last"), (parts, "parts"))]
    return ovir.Model(results, [x, count] if trips is None else [x], "loop")


def unassigned(*, assigned: bool = False, initial: bool = True, shape: str = "1,4") -> ovir.Model:
    x = ops.parameter([1, 4], "f32", name="x", tensor_names={"x"})
    attributes = {"variable_id": "v", "variable_type": "f32", "variable_shape": shape}
    inputs = [np.full((1, 4), 2, np.float32)] if initial else []
    total = ops.add(ovir.create_layer("ReadValue", inputs, attributes, version="opset6", name="state"), x)
    return ovir.Model([total], [ops.assign(total, "v")] if assigned else [], [x], "unassigned")


def mixed() -> ovir.Model:
    """All of it at once, with dynamic sizes, in a model and in the body of a loop."""
    x = ops.parameter([-1, 4], "f32", name="x", tensor_names={"x"})
    part = ops.parameter([-1, 4], "f32")
    inside = ops.transpose(ops.transpose(ops.pad(part, [0, 0], [0, 0], "constant"), [1, 0]), [1, 0])
    inside = ops.add(ops.tanh(inside), ops.tanh(part), name="inside")
    body = ovir.Model([ops.result(ops.constant(np.array(True))), ops.result(inside)], [part], "body")
    layer = ops.loop(np.int64(3), True, name="loop")
    layer.set_function(body)
    layer.set_special_body_ports([-1, 0])
    layer.set_merged_input(part, ops.convert(ops.convert(x, "f64"), "f32"), body.outputs[1].layer)
    last = layer.get_iter_value(body.outputs[1].layer, -1)
    flat = ops.reshape(ops.reshape(last, [0, 2, 2], True), [-1, 4], False)
    both = ops.concat([ops.sigmoid(flat), ops.sigmoid(last)], 1)
    return ovir.Model([ops.result(both, name="out")], [x], "mixed")
