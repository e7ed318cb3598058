"""Elementwise operations of two inputs, as one call."""

from __future__ import annotations

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, bind_elementwise, tiled
from ovir.fast.registry import fast
from ovir.kernels.precision import native_dtype
from ovir.ops.base.elementwise import HELD_IN_BYTES, BinaryBase


@fast(BinaryBase)
def binary(op: BinaryBase, binder: Binder, *inputs: Array) -> bool:
    if any(element_type in HELD_IN_BYTES for element_type in op.input_types):
        return False  # NumPy would not wrap around as these types do
    a, b = inputs[0], op.aligned(*inputs)
    function = op.bound_function(inputs, binder.is_constant)
    if function is None or native_dtype(a.dtype) != a.dtype:
        return False
    if binder.is_constant(1) and a.shape == binder.output_shape():
        b = tiled(b, a)
    elif binder.is_constant(0) and b.shape == binder.output_shape():
        a = tiled(a, b)
    bind_elementwise(binder, function, a, b, heavy=op.heavy)
    return True
