"""The executor, which runs the steps of a plan. It owns the buffers and runs one call at a time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ovir.core.arrays import Array
from ovir.core.machine import physical_memory
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import RUN, TOO_LARGE, Severity
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import OperatorError, RunError
from ovir.graph.layers import Layer
from ovir.kernels.blocked import contiguous_copy
from ovir.runtime.failures import explain_failure, failed
from ovir.runtime.listeners import Listener, ListenerFailed
from ovir.runtime.memory import Buffer
from ovir.runtime.plan import Plan
from ovir.runtime.state import Variables
from ovir.runtime.step import Step


class Executor:
    """A plan with its memory. Results stay valid until the next run, or for good with ``fresh``."""

    def __init__(self, plan: Plan, variables: Variables) -> None:
        self.plan = plan
        self.variables = variables
        self.current: Layer | None = None
        self._template: list[Any] = [None] * plan.slot_count
        for slot, array in plan.constants.items():
            self._template[slot] = array
        self._refuse_what_does_not_fit()
        self._blocks = [self._allocate(size) for size in plan.memory.block_sizes]
        self._outs = [self._out(buffers) for buffers in plan.memory.buffers]
        self._fresh_steps = [
            index
            for index, buffers in enumerate(plan.memory.buffers)
            if any(b is not None and b.block in plan.memory.result_blocks for b in buffers)
        ]
        self._bodies = {
            index: {key: Executor(body, variables) for key, body in bodies.items()}
            for index, bodies in plan.bodies.items()
        }
        self._fitting: dict[int, set[tuple[tuple[int, ...], ...]]] = {
            i: set() for i, s in enumerate(plan.steps) if s.is_open
        }
        """The shapes of inputs that fit together, for each step whose sizes inference has not seen."""
        self._listeners: Sequence[Listener] = ()
        self._result_spans: list[tuple[int, int]] = []
        """The start and end address of each block of results, in order; empty until they are needed."""
        self._given_away = False
        """Whether the blocks of the results belong to the caller of the last run."""

    def _refuse_what_does_not_fit(self) -> None:
        """Raise RunError for buffers that exceed the machine's memory, because the system may grant memory that it does
        not have."""
        needed, memory = sum(self.plan.memory.block_sizes), physical_memory()
        if memory is not None and needed > memory:
            message = f"the model's tensors take {needed} bytes at once; this machine has {memory}"
            hint = "`ovir infer` shows the shapes; `--shape` gives an input another one"
            raise RunError(
                diagnose(TOO_LARGE, message, Place(self.plan.model.path), hint=hint, severity=Severity.ERROR)
            )

    def _allocate(self, size: int) -> Array:
        try:
            block = np.empty(size + _ALIGNMENT, np.uint8)
            start = -block.ctypes.data % _ALIGNMENT
            return block[start : start + size]
        except (MemoryError, ValueError):
            message = f"a layer's output takes {size} bytes, which cannot be allocated"
            raise RunError(diagnose(RUN, message, Place(self.plan.model.path))) from None

    def _out(self, buffers: tuple[Buffer | None, ...]) -> Any:
        """Return the ``out`` argument of a step, None unless every output has a buffer."""
        arrays = []
        for buffer in buffers:
            if buffer is None:
                return None
            raw = self._blocks[buffer.block][: prod(buffer.shape) * buffer.dtype.itemsize]
            arrays.append(raw.view(buffer.dtype).reshape(buffer.shape))
        return tuple(arrays) if len(arrays) != 1 else arrays[0]

    def run(self, inputs: Sequence[Array], *, fresh: bool = True, listeners: Sequence[Listener] = ()) -> list[Array]:
        """Return the outputs, in order, for inputs that match the model.

        With ``fresh`` the outputs belong to the caller; otherwise the next run overwrites them. A RunError names the
        layer that failed.
        """
        plan = self.plan
        if self._given_away:
            self._renew_results()
        else:  # the caller may pass results of the last run as inputs, but this run overwrites their memory
            inputs = [array.copy() if self._overlaps_results(array) else array for array in inputs]
        self._given_away = fresh
        slots = self._template.copy()
        for slot, array in zip(plan.parameters, inputs, strict=True):
            slots[slot] = array
        self._listeners = listeners
        try:
            for index, step in enumerate(plan.steps):
                self._run_step(index, step, slots, listeners)
        finally:
            self._listeners = ()
        borrowed = plan.memory.borrowed_results
        own = self._result_arrays() if borrowed else set()
        results: list[Array] = []
        seen: set[int] = set()
        for slot in plan.results:
            result = slots[slot]
            is_free = id(result) not in seen and (slot not in borrowed or id(result) in own)
            seen.add(id(result))
            results.append(result if is_free else contiguous_copy(result))
        return results

    def _result_arrays(self) -> set[int]:
        """Return the ids of the arrays for results: a kernel that returns one of them does not return a view of an
        input."""
        outs = (self._outs[index] for index in self._fresh_steps)
        return {id(out) for step in outs for out in (step if type(step) is tuple else (step,))}

    def _overlaps_results(self, array: Array) -> bool:
        """Return whether the array shares memory with a block for results."""
        if not self._result_spans:
            blocks = (self._blocks[block] for block in self.plan.memory.result_blocks)
            self._result_spans = sorted(byte_bounds(block) for block in blocks if block.size)
        start, stop = byte_bounds(array)
        place = bisect_left(self._result_spans, (stop,))
        return place > 0 and self._result_spans[place - 1][1] > start

    def _run_step(self, index: int, step: Step, slots: list[Any], listeners: Sequence[Listener]) -> None:
        arguments = [slots[i] for i in step.inputs]
        self.current = step.layer
        if listeners:
            self._notify(listeners, "will_run", step.layer, arguments)
        try:
            if step.is_open:
                self._check_sizes(index, step, arguments)
            result = self._call(index, step, arguments)
            outputs = result if type(result) is tuple else (result,)
            if len(outputs) < len(step.outputs):
                raise OperatorError(f"the kernel gave {len(outputs)} outputs of {len(step.outputs)}")
        except Exception as error:
            raise failed(step.layer, error, arguments) from error
        for slot, array in zip(step.outputs, outputs, strict=False):  # outputs without a port are dropped
            slots[slot] = array
        if listeners:
            self._notify(listeners, "did_run", step.layer, arguments, outputs)
        for slot in step.release:
            slots[slot] = None

    def _check_sizes(self, index: int, step: Step, arguments: list[Array]) -> None:
        """Infer shapes that inference has not seen before; raise OperatorError if they contradict each other."""
        shapes = tuple([array.shape for array in arguments])
        fitting = self._fitting[index]
        if shapes in fitting:
            return
        if (error := explain_failure(step.layer, arguments)) is not None:
            raise error
        if len(fitting) >= _MOST_SHAPES:
            fitting.clear()
        fitting.add(shapes)

    @staticmethod
    def _notify(listeners: Sequence[Listener], event: str, *what: Any) -> None:
        for listener in listeners:
            try:
                getattr(listener, event)(*what)
            except Exception as error:
                raise ListenerFailed(error) from error

    def _call(self, index: int, step: Step, arguments: list[Array | None]) -> Any:
        if not step.takes:
            return step.kernel(*arguments)
        keywords: dict[str, Any] = {}
        if "out" in step.takes:
            out = self._outs[index]
            if out is not None:
                if step.takes == _ONLY_OUT:
                    return step.kernel(*arguments, out=out)
                keywords["out"] = out
        if "bodies" in step.takes:
            bodies = self._bodies.get(index, {})
            keywords["bodies"] = {key: _Body(body, self._listeners) for key, body in bodies.items()}
        if "variable" in step.takes:
            keywords["variable"] = self.variables.of(step.layer)
        if "wanted" in step.takes:  # a listener sees all outputs
            keywords["wanted"] = (True,) * len(step.outputs) if self._listeners else step.wanted
        return step.kernel(*arguments, **keywords)

    @property
    def innermost(self) -> Layer | None:
        """Return the layer that is running now, the innermost one if bodies are running, for reports of kernels."""
        bodies = (body for bodies in self._bodies.values() for body in bodies.values())
        return next((body.innermost for body in bodies if body.current is not None), self.current)

    def _renew_results(self) -> None:
        """Allocate new memory for the outputs, so that those of the previous run are not overwritten."""
        self._result_spans = []
        for block in self.plan.memory.result_blocks:
            self._blocks[block] = self._allocate(self.plan.memory.block_sizes[block])
        for index in self._fresh_steps:
            self._outs[index] = self._out(self.plan.memory.buffers[index])


class _Body:
    """A body as its operation runs it."""

    def __init__(self, executor: Executor, listeners: Sequence[Listener]) -> None:
        self._executor = executor
        self._listeners = listeners

    @property
    def parameters(self) -> list[TensorType]:
        return [port.type for port in self._executor.plan.model.inputs]

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        try:
            return self._executor.run(arrays, listeners=self._listeners)
        finally:
            self._executor.current = None


_ONLY_OUT = frozenset({"out"})
_MOST_SHAPES = 1000  # the largest number of cached shapes of a step
# A cache line in bytes: rows copied to unaligned memory can take several times as long.
_ALIGNMENT = 64
