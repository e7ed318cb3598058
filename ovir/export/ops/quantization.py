"""FakeQuantize and FakeConvert."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, f8e4m3, f8e5m2, f16, f32, u8
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.quantization import FakeConvert, FakeQuantize

_CLOSE = 1e-6
"""The part of its range by which the range of 8-bit integers may miss an end of the range."""


@exports(
    FakeQuantize,
    to="QuantizeLinear and DequantizeLinear for 256 levels with an even zero point; else Sub, Div, Round and others",
)
def fake_quantize(graph: Graph, op: FakeQuantize, x: Tensor, *ranges: Tensor) -> Tensor:
    """Export as QuantizeLinear and DequantizeLinear where they round alike, else by the formula."""
    wide = x.real_type
    data = graph.shaped(graph.cast(x, wide), x.shape)
    found = [graph.cast(_aligned(graph, op, x, r), wide) for r in ranges]
    arrays = [np.asarray(r.constant, np.float64) for r in found if r.constant is not None]
    is_ordered = len(arrays) == len(found) and _is_ordered(*arrays)
    result = _as_integers(graph, op, data, arrays) if is_ordered and wide == f32 else None
    if result is None:
        result = (_clipped if is_ordered else _switched)(graph, op, data, *found)
    return result


def _aligned(graph: Graph, op: FakeQuantize, x: Tensor, given: Tensor) -> Tensor:
    """Return a range in a shape that is broadcast to the shape of x."""
    if op.auto_broadcast != "numpy":
        return graph.aligned(op, x, given)
    if x.rank is None or given.rank is None or given.rank <= x.rank:
        return given
    extra = given.rank - x.rank
    if given.constant is not None:
        return graph.constant(given.constant.reshape(given.constant.shape[extra:]), given.element_type)
    return graph.Squeeze(given, list(range(extra)))


def _is_ordered(low: Array, high: Array, first: Array, last: Array) -> bool:
    """Return whether the ends are finite, and in the order in which clipping gives the ends of the output."""
    return bool(np.all((low < high) & np.isfinite(high - low) & np.isfinite(last - first) & (first != last)))


# ----- as integers


def _as_integers(graph: Graph, op: FakeQuantize, x: Tensor, ranges: Sequence[Array]) -> Tensor | None:
    """Return x converted to u8 and back, None where that would round otherwise."""
    if op.levels != 256:
        return None
    low, high, first, last = np.broadcast_arrays(*ranges)
    axis = _only_axis(low.shape, x.rank)
    if axis is None or not (np.array_equal(low, first) and np.array_equal(high, last)):
        return None
    scale = (high - low) / 255
    zero = np.rint(-low / scale)
    # Ties go to the even integer, which is another one if an odd number is added before or after rounding.
    is_exact = np.abs(low + zero * scale) <= _CLOSE * (high - low)
    if not np.all(is_exact & (zero >= 0) & (zero <= 255) & (zero % 2 == 0)):
        return None
    shape = () if scale.size == 1 else (-1,)
    factor, point = scale.reshape(shape).astype(np.float32), zero.reshape(shape).astype(np.uint8)
    integers = graph.QuantizeLinear(x, factor, point, axis=axis, element_type=u8)
    return graph.DequantizeLinear(integers, factor, point, axis=axis, element_type=f32)


def _only_axis(shape: tuple[int, ...], rank: int | None) -> int | None:
    """Return the axis of x along which a range varies, None if there are several."""
    axes = [axis - len(shape) for axis, size in enumerate(shape) if size != 1]
    if not axes:
        return 0
    return axes[0] if len(axes) == 1 and rank is not None else None


# ----- by the formula


def _difference(graph: Graph, a: Tensor, b: Tensor) -> Tensor:
    if a.constant is None or b.constant is None:
        return graph.Sub(a, b)
    return graph.constant(np.subtract(a.constant, b.constant), a.element_type)


def _steps(graph: Graph, op: FakeQuantize, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return the number of the step that is nearest to each element."""
    offset = x if low.constant is not None and not low.constant.any() else graph.Sub(x, low)
    return graph.Round(graph.Mul(graph.Div(offset, _difference(graph, high, low)), op.levels - 1))


def _clipped(
    graph: Graph, op: FakeQuantize, x: Tensor, low: Tensor, high: Tensor, first: Tensor, last: Tensor
) -> Tensor:
    steps = graph.Clip(_steps(graph, op, x, low, high), 0, op.levels - 1)
    height = _difference(graph, last, first)
    assert height.constant is not None
    assert first.constant is not None
    step = graph.constant(height.constant / height.constant.dtype.type(op.levels - 1), height.element_type)
    scaled = graph.Mul(steps, step)
    return graph.Add(scaled, first) if first.constant.any() else scaled


def _switched(
    graph: Graph, op: FakeQuantize, x: Tensor, low: Tensor, high: Tensor, first: Tensor, last: Tensor
) -> Tensor:
    height = _difference(graph, last, first)
    steps = graph.Div(_steps(graph, op, x, low, high), op.levels - 1)
    inside = graph.Add(graph.Mul(steps, height), first)
    above = graph.Where(graph.Greater(x, graph.Max(low, high)), last, inside)
    return graph.Where(graph.LessOrEqual(x, graph.Min(low, high)), first, above)


# ----- 8-bit floats


@exports(FakeConvert, to="Mul, Sub, Cast, Add and Div")
def fake_convert(graph: Graph, op: FakeConvert, data: Tensor, scale: Tensor, shift: Tensor | None = None) -> Tensor:
    """Export as conversions to f16 and to the 8-bit type and back, each step in the type of data."""
    scaled = graph.Mul(data, scale)
    if shift is not None:
        scaled = graph.Sub(scaled, shift)
    x = graph.cast(graph.cast(scaled, f16), f32)
    if op.destination_type == "f8e4m3":
        narrow = _through_f8e4m3(graph, x)
    else:  # adding 0 takes the sign of a zero
        narrow = graph.Add(_through(graph, graph.Clip(x, -57344, 57344), f8e5m2), 0)
    back = graph.cast(narrow, data.element_type)
    return graph.Div(back if shift is None else graph.Add(back, shift), scale)


def _through(graph: Graph, x: Tensor, narrow: ElementType) -> Tensor:
    return graph.cast(graph.cast(x, narrow), f32)


def _through_f8e4m3(graph: Graph, x: Tensor) -> Tensor:
    """Return numbers rounded to 3 fraction bits; below 2^-6 they are truncated to multiples of 2^-9."""
    # NaN becomes 448 here, as a positive NaN does; the sign of a NaN is lost.
    bounded = graph.Clip(graph.Where(graph.IsNaN(x), 448, x), -448, 448)
    size = graph.Abs(bounded)
    rounded = _through(graph, bounded, f8e4m3)
    # Small numbers are rounded to as many bits as others first, which f8e4m3 can hold 256 times as large.
    enlarged = graph.Mul(_through(graph, graph.Mul(graph.Clip(bounded, -0.015625, 0.015625), 256), f8e4m3), 2)
    small = graph.Mul(graph.truncated(enlarged), 2.0**-9)
    small = graph.Where(graph.Less(size, 2.0**-9), 0, small)
    return graph.Where(graph.Less(size, 2.0**-6), small, rounded)
