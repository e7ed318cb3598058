"""Binds one operation for tests, with arrays that show what is read before it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ovir.ops.base.operator import Operator

Array = np.ndarray[Any, Any]


class LoneBinder:
    """A binder whose outputs and workspace are full of NaN or of the largest integers."""

    def __init__(
        self,
        inputs: tuple[Array, ...],
        outputs: Sequence[tuple[tuple[int, ...], np.dtype[Any]]],
        constants: set[int],
        wanted: set[int] | None = None,
    ) -> None:
        self.inputs = inputs
        self.results: list[Array | None] = [None] * len(outputs)
        self.calls: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._outputs = outputs
        self._constants = constants
        self._wanted = set(range(len(outputs))) if wanted is None else wanted

    def is_constant(self, index: int) -> bool:
        return index in self._constants

    def is_wanted(self, index: int) -> bool:
        return index in self._wanted

    def may_overwrite(self, index: int) -> bool:
        return False

    def output_dtype(self, index: int = 0) -> np.dtype[Any]:
        return self._outputs[index][1]

    def output_shape(self, index: int = 0) -> tuple[int, ...]:
        return self._outputs[index][0]

    def output(self, index: int = 0, order: Sequence[int] | None = None) -> Array:
        shape, dtype = self._outputs[index]
        order = range(len(shape)) if order is None else order
        array = _filled([shape[axis] for axis in order], dtype).transpose(np.argsort(order).tolist())
        self.results[index] = array
        return array

    def bordered_output(self, order: Sequence[int]) -> Array | None:
        return None

    def bordered(self, index: int) -> Array | None:
        return None

    def overwrite(self, index: int) -> Array:
        raise AssertionError("may_overwrite is false")

    def view(self, array: Array, index: int = 0) -> None:
        self.results[index] = array

    def scratch(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        return _filled(shape, np.dtype(dtype))

    def kept(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        return np.zeros(shape, dtype)

    def prepared(self, form: str, make: Callable[[], Array]) -> Array:
        return make()

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        self.calls.append((function, arguments))

    def run(self) -> list[Array]:
        for function, arguments in self.calls:
            function(*arguments)
        assert all(array is not None for array in self.results), "an output was not bound"
        return [array for array in self.results if array is not None]


def _filled(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    memory = np.full(int(np.prod(shape)) * dtype.itemsize, 0xFF, np.uint8)
    return memory.view(dtype).reshape(shape)


def bound_results(
    op: Operator,
    inputs: tuple[Array, ...],
    outputs: list[Array],
    constants: set[int],
    wanted: set[int] | None = None,
) -> list[Array] | None:
    """Return what the bound form of an operation computes in its second run, or None if it has none. Of the outputs it
    has to fill only those that are wanted.

    The inputs are changed between the runs, so that what is computed too early is seen.
    """
    given = tuple(array if i in constants else np.full_like(array, 1) for i, array in enumerate(inputs))
    binder = LoneBinder(given, [(array.shape, array.dtype) for array in outputs], constants, wanted)
    with np.errstate(all="ignore"):
        if not op.bind(binder, *given):
            return None
        binder.run()
        for target, array in zip(given, inputs, strict=True):
            if target is not array:
                np.copyto(target, array)
        return binder.run()
