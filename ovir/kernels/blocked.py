"""Kernels run block by block: on blocks that stay in a cache, and on threads where there are enough of them.

``apply`` takes a kernel that is called as a NumPy function. ``map_blocks`` and ``map_slices`` take ``kernel(x, y)``, of
real functions: it fills ``y`` from ``x``, which have the same shape and type and never share memory; integers come as
float64 and the result is rounded to the nearest, ties to even, as devices do. To all of them f16, bf16 and the 8-bit
floats come as float32, and the result is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from ovir.arrays import Array
from ovir.kernels import half
from ovir.kernels.parallel import run_blocks

BLOCK = 1 << 17
"""Elements of a block. Its passes are to find it in a shared cache; in smaller ones, passing the interpreter's lock
between the threads, of which there is one a pass, would cost more than the memory does."""
# Elements that a thread must have at least, or waking it and passing the lock costs more than it gains: where a pass is
# a function as exp, and where all passes are as fast as the memory.
_HEAVY, _LIGHT = 1 << 17, 1 << 21
# Reducing the last axis costs NumPy a call a row; shorter rows than this are turned to stand side by side.
_SHORT = 24

_SMALL_INTEGERS = tuple(np.dtype(t) for t in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.uint2))


def native_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that NumPy computes elements of ``dtype`` in: integers stay integers."""
    if dtype in _SMALL_INTEGERS:
        return np.dtype(np.int16)
    return np.dtype(np.float32) if dtype == np.float16 or is_foreign(dtype) else dtype


def compute_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that real functions of elements of ``dtype`` are computed in."""
    if dtype in (np.float32, np.float64):
        return dtype
    is_integer = dtype.kind in "iub" or "int" in dtype.name
    return np.dtype(np.float64 if is_integer else np.float32)


def is_foreign(dtype: np.dtype[Any]) -> bool:
    """Whether ml_dtypes, not NumPy, defines the type."""
    return dtype.isbuiltin == 2


def integer_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The smallest and the largest value of an integer type, of ml_dtypes' too."""
    info = np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    return int(info.min), int(info.max)


def result_array(data: Array, out: Array | None) -> Array:
    """``out`` where a result like ``data`` can be written there, else a new array."""
    if out is not None and out.shape == data.shape and out.dtype == data.dtype and out.flags.c_contiguous:
        return out
    return np.empty(data.shape, data.dtype)


# --------------------------------------------------------------------------- elementwise


def apply(
    kernel: Callable[..., object],
    arrays: tuple[Array, ...],
    out: Array | None = None,
    dtype: np.dtype[Any] | None = None,
    *,
    types: Callable[[np.dtype[Any]], np.dtype[Any]] | None = native_dtype,
    heavy: bool = False,
) -> Array:
    """``kernel(*arrays, out=out)`` for arrays that are broadcast together, block by block.

    The kernel sees the ``types`` of the arrays' types, with None their own. ``dtype`` is that of the result, by default
    that of the first array. ``heavy`` tells that an element costs many times what it takes to read it.
    """
    shape = arrays[0].shape
    if any(a.shape != shape for a in arrays):
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
    if out is None:
        out = np.empty(shape, dtype or arrays[0].dtype)
    if not out.size:
        return out
    if not shape:  # of 0-d arrays NumPy makes numbers, which cannot be written into
        apply(kernel, tuple(a.reshape(1) for a in arrays), out.reshape(1), types=types, heavy=heavy)
        return out
    computed = [types(a.dtype) if types else a.dtype for a in arrays]
    result_type = types(out.dtype) if types else out.dtype
    native = result_type == out.dtype and all(a.dtype == t for a, t in zip(arrays, computed, strict=True))
    if native and out.size <= BLOCK:
        # NumPy's settings hold for the calling thread alone. Infinities and NaN are values like others here.
        with np.errstate(all="ignore"):
            kernel(*arrays, out=out)
        return out

    # An array that is repeated is brought into the computing type once, others block by block.
    whole = [half.converted(a, t) if 2 * a.size <= out.size else a for a, t in zip(arrays, computed, strict=True)]
    flat = all(a.shape == shape and a.flags.c_contiguous for a in (*whole, out))
    target = out.reshape(-1) if flat else out
    views = [a.reshape(-1) if flat else np.broadcast_to(a, target.shape) for a in whole]
    places = _places(target.shape)

    def run(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            for place in places[start:stop]:
                blocks = [half.converted(v[place], t) for v, t in zip(views, computed, strict=True)]
                block = target[place]
                if result_type == out.dtype:
                    kernel(*blocks, out=block)
                else:
                    result = np.empty(block.shape, result_type)
                    kernel(*blocks, out=result)
                    half.copy(result, block)

    least = _HEAVY if heavy else _LIGHT
    run_blocks(run, len(places), -(-least * len(places) // out.size))
    return out


def _places(shape: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Indices of blocks that together cover a shape."""
    axis = 0
    while axis < len(shape) - 1 and prod(shape[axis + 1 :]) > BLOCK:
        axis += 1
    step = max(BLOCK // prod(shape[axis + 1 :]), 1)
    cuts = [slice(i, i + step) for i in range(0, shape[axis], step)]
    return [(*lead, cut) for lead in np.ndindex(shape[:axis]) for cut in cuts]


def map_blocks(
    kernel: Callable[..., object], data: Array, out: Array | None = None, *params: Array, heavy: bool = False
) -> Array:
    """A real function of all elements of ``data``. ``out`` may be ``data`` itself.

    ``params`` are broadcast to the data; ``kernel(x, y, *params)`` is given their part for the block, in x's type.
    """
    arrays = (data, *(p.astype(compute_dtype(data.dtype), copy=False) for p in params))
    return apply(_Apart(kernel, data.dtype), arrays, result_array(data, out), types=compute_dtype, heavy=heavy)


class _Apart:
    """``kernel(x, y, *params)`` as a NumPy function: ``out`` may be x."""

    def __init__(self, kernel: Callable[..., object], dtype: np.dtype[Any]) -> None:
        self.kernel = kernel
        self.rounded = compute_dtype(dtype) == np.float64 != dtype

    def __call__(self, x: Array, *params: Array, out: Array) -> None:
        x = x if _has_rows(x) else np.ascontiguousarray(x)
        y = np.empty(out.shape, out.dtype) if np.may_share_memory(x, out) else out
        self.kernel(x, y, *params)
        if self.rounded:
            np.rint(y, out=y)
        if y is not out:
            np.copyto(out, y)


def _has_rows(array: Array) -> bool:
    """Whether elements lie side by side along the last axis, so that passes over them are fast."""
    return bool(array.strides[-1] == array.itemsize)


# --------------------------------------------------------------------------- slices


def map_slices(
    kernel: Callable[[Array, Array, int], object],
    data: Array,
    axes: Sequence[int],
    out: Array | None = None,
    *,
    heavy: bool = True,
) -> Array:
    """A kernel over the slices of ``data`` along ``axes`` (not negative), each independent of the others.

    ``kernel(x, y, axis)`` sees 2-D blocks of whole slices that lie along ``axis``. ``out`` may be ``data`` itself.
    ``heavy``: see ``apply``; reductions are slower than the memory.
    """
    out = result_array(data, out)
    if not out.size:
        return out
    along = sorted(axes)
    if not along:  # each element is a slice of its own
        map_slices(kernel, data[..., np.newaxis], [data.ndim], out[..., np.newaxis])
        return out
    if along[-1] - along[0] >= len(along):  # axes that do not lie side by side are moved to the end
        order = [axis for axis in range(data.ndim) if axis not in along] + along
        moved = np.ascontiguousarray(data.transpose(order))
        map_slices(kernel, moved, range(data.ndim - len(along), data.ndim), moved, heavy=heavy)
        np.copyto(out.transpose(order), moved)
        return out
    outer, length = prod(data.shape[: along[0]]), prod(data.shape[axis] for axis in along)
    inner = prod(data.shape[along[-1] + 1 :])
    x, y = (np.ascontiguousarray(a).reshape(outer, length, inner) for a in (data, out))
    least = _HEAVY if heavy else _LIGHT
    if inner == 1:
        _map_rows(kernel, x[:, :, 0], y[:, :, 0], least)
    else:
        _map_columns(kernel, x, y, least)
    return out


def _map_rows(kernel: Callable[[Array, Array, int], object], x: Array, y: Array, least: int) -> None:
    rows, length = x.shape
    count = max(BLOCK // length, 1)
    short = length < _SHORT
    step = _Apart(lambda a, b: kernel(a, b, 0 if short else 1), x.dtype)

    def run(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            for i in range(start, stop, count):
                j = min(i + count, stop)
                _slices(step, x[i:j].T, y[i:j].T) if short else _slices(step, x[i:j], y[i:j])

    run_blocks(run, rows, max(least // length, 1))


def _map_columns(kernel: Callable[[Array, Array, int], object], x: Array, y: Array, least: int) -> None:
    outer, length, inner = x.shape
    # Narrow blocks would leave much of every cache line unread.
    width = min(inner, max(BLOCK // length, 64))
    parts = -(-inner // width)
    step = _Apart(lambda a, b: kernel(a, b, 0), x.dtype)

    def run(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            for item in range(start, stop):
                o, part = divmod(item, parts)
                columns = slice(part * width, (part + 1) * width)
                _slices(step, x[o, :, columns], y[o, :, columns])

    run_blocks(run, outer * parts, max(least // (length * width), 1))


def _slices(step: _Apart, x: Array, y: Array) -> None:
    """One block: brought into the kernel's type and order, and its result into the output's."""
    computed = compute_dtype(x.dtype)
    if y.dtype == computed and _has_rows(y):
        step(x, out=y)
        return
    result = np.empty(y.shape, computed)
    step(np.ascontiguousarray(half.converted(x, computed)), out=result)
    half.copy(result, y)
