"""Conversions in one pass, or by a table of all numbers of a small type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovir.core import element_types as t
from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import NATIVE, Binder, call_elementwise
from ovir.fast.base.coalesce import memory_order
from ovir.fast.base.moves import cast
from ovir.fast.base.passes import call_passes
from ovir.fast.base.tables import bind_table
from ovir.fast.registry import fast, fast_kernel
from ovir.ops.convert import Convert, ConvertLike, fill_converted


@fast(Convert, ConvertLike)
def conversion(op: Convert | ConvertLike, binder: Binder, *inputs: Array) -> bool:
    data, source, target = inputs[0], op.input_types[0], op.output_types[0]
    if source == target:
        binder.view(data)
        return True
    if source == t.string:
        return False  # ``run`` refuses it
    is_native = {source, target} <= NATIVE
    is_slow = t.f16 in (source, target) or not {source, target} <= {*NATIVE, t.bf16}
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


@fast_kernel(Convert, ConvertLike)
def cast_native(op: Convert | ConvertLike) -> Callable[..., Array]:
    if not (op.input_types and NATIVE.issuperset((op.input_types[0], op.output_types[0]))):
        return op.run
    if op.input_types[0].is_real and op.output_types[0].is_integral:
        return op.run
    dtype = op.output_types[0].to_dtype()
    return lambda data, *like: data.astype(dtype)
