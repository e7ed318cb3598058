"""Resampling of an axis in ONNX without Resize: by gathered elements or by matrix products."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, f32, i64
from ovir.export.nodes import rounded_away
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sizes import positions_below, scalar_size_of
from ovir.kernels.resample import Method, Taps

_FEW = 4
"""The number of taps up to which elements are gathered, tap by tap."""


def resampled(graph: Graph, data: Tensor, axis: int, taps: Taps) -> Tensor:
    """Return data with an axis resized by taps that are known."""
    if len(taps.index) > _FEW:
        return _multiplied(graph, data, axis, graph.constant(_dense(taps, int(taps.index.max(initial=0)) + 1)))
    rank = graph.rank(data)
    total = None
    for index, weight in zip(taps.index, taps.unit, strict=True):
        part = graph.Gather(data, graph.constant(index.astype(np.int64)), axis=axis)
        if not (weight == 1).all():
            along = weight.reshape(-1, *(1,) * (rank - axis - 1)).astype(data.element_type.to_dtype())
            part = graph.Mul(part, graph.constant(along, data.element_type))
        total = part if total is None else graph.Add(total, part)
    assert total is not None
    return graph.shaped(total, [-1] * rank)


def resampled_in_run(
    graph: Graph,
    method: Method,
    data: Tensor,
    axis: int,
    length: Tensor,
    scale: Tensor | None,
    merges: Tensor | None = None,
) -> Tensor:
    """Return data with an axis resized to a length that is known in a run only.

    ``merges`` is true where antialias applies; None leaves this to the method.
    """
    size = scalar_size_of(graph, data, axis)
    if scale is None:
        scale = graph.Div(graph.cast(length, f32), graph.cast(size, f32))
    outputs = graph.cast(positions_below(graph, length), f32)
    if method.is_pillow:
        weights = _pillow_weights(graph, method, size, length, outputs)
    else:
        moved = _positions(graph, method.coordinates, outputs, size, length, scale)
        keeps = graph.Or(graph.Equal(scale, 1.0), graph.Equal(size, length))
        position = graph.Where(keeps, outputs, moved)
        if method.mode == "nearest":
            nearest = graph.cast(_rounded(graph, method.nearest, position, scale), i64)
            inside = graph.Min(graph.Max(nearest, 0), graph.Sub(size, 1))
            return graph.shaped(graph.Gather(data, inside, axis=axis), [-1] * graph.rank(data))
        graph.require(method.mode != "cubic", "mode cubic of dynamic sizes needs data with two spatial axes")
        last = graph.cast(graph.Sub(size, 1), f32)
        # Without antialias, one of the two neighbors is inside, so that its share of the weights is 1.
        inner, slope = graph.Min(graph.Max(position, 0.0), last), graph.constant(np.float32(1))
        if merges is not None:
            position, slope = graph.Where(merges, position, inner), graph.Where(merges, scale, slope)
        elif method.antialias:
            slope = scale
        else:
            position = inner
        distance = graph.Abs(graph.Sub(position, _column(graph, size)))
        weights = graph.Max(graph.Sub(np.float32(1), graph.Mul(distance, slope)), 0.0)
    total = _sum_of_columns(graph, weights)
    shares = graph.Div(weights, graph.Where(graph.Equal(total, 0.0), np.float32(1), total))
    return _multiplied(graph, data, axis, graph.cast(shares, data.element_type))


def whole(graph: Graph, data: Tensor, element_type: ElementType, *, rounds: bool) -> Tensor:
    """Return real numbers as integers of a type: rounded half away from zero or truncated, and saturated."""
    shape = data.shape
    if rounds:
        data = rounded_away(graph, data)
    return graph.shaped(truncated_to(graph, data, element_type), shape)


def truncated_to(graph: Graph, data: Tensor, element_type: ElementType) -> Tensor:
    """Return real numbers truncated to integers of a type, saturated unless the type has 32 bits or more."""
    if element_type.bits < 32:
        signed = element_type.kind == "signed"
        bits = element_type.bits if element_type.kind != "boolean" else 1
        bounds = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        data = graph.Clip(data, *map(float, bounds))
    return graph.cast(graph.cast(data, i64), element_type)


def _dense(taps: Taps, size: int) -> Array:
    matrix = np.zeros((size, taps.length), taps.unit.dtype)
    columns = np.broadcast_to(np.arange(taps.length), taps.index.shape)
    np.add.at(matrix, (taps.index, columns), taps.unit)
    return matrix


def _multiplied(graph: Graph, data: Tensor, axis: int, matrix: Tensor) -> Tensor:
    """Return data with an axis multiplied by a matrix [elements, outputs]; unused elements at the end may be left out
    of a constant matrix."""
    rank = graph.rank(data)
    matrix = graph.cast(matrix, data.element_type)
    if matrix.constant is not None and data.shape[axis] != matrix.shape[0]:
        count = matrix.constant.shape[0]
        data = graph.shaped(graph.Slice(data, [0], [count], [axis]), [-1] * rank)
    order = [*(a for a in range(rank) if a != axis), axis]
    back = [order.index(a) for a in range(rank)]
    if axis == rank - 1:
        return graph.shaped(graph.MatMul(data, matrix), [-1] * rank)
    if axis == rank - 2:
        turned = graph.constant(matrix.constant.T.copy()) if matrix.constant is not None else graph.Transpose(matrix)
        return graph.shaped(graph.MatMul(turned, data), [-1] * rank)
    made = graph.MatMul(graph.Transpose(data, perm=order), matrix)
    return graph.shaped(graph.Transpose(made, perm=back), [-1] * rank)


# --------------------------------------------------------------------------- sizes that are known in a run


def _positions(graph: Graph, mode: str, x: Tensor, size: Tensor, length: Tensor, scale: Tensor) -> Tensor:
    half = np.float32(0.5)
    if mode == "asymmetric":
        return graph.Div(x, scale)
    if mode == "tf_half_pixel_for_nn":
        return graph.Div(graph.Add(x, half), scale)
    if mode == "align_corners":
        steps = graph.cast(graph.Max(graph.Sub(length, 1), 1), f32)
        return graph.Div(graph.Mul(x, graph.cast(graph.Sub(size, 1), f32)), steps)
    found = graph.Sub(graph.Div(graph.Add(x, half), scale), half)
    return graph.Where(graph.Equal(length, 1), x, found) if mode == "pytorch_half_pixel" else found


def _rounded(graph: Graph, mode: str, x: Tensor, scale: Tensor) -> Tensor:
    half = np.float32(0.5)
    if mode == "simple":
        return graph.Where(graph.Less(scale, 1.0), graph.Ceil(x), graph.Floor(x))
    if mode == "round_prefer_floor":
        return graph.Ceil(graph.Sub(x, half))
    if mode == "round_prefer_ceil":
        return graph.Floor(graph.Add(x, half))
    return graph.Floor(x) if mode == "floor" else graph.Ceil(x)


def _column(graph: Graph, size: Tensor) -> Tensor:
    """Return the positions of all elements as a column."""
    numbers = positions_below(graph, size)
    return graph.Unsqueeze(graph.cast(numbers, f32), [1])


def _sum_of_columns(graph: Graph, weights: Tensor) -> Tensor:
    return graph.ReduceSum(weights, [0], keepdims=1)


def _pillow_weights(graph: Graph, method: Method, size: Tensor, length: Tensor, outputs: Tensor) -> Tensor:
    """Return the weights of Pillow's filter, stretched over the pixels that are merged and cut at the borders."""
    half = np.float32(0.5)
    step = graph.Div(graph.cast(size, f32), graph.cast(length, f32))
    stretch = graph.Max(step, 1.0)
    support = graph.Mul(stretch, np.float32(1 if method.mode == "bilinear_pillow" else 2))
    center = graph.Mul(graph.Add(outputs, half), step)
    pixels = _column(graph, size)
    first = graph.Floor(graph.Add(graph.Sub(center, support), half))
    stop = graph.Floor(graph.Add(graph.Add(center, support), half))
    x = graph.Abs(graph.Div(graph.Add(graph.Sub(pixels, center), half), stretch))
    if method.mode == "bilinear_pillow":
        weight = graph.Max(graph.Sub(np.float32(1), x), 0.0)
    else:
        weight = _keys(graph, np.float32(method.cube_coeff), x)
    inside = graph.And(graph.GreaterOrEqual(pixels, first), graph.Less(pixels, stop))
    return graph.Where(inside, weight, 0.0)


def _keys(graph: Graph, a: np.float32, x: Tensor) -> Tensor:
    near = graph.Add(graph.Mul(graph.Mul(graph.Sub(graph.Mul(x, a + 2), a + 3), x), x), 1.0)
    far = graph.Mul(graph.Sub(graph.Mul(graph.Add(graph.Mul(graph.Sub(x, 5.0), x), 8.0), x), 4.0), a)
    return graph.Where(graph.Less(x, 1.0), near, graph.Where(graph.Less(x, 2.0), far, 0.0))
