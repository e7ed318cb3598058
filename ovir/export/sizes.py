"""Sizes and lists of integers in an exported graph: numbers where they are known, else tensors of the run."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np

from ovir.core.element_types import i64
from ovir.core.shapes import UNKNOWN, PartialShape, as_dimension
from ovir.export.onnx_graph import Graph, Tensor

Size = int | Tensor
"""A number, or a tensor of i64 with shape [1]."""

FIRST = -(2**63)
LAST = 2**63 - 1
"""Positions before the first and after the last element of any dimension."""


def _truncated(a: int, b: int) -> int:
    """Return a quotient rounded towards 0, as ONNX divides integers."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_COMPUTED: dict[str, Callable[[int, int], int]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": _truncated,
    "Mod": operator.mod,
    "Max": max,
    "Min": min,
}


def compute(graph: Graph, op_type: str, *sizes: Size) -> Size:
    """Return the result of an operator of ONNX, such as ``Mul``, for some sizes one after the other."""
    result, *others = sizes
    for size in others:
        if isinstance(result, int) and isinstance(size, int):
            result = _COMPUTED[op_type](result, size)
        else:
            (result,) = graph.node(op_type, vector(graph, [result]), vector(graph, [size]))
    return result


def product(graph: Graph, sizes: Sequence[Size]) -> Size:
    """Return the product of some sizes."""
    return compute(graph, "Mul", 1, *sorted(sizes, key=lambda size: not isinstance(size, int)))


def size_of(graph: Graph, tensor: Tensor, axis: int) -> Size:
    """Return the size of a dimension; negative axes count from the end."""
    dim = tensor.shape[axis]
    if dim.is_static:
        return dim.length
    return graph.Shape(tensor, start=axis, end=axis + 1 or None)


def scalar_size_of(graph: Graph, tensor: Tensor, axis: int) -> Tensor:
    """Return the size of a dimension as a tensor without dimensions, a constant if it is static."""
    return as_scalar(graph, size_of(graph, tensor, axis))


def sizes_of(graph: Graph, tensor: Tensor, name: str = "data") -> list[Size]:
    """Return all sizes of a tensor; raise NotExportable if its rank is unknown."""
    return [size_of(graph, tensor, axis) for axis in range(graph.rank(tensor, name))]


def shape_of(graph: Graph, tensor: Tensor) -> Tensor:
    """Return the shape of a tensor, a constant if it is static."""
    if tensor.shape.is_static:
        return graph.constant(np.array(tensor.shape.to_tuple(), np.int64))
    return graph.Shape(tensor)


def items(graph: Graph, tensor: Tensor, name: str, count: int | None = None) -> list[Size]:
    """Return the elements of a list of integers, whose length must be known."""
    if tensor.constant is not None:
        return [int(item) for item in tensor.constant.reshape(-1)]
    if count is None:
        graph.require(tensor.shape.is_static, "{} has an unknown number of elements", name)
        count = tensor.shape.size().length
    flat = as_list(graph, tensor)
    return [flat] if count == 1 else [graph.Gather(flat, [i], axis=0) for i in range(count)]


def as_list(graph: Graph, tensor: Tensor) -> Tensor:
    """Return integers as a one-dimensional tensor of i64."""
    whole = graph.cast(tensor, i64)
    if tensor.constant is not None:
        return graph.constant(tensor.constant.reshape(-1).astype(np.int64))
    return whole if tensor.rank == 1 else graph.shaped(graph.Reshape(whole, [-1]), [tensor.shape.size()])


def as_scalar(graph: Graph, tensor: Size) -> Tensor:
    """Return a number, or the one element of a tensor, as a tensor without dimensions."""
    if isinstance(tensor, int):
        return graph.constant(np.int64(tensor))
    if tensor.rank == 0:
        return tensor
    count = tensor.shape.size()
    graph.require(not count.is_static or count.length == 1, "one element is needed, got shape {}", tensor.shape)
    if tensor.constant is not None:
        return graph.constant(tensor.constant.reshape(()), tensor.element_type)
    return graph.shaped(graph.Reshape(tensor, graph.constant(np.zeros(0, np.int64))), PartialShape([]))


def positions_below(graph: Graph, count: Size) -> Tensor:
    """Return the numbers 0, 1, ... below ``count``, i64; a tensor has one element."""
    if isinstance(count, int):
        return graph.constant(np.arange(count))
    return graph.shaped(graph.Range(0, as_scalar(graph, count), 1), [UNKNOWN])


def axes_from_front(graph: Graph, axes: Tensor, rank: Size) -> Tensor:
    """Return axes that the run chooses as a list counted from the front; one that the data lacks fails the run."""
    if isinstance(rank, int):
        rank = max(rank, 1)  # a scalar has the axes 0 and -1
    return graph.Gather(positions_below(graph, rank), as_list(graph, axes), axis=0)


def vector(graph: Graph, sizes: Sequence[Size]) -> Tensor:
    """Return sizes as a one-dimensional tensor, a constant if all are known."""
    if len(sizes) == 1 and isinstance(sizes[0], Tensor):
        return sizes[0]
    if all(isinstance(size, int) for size in sizes):
        return graph.constant(np.array(sizes, np.int64))
    lists = [graph.constant(np.array([size])) if isinstance(size, int) else size for size in sizes]
    return graph.Concat(*lists, axis=0)


def of_rank(graph: Graph, tensor: Tensor, rank: int) -> Tensor:
    """Return a tensor whose rank is known because the operation takes no other."""
    return tensor if tensor.rank is not None else graph.shaped(tensor, [UNKNOWN] * rank)


def part(graph: Graph, data: Tensor, start: int, stop: Size, axis: int = 0) -> Tensor:
    """Return the elements along an axis from ``start`` up to ``stop``, which is excluded."""
    return graph.Slice(data, [start], vector(graph, [stop]), [axis])


def reshaped(graph: Graph, tensor: Tensor, sizes: Sequence[Size]) -> Tensor:
    """Return a tensor reshaped to sizes whose product is its number of elements; an initializer stays one."""
    known = [size for size in sizes if isinstance(size, int)]
    if tensor.constant is not None and tensor.value.const_value is not None and len(known) == len(sizes):
        return graph.constant(tensor.constant.reshape(known), tensor.element_type)
    dims = [UNKNOWN if isinstance(size, Tensor) else as_dimension(size) for size in sizes]
    open_ = [i for i, size in enumerate(sizes) if isinstance(size, Tensor)]
    if len(open_) == 1 and not {0, -1} & set(known):
        sizes = [-1 if isinstance(size, Tensor) else size for size in sizes]
    has_zero = any(isinstance(size, Tensor) or size == 0 for size in sizes)
    made = graph.Reshape(tensor, vector(graph, sizes), allowzero=1 if has_zero else None)
    return graph.shaped(made, PartialShape(dims))


def expanded(graph: Graph, tensor: Tensor, sizes: Sequence[Size]) -> Tensor:
    """Return a tensor broadcast to some sizes; it must not be larger than these."""
    dims = [UNKNOWN if isinstance(size, Tensor) else as_dimension(size) for size in sizes]
    return graph.shaped(graph.Expand(tensor, vector(graph, sizes)), PartialShape(dims))


def inverse(order: Sequence[int]) -> list[int]:
    """Return the order of axes that undoes a transposition."""
    return sorted(range(len(order)), key=lambda i: order[i])
