"""Conversions in one pass, or by a table of all numbers of a small type."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import (
    bf16,
    boolean,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    string,
    u8,
    u16,
    u32,
    u64,
)
from ovir.fast.base.binder_protocol import Binder, call_elementwise
from ovir.fast.base.coalesce import memory_order
from ovir.fast.base.moves import cast
from ovir.fast.base.passes import call_passes
from ovir.fast.base.tables import bind_table
from ovir.fast.registry import fast
from ovir.ops.convert import Convert, ConvertLike, fill_converted

_NATIVE = {boolean, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64}
"""Types that NumPy converts fast."""


@fast(Convert, ConvertLike)
def conversion(op: Convert | ConvertLike, binder: Binder, *inputs: Array) -> bool:
    data, source, target = inputs[0], op.input_types[0], op.output_types[0]
    if source == target:
        binder.view(data)
        return True
    if string in (source, target) or target.is_dynamic:
        return False
    is_native = {source, target} <= _NATIVE
    is_slow = f16 in (source, target) or not {source, target} <= {*_NATIVE, bf16}
    if is_slow and target.bits <= 16 and bind_table(op, binder, inputs):
        return True
    out = binder.output(order=memory_order(data))
    if not is_native:
        call_passes(binder, lambda x, y, spare: [(fill_converted, (x, source, target, y))], data, out)
    elif target == boolean:
        call_elementwise(binder, np.not_equal, data, np.zeros((), data.dtype), out)
    elif target.is_integral and source.is_real:
        call_elementwise(binder, lambda x, y: fill_converted(x, source, target, y), data, out)
    else:
        call_elementwise(binder, cast, data, out)
    return True
