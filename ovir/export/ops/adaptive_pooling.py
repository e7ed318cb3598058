"""AdaptiveAvgPool and AdaptiveMaxPool."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir.core.element_types import ElementType, f64, i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.parts import real_type, reduced
from ovir.export.sizes import positions_below, scalar_size_of, size_of
from ovir.export.sliding_windows import static_sizes
from ovir.ops.adaptive_pooling import AdaptiveAvgPool, AdaptiveMaxPool

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
