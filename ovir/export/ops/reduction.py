"""Reductions and CumSum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.element_types import f64, i64, u8, u64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.kernels.precision import integer_range, lowest_finite
from ovir.ops import reduction as ops

Axes = Sequence[int] | Tensor

_OPERATORS = {"ReduceLogicalAnd": "ReduceMin", "ReduceLogicalOr": "ReduceMax"}
_LARGE = "onnxruntime computes integers beyond 2^53, and products of i32 that overflow, inexactly"
_DYNAMIC_NOTHING = "the engine decides the result of an axis of dynamic size without elements"


@exports(ops.ReduceSum, ops.ReduceProd, limits=_LARGE)
@exports(ops.ReduceMean, limits=_DYNAMIC_NOTHING)
@exports(ops.ReduceL1, ops.ReduceL2)
def reduction(graph: Graph, op: ops.ReductionBase, data: Tensor, axes: Tensor) -> Tensor:
    """Export as the operator of the same name; narrow integers are computed in f64 and saturate."""
    if isinstance(op, ops.ReduceMean) and _reduces_nothing(op, data):
        return _filled(graph, op, 0)
    along = _axes(graph, op, data, axes)
    element_type = op.output_types[0]
    if element_type.is_integral and (element_type.bits < 32 or isinstance(op, ops.ReduceL2)):
        return graph.saturated(_reduced(graph, op, graph.cast(data, f64), along), element_type)
    if element_type.is_integral and isinstance(op, ops.ReduceL1 | ops.ReduceMean):
        return _exact(graph, op, data, along)
    return _reduced(graph, op, data, along)


def _exact(graph: Graph, op: ops.ReductionBase, data: Tensor, axes: Axes) -> Tensor:
    """Return the mean or the L1 norm of integers as a sum, which onnxruntime would compute in real numbers."""
    if isinstance(op, ops.ReduceL1):
        return graph.reduced("ReduceSum", graph.Abs(data), axes, keep=op.keep_dims) if axes else graph.Abs(data)
    if not axes:
        return data
    total = graph.reduced("ReduceSum", data, axes, keep=op.keep_dims)
    sizes = graph.Gather(graph.shape_of(data), axes if isinstance(axes, Tensor) else list(axes))
    return graph.Div(total, graph.cast(graph.ReduceProd(sizes, keepdims=0), data.element_type))


@exports(
    ops.ReduceMax,
    ops.ReduceMin,
    to="{}, without NaN",
    limits="the result is infinite where all elements are NaN, and where an axis of dynamic size has none",
)
def extremum(graph: Graph, op: ops.ReduceMax | ops.ReduceMin, data: Tensor, axes: Tensor) -> Tensor:
    """Export as ReduceMax or ReduceMin; NaN is replaced by the infinity that does not count."""
    along = _axes(graph, op, data, axes)
    if _reduces_nothing(op, data):
        return _filled(
            graph, op, lowest_finite(op.output_types[0].to_dtype()) if isinstance(op, ops.ReduceMax) else np.inf
        )
    if data.element_type.is_real and along:
        infinity = -np.inf if isinstance(op, ops.ReduceMax) else np.inf
        return _reduced(graph, op, graph.Where(graph.IsNaN(data), infinity, data), along)
    if data.element_type != u64:
        return _reduced(graph, op, data, along)
    # As i64, the same bits with the highest one inverted have the same order.
    highest = np.array(-(2**63), np.int64)
    found = _reduced(graph, op, graph.Add(graph.cast(data, i64), highest), along)
    return graph.cast(graph.Add(found, highest), u64)


@exports(ops.ReduceLogicalAnd, to="ReduceMin", limits=_DYNAMIC_NOTHING)
@exports(ops.ReduceLogicalOr, to="ReduceMax")
def logical(graph: Graph, op: ops.ReductionBase, data: Tensor, axes: Tensor) -> Tensor:
    if _reduces_nothing(op, data):
        return _filled(graph, op, isinstance(op, ops.ReduceLogicalAnd))
    along = _axes(graph, op, data, axes)
    if data.rank is None or any(dim.contains(0) for dim in data.shape):
        data = graph.cast(data, u8)  # onnxruntime refuses the maximum of no boolean
    return graph.cast(_reduced(graph, op, data, along), op.output_types[0])


def _axes(graph: Graph, op: ops.ReductionBase, data: Tensor, axes: Tensor) -> Axes:
    if axes.constant is not None and data.rank is not None:
        return op.axes(axes.constant, data.rank)
    # onnxruntime ignores negative axes of tensors without elements, and takes some that lie outside of others.
    return graph.axes_from_front(axes, graph.Shape(graph.Shape(data)) if data.rank is None else data.rank)


def _reduces_nothing(op: ops.ReductionBase, data: Tensor) -> bool:
    """Return whether the data is known to have no elements, and the shape of the result is known."""
    return op.output_shapes[0].is_static and data.shape.is_static and 0 in data.shape.to_tuple()


def _filled(graph: Graph, op: ops.ReductionBase, number: float) -> Tensor:
    """Return a result whose elements are all the same."""
    element_type = op.output_types[0]
    if element_type.is_integral:
        low, high = integer_range(element_type.to_dtype())
        number = min(max(number, low), high)
    array = np.full(op.output_shapes[0].to_tuple(), number, element_type.to_dtype())
    return graph.constant(array, element_type)


def _reduced(graph: Graph, op: ops.ReductionBase, data: Tensor, axes: Axes) -> Tensor:
    if not isinstance(axes, Tensor) and not axes:
        return graph.Abs(data) if isinstance(op, ops.ReduceL1 | ops.ReduceL2) else data
    return graph.reduced(_OPERATORS.get(op.type, op.type), data, axes, keep=op.keep_dims)


# --------------------------------------------------------------------------- cumulative sums


@exports(ops.CumSum, to="CumSum")
def cum_sum(graph: Graph, op: ops.CumSum, data: Tensor, axis: Tensor) -> Tensor:
    """Export as CumSum; a scalar gets an axis for it."""
    along = graph.cast(graph.as_scalar(axis), i64)
    flags = {"exclusive": int(op.exclusive), "reverse": int(op.reverse)}
    if data.rank == 0:
        summed = graph.CumSum(graph.Reshape(data, [1]), along, **flags)
        return graph.as_scalar(summed)
    return graph.CumSum(data, along, **flags)
