"""Run kernels block by block: blocks stay in a cache, and threads share them where there are enough.

``apply`` takes a kernel with the signature of a NumPy ufunc. ``map_blocks`` takes ``kernel(x, y)`` for real-valued
functions: it fills ``y`` from ``x``, which have the same shape and type and never share memory.
Integers arrive as float64, and the result is rounded to nearest, ties to even, as devices do. f16, bf16 and the 8-bit
floats arrive as float32, and the result is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels import half
from ovir.kernels.parallel import run_blocks, threads
from ovir.kernels.precision import compute_dtype, is_foreign, native_dtype

BLOCK = 1 << 18
"""The largest number of elements in a block.

A block fits a shared cache. With smaller blocks, handing over the interpreter's lock between threads (once per pass)
would cost more than the saved memory traffic.
"""
# With fewer elements, waking a thread and handing over the lock costs more than it gains: the first limit is for
# expensive passes such as exp, the second for passes bound by memory.
_HEAVY, _LIGHT = 1 << 17, 1 << 21
# Elements of a block that is copied into another order: both sides stay in a core's cache.
_COPIED = 3 << 14
# With this many elements per value of an 8- or 16-bit type, computing all values once is cheaper.
_TIMES_A_CODE = 4


def result_array(data: Array, out: Array | None) -> Array:
    """Return ``out`` if a result of the shape and type of ``data`` can be written there, else a new array."""
    if out is not None and out.shape == data.shape and out.dtype == data.dtype and out.flags.c_contiguous:
        return out
    return np.empty(data.shape, data.dtype)


def contiguous_copy(data: Array) -> Array:
    """Return a copy in C order.

    Where neighbours in ``data`` end up far apart, NumPy would read a cache line for each element. Copying in blocks
    that follow the memory order of ``data`` keeps the lines in the cache until all their elements are written.
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
    """Call ``kernel(*arrays, out=out)`` block by block on arrays that are broadcast together.

    The kernel receives arrays of type ``types(dtype)``, or of their own type if ``types`` is None. ``dtype`` is the
    type of the result and defaults to the type of the first array. Set ``heavy`` if computing an element costs many
    times as much as reading it.
    """
    shape = arrays[0].shape
    if any(a.shape != shape for a in arrays):
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
    if out is None:
        out = np.empty(shape, dtype or arrays[0].dtype)
    if not out.size:
        return out
    if not shape:  # NumPy turns 0-d arrays into scalars, which cannot be written to
        apply(kernel, tuple(a.reshape(1) for a in arrays), out.reshape(1), types=types, heavy=heavy)
        return out
    computed = [types(a.dtype) if types else a.dtype for a in arrays]
    result_type = types(out.dtype) if types else out.dtype
    native = result_type == out.dtype and all(a.dtype == t for a, t in zip(arrays, computed, strict=True))
    # Converting these types is heavy by itself, whether ``types`` asks for it or the kernel does it.
    heavy = heavy or any(a.dtype == np.float16 or is_foreign(a.dtype) for a in (*arrays, out))
    least = _HEAVY if heavy else _LIGHT
    if native and out.size <= min(BLOCK, least):
        # NumPy's error settings hold for the calling thread only. Infinities and NaN are ordinary values here.
        with np.errstate(all="ignore"):
            kernel(*arrays, out=out)
        return out

    data, *others = arrays
    if not native and not others and data.itemsize <= 2 and out.size >= _TIMES_A_CODE << 8 * data.itemsize:
        return _looked_up(kernel, data, out, types)

    # A broadcast array is converted to the computing type once, other arrays block by block.
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
    """Evaluate ``apply`` with a table of all values of a narrow type, for arrays with more elements than the table."""
    codes = np.dtype(f"u{data.itemsize}")
    table = np.empty(1 << 8 * data.itemsize, out.dtype)
    apply(kernel, (np.arange(table.size).astype(codes).view(data.dtype),), table, types=types)
    bits = np.dtype(f"u{out.itemsize}")

    def look_up(x: Array, *, out: Array) -> object:
        return np.take(table.view(bits), x, out=out, mode="clip")  # any other mode but "wrap" makes a copy of ``out``

    apply(look_up, (data.view(codes),), out.view(bits), types=None, heavy=True)
    return out


def _block_count(size: int, least: int) -> int:
    """Return the number of blocks for ``size`` elements, a multiple of the number of threads that share them."""
    workers = max(min(size // least, threads()), 1)
    return workers * max(-(-size // (workers * BLOCK)), 1)


def _places(shape: tuple[int, ...], size: int) -> list[tuple[Any, ...]]:
    """Return indices of blocks of about ``size`` elements that together cover a shape."""
    axis = 0
    while axis < len(shape) - 1 and prod(shape[axis + 1 :]) > size:
        axis += 1
    step = max(-(-size // prod(shape[axis + 1 :])), 1)
    cuts = [slice(i, i + step) for i in range(0, shape[axis], step)]
    return [(*lead, cut) for lead in np.ndindex(shape[:axis]) for cut in cuts]


def map_blocks(
    kernel: Callable[..., object], data: Array, out: Array | None = None, *params: Array, heavy: bool = False
) -> Array:
    """Apply a real-valued function to all elements of ``data``. ``out`` may be ``data`` itself.

    ``params`` are broadcast to the data; ``kernel(x, y, *params)`` receives the part of each that belongs to the block,
    in the type of x.
    """
    arrays = (data, *(p.astype(compute_dtype(data.dtype), copy=False) for p in params))
    return apply(_Apart(kernel, data.dtype), arrays, result_array(data, out), types=compute_dtype, heavy=heavy)


class _Apart:
    """Adapt ``kernel(x, y, *params)`` to the signature of a NumPy ufunc, with ``out`` allowed to be x."""

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
    """Return whether elements lie side by side along the last axis, so that passes over them are fast."""
    return bool(array.strides[-1] == array.itemsize)
