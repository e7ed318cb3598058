"""PReLU as two passes."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, tiled
from ovir.fast.base.passes import bind_passes
from ovir.fast.registry import fast
from ovir.ops.prelu import PReLU, aligned, leaky_passes


@fast(PReLU)
def p_re_lu(op: PReLU, binder: Binder, *inputs: Array) -> bool:
    data, slope = inputs
    if data.dtype not in (np.float32, np.float64) or not binder.is_constant(1):
        return False
    slope = aligned(slope.astype(data.dtype), data.ndim, data.shape)
    bind_passes(binder, leaky_passes(slope), data, tiled(slope, data), heavy=False)
    return True
