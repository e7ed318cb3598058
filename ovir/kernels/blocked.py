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

from ovir.core.arrays import Array
from ovir.kernels import half
from ovir.kernels.parallel import run_blocks, threads

BLOCK = 1 << 18
"""Elements of a block at most. Its passes are to find it in a shared cache; in smaller ones, passing the interpreter's
lock between the threads, of which there is one a pass, would cost more than the memory does."""
# Elements that a thread must have at least, or waking it and passing the lock costs more than it gains: where a pass is
# a function as exp, and where all passes are as fast as the memory.
_HEAVY, _LIGHT = 1 << 17, 1 << 21
# Elements of a block that is copied into another order, so that both sides stay in the cache of a core.
_COPIED = 3 << 14
# From so many elements for each value that 8 or 16 bits can have it pays to compute all values instead.
_TIMES_A_CODE = 4
# Reducing the last axis costs NumPy a call a row; shorter rows than this are turned to stand side by side.
SHORT = 24

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


def contiguous_copy(data: Array) -> Array:
    """A copy in C order.

    Where elements that are neighbours in ``data`` come to lie apart, NumPy reads a cache line for each; in blocks that
    are taken as they lie in memory, the lines stay in cache until all of their elements are written.
    """
    if not data.ndim or data.size < _COPIED or _has_rows(data):
        return data.copy()
    out = np.empty(data.shape, data.dtype)
    order = sorted(range(data.ndim), key=lambda axis: -abs(data.strides[axis]))
    x, y = data.transpose(order), out.transpose(order)
    places = _places(x.shape, _COPIED)

    def run(start: int, stop: int) -> None:
        for place in places[start:stop]:
            np.copyto(y[place], x[place])

    run_blocks(run, len(places), -(-_HEAVY // _COPIED))
    return out


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
    # Of these the conversion alone is heavy, be it that ``types`` asks for it or that it is what the kernel does.
    heavy = heavy or any(a.dtype == np.float16 or is_foreign(a.dtype) for a in (*arrays, out))
    least = _HEAVY if heavy else _LIGHT
    if native and out.size <= min(BLOCK, least):
        # NumPy's settings hold for the calling thread alone. Infinities and NaN are values like others here.
        with np.errstate(all="ignore"):
            kernel(*arrays, out=out)
        return out

    data, *others = arrays
    if not native and not others and data.itemsize <= 2 and out.size >= _TIMES_A_CODE << 8 * data.itemsize:
        return _looked_up(kernel, data, out, types)

    # An array that is repeated is brought into the computing type once, others block by block.
    whole = [half.converted(a, t) if 2 * a.size <= out.size else a for a, t in zip(arrays, computed, strict=True)]
    flat = all(a.shape == shape and a.flags.c_contiguous for a in (*whole, out))
    target = out.reshape(-1) if flat else out
    views = [a.reshape(-1) if flat else np.broadcast_to(a, target.shape) for a in whole]
    count = _block_count(out.size, least)
    places = _places(target.shape, -(-out.size // count))

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

    run_blocks(run, len(places), -(-least * len(places) // out.size))
    return out


def _looked_up(
    kernel: Callable[..., object], data: Array, out: Array, types: Callable[[np.dtype[Any]], np.dtype[Any]] | None
) -> Array:
    """``apply`` for an array of few bits: all the numbers there are have fewer results than the array has elements."""
    codes = np.dtype(f"u{data.itemsize}")
    table = np.empty(1 << 8 * data.itemsize, out.dtype)
    apply(kernel, (np.arange(table.size).astype(codes).view(data.dtype),), table, types=types)
    bits = np.dtype(f"u{out.itemsize}")

    def look_up(x: Array, *, out: Array) -> object:
        return np.take(table.view(bits), x, out=out, mode="clip")  # any other mode but "wrap" makes a copy of ``out``

    apply(look_up, (data.view(codes),), out.view(bits), types=None, heavy=True)
    return out


def _block_count(size: int, least: int) -> int:
    """How many blocks to make of so many elements, for each thread as many."""
    workers = max(min(size // least, threads()), 1)
    return workers * max(-(-size // (workers * BLOCK)), 1)


def _places(shape: tuple[int, ...], size: int) -> list[tuple[Any, ...]]:
    """Indices of blocks of about that size that together cover a shape."""
    axis = 0
    while axis < len(shape) - 1 and prod(shape[axis + 1 :]) > size:
        axis += 1
    step = max(-(-size // prod(shape[axis + 1 :])), 1)
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


def map_rows(function: Callable[[slice], object], rows: int, length: int, *, heavy: bool = True) -> None:
    """``function`` on blocks of rows of so many elements. ``heavy``: see ``apply``."""
    least = _HEAVY if heavy else _LIGHT
    places = _places((rows,), -(-rows // _block_count(rows * length, least)))

    def run(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            for (place,) in places[start:stop]:
                function(place)

    run_blocks(run, len(places), -(-least * len(places) // max(rows * length, 1)))


def map_slices(
    kernel: Callable[[Array, Array, int], object],
    data: Array,
    axes: Sequence[int],
    out: Array | None = None,
    *,
    heavy: bool = True,
    short: int = SHORT,
) -> Array:
    """A kernel over the slices of ``data`` along ``axes`` (not negative), each independent of the others.

    ``kernel(x, y, axis)`` sees 2-D blocks of whole slices that lie along ``axis``, those of less than ``short``
    elements along the first. ``out`` may be ``data`` itself. ``heavy``: see ``apply``; reductions are slower than the
    memory.
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
        # Where the moved axes have size 1, or the data lies in another order, this is a view of the data and no copy.
        moved = np.ascontiguousarray(data.transpose(order))
        target = None if np.may_share_memory(moved, data) else moved
        last = range(data.ndim - len(along), data.ndim)
        result = map_slices(kernel, moved, last, target, heavy=heavy, short=short)
        np.copyto(out.transpose(order), result)
        return out
    outer, length = prod(data.shape[: along[0]]), prod(data.shape[axis] for axis in along)
    inner = prod(data.shape[along[-1] + 1 :])
    x, y = (np.ascontiguousarray(a).reshape(outer, length, inner) for a in (data, out))
    if inner == 1:
        _map_rows(kernel, x[:, :, 0], y[:, :, 0], heavy, length < short)
    else:
        _map_columns(kernel, x, y, _HEAVY if heavy else _LIGHT)
    return out


def _map_rows(kernel: Callable[[Array, Array, int], object], x: Array, y: Array, heavy: bool, stand: bool) -> None:
    step = _Apart(lambda a, b: kernel(a, b, 0 if stand else 1), x.dtype)

    def run(rows: slice) -> None:
        _slices(step, x[rows].T, y[rows].T) if stand else _slices(step, x[rows], y[rows])

    map_rows(run, len(x), x.shape[1], heavy=heavy)


def _map_columns(kernel: Callable[[Array, Array, int], object], x: Array, y: Array, least: int) -> None:
    outer, length, inner = x.shape
    # Narrow blocks would leave much of every cache line unread.
    width = min(max(-(-inner // -(-_block_count(x.size, least) // outer)), 64), inner)
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
