"""Operations that reorder the elements along a dimension: reverse, roll and shuffle."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import boolean
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import AXIS
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Axis, Length, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


@operator("Reverse", opset=1, until=1)
class Reverse(Operator):
    """data with the order of its elements reversed along some axes.

    ``mode`` index: the axes are given by number; mask: by a boolean for each dimension.

    Source: Reverse-1
    """

    domains = by_input(axes=Axis("data"))
    carries = (0,)
    value_inputs = (1,)

    mode: str = attribute(default="index", choices=("index", "mask"), specified=True)

    def infer(self, data: TensorType, axes: TensorType) -> TensorType:
        self.require_rank("axes", axes.shape, 1)
        rank = data.shape.rank
        if self.mode == "mask":
            self.require_type("axes", axes.element_type, lambda t: t == boolean, "boolean in mode mask")
            message = "the mask has shape {}, but data {} has {:dimension}"
            self.require(rank is None or axes.shape[0].contains(rank), message, axes.shape, data.shape, rank)
        else:
            self.require_integers("axes", axes.element_type)
            if axes.constant is not None:
                self.normalize_axes(axes.constant.tolist(), rank, unique=False)
        return data.with_value(None)

    def run(self, data: Array, axes: Array) -> Array:
        if self.mode == "mask":
            reversed_axes = np.flatnonzero(axes).tolist()
        else:
            reversed_axes = self.normalize_axes(axes.tolist(), data.ndim, unique=False)
        return np.flip(data, tuple(set(reversed_axes))).copy()


@operator("ReverseSequence", opset=1)
class ReverseSequence(Operator):
    """data with the first seq_lengths[i] elements along ``seq_axis`` reversed in each slice i along ``batch_axis``.

    Source: ReverseSequence-1
    """

    arguments = "input:data seq_lengths batch_axis seq_axis"
    domains = by_input(seq_lengths=Length("data", axis="seq_axis"))
    passes = (0,)
    batch_axis: int = attribute(default=0)
    seq_axis: int = attribute(default=1)

    def infer(self, data: TensorType, seq_lengths: TensorType) -> TensorType:
        self.require_numeric("seq_lengths", seq_lengths.element_type)
        self.require_rank_at_least("data", data.shape, 2)
        self.require_rank("seq_lengths", seq_lengths.shape, 1)
        rank = data.shape.rank
        batch = self.normalize_axis(self.batch_axis, rank, "batch_axis", of=data.shape)
        seq = self.normalize_axis(self.seq_axis, rank, "seq_axis", of=data.shape)
        self.require(rank is None or batch != seq, "batch_axis {} and seq_axis {} must differ", batch, seq, code=AXIS)
        if rank is None:
            return data.with_value(None)
        slices = self.merge_dims("slices", data=(data.shape, batch), seq_lengths=(seq_lengths.shape, 0))
        return TensorType(data.element_type, data.shape.with_dim(batch, slices))

    def run(self, data: Array, seq_lengths: Array) -> Array:
        batch, seq = self.normalize_axis(self.batch_axis, data.ndim), self.normalize_axis(self.seq_axis, data.ndim)
        size = data.shape[seq]
        inside = (seq_lengths >= 0) & (seq_lengths <= size)  # False for NaN
        self.require(inside.all(), "seq_lengths {} must be in [0, {}]", seq_lengths.tolist(), size)
        out = data.copy()
        source, target = np.moveaxis(data, (batch, seq), (0, 1)), np.moveaxis(out, (batch, seq), (0, 1))
        for i, length in enumerate(map(int, seq_lengths)):
            target[i, :length] = source[i, :length][::-1]
        return out


@operator("Roll", opset=7)
class Roll(Operator):
    """data shifted along axes by ``shift`` positions towards larger indices; elements beyond the end reappear in front.

    shift is one number for all axes, or one for each; the shifts of a repeated axis are added.

    Source: Roll-7
    """

    domains = by_input(axes=Axis("data"))
    carries = (0,)
    value_inputs = (2,)

    def infer(self, data: TensorType, shift: TensorType, axes: TensorType) -> TensorType:
        for name, tensor in (("shift", shift), ("axes", axes)):
            self.require_index_type(name, tensor.element_type)
            self.require_rank(name, tensor.shape, 0, 1)
        message = "shift {} must be a scalar, or have the shape of axes {}"
        self.require(shift.shape.rank == 0 or shift.shape.compatible(axes.shape), message, shift.shape, axes.shape)
        if axes.constant is not None:
            self.normalize_axes(axes.constant.ravel().tolist(), data.shape.rank, unique=False)
        return data.with_value(None)

    def run(self, data: Array, shift: Array, axes: Array) -> Array:
        places = self.normalize_axes(axes.ravel().tolist(), data.ndim, unique=False)
        return np.roll(data, np.broadcast_to(shift, axes.shape).ravel().tolist(), places)


@operator("ShuffleChannels", opset=1, not_in=(2,))
class ShuffleChannels(Operator):
    """``axis`` of data split into [group, size / group], transposed, and merged again.

    Source: ShuffleChannels-1
    """

    arguments = "data axis group"
    passes = (0,)
    carries = (0,)

    axis: int = attribute(default=1)
    group: int = attribute(default=1, minimum=1)

    def infer(self, data: TensorType) -> TensorType:
        self.require_rank_at_least("data", data.shape, 1)
        axis = self.normalize_axis(self.axis, data.shape.rank, of=data.shape)
        size = data.shape[axis]
        message = "dimension {} of data {}, {}, is not a multiple of group {}"
        self.require(not size.is_static or size.length % self.group == 0, message, axis, data.shape, size, self.group)
        return data.with_value(None)

    def run(self, data: Array) -> Array:
        axis = self.normalize_axis(self.axis, data.ndim)
        self._require_multiple(data.shape, axis)
        split = (prod(data.shape[:axis]), self.group, data.shape[axis] // self.group, prod(data.shape[axis + 1 :]))
        return rearranged(data, split, (0, 2, 1, 3), data.shape)

    def _require_multiple(self, shape: Sequence[int], axis: int) -> None:
        message = "dimension {} of data {} is not a multiple of group {}"
        self.require(shape[axis] % self.group == 0, message, axis, shape, self.group)


def rearranged(data: Array, split: Sequence[int], order: Sequence[int], shape: Sequence[int]) -> Array:
    """Return a copy of data reshaped to ``split``, with its axes in ``order``, reshaped to ``shape``."""
    return data.reshape(split).transpose(order).copy().reshape(shape)
