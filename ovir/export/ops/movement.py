"""Concat, Split, VariadicSplit and Pad."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.core.element_types import string
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.movement import Concat, Pad1, Pad12, Split, VariadicSplit


@exports(Concat, to="Concat")
def concat(graph: Graph, op: Concat, *inputs: Tensor) -> Tensor:
    return graph.Concat(*inputs, axis=op.axis)


# --------------------------------------------------------------------------- Split and VariadicSplit


_TO = "Split; Slice if the axis depends on the run"
_LIMITS = "where the axis depends on the run, elements that the parts leave over are not an error"


@exports(Split, to=_TO, limits=_LIMITS)
def split(graph: Graph, op: Split, data: Tensor, axis: Tensor) -> Sequence[Tensor]:
    count = op.num_splits
    if axis.constant is None:
        whole = graph.Gather(graph.Shape(data), graph.as_list(axis))
        part = graph.Div(whole, count)
        return _slices(graph, data, axis, [part] * count)
    return graph.split_evenly(data, count, int(axis.constant.item()))


@exports(VariadicSplit, to=_TO, limits=_LIMITS)
def variadic_split(graph: Graph, op: VariadicSplit, data: Tensor, axis: Tensor, lengths: Tensor) -> Sequence[Tensor]:
    """Export as Split, with the length that is -1 computed."""
    count = len(op.output_types)
    parts = _lengths(graph, data, axis, lengths)
    if axis.constant is None:
        return _slices(graph, data, axis, graph.items(parts, "split_lengths", count))
    return graph.node("Split", data, parts, outputs=count, axis=int(axis.constant.item()))


def _lengths(graph: Graph, data: Tensor, axis: Tensor, lengths: Tensor) -> Tensor:
    """Return the lengths with -1 replaced by the rest."""
    given = graph.as_list(lengths)
    if given.constant is not None and -1 not in given.constant:
        return given
    if axis.constant is None or data.rank is None:
        whole = graph.Gather(graph.Shape(data), graph.as_list(axis))
    else:
        whole = graph.size_of(data, int(axis.constant.item()) % data.rank)
    rest = graph.Sub(whole, graph.Add(graph.ReduceSum(given, [0]), 1))
    return graph.shaped(graph.Where(graph.Less(given, 0), rest, given), given.shape)


def _slices(graph: Graph, data: Tensor, axis: Tensor, lengths: Sequence[Tensor]) -> list[Tensor]:
    """Return parts along an axis that the run chooses."""
    along = graph.as_list(axis)
    parts = []
    begin = graph.constant([0])
    for length in lengths:
        end = graph.Add(begin, length)
        parts.append(graph.Slice(data, begin, end, along))
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
    value = graph.as_scalar(pad_value) if pad_value is not None and op.pad_mode == "constant" else None
    if data.element_type == string or op.pad_mode == "symmetric" or _removes_more(op, data, pads_begin, pads_end):
        begins, ends = graph.items(pads_begin, "pads_begin", data.rank), graph.items(pads_end, "pads_end", data.rank)
        if value is None:
            value = graph.number(0, data.element_type)
        sizes = graph.sizes_of(data)
        for axis, (size, begin, end) in enumerate(zip(sizes, begins, ends, strict=True)):
            if begin.number == end.number == 0:
                continue
            length = graph.Max(graph.Add(graph.Add(size, begin), end), 0)
            steps = graph.positions_below(length)
            places = _places(graph, op.pad_mode, graph.Sub(steps, begin), size)
            if op.pad_mode == "constant":
                slab = [graph.constant([1]) if i == axis else graph.size_of(data, i) for i in range(len(sizes))]
                data = graph.Concat(data, graph.Expand(value, graph.vector(slab)), axis=axis)
            data = graph.Gather(data, places, axis=axis)
        return data
    pads = graph.vector([graph.as_list(pads_begin), graph.as_list(pads_end)])
    return graph.Pad(data, pads, value, mode=op.pad_mode)


def _removes_more(op: Pad1, data: Tensor, *pads: Tensor) -> bool:
    """Return whether negative pads are known that remove more elements than ONNX allows."""
    for tensor in pads:
        for axis, number in enumerate([] if tensor.constant is None else tensor.constant.tolist()):
            if number < 0 and (op.pad_mode != "constant" or -number > data.shape[axis].lower):
                return True
    return False


def _places(graph: Graph, mode: str, places: Tensor, size: Tensor) -> Tensor:
    """Return the source positions of the elements at some places of the result; ``size`` means the constant."""
    last = graph.Sub(size, 1)
    if mode == "constant":
        inside = graph.And(graph.GreaterOrEqual(places, 0), graph.Less(places, size))
        return graph.Where(inside, places, size)
    if mode == "edge":
        return graph.Min(graph.Max(places, 0), last)
    if mode == "reflect":
        places = graph.Abs(places)
        return graph.Min(places, graph.Sub(graph.Mul(last, 2), places))
    places = graph.Max(places, graph.Sub(-1, places))
    return graph.Min(places, graph.Sub(graph.Add(last, size), places))
