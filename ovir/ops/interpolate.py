"""Interpolate: resize some axes of a tensor to given sizes or by given scales.

This file holds the versions and their inference; kernels/resample.py has the formulas of the modes for one axis, and
applies them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape, unknown_sizes
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.kernel_warnings import report
from ovir.kernels.resample import COORDINATES, NEAREST, AxisTaps, Method, resample, taps
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import SMALL, Axis, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.traits import input_names

# Added to a scale before it multiplies a size: 1/3, rounded down to f32, should turn 3 into 1 and not into 0.
_EPSILON = np.float32(1e-6)
# Bounds of scales are computed in f64; an f32 computation of several steps may exceed them by about this factor.
_MARGIN = 2.0**-21


_TABLE = 640
"""Bytes of the indices and weights for each position along an axis."""


class InterpolateBase(Operator):
    """Base of all versions, with the inference from the input that gives the new sizes, and the run."""

    bounded = False
    pads_begin: tuple[int, ...] = attribute(default=(), minimum=0)
    pads_end: tuple[int, ...] = attribute(default=(), minimum=0)

    @property
    def by_scales(self) -> bool:
        """Return whether the target holds scales instead of sizes."""
        return False

    def temporary_bytes(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float:
        """Count the indices and weights of the elements that are combined along each axis."""
        lengths = [dim.lower for tensor in (inputs[0], outputs[0]) for dim in tensor.shape]
        return super().temporary_bytes(inputs, outputs) + _TABLE * sum(lengths)

    def least_sizes(self, inputs: Sequence[TensorType]) -> Mapping[int, int]:
        return dict.fromkeys(self.spatial_axes(inputs), 2)

    def spatial_axes(self, inputs: Sequence[TensorType]) -> Iterable[int]:
        """Return the axes that are resized, without those of batch and channels; none if they are unknown."""
        axes = self.named(inputs).get("axes")
        if axes is None:
            return range(2, inputs[0].shape.rank or 0)
        return [] if axes.constant is None else axes.constant.ravel().tolist()

    def _infer(self, data: TensorType, axes: list[int] | None, target: TensorType, name: str) -> TensorType:
        """Infer the output from the sizes or scales in ``target``, the input called ``name``.

        ``axes`` is None if they are unknown.
        """
        words = "of a numeric type of at least 8 bits"
        self.require_type(input_names(type(self))[0], data.element_type, _is_number, words)
        self.require_rank(name, target.shape, 1)
        rank = data.shape.rank
        if rank is None or axes is None:
            return TensorType(data.element_type, unknown_sizes(rank))
        self._require_axes(axes, rank)
        count = target.shape[0]
        self.require(
            count.contains(len(axes)), "{} must have one element for each of the axes {}, got {}", name, axes, count
        )
        begin, end = self.pads(rank, axes)
        dims = [dim + (b + e) for dim, b, e in zip(data.shape, begin, end, strict=True)]
        if target.constant is not None:
            self._require_target(target.constant, name)
        if target.value is None:
            resized = [UNKNOWN] * len(axes)
        elif self.by_scales:
            bounds = zip(axes, target.value.lower, target.value.upper, strict=True)
            resized = [_scaled_dim(dims[axis], low, high) for axis, low, high in bounds]
        else:
            resized = target.value.dimensions()
        for axis, dim in zip(axes, resized, strict=True):
            dims[axis] = dim
        return TensorType(data.element_type, PartialShape(dims))

    def _require_axes(self, axes: list[int], rank: int) -> None:
        inside = all(0 <= axis < rank for axis in axes)
        message = "axes {} must be in [0, {}], because {} has rank {}"
        self.require(inside, message, axes, rank - 1, input_names(type(self))[0], rank)
        self.require(len(set(axes)) == len(axes), "axes {} are not distinct", axes)

    def _require_target(self, target: Array, name: str) -> None:
        numbers = target.astype(np.float64)
        is_valid = (np.isfinite(numbers) & (numbers > 0)).all() if self.by_scales else (numbers >= 0).all()
        message = "{} must be positive and finite, got {}" if self.by_scales else "{} must not be negative, got {}"
        self.require(is_valid, message, name, target.tolist())

    def pads(self, rank: int, axes: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the zeros before and after each axis; missing pads are 0, and pads past the rank are ignored."""
        begin, end = ([*pads[:rank], *[0] * (rank - len(pads))] for pads in (self.pads_begin, self.pads_end))
        return begin, end

    def _run(self, method: Method, data: Array, axes: list[int], target: Array, name: str) -> Array:
        self._require_axes(axes, data.ndim)
        begin, end = self.pads(data.ndim, axes)
        if any(begin) or any(end):
            data = np.pad(data, list(zip(begin, end, strict=True)))
        method, passes, shape = self.axis_passes(method, data, axes, target, name)
        out = np.empty(shape, data.dtype)
        if not out.size:
            return out
        if not passes:
            return data.reshape(shape).copy()
        resample(method, data, self.ordered(method, data, passes), out)
        return out

    def ordered(self, method: Method, data: Array, passes: AxisTaps) -> AxisTaps:
        """Return the passes over axes in their order, which the fast kernel changes."""
        return passes

    def axis_passes(
        self, method: Method, data: Array, axes: list[int], target: Array, name: str
    ) -> tuple[Method, AxisTaps, list[int]]:
        """Return the method with antialias resolved, the axes to resize with their taps, and the shape of the
        output."""
        shape = list(data.shape)
        self._require_target(target, name)
        if self.by_scales:
            scales = [np.float32(scale) for scale in target]
            lengths = [_scaled_size(shape[axis], scale) for axis, scale in zip(axes, scales, strict=True)]
        else:
            lengths = [int(size) for size in target]
            scales = [np.float32(n) / np.float32(max(shape[a], 1)) for a, n in zip(axes, lengths, strict=True)]
        antialias = method.mode == "linear" and method.antialias and any(scale < 1 for scale in scales)
        method = replace(method, antialias=antialias)
        # An axis that keeps its length keeps its elements, unless the triangle of antialias is not exactly 1 wide. Only
        # integers reveal its taps: the sum 0.5 * a + 0.5 * a may be rounded differently from a.
        every_axis = antialias or (data.dtype.kind in "iu" and method.mode.startswith("linear"))
        passes = []
        for axis, length, scale in zip(axes, lengths, scales, strict=True):
            if length != shape[axis] or every_axis:
                self.require(shape[axis] or not length, "cannot resize axis {} of size 0 to {}", axis, length)
                if shape[axis] and length:
                    passes.append((axis, taps(method, shape[axis], length, float(scale))))
            shape[axis] = length
        return method, passes, shape


@operator("Interpolate", opset=1)
class Interpolate1(InterpolateBase):
    """The data resized along ``axes`` to ``target_spatial_shape``.

    The specification assigns the target sizes in the order of ``axes``; every implementation assigns them in ascending
    order of axes. The specification has no formulas; OpenVINO replaces the operation by Interpolate-4: ``nearest``
    rounds as ``simple``, ``linear`` is ``linear_onnx`` up to four dimensions. Positions are ``align_corners`` or
    ``asymmetric``; linear modes without pads use ``half_pixel``, except along axes 2 and 3 of four. A single pad
    applies to each of the axes. ``area`` is named but not defined.
    """

    arguments = "image:data output_shape:target_spatial_shape attrs:**"
    domains = by_input(target_spatial_shape=SMALL)
    axes: tuple[int, ...] = attribute()
    mode: str = attribute(default="", choices=("nearest", "linear", "linear_onnx", "cubic", "area"), specified=True)
    align_corners: bool = attribute(default=True)
    antialias: bool = attribute(default=False)

    value_inputs = (1,)
    exact_inputs = (1,)

    def spatial_axes(self, inputs: Sequence[TensorType]) -> Iterable[int]:
        return self.axes

    def infer(self, data: TensorType, target_spatial_shape: TensorType) -> TensorType:
        self.require_integers("target_spatial_shape", target_spatial_shape)
        return self._infer(data, sorted(self.axes), target_spatial_shape, "target_spatial_shape")

    def run(self, data: Array, target_spatial_shape: Array) -> Array:
        if list(self.axes) != sorted(self.axes):
            report(f"axes {list(self.axes)} are resized in ascending order; the specification says in the given order")
        method = self.method(data.ndim)
        return self._run(method, data, sorted(self.axes), target_spatial_shape, "target_spatial_shape")

    def method(self, rank: int) -> Method:
        """Return the method for data of this rank."""
        self.require(self.mode, "attribute 'mode' is missing")
        self.require(self.mode != "area", "mode 'area' is not defined by the specification")
        mode = "linear_onnx" if self.mode == "linear" and rank < 5 else self.mode
        coordinates = "asymmetric"
        if self.align_corners:
            coordinates = "align_corners"
        elif mode.startswith("linear") and not any((*self.pads_begin, *self.pads_end)):
            coordinates = "asymmetric" if rank == 4 and set(self.axes) == {2, 3} else "half_pixel"
        return Method(mode, coordinates, "simple", self.antialias)

    def pads(self, rank: int, axes: Sequence[int]) -> tuple[list[int], list[int]]:
        begin, end = super().pads(rank, axes)
        for given, pads in ((self.pads_begin, begin), (self.pads_end, end)):
            if len(given) == 1:
                pads[:] = [given[0] if axis in axes else 0 for axis in range(rank)]
        return begin, end


_SETTINGS = (
    "mode shape_calculation_mode pads_begin= pads_end= coordinate_transformation_mode= nearest_mode= antialias= "
    "cube_coeff= axes="
)


class Interpolate4Base(InterpolateBase):
    """Base of versions 4 and 11, with their attributes."""

    mode: str = attribute(default="nearest", choices=("nearest", "linear", "linear_onnx", "cubic"), specified=True)
    shape_calculation_mode: str = attribute(default="sizes", choices=("sizes", "scales"), specified=True)
    coordinate_transformation_mode: str = attribute(default="half_pixel", choices=COORDINATES)
    nearest_mode: str = attribute(default="round_prefer_floor", choices=NEAREST)
    antialias: bool = attribute(default=False)
    cube_coeff: float = attribute(default=-0.75)

    def _axes_known(self, data: TensorType, axes: TensorType | None) -> list[int] | None:
        if axes is None:
            return None if data.shape.rank is None else list(range(data.shape.rank))
        self.require_integers("axes", axes, 1)
        return None if axes.constant is None else axes.constant.tolist()

    @property
    def by_scales(self) -> bool:
        return self.shape_calculation_mode == "scales"

    def _resize(self, data: Array, target: Array, name: str, axes: Array | None) -> Array:
        resized = list(range(data.ndim)) if axes is None else axes.tolist()
        return self._run(self.method(), data, resized, target, name)

    def method(self) -> Method:
        """Return the method of interpolation."""
        return Method(
            self.mode, self.coordinate_transformation_mode, self.nearest_mode, self.antialias, self.cube_coeff
        )


@operator("Interpolate", opset=4)
class Interpolate4(Interpolate4Base):
    """The data resized along ``axes`` (by default all) to ``sizes``, or to floor(scale * padded size).

    The data is first padded with zeros. ``coordinate_transformation_mode`` maps an output element to a position in the
    input; an axis that keeps its length keeps its elements. ``nearest`` takes the element at the position rounded by
    ``nearest_mode``. ``linear`` weighs by a triangle around the position; with ``antialias``, if any axis shrinks, the
    triangle is as wide as the pixels that are merged. ``linear_onnx`` combines the two neighbors, ``cubic`` four of
    them with Keys' kernel of parameter ``cube_coeff``. Integers are rounded by ``linear`` and truncated by
    ``linear_onnx`` and ``cubic``.
    """

    arguments = f"image:data output_shape:sizes scales {_SETTINGS}"
    domains = by_input(sizes=SMALL, scales=SMALL, axes=Axis("data"))
    value_inputs = (1, 2, 3)
    exact_inputs = (1, 2)

    def infer(
        self, data: TensorType, sizes: TensorType, scales: TensorType, axes: TensorType | None = None
    ) -> TensorType:
        self.require_integers("sizes", sizes)
        self.require_real("scales", scales)
        target, name = (scales, "scales") if self.by_scales else (sizes, "sizes")
        return self._infer(data, self._axes_known(data, axes), target, name)

    def run(self, data: Array, sizes: Array, scales: Array, axes: Array | None = None) -> Array:
        target, name = (scales, "scales") if self.by_scales else (sizes, "sizes")
        return self._resize(data, target, name, axes)


@operator("Interpolate", opset=11)
class Interpolate11(Interpolate4Base):
    """Interpolate-4 with one input for sizes or scales, and with the modes of Pillow.

    ``bilinear_pillow`` and ``bicubic_pillow`` resize two axes, height and width, like Pillow's resize: the filter is
    stretched where an axis shrinks, and integers are rounded after each axis. ``cube_coeff`` also applies to
    ``bicubic_pillow``; the other interpolation attributes are ignored.

    >>> ops.interpolate([[[1.0, 3.0]]], [4], "linear", "sizes", axes=[2])
    [[[1. 1.5 2.5 3. ]]]
    """

    arguments = f"image scales_or_sizes {_SETTINGS}"
    domains = by_input(scales_or_sizes=SMALL, axes=Axis("image"))
    mode: str = attribute(
        default="nearest",
        choices=("nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"),
        specified=True,
    )

    value_inputs = (1, 2)
    exact_inputs = (1,)

    def infer(self, image: TensorType, scales_or_sizes: TensorType, axes: TensorType | None = None) -> TensorType:
        require = self.require_real if self.by_scales else self.require_integers
        require("scales_or_sizes", scales_or_sizes.element_type)
        known = self._axes_known(image, axes)
        if self.mode.endswith("_pillow") and known is not None:
            self.require(len(known) == 2, "mode {} needs two axes, height and width, got {}", self.mode, known)
        return self._infer(image, known, scales_or_sizes, "scales_or_sizes")

    def run(self, image: Array, scales_or_sizes: Array, axes: Array | None = None) -> Array:
        return self._resize(image, scales_or_sizes, "scales_or_sizes", axes)


def _is_number(element_type: ElementType) -> bool:
    return (element_type.is_integral or element_type.is_real) and element_type.bits >= 8


def _scaled_size(size: int, scale: np.float32) -> int:
    """Return floor(size * scale) in f32, as a number even if no tensor can have that size."""
    if scale == 1:
        return size
    with np.errstate(over="ignore"):
        return int(min(float(np.float32(size) * (scale + _EPSILON)), 2.0**62))


def _scaled_dim(dim: Dimension, low: float, high: float) -> Dimension:
    """Return a dimension multiplied by a scale between two bounds."""
    if low == high:
        scale = np.float32(low)
        return dim if scale == 1 else dim.map(lambda size: _scaled_size(size, scale))
    lower, upper = 0, None
    if low > 0:
        lower = _scaled_size(dim.lower, np.float32(low * (1 - _MARGIN)))
    if dim.upper is not None and isfinite(high):
        upper = max(_scaled_size(dim.upper, np.float32(high * (1 + _MARGIN))), 0)
    return Dimension(lower, upper)
