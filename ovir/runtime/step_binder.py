"""Bind the steps of a plan: make every array once and turn each step into calls of functions on these arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.fast_calls import Call
from ovir.core.tensor_types import TensorType
from ovir.fast.base.binder_protocol import Binder
from ovir.fast.registry import bind
from ovir.graph.layers import Port
from ovir.runtime.arena import SlotMemory, Span, aligned_bytes
from ovir.runtime.plan import Step, broken_promise, results_of

T = TypeVar("T")

Prepared = dict[tuple[str, str], Array]
"""The results of operations that prepare their constants, by the key of the layer and the name of the form."""


class StepBinder:
    """The binder of one step; see ``ovir.fast.base.binder_protocol.Binder``.

    A step that is bound again, to other arrays of its inputs, makes the same requests in the same order, and gets the
    same answers: its outputs and its workspace stay where they are.
    """

    def __init__(
        self,
        step: Step,
        inputs: tuple[Array, ...],
        constants: frozenset[int],
        memory: SlotMemory,
        prepared: Prepared | None,
        *,
        types: Sequence[TensorType],
        workspace: SlotMemory | None = None,
        keeps_inputs: bool = False,
    ) -> None:
        """Bind one step; ``constants`` are the positions of inputs that never change, ``prepared`` what bindings share
        of them, and ``types`` those of the outputs. The ``workspace`` is taken from ``memory`` if None is given. With
        ``keeps_inputs`` no output takes the memory of an input."""
        self.inputs = inputs
        self.calls: list[Call] = []
        self.outputs: list[Array | None] = [None] * len(step.outputs)
        self._step = step
        self._constants = constants
        self._memory = memory
        self._prepared = prepared
        self._types = types
        self._keeps_inputs = keeps_inputs
        self._workspace = memory if workspace is None else workspace
        self._scratch: list[Span] = []
        self._answers: list[Any] = []
        self._answered = 0

    def bind_again(self, inputs: tuple[Array, ...]) -> None:
        """Replace the calls by those for other arrays, of the same types and shapes."""
        self.inputs = inputs
        self.calls.clear()
        self.outputs = [None] * len(self.outputs)
        self._answered = 0
        bind_step(self, self._step)

    def _once(self, request: object, answer: Callable[[], T]) -> T:
        """Return the answer to this request from when the step was bound first."""
        if self._answered == len(self._answers):
            self._answers.append((request, answer()))
        asked, found = self._answers[self._answered]
        self._answered += 1
        assert asked == request, (self._step.layer, asked, request)
        return found  # type: ignore[no-any-return]

    def is_constant(self, index: int) -> bool:
        return index in self._constants

    def is_wanted(self, index: int) -> bool:
        return self._step.wanted[index]

    def may_overwrite(self, index: int) -> bool:
        if self._keeps_inputs or index not in self._step.operator.inplace:
            return False
        slot = self._step.inputs[index]
        is_last = slot in self._step.release and self._step.inputs.count(slot) == 1
        return is_last and self._once(slot, lambda: self._memory.is_alone(slot)) and self.inputs[index].flags.writeable

    def output_dtype(self, index: int = 0) -> np.dtype[Any]:
        return self._types[index].element_type.to_dtype()

    def output_shape(self, index: int = 0) -> tuple[int, ...]:
        return self._types[index].shape.to_tuple()

    def output(self, index: int = 0, order: Sequence[int] | None = None) -> Array:
        shape = self.output_shape(index)
        order = range(len(shape)) if order is None else order
        laid = [shape[a] for a in order]
        dtype = self.output_dtype(index)
        array = self._once((index, laid), lambda: self._memory.allocate(self._step.outputs[index], laid, dtype))
        array = self.outputs[index] = array.transpose(np.argsort(order).tolist())
        return array

    def overwrite(self, index: int) -> Array:
        self.outputs[0] = self.inputs[index]
        self._share(0, [self._step.inputs[index]])
        return self.inputs[index]

    def view(self, array: Array, index: int = 0) -> None:
        self.outputs[index] = array
        sources = [
            slot
            for slot, source in zip(self._step.inputs, self.inputs, strict=True)
            if np.may_share_memory(source, array)
        ]
        self._share(index, sources)

    def _share(self, index: int, sources: Sequence[int]) -> None:
        self._once(("share", index), lambda: self._memory.share(self._step.outputs[index], sources))

    def scratch(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        return self._once((shape, dtype), lambda: self._take(shape, np.dtype(dtype)))

    def _take(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        span, array = self._workspace.take(shape, dtype)
        self._scratch.append(span)
        return array

    def kept(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        return self._once((shape, dtype), lambda: _zeros(shape, np.dtype(dtype)))

    def prepared(self, name: str, make: Callable[[], Array]) -> Array:
        return self._once(name, lambda: self._shared(name, make))

    def _shared(self, name: str, make: Callable[[], Array]) -> Array:
        if self._prepared is None:
            return make()
        key = self._step.layer.key, name
        if key not in self._prepared:
            self._prepared[key] = make()
        return self._prepared[key]

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        self.calls.append((function, arguments))

    def undo(self) -> None:
        """Drop the requests of an operation that turned out to have no fast form, if there are any."""
        self._once("undo", lambda: list(map(self._memory.release, self._step.outputs)))
        self.outputs = [None] * len(self._step.outputs)
        self.calls.clear()
        self.finish()

    def finish(self) -> None:
        """Give back the workspace."""
        for span in self._scratch:
            self._workspace.arena.give(span)
        self._scratch.clear()


def _zeros(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    memory = aligned_bytes(prod(shape) * dtype.itemsize)
    memory.fill(0)
    array: Array = memory.view(dtype).reshape(shape)
    return array


def bind_step(binder: StepBinder, step: Step) -> None:
    """Bind a step whose inputs have arrays and whose outputs have static shapes: as a view, in the operation's own
    form, or as a call of its kernel."""
    if not (step.may_use_fast_form and (_bind_view(binder, step) or bind(step.operator, binder, *binder.inputs))):
        binder.undo()
        bind_kernel(binder, step.kernel, step.wanted)
    binder.finish()


def _bind_view(binder: StepBinder, step: Step) -> bool:
    """Bind an operation that only views its first input: it runs once, now, and never again."""
    if not step.operator.views or not step.operator.pure:
        return False
    if not all(map(binder.is_constant, range(1, len(step.inputs)))):
        return False
    result = step.operator.run(*binder.inputs)
    outputs = result if isinstance(result, tuple) else (result,)
    if not all(np.may_share_memory(output, binder.inputs[0]) for output in outputs):
        return False
    for index, output in enumerate(outputs):
        binder.view(output, index)
    return True


def bind_kernel(binder: Binder, kernel: Callable[..., Any], wanted: Sequence[bool]) -> None:
    """Bind a call of a kernel, and copies of those of its outputs that are wanted."""
    outs = tuple(binder.output(index) for index in range(len(wanted)))
    filled = tuple((index, out) for index, out in enumerate(outs) if wanted[index])

    def fill(*inputs: Array) -> None:
        results = results_of(kernel(*inputs), len(outs))
        for index, out in filled:
            copy_result(index, out, results[index])

    binder.call(fill, *binder.inputs)


def copy_result(index: int, out: Array, array: Array) -> None:
    """Copy an output of a kernel to ``out``; raise OperatorError if its shape is not the inferred one."""
    if array.shape != out.shape:
        promised = f"{ElementType.from_dtype(out.dtype)}[{','.join(map(str, out.shape))}]"
        raise broken_promise(index, promised, array)
    np.copyto(out, array)


def has_fixed_array(port: Port) -> bool:
    """Return whether one array can hold a port's tensor in every run."""
    element_type = port.element_type
    return port.shape.is_static and not element_type.is_dynamic and element_type.kind != "string"
