"""Elementwise functions of one input: one NumPy call over the input, or several for Erf."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.fast_calls import Call, Spare
from ovir.fast.base.binder_protocol import Binder
from ovir.fast.base.coalesce import memory_order
from ovir.fast.base.passes import bind_passes, call_passes
from ovir.fast.base.recorded import recorded
from ovir.fast.base.tables import bind_table
from ovir.fast.elementwise import in_reals
from ovir.fast.registry import fast, fast_kernel
from ovir.kernels.erf import erf32
from ovir.ops.unary import Erf, ExactUnaryBase, Round, RoundingBase, Sign, UnaryBase

fast_kernel(UnaryBase)(in_reals)


@fast(UnaryBase, in_f32=True, by_element=True)
def unary(op: UnaryBase, binder: Binder, *inputs: Array) -> bool:
    def passes(x: Array, y: Array, spare: Spare) -> list[Call]:
        return [(type(op).function, (x, y))]

    is_exact, dtype = isinstance(op, ExactUnaryBase), inputs[0].dtype
    is_integral = is_exact and not isinstance(op, RoundingBase) and dtype.kind in "iu"
    if dtype not in (np.float32, np.float64) and not (is_integral and dtype.itemsize > 1):  # 8 bits saturate
        return not is_exact and bind_table(op, binder, inputs)
    if isinstance(op, Sign):  # in place, NumPy takes ten times as long
        call_passes(binder, passes, *inputs, binder.output(order=memory_order(inputs[0])), heavy=False)
    else:
        bind_passes(binder, passes, *inputs, heavy=not is_exact)
    return True


@fast(Round, in_f32=True, by_element=True)
def round_(op: Round, binder: Binder, *inputs: Array) -> bool:
    return op.mode == "half_to_even" and unary(op, binder, *inputs)


@fast(Erf, in_f32=True, by_element=True)
def erf(op: Erf, binder: Binder, *inputs: Array) -> bool:
    if inputs[0].dtype != np.float32:
        return unary(op, binder, *inputs)
    bind_passes(binder, recorded(erf32), *inputs)
    return True
