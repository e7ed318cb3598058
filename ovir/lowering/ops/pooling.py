"""MaxPool, AvgPool and their adaptive forms."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ovir import opset8 as ops
from ovir.graph.layers import Layer, LayerOrPort, Port
from ovir.lowering.parts import known, known_sizes, older, part, rank, swapped
from ovir.lowering.registry import Tensors, lowers, refuse
from ovir.ops.base.spatial import SAME, output_size
from ovir.ops.pooling import AdaptiveAvgPool, AdaptiveMaxPool, AvgPool14, AvgPool16, MaxPool8, MaxPool14, PoolBase


@lowers("MaxPool", 14)
def max_pool_14(op: MaxPool14, data: Port) -> Layer:
    return older(op, 8, data, **_rounding(op, data))


@lowers("MaxPool", 8)
def max_pool_8(op: MaxPool8, data: Port) -> Tensors:
    if set(op.dilations) - {1}:
        refuse(f"MaxPool-1 has no dilations, and these are {list(op.dilations)}")
    return [older(op, 1, data), _no_places]


def _no_places() -> NoReturn:
    refuse("older operations do not compute the positions of the largest elements, which are read")


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
    sizes = known_sizes(data.shape.slice(2))
    for size, *window, begin, end in zip(sizes, op.kernel, strides, dilations, begins, ends, strict=True):
        kernel, stride, dilation = window
        count = output_size(size, kernel, stride, dilation, begin, end, "ceil_torch")
        span = (kernel - 1) * dilation + 1
        pads.append(max(end, (count - 1) * stride + span - size - begin))
    return {"rounding_type": "floor", "auto_pad": "explicit", "pads_begin": list(begins), "pads_end": pads}


# --------------------------------------------------------------------------- adaptive forms


@lowers("AdaptiveAvgPool", 8)
def adaptive_avg_pool(op: AdaptiveAvgPool, data: Port, output_shape: Port) -> LayerOrPort:
    """Multiply each spatial axis by the matrix of its windows' weights, unless all windows have the same size."""
    axes = range(2, rank(data))
    counts = known(output_shape, "output_shape")
    if all(count == 1 for count in counts):
        return ops.reduce_mean(data, list(axes), keep_dims=True)
    spatial = _spatial(data)
    if not any(size % count for size, count in zip(spatial, counts, strict=True)):
        kernel, none = [size // count for size, count in zip(spatial, counts, strict=True)], [0] * len(counts)
        return ops.avg_pool(data, kernel, none, none, kernel, exclude_pad=True)
    last = rank(data) - 1
    result: LayerOrPort = data
    for axis, size, count in zip(axes, spatial, counts, strict=True):
        weights = np.zeros((size, count))
        for window, (start, stop) in enumerate(_windows(size, count)):
            weights[start:stop, window] = 1 / (stop - start)
        result = ops.matmul(swapped(result, axis, last), ops.constant(weights, data.element_type), False, False)
        result = swapped(result, axis, last)
    return result


@lowers("AdaptiveMaxPool", 8)
def adaptive_max_pool(op: AdaptiveMaxPool, data: Port, output_shape: Port) -> Tensors:
    counts = known(output_shape, "output_shape")
    spatial = _spatial(data)
    if not any(size % count for size, count in zip(spatial, counts, strict=True)):
        kernel, none = [size // count for size, count in zip(spatial, counts, strict=True)], [0] * len(counts)
        return ops.max_pool(
            data, kernel, [1] * len(kernel), none, none, kernel, index_element_type=op.index_element_type, axis=2
        )
    result: LayerOrPort = data
    for axis, size, count in zip(range(2, rank(data)), spatial, counts, strict=True):
        parts = [
            ops.reduce_max(part(result, axis, start, stop), [axis], keep_dims=True)
            for start, stop in _windows(size, count)
        ]
        result = ops.concat(parts, axis)
    return [result, _no_places]


def _spatial(data: Port) -> tuple[int, ...]:
    """Return the spatial sizes, which must be known; batch and channels need not be."""
    rank(data)
    return known_sizes(data.shape.slice(2))


def _windows(size: int, count: int) -> list[tuple[int, int]]:
    return [(window * size // count, -(-(window + 1) * size // count)) for window in range(count)]
