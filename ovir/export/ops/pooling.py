"""MaxPool, AvgPool and their adaptive forms."""

from __future__ import annotations

from functools import reduce
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, f32, f64, i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.parts import real_type, reduced
from ovir.export.sizes import positions_below, scalar_size_of, size_of
from ovir.export.sliding_windows import PoolWindows, static_sizes
from ovir.kernels.precision import lowest_finite
from ovir.kernels.windows import Window
from ovir.ops.pooling import (
    AdaptiveAvgPool,
    AdaptiveMaxPool,
    AvgPool1,
    AvgPool14,
    AvgPool16,
    AvgPoolBase,
    MaxPool1,
    MaxPool8,
    MaxPool14,
    MaxPoolBase,
)

_NAN = "NaN wins or loses depending on its place in a window"


@exports(MaxPool1, to="MaxPool", limits=_NAN)
def max_pool(graph: Graph, op: MaxPool1, data: Tensor) -> Tensor:
    """Export as MaxPool; 64-bit integers as Max of the taps."""
    return _values(graph, op, data)


@exports(MaxPool8, MaxPool14, to="MaxPool", limits=_NAN)
def max_pool_with_indices(graph: Graph, op: MaxPool8, data: Tensor) -> list[Tensor]:
    """Export as MaxPool; indices in explicitly padded data are converted."""
    windows = PoolWindows(graph, op, data)
    pooled = _pooled_as(data.element_type)
    if pooled == i64:
        values = _values(graph, op, data)
        _, places = _pooled(graph, windows, graph.cast(data, f64))
    else:
        values, places = _pooled(graph, windows, graph.cast(data, pooled))
    if not windows.are_plain:
        places = _without_padding(graph, windows, data, places)
    places = graph.Where(graph.Greater(values, _lowest(graph, values)), places, _firsts(graph, data))
    if axis := op.normalize_axis(op.axis, graph.rank(data)):
        places = graph.Mod(places, _size_from(graph, data, axis))
    return [graph.cast(values, data.element_type), graph.cast(places, op.index_element_type)]


def _values(graph: Graph, op: MaxPoolBase, data: Tensor) -> Tensor:
    windows = PoolWindows(graph, op, data)
    pooled = _pooled_as(data.element_type)
    held = graph.cast(data, pooled)
    if pooled != i64:
        return graph.cast(_pooled(graph, windows, held)[0], data.element_type)
    around = windows.around(held, _lowest(graph, held))
    return graph.cast(windows.cut(windows.combined(around, "Max"), data), data.element_type)


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
    if windows.pads is None:
        rounding = [stride - 1 if windows.op.rounding_type == "ceil" else 0 for stride in windows.strides]
        less = graph.Sub(graph.Sub(around, sizes), rounding)
        less = graph.Div(graph.Add(less, [int(windows.op.auto_pad == "same_lower")] * axes), [2] * axes)
    else:
        less = graph.constant([begin for begin, _ in windows.pads])
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


def _firsts(graph: Graph, data: Tensor) -> Tensor:
    """Return the position of the first element of each plane of data, [N, C, 1, ...]."""
    shape = graph.Concat(graph.Shape(data, start=0, end=2), graph.constant([1] * (graph.rank(data) - 2)), axis=0)
    planes = graph.ReduceProd(shape, keepdims=0)
    numbers = positions_below(graph, planes)
    return graph.Reshape(graph.Mul(numbers, _size_from(graph, data, 2)), shape)


def _size_from(graph: Graph, data: Tensor, axis: int) -> Tensor:
    if data.shape.slice(axis).is_static:
        return graph.constant(prod(data.shape.slice(axis).to_tuple()))
    return graph.ReduceProd(graph.Shape(data, start=axis), keepdims=0)


# --------------------------------------------------------------------------- AvgPool


@exports(AvgPool1, AvgPool14, AvgPool16, to="AveragePool")
def average_pool(graph: Graph, op: AvgPoolBase, data: Tensor) -> Tensor:
    """Export as AveragePool; integers, f64 and pads that are larger than the kernel as sums of the taps."""
    windows = PoolWindows(graph, op, data)
    own = data.element_type
    has_pads = windows.given is None or any(map(any, windows.given))
    covers_pads = not op.exclude_pad and has_pads
    attributes = windows.attributes()
    is_exact = own.is_integral or own == f64 or not windows.are_plain
    if is_exact or ("dilations" in attributes and graph.opset < 19):
        return windows.cut(_means(graph, windows, data, covers_pads), data)
    return windows.cut(graph.AveragePool(data, count_include_pad=int(covers_pads), **attributes), data)


def _means(graph: Graph, windows: PoolWindows, data: Tensor, covers_pads: bool) -> Tensor:
    own = data.element_type
    held = i64 if own.is_integral else real_type(data)
    sums = windows.combined(windows.around(graph.cast(data, held)), "Add")
    real = f64 if own.is_integral else held
    counts = _counts(graph, windows, data, covers_pads)
    means = graph.Div(graph.cast(sums, real), graph.cast(counts, real))
    return graph.cast(graph.cast(graph.Round(means), i64) if own.is_integral else means, own)


def _counts(graph: Graph, windows: PoolWindows, data: Tensor, covers_pads: bool) -> Tensor:
    """Return the number of elements that the mean of each window covers, at least 1."""
    if covers_pads:
        return graph.constant(prod(windows.kernel))
    if windows.sizes is not None and windows.pads is not None:
        axes = zip(windows.sizes, windows.kernel, windows.strides, windows.dilations, windows.pads, strict=True)
        inside: list[Array] = []
        for size, kernel, stride, dilation, (begin, end) in axes:
            window = Window(kernel, stride, dilation, begin, end)
            reached = window.positions((size + begin + end - (kernel - 1) * dilation - 1) // stride + 1)
            inside.append(((reached >= 0) & (reached < size)).sum(axis=1))
        return graph.constant(np.maximum(reduce(np.multiply.outer, inside), 1).astype(np.int64))
    shape = graph.Concat(graph.constant([1, 1]), graph.Shape(data, start=2), axis=0)
    ones = graph.Expand(graph.constant(np.ones((), np.int64)), shape)
    return graph.Max(windows.combined(windows.around(ones), "Add"), 1)


_NOT_FINITE = "NaN and infinities spread over their row if the data does not divide into equal windows"


@exports(AdaptiveAvgPool, to="GlobalAveragePool, AveragePool or MatMul", limits=_NOT_FINITE)
def adaptive_average_pool(graph: Graph, op: AdaptiveAvgPool, data: Tensor, output_shape: Tensor) -> Tensor:
    """Export as the mean of equal windows, else as a product with the share of each element in each window."""
    axes = graph.rank(data) - 2
    if data.element_type != f64:
        if output_shape.constant is not None and (output_shape.constant == 1).all():
            return graph.GlobalAveragePool(data)
        if (kernel := _equal_windows(data, output_shape)) is not None:
            return graph.AveragePool(data, kernel_shape=kernel, strides=kernel)
    held = real_type(data)
    pooled = graph.cast(data, held)
    for axis in range(axes):
        shares = _shares(graph, data, output_shape, axis, held)
        if axis == axes - 1:
            pooled = graph.MatMul(pooled, shares)
            continue
        order = _with_last(axes + 2, 2 + axis)
        pooled = graph.Transpose(graph.MatMul(graph.Transpose(pooled, perm=order), shares), perm=order)
    return graph.cast(pooled, data.element_type)


@exports(AdaptiveMaxPool, to="MaxPool, or Gather, ReduceMax and ArgMax", limits="NaN does not always win")
def adaptive_max_pool(graph: Graph, op: AdaptiveMaxPool, data: Tensor, output_shape: Tensor) -> list[Tensor]:
    """Export as MaxPool of equal windows, else gather all windows and reduce them."""
    axes = graph.rank(data) - 2
    if (kernel := _equal_windows(data, output_shape)) is not None:
        values, places = graph.node("MaxPool", data, outputs=2, kernel_shape=kernel, strides=kernel)
        places = graph.Mod(places, prod(data.shape.slice(2).to_tuple()))
        return [values, graph.cast(places, op.index_element_type)]
    taps = [_taps(graph, data, output_shape, axis) for axis in range(axes)]
    # [N, C, *spatial] becomes [N, C, windows, taps, windows, taps, ...].
    gathered = data
    for axis, tap in enumerate(taps):
        gathered = graph.Gather(gathered, tap, axis=2 + 2 * axis)
    windows = [0, 1, *range(2, 2 + 2 * axes, 2)]
    gathered = graph.Transpose(gathered, perm=[*windows, *range(3, 3 + 2 * axes, 2)])
    flat = graph.Reshape(gathered, graph.Concat(graph.Shape(gathered, end=2 + axes), graph.constant([-1]), axis=0))
    first = graph.ArgMax(flat, axis=-1, keepdims=0)
    places, scale, rest = graph.constant(0), graph.constant(1), first
    for axis in reversed(range(axes)):
        count = scalar_size_of(graph, taps[axis], 1)
        chosen = _position(graph, taps[axis], graph.Mod(rest, count), axes - 1 - axis)
        places = graph.Add(places, graph.Mul(chosen, scale))
        rest = graph.Div(rest, count)
        scale = graph.Mul(scale, scalar_size_of(graph, data, 2 + axis))
    values = reduced(graph, "ReduceMax", flat, [-1], keep=False)
    return [values, graph.cast(places, op.index_element_type)]


def _equal_windows(data: Tensor, output_shape: Tensor) -> list[int] | None:
    """Return the size of the windows if they divide the data evenly."""
    sizes = static_sizes(data.shape.slice(2))
    if sizes is None or output_shape.constant is None:
        return None
    counts = [int(count) for count in output_shape.constant]
    fit = all(count and size and size % count == 0 for size, count in zip(sizes, counts, strict=True))
    return [size // count for size, count in zip(sizes, counts, strict=True)] if fit else None


def _ends(graph: Graph, data: Tensor, output_shape: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Return the first element of each window, and the element after its last one."""
    dim = data.shape[2 + axis]
    if dim.is_static and output_shape.constant is not None:
        count = int(output_shape.constant[axis])
        numbers = np.arange(count + 1) * dim.length
        return graph.constant(numbers[:-1] // max(count, 1)), graph.constant(-(-numbers[1:] // max(count, 1)))
    wanted = graph.cast(graph.Gather(output_shape, graph.constant(axis)), i64)
    size = scalar_size_of(graph, data, 2 + axis)
    starts = graph.Mul(positions_below(graph, wanted), size)
    last = graph.Add(starts, graph.Add(size, graph.Sub(wanted, 1)))
    return graph.Div(starts, wanted), graph.Div(last, wanted)


def _shares(graph: Graph, data: Tensor, output_shape: Tensor, axis: int, element_type: ElementType) -> Tensor:
    """Return the part that each element has in each window, [elements, windows]."""
    starts, stops = _ends(graph, data, output_shape, axis)
    if starts.constant is not None and stops.constant is not None:
        position = np.arange(data.shape[2 + axis].length)[:, np.newaxis]
        inside = (position >= starts.constant) & (position < stops.constant)
        shares = inside / np.maximum(stops.constant - starts.constant, 1)
        return graph.constant(shares.astype(element_type.to_dtype()))
    positions = positions_below(graph, size_of(graph, data, 2 + axis))
    column = graph.Unsqueeze(positions, [1])
    within = graph.And(graph.GreaterOrEqual(column, starts), graph.Less(column, stops))
    return graph.Div(graph.cast(within, element_type), graph.cast(graph.Sub(stops, starts), element_type))


def _taps(graph: Graph, data: Tensor, output_shape: Tensor, axis: int) -> Tensor:
    """Return the elements of each window, [windows, taps]; short windows repeat their last element."""
    starts, stops = _ends(graph, data, output_shape, axis)
    if starts.constant is not None and stops.constant is not None:
        counts = np.arange((stops.constant - starts.constant).max(initial=1))
        return graph.constant(np.minimum(np.add.outer(starts.constant, counts), stops.constant[:, np.newaxis] - 1))
    # A window covers at most so many elements.
    most = graph.Max(graph.Sub(stops, starts), graph.constant([1]))
    longest = graph.ReduceMax(most, keepdims=0)
    numbers = positions_below(graph, longest)
    reached = graph.Add(graph.Unsqueeze(starts, [1]), numbers)
    return graph.Min(reached, graph.Unsqueeze(graph.Sub(stops, 1), [1]))


def _position(graph: Graph, taps: Tensor, chosen: Tensor, after: int) -> Tensor:
    """Return the element that the chosen tap of each window reads; ``after`` axes of windows follow this one."""
    numbers = positions_below(graph, size_of(graph, taps, 0))
    count = scalar_size_of(graph, taps, 1)
    row = graph.Reshape(graph.Mul(numbers, count), [-1] + [1] * after)
    return graph.Gather(graph.Reshape(taps, [-1]), graph.Add(chosen, row))


def _with_last(rank: int, axis: int) -> list[int]:
    """Return the order of axes in which one is exchanged with the last one."""
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    return order
