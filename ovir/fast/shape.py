"""Reshape, Squeeze and Unsqueeze of inputs whose elements must be copied, because no view has the new shape."""

from __future__ import annotations

from ovir.fast.base.moves import bind_reshaped
from ovir.fast.registry import fast
from ovir.ops.shape import AxesBase, Reshape

fast(Reshape, AxesBase)(bind_reshaped)
