"""IsFinite, IsInf and IsNaN, each as one call."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder, bind_elementwise, is_real
from ovir.fast.registry import fast
from ovir.ops.comparison import FloatTestBase, IsFinite, IsInf, IsNaN


@fast(FloatTestBase, in_f32=True, by_element=True)
def float_test(op: FloatTestBase, binder: Binder, *inputs: Array) -> bool:
    if not is_real(inputs[0]):
        return False
    if isinstance(op, IsInf) and not (op.detect_negative and op.detect_positive):
        bind_elementwise(binder, lambda x, out: np.copyto(out, op.compute(x)), *inputs)
    else:
        bind_elementwise(binder, _FUNCTIONS[type(op)], *inputs)
    return True


_FUNCTIONS: dict[type[FloatTestBase], np.ufunc] = {IsFinite: np.isfinite, IsInf: np.isinf, IsNaN: np.isnan}
