"""Broadcast and Tile: repeat the elements of a tensor along its dimensions or along new ones."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import Dimension, PartialShape, unknown_sizes
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Between, Domain, Inputs, by_input, dims_of, size_of
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


def _longest_axis(op: Operator, inputs: Inputs) -> Domain:
    """Return a size that fits every axis of ``data``: the longest one, or in mode bidirectional 1, which keeps all."""
    if getattr(op, "mode", "") == "bidirectional":
        return Domain(1, 1)
    longest = max((dim.lower for dim in dims_of(inputs, "data")), default=1)
    return Domain(longest, longest)


@operator("Broadcast", opset=3)
class Broadcast3(Operator):
    """``data`` with its dimensions of size 1 repeated until it has the shape ``target_shape``.

    mode "numpy": the trailing dimensions are aligned. "bidirectional": likewise, and where the target is 1 the
    dimension of ``data`` is kept. "explicit" (also spelled "none"): dimension i of ``data`` becomes dimension
    ``axes_mapping[i]`` of the result, in ascending order. "pdpd", which the specification lacks: as bidirectional, but
    the dimensions of ``data`` start at ``start_axis``.

    >>> ops.broadcast([[1], [2]], [2, 3])
    [[1 1 1] [2 2 2]]
    """

    arguments = "data target_shape axes_mapping= broadcast_spec:mode="
    domains = by_input(
        target_shape=_longest_axis,
        axes_mapping=lambda op, inputs: Domain(0, size_of(op, inputs, "target_shape", 0) - 1, "counting"),
    )
    mode: str = attribute(default="numpy", choices=("numpy", "explicit", "none", "bidirectional", "pdpd"))
    start_axis = 0
    """The dimension of the result that the first dimension of ``data`` becomes in mode pdpd; -1 aligns the last
    ones."""

    views = True
    guards_sizes = True
    moves_elements = (0,)
    value_inputs = (1, 2)
    exact_inputs = (1,)

    def infer(self, data: TensorType, target_shape: TensorType, axes_mapping: TensorType | None = None) -> TensorType:
        self._check_inputs(axes_mapping)
        self.require_integers("target_shape", target_shape, 1)
        known = target_shape.bounds_or_unknown()
        if known is None:
            return TensorType(data.element_type, PartialShape(None))
        target = PartialShape(self.sizes_in("target_shape", known))
        if self._is_explicit:
            axes = None if axes_mapping is None else axes_mapping.constant
            if data.shape.rank is None or axes is None:
                return TensorType(data.element_type, target)
            aligned = self._explicit(data.shape, target, axes)
        elif data.shape.rank is None:
            two_sided = {"bidirectional": PartialShape(None), "pdpd": unknown_sizes(len(target))}
            return TensorType(data.element_type, two_sided.get(self.mode, target))
        else:
            aligned = self._aligned(data.shape, target)
        return TensorType(data.element_type, self._broadcast(aligned, target, data.shape))

    def why_unchanged(self, inputs: Sequence[TensorType], output: TensorType) -> str | None:
        return f"its shape is {output.shape} already" if inputs[0].shape.is_sure_to_equal(output.shape) else None

    def run(self, data: Array, target_shape: Array, axes_mapping: Array | None = None) -> Array:
        aligned, result = self.shapes(data.shape, target_shape, axes_mapping)
        view = data.reshape(aligned)
        if view.shape == result:
            return view
        return np.broadcast_to(view, result).copy()

    def shapes(
        self, shape: tuple[int, ...], target_shape: Array, axes_mapping: Array | None = None
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the shape of ``data`` with dimensions of size 1, and the shape of the result."""
        if self.mode in ("numpy", "bidirectional") and len(shape) <= target_shape.size:
            sizes = target_shape.tolist()
            ones = (1,) * (len(sizes) - len(shape)) + shape
            kept = 1 if self.mode == "bidirectional" else None  # where the size of data is kept
            if all(size >= 0 and (own in (1, size) or size == kept) for own, size in zip(ones, sizes, strict=True)):
                return ones, tuple(own if size == 1 else size for own, size in zip(ones, sizes, strict=True))
        target, data = PartialShape(self.sizes_in("target_shape", Value(target_shape))), PartialShape(shape)
        if self._is_explicit:
            assert axes_mapping is not None
            aligned = self._explicit(data, target, axes_mapping)
        else:
            aligned = self._aligned(data, target)
        return aligned.to_tuple(), self._broadcast(aligned, target, data).to_tuple()

    @property
    def _is_explicit(self) -> bool:
        return self.mode in ("explicit", "none")

    def _check_inputs(self, axes_mapping: TensorType | None) -> None:
        if self._is_explicit:
            axes = self.require_known(axes_mapping, "mode {} requires the input axes_mapping", self.mode)
            self.require_integers("axes_mapping", axes, 1)
        else:
            self.require(axes_mapping is None, "mode {} does not allow the input axes_mapping", self.mode)

    def _aligned(self, shape: PartialShape, target: PartialShape) -> PartialShape:
        """Return the shape of ``data`` extended by dimensions of size 1 to the rank of the result."""
        before = len(target) - len(shape)
        after = 0
        if self.mode == "pdpd" and self.start_axis >= 0:
            before, after = self.start_axis, before - self.start_axis
        fits = min(before, after) >= 0 or self.mode == "bidirectional"
        self.require(fits, "data of shape {} has more dimensions than the target {}", shape, target)
        one = Dimension(1, 1)
        return PartialShape([*[one] * before, *shape, *[one] * after])

    def _explicit(self, shape: PartialShape, target: PartialShape, axes_mapping: Array) -> PartialShape:
        """Return the shape of ``data`` with its dimensions moved to ``axes_mapping`` and 1 elsewhere."""
        axes = [int(axis) for axis in axes_mapping]
        # A scalar may be mapped too: it counts as one dimension of size 1.
        dims = list(shape) or [Dimension(1, 1)] * min(len(axes), 1)
        message = "axes_mapping has {:element}, but data of shape {} needs one per dimension"
        self.require(len(axes) == len(dims), message, len(axes), shape)
        self.require(axes == sorted(set(axes)), "axes_mapping must be ascending, got {}", axes)
        result = [Dimension(1, 1)] * len(target)
        for axis, dim in zip(axes, dims, strict=True):
            message = "axes_mapping {} names an axis outside of the {:dimension} of the target {}"
            self.require(0 <= axis < len(target), message, axes, len(target), target)
            result[axis] = dim
        if not shape.rank and axes:
            message = "a scalar cannot be mapped to axis {} of the target {}: that dimension must be 1"
            self.require(target[axes[0]].contains(1), message, axes[0], target)
        return PartialShape(result)

    def _broadcast(self, aligned: PartialShape, target: PartialShape, shape: PartialShape) -> PartialShape:
        message = "data of shape {} cannot be broadcast to {} in mode {}"
        if self.mode in ("bidirectional", "pdpd"):
            return self.require_known(target.broadcast_with(aligned), message, shape, target, self.mode)
        dims = []
        for dim, wanted in zip(aligned, target, strict=True):
            merged = wanted if dim.contains(1) else wanted.merged_with(dim)
            merged = self.require_known(merged, message, shape, target, self.mode)
            dims.append(merged)
        return PartialShape(dims)


@operator("Broadcast", opset=1)
class Broadcast1(Broadcast3):
    """Broadcast-3 without mode bidirectional; modes other than explicit ignore ``axes_mapping``."""

    arguments = "data target_shape axes_mapping= mode="
    mode: str = attribute(default="numpy", choices=("numpy", "explicit", "none", "pdpd"), misread="none")
    start_axis: int = attribute(default=0, name="mode.auto_broadcast_axis")

    def _check_inputs(self, axes_mapping: TensorType | None) -> None:
        if self._is_explicit:
            super()._check_inputs(axes_mapping)


@operator("Tile", opset=1)
class Tile(Operator):
    """``data`` repeated ``repeats[i]`` times along dimension i.

    The shorter of the shape of ``data`` and ``repeats`` is extended by 1 at the front. A negative number counts as 0.

    >>> ops.tile([[1, 2]], [2, 2])
    [[1 2 1 2] [1 2 1 2]]
    """

    recipe = "anything any, index 0 | 1 | 2 | 3 | 4 = 0..3"
    domains = by_input(repeats=Between(1, 2))
    views = True
    moves_elements = (0,)
    value_inputs = (1,)
    exact_inputs = (1,)

    def infer(self, data: TensorType, repeats: TensorType) -> TensorType:
        self.require_integers("repeats", repeats, 1)
        known = repeats.bounds_or_unknown()
        if known is None or data.shape.rank is None:
            return TensorType(data.element_type, PartialShape(None))
        counts = known.dimensions()
        rank = max(len(counts), data.shape.rank)
        one = Dimension(1, 1)
        counts = [*[one] * (rank - len(counts)), *counts]
        dims = [*[one] * (rank - data.shape.rank), *data.shape]
        return TensorType(data.element_type, PartialShape(d * n for d, n in zip(dims, counts, strict=True)))

    def why_unchanged(self, inputs: Sequence[TensorType], output: TensorType) -> str | None:
        return f"its shape is {output.shape} already" if inputs[0].shape.is_sure_to_equal(output.shape) else None

    def run(self, data: Array, repeats: Array) -> Array:
        rank = max(data.ndim, len(repeats))
        counts = [1] * (rank - len(repeats)) + [max(int(count), 0) for count in repeats]
        sizes = [1] * (rank - data.ndim) + list(data.shape)
        if all(count == 1 for count in counts):
            return data.reshape(sizes)
        shape = [size * count for size, count in zip(sizes, counts, strict=True)]
        # np.tile repeats along the other axes first, and writes past the end of an array whose size wraps around.
        if 0 in shape or prod(shape) > np.iinfo(np.intp).max // data.itemsize:
            return np.empty(shape, data.dtype)  # raises an error for a size that no memory holds
        return np.tile(data.reshape(sizes), counts)
