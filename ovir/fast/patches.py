"""ExtractImagePatches as copies between views."""

from __future__ import annotations

from ovir.fast.base.moves import bind_moves
from ovir.fast.registry import fast
from ovir.ops.patches import ExtractImagePatches

fast(ExtractImagePatches)(bind_moves)
