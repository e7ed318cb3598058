"""Binding: an operation is bound to arrays once, and each run is then a list of calls of functions on these arrays.

A fast form receives the arrays of the inputs, whose contents change between runs but whose memory does not. It asks the
binder for the arrays of its outputs and for workspace, and adds the calls that fill the outputs. Whatever depends only
on shapes, strides and constants happens then, so that a call costs what NumPy needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from ovir.core import element_types as t
from ovir.core.arrays import Array
from ovir.core.fast_calls import Call
from ovir.core.parallel import run_blocks, threads
from ovir.fast.base.coalesce import coalesced, in_order, memory_order


class Binder(Protocol):
    """The requests that an operation can make while it is bound."""

    @property
    def inputs(self) -> tuple[Array, ...]:
        """Return the arrays of the inputs."""

    def is_constant(self, index: int) -> bool:
        """Return whether the elements of an input are the same in every run, so that they may be read now."""

    def is_wanted(self, index: int) -> bool:
        """Return whether anything reads an output; another one may be left unfilled."""

    def may_overwrite(self, index: int) -> bool:
        """Return whether the output may take the place of an input: the operation lists it in ``inplace``, and nothing
        reads it afterwards."""

    def output_dtype(self, index: int = 0) -> np.dtype[Any]:
        """Return the type of an output."""

    def output_shape(self, index: int = 0) -> tuple[int, ...]:
        """Return the shape of an output."""

    def output(self, index: int = 0, order: Sequence[int] | None = None) -> Array:
        """Return a new array for an output; ``order`` lists its axes from the slowest to the fastest in memory, by
        default as in C. Every output needs one call of ``output``, ``overwrite`` or ``view``."""

    def overwrite(self, index: int) -> Array:
        """Return the array of an input for use as output 0; ``may_overwrite`` must be true for it."""

    def view(self, array: Array, index: int = 0) -> None:
        """Set an output to an array that shares memory with an input, so that no call is needed."""

    def scratch(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        """Return workspace, whose contents last until the last call of this operation."""

    def kept(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        """Return an array of zeros of which only this operation knows; its contents last from run to run."""

    def prepared(self, name: str, make: Callable[[], Array]) -> Array:
        """Return the array that ``make`` computes from the constant inputs. Bindings to other shapes share it under
        ``name``, which must tell apart all that it depends on besides the layer's constants."""

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Add a call to each run."""


def others_are_constant(binder: Binder) -> bool:
    """Return whether all inputs but the first are constant."""
    return all(map(binder.is_constant, range(1, len(binder.inputs))))


def is_real(array: Array) -> bool:
    """Return whether an array holds real numbers of a type that NumPy computes in."""
    return array.dtype in (np.float32, np.float64)


def is_native(array: Array) -> bool:
    """Return whether an array holds numbers or booleans of a type that NumPy computes in."""
    return is_real(array) or array.dtype.kind in "iub"


NATIVE = {t.boolean, t.i8, t.i16, t.i32, t.i64, t.u8, t.u16, t.u32, t.u64, t.f32, t.f64}
"""The element types that NumPy computes in and converts fast."""
NATIVE_REALS = {t.f32, t.f64}
"""Those of real numbers."""

HEAVY, LIGHT = 1 << 17, 1 << 21
"""Elements for which a second thread pays: of expensive passes such as exp, and of passes bound by memory."""


def bind_elementwise(binder: Binder, function: Callable[..., object], *arrays: Array, heavy: bool = False) -> None:
    """Bind ``function(*arrays, out)``, which has the signature of a ufunc, to output 0.

    An input that nothing else reads is overwritten; otherwise the output has the memory order of the largest input.
    """
    shape, dtype = np.broadcast_shapes(*(array.shape for array in arrays)), arrays[0].dtype
    for index, array in enumerate(binder.inputs):
        is_like_output = array.shape == shape and array.dtype == dtype == binder.output_dtype()
        if is_like_output and any(array is a for a in arrays) and binder.may_overwrite(index):
            out = binder.overwrite(index)
            break
    else:
        out = output_like_largest(binder, *arrays)
    call_elementwise(binder, function, *arrays, out, heavy=heavy)


def output_like_largest(binder: Binder, *arrays: Array) -> Array:
    """Return a new array for output 0, in the memory order of the largest of some arrays if that has its shape."""
    largest = max(arrays, key=lambda array: array.size)
    return binder.output(order=memory_order(largest) if largest.shape == binder.output_shape() else None)


def call_elementwise(binder: Binder, function: Callable[..., object], *arrays: Array, heavy: bool = False) -> None:
    """Add the call ``function(*arrays)`` of a ufunc; the last array is its output, to which the others broadcast.

    Neighboring axes are merged where the memory of all arrays allows it. Large arrays are shared among threads.
    """
    views = coalesced(*arrays)
    out = views[-1]
    if not out.size:
        return
    workers = min(out.size // (HEAVY if heavy else LIGHT), threads())
    if workers < 2:
        binder.call(function, *views)
        return
    call_shares(binder, [[(function, part)] for part in parts_of(views, workers * 2)])


def call_shares(binder: Binder, shares: Sequence[Sequence[Call]]) -> None:
    """Add lists of calls, which threads share; a single list is added call by call."""
    calls = shares[0] if len(shares) == 1 else [shared_call(shares)]
    for function, arguments in calls:
        binder.call(function, *arguments)


def shared_call(shares: Sequence[Sequence[Call]]) -> Call:
    """Return one call that makes lists of calls, each of them on one thread."""
    _start_threads(threads())

    def run(start: int, stop: int) -> None:
        for share in shares[start:stop]:
            run_calls(share)

    return run_blocks, (run, len(shares), 1)


@cache
def _start_threads(count: int) -> None:
    """Start the threads that share calls now, so that the first run need not."""
    run_blocks(lambda start, stop: None, count)


def run_calls(calls: Sequence[Call]) -> None:
    for function, arguments in calls:
        function(*arguments)


def parts_of(views: Sequence[Array], count: int) -> list[tuple[Array, ...]]:
    """Return about ``count`` parts of views of equal rank that broadcast to the last one: along the first axis that
    has equal parts, so that inner loops stay long, or else along the longest one."""
    if count == 1:
        return [tuple(views)]
    out = views[-1]
    even = (axis for axis, size in enumerate(out.shape) if size and (size % count == 0 or size > 4 * count))
    axis = next(even, max(range(out.ndim), key=lambda axis: out.shape[axis]))
    return [
        tuple(v if v.ndim == 0 or v.shape[axis] == 1 else v[(slice(None),) * axis + (place,)] for v in views)
        for place in cuts(out.shape[axis], count)
    ]


def tiled(constant: Array, array: Array) -> Array:
    """Return a constant that is added to or multiplied with an array, to which it broadcasts, repeated so that NumPy's
    inner loops are long.

    It has one value for each index of the fastest axes of the array. Without such a form the constant itself is
    returned. With constants as they are, mtcnn_pnet takes 1.22 times as long.
    """
    if constant.size <= 1 or constant.size >= min(_LONG, array.size):
        return constant
    order = memory_order(array)
    whole, laid = np.broadcast_to(constant, array.shape).transpose(order), array.transpose(order)
    inner, axis = 1, len(order)
    while axis and inner < _LONG and _continues(laid, axis - 1) and inner * laid.shape[axis - 1] <= _MOST_IN_TILE:
        axis -= 1
        inner *= laid.shape[axis]
    if inner == constant.size or any(whole.strides[i] for i in range(axis) if whole.shape[i] > 1):
        return constant
    _, back = in_order(array.shape, order)
    return np.ascontiguousarray(whole[(slice(0, 1),) * axis]).transpose(back)


def _continues(array: Array, axis: int) -> bool:
    """Return whether an axis continues the next one in memory without a gap."""
    following = array.itemsize if axis == array.ndim - 1 else array.strides[axis + 1] * array.shape[axis + 1]
    return array.shape[axis] == 1 or array.strides[axis] == following


_LONG, _MOST_IN_TILE = 1024, 1 << 14
"""NumPy takes rows of fewer elements than ``_LONG`` through buffers (see ``ovir.core.numpy_settings``), which is half
as fast."""


def cuts(length: int, count: int) -> list[slice]:
    """Return about ``count`` slices of the same length that cover a length."""
    step = -(-length // count)
    return [slice(i, min(i + step, length)) for i in range(0, length, step)]
