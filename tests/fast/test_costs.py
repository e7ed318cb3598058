"""Which way a form chooses: the calls that it adds, the numbers that they read and write, the bytes of workspace, and
the names of what it prepares.

Most ways give the same results, so that only time tells them apart. Where a row differs, measure which of the two ways
is faster, as benchmarks do; if it is the new one, the test says what the row has to be.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.binding import LoneBinder
from support.kernel_contract import _applied

from ovir.core import parallel
from ovir.core.arrays import Array
from ovir.fast.base import products
from ovir.fast.base.coalesce import in_order, memory_order
from ovir.fast.registry import bind
from ovir.ops import find
from ovir.ops.base.operator import Operator

pytestmark = pytest.mark.slow

ROWS = (Path(__file__).parent / "costs.txt").read_text().splitlines()
"""An operation with its attributes; its inputs, of which the first changes, or those that follow ``changing``, or all if
it ends so; calls; numbers; bytes; the order of the output in memory; the names of what is prepared from constants; or
``run``, if the form leaves these arrays to the kernel.

An input is the type and sizes of an array, with a factor before and the order of its axes in memory behind, or integers
in brackets, an integer in parentheses, or a real number after ``=``.
"""


class _Counted(LoneBinder):
    """A binder that counts the bytes of workspace, and notes what is prepared."""

    workspace, names = 0, ""

    def prepared(self, name: str, make: Callable[[], Array]) -> Array:
        self.names += f"; {name}"
        return super().prepared(name, make)

    def scratch(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        found = super().scratch(shape, dtype)
        self.workspace += found.nbytes
        return found


def _array(text: str, least: float) -> Array:
    if text.startswith("["):
        return np.array([int(number) for number in text[1:-1].split(",")])
    if text.startswith("="):
        return np.array(text[1:], np.float32)
    if text.startswith("("):
        return np.array(int(text[1:-1]))
    factor, _, text = text.rpartition("*")
    text, _, order = text.partition(":")
    sizes = text.split(",")
    dtype = "f4" if sizes[0].isdigit() else sizes.pop(0)
    shape = tuple(map(int, sizes))
    laid, back = in_order(shape, [int(axis) for axis in order] or range(len(shape)))
    numbers = np.random.default_rng(0).uniform(least, 3, laid) * float(factor or 1)
    return np.asarray(numbers.astype(dtype).transpose(back))


def _inputs(text: str) -> tuple[tuple[Array, ...], set[int]]:
    """Return inputs, and which of them are constant."""
    text, mark, listed = text.partition(" changing")
    inputs = tuple(_array(each, 1 if i else -3) for i, each in enumerate(text.split()))
    if mark and not listed:
        return inputs, set()
    return inputs, set(range(len(inputs))).difference(map(int, listed.split(",") if listed else "0"))


def _operation(text: str, inputs: tuple[Array, ...]) -> Operator:
    name, *attributes = text.split()
    kind, _, opset = name.partition("-")
    cls = find(kind, int(opset))
    assert cls is not None
    texts = dict(attribute.split("=") for attribute in attributes)
    op = cls(**{cls.attributes[name].field: cls.attributes[name].parse(text) for name, text in texts.items()})
    applied = _applied(op, inputs, {})
    assert applied is not None
    return applied


def _single(function: Callable[..., object], arguments: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the names and the arguments of the calls that a call makes on all threads."""
    if isinstance(function, partial):
        yield from _single(function.func, [*function.args, *arguments, *function.keywords.values()])
    elif function is parallel.run_blocks and "shares" in (closed := inspect.getclosurevars(arguments[0]).nonlocals):
        yield f"{len(closed['shares'])} shares", []
        for share in closed["shares"]:
            for call in share:
                yield from _single(*call)
    else:
        yield function.__name__, [*arguments, getattr(function, "__self__", None)]


def _cost(op: Operator, inputs: tuple[Array, ...], constants: set[int]) -> tuple[str, Array | None]:
    """Return the cost of a form, and its result, None if the form refuses these arrays."""
    shapes = [shape.to_tuple() for shape in op.output_shapes]
    outputs = list(zip(shapes, (t.to_dtype() for t in op.output_types), strict=True))
    binder = _Counted(inputs, outputs, constants, {0})
    with parallel.limit(2), np.errstate(all="ignore"):
        if not bind(op, binder, *inputs):
            return "run", None
        calls = [call for function, arguments in binder.calls for call in _single(function, arguments)]
        result = binder.run()[0]
    names = Counter(name for name, _ in calls)
    numbers = sum(a.size for _, arguments in calls for a in arguments if isinstance(a, np.ndarray))
    listed = ", ".join(name if count == 1 else f"{count} {name}" for name, count in names.items())
    order = "".join(map(str, memory_order(result)))
    return f"{listed or 'no call'}; {numbers}; {binder.workspace}; {order}{binder.names}", result


@pytest.mark.usefixtures("calls_are_made_once")
@pytest.mark.parametrize("row", ROWS)
def test_costs(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "has_small_products", lambda: True)
    operation, given, expected = row.split(" | ")
    inputs, constants = _inputs(given)
    op = _operation(operation, inputs)
    cost, result = _cost(op, inputs, constants)
    assert cost == expected
    if result is None:
        return
    results = op.run(*inputs)
    wanted = results[0] if isinstance(results, tuple) else results
    _require_near(result, wanted)
    if sum(array.size for array in inputs) < 1 << 14:
        _, result = _cost(op, tuple(map(_with_gaps, inputs)), constants)
        if result is not None:
            _require_near(result, wanted)
        for index in constants:
            if not op.reads_value(index):
                _require_read(op, inputs, constants - {index}, index)


def _require_read(op: Operator, inputs: tuple[Array, ...], constants: set[int], changed: int) -> None:
    """Require that a form reads an input that is not constant in each run, if it takes it."""
    given = tuple(array.copy() for array in inputs)
    shapes = [shape.to_tuple() for shape in op.output_shapes]
    binder = LoneBinder(given, list(zip(shapes, (t.to_dtype() for t in op.output_types), strict=True)), constants, {0})
    with np.errstate(all="ignore"):
        if bind(op, binder, *given):
            given[changed][...] = np.flip(given[changed]) / given[changed].dtype.type(2)
            results = op.run(*given)
            _require_near(binder.run()[0], results[0] if isinstance(results, tuple) else results)


def _with_gaps(array: Array) -> Array:
    """Return an equal array whose elements do not lie side by side along the last axis."""
    return array.repeat(2, axis=-1)[..., ::2] if array.ndim else array


def _require_near(result: Array, wanted: Array) -> None:
    error, wide = 1e-3 if wanted.dtype == np.float16 else 1e-5, wanted.astype(np.float64)
    largest = np.nanmax(np.abs(wide), initial=0)
    np.testing.assert_allclose(result.astype(np.float64), wide, rtol=0, atol=error * largest)
