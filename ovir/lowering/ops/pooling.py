"""MaxPool, AvgPool and their adaptive forms."""

from __future__ import annotations

from typing import Any

from ovir import opset8 as ops
from ovir.core.element_types import f32, f64, i64
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.registry import Tensors, lowers, refuse
from ovir.lowering.sizes import below, constant, joined, known_sizes, older, part, rank, reshaped, size, sums, taps_of
from ovir.ops.base.spatial import SAME, padded_window
from ovir.ops.pooling import AdaptiveAvgPool, AdaptiveMaxPool, AvgPool14, AvgPool16, MaxPool8, MaxPool14, PoolBase


@lowers("MaxPool", 14)
def max_pool_14(op: MaxPool14, data: Port) -> Layer:
    return older(op, 8, data, **_rounding(op, data))


@lowers("MaxPool", 8)
def max_pool_8(op: MaxPool8, data: Port) -> Tensors:
    if set(op.dilations) - {1}:
        refuse(f"MaxPool-1 has no dilations, and these are {list(op.dilations)}")
    no_places = "older operations do not compute the positions of the largest elements, which are read"
    return [older(op, 1, data), lambda: refuse(no_places)]


@lowers("AvgPool", 16)
def avg_pool_16(op: AvgPool16, data: Port) -> Layer:
    if set(op.dilations) - {1}:
        refuse(f"older versions have no dilations, and these are {list(op.dilations)}")
    return older(op, 14, data)


@lowers("AvgPool", 14)
def avg_pool_14(op: AvgPool14, data: Port) -> Layer:
    changes = _rounding(op, data)
    if "pads_end" in changes and not any((*op.pads_begin, *op.pads_end)):
        changes["exclude-pad"] = True  # without pads, the mean covers only elements of data
    return older(op, 1, data, **changes)


def _rounding(op: PoolBase, data: Port) -> dict[str, Any]:
    """Return the attributes that give as many windows as the rounding ceil_torch does."""
    if op.rounding_type != "ceil_torch":
        return {}
    if op.auto_pad in SAME:
        return {"rounding_type": "floor"}
    axes = len(op.kernel)
    strides, dilations, begins, ends = op.per_axis(axes)
    if op.auto_pad == "valid":
        begins = ends = [0] * axes
    spans = [(kernel - 1) * dilation + 1 for kernel, dilation in zip(op.kernel, dilations, strict=True)]
    if all(stride + end <= span for stride, end, span in zip(strides, ends, spans, strict=True)):
        return {"rounding_type": "ceil"}  # every window begins before the end padding
    pads = []
    all_axes = zip(op.kernel, strides, dilations, begins, ends, strict=True)
    for length, span, axis in zip(known_sizes(data.shape.slice(2)), spans, all_axes, strict=True):
        window = padded_window("explicit", length, *axis)
        last = (window.count(length, "ceil_torch") - 1) * window.stride - window.pad_begin
        pads.append(max(last + span - length, 0))  # the last window ends with the padding
    return {"rounding_type": "floor", "auto_pad": "explicit", "pads_begin": list(begins), "pads_end": pads}


# --------------------------------------------------------------------------- adaptive forms


@lowers(
    "AdaptiveAvgPool",
    8,
    onnx="ReduceMean, AveragePool or MatMul",
    limits="NaN and infinities spread over their row if the data does not divide into equal windows",
)
def adaptive_avg_pool(op: AdaptiveAvgPool, data: Port, output_shape: Port) -> LayerOrPort:
    """Add the elements of each window up along one axis after another, unless all windows have the same size."""
    last, counts = rank(data) - 1, constant(output_shape)
    if counts is not None and (counts == 1).all():
        return ops.reduce_mean(data, list(range(2, last + 1)), keep_dims=True)
    kernel, none = _equal_windows(data, output_shape), [0] * (last - 1)
    if kernel is not None and data.element_type != f64:  # few runtimes pool f64
        return ops.avg_pool(data, kernel, none, none, kernel, exclude_pad=True)
    computed = f64 if data.element_type == f64 else f32
    result = ops.convert(data, computed)
    for axis in range(2, last + 1):
        starts, stops = _windows(data, output_shape, axis)
        taps, counted = taps_of(starts, stops)
        lengths = ops.convert(ops.subtract(stops, starts), computed)
        if axis < last:
            lengths = ops.unsqueeze(lengths, list(range(1, last - axis + 1)))
        result = ops.divide(sums(result, axis, taps, counted), lengths)
    return ops.convert(result, data.element_type)


@lowers("AdaptiveMaxPool", 8, onnx="MaxPool, or Gather and TopK", limits="NaN does not always win")
def adaptive_max_pool(op: AdaptiveMaxPool, data: Port, output_shape: Port) -> Tensors:
    """Gather the elements of all windows, and find the largest of each."""
    kernel, axes = _equal_windows(data, output_shape), rank(data) - 2
    if kernel is not None:
        none = [0] * axes
        return ops.max_pool(
            data, kernel, [1] * axes, none, none, kernel, index_element_type=op.index_element_type, axis=2
        )
    table, windows = _positions(data, output_shape)
    planes = reshaped(data, joined(size(data, 0), size(data, 1), -1))
    largest = ops.topk(ops.gather(planes, table, 2), 1, -1, "max", "value", index_element_type=i64)
    values, number = (ops.squeeze(port, [-1]) for port in largest.outputs)
    firsts = ops.multiply(below(ops.reduce_prod(windows, [0])), size(table, -1))
    index = ops.add(number, reshaped(firsts, windows))
    positions = ops.gather(reshaped(table, [-1]), index, 0)
    return [values, ops.convert(positions, op.index_element_type)]


def _equal_windows(data: Port, output_shape: Port) -> list[int] | None:
    """Return the size of the windows if it is known that all of them have it."""
    counts, spatial = constant(output_shape), data.shape.slice(2)
    if counts is None or not spatial.is_static or 0 in (*data.shape, *counts) or any(spatial.to_tuple() % counts):
        return None
    return [int(size) for size in spatial.to_tuple() // counts]


def _windows(data: Port, output_shape: Port, axis: int) -> tuple[Layer, Layer]:
    """Return the first element of each window along an axis, and the element after its last one."""
    count, length = ops.convert(part(output_shape, 0, axis - 2, axis - 1), i64), size(data, axis)
    numbers = ops.multiply(below(count), length)
    last = ops.add(numbers, ops.add(length, ops.subtract(count, [1])))
    return ops.divide(numbers, count, m_pythondiv=False), ops.divide(last, count, m_pythondiv=False)


def _positions(data: Port, output_shape: Port) -> tuple[Layer, Layer]:
    """Return the positions in the spatial axes of the elements of each window [*windows, elements], and the number of
    windows on each axis. Short windows repeat their last elements."""
    count = rank(data) - 2
    table, stride = ops.constant([0], i64), ops.constant([1], i64)
    windows: list[Layer] = []
    for axis in reversed(range(count)):
        starts, stops = _windows(data, output_shape, axis + 2)
        taps, _ = taps_of(starts, stops)
        others = [place for place in range(2 * count) if place not in (axis, axis + count)]
        own = ops.multiply(taps, stride)
        table = ops.add(table, ops.unsqueeze(own, others) if others else own)
        stride = ops.multiply(stride, size(data, axis + 2))
        windows.insert(0, size(starts, 0))
    return reshaped(table, joined(*windows, -1)), joined(*windows)
