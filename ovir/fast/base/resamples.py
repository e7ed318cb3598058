"""Fast forms of resizing: each axis is one ``take`` of all taps and one ``einsum`` that adds them up.

Large outputs and integers are resized in blocks, which threads share.
"""

from __future__ import annotations

from functools import partial, reduce
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.fast_calls import einsum
from ovir.fast.base.binder_protocol import Binder, call_shares, cuts, is_real
from ovir.fast.base.coalesce import in_order, memory_order
from ovir.fast.base.moves import bind_copy, bind_positions, memory_of
from ovir.kernels.resample import AxisTaps, Method, Taps, resample

_MOST_ELEMENTS = 1 << 19
"""Elements of an output up to which one thread is enough."""
_BLOCK_ELEMENTS = 1 << 18
"""The largest number of elements in a block, which fits a shared cache."""
_TILE_ELEMENTS = 1 << 14
"""Elements of weights that are repeated for each element of the inner axes, so that loops are long."""


def bind_resampled(binder: Binder, method: Method, data: Array, passes: AxisTaps) -> bool:
    """Bind the resizing of the axes of ``passes`` to output 0 and return whether that was done."""
    if not data.size or not prod(binder.output_shape()):
        return False
    is_small = prod(binder.output_shape()) <= _MOST_ELEMENTS
    if is_small and method.mode == "nearest":
        memory, positions = memory_of(data)
        table = reduce(lambda table, item: table.take(item[1].index[0], item[0]), passes, positions)
        return bind_positions(binder, memory, table, np.zeros((), data.dtype), memory_order(data))
    if not is_small or not is_real(data):
        _bind_blocks(binder, method, data, passes)
        return True
    order = memory_order(data)
    shape, back = in_order(data.shape, order)
    source = data.transpose(order)
    if not source.flags.c_contiguous:
        source = binder.scratch(shape, data.dtype)
        bind_copy(binder, data, source.transpose(back))
    out = binder.output(order=order).transpose(order)
    placed = cheapest_first(method, source, [(order.index(axis), taps) for axis, taps in passes])
    for number, (axis, taps) in enumerate(placed, 1):
        shape = (*source.shape[:axis], taps.length, *source.shape[axis + 1 :])
        target = out if number == len(placed) else binder.scratch(shape, data.dtype)
        _bind_axis(binder, source, axis, taps, target)
        source = target
    return True


def _bind_blocks(binder: Binder, method: Method, data: Array, passes: AxisTaps) -> None:
    """Bind the resizing of groups of slices along the first resized axis, or of parts of a single large slice."""
    out = binder.output()
    if not data.flags.c_contiguous:
        copy = binder.scratch(data.shape, data.dtype)
        bind_copy(binder, data, copy)
        data = copy
    first = min(axis for axis, _ in passes)
    slices = prod(data.shape[:first])
    x = data.reshape(slices, *data.shape[first:])
    y = out.reshape(slices, *out.shape[first:])
    passes = [(axis - first + 1, taps) for axis, taps in passes]
    passes = cheapest_first(method, x, passes)
    work = max(x.size, y.size) // slices
    if work < _BLOCK_ELEMENTS:
        blocks = [(x[group], passes, y[group]) for group in cuts(slices, -(-slices * work // _BLOCK_ELEMENTS))]
    else:
        blocks = []
        for part in cuts(y.shape[1], -(-work // _BLOCK_ELEMENTS)):
            along = dict(passes)
            low, high, along[1] = _part(along[1], part)
            blocks += [(x[i : i + 1, low:high], list(along.items()), y[i : i + 1, part]) for i in range(slices)]
    call_shares(binder, [[(resample, (method, *block))] for block in blocks])


def cheapest_first(method: Method, x: Array, passes: AxisTaps) -> AxisTaps:
    """Sort passes by cost: shrinking axes before growing ones, and the last axis, whose gathers cost most, where it has
    least to do. The order of integers and of numbers of 8 bits stays, because it decides how they are rounded."""

    def rank(item: tuple[int, Taps]) -> tuple[float, int]:
        axis, taps = item
        growth = taps.length / x.shape[axis]
        return growth, axis if growth < 1 else -axis

    is_kept = (x.dtype.kind in "iu" or x.dtype.itemsize == 1) and method.mode != "nearest"
    return passes if is_kept else sorted(passes, key=rank)


def _part(taps: Taps, place: slice) -> tuple[int, int, Taps]:
    """Return the input range that some of the outputs read, [low, high), and their taps relative to it."""
    index = taps.index[:, place]
    low, high = int(index.min()), int(index.max()) + 1
    return low, high, Taps(index - low, taps.weight[:, place], taps.unit[:, place], taps.gain)


def _bind_axis(binder: Binder, source: Array, axis: int, taps: Taps, target: Array) -> None:
    """Bind the sums of weighted taps along one axis of a contiguous array."""
    before, size, inner = prod(source.shape[:axis]), source.shape[axis], prod(source.shape[axis + 1 :])
    count = len(taps.index)
    weights = taps.unit.astype(source.dtype)
    terms = binder.scratch((before, count, taps.length, inner), source.dtype)
    binder.call(source.reshape(before, size, inner).take, taps.index.astype(np.intp), 1, terms, "clip")
    if taps.length * inner <= _TILE_ELEMENTS:
        tile = np.repeat(weights, inner, axis=1)
        sums = partial(einsum, "akz,kz->az", out=target.reshape(before, -1))
        binder.call(sums, terms.reshape(before, count, -1), tile)
    else:
        sums = partial(einsum, "akil,ki->ail", out=target.reshape(before, taps.length, inner))
        binder.call(sums, terms, weights)
