"""Rewrites of a plan: operations whose constant inputs make them something cheaper."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.ops.base.operator import Operator
from ovir.ops.gather import GatherBase


class View(Operator):
    """A part of input 0, as a view of it, in place of an operation that picks this part."""

    views = True

    def __init__(self, op: Operator, place: tuple[slice, ...], dropped: tuple[int, ...]) -> None:
        """Take the place of ``op``: the output is ``data[place]`` without the axes in ``dropped``, whose size is 1."""
        vars(self).update(vars(op), type=op.type, opset=op.opset)
        self._place = place
        self._dropped = dropped

    def infer(self, data: TensorType, *rest: TensorType) -> TensorType:
        parts = (*self._place, *[slice(None)] * (len(data.shape) - len(self._place)))
        sizes = [
            dim if part == slice(None) else Dimension(len(range(dim.length)[part]))
            for dim, part in zip(data.shape, parts, strict=True)
        ]
        kept = [size for axis, size in enumerate(sizes) if axis not in self._dropped]
        return TensorType(data.element_type, PartialShape(kept))

    def run(self, data: Array, *rest: Array) -> Array:
        return data[self._place].squeeze(self._dropped)


def rewritten(op: Operator, data: PartialShape | None, constants: Sequence[Array | None]) -> Operator:
    """Return the replacement of an operation, for the shape of its first input and the inputs that are constant;
    the operation itself if nothing does."""
    if isinstance(op, GatherBase) and data is not None:
        return gather_as_view(op, data, constants) or op
    return op


def gather_as_view(op: GatherBase, data: PartialShape, constants: Sequence[Array | None]) -> View | None:
    """Return a view for a Gather with evenly spaced indices, which are a scalar or lie on one axis."""
    indices, axis = constants[1:]
    if indices is None or axis is None or not indices.size or indices.ndim > 1 or op.batch_dims or data.rank is None:
        return None
    where = op.normalize_axis(int(axis.item()), data.rank)
    size = data[where]
    positions = indices.reshape(-1).astype(np.int64)
    first, last = int(positions[0]), int(positions[-1])
    step = int(positions[1]) - first if len(positions) > 1 else 1
    lowest = -size.length if size.is_static and op.wraps else 0
    if not step or (np.diff(positions) != step).any() or not size.is_static or not lowest <= min(first, last):
        return None
    if max(first, last) >= size.length or (first < 0) != (last < 0):
        return None
    first %= size.length
    stop = first + step * len(positions)
    place = (*(slice(None),) * where, slice(first, stop if stop >= 0 else None, step))
    return View(op, place, () if indices.ndim else (where,))
