"""ShapeOf, Reshape, Squeeze, Unsqueeze and Transpose."""

from __future__ import annotations

import numpy as np

from ovir.core.shapes import Dimension, PartialShape
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.shape import Reshape, ShapeOf1, ShapeOf3, Squeeze1, Squeeze15, Transpose, Unsqueeze


@exports(ShapeOf1, ShapeOf3, to="Shape")
def shape_of_(graph: Graph, op: ShapeOf1 | ShapeOf3, data: Tensor) -> Tensor:
    return graph.Shape(data)


# --------------------------------------------------------------------------- Reshape


@exports(Reshape, to="Reshape")
def reshape(graph: Graph, op: Reshape, data: Tensor, shape: Tensor) -> Tensor:
    """Export as Reshape, with a constant shape wherever inference knows enough."""
    sizes = _known_sizes(op, data.shape, shape)
    if sizes is None:
        return graph.Reshape(data, shape, allowzero=None if op.special_zero else 1)
    return graph.Reshape(data, graph.constant(np.array(sizes, np.int64)))


def _known_sizes(op: Reshape, data: PartialShape, shape: Tensor) -> list[int] | None:
    """Return a constant shape in which 0 copies a size, None if the shape depends on the run.

    The data may be empty in a run, but no size of the result is known to be 0: such a result is exported as a constant.
    """
    output = op.output_shapes[0]
    if shape.constant is not None and (op.special_zero or 0 not in shape.constant):
        return [int(size) for size in shape.constant]
    if output.is_static:
        return list(output.to_tuple())
    if output.rank is None:
        return None
    open_ = [i for i, dim in enumerate(output) if not dim.is_static]
    sizes = [dim.lower if dim.is_static else -1 for dim in output]
    if 0 in sizes:
        return None
    if len(open_) == 1:
        return sizes
    if all(_is_same(data, output, i) for i in open_):
        return [max(size, 0) for size in sizes]
    return None


def _is_same(data: PartialShape, output: PartialShape, axis: int) -> bool:
    """Return whether the dimension of the output always has the size of the same dimension of the data."""
    symbol = output[axis].symbol
    return bool(symbol) and data.rank is not None and axis < data.rank and data[axis].symbol == symbol


# --------------------------------------------------------------------------- Squeeze and Unsqueeze


@exports(Squeeze1, Squeeze15, to="Squeeze; Reshape if the removed dimensions depend on the run")
def squeeze(graph: Graph, op: Squeeze1, data: Tensor, axes: Tensor | None = None) -> Tensor:
    """Export as Squeeze of the axes that are 1."""
    chosen = _squeezed_axes(op, data, axes)
    if chosen is None:
        return _squeezed_in_run(graph, data, axes)
    return graph.Squeeze(data, chosen) if chosen else data


def _squeezed_axes(op: Squeeze1, data: Tensor, axes: Tensor | None) -> list[int] | None:
    """Return the axes that are removed, None if they depend on the run."""
    if data.rank is None or (axes is not None and axes.constant is None):
        return None
    chosen = range(data.rank)
    skips = True
    if axes is not None and axes.constant is not None and axes.constant.size:
        listed = axes.constant.ravel().tolist()
        chosen = sorted(set(op.normalize_axes(listed, data.rank, "axes", unique=False)))  # type: ignore[assignment]
        skips = getattr(op, "allow_axis_skip", False)
    possible = [axis for axis in chosen if data.rank and data.shape[axis].contains(1)]
    if skips and any(not data.shape[axis].is_static for axis in possible):
        return None
    return possible


def _squeezed_in_run(graph: Graph, data: Tensor, axes: Tensor | None) -> Tensor:
    shape = graph.shape_of(data)
    kept = graph.Not(graph.Equal(shape, 1))
    if axes is not None and not (axes.constant is not None and not axes.constant.size):
        listed = graph.as_list(axes)
        is_kept, is_listed = (
            graph.Expand(np.array(value), graph.Shape(like)) for value, like in ((True, shape), (False, listed))
        )
        kept = graph.Or(kept, graph.ScatterElements(is_kept, listed, is_listed))
    return graph.in_shape(data, graph.Compress(shape, kept, axis=0))


@exports(Unsqueeze, to="Unsqueeze")
def unsqueeze(graph: Graph, op: Unsqueeze, data: Tensor, axes: Tensor) -> Tensor:
    if axes.constant is None:
        return graph.Unsqueeze(data, graph.as_list(axes))
    different = sorted(set(axes.constant.ravel().tolist()))
    if data.rank is not None:
        different = sorted(set(op.normalize_axes(different, data.rank + len(different), unique=False)))
    return graph.Unsqueeze(data, different)


# --------------------------------------------------------------------------- Transpose


@exports(
    Transpose,
    to="Transpose; Gather if the order depends on the run",
    limits="an order that depends on the run must not be empty, and its negative axes count from the end",
)
def transpose(graph: Graph, op: Transpose, data: Tensor, order: Tensor) -> Tensor:
    if data.rank == 0:
        return data
    if order.constant is not None:
        return graph.Transpose(data, perm=[int(axis) for axis in order.constant] or None)
    if order.shape.size() == Dimension(0, 0):
        return graph.Transpose(data)
    rank = graph.rank(data)
    sizes = graph.sizes_of(data)
    strides = [graph.constant([1])]
    for size in reversed(sizes[1:]):
        strides.insert(0, graph.Mul(strides[0], size))
    axes = graph.as_list(order)
    places: Tensor | int = 0
    for axis in range(rank):
        taken = graph.Gather(axes, axis)
        size, stride = (graph.Gather(graph.vector(of_data), taken) for of_data in (sizes, strides))
        steps = graph.Mul(graph.positions_below(size), stride)
        places = graph.Add(graph.Reshape(steps, [-1, *[1] * (rank - 1 - axis)]), places)
    return graph.Gather(graph.Reshape(data, [-1]), places)
