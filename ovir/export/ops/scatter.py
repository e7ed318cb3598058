"""ScatterUpdate, ScatterElementsUpdate and ScatterNDUpdate.

onnxruntime runs ScatterND in threads that do not wait for each other, so that several updates of one element may get
lost. Reductions are therefore exported as ScatterElements, which takes one update after the other.
"""

from __future__ import annotations

import numpy as np

from ovir.core.element_types import ElementType, boolean, i64
from ovir.core.shapes import Dimension
from ovir.export.exporters import exports
from ovir.export.onnx_graph import LAST, Graph, Tensor
from ovir.ops import scatter as ops

_REDUCTIONS = {"sum": "add", "sub": "add", "mean": "add", "prod": "mul", "min": "min", "max": "max"}
_LIMITS = "reductions min and max need opset 18, and there NaN among the updates prevails"
_LOGICAL = {"sum": "add", "sub": "add", "max": "add", "prod": "mul", "min": "mul"}
"""The reductions of booleans as integers, which are then compared with 0, or with 1 modulo 2."""


# --------------------------------------------------------------------------- ScatterUpdate


@exports(ops.ScatterUpdate, to="ScatterND")
def scatter_update(
    graph: Graph, op: ops.ScatterUpdate, data: Tensor, indices: Tensor, updates: Tensor, axis: Tensor
) -> Tensor:
    """Export as ScatterND, with the dimensions around the axis merged unless it is the first one."""
    if Dimension(0, 0) in (updates.shape if updates.rank else ()):  # onnxruntime cannot infer shapes of no indices
        return data
    places = graph.cast(indices, i64)
    if axis.constant is not None and (axis.constant.item() == 0 or axis.constant.item() == -(data.rank or 0)):
        return graph.ScatterND(data, graph.Unsqueeze(places, [-1]), updates)
    before, size, after = _around(graph, data, axis)
    flat = graph.Reshape(places, [-1])
    count = graph.product(graph.sizes_of(indices)) if indices.rank is not None else graph.Shape(flat)
    merged = graph.reshaped(updates, [before, count, after] if before.number != 1 else [count, after])
    if before.number == 1:
        found = graph.ScatterND(graph.reshaped(data, [size, after]), graph.Unsqueeze(flat, [-1]), merged)
    else:
        rows = graph.positions_below(before)
        grid = graph.vector([before, count, 1])
        columns = (graph.Expand(graph.Unsqueeze(part, axes), grid) for part, axes in ((rows, [1, 2]), (flat, [1])))
        tuples = graph.Concat(*columns, axis=2)
        found = graph.ScatterND(graph.reshaped(data, [before, size, after]), tuples, merged)
    return graph.in_shape(found, graph.shape_of(data))


def _around(graph: Graph, data: Tensor, axis: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the number of elements before an axis, its size, and the number of elements after it."""
    if axis.constant is not None and data.rank is not None:
        at = int(axis.constant.item()) % data.rank
        sizes = graph.sizes_of(data)
        return graph.product(sizes[:at]), sizes[at], graph.product(sizes[at + 1 :])
    shape = graph.shape_of(data)
    along = graph.axes_from_front(axis, graph.Shape(shape))
    before, after = graph.Slice(shape, [0], along), graph.Slice(shape, graph.Add(along, 1), [LAST])
    return graph.ReduceProd(before), graph.Gather(shape, along), graph.ReduceProd(after)


# --------------------------------------------------------------------------- ScatterElementsUpdate


@exports(ops.ScatterElementsUpdate3, ops.ScatterElementsUpdate12, to="ScatterElements", limits=_LIMITS)
def scatter_elements_update(
    graph: Graph, op: ops.ScatterElementsUpdate3, data: Tensor, indices: Tensor, updates: Tensor, axis: Tensor
) -> Tensor:
    """Export as ScatterElements, which reduces, as older operations do not; a mean is a sum divided by a count."""
    if data.rank == 0:
        data, indices, updates = (graph.Reshape(tensor, [1]) for tensor in (data, indices, updates))
        found = _scattered(graph, op.reduction, op.use_init_val, data, indices, updates, 0)
        return graph.as_scalar(found)
    if axis.constant is not None:
        at = int(axis.constant.item())
        return _scattered(graph, op.reduction, op.use_init_val, data, indices, updates, at)
    places = _positions_along(graph, data, indices, axis)
    rows, places, parts = (graph.Reshape(tensor, [-1]) for tensor in (data, places, updates))
    found = _scattered(graph, op.reduction, op.use_init_val, rows, places, parts, 0)
    return graph.in_shape(found, graph.shape_of(data))


def _positions_along(graph: Graph, data: Tensor, indices: Tensor, axis: Tensor) -> Tensor:
    """Return the row-major positions in data of the indices along an axis that the run chooses."""
    rank, sizes = graph.rank(data), graph.sizes_of(data)
    at = graph.axes_from_front(axis, rank)
    length = graph.Gather(graph.shape_of(data), at)
    chosen = _from_front(graph, length, graph.cast(indices, i64))
    positions: Tensor | int = 0
    for i in range(rank):
        steps = graph.Reshape(graph.positions_below(graph.size_of(indices, i)), [-1, *[1] * (rank - 1 - i)])
        own = graph.Where(graph.Equal(at, i), chosen, steps)
        positions = graph.Add(graph.Mul(own, graph.product(sizes[i + 1 :])), positions)
    assert isinstance(positions, Tensor)
    return positions


def _from_front(graph: Graph, length: Tensor, indices: Tensor) -> Tensor:
    """Return indices of an axis counted from the front.

    One outside of the axis fails the run; the row-major position made from it could be the position of another element.
    """
    return graph.Gather(graph.positions_below(length), indices, axis=0)


def _scattered(
    graph: Graph, reduction: str, use_init: bool, data: Tensor, indices: Tensor, updates: Tensor, axis: int
) -> Tensor:
    """Return data with updates written or reduced into it, as ScatterElementsUpdate does."""
    if reduction == "none":
        return graph.ScatterElements(data, indices, updates, axis=axis)
    is_logical = data.element_type == boolean
    name = (_LOGICAL if is_logical else _REDUCTIONS)[reduction]
    graph.require(graph.opset >= 18 or name in ("add", "mul"), "reduction {} needs opset 18 of ONNX", reduction)
    computed = i64 if reduction == "mean" and not data.element_type.is_real else data.summed_in
    held, parts = graph.cast(data, computed), graph.cast(updates, computed)
    if not use_init:
        neutral = graph.Expand(_neutral(graph, computed, name), graph.Shape(indices))
        held = graph.ScatterElements(held, indices, neutral, axis=axis)
    if reduction == "sub" and not is_logical:
        parts = graph.Sub(0, parts)
    found = graph.ScatterElements(held, indices, parts, axis=axis, reduction=name)
    if reduction == "mean":
        found = _divided(graph, found, indices, axis, use_init)
    if is_logical and reduction == "sub":
        found = graph.Mod(found, 2)
    return graph.cast(found, data.element_type)


def _divided(graph: Graph, sums: Tensor, indices: Tensor, axis: int, use_init: bool) -> Tensor:
    """Return sums divided by the number of their parts; integers are rounded down."""
    counted = sums.real_type if sums.element_type.is_real else i64
    number = np.array(1, counted.to_dtype())
    counts = graph.Expand(number if use_init else 0 * number, graph.Shape(sums))
    counts = graph.ScatterElements(
        counts, indices, graph.Expand(number, graph.Shape(indices)), axis=axis, reduction="add"
    )
    if not use_init:
        counts = graph.Max(counts, 1)
    if counted == i64:
        sums = graph.Sub(sums, graph.Mod(sums, counts))
    return graph.Div(sums, counts)


def _neutral(graph: Graph, element_type: ElementType, reduction: str) -> Tensor:
    """Return the number that a reduction begins with if it does not begin with an element of data."""
    if reduction in ("add", "mul"):
        return graph.number(reduction == "mul", element_type)
    if element_type.is_real:
        return graph.number(np.inf if reduction == "min" else -np.inf, element_type)
    info = np.iinfo(element_type.to_dtype())
    return graph.number(info.max if reduction == "min" else info.min, element_type)


# --------------------------------------------------------------------------- ScatterNDUpdate


@exports(ops.ScatterNDUpdate4, ops.ScatterNDUpdate15, to="ScatterND; ScatterElements for reductions", limits=_LIMITS)
def scatter_nd_update(graph: Graph, op: ops.ScatterNDUpdate4, data: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Export as ScatterND, or with a reduction as ScatterElements of rows."""
    places = graph.shaped(graph.cast(indices, i64), indices.shape)
    last = indices.shape[-1]
    if last == Dimension(0, 0):  # each tuple means all of data, which becomes one slice of a larger tensor
        places = graph.Expand(np.zeros(1, np.int64), graph.Concat(graph.Shape(indices, end=-1), [1], axis=0))
        found = _scattered_slices(graph, op.reduction, graph.Unsqueeze(data, [0]), places, updates, 1)
        return graph.Squeeze(found, [0])
    if indices.rank == 1 and updates.rank != 0 and last.is_static and last.length == data.rank:
        updates = graph.as_scalar(updates)
    if op.reduction == "none":
        return graph.ScatterND(data, places, updates)
    graph.require(last.is_static, "the last dimension of indices is unknown")
    return _scattered_slices(graph, op.reduction, data, places, updates, last.length)


def _scattered_slices(graph: Graph, reduction: str, data: Tensor, places: Tensor, updates: Tensor, k: int) -> Tensor:
    """Return data in which the slices at tuples of ``k`` indices are reduced with updates, one after the other."""
    if reduction == "none":
        return graph.ScatterND(data, places, updates)
    shape = graph.shape_of(data)
    sizes, rest = graph.Slice(shape, [0], [k]), graph.Slice(shape, [k], [LAST])
    rows: Tensor | int = 0
    for i in range(k):
        chosen = _from_front(graph, graph.Gather(sizes, [i]), graph.Gather(places, i, axis=-1))
        stride = graph.ReduceProd(graph.Slice(sizes, [i + 1], [LAST]))
        rows = graph.Add(graph.Mul(chosen, stride), rows)
    rows = graph.Reshape(rows, [-1])
    length = graph.ReduceProd(rest)
    flat = graph.in_shape(data, graph.vector([graph.ReduceProd(sizes), length]))
    grid = graph.vector([graph.Shape(rows), length])
    parts = graph.in_shape(updates, grid)
    found = _scattered(graph, reduction, True, flat, graph.Expand(graph.Unsqueeze(rows, [1]), grid), parts, 0)
    return graph.in_shape(found, shape)
