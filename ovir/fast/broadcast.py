"""Tile with constant repeats and Broadcast to a constant shape, as copies or a view."""

from __future__ import annotations

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder
from ovir.fast.base.moves import bind_copy, bind_moves
from ovir.fast.registry import fast
from ovir.ops.broadcast import Broadcast3, Tile

fast(Tile)(bind_moves)


@fast(Broadcast3)
def broadcast(op: Broadcast3, binder: Binder, data: Array, *others: Array) -> bool:
    if not all(map(binder.is_constant, range(1, 1 + len(others)))) or data.dtype.kind == "T":
        return False
    aligned, _ = op.shapes(data.shape, *others)
    bind_copy(binder, data.reshape(aligned), binder.output())
    return True
