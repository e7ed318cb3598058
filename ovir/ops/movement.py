"""Concat, Split, VariadicSplit and Pad: join, split and pad tensors.

Split and VariadicSplit return views.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import string
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape, unknown_sizes
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value, bound_text
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import PATTERN, Axis, Between, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.traits import ALL


@operator("Concat", opset=1)
class Concat(Operator):
    """The inputs one after the other along ``axis``; their ranks, types and other dimensions must be equal.

    >>> ops.concat([[[1, 2]], [[3, 4]]], 0)
    [[1 2] [3 4]]
    """

    arguments = "nodes:* axis"
    guards_sizes = True

    axis: int = attribute()

    moves_elements = ALL
    same_types = ALL

    def infer(self, *inputs: TensorType) -> TensorType:
        self.require(inputs, "expected at least one input, got none")
        element_type = self.merge_types(*(t.element_type for t in inputs))
        merged = PartialShape(None)
        length = Dimension(0, 0)
        for i, tensor in enumerate(inputs):
            shape = tensor.shape
            self.require(shape.rank != 0, "input {} is a scalar, which has no axis to concatenate along", i)
            axis = self.normalize_axis(self.axis, shape.rank)
            length += shape[axis]
            if shape.rank is not None:
                both = merged.merged_with(shape, except_axis=axis)
                if both is None:
                    others = merged.with_dim(self.normalize_axis(self.axis, merged.rank), UNKNOWN)
                    message = "input {} has shape {}, which differs from {} in a dimension other than axis {}"
                    self.fail(message, i, shape, others, axis)
                merged = both
        if merged.rank is not None:
            merged = merged.with_dim(self.normalize_axis(self.axis, merged.rank), length)
        return TensorType(element_type, merged)

    def run(self, *inputs: Array) -> Array:
        return np.concatenate(inputs, self.axis)

    def why_unchanged(self, inputs: Sequence[TensorType], output: TensorType) -> str | None:
        return "it has one input" if len(inputs) == 1 else None


class SplitBase(Operator):
    """Base of Split and VariadicSplit: parts of ``data`` along ``axis``, as views."""

    views = True
    moves_elements = (0,)

    def known_axis(self, data: TensorType, axis: TensorType) -> int | None:
        """Return the axis counted from the front, or None if it is unknown."""
        self.require_integers("axis", axis)
        if data.shape.rank is None or axis.constant is None:
            return None
        self.require(data.shape.rank > 0, "data is a scalar, which cannot be split")
        return self.normalize_axis(axis.constant, data.shape.rank, of=data.shape)

    def why_unchanged(self, inputs: Sequence[TensorType], output: TensorType) -> str | None:
        return "one part is the whole" if inputs[0].shape.is_sure_to_equal(output.shape) else None

    def part(self, data: TensorType, axis: int | None, length: Dimension) -> TensorType:
        """Return the type of a part of this length; with an unknown axis, no size of it is known."""
        shape = unknown_sizes(data.shape.rank) if axis is None else data.shape.with_dim(axis, length)
        return TensorType(data.element_type, shape)

    def cut(self, data: Array, axis: int, lengths: Iterable[int]) -> tuple[Array, ...]:
        """Return views of the parts that follow each other along an axis."""
        before = (slice(None),) * axis
        parts: list[Array] = []
        start = 0
        for length in lengths:
            parts.append(data[(*before, slice(start, start + length))])
            start += length
        return tuple(parts)


_UNEQUAL_PARTS = "dimension {} of axis {} cannot be split into {} equal parts"
_MOST_PARTS = 1 << 16


@operator("Split", opset=1)
class Split(SplitBase):
    """``num_splits`` parts of ``data`` of equal length along the scalar ``axis``.

    >>> ops.split([1, 2, 3, 4], 0, 2)
    [1 2]
    [3 4]
    """

    domains = by_input(axis=Axis("data"))
    num_splits: int = attribute(minimum=1)

    value_inputs = (1,)

    def infer(self, data: TensorType, axis: TensorType) -> tuple[TensorType, ...]:
        self.require_rank("axis", axis.shape, 0)
        message = "num_splits {} exceeds {}, the largest number of outputs"
        self.require(self.num_splits <= _MOST_PARTS, message, self.num_splits, _MOST_PARTS)
        position = self.known_axis(data, axis)
        length = UNKNOWN
        if position is not None:
            whole = data.shape[position]
            part = whole.exact_div(self.num_splits)
            enough = whole.is_static or whole.upper is None or whole.upper >= self.num_splits
            if part is None or not enough:
                self.fail(_UNEQUAL_PARTS, whole, position, self.num_splits)
            length = part
        return (self.part(data, position, length),) * self.num_splits

    def run(self, data: Array, axis: Array) -> tuple[Array, ...]:
        position = self.normalize_axis(axis, data.ndim, of=data.shape)
        length, rest = divmod(data.shape[position], self.num_splits)
        self.require(rest == 0, _UNEQUAL_PARTS, data.shape[position], position, self.num_splits)
        return self.cut(data, position, [length] * self.num_splits)


@operator("VariadicSplit", opset=1)
class VariadicSplit(SplitBase):
    """Parts of ``data`` along ``axis`` with the lengths ``split_lengths``.

    A single -1 stands for the rest.

    >>> ops.variadic_split([1, 2, 3, 4], 0, [1, 3])
    [1]
    [2 3 4]
    """

    domains = by_input(axis=Axis("data"), split_lengths=PATTERN)
    value_inputs = (1, 2)

    def infer(self, data: TensorType, axis: TensorType, split_lengths: TensorType) -> tuple[TensorType, ...]:
        self.require_one_element("axis", axis.shape)
        self.require_integers("split_lengths", split_lengths, 1)
        known = split_lengths.bounds_or_unknown()
        if known is None:
            return ()  # the number of parts is unknown too
        position = self.known_axis(data, axis)
        if position is None:
            return tuple(self.part(data, None, UNKNOWN) for _ in range(known.size))
        lengths = self._lengths(known, data.shape[position], position)
        return tuple(self.part(data, position, length) for length in lengths)

    def run(self, data: Array, axis: Array, split_lengths: Array) -> tuple[Array, ...]:
        position = self.normalize_axis(axis, data.ndim, of=data.shape)
        whole = Dimension(data.shape[position], data.shape[position])
        lengths = self._lengths(Value(split_lengths), whole, position)
        return self.cut(data, position, [length.length for length in lengths])

    def _lengths(self, known: Value, whole: Dimension, axis: int) -> list[Dimension]:
        """Return the lengths of all parts of a dimension; that of -1 is what the others leave of it."""
        lengths = known.dimensions()
        rest = [i for i, (low, high) in enumerate(zip(known.lower, known.upper, strict=True)) if low == high == -1]
        self.require(len(rest) < 2, "split_lengths is -1 at positions {} and {}: at most one -1 is allowed", *rest[:2])
        for i, (low, high) in enumerate(zip(known.lower, known.upper, strict=True)):
            self.require(high >= -1, "split_lengths[{}] must be at least -1, got {}", i, bound_text(high))
            if low < 0:
                lengths[i] = UNKNOWN  # it may be the -1
        total = sum((length for i, length in enumerate(lengths) if i not in rest), Dimension(0, 0))
        fits = total.lower <= whole.upper if rest and whole.upper is not None else rest or total.compatible(whole)
        self.require(fits, "the sum of split_lengths is {}, but axis {} has dimension {}", total, axis, whole)
        for i in rest:
            least = 0 if total.upper is None else max(whole.lower - total.upper, 0)
            lengths[i] = Dimension(least, None if whole.upper is None else whole.upper - total.lower)
        return lengths


@operator("Pad", opset=1)
class Pad1(Operator):
    """``data`` with ``pads_begin[i]`` elements before and ``pads_end[i]`` elements after it along each axis i.

    A negative pad removes elements. ``pad_mode`` chooses the added elements: "constant" adds ``pad_value`` (default 0),
    "edge" the outermost element, "reflect" and "symmetric" the mirrored data without and with its outermost element,
    for which a pad may be at most size - 1 and size. Elements removed at one end do not change what is added at the
    other.
    """

    leftovers = frozenset(("pad_value",))

    arguments = "arg:data pads_begin pads_end pad_mode arg_pad_value:pad_value="
    domains = by_input(pads_begin=Between(0, 1), pads_end=Between(0, 1))
    pad_mode: str = attribute(default="constant", choices=("constant", "edge", "reflect", "symmetric"), specified=True)

    moves_elements = (0, 3)
    same_types = (0, 3)
    value_inputs = (1, 2)
    exact_inputs = (1, 2)

    def infer(
        self, data: TensorType, pads_begin: TensorType, pads_end: TensorType, pad_value: TensorType | None = None
    ) -> TensorType:
        rank = data.shape.rank
        for name, pads in (("pads_begin", pads_begin), ("pads_end", pads_end)):
            self.require_integers(name, pads, 1)
            count = pads.shape[0]
            fits = rank is None or count.contains(rank)
            self.require(fits, "{} must have {:element} for data of shape {}, got {}", name, rank, data.shape, count)
        element_type = data.element_type
        if self.pad_mode == "constant":
            if pad_value is not None:
                self.require_rank("pad_value", pad_value.shape, 0)
            element_type = self.shared_type(data=data, pad_value=pad_value)
        else:
            self.require(element_type != string, "strings can be padded in mode constant only, not {}", self.pad_mode)
        if rank is None:
            return TensorType(element_type, PartialShape(None))
        begin, end = pads_begin.bounds_or_unknown(), pads_end.bounds_or_unknown()
        if begin is None or end is None:
            return TensorType(element_type, unknown_sizes(rank))
        dims = []
        for axis, dim in enumerate(data.shape):
            first, last = (float(begin.lower[axis]), float(end.lower[axis]))
            if dim.is_static:
                self._check_pads(axis, dim.length, first, last)
            dims.append(_padded(dim, first + last, float(begin.upper[axis] + end.upper[axis])))
        return TensorType(element_type, PartialShape(dims))

    def why_unchanged(self, inputs: Sequence[TensorType], output: TensorType) -> str | None:
        pads = [tensor.constant for tensor in inputs[1:3]]
        return "all pads are 0" if all(pad is not None and not pad.any() for pad in pads) else None

    def run(self, data: Array, pads_begin: Array, pads_end: Array, pad_value: Array | None = None) -> Array:
        pads = list(zip(pads_begin.tolist(), pads_end.tolist(), strict=True))
        for axis, size in enumerate(data.shape):
            self._check_pads(axis, size, *pads[axis])
        if not pads:  # np.pad needs an axis
            return data.copy()
        mode: Any = self.pad_mode
        fill = np.zeros((), data.dtype) if pad_value is None else pad_value
        options = {"constant_values": fill} if mode == "constant" else {}
        padded = np.pad(data, np.array(pads).clip(0), mode, **options)
        sizes = zip(padded.shape, pads, strict=True)
        return padded[tuple(slice(max(-begin, 0), max(size + min(end, 0), 0)) for size, (begin, end) in sizes)]

    def _check_pads(self, axis: int, size: int, begin: float, end: float) -> None:
        """Check pads; ``begin`` and ``end`` are lower bounds where pads are unknown."""
        most = {"reflect": size - 1, "symmetric": size, "edge": 0 if size == 0 else np.inf}.get(self.pad_mode, np.inf)
        for name, pad in (("pads_begin", begin), ("pads_end", end)):
            message = "{}[{}] is {:.0f}: mode {} allows at most {} for dimension {}"
            self.require(pad <= max(most, 0), message, name, axis, pad, self.pad_mode, max(most, 0), size)


@operator("Pad", opset=12)
class Pad12(Pad1):
    """``data`` padded or cut at both ends of each axis, as by Pad-1.

    This version is the first whose specification covers negative pads and strings.

    >>> ops.pad([1, 2, 3], [1], [2], "constant", 0)
    [0 1 2 3 0 0]
    """


def _padded(dim: Dimension, least: float, most: float) -> Dimension:
    if least == most == 0:
        return dim
    lower = max(dim.lower + int(least), 0) if np.isfinite(least) else 0
    return Dimension(lower, None if dim.upper is None or np.isinf(most) else max(dim.upper + int(most), 0))
