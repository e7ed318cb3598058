"""Elementwise operations of two inputs, as one call; functions of real numbers in unbound steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import NATIVE, NATIVE_REALS, Binder, bind_elementwise, is_native, tiled
from ovir.fast.registry import fast, fast_kernel
from ovir.kernels.precision import forwards
from ovir.ops.base.elementwise import HELD_IN_BYTES, BinaryBase


@fast(BinaryBase, in_f32=True, by_element=True)
def binary(op: BinaryBase, binder: Binder, *inputs: Array) -> bool:
    function = getattr(type(op), "function", None)
    return function is not None and bind_binary(op, binder, function, *inputs)


def bind_binary(
    op: BinaryBase, binder: Binder, function: Callable[..., object], *inputs: Array, heavy: bool = False
) -> bool:
    """Bind ``function(a, b, out)``; return False for types that NumPy does not compute in."""
    if any(element_type in HELD_IN_BYTES for element_type in op.input_types):
        return False  # NumPy would not wrap around as these types do
    a, b = inputs[0], op.aligned(*inputs)
    if not is_native(a):
        return False
    if binder.is_constant(1) and a.shape == binder.output_shape():
        b = tiled(b, a)
    elif binder.is_constant(0) and b.shape == binder.output_shape():
        a = tiled(a, b)
    bind_elementwise(binder, function, a, b, heavy=heavy)
    return True


@fast_kernel(BinaryBase)
def one_function(op: BinaryBase) -> Callable[..., Array]:
    function = getattr(type(op), "function", None)
    return op.run if function is None else direct(op, function)


def direct(op: BinaryBase, function: Callable[..., Array]) -> Callable[..., Array]:
    """Return a kernel that only calls a function that is exact, so that strides in any direction give the same; ``run``
    where inputs may have to be aligned or converted."""
    if op.auto_broadcast != "numpy" or not op.input_types or not NATIVE.issuperset(op.input_types):
        return op.run
    return lambda a, b: np.asarray(function(a, b))


def in_reals(op: Any) -> Callable[..., Array]:
    """Return a kernel that only calls ``compute`` of a function of real numbers, for types that NumPy computes in;
    ``run`` for others."""
    if not op.input_types or not NATIVE_REALS.issuperset(op.input_types):
        return op.run  # type: ignore[no-any-return]
    return lambda data, *parameters: np.asarray(op.compute(forwards(data), *parameters))
