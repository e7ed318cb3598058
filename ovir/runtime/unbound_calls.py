"""Unbound steps: steps with tensors whose shapes only a run shows.

They run their kernels; convolutions with much work bind their fast form in each run. A small step binds itself to
shapes that it sees in some runs in a row, until it sees others. The steps that read the cache of a decoder, which grows
in each run, never get there; those that compute one token do, until the sizes that stay are bound, and without it a
step of a small decoder takes twice as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from sys import maxsize
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.fast_calls import Call
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.diagnostics.errors import OperatorError
from ovir.fast.base.binder_protocol import run_calls
from ovir.fast.registry import Pays, pays_at_once
from ovir.graph.layers import Port
from ovir.runtime.arena import SlotMemory
from ovir.runtime.failures import explain_failure
from ovir.runtime.plan import Plan, Step, require_promised, results_of
from ovir.runtime.step_binder import Prepared, StepBinder, bind_step, copy_result

Targets = Sequence[tuple[int, Array | None]]
"""The slots of the outputs of a step, each with the permanent array to fill, if there is one."""

_LARGEST = 1 << 18
"""Bytes of the tensors of a step that may bind itself, because it keeps them. Larger ones take longer than calls."""
_RUNS, _RUNS_WITH_WEIGHTS = 3, 2
"""The runs in a row on the same shapes, the last of which binds a step. To bind takes as long as ten runs of a small
step, but as two or three of one with weights: constants of more than ``_LARGEST`` bytes, or that it decompresses."""
_CHANGES, _PAUSE = 4, 64
"""After so many runs in a row, each on other shapes than the one before, a step does not look at its shapes for so many
runs: to compare them takes as long as a small kernel, and where a cache grows they never stay."""
_MOST_SHAPES = 1000
"""The number of shapes of a step that need no other test."""
_MOST_SIZES = 64
"""Elements of an input that determines sizes."""


@dataclass
class UnboundContext:
    """The plan, the slots and the arrays that all unbound steps of an executor share."""

    plan: Plan
    slots: list[Any]
    fixed: set[int]
    """The slots whose arrays never change, but for those that have ``lent_sources``."""
    lent_sources: Mapping[int, Set[int]]
    prepared: Prepared
    arrays: dict[int, Array] = field(default_factory=dict)
    """The arrays of outputs of steps that have bound themselves, by slot."""
    memory: SlotMemory = field(default_factory=SlotMemory)
    """The memory of these arrays."""
    workspace: SlotMemory = field(default_factory=SlotMemory)
    """The memory that such steps use while they run: they bind in any order, so none of it may hold an output."""

    def is_fixed(self, slot: int) -> bool:
        """Return whether a slot has the same array in every run."""
        return slot in self.fixed and not self.lent_sources.get(slot)


@dataclass
class _Binding:
    """The shapes, arrays and calls that an unbound step is bound to."""

    same: list[tuple[int, Array]]
    """The positions of inputs that must be these arrays."""
    copied: list[tuple[int, Array]]
    """The positions of inputs that are copied to these arrays, whose shapes they must have."""
    sizes: list[tuple[int, tuple[int, ...], bytes]]
    """The positions of inputs that determine sizes, with their shapes and elements."""
    calls: list[Call]
    outputs: list[tuple[int, Array]]
    """The arrays of slots that the plan has no array for."""

    def takes(self, arrays: tuple[Array, ...]) -> bool:
        """Return whether the calls hold for these inputs, after copying the data that they read."""
        for position, array in self.same:
            if arrays[position] is not array:
                return False
        for position, shape, elements in self.sizes:
            if arrays[position].shape != shape or arrays[position].tobytes() != elements:
                return False
        for position, own in self.copied:
            if arrays[position].shape != own.shape:
                return False
            np.copyto(own, arrays[position])
        return True


class UnboundCall:
    """A step that looks up its arrays in each run."""

    def __init__(self, step: Step, kernel: Callable[..., Any], targets: Targets, context: UnboundContext) -> None:
        self._step = step
        self._kernel = kernel
        self._targets = targets
        self._context = context
        self._slots = context.slots
        self._checks_sizes = step.checks_sizes
        self._arguments = _getter(step.inputs)
        self._fitting: set[tuple[tuple[int, ...], ...]] = set()
        """The shapes of inputs that fit together, if the step checks sizes that inference has not seen."""
        changing = [i for i, slot in enumerate(step.inputs) if slot not in context.plan.constants]
        self._size_inputs = [i for i in changing if step.operator.reads_value(i)]
        self._data_inputs = [i for i in changing if not step.operator.reads_value(i)]
        self._constants = frozenset(range(len(step.inputs))).difference(self._data_inputs)
        self._ports = context.plan.ports_of(step)
        types = [port.element_type for port in (*step.layer.inputs, *self._ports)]
        has_known_types = not any(kind.is_dynamic or kind.kind == "string" for kind in types)
        may_bind = step.may_use_fast_form and step.operator.pure and not step.layer.bodies and has_known_types
        fixed = [context.slots[step.inputs[i]] for i in self._size_inputs if context.is_fixed(step.inputs[i])]
        self._can_bind = may_bind and not any(map(_is_large, fixed))
        if self._can_bind and (pays := pays_at_once(step.operator)) is not None:
            self._kernel = partial(self._bind_and_run, kernel, pays)
        self._puts = [
            partial(copy_result, port.index, fixed) if fixed is not None else _checked_put(context.slots, slot, port)
            for (slot, fixed), port in zip(targets, self._ports, strict=True)
        ]
        """The functions that take the results."""
        self._put = self._puts[0] if len(targets) == 1 else None
        constants = [context.plan.constants[slot] for slot in step.inputs if slot in context.plan.constants]
        decompresses = len(step.inputs) < len(step.layer.inputs)
        has_weights = decompresses or sum(array.nbytes for array in constants) > _LARGEST
        self._runs = _RUNS_WITH_WEIGHTS if has_weights else _RUNS
        self._last_key: object = None
        self._runs_of_key = 0
        self._changes = 0
        self._pause = 0
        self._binding: _Binding | None = None

    @property
    def is_bound(self) -> bool:
        """Return whether the step has bound itself, to arrays that the next run writes to again."""
        return self._binding is not None

    def __call__(self) -> None:
        """Run the step."""
        slots = self._slots
        arrays = self._arguments(slots)
        if self._pause:
            self._pause -= 1
        elif self._can_bind:
            binding = self._binding
            if binding is None or not binding.takes(arrays):
                binding = self._bind_again(arrays)
            if binding is not None:
                for function, arguments in binding.calls:
                    function(*arguments)
                for slot, array in binding.outputs:
                    slots[slot] = array
                return
        if self._checks_sizes:
            self._require_fitting(arrays)
        returned = self._kernel(*arrays)
        if self._put is not None and type(returned) is not tuple:
            self._put(returned)  # without a list, a small step takes three quarters of the time
            return
        for put, array in zip(self._puts, results_of(returned, len(self._puts)), strict=False):
            put(array)

    def _require_fitting(self, arrays: tuple[Array, ...]) -> None:
        """Infer shapes that have not been seen before; raise OperatorError if they contradict each other."""
        shapes = tuple([array.shape for array in arrays])
        if shapes not in self._fitting:
            if (error := explain_failure(self._step.layer, arrays)) is not None:
                raise error
            _add(self._fitting, shapes)

    def _bind_again(self, arrays: tuple[Array, ...]) -> _Binding | None:
        """Bind the step if all that it would be bound to is as in the runs before; return None if not."""
        if self._binding is not None:
            self._binding = None
            for slot in self._step.outputs:
                self._context.arrays.pop(slot, None)
                self._context.memory.release(slot)
        if any(_is_large(arrays[i]) for i in self._size_inputs):
            self._last_key = None
            return None
        key = tuple([array.shape for array in arrays]), tuple([arrays[i].tobytes() for i in self._size_inputs])
        if key == self._last_key:
            self._runs_of_key += 1
            self._changes = 0
        else:
            self._last_key, self._runs_of_key = key, 1
            self._changes += 1
            if self._changes == _CHANGES:
                self._pause, self._changes = _PAUSE, _CHANGES - 2
        if self._runs_of_key < self._runs or sum(arrays[i].nbytes for i in self._data_inputs) > _LARGEST:
            return None
        self._binding = self._bind(arrays)
        self._can_bind = self._binding is not None
        return self._binding

    def _applied(self, arrays: tuple[Array, ...]) -> tuple[Step, tuple[TensorType, ...]] | None:
        """Return the step with its operation for these arrays, and the types of its outputs; None if the arrays do not
        determine these."""
        step, context = self._step, self._context
        element_types = [context.plan.ports[slot].element_type for slot in step.inputs]
        types = [
            constant_type(array.copy(), element_type)
            if step.operator.reads_value(i)
            else TensorType(element_type, PartialShape(array.shape))
            for i, (array, element_type) in enumerate(zip(arrays, element_types, strict=True))
        ]
        try:
            inferred = step.operator.infer(*types)
        except OperatorError:
            return None  # the kernel or the test of its sizes raises it
        outputs = inferred if isinstance(inferred, tuple) else (inferred,)
        if not all(output.shape.is_static for output in outputs):
            return None
        if not all(port.shape.compatible(a.shape) for port, a in zip(self._ports, outputs, strict=False)):
            return None  # the kernel says what breaks the promise of inference
        return replace(step, operator=step.operator.applied(types, outputs)), outputs

    def _bound(
        self,
        make: Callable[..., StepBinder],
        step: Step,
        outputs: Sequence[TensorType],
        inputs: tuple[Array, ...],
        memory: SlotMemory,
    ) -> StepBinder:
        """Return a binder that has bound the step to inputs; bindings share its constants if these are of the file."""
        context = self._context
        is_of_file = all(step.inputs[i] in context.plan.independent for i in self._constants)
        prepared, workspace = context.prepared if is_of_file else None, context.workspace
        binder = make(
            step, inputs, self._constants, memory, prepared, types=outputs, workspace=workspace, keeps_inputs=True
        )
        bind_step(binder, step)
        return binder

    def _bind_and_run(self, kernel: Callable[..., Any], pays: Pays, *arrays: Array) -> Any:
        """Return the outputs of the fast form, bound to these arrays alone, where that pays."""
        applied = self._applied(arrays) if pays(self._step.operator, *arrays) else None
        if applied is None:
            return kernel(*arrays)
        binder = self._bound(StepBinder, *applied, arrays, SlotMemory())
        run_calls(binder.calls)
        return tuple(binder.outputs)

    def _bind(self, arrays: tuple[Array, ...]) -> _Binding | None:
        """Bind the step to the shapes of arrays; return None if these do not determine the shapes of its outputs."""
        step, context = self._step, self._context
        applied = self._applied(arrays)
        if applied is None:
            return None
        inputs = list(arrays)
        same, copied = [], []
        for i in self._data_inputs:
            slot = step.inputs[i]
            if context.arrays.get(slot) is arrays[i]:
                same.append((i, arrays[i]))
            elif not context.is_fixed(slot):
                inputs[i] = arrays[i].copy()
                copied.append((i, inputs[i]))
        for i in self._size_inputs:
            inputs[i] = arrays[i].copy()
        sizes = [(i, arrays[i].shape, arrays[i].tobytes()) for i in self._size_inputs]
        binder = self._bound(partial(_UnboundBinder, self._targets), *applied, tuple(inputs), context.memory)
        pairs = zip(self._targets, binder.outputs, strict=True)
        free = [(slot, array) for (slot, fixed), array in pairs if fixed is None and array is not None]
        context.arrays.update(free)
        return _Binding(same, copied, sizes, binder.calls, free)


class _UnboundBinder(StepBinder):
    """The binder of an unbound step, some of whose outputs have permanent arrays."""

    def __init__(self, targets: Targets, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.targets = targets

    def output(self, index: int = 0, order: Sequence[int] | None = None) -> Array:
        fixed = self.targets[index][1]
        if fixed is None:
            return super().output(index, order)
        self.outputs[index] = fixed
        return fixed

    def view(self, array: Array, index: int = 0) -> None:
        fixed = self.targets[index][1]
        if fixed is None:
            super().view(array, index)
        else:
            self.call(np.copyto, self.output(index), array)


def _add(shapes: set[Any], new: Any) -> None:
    if len(shapes) >= _MOST_SHAPES:
        shapes.clear()
    shapes.add(new)


class _Between:
    """Equals each size from ``lower`` to ``upper``."""

    __slots__ = ("lower", "upper")

    def __init__(self, dim: Dimension) -> None:
        self.lower, self.upper = dim.lower, maxsize if dim.upper is None else dim.upper

    def __eq__(self, size: object) -> bool:
        return self.lower <= size <= self.upper  # type: ignore[operator]

    __hash__ = None  # type: ignore[assignment]


def _checked_put(slots: list[Any], slot: int, port: Port) -> Callable[[Any], None]:
    """Return a function that puts an array in a slot, and raises OperatorError for one that is not of the inferred type
    and shape of a port. A quick test passes no other array, and most of these."""
    is_known = not port.element_type.is_dynamic and port.shape.rank is not None
    dtype = port.element_type.to_dtype() if is_known else None
    shape = tuple([dim.length if dim.is_static else _Between(dim) for dim in port.shape]) if is_known else ()

    def put(array: Any) -> None:
        if array.dtype is not dtype or array.shape != shape:
            require_promised(port, array)
        slots[slot] = array

    return put


def _is_large(array: Array) -> bool:
    """Return whether comparing an input that determines sizes in each run would not pay."""
    return array.size > _MOST_SIZES or array.dtype.kind not in "iub"


def _getter(slots: tuple[int, ...]) -> Callable[[list[Any]], tuple[Array, ...]]:
    if len(slots) == 1:
        (slot,) = slots
        return lambda values: (values[slot],)
    return itemgetter(*slots) if slots else lambda values: ()
