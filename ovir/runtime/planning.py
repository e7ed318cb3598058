"""Make the plan of a model: fold constants, rewrite steps, and note after which step nothing reads a slot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ovir.core.arrays import Array, read_only
from ovir.core.element_types import ElementType
from ovir.core.numpy_settings import kernel_settings
from ovir.core.tensor_types import TensorType, constant_type
from ovir.diagnostics.codes import NOT_SUPPORTED, UNFED_INPUT
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import ModelError, OperatorError, RunError
from ovir.fast.registry import kernel_of
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port, layers_before
from ovir.inference.known_values import as_tuple
from ovir.ops.base.operator import Operator
from ovir.ops.infrastructure import Const
from ovir.ops.state import ReadValueBase
from ovir.runtime.decompression import find_decompressions, types_kept_compressed
from ovir.runtime.emulation import EmulatedSteps, Emulation
from ovir.runtime.failures import memory_errors_named
from ovir.runtime.plan import Plan, Step, applied_operator, set_releases, with_checked_outputs
from ovir.runtime.rewrites import rewritten
from ovir.system.progress import counted

Rounding = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Makes of a kernel one that rounds its inputs and outputs."""

Folded = WeakValueDictionary[tuple[str, int], Array]
"""Constants that follow from the file alone, by the key of their layer and the position of the output. The plans of a
model for several shapes share them; they live as long as a plan uses them."""


def make_plan(
    model: LayerGraph,
    keep: Collection[str] = (),
    *,
    keep_compressed: bool | None = None,
    kept_types: Collection[ElementType] | None = None,
    folded: Folded | None = None,
    emulation: Emulation | None = None,
    original: LayerGraph | None = None,
    running: Collection[str] = (),
) -> Plan:
    """Plan a model that has been inferred. If it is a copy of an ``original``, listeners see the layers of that one.

    Layers named in ``keep`` (those in bodies as ``outer/body/name``) run as steps even if they are folded, so that
    listeners see them, or if nothing needs them; no other step computes anything else because of them.
    ``keep_compressed`` says which weights are decompressed at each use; None is the default rule, which keeps weights
    of ``kept_types``, by default ``types_kept_compressed``. Layers named in ``running`` are not folded. ``folded``
    holds constants of other plans of the same model, and receives the constants of this one. With ``emulation`` tensors
    are rounded between the layers. A RunError names the first operation that ovir cannot execute.
    """
    builder = _Builder(
        model,
        keep,
        keep_compressed,
        types_kept_compressed(model) if kept_types is None else kept_types,
        WeakValueDictionary() if folded is None else folded,
        emulation,
    )
    builder.running = running
    if original is not None:
        builder.originals = {layer.key: layer for layer in original.layers}
    for layer in counted("compiling", model.layers):
        with memory_errors_named(layer):
            builder.add(layer)
    return builder.finish()


def known_tensors(model: LayerGraph, skipped: Collection[Layer] = ()) -> dict[Port, Array]:
    """Return the tensors of a model that are known before any run, with the values that runs use.

    Tensors that follow from ``skipped`` layers are left out, as are tensors of dead layers, tensors inside of a
    decompression, and tensors that are too large or take too long to be folded.
    """
    builder = _Builder(model, (), False, (), WeakValueDictionary())
    for layer in model.layers:
        if layer not in skipped:
            builder.fold(layer)
    return {builder.ports[slot]: array for slot, array in builder.constants.items()}


@dataclass(frozen=True)
class _KeptConstant:
    """A kernel that returns the weights of a layer that is kept, and that are decompressed in another way than by the
    operation of the layer."""

    arrays: tuple[Array, ...]

    def __call__(self, *inputs: Array) -> tuple[Array, ...]:
        return self.arrays


def _executable(layer: Layer) -> Operator:
    """Return the operation of a layer; raise RunError if it has no kernel."""
    op = layer.operator
    if op is not None and hasattr(op, "run"):
        return op
    message = f"ovir does not execute {layer.type} of {layer.version}"
    hint = f'register a class for it: @ovir.register("{layer.type}", version="{layer.version}")'
    if op is not None:
        hint = f"the registered class {type(op).__name__} defines no run"
    raise RunError(diagnose(NOT_SUPPORTED, message, layer.place, hint=hint))


def _require_sources(layer: Layer) -> None:
    """Raise ModelError if an input has no source, as after an edit that was not completed."""
    for port in layer.inputs:
        if port.source is None:
            message = f"no edge leads to input port {port.id}"
            raise ModelError(diagnose(UNFED_INPUT, message, port.place, port=port.id))


class _Builder:
    def __init__(
        self,
        model: LayerGraph,
        keep: Collection[str],
        keep_compressed: bool | None,
        kept_types: Collection[ElementType],
        folded: Folded,
        emulation: Emulation | None = None,
    ) -> None:
        self.model = model
        self.emulated = None if emulation is None else EmulatedSteps(model, emulation)
        self.originals: Mapping[str, Layer] = {}
        """The layers that listeners see, by key, if the model is a copy."""
        self.keep = keep
        self.running: Collection[str] = ()
        """The layers that are not folded."""
        self.keep_compressed = keep_compressed
        self.kept_types = kept_types
        self.folded = folded
        self.slots: dict[Port, int] = {}
        self.ports: list[Port] = []
        self.constants: dict[int, Array] = {}
        self.steps: list[Step] = []
        self.bodies: dict[int, dict[str, Plan]] = {}
        self.needed = self._needed()
        self.folding = FoldingBudget(model)
        self.decompressions = find_decompressions(model, self._kept, keep_compressed, kept_types)
        self.decompressed: set[int] = set()
        """Slots of constants that decompression has made, or that are made from these."""
        self.independent: set[int] = set()
        self.shown: dict[int, int] = {}
        """The slots that steps of kept layers write, by the slot of the constant that other steps read instead."""
        self.rounded: dict[tuple[int, tuple[Layer, int] | None], int] = {}
        """The slots of rounded constants, by the slot of the constant and, if it matters, by its reader."""

    def _kept(self, layer: Layer) -> bool:
        return layer.key in self.keep

    def _needed(self) -> set[Layer]:
        """Return the layers that results, variables and kept layers depend on."""
        needed = {layer for layer in self.model.layers if not layer.is_dead or self._kept(layer)}
        for layer in reversed(self.model.layers):
            if layer in needed:
                needed.update(layers_before(layer))
        return needed

    def slot(self, port: Port) -> int:
        if port not in self.slots:
            self.slots[port] = len(self.ports)
            self.ports.append(port)
        return self.slots[port]

    def add(self, layer: Layer) -> None:
        if layer.type == "Parameter":
            self.slot(layer.outputs[0])
        if layer in self.needed:
            _require_sources(layer)
        if layer not in self.needed or layer.type in ("Parameter", "Result") or layer in self.decompressions.absorbed:
            return
        op = applied_operator(layer, _executable(layer))
        replacement, unread = self.decompressions.replacements.get(layer, (None, ()))
        sources = [port.source for port in layer.inputs if port.source is not None and port.source not in unread]
        inputs, outputs = tuple(map(self.slot, sources)), tuple(map(self.slot, layer.outputs))
        if replacement is not None:
            op = replacement
        if (replacement is None or inputs) and self._fold(layer, op, inputs, outputs):
            if self._kept(layer):
                self._show(layer, op, inputs, outputs)
            return
        if layer.bodies:
            shown_bodies = self.originals[layer.key].bodies if self.originals else {}
            self.bodies[len(self.steps)] = {
                key: self._plan_of(body, shown_bodies.get(key)) for key, body in layer.bodies.items()
            }
        if replacement is None:
            op = rewritten(op, layer, [self.constants.get(slot) for slot in inputs])
        checks_sizes = _relies_on_sizes(layer, op) and len(inputs) == len(layer.inputs)
        inputs, rounded = self._round_constants(layer, op, inputs)
        is_own = not op.opset  # an operation of a user
        kernel = with_checked_outputs(layer, op.run) if is_own else kernel_of(op)
        if rounded is not None:
            kernel = rounded(kernel)
        shown = self.originals.get(layer.key, layer)
        step = Step(layer, shown, op, kernel, inputs, outputs, checks_sizes=checks_sizes)
        step.may_use_fast_form = not is_own and rounded is None
        self.steps.append(step)

    def _show(self, layer: Layer, op: Operator, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        """Add a step that computes a folded layer once more, for listeners: the others read the constants, as without
        listeners. Its memory is free after it."""
        if layer in self.decompressions.folded:
            kernel: Callable[..., Any] = _KeptConstant(tuple(self.constants[slot] for slot in outputs))
        elif all(slot in self.constants for slot in inputs):
            kernel = op.run  # as when it was folded: a fast form may differ in the last digits
        else:
            kernel = kernel_of(op)
        for slot in outputs:
            self.shown[slot] = self._another_slot(slot)
        read = tuple(self.shown.get(slot, slot) for slot in inputs)
        written = tuple(self.shown[slot] for slot in outputs)
        self.steps.append(Step(layer, self.originals.get(layer.key, layer), op, kernel, read, written, is_shown=True))

    def _another_slot(self, slot: int) -> int:
        """Return a new slot for the port of another one."""
        self.ports.append(self.ports[slot])
        return len(self.ports) - 1

    def _round_constants(
        self, layer: Layer, op: Operator, inputs: tuple[int, ...]
    ) -> tuple[tuple[int, ...], Rounding | None]:
        """Return the inputs of a step, with rounded constants if the layer is emulated, and a wrapper of its kernel
        that rounds the rest; None if the kernel can stay as it is."""
        steps = self.emulated
        if steps is None or not steps.covers(layer):
            return inputs, None
        slots, positions = list(inputs), []
        for index in steps.rounded_inputs(layer, op):
            if inputs[index] in self.constants:
                slots[index] = self._rounded_constant(layer, index, inputs[index], steps.emulation)
            else:
                positions.append(index)
        steps.mark_rounded(layer)
        if op.views and not positions:
            return tuple(slots), None
        return tuple(slots), partial(steps.kernel, layer, op, positions)

    def _rounded_constant(self, layer: Layer, index: int, slot: int, emulation: Emulation) -> int:
        """Return the slot of a constant as an emulated layer reads it."""
        key = (slot, None if emulation.rounds_outputs else (layer, index))
        if key not in self.rounded:
            self.rounded[key] = self._another_slot(slot)
            self._set_constants((self.rounded[key],), (emulation.constant(layer, index, self.constants[slot]),))
        return self.rounded[key]

    def fold(self, layer: Layer) -> None:
        """Make the outputs of a layer constants if possible; unlike ``add``, accept layers that cannot run."""
        op = layer.operator
        if op is None or not hasattr(op, "run") or layer not in self.needed or layer in self.decompressions.absorbed:
            return
        if layer.outputs and all(port.source is not None for port in layer.inputs):
            inputs = tuple(self.slot(port.source) for port in layer.inputs if port.source is not None)
            self._fold(layer, applied_operator(layer, op), inputs, tuple(map(self.slot, layer.outputs)))

    def _plan_of(self, body: LayerGraph, original: LayerGraph | None) -> Plan:
        return make_plan(
            body,
            self.keep,
            keep_compressed=self.keep_compressed,
            kept_types=self.kept_types,
            folded=self.folded,
            emulation=None if self.emulated is None else self.emulated.emulation,
            original=original,
            running=self.running,
        )

    def _fold(self, layer: Layer, op: Operator, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> bool:
        """Make the outputs constants if possible; return whether that was done."""
        if layer in self.decompressions.folded:
            self._set_constants(outputs, self._shared(layer, lambda: (self.decompressions.folded[layer].whole(),)))
            self.decompressed.update(outputs)
            self.independent.update(outputs)
            return True
        if layer.key in self.running or not op.pure or layer.bodies:
            return False
        decompressed = not self.decompressed.isdisjoint(inputs)
        if not all(slot in self.constants for slot in inputs):
            return not decompressed and self._fold_known(layer, outputs)
        arrays = [self.constants[slot] for slot in inputs]
        tensors = [_known(self.ports[slot].type, array) for slot, array in zip(inputs, arrays, strict=True)]
        if not self.folding.allows(layer, op, tensors, arrays):
            return False

        def compute() -> tuple[Array, ...]:
            with kernel_settings():
                result = op.run(*arrays)
            return result if isinstance(result, tuple) else (result,)

        is_independent = self.independent.issuperset(inputs)
        try:
            self._set_constants(outputs, self._shared(layer, compute) if is_independent else compute())
        except Exception:
            return False  # the run raises the error again, with its place
        if is_independent:
            self.independent.update(outputs)
        if decompressed:
            self.decompressed.update(outputs)
        return True

    def _shared(self, layer: Layer, compute: Callable[[], tuple[Array, ...]]) -> tuple[Array, ...]:
        """Return the constant outputs of a layer, from another plan of the model if it has them."""
        places = [(layer.key, position) for position in range(len(layer.outputs))]
        known = [array for place in places if (array := self.folded.get(place)) is not None]
        if len(known) == len(places):
            return tuple(known)
        arrays = tuple(map(read_only, compute()))
        self.folded.update(zip(places, arrays, strict=False))
        return arrays

    def _fold_known(self, layer: Layer, outputs: tuple[int, ...]) -> bool:
        """Make outputs constants that follow from shapes, such as the output of ShapeOf; these are integers or
        booleans."""
        if any(port.element_type.is_real for port in layer.outputs):
            return False
        known = [array for port in layer.outputs if (array := port.type.constant) is not None]
        if len(known) < len(outputs):
            return False
        self._set_constants(outputs, tuple(known))
        return True

    def _set_constants(self, slots: tuple[int, ...], arrays: tuple[Array, ...]) -> None:
        for slot, array in zip(slots, arrays, strict=True):
            self.constants[slot] = read_only(array)

    def finish(self) -> Plan:
        results = [self._result(port, port.source) for port in self.model.outputs if port.source is not None]
        parameters = [self.slots[port] for port in self.model.inputs]
        set_releases(self.steps, {*results, *self.constants})
        used = {slot for step in self.steps for slot in step.inputs} | set(results)
        for step in self.steps:
            step.wanted = tuple(slot in used for slot in step.outputs)
        constants = {slot: array for slot, array in self.constants.items() if slot in used}
        return Plan(
            self.model,
            self.ports,
            parameters,
            constants,
            self.steps,
            results,
            self.bodies,
            frozenset(self.independent & constants.keys()),
            self._open_variables(),
        )

    def _result(self, port: Port, source: Port) -> int:
        """Return the slot of an output: if it is a constant, rounded as any other output of an emulated layer."""
        slot, steps = self.slot(source), self.emulated
        if slot not in self.constants or steps is None or not steps.rounds_result(source):
            return slot
        return self._rounded_constant(port.layer, port.index, slot, steps.emulation)

    def _open_variables(self) -> tuple[str, ...]:
        names = {
            op.variable_id: None
            for step in self.steps
            if isinstance(op := step.operator, ReadValueBase) and not step.layer.outputs[0].shape.is_static
        }
        return tuple(names)


def _relies_on_sizes(layer: Layer, op: Operator) -> bool:
    """Return whether the kernel relies on sizes of several inputs that inference did not know."""
    if op.guards_sizes or layer.bodies or all(port.shape.is_static for port in layer.inputs):
        return False
    sized = [port for i, port in enumerate(layer.inputs) if port.type.constant is None or not op.reads_value(i)]
    return len(sized) > 1 and any(not port.shape.is_static for port in sized)


# --------------------------------------------------------------------------- limits of folding

_LARGEST_GROWTH = 16 << 20
"""The largest constant, in bytes, that folding creates from smaller ones, such as by Broadcast."""
_GROWTH = 4
"""The greatest ratio of the size of a larger constant to that of its inputs, as when f32 is made of u8."""
_TOTAL, _TOTAL_GROWTH = 64 << 20, 8
"""All folded constants together may take this many bytes and this many times the constants of the file."""
_TIME, _TIME_PER_BYTE = 1e8, 4
"""The nanoseconds that one kernel may take, in all and for each byte of its inputs."""


class FoldingBudget:
    """Decides which constants of one model or body are folded. Constants that it refuses are computed in each run."""

    def __init__(self, model: LayerGraph) -> None:
        constants = (layer.outputs[0] for layer in model.layers if layer.type == "Const" and layer.outputs)
        self._left = _TOTAL + _TOTAL_GROWTH * sum(_most_bytes(port.type) or 0 for port in constants)

    def allows(self, layer: Layer, op: Operator, inputs: Sequence[TensorType], arrays: Sequence[Array]) -> bool:
        """Return whether the layer may be folded with these inputs; if so, its result is charged to the budget."""
        if isinstance(op, Const):
            return True
        if not op.bounded:
            return False
        outputs: Sequence[TensorType] = [port.type for port in layer.outputs]
        if any(_most_bytes(tensor) is None for tensor in outputs):
            try:
                outputs = as_tuple(op.infer(*inputs))
            except OperatorError:
                return False  # the run reports it
        sizes = [_most_bytes(tensor) for tensor in outputs]
        made_from = sum(array.nbytes for array in arrays)
        largest = max(_LARGEST_GROWTH, _GROWTH * made_from)
        if any(size is None or size > largest for size in sizes):
            return False
        if op.kernel_time(inputs, outputs) > _TIME + _TIME_PER_BYTE * made_from:
            return False
        total = sum(size or 0 for size in sizes)
        if op.views and total <= made_from:
            return True  # the result shares the memory of its input
        if total > self._left:
            return False
        self._left -= total
        return True


def _known(tensor: TensorType, array: Array) -> TensorType:
    return constant_type(array, None if tensor.element_type.is_dynamic else tensor.element_type)


def _most_bytes(tensor: TensorType) -> int | None:
    """Return the most bytes that an array of this type can take, None if there is no bound."""
    most = tensor.shape.size().upper
    if most is None or tensor.element_type.is_dynamic:
        return None
    return most * np.dtype(tensor.element_type.to_dtype()).itemsize
