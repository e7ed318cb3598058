"""Interpolate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from ovir.core.element_types import f32, f64, i8, i32, i64, u8, value_range
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.kernels.resample import Method, Taps, taps
from ovir.ops.interpolate import Interpolate1, Interpolate4, Interpolate4Base, Interpolate11, InterpolateBase

_TO = "Resize; Gather and MatMul for what it lacks"
_LIMITS = "axes must be constant; mode cubic of dynamic sizes needs two spatial axes"


@exports(Interpolate1, to=_TO, limits=_LIMITS)
def interpolate_1(graph: Graph, op: Interpolate1, data: Tensor, target: Tensor) -> Tensor:
    return _Resizing(graph, op, op.method(graph.rank(data)), data, sorted(op.axes), target).export()


@exports(Interpolate4, Interpolate11, to=_TO, limits=_LIMITS)
def interpolate(graph: Graph, op: Interpolate4Base, data: Tensor, *inputs: Tensor) -> Tensor | None:
    """Export as Resize; the decomposition does what Pillow does, but its products take three times as long as few
    taps, which are gathered where the sizes are known."""
    if op.method().is_pillow and not (data.shape.is_static and op.output_shapes[0].is_static):
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
        every = [self._axis(number, place) for place, number in enumerate(axes)]
        self.axes = [axis for axis in every if not axis.stays]
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
        data = self.graph.cast(self.data, f64 if own == f64 or (own.is_integral and own.bits >= 32) else f32)
        if self.method.is_pillow and own.is_integral:
            for axis in reversed(self.axes):
                data = self.graph.rounded_away(self._along(data, axis))
                data = self.graph.shaped(
                    data if own.bits >= 32 else self.graph.Clip(data, *value_range(own)), [-1] * self.rank
                )
            return self.graph.cast(data, own)
        data = self._resized(data) if self._has_resize() and data.element_type == f32 else self._by_axes(data)
        if own.is_integral:
            return self.graph.saturated(self.graph.rounded_away(data) if self.method.mode == "linear" else data, own)
        return self.graph.cast(data, own)

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

    def _along(self, data: Tensor, axis: _Axis) -> Tensor:
        graph = self.graph
        if axis.size is not None and axis.length is not None and axis.scale is not None and self.merges is None:
            graph.require(axis.size and axis.length, "an axis of size 0 cannot be resized")
            found = taps(self.method, axis.size, axis.length, axis.scale)
            return _resampled(graph, data, axis.number, axis.size, found)
        scale = self._scale(axis) if self.op.by_scales else None
        return _resampled_in_run(graph, self.method, data, axis.number, self._length(axis), scale, self.merges)

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


def _resampled_in_run(
    graph: Graph,
    method: Method,
    data: Tensor,
    axis: int,
    new_size: Tensor,
    scale: Tensor | None,
    merges: Tensor | None,
) -> Tensor:
    """Return data with an axis resized to a size that is known only in a run.

    ``merges`` is true where antialias applies; None leaves this to the method.
    """
    size, length = graph.scalar_size_of(data, axis), graph.as_scalar(new_size)
    if scale is None:
        scale = graph.Div(graph.cast(length, f32), graph.cast(size, f32))
    outputs = graph.cast(graph.positions_below(length), f32)
    moved = _positions(graph, method.coordinates, outputs, size, length, scale)
    keeps = graph.Or(graph.Equal(scale, 1.0), graph.Equal(size, length))
    position = graph.Where(keeps, outputs, moved)
    if method.mode == "nearest":
        nearest = graph.cast(_rounded(graph, method.nearest, position, scale), i64)
        inside = graph.Min(graph.Max(nearest, 0), graph.Sub(size, 1))
        return graph.shaped(graph.Gather(data, inside, axis=axis), [-1] * graph.rank(data))
    graph.require(method.mode != "cubic", "mode cubic of dynamic sizes needs data with two spatial axes")
    last = graph.cast(graph.Sub(size, 1), f32)
    # Without antialias, one of the two neighbors is inside, so that its share of the weights is 1.
    inner, slope = graph.Min(graph.Max(position, 0.0), last), graph.constant(np.float32(1))
    if merges is not None:
        position, slope = graph.Where(merges, position, inner), graph.Where(merges, scale, slope)
    elif method.antialias:
        slope = scale
    else:
        position = inner
    distance = graph.Abs(graph.Sub(position, graph.Unsqueeze(graph.cast(graph.positions_below(size), f32), [1])))
    weights = graph.Max(graph.Sub(np.float32(1), graph.Mul(distance, slope)), 0.0)
    total = graph.ReduceSum(weights, [0], keepdims=1)
    shares = graph.Div(weights, graph.Where(graph.Equal(total, 0.0), np.float32(1), total))
    return _multiplied(graph, data, axis, graph.cast(shares, data.element_type))


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
    made = graph.MatMul(graph.Transpose(data, perm=order), matrix)
    return graph.shaped(graph.Transpose(made, perm=back), [-1] * rank)


# --------------------------------------------------------------------------- sizes that are known in a run


def _positions(graph: Graph, mode: str, x: Tensor, size: Tensor, length: Tensor, scale: Tensor) -> Tensor:
    half = np.float32(0.5)
    if mode == "asymmetric":
        return graph.Div(x, scale)
    if mode == "tf_half_pixel_for_nn":
        return graph.Div(graph.Add(x, half), scale)
    if mode == "align_corners":
        steps = graph.cast(graph.Max(graph.Sub(length, 1), 1), f32)
        return graph.Div(graph.Mul(x, graph.cast(graph.Sub(size, 1), f32)), steps)
    found = graph.Sub(graph.Div(graph.Add(x, half), scale), half)
    return graph.Where(graph.Equal(length, 1), x, found) if mode == "pytorch_half_pixel" else found


def _rounded(graph: Graph, mode: str, x: Tensor, scale: Tensor) -> Tensor:
    half = np.float32(0.5)
    if mode == "simple":
        return graph.Where(graph.Less(scale, 1.0), graph.Ceil(x), graph.Floor(x))
    if mode == "round_prefer_floor":
        return graph.Ceil(graph.Sub(x, half))
    if mode == "round_prefer_ceil":
        return graph.Floor(graph.Add(x, half))
    return graph.Floor(x) if mode == "floor" else graph.Ceil(x)
