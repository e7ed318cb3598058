"""Bound plans: a plan for one set of input shapes, as a list of calls on arrays that are made once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.progress import counted
from ovir.graph.layers import Layer
from ovir.kernels.blocked import contiguous_copy
from ovir.ops.base.binding import Call
from ovir.runtime.arena import Span
from ovir.runtime.binder import Borders, Memory, Prepared, StepBinder, bind_step, dtype_of, has_fixed_array
from ovir.runtime.executor import Body, BodyMaker, innermost, keywords, refuse_what_does_not_fit
from ovir.runtime.failures import failed
from ovir.runtime.free import FreeStep, Lasting
from ovir.runtime.plan import Plan
from ovir.runtime.state import Variables
from ovir.runtime.step import Step

_LARGE = 1 << 18
"""Bytes of an input that steps read where the caller has it, if they read only parts of it."""


class BoundPlan:
    """A plan whose tensors of static shape have permanent arrays.

    Steps between such tensors are calls without any other work. Steps with tensors of unknown size, variables or bodies
    are calls of a function that looks up their arrays in ``slots``.
    """

    def __init__(self, plan: Plan, variables: Variables, bodies: BodyMaker, prepared: Prepared) -> None:
        """Bind a plan; ``bodies(plan)`` returns what runs the plan of a body, ``prepared`` is shared with the bound
        plans of the same model for other shapes."""
        refuse_what_does_not_fit(plan)
        self.plan = plan
        self._variables = variables
        self._prepared = prepared
        self._memory = Memory()
        self._borders = Borders(plan.steps, plan.ports)
        self._slots: list[Any] = [None] * len(plan.ports)
        self._fixed: set[int] = set(plan.constants)
        for slot, array in plan.constants.items():
            self._slots[slot] = array
        self._lasting = Lasting(plan, self._slots, self._fixed, prepared)
        self._bodies: dict[int, dict[str, Body]] = {}
        self._calls: list[Call] = []
        self._owners: list[Step] = []
        self._remaining: Any = iter(self._calls)  # a list iterator, which knows how many calls are left
        read = {slot for step in plan.steps for slot in step.inputs}.union(plan.results)
        for slot in plan.parameters:
            if slot in read:  # a loop does not feed a parameter of its body that nothing reads
                self._add_input(slot)
        for index, step in enumerate(counted("compiling", plan.steps)):
            self._add(index, step, bodies)
        self._shared = self._shared_results()

    @property
    def memory(self) -> int:
        """Return the bytes that all tensors between the layers share."""
        return self._memory.arena.size

    def _add_input(self, slot: int) -> None:
        port = self.plan.ports[slot]
        if has_fixed_array(port) and not self._is_only_picked_from(slot):
            self._slots[slot] = np.empty(port.shape.to_tuple(), dtype_of(port))
            self._fixed.add(slot)

    def _is_only_picked_from(self, slot: int) -> bool:
        """Return whether copying a large input would take longer than the steps that read it."""
        port = self.plan.ports[slot]
        if prod(port.shape.to_tuple()) * dtype_of(port).itemsize < _LARGE:
            return False
        uses = [(step, i) for step in self.plan.steps for i, other in enumerate(step.inputs) if other == slot]
        return all(position in step.operator.picks for step, position in uses)

    def _add(self, index: int, step: Step, bodies: BodyMaker) -> None:
        made = {key: Body(bodies(body)) for key, body in self.plan.bodies.get(index, {}).items()}
        is_static = all(map(has_fixed_array, step.layer.outputs)) and self._fixed.issuperset(step.inputs)
        needs_request = not {"bodies", "variable"}.isdisjoint(step.takes)
        if is_static and step.operator.pure and not needs_request:
            self._add_bound(step)
        else:
            if made:
                self._bodies[index] = made
            self._add_free(step, made)
        for slot in step.release:
            self._memory.release(slot)

    def _add_bound(self, step: Step) -> None:
        constants = [slot in self.plan.constants for slot in step.inputs]
        known = frozenset(position for position, is_known in enumerate(constants) if is_known)
        independent = all(slot in self.plan.independent for slot in step.inputs if slot in self.plan.constants)
        inputs = tuple(self._slots[slot] for slot in step.inputs)
        binder = StepBinder(step, inputs, known, self._memory, self._prepared if independent else None, self._borders)
        try:
            with np.errstate(all="ignore"):
                bind_step(binder, step)
        except MemoryError:
            raise
        except Exception as error:
            raise failed(step.layer, error, inputs) from error
        for slot, array in zip(step.outputs, binder.outputs, strict=True):
            assert array is not None, step.layer
            self._slots[slot] = array
        self._fixed.update(step.outputs)
        self._calls.extend(binder.calls)
        self._owners.extend([step] * len(binder.calls))

    def _add_free(self, step: Step, bodies: dict[str, Body]) -> None:
        """Add a step that looks up its arrays; outputs of static shape get permanent arrays."""
        targets = []
        for slot, port, is_wanted in zip(step.outputs, step.layer.outputs, step.wanted, strict=True):
            fixed = None
            if has_fixed_array(port) and is_wanted:
                fixed = self._slots[slot] = self._memory.allocate(slot, port.shape.to_tuple(), dtype_of(port))
                self._fixed.add(slot)
            elif step.operator.views or not step.operator.pure:
                self._memory.share(slot, step.inputs)
            targets.append((slot, fixed))
        kernel = step.kernel
        outs = tuple(fixed for _, fixed in targets)
        if "out" in step.takes and step.operator.pure and all(out is not None for out in outs):
            kernel = partial(kernel, out=outs if len(outs) != 1 else outs[0])
        if found := keywords(step, bodies, self._variables, step.wanted):
            kernel = partial(kernel, **found)
        release = tuple(slot for slot in step.release if slot not in self._fixed)
        self._calls.append((FreeStep(step, kernel, targets, release, self._lasting), ()))
        self._owners.append(step)

    def _shared_results(self) -> list[Array | None]:
        """Return the arrays that hold the results for callers that share outputs, None for those not known yet.

        An array of the arena that no other result shares is the result itself; others are copied.
        """
        found: list[Array | None] = []
        claimed: set[Span] = set()
        for slot in self.plan.results:
            array: Array = self._slots[slot]
            spans = self._memory.spans(slot)
            is_own = bool(spans) and claimed.isdisjoint(spans) and slot in self._fixed and array.flags.c_contiguous
            claimed.update(spans)
            if slot not in self._fixed:
                found.append(None)
            else:
                found.append(array if is_own else np.empty(array.shape, array.dtype))
        return found

    def run(self, inputs: Sequence[Array], *, share: bool = False) -> list[Array]:
        """Return the outputs for inputs of the shapes of the plan; they belong to the caller, but with ``share`` the
        next run overwrites them."""
        slots = self._slots
        for slot, array in zip(self.plan.parameters, inputs, strict=True):
            if slot in self._fixed:
                np.copyto(slots[slot], array)
            else:
                is_output = any(own is not None and np.may_share_memory(array, own) for own in self._shared)
                slots[slot] = array.copy() if is_output else array
        np.setbufsize(_BUFFER)  # for this context; the caller restores it with the settings of errors
        self._remaining = calls = iter(self._calls)
        for function, arguments in calls:
            function(*arguments)
        return [self._result(slot, own, share) for slot, own in zip(self.plan.results, self._shared, strict=True)]

    def _result(self, slot: int, shared: Array | None, share: bool) -> Array:
        array: Array = self._slots[slot]
        if not share or shared is None:
            return contiguous_copy(array)
        if shared is not array:
            np.copyto(shared, array)
        return shared

    @property
    def current(self) -> Step:
        """Return the step whose call runs now, or ran last."""
        left: int = self._remaining.__length_hint__()
        return self._owners[len(self._calls) - left - 1]

    @property
    def innermost(self) -> Layer | None:
        """Return the layer that is running now, the innermost one if bodies are running, for reports of kernels."""
        return innermost(self._bodies.values()) or (self.current.layer if self._owners else None)

    def explain(self, error: Exception) -> Exception:
        """Return the error for an exception that a call raised."""
        step = self.current
        return failed(step.layer, error, [self._slots[slot] for slot in step.inputs if self._slots[slot] is not None])


# The size of NumPy's buffers, in elements. It first copies rows of a broadcast operand that are shorter than a buffer,
# which takes as long as the operation itself.
_BUFFER = 1024
