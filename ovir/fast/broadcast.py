"""Tile with constant repeats, as copies or a view."""

from __future__ import annotations

from ovir.fast.base.moves import bind_moves
from ovir.fast.registry import fast
from ovir.ops.broadcast import Tile

fast(Tile)(bind_moves)
