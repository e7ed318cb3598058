"""Functions of one input, in passes."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder
from ovir.fast.base.passes import bind_passes
from ovir.fast.registry import fast
from ovir.ops.unary import UnaryBase


@fast(UnaryBase)
def unary(op: UnaryBase, binder: Binder, *inputs: Array) -> bool:
    if inputs[0].dtype not in (np.float32, np.float64):
        return False
    bind_passes(binder, op.calls, *inputs, heavy=op.heavy)
    return True
