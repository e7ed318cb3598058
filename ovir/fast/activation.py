"""Activations, in passes that are recorded from their formulas."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, isfinite

import numpy as np

from ovir.core.arrays import Array
from ovir.core.fast_calls import Call, Passes, Spare, clip
from ovir.fast.base.binder_protocol import NATIVE_REALS, Binder, is_real, others_are_constant, tiled
from ovir.fast.base.coalesce import memory_order
from ovir.fast.base.passes import bind_passes, call_passes
from ovir.fast.base.recorded import recorded
from ovir.fast.base.tables import bind_table
from ovir.fast.elementwise import in_reals
from ovir.fast.registry import fast, fast_kernel
from ovir.kernels.erf import gelu32
from ovir.ops import activation as ops
from ovir.ops.base.elementwise import HELD_IN_BYTES

fast_kernel(ops.ActivationBase)(in_reals)

_LIGHT = (ops.HSigmoid, ops.HSwish, ops.SoftSign)
"""Activations without exponentials or the like."""


@fast(ops.ActivationBase, in_f32=True, by_element=True)
def activation(op: ops.ActivationBase, binder: Binder, *inputs: Array) -> bool:
    data, *others = inputs
    is_native = is_real(data) or (data.dtype.kind in "iu" and op.input_types[0] not in HELD_IN_BYTES)
    if isinstance(op, ops.ReLU | ops.Clamp) and is_native:
        largest = inf if is_real(data) else np.iinfo(data.dtype).max
        low, high = op.ends(op.output_types[0]) if isinstance(op, ops.Clamp) else (0, largest)
        bind_passes(binder, recorded(lambda x: np.clip(x, low, high)), data, heavy=False)
        return True
    if not is_real(data):
        return bind_table(op, binder, inputs)
    if not others_are_constant(binder):
        return False
    is_by_erf = isinstance(op, ops.Gelu2) and op.approximation_mode == "erf"
    if is_by_erf and data.dtype == np.float64:
        return False
    parameters = [op.alpha] if isinstance(op, ops.Elu) else [array.item() for array in others if array.size == 1]
    if not all(map(isfinite, parameters)):
        return False  # Elu and Selu choose elements then
    if isinstance(op, ops.HardSigmoid):
        passes = recorded(lambda x: op.clipped(x, *others))
        bind_passes(binder, lambda x, y, spare: [*passes(x, y, spare), (_nan_is_one, (y,))], data, heavy=False)
        return True
    formula = gelu32 if is_by_erf else lambda x: op.compute(x, *others)
    bind_passes(binder, recorded(formula), data, heavy=not isinstance(op, _LIGHT))
    return True


@fast_kernel(ops.Clamp)
def clamped(op: ops.Clamp) -> Callable[..., Array]:
    """Return a kernel that only calls NumPy's clip, for types that it computes in."""
    if not op.input_types or op.input_types[0] not in NATIVE_REALS:
        return op.run
    with np.errstate(over="ignore"):  # an end beyond the range of f32 becomes infinite
        low, high = (np.array(end, op.input_types[0].to_dtype()) for end in (op.min, op.max))

    def run(data: Array) -> Array:
        out = np.empty_like(data)
        clip(data, low, high, out)
        return out

    return run


def _nan_is_one(y: Array) -> None:
    """Replace NaN by 1; ``np.fmin`` of an array and a number takes as long as all other passes together."""
    if np.isnan(np.maximum.reduce(y, None)):
        np.copyto(y, 1, where=np.isnan(y))


# --------------------------------------------------------------------------- PReLU


@fast(ops.PReLU, in_f32=True)
def prelu(op: ops.PReLU, binder: Binder, *inputs: Array) -> bool:
    data, slope = inputs
    if not binder.is_constant(1):
        return False
    if data.dtype.kind in "iu":
        if bind_table(op, binder, inputs):
            return True
        slope = ops.aligned(slope.astype(np.float64), data.ndim, data.shape)
        passes = partial(_rounded_passes, _leaky_passes(slope))
        call_passes(binder, passes, data, tiled(slope, data), binder.output(order=memory_order(data)))
        return True
    if not is_real(data):
        return False
    slope = ops.aligned(slope.astype(data.dtype), data.ndim, data.shape)
    bind_passes(binder, _leaky_passes(slope), data, tiled(slope, data), heavy=False)
    return True


def _rounded_passes(passes: Passes, x: Array, slope: Array, y: Array, spare: Spare) -> list[Call]:
    """Return passes of real numbers for integers, with their conversion and the rounding."""
    wide, result = spare(np.float64), spare(np.float64)
    return [
        (np.copyto, (wide, x)),
        *passes(wide, slope, result, spare),
        (np.rint, (result, result)),
        (np.copyto, (y, result, "unsafe")),
    ]


# Selecting by a mask is many times slower in NumPy than any of these, so only slopes that need it use it.
def _leaky_passes(slope: Array) -> Passes:
    values = slope.astype(np.float64)
    if not np.isfinite(values).all():
        return lambda x, slope, y, spare: [(_select, (x, slope, y))]
    if values.all():  # 0 * inf would occur otherwise
        if (values <= 1).all():
            return recorded(lambda x, slope: np.maximum(x, x * slope))
        if (values >= 1).all():
            return recorded(lambda x, slope: np.minimum(x, x * slope))
    return recorded(lambda x, slope: np.clip(x, -inf, 0) * slope + np.clip(x, 0, inf))


def _select(x: Array, slope: Array, y: Array) -> None:
    np.copyto(y, np.where(x >= 0, x, x * slope))
