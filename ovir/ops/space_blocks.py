"""Operations that move blocks of space into the batch or the depth of a tensor, and back."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import UNKNOWN, as_dimension
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import ONE, ZERO, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.rearrange import copied, rearranged

# --------------------------------------------------------------------------- between batch and space


class BatchSpaceBase(Operator):
    """Base of BatchToSpace and SpaceToBatch: three 1-D inputs with an item for each dimension of data.

    The batch counts as a dimension, but it is neither split into blocks nor padded or cropped: its items are 1, 0 and
    0.
    """

    carries = (0,)
    value_inputs = (1, 2, 3)

    def known(self, data: TensorType, **items: TensorType) -> list[list[int]] | None:
        """Return the items of the three inputs if all are known, after checking their shapes and signs."""
        self.require_rank_at_least("data", data.shape, 2)
        rank = UNKNOWN if data.shape.rank is None else as_dimension(data.shape.rank)
        for name, tensor in items.items():
            self.require_integers(name, tensor.element_type)
            self.require_rank(name, tensor.shape, 1)
            merged = rank.merged_with(tensor.shape[0])
            if merged is None:
                shapes = ", ".join(f"{n} {t.shape}" for n, t in items.items())
                self.fail("{} must have an item for each dimension of data {}", shapes, data.shape)
            rank = merged
        if data.shape.rank is None or any(t.constant is None for t in items.values()):
            return None
        values = [[int(item) for item in t.constant] for t in items.values() if t.constant is not None]
        self.check_items(values, list(items))
        return values

    def check_items(self, values: Sequence[Sequence[int]], names: Sequence[str]) -> None:
        for name, items, least in zip(names, values, (1, 0, 0), strict=True):
            self.require(min(items) >= least, "the items of {} {} must be {} or more", name, items, least)
            self.require(items[0] == least, "{} {} must begin with {}, for the batch", name, items, least)

    def read(self, data: Array, **items: Array) -> list[list[int]]:
        """Check and return the items of the three inputs of a run."""
        for name, array in items.items():
            message = "{} {} must have an item for each dimension of data {}"
            self.require(array.shape == (data.ndim,), message, name, array.shape, data.shape)
        values = [array.astype(np.int64).tolist() for array in items.values()]
        self.check_items(values, list(items))
        return values


@operator("BatchToSpace", opset=2)
class BatchToSpace(BatchSpaceBase):
    """data [batch, D1, D2, ...] with blocks of its batch moved into space: [batch / prod(B), D1 * B1, D2 * B2, ...].

    B is block_shape; the result is then cropped by crops_begin and crops_end.

    Source: BatchToSpace-2
    """

    domains = by_input(block_shape=ONE, crops_begin=ZERO, crops_end=ZERO)

    def infer(
        self, data: TensorType, block_shape: TensorType, crops_begin: TensorType, crops_end: TensorType
    ) -> TensorType:
        known = self.known(data, block_shape=block_shape, crops_begin=crops_begin, crops_end=crops_end)
        types = (tensor.element_type for tensor in (block_shape, crops_begin, crops_end))
        self.merge_types(*types, names=("block_shape", "crops_begin", "crops_end"))
        if known is None:
            return _unknown_sizes(data)
        blocks = prod(known[0])
        batch = data.shape[0].exact_div(blocks)
        if batch is None:
            self.fail("the batch of data {} is not a multiple of block_shape's product {}", data.shape, blocks)
        dims = [batch]
        for dim, block, begin, end in list(zip(data.shape, *known, strict=True))[1:]:
            grown, crop = dim * block, begin + end
            message = "crops {} and {} exceed the size {} that dimension {} has with a block of {}"
            self.require(grown.upper is None or crop <= grown.upper, message, begin, end, grown, dim, block)
            dims.append(grown.map(lambda size, crop=crop: size - crop) if crop else grown)
        return TensorType(data.element_type, PartialShape(dims))

    def run(
        self, data: Array, block_shape: Array, crops_begin: Array, crops_end: Array, *, out: Array | None = None
    ) -> Array:
        blocks, begins, ends = self.read(data, block_shape=block_shape, crops_begin=crops_begin, crops_end=crops_end)
        n = data.ndim
        batch, *sizes = data.shape
        self.require(
            batch % prod(blocks) == 0, "the batch of data {} is not a multiple of {}", data.shape, prod(blocks)
        )
        split = (*blocks, batch // prod(blocks), *sizes)
        order = [n, 0, *(i for axis in range(1, n) for i in (n + axis, axis))]
        grown = [size * block for size, block in zip((batch // prod(blocks), *sizes), blocks, strict=True)]
        message = "crops {} and {} exceed the sizes {}"
        fits = all(begin + end <= size for begin, end, size in zip(begins, ends, grown, strict=True))
        self.require(fits, message, begins, ends, grown)
        kept = tuple(slice(begin, size - end) for begin, end, size in zip(begins, ends, grown, strict=True))
        return copied(rearranged(data, split, order, grown)[kept], out)


@operator("SpaceToBatch", opset=2)
class SpaceToBatch(BatchSpaceBase):
    """data [batch, D1, D2, ...], padded with zeros, with blocks of its space moved into the batch.

    The result is [batch * prod(B), (D1 + P1) / B1, ...], where B is block_shape and P is pads_begin + pads_end.
    BatchToSpace is the inverse.

    Source: SpaceToBatch-2
    """

    domains = by_input(block_shape=ONE, pads_begin=ZERO, pads_end=ZERO)

    def infer(
        self, data: TensorType, block_shape: TensorType, pads_begin: TensorType, pads_end: TensorType
    ) -> TensorType:
        known = self.known(data, block_shape=block_shape, pads_begin=pads_begin, pads_end=pads_end)
        if known is None:
            return _unknown_sizes(data)
        dims = [data.shape[0] * prod(known[0])]
        for dim, block, begin, end in list(zip(data.shape, *known, strict=True))[1:]:
            divided = (dim + (begin + end)).exact_div(block)
            if divided is None:
                self.fail("dimension {} with pads {} and {} is not a multiple of its block {}", dim, begin, end, block)
            dims.append(divided)
        return TensorType(data.element_type, PartialShape(dims))

    def run(
        self, data: Array, block_shape: Array, pads_begin: Array, pads_end: Array, *, out: Array | None = None
    ) -> Array:
        blocks, begins, ends = self.read(data, block_shape=block_shape, pads_begin=pads_begin, pads_end=pads_end)
        if any(begins) or any(ends):
            data = np.pad(data, list(zip(begins, ends, strict=True)))
        n = data.ndim
        batch, *sizes = data.shape
        message = "data {}, with its pads, is not a multiple of block_shape {}"
        fits = all(size % block == 0 for size, block in zip(data.shape[1:], blocks[1:], strict=True))
        self.require(fits, message, data.shape, blocks)
        parts = [(size // block, block) for size, block in zip(sizes, blocks[1:], strict=True)]
        split = (batch, *(size for part in parts for size in part))
        order = [*range(2, 2 * n - 1, 2), 0, *range(1, 2 * n - 1, 2)]
        return rearranged(data, split, order, (batch * prod(blocks), *(part[0] for part in parts)), out)


# --------------------------------------------------------------------------- between depth and space


class DepthSpaceBase(Operator):
    """Base of DepthToSpace and SpaceToDepth; data is [N, C, D1, ..., DK]."""

    carries = (0,)

    block_size: int = attribute(minimum=1)
    mode: str = attribute(default="blocks_first", choices=("blocks_first", "depth_first"), specified=True)

    def require_space(self, data: PartialShape) -> None:
        self.require_rank_at_least("data", data, 3)


@operator("DepthToSpace", opset=1)
class DepthToSpace(DepthSpaceBase):
    """Parts of the depth C moved into space, in blocks of ``block_size`` b: [N, C / b**K, D1 * b, ..., DK * b].

    In mode blocks_first C is split into [b, ..., b, C / b**K], in mode depth_first into [C / b**K, b, ..., b].

    Source: DepthToSpace-1
    """

    def infer(self, data: TensorType) -> TensorType:
        self.require_space(data.shape)
        if data.shape.rank is None:
            return data.with_value(None)
        blocks = self.block_size ** (data.shape.rank - 2)
        depth = data.shape[1].exact_div(blocks)
        if depth is None:
            self.fail("the depth of data {}, {}, is not a multiple of {}", data.shape, data.shape[1], blocks)
        space = [dim * self.block_size for dim in data.shape.slice(2)]
        return TensorType(data.element_type, PartialShape([data.shape[0], depth, *space]))

    def run(self, data: Array, *, out: Array | None = None) -> Array:
        b, k = self.block_size, data.ndim - 2
        n, depth, *sizes = data.shape
        self.require(depth % b**k == 0, "the depth of data {} is not a multiple of {}", data.shape, b**k)
        if self.mode == "blocks_first":
            split, first_block, new_depth = (n, *[b] * k, depth // b**k, *sizes), 1, k + 1
        else:
            split, first_block, new_depth = (n, depth // b**k, *[b] * k, *sizes), 2, 1
        order = [0, new_depth, *(i for axis in range(k) for i in (k + 2 + axis, first_block + axis))]
        return rearranged(data, split, order, (n, depth // b**k, *(size * b for size in sizes)), out)


@operator("SpaceToDepth", opset=1)
class SpaceToDepth(DepthSpaceBase):
    """Blocks of ``block_size`` b in space moved into the depth: [N, C * b**K, D1 / b, ..., DK / b].

    The new depth is [b, ..., b, C] in mode blocks_first and [C, b, ..., b] in mode depth_first.

    Source: SpaceToDepth-1
    """

    def infer(self, data: TensorType) -> TensorType:
        self.require_space(data.shape)
        if data.shape.rank is None:
            return data.with_value(None)
        space = []
        for dim in data.shape.slice(2):
            divided = dim.exact_div(self.block_size)
            if divided is None:
                self.fail(
                    "dimension {} of data {} is not a multiple of block_size {}", dim, data.shape, self.block_size
                )
            space.append(divided)
        depth = data.shape[1] * self.block_size ** len(space)
        return TensorType(data.element_type, PartialShape([data.shape[0], depth, *space]))

    def run(self, data: Array, *, out: Array | None = None) -> Array:
        b, k = self.block_size, data.ndim - 2
        n, depth, *sizes = data.shape
        self.require(
            all(size % b == 0 for size in sizes), "data {} is not a multiple of block_size {} in space", data.shape, b
        )
        split = (n, depth, *(part for size in sizes for part in (size // b, b)))
        blocks, space = range(3, 2 * k + 2, 2), range(2, 2 * k + 2, 2)
        order = [0, *blocks, 1, *space] if self.mode == "blocks_first" else [0, 1, *blocks, *space]
        return rearranged(data, split, order, (n, depth * b**k, *(size // b for size in sizes)), out)


def _unknown_sizes(data: TensorType) -> TensorType:
    rank = data.shape.rank
    return TensorType(data.element_type, PartialShape(None if rank is None else [UNKNOWN] * rank))
