"""Models whose batch a constant pins, and models that mix the items of a batch."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import ovir
from ovir import opset13 as ops
from ovir.graph.layers import Layer, Port

Tensor = Layer | Port


def weights(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32) / 4


def image(batch: int = 1, size: int = 8) -> Layer:
    return ops.parameter([batch, 3, size, size], "f32", name="images")


def conv(data: Tensor, inputs: int, outputs: int) -> Layer:
    return ops.convolution(data, weights(outputs, inputs, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1])


def yolo(batch: int = 1) -> ovir.Model:
    """A head with the batch in all of its Reshapes: two levels, the distribution of boxes, anchors, classes."""
    x = image(batch)
    levels = []
    for stride, size in ((1, 8), (2, 4)):
        part = ops.max_pool(x, [stride] * 2, [1, 1], [0, 0], [0, 0], [stride] * 2).output(0) if stride > 1 else x
        levels.append(ops.reshape(conv(part, 3, 20), [batch, 20, size * size], False, name=f"level{size}"))
    joined = ops.concat(levels, 2)
    split = ops.variadic_split(joined, 1, [16, 4])
    boxes = ops.reshape(split.output(0), [batch, 4, 4, 80], False, name="bins")
    boxes = ops.softmax(ops.transpose(boxes, [0, 2, 1, 3]), 1)
    boxes = ops.convolution(boxes, np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1), [1, 1], [0, 0], [0, 0], [1, 1])
    boxes = ops.reshape(boxes, [batch, 4, 80], False, name="distances")
    ends = [ops.strided_slice(boxes, [0, a, 0], [batch, a + 2, 80], [1, 1, 1], [0] * 3, [0] * 3) for a in (0, 2)]
    anchors = np.tile(weights(1, 2, 80), (batch, 1, 1))
    found = ops.concat([anchors - ends[0], anchors + ends[1], ops.sigmoid(split.output(1))], 1)
    return ovir.Model([ops.result(found, name="found")], [x], "yolo")


def detr(batch: int = 1) -> ovir.Model:
    """Queries that are repeated for each item, attention over merged heads, and the best of all scores."""
    x = image(batch)
    memory = ops.transpose(ops.reshape(conv(x, 3, 8), [batch, 8, 64], False), [2, 0, 1])  # 64, batch, 8
    queries = ops.broadcast(weights(5, 1, 8), np.array([5, batch, 8]))
    attended = ops.concat([queries, memory], 0)  # 69, batch, 8
    q, k, v = (ops.matmul(attended, weights(8, 8, seed=i), False, False) for i in range(3))
    q, k, v = (ops.transpose(ops.reshape(t, [69, batch * 2, 4], False), [1, 0, 2]) for t in (q, k, v))
    scores = ops.softmax(ops.matmul(q, k, False, True), 2)
    merged = ops.reshape(ops.transpose(ops.matmul(scores, v, False, False), [1, 0, 2]), [69, batch, 8], False)
    classes = ops.transpose(ops.matmul(merged, weights(8, 6), False, False), [1, 0, 2])  # batch, 69, 6
    flat = ops.reshape(classes, [batch, -1], False, name="flat")
    best = ops.topk(flat, 7, 1, "max", "value")
    index = ops.divide(ops.convert(best.output(1), "i64"), np.array(6, np.int64))
    index = ops.broadcast(ops.unsqueeze(index, 2), np.array([batch, 7, 6]))
    return ovir.Model([best.output(0), ops.gather_elements(classes, index, 1)], [x], "detr")


def ssd(batch: int = 1) -> ovir.Model:
    x = image(batch)
    location = ops.reshape(ops.transpose(conv(x, 3, 4), [0, 2, 3, 1]), [batch, 256], False)
    scores = ops.reshape(ops.transpose(conv(x, 3, 3), [0, 2, 3, 1]), [batch, 64, 3], False)
    scores = ops.reshape(ops.softmax(scores, 2), [batch, 192], False)
    corners = np.random.default_rng(1).random((64, 2)).astype(np.float32) / 2
    priors = np.concatenate([corners, corners + 0.4], 1).reshape(1, 1, 256)
    priors = np.concatenate([priors, np.full_like(priors, 0.1)], 1)
    attributes = {
        "background_label_id": 0, "top_k": 20, "keep_top_k": [10], "nms_threshold": 0.5, "confidence_threshold": 0.3,
        "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "share_location": True, "normalized": True,
    }  # fmt: skip
    found = ops.detection_output(location, scores, priors, attributes)
    return ovir.Model([ops.result(found, name="found")], [x], "ssd")


def decoder(batch: int = 1) -> ovir.Model:
    """A decoder that keeps what it has seen in a state with its own number of items."""
    x = ops.parameter([batch, 1, 8], "f32", name="x")
    past = ops.read_value(np.zeros((batch, 2, 4, 4), np.float32), "past", "f32", [batch, 2, 4, 4])
    new = ops.transpose(ops.reshape(x, [batch, 1, 2, 4], False), [0, 2, 1, 3])
    kept = ops.add(ops.multiply(past, 0.5), new)
    attended = ops.matmul(ops.softmax(ops.matmul(new, kept, False, True), 3), kept, False, False)
    merged = ops.reshape(ops.transpose(attended, [0, 2, 1, 3]), [batch, 1, 8], False)
    sink = ops.assign(kept, "past")
    return ovir.Model([ops.result(merged, name="y")], [sink], [x], "decoder")


def early_state(batch: int = 1) -> ovir.Model:
    """A variable that is read before the input is."""
    state = ops.read_value(np.zeros((batch, 4), np.float32), "v")
    x = ops.parameter([batch, 4], "f32", name="x")
    total = ops.add(state, x)
    return ovir.Model([total], [ops.assign(total, "v")], [x], "early_state")


def bare_state(batch: int = 1) -> ovir.Model:
    """A variable without an initial value."""
    x = ops.parameter([batch, 4], "f32", name="x")
    attributes = {"variable_id": "v", "variable_type": "f32", "variable_shape": f"{batch},4"}
    state = ovir.create_layer("ReadValue", [], attributes, version="opset6")
    total = ops.add(state, x)
    return ovir.Model([total], [ops.assign(total, "v")], [x], "bare_state")


def lstm(batch: int = 1) -> ovir.Model:
    """A sequence whose initial states are constants, and another state with the batch as its second axis."""
    x = ops.parameter([batch, 5, 3], "f32", name="x")
    h = ops.parameter([2, batch, 4], "f32", name="h")
    first = ops.gather(h, np.array(0), 0)
    start = ops.reshape(first, [batch, 1, 4], False)
    zeros = np.zeros((batch, 1, 4), np.float32)
    sequence = ops.lstm_sequence(
        x, start, zeros, np.full(batch, 5, np.int64), weights(1, 16, 3), weights(1, 16, 4), weights(1, 16), 4, "forward"
    )
    return ovir.Model([sequence.output(0), ops.concat([first, first], 1)], [x, h], "lstm")


def iterator(batch: int = 1) -> ovir.Model:
    """A TensorIterator whose state begins with a constant, with a Reshape in its body."""
    x = ops.parameter([batch, 5, 4], "f32", name="x")
    step, state = ops.parameter([batch, 1, 4], "f32"), ops.parameter([batch, 4], "f32")
    total = ops.add(ops.reshape(step, [batch, 4], False, name="inside"), ops.tanh(state))
    again, out = ops.result(total), ops.result(ops.reshape(total, [batch, 1, 4], False))
    layer = ops.tensor_iterator(name="iterator")
    layer.set_body(ovir.Model([again, out], [step, state], "body"))
    layer.set_sliced_input(step, x, 0, 1, 1, -1, 1)
    layer.set_merged_input(state, np.zeros((batch, 4), np.float32), again)
    last = layer.get_iter_value(again, -1)
    every = layer.get_concatenated_slices(out, 0, 1, 1, -1, 1)
    return ovir.Model([last, every], [x], "iterator")


def conditional(batch: int = 1) -> ovir.Model:
    x, chosen = ops.parameter([batch, 4], "f32", name="x"), ops.parameter([], "boolean", name="chosen")
    layer = ops.if_op(chosen, name="if")
    bodies = []
    for function in (ops.relu, ops.abs):
        inside = ops.parameter([batch, 4], "f32")
        bodies.append(ovir.Model([ops.result(ops.reshape(function(inside), [batch, 2, 2], False))], [inside]))
    layer.set_then_body(bodies[0])
    layer.set_else_body(bodies[1])
    layer.set_input(x, bodies[0].inputs[0], bodies[1].inputs[0])
    return ovir.Model([layer.set_output(bodies[0].outputs[0], bodies[1].outputs[0])], [x, chosen], "conditional")


def resized(batch: int = 1) -> ovir.Model:
    """A class token for each item, sizes of all axes in an Interpolate, positions that are repeated by a Tile."""
    x = image(batch)
    large = ops.interpolate(x, [batch, 3, 16, 16], "nearest", "sizes", axes=[0, 1, 2, 3])
    tokens = ops.transpose(ops.reshape(large, [batch, 3, 256], False), [0, 2, 1])
    token = ops.tile(weights(1, 1, 3), [batch, 1, 1])
    return ovir.Model(
        [ops.concat([token, tokens], 1), ops.add(tokens, ops.tile(weights(1, 256, 3), [batch, 1, 1]))], [x]
    )


def moved(batch: int = 1) -> ovir.Model:
    """A Reshape puts an axis before that of the items, which one item does not show."""
    x = ops.parameter([batch, 4], "f32", name="x")
    behind = ops.reshape(ops.relu(x), [1, batch, 4], False)
    return ovir.Model([ops.transpose(ops.tanh(behind), [1, 0, 2])], [x], "moved")


def windows(batch: int = 1) -> ovir.Model:
    """The items are the inner part of an axis, and become an axis of their own again."""
    x = ops.parameter([batch, 6, 4], "f32", name="x")
    flat = ops.reshape(ops.transpose(x, [1, 0, 2]), [-1, 4], False)
    made = ops.matmul(ops.tanh(flat), weights(4, 2), False, False)
    return ovir.Model([ops.transpose(ops.reshape(made, [6, batch, 2], False), [1, 0, 2])], [x], "windows")


PINNED: Sequence[Callable[[int], ovir.Model]] = (
    yolo, detr, ssd, decoder, early_state, bare_state, lstm, iterator, conditional, resized
)  # fmt: skip


# --------------------------------------------------------------------------- models that mix their items


def normalized() -> ovir.Model:
    x = image()
    return ovir.Model([ops.mvn(conv(x, 3, 4), [0, 2, 3], True, 1e-6, "inside_sqrt", name="mixing")], [x])


def suppressed() -> ovir.Model:
    """One list of the boxes of all items, of which the best are kept."""
    x = ops.parameter([1, 6, 4], "f32", name="boxes")
    boxes = ops.reshape(x, [-1, 4], False)
    scores = ops.reduce_sum(boxes, [1], False)
    best = ops.topk(scores, 3, 0, "max", "value", name="mixing")
    return ovir.Model([ops.gather(boxes, best.output(1), 0)], [x])


def merged() -> ovir.Model:
    x = ops.parameter([1, 6], "f32", name="x")
    return ovir.Model(
        [ops.matmul(ops.reshape(x, [6], False, name="flat"), weights(6, 2), False, False, name="mixing")], [x]
    )


def averaged() -> ovir.Model:
    x = ops.parameter([1, 6], "f32", name="x")
    return ovir.Model([ops.reduce_mean(x, [0], True, name="mixing")], [x])


MIXING = normalized, suppressed, merged, averaged
