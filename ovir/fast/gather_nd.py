"""GatherND with constant indices, as copies."""

from __future__ import annotations

from ovir.fast.base.moves import bind_moves
from ovir.fast.registry import fast
from ovir.ops.gather_nd import GatherND8

fast(GatherND8)(bind_moves)
