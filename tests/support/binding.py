"""Binds one operation for tests, with arrays that show what is read before it is written."""

from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from typing import Any

import numpy as np

from ovir.core.tensor_types import constant_type
from ovir.diagnostics.errors import OperatorError
from ovir.fast.registry import bind
from ovir.ops.base.operator import Operator
from ovir.runtime.step_binder import bind_kernel

Array = np.ndarray[Any, Any]


class LoneBinder:
    """A binder whose outputs and workspace are full of NaN or of the largest integers."""

    def __init__(
        self,
        inputs: tuple[Array, ...],
        outputs: Sequence[tuple[tuple[int, ...], np.dtype[Any]]],
        constants: Set[int],
        wanted: set[int] | None = None,
        overwritable: tuple[int, ...] = (),
    ) -> None:
        """Prepare to bind; ``overwritable`` are the inputs that may be overwritten."""
        self.inputs = inputs
        self.results: list[Array | None] = [None] * len(outputs)
        self.calls: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._outputs = outputs
        self._constants = constants
        self._overwritable = overwritable
        self._wanted = set(range(len(outputs))) if wanted is None else wanted

    def is_constant(self, index: int) -> bool:
        return index in self._constants

    def is_wanted(self, index: int) -> bool:
        return index in self._wanted

    def may_overwrite(self, index: int) -> bool:
        return index in self._overwritable and index not in self._constants

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

    def overwrite(self, index: int) -> Array:
        assert self.may_overwrite(index)
        self.results[0] = self.inputs[index]
        return self.inputs[index]

    def view(self, array: Array, index: int = 0) -> None:
        self.results[index] = array

    def scratch(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        return _filled(shape, np.dtype(dtype))

    def kept(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        return np.zeros(shape, dtype)

    def prepared(self, name: str, make: Callable[[], Array]) -> Array:
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


Inputs = tuple[Array, ...]


def bound_results(
    op: Operator,
    inputs: Inputs,
    outputs: list[Array],
    constants: Set[int],
    wanted: set[int] | None = None,
    *,
    shares_memory: bool = False,
) -> list[Array] | None:
    """Return what the fast form of an operation computes in its second run, or None if it has none. Of the outputs it
    has to fill only those that are wanted.

    With ``shares_memory`` it may overwrite the inputs that it lists in ``inplace``.
    """
    bound = Bound(op, inputs, outputs, constants, wanted, shares_memory=shares_memory)
    return bound.run(inputs) if bound.has_form else None


class Bound:
    """An operation that is bound to arrays, to be run with several inputs of these shapes.

    It has run once with other inputs, so that what is computed too early is seen.
    """

    def __init__(
        self,
        op: Operator,
        inputs: Inputs,
        outputs: Sequence[Array],
        constants: Set[int],
        wanted: set[int] | None = None,
        *,
        kernel: Callable[..., Any] | None = None,
        shares_memory: bool = False,
    ) -> None:
        """Bind an operation in its own form, or else as a call of ``kernel``; see ``bound_results``."""
        if not op.input_types:
            op = op.applied([constant_type(a) for a in inputs], tuple(constant_type(a) for a in outputs))
        # Zero is an index that is always valid.
        self._given = tuple(
            array if i in constants else np.full_like(array, 0 if array.dtype.kind in "iu" else 1)
            for i, array in enumerate(inputs)
        )
        results = [(array.shape, array.dtype) for array in outputs]
        overwritable = op.inplace if shares_memory else ()
        wanted = set(range(len(outputs))) if wanted is None else wanted

        def binder() -> LoneBinder:
            return LoneBinder(self._given, results, constants, wanted, overwritable)

        self._binder = binder()
        with np.errstate(all="ignore"):
            self.has_form = bind(op, self._binder, *self._given)
            if not self.has_form:
                if kernel is None:
                    return
                self._binder = binder()
                bind_kernel(self._binder, kernel, tuple(index in wanted for index in range(len(outputs))))
            with suppress(OperatorError):  # of values that the inputs hold in this run only
                self._binder.run()

    def run(self, inputs: Inputs) -> list[Array]:
        """Return the outputs for other elements of the inputs that are not constant."""
        for target, array in zip(self._given, inputs, strict=True):
            if target is not array:
                np.copyto(target, array)
        with np.errstate(all="ignore"):
            return self._binder.run()
