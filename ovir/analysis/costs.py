"""The cost of each layer in one call of a model: multiply-accumulates, parameters, and bytes read and written."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from math import inf, prod
from typing import Any, ClassVar, NamedTuple

from ovir.analysis.input_sizes import fix_shapes
from ovir.core.json_fields import json_fields
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape, ShapeLike, min_dimension
from ovir.core.tables import columns
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import Diagnostics, ModelError, OperatorError
from ovir.diagnostics.wording import size_text
from ovir.graph.constant_layers import all_constant_layers
from ovir.graph.layer_graph import LayerGraph, state_ports
from ovir.graph.layers import Layer, Port
from ovir.inference.engines import BodyInference, ComparingEngine
from ovir.inference.models import infer_for_call
from ovir.model import Model
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import Traits, input_signature
from ovir.ops.control_flow import IterationBase, known_truth
from ovir.ops.infrastructure import Const
from ovir.system.progress import counted

NONE, ONE = Dimension(0), Dimension(1)
MOST_INFERRED = 20_000
"""Layers of bodies that are inferred for single iterations, to count loops whose shapes change from one to the next."""


class Amounts(NamedTuple):
    """The numbers that tell how much a layer, or a part of a model, computes and moves; each is an interval."""

    macs: Dimension = NONE
    """Multiply-accumulates."""
    operations: Dimension = NONE
    """Elements that are computed by layers without multiply-accumulates, such as activations."""
    read: Dimension = NONE
    """Bytes of the tensors that are read; weights as the file stores them."""
    written: Dimension = NONE
    """Bytes of the tensors that are written."""
    runs: Dimension = NONE
    """How often the layer runs."""

    def plus(self, other: Amounts) -> Amounts:
        """Return the amounts of two parts that both run."""
        return Amounts(*map(Dimension.__add__, self, other))

    def times(self, count: Dimension) -> Amounts:
        """Return the amounts of a part that runs several times."""
        return Amounts(*(number * count for number in self))

    def either(self, other: Amounts) -> Amounts:
        """Return the amounts of two parts of which one runs."""
        return Amounts(*map(Dimension.union, self, other))


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a layer, or of several, in one call of a model. A layer of a body counts as often as it runs."""

    amounts: Amounts
    """The numbers of what is computed and moved."""
    parameters: int = 0
    """Elements of the constants that the layer reads, directly or through layers that are computed from constants, such
    as those of decompression. A constant that an earlier layer reads, too, is left out."""
    weight_bytes: int = 0
    """Bytes of these constants in the weights file."""
    cost_columns: ClassVar = columns(
        "MACs: count; operations: count; parameters: count; weights: bytes; moved: bytes; "
        "operations for each byte: real"
    )
    """The columns of a table of costs."""

    @property
    def macs(self) -> int | None:
        """Return the multiply-accumulates; the most if they depend on values, None if they have no bound."""
        return self.amounts.macs.upper

    @property
    def runs(self) -> int | None:
        """Return how often the layer runs; the most if that depends on values."""
        return self.amounts.runs.upper

    @property
    def written(self) -> int | None:
        """Return the bytes of the results."""
        return self.amounts.written.upper

    @property
    def operations(self) -> int | None:
        """Return the operations of layers without multiply-accumulates."""
        return self.amounts.operations.upper

    @property
    def bytes(self) -> int | None:
        """Return the bytes that are read and written."""
        return (self.amounts.read + self.amounts.written).upper

    @property
    def bits(self) -> float | None:
        """Return the bits that the file holds for each parameter; None if there are no parameters."""
        return 8 * self.weight_bytes / self.parameters if self.parameters else None

    @property
    def intensity(self) -> float | None:
        """Return the arithmetic intensity, in operations for each byte; a multiply-accumulate is two operations."""
        if self.bytes and self.macs is not None and self.operations is not None:
            return (2 * self.macs + self.operations) / self.bytes
        return None

    @property
    def cells(self) -> tuple[float | None, ...]:
        """Return the cells of a table under ``cost_columns``."""
        numbers = (self.macs, self.operations, self.parameters, self.weight_bytes, self.bytes, self.intensity)
        return tuple(number or None for number in numbers)

    def numbers(self) -> dict[str, Any]:
        """Return the numbers for JSON and CSV; those that are not known are None."""
        names = "runs", "macs", "macs_least=amounts.macs.lower", "operations", "parameters", "weight_bytes"
        sizes = "bits_per_parameter=bits", "bytes_read=amounts.read.upper", "bytes_written=written", "intensity"
        return json_fields(self, *names, *sizes)


@dataclass(frozen=True, kw_only=True)
class LayerCost(Cost):
    """The cost of one layer."""

    layer: Layer
    """The layer."""
    once: Amounts
    """The amounts of one run of it."""
    shared: Mapping[str, str] = field(default_factory=dict)
    """The constants that count for another layer, which reads them as well, each with the name of that layer."""

    @property
    def name(self) -> str:
        """Return the name of the layer, after the names of the layers around it."""
        return self.layer.scope + self.layer.name or "(no name)"

    def to_dict(self) -> dict[str, Any]:
        """Return the row for JSON and CSV."""
        return {**json_fields(self, "layer.id", "name", "layer.type"), **self.numbers(), "shared": dict(self.shared)}


@dataclass(frozen=True, kw_only=True)
class GroupCost(Cost):
    """The cost of several layers together."""

    name: str
    layers: int

    def to_dict(self) -> dict[str, Any]:
        """Return the row for JSON and CSV."""
        return {"name": self.name, "layers": self.layers, **self.numbers()}


@dataclass(frozen=True)
class ModelCosts:
    """The costs of the layers of a model, bodies included, in their order, and their sum."""

    layers: list[LayerCost]
    """Layers that compute something or read constants; those that are computed from constants alone are left out."""
    total: Amounts
    """The sum. Of an If, one branch counts: the numbers are intervals unless a constant decides which."""

    @property
    def parameters(self) -> int:
        """Return the number of elements of all constants; one that several layers read counts once."""
        return sum(row.parameters for row in self.layers)

    def to_dict(self) -> dict[str, int | None]:
        """Return the sums that tell how large a model is."""
        size = sum(row.weight_bytes for row in self.layers)
        return {"parameters": self.parameters, "weight_bytes": size, "macs": self.total.macs.upper}


def changes_of(before: ModelCosts, after: ModelCosts, *, with_weights: bool = True) -> str:
    """Return the sums that differ, such as ``parameters 1,000 -> 800``; nothing if none does, or none is known.

    ``with_weights`` says whether the bytes of the weights are among them.
    """
    texts, latest = [], after.to_dict()
    for name, old in before.to_dict().items():
        new = latest[name]
        certain = name != "macs" or (before.total.macs.is_static and after.total.macs.is_static)
        if name == "weight_bytes" and not with_weights:
            continue
        if old is not None and new is not None and old != new and certain:
            title, text = _TEXTS[name]
            texts.append(f"{title} {text(old)} -> {text(new)}")
    return ", ".join(texts)


_TEXTS: dict[str, tuple[str, Callable[[int], str]]] = {
    "parameters": ("parameters", "{:,}".format),
    "weight_bytes": ("weights", size_text),
    "macs": ("MACs", "{:,}".format),
}


def together(name: str, rows: Sequence[Cost]) -> GroupCost:
    """Return the cost of several layers together."""
    amounts = Amounts()
    for row in rows:
        amounts = amounts.plus(row.amounts)
    parameters, size = sum(row.parameters for row in rows), sum(row.weight_bytes for row in rows)
    return GroupCost(name=name, layers=len(rows), amounts=amounts, parameters=parameters, weight_bytes=size)


def by_type(rows: Iterable[LayerCost]) -> list[GroupCost]:
    """Return the costs summed by operation, in the order in which the operations come first."""
    groups: dict[str, list[LayerCost]] = defaultdict(list)
    for row in rows:
        groups[row.layer.type].append(row)
    return [together(name, group) for name, group in groups.items()]


def by_prefix(rows: Sequence[LayerCost], measure: Callable[[Cost], float], most: int = 20) -> list[GroupCost]:
    """Return the costs summed by the beginnings of names, such as ``encoder.layer.0``.

    Parts end at ``/`` and ``.``. The group of the largest measure is divided by the next part of its names until there
    are ``most`` groups; the layers that have no further part are a group of their own, such as ``encoder.*``.
    """
    groups: list[_Prefix] = [_Prefix("", 0, rows)]
    while len(groups) < most:
        parts = {number: divided for number, group in enumerate(groups) if (divided := _divided(group))}
        if not parts:
            break
        largest = max(parts, key=lambda number: measure(together("", groups[number].rows)))
        groups[largest : largest + 1] = parts[largest]
    return [together(group.text, group.rows) for group in groups]


class _Prefix(NamedTuple):
    text: str
    length: int
    """The number of parts."""
    rows: Sequence[LayerCost]


def _divided(group: _Prefix) -> list[_Prefix]:
    """Return the groups by the next part of the names, none if no name has one."""
    groups: dict[str, list[LayerCost]] = defaultdict(list)
    beginnings = {"*": f"{group.text}.*" if group.text else "*"}
    names = [(row, list(re.finditer(r"[^/.]+", row.name))[group.length :]) for row in group.rows]
    divided = {parts[0][0] for _, parts in names if len(parts) > 1}
    for row, parts in names:
        part = parts[0][0] if parts and parts[0][0] in divided else "*"
        groups[part].append(row)
        if part not in beginnings:
            beginnings[part] = row.name[: parts[0].end()]
    if groups.keys() == {"*"}:
        return []
    return [_Prefix(beginnings[part], group.length + 1, rows) for part, rows in groups.items()]


def costs_of(model: LayerGraph, sized: LayerGraph | None = None) -> ModelCosts:
    """Return the costs of an inferred model, or of its copy ``sized`` of which ``sized_call`` has fixed the sizes."""
    sized = sized or model
    counting = _Counting()
    amounts, total = counting.graph(sized)
    read = _constants_read(sized, counting.constants)
    rows: list[LayerCost] = []
    owners: dict[object, str] = {}
    for layer, own in counted("summing up", list(zip(sized.walk(), model.walk(), strict=True))):
        if layer not in amounts and layer not in read:
            continue
        new: list[Layer] = []
        shared: dict[str, str] = {}
        for key, const in {_identity(const): const for const in read.get(layer, ())}.items():
            if key in owners:
                shared[const.scope + const.name] = owners[key]
            else:
                owners[key] = layer.scope + layer.name
                new.append(const)
        weights = {"parameters": sum(map(_elements, new)), "weight_bytes": sum(map(stored_bytes, new))}
        cost, once = amounts.get(layer, Amounts()), counting.once.get(layer, Amounts())
        rows.append(LayerCost(layer=own, amounts=cost, once=once, shared=shared, **weights))
    return ModelCosts(rows, total)


def macs_of(layer: Layer) -> Dimension | None:
    """Return the multiply-accumulates of one run of a layer; None for an operation that is not counted in them."""
    op = layer.operator
    if op is None or type(op).multiply_accumulates is Traits.multiply_accumulates:
        return None
    is_complete = len(layer.inputs) >= input_signature(type(op)).required and layer.outputs
    if not is_complete or any(port.source is None for port in layer.inputs):
        return UNKNOWN
    return op.multiply_accumulates([port.type for port in layer.inputs], layer.outputs[0].shape)


def stored_bytes(layer: Layer) -> int:
    """Return the number of bytes that a Const takes in its files; 0 for any other layer."""
    const = layer.operator
    if not isinstance(const, Const):
        return 0
    return const.size or len(const.value.encode()) or const.element_type.stored_bytes(_elements(layer))


# --------------------------------------------------------------------------- the call that is counted


@dataclass(frozen=True)
class StateCost:
    """The value of a variable between two calls."""

    name: str
    """The name of the variable."""
    read: TensorType
    """The type of the value that the counted call reads."""
    assigned: TensorType
    """The type of the value that it leaves."""

    @property
    def before(self) -> PartialShape:
        """Return the shape that the counted call reads."""
        return self.read.shape

    @property
    def after(self) -> PartialShape:
        """Return the shape that it leaves."""
        return self.assigned.shape

    @property
    def axis(self) -> int | None:
        """Return the axis along which the value grows from call to call; None if it does not grow."""
        if self.before.rank is None or self.before.rank != self.after.rank:
            return None
        pairs = zip(self.before, self.after, strict=True)
        return next((axis for axis, (old, new) in enumerate(pairs) if old.lower < new.lower), None)

    @property
    def bytes(self) -> int | None:
        """Return the bytes of the value after the call."""
        return tensor_bytes(self.assigned).upper

    @property
    def step_bytes(self) -> int | None:
        """Return the bytes that each position along the axis adds, such as a token; 0 if the value does not grow."""
        if self.axis is None:
            return 0
        return tensor_bytes(self.assigned.refined(self.assigned.element_type, self.after.with_dim(self.axis, 1))).upper

    def to_dict(self) -> dict[str, Any]:
        """Return the row for JSON."""
        head = json_fields(self, "name", "type=read.element_type", "shape=before", "shape_after=after")
        return head | json_fields(self, "axis", "bytes", "bytes_per_step=step_bytes")


class Call(NamedTuple):
    """One call of a model, with the sizes for which it is inferred."""

    model: Model
    sizes: dict[str, str]
    """The shapes that were chosen for inputs, by name."""
    states: list[StateCost]


def costs_with(model: Model, shapes: Sequence[ShapeLike]) -> ModelCosts:
    """Return the costs of the first call with inputs of these shapes."""
    if _is_static(model):
        return costs_of(model)
    sized = model.clone()
    infer_for_call(sized, shapes, dict.fromkeys(state_ports(model.walk())))
    return costs_of(model, sized)


def _is_static(model: LayerGraph) -> bool:
    return all(port.shape.is_static for layer in model.walk() for port in layer.outputs)


def sized_call(model: Model, state_length: int | None = None) -> Call:
    """Return a call of a model at the sizes that a run without given inputs has, variables at their initial values.

    With ``state_length``, the variables that grow from call to call have this length along their axis; masks that have
    to be as long as they are follow. The model itself does not change. Raises ModelError if no sizes are found.
    """
    variables = state_ports(model.walk())
    if state_length is None and _is_static(model):
        return call_of(model)
    sized = model.clone()
    fix_shapes(sized)
    open_axes = [
        (i, axis)
        for i, port in enumerate(model.inputs)
        if port.shape.rank is not None
        for axis, dim in enumerate(port.shape)
        if dim.is_dynamic
    ]
    held = {name: port.shape.to_tuple() if port.shape.is_static else None for name, port in variables.items()}
    _infer_call(sized, held, open_axes, 0)
    states = _states(sized)
    if state_length is not None and any(state.axis is not None for state in states):
        for state in states:
            longer = state.before if state.axis is None else state.before.with_dim(state.axis, state_length)
            held[state.name] = longer.to_tuple()
        _infer_call(sized, held, open_axes, state_length)
        whole = max(state.after[state.axis].lower for state in _states(sized) if state.axis is not None)
        _lengthen_masks(sized, held, [(i, axis) for i, axis in open_axes if axis], whole)
        states = _states(sized)
    pairs = zip(model.inputs, sized.inputs, strict=True)
    return Call(sized, {own.any_name: str(port.shape) for own, port in pairs if own.shape != port.shape}, states)


def _lengthen_masks(
    model: Model, held: Mapping[str, tuple[int, ...] | None], axes: Sequence[tuple[int, int]], length: int
) -> None:
    """Give axes the length that the variables have after the call where no result depends on it, as in masks."""

    def results() -> list[str]:
        ends = (layer for layer in model.layers if layer.type in ("Result", "Assign"))
        return [str(port.shape) for layer in ends for port in layer.inputs]

    wanted = results()
    for i, axis in axes:
        shapes = [port.shape for port in model.inputs]
        longer = [*shapes[:i], shapes[i].with_dim(axis, length), *shapes[i + 1 :]]
        try:
            infer_for_call(model, longer, held)
            fits = results() == wanted
        except ModelError:
            fits = False
        if not fits:
            infer_for_call(model, shapes, held)


def call_of(model: Model) -> Call:
    """Return a call of a model as it is inferred; numbers that depend on unknown sizes are not known then."""
    return Call(model, {}, _states(model))


def _infer_call(
    model: Model, held: Mapping[str, tuple[int, ...] | None], open_axes: Sequence[tuple[int, int]], length: int
) -> None:
    """Infer a call in which variables hold values of shapes.

    If the inputs do not fit these, one or two of the open axes, as those of masks, become as long as the variables and
    the axis of an input together.
    """
    given = [port.shape for port in model.inputs]
    sizes = sorted({dim.lower for shape in given for dim in shape.slice(1)})
    axes = sorted(open_axes, key=lambda place: place[1] == 0)  # those of batches come last
    trials = [(longer, size) for count in (1, 2) for longer in combinations(axes, count) for size in sizes]
    failure = None
    for longer, size in [((), 0), *trials]:
        shapes = list(given)
        for i, axis in longer:
            shapes[i] = shapes[i].with_dim(axis, size + length)
        try:
            return infer_for_call(model, shapes, held)
        except ModelError as error:
            failure = failure or error
    assert failure is not None
    raise failure


def _states(model: LayerGraph) -> list[StateCost]:
    read: dict[str, TensorType] = {}
    assigned: dict[str, TensorType] = {}
    for layer in model.walk():
        name = str(layer.attributes.get("variable_id", ""))
        if layer.type == "ReadValue" and layer.outputs:
            read[name] = layer.outputs[0].type
        elif layer.type == "Assign" and layer.inputs:
            assigned[name] = layer.inputs[0].type
    names = {**read, **assigned}
    return [StateCost(name, read.get(name) or assigned[name], assigned.get(name) or read[name]) for name in names]


# --------------------------------------------------------------------------- constants


Constants = Mapping[Layer, Mapping[Layer, None]]
"""For each layer that is computed from constants alone, the Consts that it is computed from."""


def _constants(graph: LayerGraph) -> Constants:
    constants: dict[Layer, dict[Layer, None]] = {}
    constant = all_constant_layers(graph)
    for layer in graph.layers:
        if layer in constant:
            constants[layer] = {layer: None} if layer.type == "Const" else {}
            for port in layer.inputs:
                if port.source is not None:
                    constants[layer].update(constants[port.source.layer])
    return constants


def _constants_read(model: LayerGraph, constants: Callable[[LayerGraph], Constants]) -> dict[Layer, list[Layer]]:
    """Return for each layer that is not computed from constants alone the Consts that it reads through such layers; a
    Const that no layer reads stands for itself."""
    read: dict[Layer, list[Layer]] = defaultdict(list)
    for graph in model.graphs():
        consts = constants(graph)
        unread = {layer: None for layer in consts if layer.type == "Const"}
        for layer in graph.layers:
            for port in () if layer in consts else layer.inputs:
                if port.source is not None and port.source.layer in consts:
                    found = consts[port.source.layer]
                    for const in found:
                        unread.pop(const, None)
                    for reader in _readers(port):
                        read[reader] += found
        read.update({layer: [layer] for layer in unread})
    return dict(read)


def _readers(port: Port) -> Iterator[Layer]:
    """Yield the layers that read an input: of a layer with bodies, the ones in them that get it in each iteration."""
    wirings = {} if port.layer.operator is None else port.layer.operator.wiring
    inner: list[Port] = []
    for name, body in port.layer.bodies.items() if wirings else ():
        carried = {edge.parameter for edge in wirings[name].back_edges}
        for item in wirings[name].inputs:
            if item.external == port.index and item.axis is None and item.parameter not in carried:
                inner += body.inputs[item.parameter].readers
    if inner:
        for reader in inner:
            yield from _readers(reader)
    else:
        yield port.layer


def _identity(const: Layer) -> object:
    """Return what two Consts of the same bytes of one file share."""
    op = const.operator
    return (const.file, op.offset, op.size) if isinstance(op, Const) and op.size else const


def _elements(const: Layer) -> int:
    return prod(const.operator.shape) if isinstance(const.operator, Const) else 0


# --------------------------------------------------------------------------- what layers compute and move


class _Counting:
    """Counts the layers of a model as often as they run."""

    def __init__(self) -> None:
        self._left = MOST_INFERRED
        self.once: dict[Layer, Amounts] = {}
        """The amounts of one run of each layer; of the last one if they change."""
        self.constants = cache(_constants)

    def graph(self, model: LayerGraph) -> tuple[dict[Layer, Amounts], Amounts]:
        """Return the amounts of one run of a model or body, by layer and in total."""
        amounts_of: dict[Layer, Amounts] = {}
        total, constant = Amounts(), self.constants(model)
        for layer in model.layers:
            if layer in constant or layer.type in _ENDS:
                continue
            if layer.bodies and layer.operator is not None:
                inner, amounts = self._bodies(layer)
                amounts_of.update(inner)
            else:
                amounts_of[layer] = self.once[layer] = amounts = _amounts(layer, constant)
            total = total.plus(amounts)
        return amounts_of, total

    def _bodies(self, layer: Layer) -> tuple[dict[Layer, Amounts], Amounts]:
        op = layer.operator
        if isinstance(op, IterationBase):
            return self._loop(layer, op)
        truth = known_truth(layer.inputs[0].type) if layer.inputs else None
        inner: dict[Layer, Amounts] = {}
        totals = []
        for name, body in layer.bodies.items():
            amounts_of, total = self.graph(body)
            taken = Dimension(0, 1) if truth is None else Dimension(int(truth == (name == "then")))
            inner.update({layer: amounts.times(taken) for layer, amounts in amounts_of.items()})
            if taken.upper:
                totals.append(total)
        return inner, totals[0] if len(totals) == 1 else totals[0].either(totals[1])

    def _loop(self, layer: Layer, op: IterationBase) -> tuple[dict[Layer, Amounts], Amounts]:
        body = layer.bodies["body"]
        inputs = [port.type for port in layer.inputs]
        try:
            count = op.iterations(inputs, [port.type for port in body.outputs])
        except OperatorError:  # inference has reported it
            count = UNKNOWN
        if count.upper is not None and count.upper >= _ENDLESS:
            count = Dimension(count.lower, None)
        amounts_of, total = self.graph(body)
        changes = not all(number.is_static for number in total)
        if not (changes and count.is_static and count.length * len(body.layers) <= self._left):
            return {inner: amounts.times(count) for inner, amounts in amounts_of.items()}, total.times(count)
        self._left -= count.length * len(body.layers)
        infer = BodyInference(body, ComparingEngine(Diagnostics(), body.version))
        given = op.first_types(infer, inputs)
        sums, total = dict.fromkeys(amounts_of, Amounts()), Amounts()
        for _ in range(count.length):
            results = infer(given)
            amounts_of, once = self.graph(body)
            sums = {inner: amounts.plus(amounts_of[inner]) for inner, amounts in sums.items()}
            total = total.plus(once)
            for edge in op.wiring["body"].back_edges:
                given[edge.parameter] = results[edge.result]
        op.infer_body(infer, inputs)  # the ports keep types that hold in every iteration
        return sums, total


_ENDS = ("Parameter", "Result")
_ENDLESS = 1 << 31
"""Exporters write such a trip count for loops that only their condition ends."""


def _amounts(layer: Layer, constant: Constants) -> Amounts:
    """Return the amounts of one run of a layer without bodies."""
    op, macs = layer.operator, macs_of(layer)
    if op is None:
        return Amounts(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, ONE)
    if op.rearranges:
        return Amounts(runs=ONE)
    read, written = NONE, sum((tensor_bytes(port.type) for port in layer.outputs), NONE)
    for port in layer.inputs:
        if port.source is not None and port.source.layer in constant:
            read = read + sum(map(stored_bytes, constant[port.source.layer]))
        else:
            read = read + tensor_bytes(port.type)
    if op.moves_elements:
        read = min_dimension(read, written)  # of a table, only the elements that are picked
    operations = NONE if macs is not None or op.moves_elements or op.views else _operations(op, layer)
    return Amounts(macs or NONE, operations, read, written, ONE)


def _operations(op: Operator, layer: Layer) -> Dimension:
    """Return the elements that a layer combines: those of its result, each of as many as a window reads, or those of
    its largest input if these are more."""
    sizes = [port.shape.size() for port in (*layer.inputs, *layer.outputs) if port.shape.rank is not None]
    most = max(sizes, key=lambda size: (size.upper is None, size.upper, size.lower), default=UNKNOWN)
    if not layer.outputs or layer.outputs[0].shape.rank is None:
        return most
    combined = op.reads([port.type for port in layer.inputs], layer.outputs[0].shape)
    return most if combined <= 1 or combined == inf else layer.outputs[0].shape.size() * int(combined)


def tensor_bytes(tensor: TensorType) -> Dimension:
    """Return the bytes of a tensor, with elements of less than a byte packed; strings have no known size."""
    if tensor.shape.rank is None or tensor.element_type.is_dynamic or tensor.element_type.kind == "string":
        return UNKNOWN
    return (tensor.shape.size() * tensor.element_type.bits).ceil_div(8)
