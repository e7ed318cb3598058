"""Scatter operations, which write into their data where nothing reads it afterwards."""

from __future__ import annotations

from ovir.fast.base.moves import bind_written
from ovir.fast.registry import fast
from ovir.ops.scatter import ScatterBase

fast(ScatterBase)(bind_written)
