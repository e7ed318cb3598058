"""Select: masked copies or, for many elements, operations on their bits."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder, call_elementwise, output_like_largest
from ovir.fast.registry import fast
from ovir.ops.select import Select

_FEW = 1 << 12
"""Elements up to which a masked copy is fast, however irregular the mask."""


@fast(Select)
def select(op: Select, binder: Binder, *inputs: Array) -> bool:
    cond, then, other = inputs
    other, cond = op.aligned(then, other), op.aligned(then, cond)
    shape = binder.output_shape()
    if cond.size > 1 and prod(shape) > _FEW:
        return _bind_bits(op, binder, cond, then, other)
    if other.shape == shape and binder.may_overwrite(2):
        out = binder.overwrite(2)
    else:
        out = output_like_largest(binder, then, other)
    if cond.size == 1:
        binder.call(lambda: np.copyto(out, then if cond else other))
        return True
    if out is not other:
        binder.call(np.copyto, out, other)
    binder.call(np.copyto, out, then, "no", cond)
    return True


def _bind_bits(op: Select, binder: Binder, cond: Array, then: Array, other: Array) -> bool:
    """Bind the selection by bits: z = y ^ ((x ^ y) & mask)."""
    shape, bits = binder.output_shape(), np.dtype(f"i{then.dtype.itemsize}")
    out = output_like_largest(binder, then, other, cond)
    mask = binder.scratch(cond.shape, bits)
    binder.call(np.copyto, mask, cond)
    binder.call(np.negative, mask, mask)
    x, y, z = then.view(bits), other.view(bits), out.view(bits)
    both = np.broadcast_shapes(then.shape, other.shape)
    changed = z if both == shape else binder.scratch(both, bits)
    call_elementwise(binder, np.bitwise_xor, x, y, changed)
    call_elementwise(binder, np.bitwise_and, changed, mask, z)
    call_elementwise(binder, np.bitwise_xor, z, y, z)
    return True
