"""Conversions in one pass, or by a table of all numbers of a small type."""

from __future__ import annotations

import numpy as np

from ovir.core import element_types as t
from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder, call_elementwise
from ovir.fast.base.coalesce import memory_order
from ovir.fast.base.moves import cast
from ovir.fast.base.passes import call_passes
from ovir.fast.base.tables import bind_table
from ovir.fast.registry import fast
from ovir.ops.convert import Convert, ConvertLike, fill_converted

_NATIVE = {t.boolean, t.i8, t.i16, t.i32, t.i64, t.u8, t.u16, t.u32, t.u64, t.f32, t.f64}
"""Types that NumPy converts fast."""


@fast(Convert, ConvertLike)
def conversion(op: Convert | ConvertLike, binder: Binder, *inputs: Array) -> bool:
    data, source, target = inputs[0], op.input_types[0], op.output_types[0]
    if source == target:
        binder.view(data)
        return True
    if source == t.string:
        return False  # ``run`` refuses it
    is_native = {source, target} <= _NATIVE
    is_slow = t.f16 in (source, target) or not {source, target} <= {*_NATIVE, t.bf16}
    if is_slow and target.bits <= 16 and bind_table(op, binder, inputs):
        return True
    out = binder.output(order=memory_order(data))
    if not is_native:
        call_passes(binder, lambda x, y, spare: [(fill_converted, (x, source, target, y))], data, out)
    elif target == t.boolean:
        call_elementwise(binder, np.not_equal, data, np.zeros((), data.dtype), out)
    elif target.is_integral and source.is_real:
        call_elementwise(binder, lambda x, y: fill_converted(x, source, target, y), data, out)
    else:
        call_elementwise(binder, cast, data, out)
    return True
