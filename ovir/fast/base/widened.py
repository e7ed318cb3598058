"""Fast forms for f16 and bf16: the form for f32, between conversions to f32 and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from ovir.core import float16
from ovir.core.arrays import Array
from ovir.core.fast_calls import Call, Spare
from ovir.core.parallel import limit
from ovir.fast.base.binder_protocol import Binder, output_like_largest, parts_of
from ovir.fast.base.coalesce import in_order, memory_order
from ovir.fast.base.passes import call_passes


def is_narrow(dtype: np.dtype[Any]) -> bool:
    """Return whether numbers of a type are computed in f32 and rounded once."""
    return dtype in (np.float16, ml_dtypes.bfloat16)


class WidenedBinder:
    """The binder that a form gets whose arrays are f32 where the inputs and outputs of the step are f16 or bf16."""

    def __init__(self, binder: Binder, inputs: Sequence[Array]) -> None:
        self._binder = binder
        self._given = inputs
        self._outputs: dict[int, Array] = {}
        self.inputs = tuple(map(self._widened, range(len(inputs))))
        self.is_constant = binder.is_constant
        self.is_wanted = binder.is_wanted
        self.output_shape = binder.output_shape
        self.scratch = binder.scratch
        self.kept = binder.kept
        self.prepared = binder.prepared
        self.call = binder.call

    def _widened(self, index: int) -> Array:
        given = self._given[index]
        if not is_narrow(given.dtype):
            return given
        if self._binder.is_constant(index):
            return self._binder.prepared(f"input {index} in f32", lambda: given.astype(np.float32))
        wide = self._workspace(given.shape, memory_order(given))
        call_passes(self._binder, _conversion, given, wide)
        return wide

    def _workspace(self, shape: Sequence[int], order: Sequence[int]) -> Array:
        laid, back = in_order(shape, order)
        return self._binder.scratch(laid).transpose(back)

    def may_overwrite(self, index: int) -> bool:
        return self.inputs[index] is not self._given[index] and not self.is_constant(index)

    def output_dtype(self, index: int = 0) -> np.dtype[Any]:
        dtype = self._binder.output_dtype(index)
        return np.dtype(np.float32) if is_narrow(dtype) else dtype

    def output(self, index: int = 0, order: Sequence[int] | None = None) -> Array:
        if not is_narrow(self._binder.output_dtype(index)):
            return self._binder.output(index, order)
        shape = self.output_shape(index)
        self._outputs[index] = self._workspace(shape, range(len(shape)) if order is None else order)
        return self._outputs[index]

    def overwrite(self, index: int) -> Array:
        self._outputs[0] = self.inputs[index]
        return self._outputs[0]

    def view(self, array: Array, index: int = 0) -> None:
        self._outputs[index] = array

    def store(self) -> None:
        """Add the calls that round the outputs to their types."""
        for index, wide in self._outputs.items():
            call_passes(self._binder, _conversion, wide, self._binder.output(index, memory_order(wide)))


def bind_widened(form: Callable[..., bool], op: Any, binder: Binder, inputs: Sequence[Array]) -> bool:
    """Bind a form for f32 to inputs of which some are f16 or bf16; return whether it takes them."""
    widened = WidenedBinder(binder, inputs)
    if not form(op, widened, *widened.inputs):
        return False
    widened.store()
    return True


def bind_in_blocks(form: Callable[..., bool], op: Any, binder: Binder, inputs: Sequence[Array]) -> bool:
    """Bind an elementwise form for f32 to inputs that include f16 or bf16, in blocks that stay in a cache while
    they are converted, computed and rounded; return whether it takes them."""
    out = output_like_largest(binder, *inputs)
    takes = True

    def passes(*arguments: Any) -> list[Call]:
        nonlocal takes
        *given, target, spare = arguments
        block = _Block(binder, given, target, spare)
        with limit(1):
            takes = takes and bind_widened(form, op, block, given)
        return block.calls if takes else []

    # A parameter of one element may have more axes than the data.
    call_passes(binder, passes, *(array.reshape(array.shape[max(array.ndim - out.ndim, 0) :]) for array in inputs), out)
    return takes


class _Block:
    """The binder of a block of the inputs and the output of an elementwise operation."""

    def __init__(self, binder: Binder, inputs: Sequence[Array], target: Array, spare: Spare) -> None:
        self._binder, self._target, self._spare = binder, target, spare
        self.inputs = tuple(inputs)
        self.calls: list[Call] = []
        self.is_constant = binder.is_constant
        self.is_wanted = binder.is_wanted
        self.kept = binder.kept

    def may_overwrite(self, index: int) -> bool:
        return False

    def output_dtype(self, index: int = 0) -> np.dtype[Any]:
        return self._target.dtype

    def output_shape(self, index: int = 0) -> tuple[int, ...]:
        return self._target.shape

    def output(self, index: int = 0, order: Sequence[int] | None = None) -> Array:
        return self._target

    def overwrite(self, index: int) -> Array:
        raise AssertionError("no input may be overwritten")

    def view(self, array: Array, index: int = 0) -> None:
        self.call(float16.copy, array, self._target)

    def scratch(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        return self._spare(dtype).ravel()[: prod(shape)].reshape(shape)

    def prepared(self, name: str, make: Callable[[], Array]) -> Array:
        return make()

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        self.calls.append((function, arguments))


def _conversion(source: Array, target: Array, spare: Spare) -> list[Call]:
    return [(float16.copy, part) for part in parts_of((source, target), max(-(-source.size // _BLOCK_ELEMENTS), 1))]


_BLOCK_ELEMENTS = 1 << 17
"""Elements that are converted together: a million takes 1.5 ms to narrow; in blocks twice as large, 1.9 ms."""
