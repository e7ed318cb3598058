"""Arithmetic of two inputs; powers by one number are products and roots."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import i8, u8
from ovir.core.fast_calls import Call, Spare, maximum, minimum
from ovir.fast.base.binder_protocol import Binder, bind_elementwise, is_real, output_like_largest
from ovir.fast.base.passes import call_passes
from ovir.fast.base.recorded import recorded
from ovir.fast.elementwise import bind_binary, direct
from ovir.fast.registry import fast, fast_kernel
from ovir.ops import arithmetic as ops
from ovir.ops.base.elementwise import HELD_IN_BYTES, BinaryBase


@fast(ops.Multiply, in_f32=True, by_element=True)
def multiply(op: ops.Multiply, binder: Binder, *inputs: Array) -> bool:
    return inputs[0].itemsize > 1 and bind_binary(op, binder, np.multiply, *inputs)


@fast_kernel(ops.Multiply)
def product(op: ops.Multiply) -> Callable[..., Array]:
    return op.run if {*op.input_types} & {i8, u8} else direct(op, np.multiply)


@fast(ops.Divide, in_f32=True, by_element=True)
def divide(op: ops.Divide, binder: Binder, *inputs: Array) -> bool:
    if not op.is_integral:
        return bind_binary(op, binder, np.divide, *inputs)
    return op.m_pythondiv and _bind_integers(op, binder, np.floor_divide, *inputs)


@fast_kernel(ops.Divide)
def quotient(op: ops.Divide) -> Callable[..., Array]:
    return direct(op, np.divide) if op.output_types and not op.is_integral else op.run


@fast(ops.SquaredDifference, in_f32=True, by_element=True)
def squared_difference(op: ops.SquaredDifference, binder: Binder, *inputs: Array) -> bool:
    return bind_binary(op, binder, _squared_difference, *inputs)


@fast(ops.Maximum, ops.Minimum, in_f32=True, by_element=True)
def choice(op: ops.Maximum | ops.Minimum, binder: Binder, *inputs: Array) -> bool:
    choose, b = maximum if isinstance(op, ops.Maximum) else minimum, inputs[1]
    has_no_nan = b.dtype.kind in "iu" or (binder.is_constant(1) and not np.isnan(b).any())
    return bind_binary(op, binder, choose if has_no_nan else partial(_chosen, choose), *inputs)


@fast_kernel(ops.Maximum, ops.Minimum)
def chosen(op: ops.Maximum | ops.Minimum) -> Callable[..., Array]:
    """Return a kernel that passes over NaN in ``b`` first, and then not over that in ``a``."""
    choose, skip = (np.maximum, np.fmax) if isinstance(op, ops.Maximum) else (np.minimum, np.fmin)
    return direct(op, lambda a, b: choose(a, skip(a, b)))


def _squared_difference(a: Array, b: Array, out: Array) -> None:
    np.subtract(a, b, out=out)
    np.square(out, out=out)


def _chosen(choose: Callable[[Array, Array, Array], object], a: Array, b: Array, out: Array) -> None:
    """Compute the maximum or minimum, which is ``a`` where ``b`` is NaN."""
    unordered = np.isnan(b)
    if unordered.any():
        largest = np.empty_like(out)
        choose(a, b, largest)
        np.copyto(out, np.where(unordered, a, largest))
    else:
        choose(a, b, out)


# --------------------------------------------------------------------------- remainders


@fast(ops.RemainderBase, in_f32=True, by_element=True)
def remainder(op: ops.RemainderBase, binder: Binder, *inputs: Array) -> bool:
    a, b = inputs[0], op.aligned(*inputs)
    is_floored = isinstance(op, ops.FloorMod)
    if is_real(a):
        call_passes(binder, recorded(op.of_reals), a, b, output_like_largest(binder, a, b))
    elif is_floored and _is_of_integers(op, a) and binder.is_constant(1) and b.size == 1 and b.all():
        # NumPy divides by one number 50 times faster than it computes remainders.
        passes = recorded(lambda a, b: a - np.floor_divide(a, b) * b)
        call_passes(binder, passes, a, b, output_like_largest(binder, a, b), heavy=False)
    else:
        return _bind_integers(op, binder, op.of_integers, a, b)
    return True


def _bind_integers(op: BinaryBase, binder: Binder, function: Callable[..., object], *inputs: Array) -> bool:
    """Bind a function of integers and the report of divisors of 0, which threads cannot make."""
    if not _is_of_integers(op, inputs[0]):
        return False
    if not (binder.is_constant(1) and inputs[1].all()):
        binder.call(ops.report_zeros, inputs[1])
    return bind_binary(op, binder, function, *inputs, heavy=True)


def _is_of_integers(op: BinaryBase, data: Array) -> bool:
    return data.dtype.kind in "iu" and not any(element_type in HELD_IN_BYTES for element_type in op.input_types)


# --------------------------------------------------------------------------- powers


@fast(ops.Power, in_f32=True, by_element=True)
def power(op: ops.Power, binder: Binder, *inputs: Array) -> bool:
    a, b = inputs
    if binder.is_constant(1) and b.size == 1 and b.ndim <= a.ndim and is_real(a):
        simple = _POWERS.get(float(b.item()))
        if simple is not None:
            bind_elementwise(binder, simple, a, heavy=simple is _square_root)
            return True
    if not is_real(a):
        return bind_binary(op, binder, lambda x, y, out: np.copyto(out, op.compute(x, y)), *inputs, heavy=True)
    b = op.aligned(a, b)
    call_passes(binder, _powers, a, b, output_like_largest(binder, a, b))
    return True


def _powers(a: Array, b: Array, y: Array, spare: Spare) -> list[Call]:
    return [(np.power, (a, b, y)), (_mend_roots, (a, b, y))]


def _mend_roots(a: Array, b: Array, y: Array) -> None:
    """Let the root of -0 be 0 and that of negative infinity be infinite, as for other powers."""
    is_root = b == 0.5
    if is_root.any():
        np.copyto(y, np.where(np.isneginf(a), np.inf, y + 0), "same_kind", is_root)


def _square_root(x: Array, out: Array) -> object:
    # As a power, the root of -0 is 0 and the root of negative infinity is infinite, so signed inputs are searched for
    # first.
    if x.size and x.view(f"i{x.itemsize}").min() >= 0:
        return np.sqrt(x, out=out)
    np.add(x, 0, out=out)
    np.copyto(out, np.inf, where=out == -np.inf)
    return np.sqrt(out, out=out)


_POWERS: dict[float, Callable[..., object]] = {
    -1.0: lambda x, out: np.divide(1, x, out=out),
    0.5: _square_root,
    1.0: np.positive,
    2.0: np.square,
    3.0: lambda x, out: np.multiply(np.square(x), x, out=out),
}
