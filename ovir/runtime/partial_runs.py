"""Runs of a model with some layers emulated, which compute only the differences from a recorded run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from functools import cached_property

import numpy as np

from ovir.core.arrays import Array
from ovir.core.numpy_settings import kernel_settings
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.runtime.emulation import EmulatedSteps, Emulation
from ovir.runtime.executor import Executor
from ovir.runtime.memory import refuse_what_does_not_fit
from ovir.runtime.plan import Plan, Step
from ovir.runtime.planning import make_plan
from ovir.runtime.state import Variables
from ovir.runtime.step_binder import Prepared

Tensors = dict[Port, Array]
"""The tensors of a run by the port that computes them."""


class _Part:
    """One step of a plan, which runs alone."""

    def __init__(self, plan: Plan, index: int, variables: Variables, prepared: Prepared) -> None:
        self._plan = plan.part(index)
        self._variables = variables
        self._prepared = prepared
        self._reads = [plan.ports[slot] for slot in self._plan.parameters]
        self._writes = [plan.ports[slot] for slot in self._plan.results]

    @cached_property
    def _executor(self) -> Executor:
        refuse_what_does_not_fit(self._plan)
        return Executor(self._plan, self._variables, self._prepared)

    def run(self, tensors: Mapping[Port, Array], recorded: Mapping[Port, Array]) -> list[tuple[Port, Array]]:
        """Return the outputs of the step for tensors in ``found``, or else in ``recorded``."""
        arrays = [tensors[port] if port in tensors else recorded[port] for port in self._reads]
        return list(zip(self._writes, self._executor.run(arrays), strict=True))


class PartialRuns:
    """Runs the steps of a model, each in f32 or emulated.

    A step is known by its number. All runs start from the initial state of variables.
    """

    def __init__(self, model: LayerGraph, emulation: Emulation) -> None:
        """Plan the model twice: in f32, and emulated so that each step rounds all of its inputs, whatever has computed
        them."""
        self.model = model
        self._variables = Variables()
        self._plan = make_plan(model)
        self.steps = self._plan.steps
        self._exact = self._parts(self._plan)
        alone = copy(emulation)
        alone.rounds_outputs = False
        self._emulated = self._parts(make_plan(model, emulation=alone))
        self._sources = [[self._plan.ports[slot] for slot in step.inputs] for step in self.steps]
        self._results = [self._plan.ports[slot] for slot in self._plan.results]
        self._last = self._last_uses()
        self._covers = emulation.covers
        steps = EmulatedSteps(model, emulation)
        self.candidates = [
            i
            for i, step in enumerate(self.steps)
            if (self.keys(i) if step.layer.bodies else steps.covers(step.layer) and _is_real(step))
        ]
        """The steps that emulation can change."""

    def _parts(self, plan: Plan) -> list[_Part]:
        prepared: Prepared = {}
        return [_Part(plan, index, self._variables, prepared) for index in range(len(plan.steps))]

    def _last_uses(self) -> list[list[Port]]:
        """Return for each step the tensors that no later step and no result reads."""
        last = {port: index for index, sources in enumerate(self._sources) for port in sources}
        uses: list[list[Port]] = [[] for _ in self.steps]
        results = set(self._results)
        for index, step in enumerate(self.steps):
            for port in step.layer.outputs:
                last.setdefault(port, index)
        for port, index in last.items():
            if port not in results:
                uses[index].append(port)
        return uses

    def inputs(self, arrays: Sequence[Array]) -> Tensors:
        """Return the tensors with which a run starts: inputs that match the model, and constants."""
        plan = self._plan
        known: Tensors = {plan.ports[slot]: array for slot, array in plan.constants.items()}
        known.update(zip((port.layer.outputs[0] for port in self.model.inputs), arrays, strict=True))
        return known

    def record(self, inputs: Tensors, keep: Callable[[Array], Array]) -> Tensors:
        """Run all steps in f32 and return all tensors; ``keep`` decides where an array is kept."""
        found = dict(inputs)
        self._run(found, {}, range(len(self.steps)), (), keep, release=False)
        return found

    def outputs(self, tensors: Mapping[Port, Array], changed: Mapping[Port, Array] | None = None) -> list[Array]:
        """Return the outputs of the model from its tensors."""
        changed = changed or {}
        return [changed[port] if port in changed else tensors[port] for port in self._results]

    def run(self, inputs: Tensors, emulated: Collection[int]) -> list[Array]:
        """Run all steps, those in ``emulated`` emulated, and return the outputs."""
        tensors: Tensors = {}
        self._run(tensors, inputs, range(len(self.steps)), emulated, _same)
        return self.outputs(inputs, tensors)

    def rerun(self, recorded: Mapping[Port, Array], emulated: Collection[int]) -> list[Array]:
        """Return the outputs with some steps emulated, from a recorded run in f32: only dependent steps run again."""
        changed: Tensors = {}
        self._run(changed, recorded, sorted(emulated), emulated, _same)
        return self.outputs(recorded, changed)

    def run_step(self, recorded: Mapping[Port, Array], index: int) -> list[tuple[Port, Array]]:
        """Return the real outputs of one step that is emulated, on recorded inputs."""
        self._variables.reset()
        with kernel_settings():
            return self._emulated[index].run({}, recorded)

    def _run(
        self,
        tensors: Tensors,
        recorded: Mapping[Port, Array],
        dirty: Collection[int],
        emulated: Collection[int],
        keep: Callable[[Array], Array],
        *,
        release: bool = True,
    ) -> None:
        """Run the steps in ``dirty`` and those whose inputs are in ``found``; add differing outputs to it."""
        self._variables.reset()
        again, wanted = set(dirty), set(emulated)
        with kernel_settings():
            for index in range(min(again, default=len(self.steps)), len(self.steps)):
                if index in again or any(port in tensors for port in self._sources[index]):
                    part = (self._emulated if index in wanted else self._exact)[index]
                    for port, array in part.run(tensors, recorded):
                        before = recorded.get(port)
                        if before is None or not np.array_equal(array, before):
                            tensors[port] = keep(array)
                if release:
                    for port in self._last[index]:
                        tensors.pop(port, None)
        self._variables.reset()

    def keys(self, index: int) -> list[str]:
        """Return the key of the layer of a step, or the keys of the layers in its bodies."""
        layer = self.steps[index].layer
        if not layer.bodies:
            return [layer.key]
        return [inner.key for body in layer.bodies.values() for inner in body.walk() if self._changes(inner)]

    def _changes(self, layer: Layer) -> bool:
        """Return whether emulation may change a layer of a body."""
        return self._covers(layer) and not layer.bodies and layer.type not in ("Const", "Parameter", "Result")


def _is_real(step: Step) -> bool:
    ports = [*step.layer.inputs, *step.layer.outputs]
    return any(port.element_type.is_real or port.element_type.is_dynamic for port in ports)


def _same(array: Array) -> Array:
    return array
