"""IsFinite, IsInf and IsNaN, each as one call."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, bind_elementwise
from ovir.fast.registry import fast
from ovir.ops.comparison import FloatTestBase


@fast(FloatTestBase, in_f32=True, by_element=True)
def float_test(op: FloatTestBase, binder: Binder, *inputs: Array) -> bool:
    if inputs[0].dtype not in (np.float32, np.float64):
        return False
    bind_elementwise(binder, lambda x, out: np.copyto(out, op.compute(x)), *inputs)
    return True
