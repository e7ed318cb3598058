"""Reductions along constant axes: one call of NumPy, shared among threads, or sums by products; CumSum by whole rows,
where NumPy would add up single elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import gcd, prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.fast_calls import number
from ovir.core.parallel import threads
from ovir.fast.base.binder_protocol import (
    HEAVY,
    NATIVE,
    Binder,
    call_elementwise,
    call_shares,
    is_native,
    is_real,
    parts_of,
)
from ovir.fast.base.coalesce import is_dense, memory_order
from ovir.fast.base.sums import bind_mean, bind_squares, bind_sum, reduced_output, scratch_like
from ovir.fast.registry import fast, fast_kernel
from ovir.kernels.precision import fill_saturated
from ovir.ops import reduction as ops

_FUNCTIONS: dict[type[ops.ReductionBase], np.ufunc] = {
    ops.ReduceSum: np.add,
    ops.ReduceMean: np.add,
    ops.ReduceProd: np.multiply,
    ops.ReduceMax: np.maximum,
    ops.ReduceMin: np.minimum,
    ops.ReduceLogicalAnd: np.logical_and,
    ops.ReduceLogicalOr: np.logical_or,
}
_WITHOUT_NAN: dict[np.ufunc, np.ufunc] = {np.maximum: np.fmax, np.minimum: np.fmin}


@fast(ops.ReductionBase, in_f32=True)
def reduction(op: ops.ReductionBase, binder: Binder, data: Array, axes: Array) -> bool:
    if not binder.is_constant(1) or not data.size or not (along := op.axes(axes, data.ndim)):
        return False
    is_integral, is_wide = data.dtype.kind in "iu", ops.is_wide(data.dtype)
    if is_integral and type(op) in _OF_SUMS and not (is_wide and isinstance(op, ops.ReduceSum)):
        _bind_integer_sum(op, binder, data, along)
    elif is_integral and (isinstance(op, ops.ReduceL2) or (isinstance(op, ops.ReduceProd) and not is_wide)):
        _bind_in_reals(op, binder, data, along)
    elif not is_real(data):
        if data.dtype.kind not in "iub":
            return False
        _reduce(_FUNCTIONS[type(op)], data, along, reduced_output(binder, data, along), binder)
    elif isinstance(op, ops.ReduceSum | ops.ReduceMean):
        bind = bind_mean if isinstance(op, ops.ReduceMean) else bind_sum
        bind(binder, data, along, reduced_output(binder, data, along))
    elif isinstance(op, ops.ReduceL1):
        out, sizes = reduced_output(binder, data, along), scratch_like(binder, data)
        call_elementwise(binder, np.absolute, data, sizes)
        bind_sum(binder, sizes, along, out)
    elif isinstance(op, ops.ReduceL2):
        out = reduced_output(binder, data, along)
        call_elementwise(binder, np.sqrt, bind_squares(binder, data, along), out)
    else:
        function = _WITHOUT_NAN.get(_FUNCTIONS[type(op)], _FUNCTIONS[type(op)])
        _reduce(function, data, along, reduced_output(binder, data, along), binder)
    return True


_OF_SUMS = (ops.ReduceSum, ops.ReduceMean, ops.ReduceL1)


def _bind_integer_sum(op: ops.ReductionBase, binder: Binder, data: Array, along: tuple[int, ...]) -> None:
    """Bind a reduction of integers that is a sum, or made of one; narrow integers are added up in int64."""
    wide = data.dtype if ops.is_wide(data.dtype) else np.dtype(np.int64)
    out, total = reduced_output(binder, data, along), scratch_like(binder, data, along, wide)
    if isinstance(op, ops.ReduceL1):
        sizes = scratch_like(binder, data, dtype=wide)
        call_elementwise(binder, lambda x, y: np.absolute(x, y, dtype=y.dtype), data, sizes)
        data = sizes
    _reduce(np.add, data, along, total, binder)
    count = prod(data.shape[axis] for axis in along) if isinstance(op, ops.ReduceMean) else 1
    binder.call(_store_integers, total, count, out)


def _store_integers(total: Array, count: int, out: Array) -> None:
    """Store total / count, truncated and saturated."""
    if count > 1:
        quotient = total // count
        total = quotient + ((total < 0) & (quotient * count != total))
    info = np.iinfo(out.dtype)
    np.copyto(out, np.clip(total, info.min, info.max), "unsafe")


def _bind_in_reals(op: ops.ReductionBase, binder: Binder, data: Array, along: tuple[int, ...]) -> None:
    """Bind a reduction of integers that is computed in f64, truncated and saturated."""
    out, reals = reduced_output(binder, data, along), scratch_like(binder, data, dtype=np.float64)
    if isinstance(op, ops.ReduceL2):
        call_elementwise(binder, lambda x, y: np.multiply(x, x, y, dtype=y.dtype), data, reals)
        total = bind_sum(binder, reals, along)
        binder.call(np.sqrt, total, total)
    else:
        call_elementwise(binder, lambda x, y: np.copyto(y, x), data, reals)
        total = scratch_like(binder, reals, along)
        _reduce(np.multiply, reals, along, total, binder)
    binder.call(fill_saturated, total, out)


def _reduce(function: np.ufunc, data: Array, axes: tuple[int, ...], out: Array, binder: Binder) -> None:
    """Bind a function of two elements that is applied over and over."""
    if function is np.multiply and data.dtype.kind == "f" and _bind_product_of_columns(binder, data, axes, out):
        return
    workers = max(min(data.size // HEAVY, out.size, threads()), 1)
    parts = parts_of((data, out), workers)
    call_shares(binder, [[(function.reduce, (x, axes, y.dtype, y, True))] for x, y in parts])


_WIDTHS = 16, 1024
"""The least and the largest number of columns of which products are computed, side by side, before their own product.
NumPy's product of one row waits for each factor: a million take 0.84 ms, as columns 0.07."""


def _bind_product_of_columns(binder: Binder, data: Array, axes: tuple[int, ...], out: Array) -> bool:
    """Bind the products of rows that are dense in memory; return False for others, and for short ones."""
    order = memory_order(data)
    length = prod(data.shape[axis] for axis in axes)
    width = gcd(length, _WIDTHS[1])
    is_rows = set(order[len(order) - len(axes) :]) == set(axes) and is_dense(data)
    if not is_rows or width < _WIDTHS[0] or length < 4 * width:
        return False
    rows = data.transpose(order).reshape(-1, length // width, width)
    columns = binder.scratch((len(rows), width), data.dtype)
    target = out.transpose(order).reshape(-1)
    binder.call(np.multiply.reduce, rows, 1, data.dtype, columns)
    binder.call(np.multiply.reduce, columns, 1, data.dtype, target)
    return True


@fast_kernel(ops.ReductionBase)
def one_reduction(op: ops.ReductionBase) -> Callable[..., Array]:
    """Return a kernel of one reduction by NumPy, which combines the same elements in the same order as ``run``."""
    function, is_mean = _FUNCTIONS.get(type(op)), isinstance(op, ops.ReduceMean)
    if function is None or not op.input_types or not NATIVE.issuperset(op.input_types):
        return op.run
    dtype = op.input_types[0].to_dtype()
    is_exact = function not in (np.add, np.multiply)
    if not (is_exact or dtype.kind == "f" or (ops.is_wide(dtype) and not is_mean)):
        return op.run
    function = _WITHOUT_NAN.get(function, function)
    axes_dtype = op.input_types[1].to_dtype()

    @lru_cache(_MOST_PLACES)
    def places(rank: int, listed: bytes) -> tuple[tuple[int, ...], list[int], list[int]]:
        """Return the reduced axes, and two transpositions: one that makes them the last axes, and the one back. These
        are empty if the axes are the last ones already, or if the order of the elements does not matter."""
        along = op.axes(np.frombuffer(listed, axes_dtype), rank)
        order = [*(axis for axis in range(rank) if axis not in along), *along]
        if is_exact or order == sorted(order):
            return along, [], []
        return along, order, [order.index(axis) for axis in range(rank)]

    def run(data: Array, axes: Array) -> Array:
        along, order, back = places(data.ndim, axes.tobytes())
        if not data.size or not along:
            return op.run(data, axes)
        rows = np.ascontiguousarray(data.transpose(order)).transpose(back) if order else np.ascontiguousarray(data)
        result = function.reduce(rows, along, data.dtype, keepdims=op.keep_dims)
        return np.asarray(np.divide(result, number(data.size // result.size, data)) if is_mean else result)

    return run


_MOST_PLACES = 8
"""The number of ranks and axes for which a kernel keeps what it has computed from them."""


# --------------------------------------------------------------------------- cumulative sums


_LONG = 256
"""Elements of a row from which on an addition of rows is faster than ``np.add.accumulate``, which goes by elements."""


@fast(ops.CumSum, in_f32=True)
def cumsum(op: ops.CumSum, binder: Binder, data: Array, axis: Array) -> bool:
    if not is_native(data) or not binder.is_constant(1) or not data.size or not data.ndim:
        return False
    along = op.normalize_axis(axis, data.ndim, of=data.shape)
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
