"""Kernels of several passes, run on blocks that stay in a core's cache, on threads where there are enough of them.

A kernel here is ``kernel(x, y)``: it fills ``y`` from ``x``. Both have the same shape and a type that NumPy computes
fast in; they never share memory. f16, bf16 and the 8-bit floats come as float32 and are rounded once; integers come as
float64 and the result is rounded to the nearest, ties to even, as devices do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from ovir.ops.operator import Array
from ovir.parallel import run_blocks

BLOCK = 1 << 18
"""Elements of a block. Its passes are to find it in a shared cache; in smaller ones, passing the interpreter's lock
between the threads, of which there is one a pass, would cost more than the memory does."""
_PER_THREAD = 1 << 17
# Reducing the last axis costs NumPy a call a row; shorter rows than this are turned to stand side by side.
_SHORT = 24


def compute_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that values of ``dtype`` are computed in."""
    if dtype in (np.float32, np.float64):
        return dtype
    is_integer = dtype.kind in "iub" or "int" in dtype.name
    return np.dtype(np.float64 if is_integer else np.float32)


def integer_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The smallest and the largest value of an integer type, of ml_dtypes' too."""
    info = np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    return int(info.min), int(info.max)


def result_array(data: Array, out: Array | None) -> Array:
    """``out`` where a result like ``data`` can be written there, else a new array."""
    if out is not None and out.shape == data.shape and out.dtype == data.dtype and out.flags.c_contiguous:
        return out
    return np.empty(data.shape, data.dtype)


def map_blocks(kernel: Callable[..., object], data: Array, out: Array | None = None, *params: Array) -> Array:
    """An elementwise kernel over all of ``data``. ``out`` may be ``data`` itself.

    ``params`` are broadcast to the data; ``kernel(x, y, *params)`` is given their part for the block, in x's type.
    """
    out = result_array(data, out)
    lead = data.ndim
    if params:
        lead = max(lead - 1, 0)
        while lead and prod(data.shape[lead - 1 :]) <= BLOCK:
            lead -= 1
    shape = (prod(data.shape[:lead]), *data.shape[lead:])
    x, y = np.ascontiguousarray(data).reshape(shape), out.reshape(shape)
    step = _Step(kernel, data.dtype, in_place=np.may_share_memory(x, y))
    rows = [_rows(p.astype(step.dtype, copy=False), data.shape[:lead], data.ndim) for p in params]
    size = prod(shape[1:])
    count = max(BLOCK // max(size, 1), 1)

    def block(i: int, j: int) -> None:
        step(x[i:j], y[i:j], *(p if len(p) == 1 else p[i:j] for p in rows))

    _run(block, shape[0] if size else 0, count, max(_PER_THREAD // max(size, 1), 1))
    return out


def _rows(param: Array, lead: tuple[int, ...], rank: int) -> Array:
    """The parameter as one array for each index of the leading axes, or one for all of them."""
    param = param.reshape((1,) * (rank - param.ndim) + param.shape)
    tail = param.shape[len(lead) :]
    if param.shape[: len(lead)] == (1,) * len(lead):
        return param.reshape(1, *tail)
    return np.broadcast_to(param, lead + tail).reshape(-1, *tail)


def map_slices(
    kernel: Callable[[Array, Array, int], object], data: Array, axes: Sequence[int], out: Array | None = None
) -> Array:
    """A kernel over the slices of ``data`` along ``axes`` (not negative), each independent of the others.

    ``kernel(x, y, axis)`` sees 2-D blocks of whole slices that lie along ``axis``. ``out`` may be ``data`` itself.
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
        map_slices(kernel, moved, range(data.ndim - len(along), data.ndim), moved)
        np.copyto(out.transpose(order), moved)
        return out
    outer, length = prod(data.shape[: along[0]]), prod(data.shape[axis] for axis in along)
    inner = prod(data.shape[along[-1] + 1 :])
    x, y = (np.ascontiguousarray(a).reshape(outer, length, inner) for a in (data, out))
    shared = np.may_share_memory(x, y)
    if inner == 1:
        _map_rows(kernel, x[:, :, 0], y[:, :, 0], shared)
    else:
        _map_columns(kernel, x, y, shared)
    return out


def _map_rows(kernel: Callable[[Array, Array, int], object], x: Array, y: Array, shared: bool) -> None:
    rows, length = x.shape
    short = length < _SHORT
    step = _Step(lambda a, b: kernel(a, b, 0 if short else 1), x.dtype, in_place=shared, transposed=short)
    count = max(BLOCK // length, 1)

    def block(i: int, j: int) -> None:
        step(x[i:j], y[i:j])

    _run(block, rows, count, max(_PER_THREAD // length, 1))


def _map_columns(kernel: Callable[[Array, Array, int], object], x: Array, y: Array, shared: bool) -> None:
    outer, length, inner = x.shape
    # Narrow blocks would leave much of every cache line unread.
    width = min(inner, max(BLOCK // length, 64))
    parts = -(-inner // width)
    step = _Step(lambda a, b: kernel(a, b, 0), x.dtype, in_place=shared)

    def block(item: int, _: int) -> None:
        o, part = divmod(item, parts)
        columns = slice(part * width, (part + 1) * width)
        step(x[o, :, columns], y[o, :, columns])

    _run(block, outer * parts, 1, max(_PER_THREAD // (length * width), 1))


class _Step:
    """One block: brought into the kernel's type, and its result into the output's."""

    def __init__(
        self, kernel: Callable[..., object], dtype: np.dtype[Any], *, in_place: bool, transposed: bool = False
    ) -> None:
        self.kernel = kernel
        self.dtype = compute_dtype(dtype)
        self.rounded = self.dtype == np.float64 != dtype
        self.direct = self.dtype == dtype and not in_place and not transposed
        self.transposed = transposed

    def __call__(self, x: Array, y: Array, *params: Array) -> None:
        if self.direct:
            self.kernel(x, y, *params)
            return
        if self.transposed:
            x, y = x.T, y.T
        x = np.ascontiguousarray(x, self.dtype)
        result = np.empty(x.shape, self.dtype)
        self.kernel(x, result, *params)
        if self.rounded:
            np.rint(result, out=result)
        np.copyto(y, result, casting="unsafe")


def _run(block: Callable[[int, int], object], items: int, step: int, min_items_per_thread: int) -> None:
    """Call ``block(start, stop)`` for every ``step`` items, on threads."""

    def run(start: int, stop: int) -> None:
        # Threads of a pool do not inherit the caller's settings. Infinities and NaN are values like others here.
        with np.errstate(all="ignore"):
            for i in range(start, stop, step):
                block(i, min(i + step, stop))

    run_blocks(run, items, min_items_per_thread)
