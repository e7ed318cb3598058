"""Interpolate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ovir.core.element_types import f32, f64, i8, i32, i64, u8
from ovir.export.exporters import exports
from ovir.export.loops import LoopStep, loop
from ovir.export.onnx_graph import Graph, Tensor
from ovir.kernels.precision import integer_range
from ovir.kernels.resample import Method, Taps, taps
from ovir.ops.interpolate import Interpolate1, Interpolate4, Interpolate4Base, Interpolate11, InterpolateBase

_TO = "Resize; Gather and MatMul for what it lacks; integers: Gather, Mul and Add"
_LIMITS = "axes must be constant; mode cubic of real numbers and dynamic sizes needs two spatial axes"


@exports(Interpolate1, to=_TO, limits=_LIMITS)
def interpolate_1(graph: Graph, op: Interpolate1, data: Tensor, target: Tensor) -> Tensor:
    return _Resizing(graph, op, op.method(graph.rank(data)), data, sorted(op.axes), target).export()


@exports(Interpolate4, Interpolate11, to=_TO, limits=_LIMITS)
def interpolate(graph: Graph, op: Interpolate4Base, data: Tensor, *inputs: Tensor) -> Tensor | None:
    """Export as Resize; the decomposition does what Pillow does, but its products take three times as long as few
    taps, which are gathered where the sizes are known, and round integers in another way."""
    is_static = data.shape.is_static and op.output_shapes[0].is_static
    if op.method().is_pillow and not is_static and not data.element_type.is_integral:
        return None
    *targets, axes = inputs if len(inputs) > (2 if isinstance(op, Interpolate4) else 1) else (*inputs, None)
    target = targets[-1 if op.by_scales else 0]
    assert target is not None
    return _Resizing(graph, op, op.method(), data, _axes(graph, data, axes), target).export()


def _axes(graph: Graph, data: Tensor, axes: Tensor | None) -> list[int]:
    if axes is None:
        return list(range(graph.rank(data)))
    return [int(axis) for axis in graph.known(axes, "axes")]


@dataclass
class _Axis:
    """An axis to be resized; values that only the run shows are None."""

    number: int
    place: int
    """The index in ``target``."""
    size: int | None
    length: int | None
    scale: float | None
    stays: bool
    """Whether the scale is known to be 1, so that the elements stay, whatever the size is."""


_COORDINATES = frozenset(("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"))
_PLAIN = frozenset((f32, i8, i32, u8))
"""The types for which onnxruntime has Resize."""


class _Resizing:
    """Adds the nodes that resize some axes of data."""

    def __init__(
        self, graph: Graph, op: InterpolateBase, method: Method, data: Tensor, axes: Sequence[int], target: Tensor
    ) -> None:
        self.graph, self.op, self.target = graph, op, target
        self.rank = graph.rank(data)
        self.element_type = data.element_type
        begin, end = op.pads(self.rank, axes)
        dims = [dim + (b + e) for dim, b, e in zip(data.shape, begin, end, strict=True)]
        if any((*begin, *end)):
            data = graph.shaped(graph.Pad(data, [*begin, *end]), dims)
        self.data = data
        self.every = [self._axis(number, place) for place, number in enumerate(axes)]
        self.axes = [axis for axis in self.every if not axis.stays]
        shrinks = any(axis.scale is not None and axis.scale < 1 for axis in self.axes)
        may_shrink = shrinks or any(axis.scale is None for axis in self.axes)
        antialias = method.mode == "linear" and method.antialias and may_shrink
        self.method = replace(method, antialias=antialias)
        self.merges = self._merges() if antialias and not shrinks else None
        """Whether antialias applies, if that is known only in a run."""
        if not antialias:
            self.axes = [axis for axis in self.axes if axis.size is None or axis.size != axis.length]

    def export(self) -> Tensor:
        """Return the resized data."""
        if not self.axes:
            return self.graph.Identity(self.data)
        if self.method.mode == "nearest":
            return self._resized(self.data) if self._has_resize() else self._by_axes(self.data)
        own = self.element_type
        if own.is_integral:
            return self._of_integers()
        data = self.graph.cast(self.data, f64 if own == f64 else f32)
        data = self._resized(data) if self._has_resize() and data.element_type == f32 else self._by_axes(data)
        return self.graph.cast(data, own)

    def _of_integers(self) -> Tensor:
        """Return resized integers. The same sums as in the kernel, in the same order, decide how they are rounded."""
        graph, own = self.graph, self.element_type
        if self.method.is_pillow:
            data = graph.cast(self.data, f64)
            for axis in reversed(self.axes):
                total, _ = _summed(graph, data, [self._taps(axis)])
                data = graph.Clip(graph.rounded_away(total), *integer_range(own.to_dtype()))
                data = graph.shaped(data, [-1] * self.rank)
            return graph.saturated(data, own)
        # An axis that stays splits elements in two where linear_onnx has two neighbors.
        axes = self.every if self.method.mode == "linear_onnx" else self.axes
        data = graph.cast(self.data, f64 if own.bits >= 32 else f32)
        total, weights = _summed(graph, data, [self._taps(axis) for axis in axes])
        if self.method.mode == "linear":
            total = graph.rounded_away(graph.Div(total, graph.Where(graph.Equal(weights, 0), 1, weights)))
        return graph.saturated(total, own)

    # ----- what is known

    def _axis(self, number: int, place: int) -> _Axis:
        dims = self.data.shape[number], self.op.output_shapes[0][number]
        size, length = (dim.length if dim.is_static else None for dim in dims)
        scale = None
        if self.op.by_scales:
            scale = None if self.target.constant is None else float(np.float32(self.target.constant[place]))
        elif size is not None and length is not None:
            scale = float(np.float32(length) / np.float32(max(size, 1)))
        return _Axis(number, place, size, length, scale, stays=scale == 1)

    def _has_resize(self) -> bool:
        """Return whether Resize does the same, and onnxruntime has a kernel for it."""
        method, mode = self.method, self.method.mode
        if method.coordinates not in _COORDINATES or method.antialias or method.is_pillow or not self._keeps_scales():
            return False
        resized = {axis.number - self.rank for axis in self.axes}
        if mode == "nearest":
            scales = [axis.scale for axis in self.axes]
            is_simple = method.nearest == "simple"
            one_way = None not in scales and len({scale < 1 for scale in scales if scale is not None}) == 1
            fits = self.element_type in _PLAIN or (self.element_type.is_real and self.element_type != f64)
            return fits and (one_way or not is_simple)
        if mode == "cubic":
            if self.graph.needs_kernels:
                return False  # the kernel of onnxruntime computes one element at a time
            return self.rank in (2, 4) and resized <= {-1, -2}
        return (self.rank in (2, 4) and resized <= {-1, -2}) or (self.rank in (3, 5) and resized <= {-1, -2, -3})

    def _keeps_scales(self) -> bool:
        """Return whether ONNX computes the sizes from the scales."""
        if not self.op.by_scales:
            return True
        for axis in self.axes:
            if axis.scale is None:
                return False
            if axis.size is None:
                if axis.scale * 1024 % 1:
                    return False  # near whole sizes, OpenVINO rounds up
            elif int(np.floor(np.float32(axis.size) * np.float32(axis.scale))) != axis.length:
                return False
        return True

    # ----- nodes

    def _resized(self, data: Tensor) -> Tensor:
        graph, method = self.graph, self.method
        nearest = None
        if method.mode == "nearest":
            shrinks = self.axes[0].scale is not None and self.axes[0].scale < 1
            nearest = {"simple": "ceil" if shrinks else "floor"}.get(method.nearest, method.nearest)
        attributes: dict[str, Any] = {
            "mode": method.mode.removesuffix("_onnx"),
            "coordinate_transformation_mode": method.coordinates,
            "nearest_mode": nearest,
            "cubic_coeff_a": method.cube_coeff if method.mode == "cubic" else None,
        }
        if self.op.by_scales:
            scales = np.ones(self.rank, np.float32)
            for axis in self.axes:
                scales[axis.number] = axis.scale
            return graph.Resize(data, None, graph.constant(scales), **attributes)
        sizes, numbers = self._sizes()
        if numbers is not None:
            attributes["axes"] = numbers
        return graph.Resize(data, None, None, sizes, **attributes)

    def _sizes(self) -> tuple[Tensor, list[int] | None]:
        """Return the new sizes of all axes, or of those that are listed."""
        graph = self.graph
        lengths = {axis.number: axis.length for axis in self.axes}
        every = [lengths.get(a, dim.length if dim.is_static else None) for a, dim in enumerate(self.data.shape)]
        if None not in every:
            return graph.constant(np.array(every, np.int64)), None
        numbers = sorted(lengths)
        chosen = graph.vector([self._length(axis) for axis in sorted(self.axes, key=lambda axis: axis.number)])
        if graph.opset >= 18:
            return chosen, numbers
        return graph.ScatterElements(graph.Shape(self.data), numbers, chosen), None

    def _length(self, axis: _Axis) -> Tensor:
        """Return the new size of an axis."""
        graph = self.graph
        if axis.length is not None:
            return graph.constant([axis.length])
        target = graph.Gather(self.target, [axis.place])
        if not self.op.by_scales:
            return graph.cast(target, i64)
        size = graph.cast(graph.Gather(graph.Shape(self.data), [axis.number]), f32)
        return graph.cast(graph.Floor(graph.Mul(size, graph.Add(graph.cast(target, f32), np.float32(1e-6)))), i64)

    def _by_axes(self, data: Tensor) -> Tensor:
        for axis in self.axes:
            data = self._along(data, axis)
        return data

    def _known_taps(self, axis: _Axis) -> Taps | None:
        """Return the taps of an axis, None if only a run shows them."""
        if axis.size is None or axis.length is None or axis.scale is None or self.merges is not None:
            return None
        self.graph.require(axis.size or not axis.length, "an axis of size 0 cannot be resized")
        return taps(self.method, max(axis.size, 1), axis.length, axis.scale)

    def _in_run(self, axis: _Axis) -> tuple[Tensor, Tensor, Tensor]:
        """Return the size of an axis, its scale, and the input position of each output element, which stays if the size
        does."""
        graph = self.graph
        size, length = graph.scalar_size_of(self.data, axis.number), graph.as_scalar(self._length(axis))
        scale = self._scale(axis) if self.op.by_scales else graph.Div(graph.cast(length, f32), graph.cast(size, f32))
        x = graph.cast(graph.positions_below(length), f32)
        keeps = graph.Or(graph.Equal(scale, 1.0), graph.Equal(size, length))
        return size, scale, graph.Where(keeps, x, _moved(graph, self.method.coordinates, x, size, length, scale))

    def _along(self, data: Tensor, axis: _Axis) -> Tensor:
        graph, method, place = self.graph, self.method, axis.number
        if (known := self._known_taps(axis)) is not None:
            return _resampled(graph, data, place, axis.size or 1, known)
        size, scale, position = self._in_run(axis)
        if method.mode == "nearest":
            nearest = graph.cast(_rounded(graph, method.nearest, position, scale), i64)
            return graph.shaped(graph.Gather(data, _inside(graph, nearest, size), axis=place), [-1] * self.rank)
        graph.require(method.mode != "cubic", "mode cubic of dynamic sizes needs data with two spatial axes")
        last = graph.cast(graph.Sub(size, 1), f32)
        # Without antialias, one of the two neighbors is inside, so that its share of the weights is 1.
        inner, slope = graph.Min(graph.Max(position, 0.0), last), graph.constant(np.float32(1))
        if self.merges is not None:
            position, slope = graph.Where(self.merges, position, inner), graph.Where(self.merges, scale, slope)
        elif method.antialias:
            slope = scale
        else:
            position = inner
        distance = graph.Abs(graph.Sub(position, graph.cast(_below(graph, size), f32)))
        weights = graph.Max(graph.Sub(np.float32(1), graph.Mul(distance, slope)), 0.0)
        total = graph.ReduceSum(weights, [0])
        shares = graph.Div(weights, graph.Where(graph.Equal(total, 0.0), np.float32(1), total))
        return _multiplied(graph, data, place, graph.cast(shares, data.element_type))

    def _taps(self, axis: _Axis) -> _Taps:
        """Return the taps of an axis as tensors, also of one whose sizes only a run shows."""
        graph, method = self.graph, self.method
        if (known := self._known_taps(axis)) is not None:
            weight = known.unit if method.is_pillow else known.weight
            gain = None if known.gain == 1 else graph.constant(np.float32(known.gain))
            return _Taps(axis.number, graph.constant(known.index), graph.constant(weight), gain, len(known.index))
        if method.is_pillow:
            size, length = graph.scalar_size_of(self.data, axis.number), graph.as_scalar(self._length(axis))
            return _pillow_taps(graph, method, axis.number, size, length)
        size, scale, position = self._in_run(axis)
        if method.mode == "linear_onnx":
            return _neighbors(graph, axis.number, position, size)
        if method.mode == "cubic":
            return _cubic_taps(graph, axis.number, position, size, np.float32(method.cube_coeff))
        if self.merges is not None:
            scale = graph.Where(self.merges, scale, np.float32(1))
        return _triangle(graph, axis.number, position, size, scale if method.antialias else None)

    def _scale(self, axis: _Axis) -> Tensor:
        return self.graph.cast(self.graph.Gather(self.target, self.graph.constant(axis.place)), f32)

    def _merges(self) -> Tensor:
        """Return whether any axis shrinks."""
        graph = self.graph
        if self.op.by_scales:
            shrinks = [graph.Less(self._scale(axis), 1.0) for axis in self.axes]
        else:
            sizes = graph.Shape(self.data)
            shrinks = [graph.Less(self._length(axis), graph.Gather(sizes, [axis.number])) for axis in self.axes]
        return reduce(graph.Or, shrinks)


# --------------------------------------------------------------------------- without Resize

_FEW = 4
"""The number of taps up to which elements are gathered, tap by tap."""


def _resampled(graph: Graph, data: Tensor, axis: int, size: int, taps: Taps) -> Tensor:
    """Return data with an axis of a size resized by taps that are known."""
    if len(taps.index) > _FEW:
        matrix = np.zeros((size, taps.length), taps.unit.dtype)
        np.add.at(matrix, (taps.index, np.arange(taps.length)), taps.unit)
        return _multiplied(graph, data, axis, graph.constant(matrix))
    rank = graph.rank(data)
    total = None
    for index, weight in zip(taps.index, taps.unit, strict=True):
        part = graph.Gather(data, graph.constant(index.astype(np.int64)), axis=axis)
        if not (weight == 1).all():
            along = weight.reshape(-1, *(1,) * (rank - axis - 1)).astype(data.element_type.to_dtype())
            part = graph.Mul(part, graph.constant(along, data.element_type))
        total = part if total is None else graph.Add(total, part)
    assert total is not None
    return graph.shaped(total, [-1] * rank)


def _multiplied(graph: Graph, data: Tensor, axis: int, matrix: Tensor) -> Tensor:
    """Return data with an axis multiplied by a matrix [elements, outputs]."""
    rank = graph.rank(data)
    matrix = graph.cast(matrix, data.element_type)
    order = [*(a for a in range(rank) if a != axis), axis]
    back = [order.index(a) for a in range(rank)]
    if axis == rank - 1:
        return graph.shaped(graph.MatMul(data, matrix), [-1] * rank)
    if axis == rank - 2:
        turned = graph.constant(matrix.constant.T.copy()) if matrix.constant is not None else graph.Transpose(matrix)
        return graph.shaped(graph.MatMul(turned, data), [-1] * rank)
    product = graph.MatMul(graph.Transpose(data, perm=order), matrix)
    return graph.shaped(graph.Transpose(product, perm=back), [-1] * rank)


# --------------------------------------------------------------------------- sizes that are known in a run


def _moved(graph: Graph, mode: str, x: Tensor, size: Tensor, length: Tensor, scale: Tensor) -> Tensor:
    half = np.float32(0.5)
    if mode == "asymmetric":
        return graph.Div(x, scale)
    if mode == "tf_half_pixel_for_nn":
        return graph.Div(graph.Add(x, half), scale)
    if mode == "align_corners":
        steps = graph.cast(graph.Max(graph.Sub(length, 1), 1), f32)
        return graph.Div(graph.Mul(x, graph.cast(graph.Sub(size, 1), f32)), steps)
    moved = graph.Sub(graph.Div(graph.Add(x, half), scale), half)
    return graph.Where(graph.Equal(length, 1), x, moved) if mode == "pytorch_half_pixel" else moved


def _rounded(graph: Graph, mode: str, x: Tensor, scale: Tensor) -> Tensor:
    half = np.float32(0.5)
    if mode == "simple":
        return graph.Where(graph.Less(scale, 1.0), graph.Ceil(x), graph.Floor(x))
    if mode == "round_prefer_floor":
        return graph.Ceil(graph.Sub(x, half))
    if mode == "round_prefer_ceil":
        return graph.Floor(graph.Add(x, half))
    return graph.Floor(x) if mode == "floor" else graph.Ceil(x)


# --------------------------------------------------------------------------- integers

_MOST_TERMS = 32
"""The number of products that are added up without a loop."""


@dataclass
class _Taps:
    """The taps of an axis as tensors; see ``ovir.kernels.resample.Taps``."""

    axis: int
    index: Tensor
    """i64 [taps, outputs]."""
    weight: Tensor
    """f32 or f64 [taps, outputs]."""
    gain: Tensor | None
    count: int | None
    """The number of taps, None if only a run shows it."""


def _summed(graph: Graph, data: Tensor, axes: Sequence[_Taps]) -> tuple[Tensor, Tensor]:
    """Return the sum of weight * element over all combinations of taps, and the sum of the weights, in the type of
    data and in the order of the kernel."""
    counts = [taps.count for taps in axes]
    numbers = [count for count in counts if count is not None]
    if len(numbers) == len(counts) and prod(numbers) <= _MOST_TERMS:
        total, weights = _term(graph, data, axes, [graph.constant(0) for _ in axes])
        for chosen in list(product(*map(range, numbers)))[1:]:
            value, weight = _term(graph, data, axes, [graph.constant(number) for number in chosen])
            total, weights = graph.Add(total, value), graph.Add(weights, weight)
        return total, weights
    rank = graph.rank(data)
    sizes = [graph.scalar_size_of(graph.of_rank(taps.index, 2), 0) for taps in axes]

    def step(body: Graph, number: Tensor, sums: Sequence[Tensor]) -> LoopStep:
        chosen: list[Tensor] = []
        for size in reversed(sizes):
            chosen.insert(0, body.Mod(number, size))
            number = body.Div(number, size)
        terms = _term(body, data, axes, chosen)
        return LoopStep([body.shaped(body.Add(*pair), [-1] * rank) for pair in zip(sums, terms, strict=True)])

    zeros = [
        graph.shaped(graph.Mul(term, 0), [-1] * rank)
        for term in _term(graph, data, axes, [graph.constant(0)] * len(axes))
    ]
    total, weights = loop(graph, reduce(graph.Mul, sizes), zeros, step)
    return total, weights


def _term(graph: Graph, data: Tensor, axes: Sequence[_Taps], chosen: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the product of the elements and weights of one tap of each axis, and the product of the weights."""
    rank = graph.rank(data)
    gains = [taps.gain for taps in axes if taps.gain is not None]
    weight = reduce(graph.Mul, gains) if gains else None
    value = data
    for each, number in zip(axes, chosen, strict=True):
        value = graph.Gather(value, graph.Gather(each.index, number, axis=0), axis=each.axis)
        part = graph.Gather(each.weight, number, axis=0)
        part = graph.with_trailing(graph.of_rank(part, 1), rank - each.axis - 1)
        weight = part if weight is None else graph.Mul(weight, part)
    assert weight is not None
    weight = graph.cast(weight, data.element_type)
    return graph.Mul(weight, value), weight


def _below(graph: Graph, count: Tensor) -> Tensor:
    """Return the numbers below a count as a column."""
    return graph.Unsqueeze(graph.positions_below(count), [1])


def _inside(graph: Graph, index: Tensor, size: Tensor) -> Tensor:
    return graph.Min(graph.Max(index, 0), graph.Sub(size, 1))


def _triangle(graph: Graph, axis: int, position: Tensor, size: Tensor, slope: Tensor | None) -> _Taps:
    """Return the taps of mode linear: two neighbors, or with antialias as many as the triangle of a slope covers."""
    first, count = graph.cast(graph.Floor(position), i64), graph.constant(2)
    if slope is not None:
        reach = graph.cast(graph.Ceil(graph.Div(np.float32(1), slope)), i64)
        first, count = graph.Sub(first, reach), graph.Add(graph.Mul(reach, 2), 2)
    index = graph.Add(first, _below(graph, count))
    distance = graph.Sub(position, graph.cast(index, f32))
    if slope is not None:
        distance = graph.Mul(slope, distance)
    weight = graph.Max(graph.Sub(np.float32(1), graph.Abs(distance)), np.float32(0))
    inside = _inside(graph, index, size)
    weight = graph.Where(graph.Equal(index, inside), weight, np.float32(0))
    return _Taps(axis, inside, weight, slope, 2 if slope is None else None)


def _neighbors(graph: Graph, axis: int, position: Tensor, size: Tensor) -> _Taps:
    """Return the taps of mode linear_onnx."""
    position = graph.Min(graph.Max(position, np.float32(0)), graph.cast(graph.Sub(size, 1), f32))
    first = graph.cast(position, i64)
    second = graph.Min(graph.Add(first, 1), graph.Sub(size, 1))
    shares = [graph.Abs(graph.Sub(position, graph.cast(other, f32))) for other in (second, first)]
    index, weight = (
        graph.Concat(*(graph.Unsqueeze(t, [0]) for t in pair), axis=0) for pair in ((first, second), shares)
    )
    return _Taps(axis, index, graph.Where(graph.Equal(first, second), np.float32(0.5), weight), None, 2)


def _cubic_taps(graph: Graph, axis: int, position: Tensor, size: Tensor, a: np.float32) -> _Taps:
    """Return the taps of mode cubic: Keys' kernel over four neighbors."""
    base = graph.Floor(position)
    s = graph.Abs(graph.Sub(position, base))
    one = np.float32(1)
    after = graph.Sub(one, s)
    parts = (
        _far(graph, graph.Add(s, one), a),
        _near(graph, s, a),
        _near(graph, after, a),
        _far(graph, graph.Add(after, one), a),
    )
    weight = graph.Concat(*(graph.Unsqueeze(part, [0]) for part in parts), axis=0)
    index = graph.Add(graph.cast(base, i64), np.arange(-1, 3)[:, np.newaxis])
    return _Taps(axis, _inside(graph, index, size), weight, None, 4)


def _near(graph: Graph, x: Tensor, a: Any) -> Tensor:
    """Return Keys' cubic kernel with parameter a at distances below 1."""
    polynomial = graph.Sub(graph.Mul(x, a + 2), graph.number(a + 3, x.element_type))
    return graph.Add(graph.Mul(graph.Mul(polynomial, x), x), 1)


def _far(graph: Graph, x: Tensor, a: Any) -> Tensor:
    """Return Keys' cubic kernel with parameter a at distances from 1 to 2."""
    polynomial = graph.Add(graph.Mul(graph.Sub(graph.Mul(x, a), 5 * a), x), 8 * a)
    return graph.Sub(graph.Mul(polynomial, x), 4 * a)


def _pillow_taps(graph: Graph, method: Method, axis: int, size: Tensor, length: Tensor) -> _Taps:
    """Return the taps of Pillow's resize filter."""
    a = method.cube_coeff
    scale = graph.Div(graph.cast(size, f64), graph.cast(length, f64))
    stretch = graph.Max(scale, 1.0)
    support = stretch if method.mode == "bilinear_pillow" else graph.Mul(stretch, 2.0)
    center = graph.Mul(graph.Add(graph.cast(graph.positions_below(length), f64), 0.5), scale)
    first = graph.cast(graph.Add(graph.Sub(center, support), 0.5), i64)
    first = graph.Max(first, 0)
    stop = graph.Min(graph.cast(graph.Add(graph.Add(center, support), 0.5), i64), size)
    count = graph.ReduceMax(graph.Concat(graph.Sub(stop, first), [1], axis=0), keepdims=0)
    index = graph.Add(first, _below(graph, count))
    x = graph.Sub(graph.cast(index, f64), center)
    x = graph.Abs(graph.Mul(graph.Add(x, 0.5), graph.Div(np.float64(1), stretch)))
    if method.mode == "bilinear_pillow":
        weight = graph.Max(graph.Sub(np.float64(1), x), 0.0)
    else:
        beyond = graph.Add(graph.Mul(graph.Sub(x, 5), x), 8)
        beyond = graph.Mul(graph.Sub(graph.Mul(beyond, x), 4), a)
        beyond = graph.Where(graph.Less(x, 2), beyond, np.float64(0))
        weight = graph.Where(graph.Less(x, 1), _near(graph, x, a), beyond)
    weight = graph.Where(graph.Less(index, stop), weight, np.float64(0))

    def step(body: Graph, number: Tensor, sums: Sequence[Tensor]) -> LoopStep:
        return LoopStep([body.shaped(body.Add(sums[0], body.Gather(weight, number, axis=0)), [-1])])

    zeros = graph.shaped(graph.Mul(center, 0), [-1])
    (total,) = loop(graph, count, [zeros], step)  # ReduceSum adds in another order
    unit = graph.Div(weight, graph.Where(graph.Equal(total, 0), np.float64(1), total))
    return _Taps(axis, _inside(graph, index, size), unit, None, None)
