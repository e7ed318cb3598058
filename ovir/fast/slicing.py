"""SliceScatter, which writes into its data where nothing reads it afterwards."""

from __future__ import annotations

from ovir.fast.base.moves import bind_written
from ovir.fast.registry import fast
from ovir.ops.slicing import SliceScatter

fast(SliceScatter)(bind_written)
