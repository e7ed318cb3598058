"""Resizing of axes: the source positions and weights of each element, and their sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ovir.core.arrays import Array
from ovir.kernels.precision import compute_dtype, fill_saturated, integer_range
from ovir.kernels.rounding import round_half_away

Index = NDArray[np.int64]
Floats = NDArray[Any]

COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")


@dataclass(frozen=True)
class Method:
    """The method of interpolation: the attributes of the operation that define it."""

    mode: str
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    antialias: bool = False
    cube_coeff: float = -0.75

    @property
    def is_pillow(self) -> bool:
        return self.mode.endswith("_pillow")


@dataclass(frozen=True)
class Taps:
    """Taps of an axis: ``out[i] = sum over k of data[index[k, i]] * weight[k, i]``. Nearest mode has one tap without
    weight.

    ``unit`` holds the weights divided by their sum if the mode asks for it, else ``weight`` itself. The reference
    multiplies all weights by ``gain`` before dividing, which can decide how an integer is rounded.
    """

    index: Index
    weight: Floats
    unit: Floats
    gain: float = 1.0

    @property
    def length(self) -> int:
        return int(self.index.shape[1])


@lru_cache(maxsize=256)
def taps(method: Method, size: int, length: int, scale: float) -> Taps:
    """Return the taps that resize an axis of ``size`` (not 0) to ``length``, scaled by ``scale``.

    ``method.antialias`` must tell whether antialiasing applies: it does if some axis shrinks.
    """
    ratio = np.float32(scale)
    if method.is_pillow:
        found = _pillow(method, size, length)
    else:
        position = _positions(method.coordinates, size, length, ratio)
        if method.mode == "nearest":
            index = _ROUNDING[method.nearest](position, bool(ratio < 1)).astype(np.int64)
            none = np.ones((1, length), np.float32)
            found = Taps(np.clip(index, 0, size - 1)[np.newaxis], none, none)
        elif method.mode == "linear":
            found = _linear(position, size, ratio, method.antialias)
        elif method.mode == "linear_onnx":
            found = _linear_onnx(position, size)
        else:
            found = _cubic(position, size, np.float32(method.cube_coeff))
    for array in (found.index, found.weight, found.unit):
        array.flags.writeable = False  # the cached result is shared
    return found


def _positions(mode: str, size: int, length: int, scale: np.float32) -> Floats:
    """Return the input position of each output element; an axis that keeps its length keeps its positions."""
    x = np.arange(length, dtype=np.float32)
    if length == size:
        return x
    if mode == "asymmetric":
        return x / scale
    if mode == "tf_half_pixel_for_nn":
        return (x + np.float32(0.5)) / scale
    if mode == "align_corners":
        return x * np.float32(size - 1) / np.float32(max(length - 1, 1))
    if mode == "pytorch_half_pixel" and length == 1:
        return x
    return (x + np.float32(0.5)) / scale - np.float32(0.5)


def _round_half_down(x: Floats) -> Floats:
    whole = np.trunc(x)
    return np.where(x == whole + np.float32(0.5), whole, round_half_away(x))


_ROUNDING: dict[str, Callable[[Floats, bool], Floats]] = {
    "round_prefer_floor": lambda x, shrinks: _round_half_down(x),
    "round_prefer_ceil": lambda x, shrinks: round_half_away(x),
    "floor": lambda x, shrinks: np.floor(x),
    "ceil": lambda x, shrinks: np.ceil(x),
    "simple": lambda x, shrinks: np.ceil(x) if shrinks else np.trunc(x),
}


def _linear(position: Floats, size: int, scale: np.float32, antialias: bool) -> Taps:
    """Return the taps of a triangle filter of width 2, or 2 / scale with antialias; positions outside the input have
    weight 0."""
    slope = scale if antialias else np.float32(1)
    reach = 2 if scale > 1 else ceil(np.float32(2) / slope)
    index = round_half_away(position).astype(np.int64) + np.arange(-reach, reach + 1)[:, np.newaxis]
    weight = np.maximum(np.float32(0), 1 - abs(slope * (position - index.astype(np.float32))))
    weight[(index < 0) | (index >= size)] = 0
    index, weight = _without_zeros(index, weight)
    return Taps(np.clip(index, 0, size - 1), weight, _divided_by_sum(weight), float(slope))


def _without_zeros(index: Index, weight: Floats) -> tuple[Index, Floats]:
    """Drop zero weights: keep as many taps as the fullest column has, starting at the first nonzero weight of each
    column."""
    some = weight != 0
    row = some.argmax(axis=0) + np.arange(some.sum(axis=0).max(initial=1))[:, np.newaxis]
    last = len(weight) - 1
    inside = np.minimum(row, last)
    taken = np.take_along_axis(weight, inside, axis=0)
    return np.take_along_axis(index, inside, axis=0), np.where(row <= last, taken, 0).astype(weight.dtype)


def _divided_by_sum(weight: Floats) -> Floats:
    """Divide the weights by their sum; they are 0 where the sum is 0."""
    total = weight.sum(axis=0)
    result: Floats = np.divide(weight, total, out=np.zeros_like(weight), where=total != 0)
    return result


def _linear_onnx(position: Floats, size: int) -> Taps:
    """Return the two neighbors of each position; positions outside the input move to the nearest end."""
    position = np.clip(position, np.float32(0), np.float32(size - 1))
    first = position.astype(np.int64)
    second = np.minimum(first + 1, size - 1)
    index = np.stack([first, second])
    weight = abs(position - index[::-1].astype(np.float32))
    weight[:, first == second] = 0.5
    return Taps(index, weight, weight)


def _cubic(position: Floats, size: int, a: np.float32) -> Taps:
    """Return the taps of Keys' cubic kernel with parameter a over four pixels; border pixels are repeated."""
    base = np.floor(position)
    weight = keys_weights(abs(position - base), a)
    index = base.astype(np.int64) + np.arange(-1, 3)[:, np.newaxis]
    return Taps(np.clip(index, 0, size - 1), weight, weight)


def keys_weights(x: Floats, a: float | np.float32) -> Floats:
    """Return Keys' cubic kernel with parameter a at the four pixels around a position, which is x behind the second."""
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (x, 1 - x)]
    far = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (x + 1, 2 - x)]
    return np.stack([far[0], *near, far[1]])


def _pillow(method: Method, size: int, length: int) -> Taps:
    """Return the taps of Pillow's resize filter, stretched over the pixels that are merged and cut at the borders."""
    a = method.cube_coeff
    step = size / length
    stretch = max(step, 1.0)
    support = stretch * (1.0 if method.mode == "bilinear_pillow" else 2.0)
    center = (np.arange(length) + 0.5) * step
    first = np.maximum((center - support + 0.5).astype(np.int64), 0)
    stop = np.minimum((center + support + 0.5).astype(np.int64), size)
    index = first + np.arange(int((stop - first).max(initial=1)))[:, np.newaxis]
    x = abs((index - center + 0.5) * (1 / stretch))
    if method.mode == "bilinear_pillow":
        weight = np.maximum(1 - x, 0)
    else:
        near, far = ((a + 2) * x - (a + 3)) * x * x + 1, (((x - 5) * x + 8) * x - 4) * a
        weight = np.where(x < 1, near, np.where(x < 2, far, 0))
    weight[index >= stop] = 0
    unit = _divided_by_sum(weight)
    return Taps(np.clip(index, 0, size - 1), unit, unit)


AxisTaps = Sequence[tuple[int, Taps]]
"""Axes, each with its taps."""


def resample(method: Method, data: Array, passes: AxisTaps, out: Array) -> None:
    """Resize the axes of ``passes``, one after the other, into ``out``, which is C-contiguous."""
    if method.mode == "nearest":
        kernel = _nearest
    elif data.dtype.kind not in "iu":
        kernel = _separable
    elif method.is_pillow:
        kernel = _pillow_integers
    else:
        kernel = _linear_integers if method.mode == "linear" else _integers
    if out.size:
        with np.errstate(all="ignore"):  # infinities and NaN are ordinary values
            kernel(np.ascontiguousarray(data), passes, out)


def _nearest(x: Array, passes: AxisTaps, y: Array) -> None:
    *before, (axis, taps) = passes
    for other, along in before:
        x = x.take(along.index[0], other, mode="clip")
    x.take(taps.index[0], axis, out=y, mode="clip")


def _separable(x: Array, passes: AxisTaps, y: Array) -> None:
    x = x.astype(compute_dtype(x.dtype), copy=False)
    *before, (axis, taps) = passes
    for other, along in before:
        x = _weighted(x, other, along.index, along.unit)
    if x.dtype == y.dtype:
        _weighted(x, axis, taps.index, taps.unit, out=y)
    else:
        np.copyto(y, _weighted(x, axis, taps.index, taps.unit), casting="unsafe")


def _weighted(x: Array, axis: int, index: Index, weight: Floats, out: Array | None = None) -> Array:
    """Compute the sum of the taps along one axis."""
    weight = weight.astype(x.dtype, copy=False)
    result = x.take(index[0], axis, out=out, mode="clip")
    result *= _along(axis, x.ndim, weight[0])
    if len(index) > 1:
        term = np.empty_like(result)
        for positions, weights in zip(index[1:], weight[1:], strict=True):
            x.take(positions, axis, out=term, mode="clip")
            term *= _along(axis, x.ndim, weights)
            result += term
    return result


def _along(axis: int, rank: int, weights: Floats) -> Floats:
    return weights.reshape(-1, *(1,) * (rank - axis - 1))


# --------------------------------------------------------------------------- integers


def _integers(x: Array, passes: AxisTaps, y: Array) -> None:
    """Resample integers for linear_onnx and cubic: truncate towards 0."""
    total, _ = _corner_sum(x, passes)
    fill_saturated(total, y)


def _linear_integers(x: Array, passes: AxisTaps, y: Array) -> None:
    """Resample integers for linear: divide by the sum of the weights and round."""
    total, weights = _corner_sum(x, passes)
    np.divide(total, weights, out=total, where=weights != 0)
    fill_saturated(round_half_away(total), y)


def _pillow_integers(x: Array, passes: AxisTaps, y: Array) -> None:
    """Resample integers as Pillow does: round and saturate after each axis, the last axis first."""
    low, high = integer_range(y.dtype)
    result = x.astype(np.float64)
    for axis, taps in reversed(passes):
        result = _weighted(result, axis, taps.index, taps.unit)
        result = np.clip(round_half_away(result), low, high)
    fill_saturated(result, y)


def _corner_sum(x: Array, passes: AxisTaps) -> tuple[Array, Array]:
    """Return the sum of weight * value over all combinations of taps, and the sum of the weights.

    The computation uses f32 like the reference, or f64 for integers that f32 cannot represent.
    """
    x = x.astype(np.float32 if x.dtype.itemsize < 4 else np.float64)
    total: Any = x.dtype.type(0)
    weights: Any = x.dtype.type(0)
    gain = prod((taps.gain for _, taps in passes), start=np.float32(1))
    for value, weight in _corners(x, passes, gain):
        total = total + weight * value
        weights = weights + weight
    return total, weights


def _corners(x: Array, passes: AxisTaps, weight: Any) -> Iterator[tuple[Array, Any]]:
    if not passes:
        yield x, weight
        return
    (axis, taps), *others = passes
    for positions, weights in zip(taps.index, taps.weight, strict=True):
        yield from _corners(x.take(positions, axis, mode="clip"), others, weight * _along(axis, x.ndim, weights))
