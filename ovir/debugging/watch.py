"""Watches: find the layer at which a value that is watched for first appears."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any, cast

import numpy as np

from ovir.analysis.tensor_stats import as_numbers, stats
from ovir.core.arrays import Array
from ovir.core.tables import Table, cell_text, columns
from ovir.core.tensor_types import type_name
from ovir.debugging.layerwise_run import Walk, WalkPlan
from ovir.debugging.value_conditions import Condition, Occurrence, extent_of, is_real, largest_of, parse_conditions
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import plural, shown
from ovir.graph.constant_layers import all_constant_layers, constant_layers
from ovir.graph.layers import Layer, Port
from ovir.graph.order import dependents
from ovir.model import Model
from ovir.ops.infrastructure import Const
from ovir.runtime.listeners import Listener
from ovir.runtime.plan import applied_operator


@dataclass(frozen=True)
class WatchedInput:
    """An input of a layer that was reported."""

    source: str
    """The key of the layer that computed it."""
    type: str
    """The operation of that layer, such as ``MatMul``."""
    shape: tuple[int, ...]
    """The shape of the tensor in this run."""
    minimum: float | int | None
    """The smallest finite value."""
    maximum: float | int | None
    """The largest finite value."""
    nonfinite: int
    """The number of NaN and infinities."""
    value: float | int | None
    """The value at the reported position; None inside of a layer, or if the shapes do not broadcast."""

    def __str__(self) -> str:
        ends = (cell_text("real", value) for value in (self.minimum, self.maximum))
        return f"{self.source} {'..'.join(ends)}" + (f", {self.nonfinite:,} not finite" if self.nonfinite else "")


@dataclass(frozen=True)
class WatchEvent:
    """A layer that made a watched value out of inputs without one."""

    layer: str
    """Its key."""
    id: int
    """Its id in the file."""
    type: str
    """Its operation, such as ``MatMul``."""
    what: str
    """The condition, such as ``overflow:f16``."""
    value: float
    """The first such value."""
    position: tuple[int, ...]
    """Its index in the tensor."""
    output: int
    """The number of the output."""
    inside: str | None
    """The step inside of the layer whose result this is, such as the scores of attention; None for an output."""
    count: int
    """The number of such values in the tensor."""
    size: int
    """The number of all values in the tensor."""
    call: int
    """The number of earlier runs of the layer, which is more than 0 only in bodies."""
    inputs: tuple[WatchedInput, ...]
    """The inputs of the layer."""


@dataclass(frozen=True)
class WatchedConstant:
    """A constant with numbers that a watched type cannot hold."""

    layer: str
    """The key of the constant."""
    id: int
    """Its id in the file."""
    what: str
    """The condition, such as ``overflow:f16``."""
    value: float
    """The first such number."""
    count: int
    """The number of these numbers."""
    readers: tuple[str, ...]
    """The keys of the layers that read the constant."""


@dataclass(frozen=True)
class LayerMargin:
    """The distance of a layer's results from overflow."""

    layer: str
    """The key of the layer."""
    id: int
    """Its id in the file."""
    type: str
    """Its operation, such as ``MatMul``."""
    largest: float
    """The largest absolute value in all results and calls."""
    margins: dict[str, float]
    """For each type that is watched for overflow: its largest value divided by ``largest``."""


@dataclass(frozen=True)
class _Folded:
    """The known facts about a tensor that is computed from constants alone."""

    array: Array | None
    events: Sequence[WatchEvent] = ()
    constants: Sequence[WatchedConstant] = ()


class Watch(Listener):
    """Look for values in the results of all layers, those in bodies included.

    ``Watch("nan,inf,overflow:f16,denormal:f16")`` is given to a run as ``compiled(inputs, listeners=[watch])``.
    Afterwards ``events`` holds what the run has shown, ``first`` the first event, and ``margins`` how far each layer is
    from overflow. A layer is reported if one of its results has such a value and none of its inputs has; others only
    pass it on. If NaN is watched and an input of the model contains it, layers that depend on this input are not
    reported at all, because some of them turn NaN into numbers. A run clears the events of the one before.

    - ``nan``, ``inf``: NaN or an infinity;
    - ``overflow:TYPE``: a finite value that becomes infinite when it is rounded to this type;
    - ``denormal:TYPE``: a value other than 0 that is smaller than the type's normal numbers, and loses digits in it.
    """

    def __init__(self, conditions: str = "nan,inf") -> None:
        """Create a watch; raise InputError for a string that names no condition."""
        if not isinstance(conditions, str):
            raise InputError.usage(f"expected a text such as 'nan,inf,overflow:f16', got {conditions!r}")
        self.conditions = parse_conditions(conditions)
        """The conditions, parsed."""
        self.events: list[WatchEvent] = []
        """In the order in which the layers have run."""
        self.inputs: list[tuple[str, str]] = []
        """The model's inputs that have a watched value themselves, each with the condition."""
        self.constants: list[WatchedConstant] = []
        """The constants that exceed a type watched for overflow, which devices clamp to its range, and constants with
        NaN, if NaN is watched."""
        self._largest: dict[Layer, float] = {}
        self._calls: dict[Layer, int] = {}
        self._reported: set[tuple[Layer, Condition]] = set()
        self._spoiled: set[Layer] = set()
        self._nonfinite = [condition for condition in self.conditions if condition.kind in ("nan", "inf")]
        self._layers: Sequence[Layer] = ()
        self._folded: dict[Port, _Folded] = {}
        self._folded_inputs: dict[Layer, list[int]] = {}
        self._folded_outputs: list[Port] = []

    @property
    def first(self) -> WatchEvent | None:
        """Return the first event, None if there is none."""
        return self.events[0] if self.events else None

    @property
    def margins(self) -> list[LayerMargin]:
        """Return the margin to overflow of each layer with real results, in the order in which the layers have run."""
        types = {str(c.element_type): c.element_type for c in self.conditions if c.kind == "overflow"}
        limits = {name: largest_of(t) for name, t in types.items() if t is not None}
        margins = []
        for layer, largest in self._largest.items():
            by_type = {name: limit / largest if largest else float("inf") for name, limit in limits.items()}
            margins.append(LayerMargin(layer.key, layer.id, layer.type, largest, by_type))
        return margins

    def _repr_html_(self) -> str:
        title = f"{plural(len(self.events), 'layer')} made watched values: {', '.join(map(str, self.conditions))}"
        return self.table().in_notebook(title)

    def table(self) -> Table:
        """Return the layers that made watched values first, and where."""
        rows = []
        for event in self.events:
            what = event.what if event.inside is None else f"{event.what} in its {event.inside}"
            where = f"{shown(event.position)}" + (f" of call {event.call + 1}" if event.call else "")
            inputs = "; ".join(map(str, event.inputs))
            rows.append((event.layer, event.type, what, event.value, where, event.count, inputs))
        heads = "layer: name 2; operation: type; what: tag; value: real; position: tensor; count: count; "
        return Table(columns(f"{heads}inputs: list in texts"), rows, least=("position",))

    def to_dict(self) -> dict[str, Any]:
        """Return the events and margins as plain data."""
        parts: dict[str, list[Any]] = {"watch": self.events, "constants": self.constants, "margins": self.margins}
        return {name: list(map(asdict, items)) for name, items in parts.items()}

    # ----- as a listener

    def see_inputs(self, model: Model, arrays: Sequence[Array]) -> None:
        """Forget the run before, and examine the inputs of this one."""
        self.events.clear()
        self._largest.clear()
        self._calls.clear()
        self._reported.clear()
        if model.layers is not self._layers:  # another model, or an edited one
            self._layers = model.layers
            self._folded.clear()
            self._folded_inputs.clear()
            constant = all_constant_layers(model) if self._nonfinite else ()
            sources = (port.source for port in model.outputs)
            self._folded_outputs = [port for port in sources if port is not None and port.layer in constant]
        self.inputs = [
            (port.any_name, str(condition))
            for port, array in zip(model.inputs, arrays, strict=True)
            for condition in self.conditions
            if is_real(array) and condition.holds_anywhere(array)
        ]
        self.constants = list(large_constants(model, self.conditions))
        for source in self._folded_outputs:
            self._examine_folded(source, None)
        with_nan = {name for name, what in self.inputs if what == "nan"}
        self._spoiled = dependents(port.layer for port in model.inputs if port.any_name in with_nan)

    def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Handle a layer that has run; one with bodies has no results of its own."""
        positions = self._folded_inputs.get(layer)
        if positions is None:
            positions = self._folded_inputs[layer] = self._positions(layer)
        for position in positions:
            if position < len(inputs):
                self._examine_folded(layer.inputs[position].source, inputs[position])
        if layer.bodies:
            return
        call = self._calls[layer] = self._calls.get(layer, -1) + 1
        self._examine_steps(layer, inputs, call)
        self._examine_outputs(layer, inputs, outputs, call)

    def _examine_outputs(
        self, layer: Layer, inputs: Sequence[Array | None], outputs: Sequence[Array], call: int = 0
    ) -> None:
        for index, output in enumerate(outputs):
            if is_real(output):
                extent = extent_of(output)
                self._largest[layer] = max(self._largest.get(layer, 0.0), extent.largest)
                for condition in self.conditions:
                    if not condition.may_hold(extent) or not self._may_report(layer, condition, inputs):
                        continue
                    if (occurrence := condition.find(output)) is not None:
                        self._report(layer, condition, inputs, occurrence, output.shape, call, output=index)

    # ----- what is folded, which no run shows

    def _positions(self, layer: Layer) -> list[int]:
        """Return the inputs of a layer that are computed from constants alone; none if their values do not matter."""
        sources = [port.source for port in layer.inputs] if self._nonfinite else []
        return [i for i, port in enumerate(sources) if port is not None and constant_layers(port.layer) is not None]

    def _examine_folded(self, port: Port | None, array: Array | None) -> None:
        """Report the folded layers that make NaN and infinities on the way to a tensor, and the constants with NaN.

        The array of a folded tensor is the same in each run of a compiled model, so it is examined once.
        """
        assert port is not None
        known = self._folded.get(port)
        if known is None or known.array is not array:
            known = self._folded[port] = self._trace(port, array)
        for event in known.events:
            if not any((other.layer, other.what) == (event.layer, event.what) for other in self.events):
                self.events.append(event)
        if known.constants:
            self.constants += [constant for constant in known.constants if constant not in self.constants]

    def _trace(self, port: Port, array: Array | None) -> _Folded:
        """Return the facts about a tensor that is computed from constants alone; its array is None for an output."""
        chain = constant_layers(port.layer)
        assert chain is not None
        if array is not None and not (is_real(array) and any(c.holds_anywhere(array) for c in self._nonfinite)):
            return _Folded(array)
        watch = Watch(",".join(map(str, self._nonfinite)))
        for step in Walk(WalkPlan(cast("Model", port.layer.owner).extract(outputs=[port]), with_constants=True), []):
            watch._examine_outputs(step.layer, step.inputs, step.outputs)
        nan = [condition for condition in self._nonfinite if condition.kind == "nan"]  # infinities are often meant
        constants = [constant for layer in chain for constant in _watched_constants(layer, *nan)]
        return _Folded(array, watch.events, constants)

    def _examine_steps(self, layer: Layer, inputs: Sequence[Array], call: int) -> None:
        """Check the numbers that devices compute inside of a layer such as attention, by a second run of the layer."""
        conditions = [condition for condition in self.conditions if condition.kind == "overflow"]
        if not conditions or layer.operator is None or not layer.operator.has_steps:
            return
        wanted = [condition for condition in conditions if self._may_report(layer, condition, inputs)]
        scan = StepScan(wanted)
        applied_operator(layer, layer.operator).run_in_steps(scan.step, *inputs)
        if wanted:
            self._largest[layer] = max(self._largest.get(layer, 0.0), scan.largest)
        for name, condition, occurrence, shape in scan.found():
            if (layer, condition) not in self._reported:
                self._report(layer, condition, inputs, occurrence, shape, call, inside=name)

    def _may_report(self, layer: Layer, condition: Condition, inputs: Sequence[Array | None]) -> bool:
        """Return whether the layer was not reported yet, depends on no NaN in the inputs of the model, and no input has
        such a value itself."""
        if layer in self._spoiled or (layer, condition) in self._reported:
            return False
        return not any(array is not None and is_real(array) and condition.holds_anywhere(array) for array in inputs)

    def _report(
        self,
        layer: Layer,
        condition: Condition,
        inputs: Sequence[Array | None],
        occurrence: Occurrence,
        shape: tuple[int, ...],
        call: int,
        *,
        output: int = 0,
        inside: str | None = None,
    ) -> None:
        self._reported.add((layer, condition))
        arrays = [(i, array) for i, array in enumerate(inputs) if array is not None]
        seen = tuple(_seen(layer, i, array, occurrence.position, None if inside else shape) for i, array in arrays)
        head = (layer.key, layer.id, layer.type, str(condition), occurrence.value, occurrence.position)
        self.events.append(WatchEvent(*head, output, inside, occurrence.count, prod(shape), call, seen))


def large_constants(model: Model, conditions: Iterable[Condition]) -> Iterator[WatchedConstant]:
    """Yield the constants of a model that are too large for a type that is watched for overflow."""
    overflows = [condition for condition in conditions if condition.kind == "overflow"]
    for layer in model.walk() if overflows else ():
        if not layer.is_dead:
            yield from _watched_constants(layer, *overflows)


def _watched_constants(layer: Layer, *conditions: Condition) -> Iterator[WatchedConstant]:
    """Yield a constant for each condition that holds in it; nothing for other layers."""
    if not isinstance(layer.operator, Const) or not is_real(array := layer.operator.run()):
        return
    extent = extent_of(array)
    for condition in conditions:
        if condition.may_hold(extent) and (occurrence := condition.find(array)) is not None:
            readers = tuple(dict.fromkeys(reader.layer.key for reader in layer.outputs[0].readers))
            yield WatchedConstant(layer.key, layer.id, str(condition), occurrence.value, occurrence.count, readers)


class StepScan:
    """Examines the results of the steps inside of a layer, block by block."""

    def __init__(self, conditions: Sequence[Condition]) -> None:
        self.largest = 0.0
        """The largest finite absolute value in all blocks."""
        self._conditions = conditions
        self._found: dict[tuple[str, Condition], Occurrence] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}

    def step(self, name: str, where: tuple[int, ...], array: Array) -> Array:
        """Check a block, and return it as it is."""
        extent = extent_of(array)
        if np.isfinite(extent.largest):
            self.largest = max(self.largest, extent.largest)
        ends = [*(index + 1 for index in where), *array.shape]
        self._shapes[name] = tuple(map(max, ends, self._shapes.get(name, ends)))
        for condition in self._conditions:
            new = condition.find(array) if condition.may_hold(extent) else None
            if new is not None:
                first = self._found.get((name, condition), Occurrence((*where, *new.position), new.value, 0))
                self._found[name, condition] = replace(first, count=first.count + new.count)
        return array

    def found(self) -> Iterator[tuple[str, Condition, Occurrence, tuple[int, ...]]]:
        """Yield the name of a step, a condition, where it holds, and the shape of the step's result."""
        for (name, condition), occurrence in self._found.items():
            yield name, condition, occurrence, self._shapes[name]


def _seen(
    layer: Layer, index: int, array: Array, position: tuple[int, ...], shape: tuple[int, ...] | None
) -> WatchedInput:
    source = layer.inputs[index].source if index < len(layer.inputs) else None
    key, numbers = "" if source is None else source.layer.key, stats(array)
    value = None if shape is None else _value_at(array, position, shape)
    ends = (numbers.minimum, numbers.maximum, numbers.nonfinite)
    return WatchedInput(key, type_name(array.dtype), array.shape, *ends, value)


def _value_at(array: Array, position: tuple[int, ...], shape: tuple[int, ...]) -> float | int | None:
    """Return the element that broadcasting combines into this position of the output."""
    if array.ndim > len(shape) or array.dtype.kind in "TUSO":
        return None
    aligned = position[len(shape) - array.ndim :]
    if any(size not in (1, whole) for size, whole in zip(array.shape, shape[len(shape) - array.ndim :], strict=True)):
        return None
    element = array[tuple(0 if size == 1 else i for i, size in zip(aligned, array.shape, strict=True))]
    value: float | int = as_numbers(np.asarray(element)).item()
    return value
