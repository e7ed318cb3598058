"""Reversals, rolls and shuffles along an axis, and moves of elements between spatial axes and batch or channels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import boolean
from ovir.core.shapes import Dimension, PartialShape, unknown_sizes
from ovir.core.tensor_types import TensorType, constant_type
from ovir.diagnostics.codes import AXIS
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import ONE, ZERO, Axis, Length, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.traits import input_names


@operator("Reverse", opset=1, until=1)
class Reverse(Operator):
    """data with the order of its elements reversed along some axes.

    ``mode`` index: the axes are given by number; mask: by a boolean for each dimension.

    >>> ops.reverse([[1, 2], [3, 4]], [1])
    [[2 1] [4 3]]
    """

    domains = by_input(axes=Axis("data"))
    moves_elements = (0,)
    value_inputs = (1,)

    mode: str = attribute(default="index", choices=("index", "mask"), specified=True)

    def infer(self, data: TensorType, axes: TensorType) -> TensorType:
        self.require_rank("axes", axes.shape, 1)
        rank = data.shape.rank
        if self.mode == "mask":
            self.require_type("axes", axes, lambda t: t == boolean, "boolean in mode mask")
            message = "the mask has shape {}, but data {} has {:dimension}"
            self.require(rank is None or axes.shape[0].contains(rank), message, axes.shape, data.shape, rank)
        else:
            self.require_integers("axes", axes)
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

    >>> ops.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], 0, 1)
    [[2 1 3] [6 5 4]]
    """

    recipe = "anything B S ..., index B; batch_axis=0 seq_axis=1"
    arguments = "input:data seq_lengths batch_axis seq_axis"
    domains = by_input(seq_lengths=Length("data", axis="seq_axis"))
    forwards_values = (0,)
    batch_axis: int = attribute(default=0)
    seq_axis: int = attribute(default=1)

    def infer(self, data: TensorType, seq_lengths: TensorType) -> TensorType:
        self.require_numeric("seq_lengths", seq_lengths, 1)
        self.require_rank_at_least("data", data.shape, 2)
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
        inside = (seq_lengths >= 0) & (seq_lengths <= np.int64(size))  # False for NaN
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

    >>> ops.roll([1, 2, 3, 4], [1], [0])
    [4 1 2 3]
    """

    recipe = "anything any1, index = -20..20, index = axes / anything A B ..., index 2 = -20..20, index 2 = -2..1"
    domains = by_input(axes=Axis("data"))
    moves_elements = (0,)
    value_inputs = (2,)

    def infer(self, data: TensorType, shift: TensorType, axes: TensorType) -> TensorType:
        for name, tensor in (("shift", shift), ("axes", axes)):
            self.require_index_type(name, tensor, 0, 1)
        message = "shift {} must be a scalar, or have the shape of axes {}"
        self.require(shift.shape.rank == 0 or shift.shape.compatible(axes.shape), message, shift.shape, axes.shape)
        if axes.constant is not None:
            self.normalize_axes(axes.constant.ravel().tolist(), data.shape.rank, unique=False)
        return data.with_value(None)

    def run(self, data: Array, shift: Array, axes: Array) -> Array:
        places = self.normalize_axes(axes.ravel().tolist(), data.ndim, unique=False)
        if not data.ndim or not places:  # NumPy needs an axis
            return data.copy()
        return np.roll(data, np.broadcast_to(shift, axes.shape).ravel().tolist(), places)


@operator("ShuffleChannels", opset=1, not_in=(2,))
class ShuffleChannels(Operator):
    """``axis`` of data split into [group, size / group], transposed, and merged again.

    >>> ops.shuffle_channels([[1, 2, 3, 4]], 1, 2)
    [[1 3 2 4]]
    """

    recipe = "anything G*A G*B ...; G=1|2|3 axis=0|1 group=G"
    arguments = "data axis group"
    forwards_values = (0,)
    moves_elements = (0,)

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
        self.infer(constant_type(data))  # which checks the sizes
        split = (prod(data.shape[:axis]), self.group, data.shape[axis] // self.group, prod(data.shape[axis + 1 :]))
        return rearranged(data, split, (0, 2, 1, 3), data.shape)


def rearranged(data: Array, split: Sequence[int], order: Sequence[int], shape: Sequence[int]) -> Array:
    """Return a copy of data reshaped to ``split``, with its axes in ``order``, reshaped to ``shape``."""
    return data.reshape(split).transpose(order).copy().reshape(shape)


# --------------------------------------------------------------------------- between batch and space


class BatchSpaceBase(Operator):
    """Base of BatchToSpace and SpaceToBatch: three 1-D inputs with an item for each dimension of data.

    The batch counts as a dimension, but it is neither split into blocks nor padded or cropped: its items are 1, 0 and
    0.
    """

    moves_elements = (0,)
    value_inputs = (1, 2, 3)
    exact_inputs = (1, 2, 3)

    def infer(self, data: TensorType, *items: TensorType) -> TensorType:
        count, rank = self.solved(data, *items)["K"], data.shape.rank
        names = input_names(type(self))[1:]
        self.require_rank_at_least("data", data.shape, 2)
        message = "{}, {} and {} must have an item for each dimension of data of shape {}, got {}"
        self.require(rank is None or count.contains(rank), message, *names, data.shape, count)
        values = [tensor.constant.astype(np.int64).tolist() for tensor in items if tensor.constant is not None]
        if rank is None or len(values) < len(items):
            return TensorType(data.element_type, unknown_sizes(rank))
        for name, given, least in zip(names, values, (1, 0, 0), strict=True):
            self.require(min(given) >= least, "the items of {} {} must be {} or more", name, given, least)
            self.require(given[0] == least, "{} {} must begin with {}, for the batch", name, given, least)
        return TensorType(data.element_type, PartialShape(self.moved(data.shape, *values)))

    def moved(self, shape: PartialShape, blocks: list[int], begins: list[int], ends: list[int]) -> list[Dimension]:
        """Return the dimensions of the result, given those of ``data``."""
        raise NotImplementedError


@operator("BatchToSpace", opset=2)
class BatchToSpace(BatchSpaceBase):
    """data [batch, D1, D2, ...] with blocks of its batch moved into space: [batch / prod(B), D1 * B1, D2 * B2, ...].

    B is block_shape; the result is then cropped by crops_begin and crops_end.

    >>> ops.batch_to_space([[1], [2]], [1, 2], [0, 0], [0, 0])
    [[1 2]]
    """

    takes = "data T[D...]; block_shape I[K]; crops_begin I[K]; crops_end I[K]; T any; I integer"
    domains = by_input(block_shape=ONE, crops_begin=ZERO, crops_end=ZERO)

    def moved(self, shape: PartialShape, blocks: list[int], begins: list[int], ends: list[int]) -> list[Dimension]:
        message = "the batch of data of shape {} is not a multiple of {}, the product of block_shape"
        dims = [self.require_known(shape[0].exact_div(prod(blocks)), message, shape, prod(blocks))]
        for axis in range(1, len(blocks)):
            grown, crop = shape[axis] * blocks[axis], begins[axis] + ends[axis]
            message = "crops {} and {} exceed dimension {} of data of shape {}, which has size {} with a block of {}"
            fits = grown.upper is None or crop <= grown.upper
            self.require(fits, message, begins[axis], ends[axis], axis, shape, grown, blocks[axis])
            dims.append(_cropped(grown, crop))
        return dims

    def run(self, data: Array, *items: Array) -> Array:
        self.infer(*map(constant_type, (data, *items)))  # which checks the sizes
        blocks, begins, ends = (array.astype(np.int64).tolist() for array in items)
        n = data.ndim
        batch, *sizes = data.shape
        split = (*blocks, batch // prod(blocks), *sizes)
        order = [n, 0, *(i for axis in range(1, n) for i in (n + axis, axis))]
        grown = [size * block for size, block in zip((batch // prod(blocks), *sizes), blocks, strict=True)]
        kept = tuple(slice(begin, size - end) for begin, end, size in zip(begins, ends, grown, strict=True))
        return rearranged(data, split, order, grown)[kept].copy()


@operator("SpaceToBatch", opset=2)
class SpaceToBatch(BatchSpaceBase):
    """data [batch, D1, D2, ...], padded with zeros, with blocks of its space moved into the batch.

    The result is [batch * prod(B), (D1 + P1) / B1, ...], where B is block_shape and P is pads_begin + pads_end.
    BatchToSpace is the inverse.

    >>> ops.space_to_batch([[1, 2, 3, 4]], [1, 2], [0, 0], [0, 0])
    [[1 3] [2 4]]
    """

    takes = "data T[D...]; block_shape integer[K]; pads_begin integer[K]; pads_end integer[K]; T any"
    domains = by_input(block_shape=ONE, pads_begin=ZERO, pads_end=ZERO)

    def moved(self, shape: PartialShape, blocks: list[int], begins: list[int], ends: list[int]) -> list[Dimension]:
        dims = [shape[0] * prod(blocks)]
        for axis in range(1, len(blocks)):
            begin, end, block = begins[axis], ends[axis], blocks[axis]
            message = "dimension {} of data of shape {}, with pads {} and {}, is not a multiple of its block {}"
            divided = (shape[axis] + (begin + end)).exact_div(block)
            dims.append(self.require_known(divided, message, axis, shape, begin, end, block))
        return dims

    def run(self, data: Array, *items: Array) -> Array:
        self.infer(*map(constant_type, (data, *items)))  # which checks the sizes
        blocks, begins, ends = (array.astype(np.int64).tolist() for array in items)
        if any(begins) or any(ends):
            data = np.pad(data, list(zip(begins, ends, strict=True)))
        n = data.ndim
        batch, *sizes = data.shape
        parts = [(size // block, block) for size, block in zip(sizes, blocks[1:], strict=True)]
        split = (batch, *(size for part in parts for size in part))
        order = [*range(2, 2 * n - 1, 2), 0, *range(1, 2 * n - 1, 2)]
        return rearranged(data, split, order, (batch * prod(blocks), *(part[0] for part in parts)))


# --------------------------------------------------------------------------- between depth and space


class DepthSpaceBase(Operator):
    """Base of DepthToSpace and SpaceToDepth; data is [N, C, D1, ..., DK]."""

    moves_elements = (0,)

    block_size: int = attribute(minimum=1)
    mode: str = attribute(default="blocks_first", choices=("blocks_first", "depth_first"), specified=True)


@operator("DepthToSpace", opset=1)
class DepthToSpace(DepthSpaceBase):
    """Parts of the depth C moved into space, in blocks of ``block_size`` b: [N, C / b**K, D1 * b, ..., DK * b].

    In mode blocks_first C is split into [b, ..., b, C / b**K], in mode depth_first into [C / b**K, b, ..., b].

    >>> ops.depth_to_space(np.arange(8).reshape(1, 4, 1, 2), "blocks_first", 2)
    [[[[0 2 1 3] [4 6 5 7]]]]
    """

    recipe = "anything N C*S H / anything N C*S*S H W / anything N C*S*S*S D H W; S=1|2|3 block_size=S"
    arguments = "node:data mode block_size=1"

    def infer(self, data: TensorType) -> TensorType:
        self.require_rank_at_least("data", data.shape, 3)
        if data.shape.rank is None:
            return data.with_value(None)
        space = [dim * self.block_size for dim in data.shape.slice(2)]
        blocks = self.block_size ** len(space)
        message = "the depth of data of shape {} is not a multiple of {}"
        depth = self.require_known(data.shape[1].exact_div(blocks), message, data.shape, blocks)
        return TensorType(data.element_type, PartialShape([data.shape[0], depth, *space]))

    def run(self, data: Array) -> Array:
        b, k = self.block_size, data.ndim - 2
        sizes = data.shape[2:]
        n, depth, *grown = self.infer(constant_type(data)).shape.to_tuple()
        if self.mode == "blocks_first":
            split, first_block, depth_axis = (n, *[b] * k, depth, *sizes), 1, k + 1
        else:
            split, first_block, depth_axis = (n, depth, *[b] * k, *sizes), 2, 1
        order = [0, depth_axis, *(i for axis in range(k) for i in (k + 2 + axis, first_block + axis))]
        return rearranged(data, split, order, (n, depth, *grown))


@operator("SpaceToDepth", opset=1)
class SpaceToDepth(DepthSpaceBase):
    """Blocks of ``block_size`` b in space moved into the depth: [N, C * b**K, D1 / b, ..., DK / b].

    The new depth is [b, ..., b, C] in mode blocks_first and [C, b, ..., b] in mode depth_first.

    >>> ops.space_to_depth(np.arange(8).reshape(1, 1, 2, 4), "blocks_first", 2)
    [[[[0 2]] [[1 3]] [[4 6]] [[5 7]]]]
    """

    recipe = "anything N C H*S / anything N C H*S W*S / anything N C D*S H*S W*S; S=1|2|3 block_size=S"
    arguments = "data mode block_size=1"

    def infer(self, data: TensorType) -> TensorType:
        self.require_rank_at_least("data", data.shape, 3)
        if data.shape.rank is None:
            return data.with_value(None)
        space = []
        for axis, dim in enumerate(data.shape.slice(2), 2):
            message = "dimension {} of data of shape {} is not a multiple of block_size {}"
            divided = self.require_known(dim.exact_div(self.block_size), message, axis, data.shape, self.block_size)
            space.append(divided)
        depth = data.shape[1] * self.block_size ** len(space)
        return TensorType(data.element_type, PartialShape([data.shape[0], depth, *space]))

    def run(self, data: Array) -> Array:
        b, k = self.block_size, data.ndim - 2
        n, depth = data.shape[:2]
        shape = self.infer(constant_type(data)).shape.to_tuple()
        sizes = shape[2:]
        split = (n, depth, *(part for size in sizes for part in (size, b)))
        blocks, space = range(3, 2 * k + 2, 2), range(2, 2 * k + 2, 2)
        order = [0, *blocks, 1, *space] if self.mode == "blocks_first" else [0, 1, *blocks, *space]
        return rearranged(data, split, order, shape)


def _cropped(dim: Dimension, crop: int) -> Dimension:
    return dim.map(lambda size: size - crop) if crop else dim
