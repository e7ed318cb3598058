"""Powers by one number as products and roots."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, bind_elementwise
from ovir.fast.elementwise import binary
from ovir.fast.registry import fast
from ovir.ops.power import POWERS, Power, square_root


@fast(Power)
def power(op: Power, binder: Binder, *inputs: Array) -> bool:
    a, b = inputs
    if binder.is_constant(1) and b.size == 1 and b.ndim <= a.ndim and a.dtype in (np.float32, np.float64):
        simple = POWERS.get(float(b.item()))
        if simple is not None:
            function = simple if isinstance(simple, np.ufunc) else lambda x, out: simple(x, out=out)
            bind_elementwise(binder, function, a, heavy=simple is square_root)
            return True
    return binary(op, binder, *inputs)
