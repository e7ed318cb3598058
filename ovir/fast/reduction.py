"""Reductions along constant axes: one call of NumPy, shared among threads, or sums by products; CumSum by whole rows,
where NumPy would add up single elements."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.parallel import threads
from ovir.fast.base.binding import HEAVY, Binder, call_elementwise, call_shares, parts_of
from ovir.fast.base.coalesce import memory_order
from ovir.fast.base.sums import bind_squares, bind_sum, reduced_output, scratch_like
from ovir.fast.registry import fast
from ovir.ops.reduction import (
    CumSum,
    ReduceL1,
    ReduceL2,
    ReduceLogicalAnd,
    ReduceLogicalOr,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    ReductionBase,
    is_wide,
)

_OF_REALS: dict[type[ReductionBase], np.ufunc] = {ReduceProd: np.multiply, ReduceMax: np.fmax, ReduceMin: np.fmin}
_OF_WIDE_INTEGERS: dict[type[ReductionBase], np.ufunc] = {
    ReduceSum: np.add,
    ReduceProd: np.multiply,
    ReduceMax: np.maximum,
    ReduceMin: np.minimum,
}
_OF_NARROW_INTEGERS: dict[type[ReductionBase], np.ufunc] = {ReduceMax: np.maximum, ReduceMin: np.minimum}
_OF_BOOLEANS: dict[type[ReductionBase], np.ufunc] = {
    ReduceLogicalAnd: np.logical_and,
    ReduceLogicalOr: np.logical_or,
}


@fast(ReductionBase, in_f32=True)
def reduction(op: ReductionBase, binder: Binder, data: Array, axes: Array) -> bool:
    if not binder.is_constant(1) or not data.size or not (along := op.axes(axes, data.ndim)):
        return False
    if data.dtype.kind in "iu" and type(op) in _OF_SUMS and not (is_wide(data.dtype) and isinstance(op, ReduceSum)):
        _bind_integer_sum(op, binder, data, along)
    elif data.dtype not in (np.float32, np.float64):
        if data.dtype.kind not in "iub":
            return False
        of_integers = _OF_WIDE_INTEGERS if is_wide(data.dtype) else _OF_NARROW_INTEGERS
        functions = _OF_BOOLEANS if data.dtype == np.bool_ else of_integers
        function = functions.get(type(op))
        if function is None:
            return False
        _reduce(function, data, along, reduced_output(binder, data, along), binder)
    elif isinstance(op, ReduceSum | ReduceMean):
        factor = 1 / prod(data.shape[axis] for axis in along) if isinstance(op, ReduceMean) else 1.0
        bind_sum(binder, data, along, factor, reduced_output(binder, data, along))
    elif isinstance(op, ReduceL1):
        out, sizes = reduced_output(binder, data, along), scratch_like(binder, data)
        call_elementwise(binder, np.absolute, data, sizes)
        bind_sum(binder, sizes, along, out=out)
    elif isinstance(op, ReduceL2):
        out = reduced_output(binder, data, along)
        call_elementwise(binder, np.sqrt, bind_squares(binder, data, along), out)
    else:
        _reduce(_OF_REALS[type(op)], data, along, reduced_output(binder, data, along), binder)
    return True


_OF_SUMS = (ReduceSum, ReduceMean, ReduceL1)


def _bind_integer_sum(op: ReductionBase, binder: Binder, data: Array, along: tuple[int, ...]) -> None:
    """Bind a reduction of integers that is a sum, or made of one; narrow integers are added up in int64."""
    wide = data.dtype if is_wide(data.dtype) else np.dtype(np.int64)
    out, total = reduced_output(binder, data, along), scratch_like(binder, data, along, wide)
    if isinstance(op, ReduceL1):
        sizes = scratch_like(binder, data, dtype=wide)
        call_elementwise(binder, lambda x, y: np.absolute(x, y, dtype=y.dtype), data, sizes)
        data = sizes
    _reduce(np.add, data, along, total, binder)
    count = prod(data.shape[axis] for axis in along) if isinstance(op, ReduceMean) else 1
    binder.call(_store_integers, total, count, out)


def _store_integers(total: Array, count: int, out: Array) -> None:
    """Store total / count, truncated and saturated."""
    if count > 1:
        total = (total - np.fmod(total, count)) // count
    info = np.iinfo(out.dtype)
    np.copyto(out, np.clip(total, info.min, info.max), "unsafe")


def _reduce(function: np.ufunc, data: Array, axes: tuple[int, ...], out: Array, binder: Binder) -> None:
    """Bind a function of two elements that is applied over and over."""
    workers = max(min(data.size // HEAVY, out.size, threads()), 1)
    parts = parts_of((data, out), workers)
    call_shares(binder, [[(function.reduce, (x, axes, y.dtype, y, True))] for x, y in parts])


# --------------------------------------------------------------------------- cumulative sums


_LONG = 256
"""Elements of a row from which on an addition of rows is faster than ``np.add.accumulate``, which goes by elements."""


@fast(CumSum, in_f32=True)
def cumsum(op: CumSum, binder: Binder, data: Array, axis: Array) -> bool:
    is_native = data.dtype.kind in "iu" or data.dtype in (np.float32, np.float64)
    if not is_native or not binder.is_constant(1) or not data.size or not data.ndim:
        return False
    along = op.normalize_axis(int(axis.item()), data.ndim, of=data.shape)
    x = np.moveaxis(data, along, 0)
    y = np.moveaxis(binder.output(order=memory_order(data)), along, 0)
    if op.reverse:
        x, y = x[::-1], y[::-1]
    if op.exclusive:
        binder.call(y[:1].fill, 0)
        x, y = x[:-1], y[1:]
    if y.strides[-1] == y.itemsize and y[:1].size >= _LONG:
        binder.call(np.copyto, y[0], x[0])
        for i in range(1, len(y)):
            call_elementwise(binder, np.add, y[i - 1], x[i], y[i])
    elif len(y):
        binder.call(np.add.accumulate, x, 0, y.dtype, y)
    return True
