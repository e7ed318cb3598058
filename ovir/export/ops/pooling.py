"""MaxPool and AvgPool."""

from __future__ import annotations

from math import prod

from ovir.core.element_types import ElementType, f32, f64, i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sliding_windows import PoolWindows
from ovir.kernels.precision import lowest_finite
from ovir.ops import pooling as ops

_NAN = "NaN wins or loses depending on its place in a window"


@exports(ops.MaxPool1, to="MaxPool", limits=_NAN)
def max_pool(graph: Graph, op: ops.MaxPoolBase, data: Tensor) -> Tensor:
    """Export as MaxPool; 64-bit integers as Max of the taps."""
    windows = PoolWindows(graph, op, data)
    pooled = _pooled_as(data.element_type)
    held = graph.cast(data, pooled)
    if pooled != i64:
        return _pooled(graph, windows, held)[0]
    around = windows.around(held, _lowest(graph, held))
    return graph.cast(windows.cut(windows.combined(around, "Max"), data), data.element_type)


@exports(ops.MaxPool8, ops.MaxPool14, to="MaxPool", limits=_NAN)
def max_pool_with_indices(graph: Graph, op: ops.MaxPool8, data: Tensor) -> list[Tensor]:
    """Export as MaxPool; indices in explicitly padded data are converted."""
    windows = PoolWindows(graph, op, data)
    pooled = _pooled_as(data.element_type)
    if pooled == i64:
        values = max_pool(graph, op, data)
        _, places = _pooled(graph, windows, graph.cast(data, f64))
    else:
        values, places = _pooled(graph, windows, graph.cast(data, pooled))
    if not windows.are_plain:
        places = _without_padding(graph, windows, data, places)
    # [N, C, 1, ...] positions of the first elements of the planes, where nothing is above the lowest number
    shape = graph.Concat(graph.shape_of(data, 0, 2), [1] * (graph.rank(data) - 2), axis=0)
    numbers = graph.positions_below(graph.ReduceProd(shape, keepdims=0))
    firsts = graph.Reshape(graph.Mul(numbers, _size_from(graph, data, 2)), shape)
    places = graph.Where(graph.Greater(values, _lowest(graph, values)), places, firsts)
    if axis := op.normalize_axis(op.axis, graph.rank(data)):
        places = graph.Mod(places, _size_from(graph, data, axis))
    return [values, places]


def _pooled(graph: Graph, windows: PoolWindows, data: Tensor) -> list[Tensor]:
    around = data if windows.are_plain else windows.around(data, _lowest(graph, data))
    found = graph.node("MaxPool", around, outputs=2, **windows.attributes())
    return [windows.cut(tensor, data) for tensor in found]


def _pooled_as(element_type: ElementType) -> ElementType:
    """Return the type in which data is pooled: one that MaxPool takes, or i64, which it does not take."""
    if not element_type.is_integral or element_type.bits <= 8:
        return element_type
    return {16: f32, 32: f64}.get(element_type.bits, i64)


def _lowest(graph: Graph, data: Tensor) -> Tensor:
    return graph.number(lowest_finite(data.element_type.to_dtype()), data.element_type)


def _without_padding(graph: Graph, windows: PoolWindows, data: Tensor, places: Tensor) -> Tensor:
    """Return positions in data for positions in data with its padding."""
    axes = len(windows.kernel)
    around = graph.Shape(windows.around(data), start=2)
    sizes = graph.Shape(data, start=2)
    less, _ = windows.amounts
    found, rest = None, places
    scale: Tensor = graph.constant(1)
    for axis in reversed(range(axes)):
        index = graph.constant(axis)
        size = graph.Gather(around, index)
        at = graph.Mul(graph.Sub(graph.Mod(rest, size), graph.Gather(less, index)), scale)
        found = at if found is None else graph.Add(found, at)
        rest = graph.Div(rest, size)
        scale = graph.Mul(scale, graph.Gather(sizes, index))
    assert found is not None
    return graph.Add(found, graph.Mul(rest, scale))


def _size_from(graph: Graph, data: Tensor, axis: int) -> Tensor:
    return graph.ReduceProd(graph.shape_of(data, axis), keepdims=0)


# --------------------------------------------------------------------------- AvgPool


@exports(ops.AvgPool1, ops.AvgPool14, ops.AvgPool16, to="AveragePool")
def average_pool(graph: Graph, op: ops.AvgPoolBase, data: Tensor) -> Tensor:
    """Export as AveragePool, after a Pad if pads are larger than the kernel; integers and f64 as sums of the taps."""
    windows = PoolWindows(graph, op, data)
    own = data.element_type
    has_pads = windows.given is None or any(map(any, windows.given))
    covers_pads = not op.exclude_pad and has_pads
    attributes = windows.attributes()
    if own.is_integral or own == f64 or ("dilations" in attributes and graph.opset < 19):
        return windows.cut(_means(graph, windows, data, covers_pads), data)
    if not windows.are_plain:
        means = graph.AveragePool(windows.around(data), **attributes)
        if not covers_pads:
            shares = graph.AveragePool(windows.around(_ones(graph, data, own)), **attributes)
            means = graph.Div(means, graph.Max(shares, graph.number(1 / prod(windows.kernel), own)))
        return windows.cut(means, data)
    return windows.cut(graph.AveragePool(data, count_include_pad=int(covers_pads), **attributes), data)


def _means(graph: Graph, windows: PoolWindows, data: Tensor, covers_pads: bool) -> Tensor:
    own = data.element_type
    held = i64 if own.is_integral else data.real_type
    sums = windows.combined(windows.around(graph.cast(data, held)), "Add")
    real = f64 if own.is_integral else held
    if covers_pads:
        counts = graph.constant(prod(windows.kernel))
    else:  # at least 1
        counts = graph.Max(windows.combined(windows.around(_ones(graph, data, i64)), "Add"), 1)
    means = graph.Div(graph.cast(sums, real), graph.cast(counts, real))
    return graph.cast(graph.Round(means), i64) if own.is_integral else means


def _ones(graph: Graph, data: Tensor, element_type: ElementType) -> Tensor:
    """Return ones of the sizes of data [N, C, *spatial], as [1, 1, *spatial]."""
    shape = graph.Concat(graph.constant([1, 1]), graph.Shape(data, start=2), axis=0)
    return graph.Expand(graph.number(1, element_type), shape)
