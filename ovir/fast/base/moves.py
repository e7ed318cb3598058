"""Fast forms of operations that move elements: copies between views, found by running the operation on positions.

``run`` is called once, on an array that holds for each element of the data where it lies in memory. The result says for
each element of the output which one it copies. Where these positions are evenly spaced along each axis, or along
stretches of it, one strided copy moves a stretch; otherwise one ``take`` moves everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ovir.core.arrays import Array
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.fast.base.binder_protocol import Binder, call_elementwise, others_are_constant
from ovir.fast.base.coalesce import coalesced, memory_order, strided
from ovir.ops.base.operator import Operator

_MOST_COPIES = 16
"""The number of copies that are made instead of one ``take``."""
_MOST_POSITIONS = 1 << 16
"""The most elements of a table of positions that a binding keeps."""
_MOST_TRIED = 1 << 21
"""The most elements of a table of positions that is only made while an operation is bound."""
_THREADED = 1 << 20
"""Elements of a copy that threads share."""
_FEW, _MANY = 4, 64
"""If rows have at most ``_FEW`` elements and there are at least ``_MANY`` rows, one copy for each place in a row is
faster than a copy with an inner loop for each row."""


def bind_copy(binder: Binder, source: Array, target: Array) -> None:
    """Bind the copy of ``source`` to ``target``, to which it broadcasts."""
    if not target.size:
        return
    if target.size >= _THREADED:
        call_elementwise(binder, cast, source, target)
        return
    source, target = coalesced(source, target)
    is_narrow = source.ndim > 1 and 1 < source.shape[-1] <= _FEW and target.size >= _MANY * source.shape[-1]
    if is_narrow and source.strides[-1] != source.itemsize:
        for i in range(source.shape[-1]):
            binder.call(np.copyto, target[..., i], source[..., i])
    else:
        binder.call(np.copyto, target, source)


def cast(source: Array, target: Array) -> None:
    """Copy an array to another, which may have another type."""
    np.copyto(target, source, "unsafe")


def bind_written(op: Any, binder: Binder, *inputs: Array) -> bool:
    """Bind ``op.write(out, *inputs)`` to input 0, if nothing reads it afterwards, or to a copy of it."""
    data, *others = inputs
    if binder.may_overwrite(0) and data.flags.c_contiguous:
        out = binder.overwrite(0)
    else:
        out = binder.output()
        binder.call(np.copyto, out, data)
    binder.call(op.write, out, *others)
    return True


def bind_reshaped(op: Operator, binder: Binder, *inputs: Array) -> bool:
    """Bind a copy of input 0 to the output, which has the same elements in row-major order."""
    if not others_are_constant(binder):
        return False  # ``run`` checks them
    bind_copy(binder, inputs[0], binder.output().reshape(inputs[0].shape))
    return True


def bind_moves(op: Operator, binder: Binder, *inputs: Array) -> bool:
    """Bind an operation that carries the elements of input 0 to places that only its constant inputs determine.

    A further input that it carries is a constant of one element, which fills all other places; without it they become
    zero. Whatever the kernel reports or refuses is left to ``run``.
    """
    data, *others = inputs
    size = prod(binder.output_shape())
    if not size or size > _MOST_TRIED or not data.size or not data.ndim or data.dtype != binder.output_dtype():
        return False
    if not others_are_constant(binder):
        return False
    memory, positions = memory_of(data)
    fill = np.zeros((), data.dtype)
    for index in op.moves_elements[1:]:
        if index < len(inputs):
            if inputs[index].size != 1:
                return False
            fill = inputs[index].reshape(())
            others[index - 1] = np.zeros((), positions.dtype)
    reports: list[str] = []
    try:
        with reporting_to(lambda code, message, effect: reports.append(message)):
            table = op.run(positions + 1, *others)
    except OperatorError:
        return False
    if reports or not isinstance(table, np.ndarray):
        return False
    return bind_positions(binder, memory, table - 1, fill, memory_order(data))


def bind_positions(binder: Binder, memory: Array, table: Array, fill: Array, order: Sequence[int]) -> bool:
    """Bind ``memory[table]`` to output 0, and ``fill`` where the table is negative; return whether it pays.

    ``order`` is the order in memory of the output, if it has as many axes.
    """
    if not table.ndim:
        return False
    copies = _copies(table)
    if copies is None and table.size > _MOST_POSITIONS:
        return False
    if copies is not None and len(copies) == 1:
        lines = copies[0][1]
        if lines is not None and all(len(line.sizes) == 1 for line in lines):
            binder.view(_source(memory, lines))
            return True
    out = binder.output(order=order if len(order) == table.ndim else None)
    if copies is None:
        _bind_take(binder, memory, table, fill, out)
        return True
    for place, copy in copies:
        target = out[place]
        if copy is None:
            bind_copy(binder, fill, target)
            continue
        source = _source(memory, copy)
        strides = [_split(stride, line.sizes) for stride, line in zip(target.strides, copy, strict=True)]
        bind_copy(binder, source, strided(target, source.shape, sum(strides, ()), writeable=True))
    return True


def _source(memory: Array, lines: Sequence[_Line]) -> Array:
    """Return the elements that lines of positions select, with an axis for each of their levels."""
    sizes = sum((line.sizes for line in lines), ())
    strides = [step * memory.itemsize for line in lines for step in line.steps]
    return strided(memory[sum(line.first for line in lines) :], sizes, strides)


def _split(stride: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of an axis that is split into sizes."""
    return tuple(stride * prod(sizes[i + 1 :]) for i in range(len(sizes)))


def memory_of(data: Array) -> tuple[Array, Array]:
    """Return the stretch of memory in which data lies, as a flat array, and the position in it of each element."""
    assert all(stride % data.itemsize == 0 for stride in data.strides)
    steps = [stride // data.itemsize if size > 1 else 0 for stride, size in zip(data.strides, data.shape, strict=True)]
    first = data[
        tuple(slice(size - 1, None) if step < 0 else slice(1) for size, step in zip(data.shape, steps, strict=True))
    ]
    lines = [
        (np.arange(size) * step if step >= 0 else np.arange(1 - size, 1) * step).reshape(-1, *[1] * (data.ndim - i - 1))
        for i, (size, step) in enumerate(zip(data.shape, steps, strict=True))
    ]
    positions: Array = np.zeros(data.shape, np.int64)
    for line in lines:
        positions += line
    memory = strided(first, (int(positions.max()) + 1,), (data.itemsize,))
    return memory, positions


def _bind_take(binder: Binder, memory: Array, table: Array, fill: Array, out: Array) -> None:
    order = memory_order(out)
    table, out = np.ascontiguousarray(table.transpose(order)), out.transpose(order)
    binder.call(memory.take, table.clip(0).astype(np.intp), 0, out, "clip")
    if (table < 0).any():
        binder.call(np.copyto, out, fill, "same_kind", table < 0)


class _Line(NamedTuple):
    """Evenly spaced positions, in several levels from the slowest to the fastest."""

    first: int
    sizes: tuple[int, ...]
    steps: tuple[int, ...]


_Place = tuple[slice, ...]


def _copies(table: Array) -> list[tuple[_Place, Sequence[_Line] | None]] | None:
    """Return boxes of the output, each with the positions along its axes, whose sum it copies; None stands for the fill
    value. Return None if the table has no such form, or too many boxes."""
    inside = table >= 0
    if not inside.any():
        return [((slice(None),) * table.ndim, None)]
    reference = tuple(int(i) for i in np.unravel_index(int(inside.argmax()), table.shape))
    axes: list[list[tuple[slice, _Line | None]]] = []
    lines = []
    for axis in range(table.ndim):
        place: tuple[Any, ...] = (*reference[:axis], slice(None), *reference[axis + 1 :])
        line = table[place]
        parts = _parts(line, int(table[reference]) if axis else 0)
        if parts is None:
            return None
        axes.append(parts)
        lines.append(line.reshape(-1, *[1] * (table.ndim - axis - 1)))
    if prod(len(parts) for parts in axes) > _MOST_COPIES or not _is_sum(table, inside, lines, int(table[reference])):
        return None
    return [*_filled(axes), *_moved(axes)]


def _is_sum(table: Array, inside: Array, lines: Sequence[Array], reference: int) -> bool:
    """Return whether the table is the sum of its lines, and negative just where one of them is."""
    total = reduce(np.add, lines) - (len(lines) - 1) * reference
    expected = reduce(np.logical_and, [line >= 0 for line in lines])
    return bool((expected == inside).all() and ((total == table) | ~inside).all())


def _moved(axes: Sequence[Sequence[tuple[slice, _Line | None]]]) -> Iterator[tuple[_Place, list[_Line]]]:
    for parts in product(*axes):
        lines = [line for _, line in parts if line is not None]
        if len(lines) == len(parts):
            yield tuple(place for place, _ in parts), lines


def _filled(axes: Sequence[Sequence[tuple[slice, _Line | None]]]) -> Iterator[tuple[_Place, None]]:
    """Yield boxes that cover the filled part, without overlapping."""
    for axis, parts in enumerate(axes):
        before = [[place for place, line in others if line is not None] for others in axes[:axis]]
        for place, line in parts:
            if line is None:
                for lead in product(*before):
                    yield (*lead, place, *[slice(None)] * (len(axes) - axis - 1)), None


def _parts(line: Array, offset: int) -> list[tuple[slice, _Line | None]] | None:
    """Split a line into stretches of evenly spaced positions, relative to an offset; None if they are too many."""
    parts: list[tuple[slice, _Line | None]] = []
    start = 0
    while start < len(line):
        if len(parts) == _MOST_COPIES:
            return None
        rest = line[start:]
        is_fill = bool(rest[0] < 0)
        ends = np.flatnonzero((rest < 0) != is_fill)
        rest = rest[: ends[0]] if ends.size else rest
        sizes, steps = ((len(rest),), (0,)) if is_fill else _regular(rest)
        stop = start + prod(sizes)
        parts.append((slice(start, stop), None if is_fill else _Line(int(rest[0]) - offset, sizes, steps)))
        start = stop
    return parts


def _regular(line: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes and steps of the longest evenly spaced stretch at the start of a line."""
    sizes: tuple[Any, ...] = ()
    steps: tuple[Any, ...] = ()
    length = 1
    while 2 * length <= len(line):
        repeats = line[: len(line) // length * length].reshape(-1, length)
        step = int(line[length] - line[0])
        even = (repeats == repeats[0] + step * np.arange(len(repeats))[:, np.newaxis]).all(axis=1)
        count = len(even) if even.all() else int(even.argmin())
        if count < 2:
            break
        sizes, steps, length = (count, *sizes), (step, *steps), length * count
    return sizes or (1,), steps or (0,)
