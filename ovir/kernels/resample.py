"""Apply taps to the axes of a tensor, block by block, on threads.

Every mode is a product of one-dimensional ones, so one axis follows the other: a linear mode takes two gathers per axis
instead of four or eight in total. Integers are an exception: they are truncated or rounded at the end, and whether a
sum reaches 3 or 2.9999998 depends on the order of the terms. For integers, products of weights are summed corner by
corner, as in the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil, prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.parallel import run_blocks
from ovir.kernels.precision import compute_dtype, integer_range
from ovir.kernels.resample_taps import Floats, Index, Method, Taps
from ovir.kernels.rounding import round_half_away

Passes = Sequence[tuple[int, Taps]]
"""Axes, each with its taps."""
Kernel = Callable[[Array, Passes, Array], None]
"""Fills its last argument from its first; both are C-contiguous."""

_BLOCK = 1 << 18
"""The largest number of elements in a block, which fits a shared cache."""


def resample(method: Method, data: Array, passes: Passes, out: Array) -> None:
    """Resize the axes of ``passes``, in the order of the operation's axes, into ``out``."""
    if method.mode == "nearest":
        kernel = _nearest
    elif data.dtype.kind not in "iu":
        kernel = _separable
    elif method.is_pillow:
        kernel = _pillow_integers
    else:
        kernel = _linear_integers if method.mode == "linear" else _integers
    _in_blocks(kernel, data, passes, out)


def _in_blocks(kernel: Kernel, data: Array, passes: Passes, out: Array) -> None:
    """Call the kernel on groups of slices along the first resized axis, or on parts of a single large slice."""
    if not out.size:
        return
    first = min(axis for axis, _ in passes)
    slices = prod(data.shape[:first])
    x = np.ascontiguousarray(data).reshape(slices, *data.shape[first:])
    y = out.reshape(slices, *out.shape[first:])
    passes = [(axis - first + 1, taps) for axis, taps in passes]
    work = max(x.size, y.size) // slices
    group, rows = max(_BLOCK // work, 1), y.shape[1]
    parts = min(ceil(work / _BLOCK), rows)

    def block(item: int) -> None:
        i, part = divmod(item, parts)
        i *= group
        if parts == 1:
            kernel(x[i : i + group], passes, y[i : i + group])
            return
        start, stop = part * rows // parts, (part + 1) * rows // parts
        along = dict(passes)
        low, high, along[1] = along[1].part(start, stop)
        kernel(x[i : i + 1, low:high], list(along.items()), y[i : i + 1, start:stop])

    def run(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):  # infinities and NaN are ordinary values
            for item in range(start, stop):
                block(item)

    run_blocks(run, ceil(slices / group) * parts)


def cheapest_first(x: Array, passes: Passes) -> list[tuple[int, Taps]]:
    """Sort passes by cost: shrinking axes before growing ones, and the last axis, whose gathers cost most, where it has
    least to do."""

    def rank(item: tuple[int, Taps]) -> tuple[float, int]:
        axis, taps = item
        growth = taps.length / x.shape[axis]
        return growth, axis if growth < 1 else -axis

    return sorted(passes, key=rank)


def _nearest(x: Array, passes: Passes, y: Array) -> None:
    *before, (axis, taps) = cheapest_first(x, passes)
    for other, along in before:
        x = x.take(along.index[0], other, mode="clip")
    x.take(taps.index[0], axis, out=y, mode="clip")


def _separable(x: Array, passes: Passes, y: Array) -> None:
    x = x.astype(compute_dtype(x.dtype), copy=False)
    *before, (axis, taps) = cheapest_first(x, passes)
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


def _integers(x: Array, passes: Passes, y: Array) -> None:
    """Resample integers for linear_onnx and cubic: truncate towards 0."""
    total, _ = _corner_sum(x, passes)
    _store(np.trunc(total), y)


def _linear_integers(x: Array, passes: Passes, y: Array) -> None:
    """Resample integers for linear: divide by the sum of the weights and round."""
    total, weights = _corner_sum(x, passes)
    np.divide(total, weights, out=total, where=weights != 0)
    _store(round_half_away(total), y)


def _pillow_integers(x: Array, passes: Passes, y: Array) -> None:
    """Resample integers as Pillow does: round and saturate after each axis, the last axis first."""
    low, high = integer_range(y.dtype)
    result = x.astype(np.float64)
    for axis, taps in reversed(passes):
        result = _weighted(result, axis, taps.index, taps.unit)
        result = np.clip(round_half_away(result), low, high)
    _store(result, y)


def _corner_sum(x: Array, passes: Passes) -> tuple[Array, Array]:
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


def _corners(x: Array, passes: Passes, weight: Any) -> Iterator[tuple[Array, Any]]:
    if not passes:
        yield x, weight
        return
    (axis, taps), *others = passes
    for positions, weights in zip(taps.index, taps.weight, strict=True):
        yield from _corners(x.take(positions, axis, mode="clip"), others, weight * _along(axis, x.ndim, weights))


def _store(values: Array, y: Array) -> None:
    """Store whole numbers as integers, saturated."""
    low, high = integer_range(y.dtype)
    top = values.dtype.type(high)
    if int(top) > high:  # the largest 64-bit integer has no exact f64
        top = np.nextafter(top, values.dtype.type(0))
    np.copyto(y, np.clip(values, low, top), casting="unsafe")
