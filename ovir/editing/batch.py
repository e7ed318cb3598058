"""Another number of items in a batch: finds constants that pin the old number, and lets them follow the inputs.

The model is inferred for a number of items that occurs nowhere else. A tensor that holds items then has one axis that
has grown in proportion. Where inference fails, or where the items are lost, a constant pins the old number: the target
of a Reshape, a size or an end among the inputs of a layer, or data that was made for this number of items, such as an
initial state. It is replaced by 0, by -1, or by what is computed from the shape of a tensor that holds items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as replace_field
from itertools import combinations, islice, product
from typing import Any

import numpy as np

from ovir import opset8 as ops
from ovir.building.creation import create_layer, new_constant
from ovir.core.shapes import MAX_SIZE, UNKNOWN, PartialShape
from ovir.diagnostics.codes import CHANGED_RESULTS
from ovir.diagnostics.diagnostic import Diagnostic, diagnose, in_place_of
from ovir.diagnostics.errors import Diagnostics, InputError, ModelError
from ovir.diagnostics.wording import plural
from ovir.editing.constant_edits import remove_unread
from ovir.editing.keys import read_by, refuse
from ovir.editing.layer_edits import insert_before, replace
from ovir.editing.preprocessing import recorded_layout
from ovir.editing.proof import ProvenEdit, proven
from ovir.editing.transaction import editing, owner_of, with_types
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port, ReadOnlyDict
from ovir.graph.names import free_name
from ovir.inference.engines import ComparingEngine, Types, set_outputs
from ovir.inference.models import infer_model, set_parameters
from ovir.inference.pinned_sizes import pinned_layers
from ovir.ops.infrastructure import Const, Parameter
from ovir.ops.shape import Reshape
from ovir.ops.state import AssignBase, ReadValue6, ReadValueBase

TRIAL = 13
"""The number of items for which the model is inferred: a prime, so that no other size is likely to be a multiple."""
MOST_INPUTS = 8
"""The most inputs of a layer that are tried together as data made for the old number of items."""

MOST_PROVEN = 8
"""The most items for which an edit is proven, where the original takes fewer than half of them in a call."""

MOST_CHOICES = 8
"""The most choices of axes that are tried, where several axes of inputs and variables have the number of items."""

Batch = int | str | Mapping[Any, int | str]


def set_batch(model: LayerGraph, batch: Batch, verify: bool) -> ProvenEdit:
    """Give a model another number of items in a batch; see ``Model.set_batch``."""
    if model.holder is not None:
        refuse("the batch of a body cannot be set: its inputs come from the model around it")
    with_types(model)
    named = dict(batch) if isinstance(batch, Mapping) else dict.fromkeys(model.inputs, batch)
    numbers = {_number(value) for value in named.values()}
    if len(numbers) != 1:
        refuse(f"expected one number of items for all inputs, got {batch!r}")
    keys = [model.input_index(key) for key in named]
    (number,) = numbers
    choices, old = _axes(model, keys, is_named=isinstance(batch, Mapping))
    if old is None:
        old = _pinned_number(model, {i: axes[0] for i, axes in choices.items()})
    states = {
        layer.id: own
        for layer in model.layers
        if isinstance(layer.operator, ReadValueBase) and (own := _state_axes(layer.outputs[0].shape, old))
    }
    found = list(islice(product(*choices.values(), *states.values()), MOST_CHOICES))
    first: ModelError | None = None
    for axes in found:
        chosen, of_states = dict(zip(choices, axes, strict=False)), dict(zip(states, axes[len(choices) :], strict=True))
        if len(found) == 1:
            return _set_batch(model, chosen, of_states, old, number, verify)
        try:
            verdict = _set_batch(model.clone(), chosen, of_states, old, number, verify).verdict
        except ModelError as error:
            first = first or error
            continue
        return replace_field(_set_batch(model, chosen, of_states, old, number, False), verdict=verdict)
    assert first is not None
    raise first


def _set_batch(
    model: LayerGraph, axes: Mapping[int, int], states: Mapping[int, int], old: int, number: int, verify: bool
) -> ProvenEdit:
    """Set the number of items on these axes of inputs and of variables, by the ids of their ReadValues."""
    with editing(model):
        _set_items(model, axes, old)  # a model that takes any number of items is compared with its runs of this one
        with proven(model, verify) as edit:
            edit.relation["batch"] = dict(axes)
            fitting = Fitting(model, axes, {model.layer(i): axis for i, axis in states.items()}, old)
            edit.layers = fitting.run()
            shown = _proven_number(number, old)
            fitting.set_number(shown)
        if shown != number:
            few = [port.shape for port in model.outputs]
            fitting.set_number(number)
            with_types(model)
            _require_proportion(model, few, shown, number)
            if edit.verdict.startswith("proven"):
                edit.verdict += f" (run with {plural(shown, 'item')})"
    return edit


def _require_proportion(model: LayerGraph, few: Sequence[PartialShape], shown: int, number: int) -> None:
    """Raise ModelError for an output with a size that neither stays nor grows with the number of items.

    ``few`` are the shapes of the outputs for the number of items that was shown to be right.
    """
    for port, shape in zip(model.outputs, few, strict=True):
        pairs = zip(shape.dims, port.shape.dims, strict=False) if shape.rank is not None else ()
        if all(n.lower in (m.lower, m.lower * number // shown) for m, n in pairs if m.is_static and n.is_static):
            continue
        message = (
            f"output '{port.any_name}' has shape {shape} for {plural(shown, 'item')}, but {port.shape} for {number}"
        )
        raise ModelError(diagnose(CHANGED_RESULTS, message, port.layer.place))


def _proven_number(number: int, old: int) -> int:
    """Return the number of items for which an edit is proven: the wanted one, or few where that one is large.

    The edit is the same for every number, and memory may not suffice for the wanted one.
    """
    return number if number <= max(MOST_PROVEN, 2 * old) else 2 * old + 1


def _number(value: object) -> int:
    """Return a number of items, -1 for any."""
    if value in ("?", -1, "-1"):
        return -1
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_SIZE:
        expected = f"a number of items of at least 1 and at most {MAX_SIZE}, or -1 (?) for any"
        raise InputError.usage(f"expected {expected}, got {value!r}")
    return value


def _axes(model: LayerGraph, keys: Sequence[int], *, is_named: bool) -> tuple[dict[int, list[int]], int | None]:
    """Return the axes that may hold the items by the position of the input, likely ones first, and the present number
    of items, None if it is open.

    The layout of an input tells the axis. Otherwise it has the size that most inputs have as their first.
    """
    shapes = {i: model.inputs[i].shape for i in keys}
    if any(shape.rank is None for shape in shapes.values()):
        port = next(model.inputs[i] for i in keys if shapes[i].rank is None)
        refuse(f"input '{port.any_name}' has an unknown rank", port.layer, "give it a shape before")
    layouts = {i: recorded_layout(model.inputs[i]).find("N") for i in keys if recorded_layout(model.inputs[i])}
    heads = [shapes[i][max(layouts.get(i, 0), 0)] for i in keys if shapes[i].rank and layouts.get(i, 0) >= 0]
    if not heads:
        refuse("no input has an axis of items", None, "`ovir show` lists the inputs")
    old = Counter(dim.lower if dim.is_static else None for dim in heads).most_common(1)[0][0]
    choices: dict[int, list[int]] = {}
    for i, shape in shapes.items():
        own = [a for a, dim in enumerate(shape) if not dim.is_static or dim.lower == old]
        own = [layouts[i]] if i in layouts else own if choices else own[:1]
        if own and own[0] >= 0:
            choices[i] = own
        elif is_named:
            port = model.inputs[i]
            refuse(f"input '{port.any_name}' of shape {shape} has no axis of {plural(old or 1, 'item')}", port.layer)
    return choices, old


def _pinned_number(model: LayerGraph, axes: Mapping[int, int]) -> int:
    """Return the number of items that constants of a model were made for whose inputs take any number."""
    shapes = (layer.outputs[0].shape for layer, *_, is_batch in pinned_layers(model) if is_batch)
    for number in dict.fromkeys(dim.upper for shape in shapes for dim in shape if dim.upper):
        trial = model.clone()
        _set_items(trial, axes, number)
        try:
            infer_model(trial)
        except ModelError:
            continue
        return number
    return 1


def _set_items(model: LayerGraph, axes: Mapping[int, int], number: int) -> None:
    wanted: dict[Layer, Parameter] = {}
    for i, axis in axes.items():
        port = model.inputs[i]
        shape = port.shape.with_dim(axis, UNKNOWN if number < 0 else number)
        wanted[port.layer] = Parameter(element_type=port.element_type, shape=shape)
    set_parameters(wanted)
    model.needs_inference = True


def _parameter_shape(port: Port) -> PartialShape:
    assert isinstance(port.layer.operator, Parameter)
    return port.layer.operator.shape


def _state_axes(shape: PartialShape, old: int) -> list[int]:
    """Return the axes that may hold the items of a variable, or of a tensor that a loop hands on."""
    if shape.rank is None or shape.rank < 2:
        return []
    return [axis for axis, dim in enumerate(shape) if dim.is_static and dim.lower == old]


def _set_state(layer: Layer, axis: int, number: int) -> None:
    """Give the variable of a ReadValue another number of items."""
    if isinstance(op := layer.operator, ReadValue6) and op.variable_shape.rank is not None:
        shape = op.variable_shape.with_dim(axis, UNKNOWN if number < 0 else number)
        layer.operator = ReadValue6(variable_id=op.variable_id, variable_type=op.variable_type, variable_shape=shape)
        layer.attributes = ReadOnlyDict({**layer.attributes, "variable_shape": shape})


# --------------------------------------------------------------------------- the inference that repairs

Repair = list[tuple[int, Layer]]
"""The new sources of some inputs of a layer."""


class Fitting(ComparingEngine):
    """Infers a model for ``TRIAL`` items, and repairs each layer that a constant holds to the old number."""

    def __init__(self, model: LayerGraph, axes: Mapping[int, int], states: Mapping[Layer, int], old: int) -> None:
        """Record the present types of a model that has ``old`` items on these axes of inputs and variables."""
        super().__init__(Diagnostics(), model.version)
        self._model = model
        self._axes = axes
        self._old = old
        self._source = next((model.inputs[i], axis) for i, axis in axes.items())
        self._before = {port: port.shape for layer in model.walk() for port in (*layer.inputs, *layer.outputs)}
        self._outer: dict[Port, int] = {}
        """For an axis whose items are the inner part: the size of the outer part."""
        self._changed: dict[Layer, None] = {}
        self._refused: Diagnostic | None = None
        self.states = dict(states)
        """The axis of the items of each variable, by its ReadValue."""

    def run(self) -> list[Layer]:
        """Infer the model, and return the layers that were repaired; raise ModelError for one that cannot be."""
        for layer, axis in list(self.states.items()):
            del self.states[layer]
            self.states[self._with_initial_value(layer)] = axis
        self.set_number(TRIAL)
        for port in self._model.inputs:  # an initial value may come before the input that tells its number of items
            set_outputs(port.layer, (port.type.refined(port.element_type, _parameter_shape(port)),))
        self.infer(self._model)
        if self._refused is not None:
            raise ModelError(self._refused)
        return list(self._changed)

    def set_number(self, number: int) -> None:
        """Give the inputs and the variables a number of items, -1 for any."""
        _set_items(self._model, self._axes, number)
        for layer, axis in self.states.items():
            _set_state(layer, axis, number)

    def _with_initial_value(self, layer: Layer) -> Layer:
        """Return the ReadValue with an initial value of its own, because zeros without one have no number of items."""
        op, port = layer.operator, layer.outputs[0]
        if layer.inputs or not isinstance(op, ReadValue6) or not port.shape.is_static:
            return layer
        zeros = ops.constant(np.zeros(port.shape.to_tuple(), port.element_type.to_dtype()), port.element_type)
        with in_place_of(layer.place):
            new = create_layer("ReadValue", [zeros], dict(layer.attributes), version="opset6")
        replace(self._model, layer, new)
        for one, other in zip((*layer.outputs, *layer.outputs), (*new.outputs, *new.inputs), strict=True):
            self._before[other] = self._before[one]
        return new

    # ----- one layer

    def infer_layer(self, layer: Layer, *, is_body: bool) -> None:
        """Infer a layer; where the result does not hold the items, repair the layer."""
        if self._refused is None:
            with in_place_of(layer.place):
                self._infer_or_repair(layer)

    def _infer_or_repair(self, layer: Layer) -> None:
        self._prepare_loop(layer)
        types = [self.input_type(port) for port in layer.inputs]
        outputs, found = self.attempt(layer, types)
        if outputs is None or not self._fits(layer, outputs):
            for repair in self._repairs(layer):
                new = dict(repair)
                trial = [new[i].outputs[0].type if i in new else tensor for i, tensor in enumerate(types)]
                repaired, _ = self.attempt(layer, trial)
                if repaired is not None and self._fits(layer, repaired):
                    self._apply(layer, repair)
                    outputs = repaired
                    break
            else:
                self._refuse(layer, outputs, found)
                return
        set_outputs(layer, outputs)
        self._follow_outer(layer)

    def _refuse(self, layer: Layer, outputs: Types | None, found: Sequence[Diagnostic]) -> None:
        message = f"the number of items cannot change from {self._old}: "
        if outputs is None:
            message += f"this layer cannot take {TRIAL} items, a trial number: {found[0].message}"
        else:
            shapes = ", ".join(str(tensor.shape) for tensor in outputs)
            message += f"for {TRIAL} items, a trial number, the result of this layer is {shapes}, "
            message += "in which the items are picked or mixed"
        self._refused = diagnose(CHANGED_RESULTS, message, layer.place)

    # ----- where the items are

    def _axis(self, port: Port) -> int | None:
        """Return the axis that holds the items of a tensor; None if there is none."""
        moved = self._moved(self._before.get(port, port.shape), port.shape)
        return moved if moved is not None and moved >= 0 else None

    def _moved(self, before: PartialShape, shape: PartialShape) -> int | None:
        """Return the axis that has grown with the number of items, None if none has, -1 if other sizes have changed."""
        if before.rank is None or shape.rank is None or before.rank != shape.rank:
            return None if before.rank == shape.rank else -1
        pairs = list(zip(before, shape, strict=True))
        axes = [a for a, (m, n) in enumerate(pairs) if (m.lower, m.upper) != (n.lower, n.upper)]
        if not axes:
            return None
        fixed = [pairs[a] for a in axes if pairs[a][0].is_static]
        in_proportion = all(n.is_static and m.lower * TRIAL == n.lower * self._old for m, n in fixed)
        return axes[0] if in_proportion and (len(axes) == 1 or not fixed) else -1

    def _batched(self, layer: Layer) -> list[tuple[Port, int]]:
        """Return the inputs that hold items, each with its axis."""
        pairs = ((port, self._axis(port)) for port in layer.inputs)
        return [(port, axis) for port, axis in pairs if axis is not None]

    def _fits(self, layer: Layer, outputs: Types) -> bool:
        """Return whether the outputs of a layer hold the items that its inputs hold."""
        if layer.outputs and layer.outputs[0] not in self._before:
            return True
        pairs = zip(layer.outputs, outputs, strict=False)
        moved = [self._moved(self._before[port], tensor.shape) for port, tensor in pairs if port in self._before]
        if layer in self.states:
            return moved[0] == self.states[layer]
        if layer.type in ("ShapeOf", "Result") or isinstance(layer.operator, AssignBase) or not self._batched(layer):
            return True
        if -1 in moved:
            return False
        if isinstance(layer.operator, Reshape) and (wanted := self._target_axis(layer)) is not None:
            return moved[0] == wanted or not outputs[0].shape[wanted].is_static
        return any(axis is not None for axis in moved) or not all(tensor.shape.is_static for tensor in outputs)

    def _target_axis(self, layer: Layer) -> int | None:
        """Return the axis of the items in the result of a Reshape, which keeps the order of elements; None if it is not
        known, or mixes them.

        One item may be part of any axis that begins or ends where the item is. It does not go to the last axes if these
        keep their sizes, and rather to an axis of its own, or to one whose size the target leaves open, than to others.
        """
        axis, pre = self._axis(layer.inputs[0]), self._before_items(layer.inputs[0])
        if axis is None or not pre:
            return None
        before, after = self._before[layer.inputs[0]].dims, self._before[layer.outputs[0]].dims
        first, inside, size = [], [], 1
        for place, dim in enumerate(after):
            if not dim.is_static:
                first += [place] if size == pre else []
                break
            if size == pre and dim.lower % self._old == 0:
                first.append(place)
            elif dim.lower and pre % size == 0 and size * dim.lower % (pre * self._old) == 0:
                inside.append(place)  # other axes are the outer part of this one
            size *= dim.lower
            if not size:
                break
        kept = before[axis + 1 :]
        if kept and after[-len(kept) :] == kept:
            ahead = range(len(after) - len(kept))
            if not {*first, *inside}.isdisjoint(ahead):
                first, inside = ([place for place in places if place in ahead] for places in (first, inside))
        own = [place for place in first if after[place].is_static and after[place].lower == self._old]
        target = layer.inputs[1].type.constant
        likely = [] if target is None else np.flatnonzero(target == -1).tolist()
        likely = [place for place in likely if place in first or place in inside]
        if axis not in first:
            likely = [*own, *likely]
        elif axis in own or after[axis] == before[axis]:
            likely = [axis]
        else:
            likely = [*likely, axis]
        return next(iter([*likely, *first, *reversed(inside)]), None)

    def _before_items(self, port: Port) -> int | None:
        """Return the number of times that a tensor's items repeat in its memory; None if it is not known."""
        axis, shape = self._axis(port), self._before[port]
        if axis is None or not all(dim.is_static for dim in shape.dims[:axis]):
            return None
        outer = self._outer.get(port.source, 1) if port.source is not None else 1
        return int(np.prod([dim.lower for dim in shape.dims[:axis]], dtype=np.int64)) * outer

    def _follow_outer(self, layer: Layer) -> None:
        """Record for the outputs of a layer how the items lie within their axis."""
        batched = self._batched(layer)
        for port in layer.outputs:
            axis = self._axis(port)
            if axis is None or not batched:
                continue
            if isinstance(layer.operator, Reshape):
                pre = self._before_items(layer.inputs[0])
                own = self._before_items(port)
                if pre is not None and own:
                    self._outer[port] = max(pre // own, 1)
                continue
            sizes = {int(self._outer.get(p.source, 1)) for p, _ in batched if p.source is not None}
            self._outer[port] = max(sizes, default=1)

    # ----- repairs

    def _prepare_loop(self, layer: Layer) -> None:
        """Give the tensors that a loop hands on to the next iteration all items, if they begin with a constant."""
        wirings = layer.operator.wiring.values() if layer.bodies and layer.operator is not None else ()
        carried = {edge.parameter for wiring in wirings for edge in wiring.back_edges}
        for wiring in wirings:
            for entry in wiring.inputs:
                if entry.parameter not in carried or entry.external < 0 or not self._batched(layer):
                    continue
                port = layer.inputs[entry.external]
                axes = _state_axes(self._before[port], self._old)
                if axes and self._axis(port) is None:
                    self._apply(layer, [(port.index, self._repeated(port, axes[0], *self._batched(layer)[0]))])

    def _repairs(self, layer: Layer) -> Iterator[Repair]:
        """Yield new sources for inputs of a layer that may be pinned to the old number of items."""
        batched = self._batched(layer)
        free = [port for port in layer.inputs if self._axis(port) is None and port.source is not None]
        if not batched:
            if layer in self.states and free:
                yield [(0, self._repeated(free[0], self.states[layer], *self._source))]
            return
        source, axis = batched[0]
        if isinstance(layer.operator, Reshape):
            wanted = self._target_axis(layer)
            if wanted is not None:
                dim = self._before[layer.outputs[0]][wanted]
                size = dim.lower if dim.is_static else None
                yield [(1, self._target(layer, wanted) or self._with_size(layer.inputs[1], wanted, size, source, axis))]
            return
        values = [port for port in free if layer.operator is not None and type(layer.operator).reads_value(port.index)]
        for port in values:
            known = port.type.constant
            if known is None or known.ndim != 1 or known.dtype.kind not in "iu":
                continue
            for place, size in sorted(enumerate(known.tolist()), key=lambda item: item[0] != axis):
                if size > 0 and size % self._old == 0:
                    yield [(port.index, self._with_size(port, place, size, source, axis))]
        data = [(port, own) for port in free[:MOST_INPUTS] if (own := self._item_axis(port, axis)) is not None]
        for count in range(1, len(data) + 1):
            for chosen in combinations(data, count):
                yield [(port.index, self._repeated(port, own, source, axis)) for port, own in chosen]

    def _item_axis(self, port: Port, likely: int) -> int | None:
        """Return the axis of a constant that may hold items; None if there is none."""
        shape = self._before.get(port, port.shape)
        if shape.rank is None:
            return None
        own = [a for a, dim in enumerate(shape) if dim.is_static and dim.lower and dim.lower % self._old == 0]
        exact = [a for a in own if shape[a].lower == self._old]
        return next((a for a in (likely, 0) if a in exact), None) if exact else next(iter(own), None)

    def _target(self, layer: Layer, wanted: int) -> Layer | None:
        """Return the Const for the target of a Reshape in which 0 or -1 stands for the items; None if none can."""
        op, known = layer.operator, layer.inputs[1].type.constant
        before, after = self._before[layer.inputs[0]], self._before[layer.outputs[0]]
        assert isinstance(op, Reshape)
        if known is None:
            return None
        target = known.copy()
        others = [place for place in np.flatnonzero(known == -1).tolist() if place != wanted]
        if op.special_zero and wanted == self._axis(layer.inputs[0]) and before[wanted] == after[wanted]:
            target[wanted] = 0
        elif all(after[place].is_static for place in others):
            for place in others:
                target[place] = after[place].lower
            target[wanted] = -1
        else:
            return None
        graph = owner_of(layer)
        name = free_name(f"{layer.name}/target", {other.name for other in graph.layers})
        new = new_constant(graph.next_id, name, operator := Const.of(target, layer.inputs[1].element_type))
        set_outputs(new, (operator.infer(),))
        return new

    def _with_size(self, port: Port, place: int, size: int | None, source: Port, axis: int) -> Layer:
        """Return the layer that puts a size in place of one element: ``size`` for each old number of items, by default
        the one that the items have in the source."""
        k = self._before[source][axis].lower
        found = _size(source, axis, k if size is None else size, k)
        if str(port.element_type) != "i64":
            found = create_layer("Convert", [found], {"destination_type": port.element_type}, version="opset1")
        return create_layer("ScatterUpdate", [read_by(port), np.array([place]), found, np.array(0)], version="opset3")

    def _repeated(self, port: Port, axis: int, source: Port, own: int) -> Layer:
        """Return the layer that repeats the data of one item for each item."""
        size, data = self._before.get(port, port.shape)[axis].lower, [read_by(port)]
        if self._old > 1:
            ends = [np.array([value]) for value in (0, size // self._old, 1, axis)]
            data = [create_layer("Slice", [*data, *ends], version="opset8").outputs[0]]
        ones = np.ones(port.shape.rank or 0, np.int64)
        count = _size(source, own, 1, self._before[source][own].lower // self._old)
        repeats = create_layer("ScatterUpdate", [ones, np.array([axis]), count, np.array(0)], version="opset3")
        return create_layer("Tile", [*data, repeats], version="opset1")

    def _apply(self, layer: Layer, repair: Repair) -> None:
        for index, new in repair:
            port = layer.inputs[index]
            if isinstance(new.operator, Const):
                graph, old = owner_of(layer), read_by(port)
                graph.add_layer(new)
                graph.connect(new.outputs[0], port)
                remove_unread(graph, [old])
            else:
                insert_before(self._model, port, new, ())
        self._changed[layer] = None


def _size(source: Port, axis: int, factor: int, divisor: int) -> Layer:
    """Return the layer that computes ``factor / divisor`` times a size of a tensor, as a list of one number."""
    shape = create_layer("ShapeOf", [read_by(source)], version="opset3")
    found = create_layer("Gather", [shape, np.array([axis]), np.array(0)], version="opset8")
    if factor != divisor and divisor != 1:
        found = create_layer("Divide", [found, np.array([divisor])], version="opset1")
    if factor != divisor and factor != 1:
        found = create_layer("Multiply", [found, np.array([factor])], version="opset1")
    return found
