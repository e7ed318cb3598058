"""Reversals, rolls, shuffles, and moves between spatial axes and batch or channels, as copies."""

from __future__ import annotations

from ovir.fast.base.moves import bind_moves
from ovir.fast.registry import fast
from ovir.ops.rearrange import BatchSpaceBase, DepthSpaceBase, Reverse, Roll, ShuffleChannels

fast(Reverse, Roll, ShuffleChannels, BatchSpaceBase, DepthSpaceBase)(bind_moves)
