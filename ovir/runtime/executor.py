"""Runs a plan: the hot loop. It owns the buffers, and one run at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ovir.diagnostics import INTERNAL, RUN, OperatorError, OvirError, RunError, diagnostic
from ovir.model import Layer
from ovir.ops.body import RunBody
from ovir.runtime.memory import Buffer
from ovir.runtime.plan import Plan, Step
from ovir.runtime.state import Variables

Array = NDArray[Any]


class Listener(Protocol):
    """Told of every step of a run. Arrays are valid during the call only: copy what is to be kept."""

    def will_run(self, layer: Layer, inputs: Sequence[Array]) -> None: ...

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None: ...


class Executor:
    """A plan with its memory. Results stay valid until the next run, or for good with ``fresh``."""

    def __init__(self, plan: Plan, variables: Variables) -> None:
        self.plan = plan
        self.variables = variables
        self.current: Layer | None = None
        self._template: list[Any] = [None] * plan.slot_count
        for slot, array in plan.constants.items():
            self._template[slot] = array
        self._blocks = [np.empty(size, np.uint8) for size in plan.memory.block_sizes]
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
        self._listeners: Sequence[Listener] = ()

    def _out(self, buffers: tuple[Buffer | None, ...]) -> Any:
        """The ``out`` argument of a step, None where not every output has a buffer."""
        arrays = []
        for buffer in buffers:
            if buffer is None:
                return None
            count = int(np.prod(buffer.shape, dtype=np.int64))
            raw = self._blocks[buffer.block][: count * buffer.dtype.itemsize]
            arrays.append(raw.view(buffer.dtype).reshape(buffer.shape))
        return tuple(arrays) if len(arrays) != 1 else arrays[0]

    def run(self, inputs: Sequence[Array], *, fresh: bool = True, listeners: Sequence[Listener] = ()) -> list[Array]:
        """The outputs, in order, for inputs that fit the model.

        With ``fresh`` the outputs are the caller's; without, the next run overwrites them.
        RunError carries the layer that failed.
        """
        plan = self.plan
        if fresh:
            self._renew_results()
        slots = self._template.copy()
        for slot, array in zip(plan.parameters, inputs, strict=True):
            slots[slot] = array
        self._listeners = listeners
        for index, step in enumerate(plan.steps):
            arguments = [slots[i] for i in step.inputs]
            self.current = step.layer
            if listeners:
                for listener in listeners:
                    listener.will_run(step.layer, arguments)
            try:
                result = self._call(index, step, arguments)
            except OperatorError as error:
                found = diagnostic(error.code or RUN, error.message, step.layer.place, hint=error.hint)
                raise RunError(found) from None
            except OvirError:
                raise
            except MemoryError as error:
                raise RunError(diagnostic(RUN, f"out of memory: {error}", step.layer.place)) from None
            except Exception as error:
                shown = ", ".join(f"{a.dtype}{list(a.shape)}" for a in arguments)
                message = f"the kernel failed on {shown or 'no inputs'}: {type(error).__name__}: {error}"
                hint = "this is a fault of ovir; please report it"
                raise RunError(diagnostic(INTERNAL, message, step.layer.place, hint=hint)) from error
            if type(result) is not tuple:
                slots[step.outputs[0]] = result
            else:
                for slot, array in zip(step.outputs, result, strict=False):
                    slots[slot] = array
            if listeners:
                outputs = result if isinstance(result, tuple) else (result,)
                for listener in listeners:
                    listener.did_run(step.layer, arguments, outputs)
            for slot in step.release:
                slots[slot] = None
        foreign = plan.memory.foreign_results
        results: list[Array] = []
        for slot in plan.results:
            result = slots[slot]
            results.append(result.copy() if slot in foreign or self._stands_twice(result, results) else result)
        return results

    @staticmethod
    def _stands_twice(array: Array, results: list[Array]) -> bool:
        return any(array is other for other in results)

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
            keywords["bodies"] = {key: self._body(body) for key, body in self._bodies.get(index, {}).items()}
        if "variable" in step.takes:
            keywords["variable"] = self.variables.of(step.layer)
        if "wanted" in step.takes:  # a listener is to see all outputs
            keywords["wanted"] = (True,) * len(step.outputs) if self._listeners else step.wanted
        return step.kernel(*arguments, **keywords)

    def _body(self, executor: Executor) -> RunBody:
        def run(arrays: Sequence[Array]) -> list[Array]:
            try:
                return executor.run(arrays, listeners=self._listeners)
            finally:
                executor.current = None

        return run

    @property
    def innermost(self) -> Layer | None:
        """The layer that is running now, in a body where the running layer has one, for what a kernel reports."""
        bodies = (body for bodies in self._bodies.values() for body in bodies.values())
        return next((body.innermost for body in bodies if body.current is not None), self.current)

    def _renew_results(self) -> None:
        """New memory for the outputs, so that those of the last run stay as they are."""
        for block in self.plan.memory.result_blocks:
            self._blocks[block] = np.empty(self.plan.memory.block_sizes[block], np.uint8)
        for index in self._fresh_steps:
            self._outs[index] = self._out(self.plan.memory.buffers[index])


_ONLY_OUT = frozenset({"out"})
