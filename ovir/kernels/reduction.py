"""Reductions of arrays along several axes, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels import half
from ovir.kernels.blocked import compute_dtype, contiguous_copy, map_rows

# Up to this length BLAS or einsum sum the last axis: they are faster than NumPy's sum and as exact.
_BLAS_LENGTH = 2048
# NumPy uses pairwise summation only along the last axis; along others, partial sums of this many are added.
_CHUNK = 1024
_SHORT = 24
_LONG = 256


def _runs(axes: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Group adjacent axes into runs (first, number), the last run first."""
    rest = list(axes)
    while rest:
        first = stop = rest.pop()
        while rest and rest[-1] == first - 1:
            first = rest.pop()
        yield first, stop - first + 1


Step = Callable[[Array], Array]


def _along(step: Step, data: Array, axes: tuple[int, ...], each: Step = np.positive) -> Array:
    """Reduce one run of axes after the other. ``step`` maps [outer, length, inner] to [outer, inner].

    Integers of 32 and 64 bits keep their type, other elements are converted to the type that they are computed in.
    ``each`` is applied to all elements first.
    """
    dtype = data.dtype if data.dtype.kind in "iu" and data.dtype.itemsize >= 4 else compute_dtype(data.dtype)
    if not axes:  # the result must not share memory with the input
        return np.asarray(each(half.converted(data, dtype)))
    for first, number in _runs(axes):
        before, after = data.shape[:first], data.shape[first + number :]
        length = prod(data.shape[first : first + number])
        # NumPy sums in memory order, whatever the axis; only in a contiguous array is the last axis summed pairwise.
        flat = np.ascontiguousarray(data).reshape(prod(before), length, prod(after))
        reduced = _reduced_blocks(step, each, flat, dtype)
        data, each = reduced.reshape(before + (1,) * number + after), np.positive
    return data


def _reduced_blocks(step: Step, each: Step, data: Array, dtype: np.dtype[Any]) -> Array:
    outer, length, inner = data.shape
    result = np.empty((outer, inner), dtype)

    def reduce(block: slice) -> None:
        part = half.converted(data[block], dtype)
        result[block] = step(part if each is np.positive else each(part)).reshape(len(part), inner)

    map_rows(reduce, outer, length * inner, heavy=data.dtype != dtype)
    return result


def sum_along(data: Array, axes: tuple[int, ...], each: Step = np.positive) -> Array:
    return _along(_sum_step, data, axes, each)


def _sum_step(data: Array) -> Array:
    outer, length, inner = data.shape
    if data.dtype in (np.float32, np.float64) and length and inner < 16 and length <= _BLAS_LENGTH:
        ones = np.ones(length, data.dtype)
        if inner == 1 and length >= _SHORT:  # as fast as BLAS, whose threads wait for one another on a busy machine
            return np.asarray(np.einsum("ij->i", data[:, :, 0]))
        return np.asarray(np.matmul(data[:, :, 0], ones) if inner == 1 else np.matmul(ones, data))
    if 1 < inner < 16:
        return np.asarray(np.add.reduce(np.ascontiguousarray(data.transpose(0, 2, 1)), axis=2, dtype=data.dtype))
    total = np.add.reduce(data[:, length - length % _CHUNK if inner > 1 else 0 :], axis=1, dtype=data.dtype)
    if inner > 1 and length >= _CHUNK:
        chunks = data[:, : length - length % _CHUNK].reshape(outer, -1, _CHUNK, inner)
        total += np.add.reduce(np.add.reduce(chunks, axis=2, dtype=data.dtype), axis=1, dtype=data.dtype)
    return np.asarray(total)


def fold(ufunc: np.ufunc, data: Array, axes: tuple[int, ...], empty: float) -> Array:
    """Combine all elements with ``ufunc``; ``empty`` is the result for no elements."""

    def step(part: Array) -> Array:
        outer, length, inner = part.shape
        if not length:
            return np.full((outer, inner), empty, part.dtype)
        while ufunc is np.multiply and inner == 1 and length >= _LONG:
            middle = length // 2
            product = ufunc(part[:, :middle], part[:, middle : 2 * middle])
            ufunc(product[:, : length % 2], part[:, 2 * middle :], out=product[:, : length % 2])
            part, length = product, middle
        # NumPy's reduction costs a call for each contiguous stretch.
        if inner < _SHORT <= length and inner > 1:
            return np.asarray(ufunc.reduce(np.ascontiguousarray(part.transpose(0, 2, 1)), axis=2))
        if inner < _SHORT and length < _SHORT <= outer:
            result = part[:, 0].copy()
            for i in range(1, length):
                ufunc(result, part[:, i], out=result)
            return result
        return np.asarray(ufunc.reduce(part, axis=1, dtype=part.dtype))

    kept = [axis for axis in range(data.ndim) if axis not in axes]
    if ufunc is np.multiply and data.ndim - 1 in axes and prod(data.shape[axis] for axis in kept) >= _LONG:
        # Along the last axis NumPy would multiply element by element.
        data, axes = contiguous_copy(data.transpose([*axes, *kept])), tuple(range(len(axes)))
    return _along(step, data, axes)
