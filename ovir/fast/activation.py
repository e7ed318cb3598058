"""Activations, in passes.

Passes clip even where one bound is infinite, because that is three times faster than ``np.maximum`` of an array and a
number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, isfinite, pi, sqrt
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.fast_calls import Call, Passes, Spare, clip, maximum, minimum, number
from ovir.fast.base.binder_protocol import Binder, is_real, tiled
from ovir.fast.base.coalesce import memory_order
from ovir.fast.base.erf import gelu_passes
from ovir.fast.base.passes import bind_passes, call_passes
from ovir.fast.base.tables import bind_table
from ovir.fast.registry import fast
from ovir.ops.activation import (
    ActivationBase,
    Clamp,
    Elu,
    Gelu2,
    Gelu7,
    HardSigmoid,
    HSigmoid,
    HSwish,
    Mish,
    PReLU,
    ReLU,
    Selu,
    Sigmoid,
    SoftPlus,
    SoftSign,
    Swish,
    Tanh,
    aligned,
)
from ovir.ops.base.elementwise import HELD_IN_BYTES

_LIGHT = (ReLU, Clamp, HSigmoid, HSwish, HardSigmoid, SoftSign)
"""Activations without exponentials or the like."""

Maker = Callable[..., list[Call]]
"""``maker(op, parameters, x, y, spare)`` returns the passes of an operation; parameters are the numbers of its further
inputs."""
_makers: dict[type[ActivationBase], Maker] = {}


def _passes_of(operation: Any) -> Callable[[Maker], Maker]:
    def add(maker: Maker) -> Maker:
        _makers[operation] = maker
        return maker

    return add


@fast(ActivationBase, in_f32=True, by_element=True)
def activation(op: ActivationBase, binder: Binder, *inputs: Array) -> bool:
    data, *others = inputs
    if data.dtype.kind in "iu" and isinstance(op, ReLU | Clamp) and op.input_types[0] not in HELD_IN_BYTES:
        low, high = op.ends(op.output_types[0]) if isinstance(op, Clamp) else (0, np.iinfo(data.dtype).max)
        bind_passes(binder, lambda x, y, spare: [_clip(x, low, high, y)], data, heavy=False)
        return True
    if not is_real(data):
        return bind_table(op, binder, inputs)
    if not all(map(binder.is_constant, range(1, len(inputs)))):
        return False
    maker = next(_makers[cls] for cls in type(op).__mro__ if cls in _makers)
    parameters = [float(array.item()) for array in others]
    if not all(map(isfinite, parameters)):
        return False
    bind_passes(binder, partial(maker, op, parameters), data, heavy=not isinstance(op, _LIGHT))
    return True


@_passes_of(ReLU)
def _relu(op: ReLU, _: list[float], x: Array, y: Array, spare: Spare) -> list[Call]:
    return [_clip(x, 0, inf, y)]


@_passes_of(Clamp)
def _clamp(op: Clamp, _: list[float], x: Array, y: Array, spare: Spare) -> list[Call]:
    return [_clip(x, op.min, op.max, y)]


@_passes_of(Sigmoid)
def _sigmoid(op: Sigmoid, _: list[float], x: Array, y: Array, spare: Spare) -> list[Call]:
    return sigmoid_passes(x, y, spare)


def sigmoid_passes(x: Array, y: Array, spare: Spare) -> list[Call]:
    """Return the passes that fill y with 1 / (1 + e^-x)."""
    one = number(1, x)
    return [
        (np.negative, (x, y)),
        (np.exp, (y, y)),
        (np.add, (y, one, y)),
        (np.divide, (one, y, y)),  # NumPy's reciprocal takes twice as long
    ]


@_passes_of(Tanh)
def _tanh(op: Tanh, _: list[float], x: Array, y: Array, spare: Spare) -> list[Call]:
    return [(np.tanh, (x, y))]


@_passes_of(HSigmoid)
def _hsigmoid(op: HSigmoid, _: list[float], x: Array, y: Array, spare: Spare) -> list[Call]:
    return [(np.add, (x, number(3, x), y)), _clip(y, 0, 6, y), (np.divide, (y, number(6, x), y))]


@_passes_of(HSwish)
def _hswish(op: HSwish, _: list[float], x: Array, y: Array, spare: Spare) -> list[Call]:
    return [
        (np.add, (x, number(3, x), y)),
        _clip(y, 0, 6, y),
        (np.multiply, (x, y, y)),
        (np.divide, (y, number(6, x), y)),
    ]


@_passes_of(HardSigmoid)
def _hard_sigmoid(op: HardSigmoid, parameters: list[float], x: Array, y: Array, spare: Spare) -> list[Call]:
    alpha, beta = parameters
    return [
        (np.multiply, (x, number(alpha, x), y)),
        (np.add, (y, number(beta, x), y)),
        _clip(y, 0, 1, y),
        (_nan_is_one, (y,)),
    ]


def _nan_is_one(y: Array) -> None:
    """Replace NaN by 1; ``np.fmin`` of an array and a number takes as long as all other passes together."""
    if np.isnan(np.maximum.reduce(y, None)):
        np.copyto(y, 1, where=np.isnan(y))


@_passes_of(Elu)
def _elu(op: Elu, _: list[float], x: Array, y: Array, spare: Spare) -> list[Call]:
    return _exponential_unit(x, y, spare, op.alpha)


@_passes_of(Selu)
def _selu(op: Selu, parameters: list[float], x: Array, y: Array, spare: Spare) -> list[Call]:
    alpha, scale = parameters
    return [*_exponential_unit(x, y, spare, alpha), (np.multiply, (y, number(scale, x), y))]


@_passes_of(Swish)
def _swish(op: Swish, parameters: list[float], x: Array, y: Array, spare: Spare) -> list[Call]:
    (beta,) = parameters or [1.0]
    return [
        (np.multiply, (x, number(-beta, x), y)),
        (np.exp, (y, y)),
        (np.add, (y, number(1, x), y)),
        (np.divide, (x, y, y)),
    ]


@_passes_of(Mish)
def _mish(op: Mish, _: list[float], x: Array, y: Array, spare: Spare) -> list[Call]:
    # With n = e^x (e^x + 2), the tanh equals n / (n + 2), which is 1 in every type from x = 40 on.
    two, more = number(2, x), spare()
    return [
        _clip(x, -inf, 40, y),
        (np.exp, (y, y)),
        (np.add, (y, two, more)),
        (np.multiply, (y, more, y)),
        (np.add, (y, two, more)),
        (np.divide, (y, more, y)),
        (np.multiply, (x, y, y)),
    ]


@_passes_of(SoftPlus)
def _softplus(op: SoftPlus, _: list[float], x: Array, y: Array, spare: Spare) -> list[Call]:
    return [
        _clip(x, -inf, 40, y),
        (np.exp, (y, y)),
        (np.add, (y, number(1, x), y)),
        (np.log, (y, y)),
        (maximum, (x, y, y)),
    ]


@_passes_of(SoftSign)
def _softsign(op: SoftSign, _: list[float], x: Array, y: Array, spare: Spare) -> list[Call]:
    return [(np.absolute, (x, y)), (np.add, (y, number(1, x), y)), (np.divide, (x, y, y))]


@_passes_of(Gelu2)
def _gelu2(op: Gelu2, _: list[float], x: Array, y: Array, spare: Spare) -> list[Call]:
    return gelu_passes(x, y, spare)


@_passes_of(Gelu7)
def _gelu7(op: Gelu7, _: list[float], x: Array, y: Array, spare: Spare) -> list[Call]:
    if op.approximation_mode == "erf":
        return gelu_passes(x, y, spare)
    # (1 + tanh(t)) / 2 is 1 / (1 + e^(-2t)), which is faster and does not cancel where x is negative.
    return [
        (np.multiply, (x, x, y)),
        (np.multiply, (y, number(-2 * 0.044715 * sqrt(2 / pi), x), y)),
        (np.subtract, (y, number(2 * sqrt(2 / pi), x), y)),
        (np.multiply, (x, y, y)),
        (np.exp, (y, y)),
        (np.add, (y, number(1, x), y)),
        (np.divide, (x, y, y)),
    ]


def _clip(x: Array, low: float, high: float, y: Array) -> Call:
    return clip, (x, number(low, x), number(high, x), y)


def _exponential_unit(x: Array, y: Array, spare: Spare, alpha: float) -> list[Call]:
    passes: list[Call] = [_clip(x, -inf, 0, y), (np.exp, (y, y)), (np.subtract, (y, number(1, x), y))]
    if alpha != 1:
        passes.append((np.multiply, (y, number(alpha, x), y)))
    if 0 <= alpha <= 1:  # x is then the smaller of the two where it is negative
        return [*passes, (maximum, (x, y, y))]
    above = spare()
    return [*passes, _clip(x, 0, inf, above), (np.add, (y, above, y))]


# --------------------------------------------------------------------------- PReLU


@fast(PReLU, in_f32=True)
def prelu(op: PReLU, binder: Binder, *inputs: Array) -> bool:
    data, slope = inputs
    if not binder.is_constant(1):
        return False
    if data.dtype.kind in "iu":
        if bind_table(op, binder, inputs):
            return True
        slope = aligned(slope.astype(np.float64), data.ndim, data.shape)
        passes = partial(_rounded_passes, _leaky_passes(slope))
        call_passes(binder, passes, data, tiled(slope, data), binder.output(order=memory_order(data)))
        return True
    if not is_real(data):
        return False
    slope = aligned(slope.astype(data.dtype), data.ndim, data.shape)
    bind_passes(binder, _leaky_passes(slope), data, tiled(slope, data), heavy=False)
    return True


def _rounded_passes(passes: Passes, x: Array, slope: Array, y: Array, spare: Spare) -> list[Call]:
    """Return passes of real numbers for integers, with their conversion and the rounding."""
    wide, result = spare(np.float64), spare(np.float64)
    return [
        (np.copyto, (wide, x)),
        *passes(wide, slope, result, partial(spare, np.float64)),
        (np.rint, (result, result)),
        (np.copyto, (y, result, "unsafe")),
    ]


# Selecting by a mask is many times slower in NumPy than any of these, so only slopes that need it use it.
def _leaky_passes(slope: Array) -> Passes:
    values = slope.astype(np.float64)
    if not np.isfinite(values).all():
        return _leaky_selected
    if values.all():  # 0 * inf would occur otherwise
        if (values <= 1).all():
            return partial(_leaky_chosen, maximum)
        if (values >= 1).all():
            return partial(_leaky_chosen, minimum)
    return _leaky_sum


def _leaky_chosen(choose: Callable[..., object], x: Array, slope: Array, y: Array, spare: Spare) -> list[Call]:
    return [(np.multiply, (x, slope, y)), (choose, (x, y, y))]


def _leaky_sum(x: Array, slope: Array, y: Array, spare: Spare) -> list[Call]:
    above, zero = spare(), number(0, x)
    return [
        (clip, (x, number(-inf, x), zero, y)),
        (np.multiply, (y, slope, y)),
        (clip, (x, zero, number(inf, x), above)),
        (np.add, (y, above, y)),
    ]


def _leaky_selected(x: Array, slope: Array, y: Array, spare: Spare) -> list[Call]:
    return [(_select, (x, slope, y))]


def _select(x: Array, slope: Array, y: Array) -> None:
    np.copyto(y, np.where(x >= 0, x, x * slope))
