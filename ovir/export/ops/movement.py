"""Concat, Split, VariadicSplit and Pad."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.element_types import string
from ovir.export.exporters import exports
from ovir.export.nodes import split_evenly
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sizes import Size, as_list, as_scalar, compute, items, positions_below, size_of, sizes_of, vector
from ovir.ops.movement import Concat, Pad1, Pad12, Split, VariadicSplit


@exports(Concat, to="Concat")
def concat(graph: Graph, op: Concat, *inputs: Tensor) -> Tensor:
    return graph.Concat(*inputs, axis=op.axis)


# --------------------------------------------------------------------------- Split and VariadicSplit


@exports(
    Split,
    to="Split; Slice if the axis depends on the run",
    limits="where the axis depends on the run, what the parts leave over is not an error",
)
def split(graph: Graph, op: Split, data: Tensor, axis: Tensor) -> Sequence[Tensor]:
    count = op.num_splits
    if axis.constant is None:
        whole = graph.Gather(graph.Shape(data), as_list(graph, axis))
        part = compute(graph, "Div", whole, count)
        return _slices(graph, data, axis, [part] * count)
    return split_evenly(graph, data, count, int(axis.constant.item()))


@exports(
    VariadicSplit,
    to="Split; Slice if the axis depends on the run",
    limits="where the axis depends on the run, what the parts leave over is not an error",
)
def variadic_split(graph: Graph, op: VariadicSplit, data: Tensor, axis: Tensor, lengths: Tensor) -> Sequence[Tensor]:
    """Export as Split, with the length that is -1 computed."""
    count = len(op.output_types)
    sizes = _lengths(graph, data, axis, lengths)
    if axis.constant is None:
        listed = sizes if isinstance(sizes, list) else items(graph, sizes, "split_lengths", count)
        return _slices(graph, data, axis, listed)
    parts = vector(graph, sizes) if isinstance(sizes, list) else sizes
    return graph.node("Split", data, parts, outputs=count, axis=int(axis.constant.item()))


def _lengths(graph: Graph, data: Tensor, axis: Tensor, lengths: Tensor) -> list[Size] | Tensor:
    """Return the lengths with -1 replaced by the rest."""
    if axis.constant is None or data.rank is None:
        whole: Size = graph.Gather(graph.Shape(data), as_list(graph, axis))
    else:
        whole = size_of(graph, data, int(axis.constant.item()) % data.rank)
    if lengths.constant is None:
        given = as_list(graph, lengths)
        rest = graph.Sub(vector(graph, [whole]), graph.Add(graph.ReduceSum(given, [0], keepdims=1), 1))
        return graph.Where(graph.Less(given, 0), rest, given)
    sizes: list[Size] = [int(length) for length in lengths.constant]
    if -1 in sizes:
        known = sum(size for size in sizes if isinstance(size, int)) + 1
        sizes[sizes.index(-1)] = compute(graph, "Sub", whole, known)
    return sizes


def _slices(graph: Graph, data: Tensor, axis: Tensor, lengths: Sequence[Size]) -> list[Tensor]:
    """Return parts along an axis that the run chooses."""
    along = as_list(graph, axis)
    parts = []
    begin: Size = 0
    for length in lengths:
        end = compute(graph, "Add", begin, length)
        parts.append(graph.Slice(data, vector(graph, [begin]), vector(graph, [end]), along))
        begin = end
    return parts


# --------------------------------------------------------------------------- Pad


@exports(
    Pad1,
    Pad12,
    to="Pad; Gather in mode symmetric and for strings",
    limits="in mode symmetric, pads that exceed the data are not all refused",
)
def pad(
    graph: Graph, op: Pad1, data: Tensor, pads_begin: Tensor, pads_end: Tensor, pad_value: Tensor | None = None
) -> Tensor:
    """Export as Pad, or as Gather along each padded axis for modes and types that Pad lacks."""
    if data.rank == 0:
        return data
    value = as_scalar(graph, pad_value) if pad_value is not None and op.pad_mode == "constant" else None
    if data.element_type == string or op.pad_mode == "symmetric" or _removes_more(op, data, pads_begin, pads_end):
        begins, ends = items(graph, pads_begin, "pads_begin", data.rank), items(graph, pads_end, "pads_end", data.rank)
        if value is None:
            value = graph.number(0, data.element_type)
        return _padded_by_index(graph, op.pad_mode, data, begins, ends, value)
    if pads_begin.constant is not None and pads_end.constant is not None:
        pads = graph.constant(np.concatenate([pads_begin.constant, pads_end.constant]).astype(np.int64))
    else:
        pads = graph.Concat(as_list(graph, pads_begin), as_list(graph, pads_end), axis=0)
    return graph.Pad(data, pads, value, mode=op.pad_mode)


def _removes_more(op: Pad1, data: Tensor, *pads: Tensor) -> bool:
    """Return whether negative pads are known that remove more elements than ONNX allows."""
    for tensor in pads:
        for axis, number in enumerate([] if tensor.constant is None else tensor.constant.tolist()):
            if number < 0 and (op.pad_mode != "constant" or -number > data.shape[axis].lower):
                return True
    return False


def _padded_by_index(
    graph: Graph, mode: str, data: Tensor, begins: Sequence[Size], ends: Sequence[Size], value: Tensor
) -> Tensor:
    """Return the elements at positions that are computed for each axis."""
    sizes = sizes_of(graph, data)
    for axis, (size, begin, end) in enumerate(zip(sizes, begins, ends, strict=True)):
        if begin == end == 0:
            continue
        length = compute(graph, "Max", compute(graph, "Add", size, begin, end), 0)
        steps = positions_below(graph, length)
        places = _places(graph, mode, graph.Sub(steps, vector(graph, [begin])), size)
        if mode == "constant":
            slab = [1 if i == axis else size_of(graph, data, i) for i in range(len(sizes))]
            data = graph.Concat(data, graph.Expand(value, vector(graph, slab)), axis=axis)
        data = graph.Gather(data, places, axis=axis)
    return data


def _places(graph: Graph, mode: str, places: Tensor, size: Size) -> Tensor:
    """Return the source positions of the elements at some places of the result; ``size`` means the constant."""
    beyond = vector(graph, [size])
    last = vector(graph, [compute(graph, "Sub", size, 1)])
    if mode == "constant":
        inside = graph.And(graph.GreaterOrEqual(places, 0), graph.Less(places, beyond))
        return graph.Where(inside, places, beyond)
    if mode == "edge":
        return graph.Min(graph.Max(places, 0), last)
    if mode == "reflect":
        places = graph.Abs(places)
        return graph.Min(places, graph.Sub(graph.Mul(last, 2), places))
    places = graph.Max(places, graph.Sub(-1, places))
    return graph.Min(places, graph.Sub(graph.Add(last, beyond), places))
