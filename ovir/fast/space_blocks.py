"""Blocks of space and batch, as copies."""

from __future__ import annotations

from ovir.fast.base.moves import bind_moves
from ovir.fast.registry import fast
from ovir.ops.space_blocks import BatchSpaceBase, DepthSpaceBase

fast(BatchSpaceBase, DepthSpaceBase)(bind_moves)
