"""OneHot, written into its output."""

from __future__ import annotations

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder
from ovir.fast.registry import fast
from ovir.ops.generate import OneHot1


@fast(OneHot1)
def one_hot(op: OneHot1, binder: Binder, indices: Array, depth: Array, on_value: Array, off_value: Array) -> bool:
    if not binder.is_constant(1):
        return False
    binder.call(op.fill, indices, on_value, off_value, binder.output())
    return True
