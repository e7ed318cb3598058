"""Compare two models: layers, connections, inputs and outputs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from numbers import Real
from typing import Any, Literal

from ovir.analysis import changes
from ovir.analysis.changes import Change, DiffOptions
from ovir.analysis.matching import NONE, GraphSignatures, Interner, Matching, slicing_of
from ovir.analysis.tensor_comparison import Tolerance
from ovir.core.html import html_table
from ovir.core.json_fields import json_fields
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import first_quoted, plural
from ovir.graph.layers import Layer
from ovir.ir.source import Source
from ovir.model import Model, opened
from ovir.system.progress import counted, stage
from ovir.system.python_runtime import without_garbage_collection

Status = Literal["added", "removed", "replaced", "moved", "changed", "renumbered"]

STATUSES: tuple[Status, ...] = ("added", "removed", "replaced", "moved", "changed", "renumbered")


@dataclass(frozen=True)
class LayerDiff:
    """One layer that differs between two models."""

    status: Status
    """``added``, ``removed``, ``replaced``, ``moved``, ``changed`` or ``renumbered``."""
    a: Layer | None
    """The layer in the first model; None if it was added."""
    b: Layer | None
    """The layer in the second model; None if it was removed."""
    changes: tuple[Change, ...] = ()
    """The differences between ``a`` and ``b``."""
    sources: tuple[str, ...] = ()
    """For a layer that was added, removed or moved: the keys of the layers that it reads, except constants."""
    readers: tuple[str, ...] = ()
    """The same for the layers that read it."""
    group: int | None = None
    """The number of the moved subgraph to which the layer belongs."""

    @property
    def layer(self) -> Layer:
        """Return the layer of the second model, or the layer of the first if the second has none."""
        layer = self.b or self.a
        assert layer is not None
        return layer

    @property
    def place(self) -> str:
        """Return in words between which layers it is."""
        before, after = first_quoted(self.sources, _SHOWN), first_quoted(self.readers, _SHOWN)
        if before and after:
            return f"between {before} and {after}"
        return f"behind {before}" if before else f"read by {after}" if after else ""

    def __str__(self) -> str:
        return "; ".join(map(str, self.changes)) or self.place

    def to_dict(self) -> dict[str, Any]:
        """Return the layer as a dictionary for JSON."""
        entry: dict[str, Any] = {"status": self.status, "a": _described(self.a), "b": _described(self.b)}
        if self.status in ("added", "removed", "moved"):
            entry |= {"sources": list(self.sources), "readers": list(self.readers)}
        if self.group is not None:
            entry["group"] = self.group
        return {**entry, "changes": [change.to_dict() for change in self.changes]}


@dataclass(frozen=True)
class Affected:
    """An output of another element type or shape, because of the inputs of its layer."""

    a: Layer
    """The layer in the first model."""
    b: Layer
    """The layer in the second model, which is equal to it."""
    output: int
    """The position of the output."""
    old: str
    """Its element type and shape in the first model, such as ``f32[1,?]``."""
    new: str
    """Its element type and shape in the second model."""

    def to_dict(self) -> dict[str, Any]:
        """Return the output as a dictionary for JSON."""
        return json_fields(self, "a=a.key", "b=b.key", "output", "old", "new")


@dataclass
class Diff:
    """The differences of two models. It is true if there are any: ``if ovir.diff(a, b): ...``."""

    a: Model
    """The first model."""
    b: Model
    """The second model."""
    model: list[Change] = field(default_factory=list)
    """The differences that no layer has: name of the model, order of inputs and outputs, rt_info."""
    layers: list[LayerDiff] = field(default_factory=list)
    """All layers that differ, in the order of the second model; layers of bodies follow the layer that has the body."""
    affected: list[Affected] = field(default_factory=list)
    """Consequences: outputs whose type differs although their layers are equal."""
    notes: list[str] = field(default_factory=list)
    """Facts that do not count as differences, but are worth knowing."""

    def __bool__(self) -> bool:
        return not self.is_equal

    @property
    def is_equal(self) -> bool:
        """Return whether the models are equal in meaning."""
        return not (self.model or self.layers or self.affected)

    @property
    def added(self) -> list[LayerDiff]:
        """Return the layers that only the second model has."""
        return self.of("added")

    @property
    def removed(self) -> list[LayerDiff]:
        """Return the layers that only the first model has."""
        return self.of("removed")

    @property
    def replaced(self) -> list[LayerDiff]:
        """Return the layers in whose place the second model has another operation."""
        return self.of("replaced")

    @property
    def moved(self) -> list[LayerDiff]:
        """Return the layers that are between other layers than before."""
        return self.of("moved")

    @property
    def changed(self) -> list[LayerDiff]:
        """Return the layers of which something else differs."""
        return self.of("changed")

    @property
    def renumbered(self) -> list[LayerDiff]:
        """Return the layers of which only the automatic names differ, such as ``Constant_12``."""
        return self.of("renumbered")

    def of(self, status: Status) -> list[LayerDiff]:
        """Return the layers of one status."""
        return [entry for entry in self.layers if entry.status == status]

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of layers by status, and how many outputs are affected."""
        counts = Counter(entry.status for entry in self.layers)
        return {**{status: counts[status] for status in STATUSES}, "affected": len(self.affected)}

    def __str__(self) -> str:
        if self.is_equal:
            return "the models are equal"
        counts = self.counts
        affected = counts.pop("affected")
        parts = [f"{plural(count, 'layer')} {status}" for status, count in counts.items() if count]
        if self.model:
            parts.insert(0, f"{plural(len(self.model), 'difference')} outside of the layers")
        if affected:
            parts.append(f"{plural(affected, 'output')} of another type as a consequence")
        return f"the models differ: {', '.join(parts)}"

    def __repr__(self) -> str:
        return f"<Diff: {self}>"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, ...]] = [("model", "", "", str(change)) for change in self.model]
        rows += [(entry.status, entry.layer.key, entry.layer.type, str(entry)) for entry in self.layers]
        rows += [("affected", x.b.key, x.b.type, f"output {x.output}: {x.old} -> {x.new}") for x in self.affected]
        return html_table(str(self), ("", "layer", "operation", "what differs"), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        sides = {"a": json_fields(self.a, "path", "name"), "b": json_fields(self.b, "path", "name")}
        return {"equal": self.is_equal, **sides, **json_fields(self, "counts", "model", "layers", "affected", "notes")}


def _described(layer: Layer | None) -> dict[str, Any] | None:
    return None if layer is None else json_fields(layer, "key", "id", "type", "version", "line")


_SHOWN = 3  # layers


def diff(
    a: Model | Source, b: Model | Source, *, ignore_names: bool = False, rtol: float = 0.0, atol: float = 0.0
) -> Diff:
    """Return the differences between two models. The result is true if there are any.

    Args:
        a: A Model, or what ``read_model`` takes.
        b: The other one.
        ignore_names: Whether other names of layers, tensors and the model alone are not a difference.
        rtol: The relative tolerance of numbers in constants: x of ``a`` and y of ``b`` count as equal if ``|x - y| <=
            atol + rtol * |y|``. By default only equal ones do, and NaN equals NaN.
        atol: The absolute tolerance.

    Raises InputError for an invalid tolerance, and what ``read_model`` raises for files that cannot be read.
    """
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not isinstance(value, Real) or not value >= 0:
            raise InputError.usage(f"{name} must be a number that is not negative, got {value!r}")
    first, second = opened(a), opened(b)
    options = DiffOptions(ignore_names, Tolerance(rtol, atol))
    with without_garbage_collection():
        interner = Interner()
        result = Diff(first, second)
        with stage("matching layers"):
            comparison = _Comparison(
                GraphSignatures(first, interner), GraphSignatures(second, interner), result, options, count()
            )
        result.layers = comparison.entries()
        result.model = list(_model_changes(comparison.matching, options))
        result.notes = list(_notes(first, second))
    return result


def _model_changes(matching: Matching, options: DiffOptions) -> Iterator[Change]:
    a, b = matching.a.model, matching.b.model
    if a.name != b.name and not options.ignore_names:
        yield Change("name", old=a.name, new=b.name)
    for what, first, second in (("inputs", a.inputs, b.inputs), ("outputs", a.outputs, b.outputs)):
        place = {port.layer: k for k, port in enumerate(second)}
        kept = [port.layer for port in first if _partner(matching, port.layer) is not None]
        order = [place[partner] for layer in kept if (partner := _partner(matching, layer)) in place]
        if order != sorted(order):
            yield Change(f"order of {what}", old=[p.any_name for p in first], new=[p.any_name for p in second])
    yield from changes.model_rt_info_changes(a.rt_info, b.rt_info)


def _partner(matching: Matching, layer: Layer) -> Layer | None:
    i = matching.a.number.get(layer, NONE)
    j = matching.to_b[i] if i != NONE else NONE
    return matching.b.layers[j] if j != NONE else None


def _notes(a: Model, b: Model) -> Iterator[str]:
    if a.version != b.version:
        yield f"the IR versions are {a.version} and {b.version}"
    for name, model in (("a", a), ("b", b)):
        if dead := len(model.dead_layers):
            yield f"{plural(dead, 'dead layer')} of {name} not compared: nothing depends on them"


# --------------------------------------------------------------------------- layers


class _Comparison:
    """Compares the layers of two models, or of two bodies."""

    def __init__(
        self, a: GraphSignatures, b: GraphSignatures, result: Diff, options: DiffOptions, groups: count[int]
    ) -> None:
        self.a, self.b = a, b
        self.result = result
        self.options = options
        self.groups = groups
        self.matching = Matching(a, b)
        self.connections = Connections(self.matching)
        self._bodies: dict[tuple[int, int, str], _Comparison] = {}

    def entries(self) -> list[LayerDiff]:
        """Return the layers that differ, in the order of the second model, and note which outputs are affected."""
        placed: list[tuple[float, list[LayerDiff]]] = []
        moved = zip(self.connections.moved, self.groups, strict=False)
        groups = {pair: number for pairs, number in moved for pair in pairs}
        position = -1.0  # a removed layer is listed after the matched layer before it
        for i, j in enumerate(counted("comparing layers", self.matching.to_b)):
            if j == NONE:
                if i not in self.connections.absorbed_a:
                    removed = LayerDiff("removed", self.a.layers[i], None, (), *self._around(self.a, i))
                    placed.append((position + 0.5, [removed]))
                continue
            position = float(j)
            if not (i in self.connections.absorbed_a and j in self.connections.absorbed_b):
                placed.append((position, list(self._pair(i, j, groups.get((i, j))))))
        for j, i in enumerate(self.matching.to_a):
            if i == NONE and j not in self.connections.absorbed_b:
                added = LayerDiff("added", None, self.b.layers[j], (), *self._around(self.b, j))
                placed.append((float(j), [added]))
        placed.sort(key=lambda item: item[0])
        return [entry for _, entries in placed for entry in entries]

    # ----- matched layers

    def _pair(self, i: int, j: int, group: int | None) -> Iterator[LayerDiff]:
        first, second = self.a.layers[i], self.b.layers[j]
        if (i, j) in self.connections.restored:
            differences = list(changes.restored_changes(first, second, self.options))
            chains = self._decompression(self.a, i), self._decompression(self.b, j)
            labels = changes.restored_label_changes(*chains, self.options)
            types: list[Change] = []
        else:
            differences = list(changes.own_changes(first, second))
            differences += changes.data_changes(first, second, self.options)
            differences += self._wiring_changes(i, j)
            for changed in self.connections.changed_inputs(i, j):
                old, new = _source_text(self.a, changed.old), _source_text(self.b, changed.new)
                differences.append(Change("input", str(changed.index), old, new))
            types = list(changes.type_changes(first, second))
            versions = self.a.model.version, self.b.model.version
            labels = changes.label_changes(first, second, versions, self.options)
        if differences:
            differences += types
        else:
            affected = (Affected(first, second, int(x.name), x.old, x.new) for x in types)
            self.result.affected += affected
        differences += labels
        if group is not None:
            sources, readers = self._around(self.b, j)
            yield LayerDiff("moved", first, second, tuple(differences), sources, readers, group)
        elif differences:
            is_replaced = (i, j) in self.connections.replaced and first.type != second.type
            status: Status = "replaced" if is_replaced else "changed"
            if all(map(changes.is_renumbering, differences)):
                status = "renumbered"
            yield LayerDiff(status, first, second, tuple(differences))
        for key in self._common_bodies(i, j):
            yield from self._body(i, j, key).entries()

    def _decompression(self, side: GraphSignatures, start: int) -> list[Layer]:
        """Return the layers that decompress a constant, the one that is read first."""
        absorbed = self.connections.absorbed_a if side is self.a else self.connections.absorbed_b
        chain, pending = [start], [start]
        while pending:
            sources = {source for source, _ in side.sources[pending.pop()]} & absorbed
            pending += sources
            chain += sorted(sources)
        return [side.layers[k] for k in dict.fromkeys(chain)]

    # ----- layers of one model

    def _around(self, side: GraphSignatures, i: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the keys of the layers that a layer reads, without constants, and of those that read it."""
        sources = dict.fromkeys(s for s, _ in side.sources[i] if s != NONE and not side.is_constant[s])
        readers = dict.fromkeys(reader for reader, *_ in side.readers[i])
        return tuple(side.layers[s].key for s in sources), tuple(side.layers[r].key for r in readers)

    # ----- bodies

    def _common_bodies(self, i: int, j: int) -> list[str]:
        return [key for key in self.a.bodies[i] if key in self.b.bodies[j]]

    def _body(self, i: int, j: int, key: str) -> _Comparison:
        """Return the comparison of the bodies of a matched layer."""
        place = i, j, key
        if place not in self._bodies:
            sides = self.a.bodies[i][key], self.b.bodies[j][key]
            self._bodies[place] = _Comparison(*sides, self.result, self.options, self.groups)
        return self._bodies[place]

    def _wiring_changes(self, i: int, j: int) -> Iterator[Change]:
        """Yield the changes of port maps and back edges; bodies may list their parameters in another order."""
        for key in self._common_bodies(i, j):
            matching = self._body(i, j, key).matching
            names = {layer: name for name, layer in enumerate(matching.a.layers)}
            partner = {layer: matching.to_a[k] for k, layer in enumerate(matching.b.layers)}
            old = _wiring(self.a.layers[i], key, names)
            new = _wiring(self.b.layers[j], key, partner)
            for what in old:
                gone, come = old[what].keys() - new[what].keys(), new[what].keys() - old[what].keys()
                if gone or come:
                    texts = sorted(old[what][item] for item in gone), sorted(new[what][item] for item in come)
                    yield Change(what, key, *texts)


Wiring = dict[str, dict[tuple[object, ...], str]]


def _wiring(layer: Layer, key: str, names: dict[Layer, int]) -> Wiring:
    """Return the port map and the back edges of a body, by the numbers in ``names`` that they join, in words."""
    result: Wiring = {"port map": {}, "back edges": {}}
    wiring = layer.operator.wiring.get(key) if layer.operator is not None else None
    if wiring is None:
        return result
    body = layer.bodies[key]
    parameters, results = ([port.layer for port in ports] for ports in (body.inputs, body.outputs))
    for entry in wiring.inputs:
        end = parameters[entry.parameter]
        text = f"input {entry.external} to '{end.name}'{_slicing_text(entry.axis, slicing_of(entry))}"
        result["port map"]["in", entry.external, names.get(end, NONE), *slicing_of(entry)] = text
    for out in wiring.outputs:
        end = results[out.result]
        text = f"'{end.name}' to output {out.external}{_slicing_text(out.axis, slicing_of(out))}"
        result["port map"]["out", out.external, names.get(end, NONE), *slicing_of(out)] = text
    for edge in wiring.back_edges:
        source, target = results[edge.result], parameters[edge.parameter]
        item = names.get(source, NONE), names.get(target, NONE)
        result["back edges"][item] = f"'{source.name}' to '{target.name}'"
    return result


def _slicing_text(axis: int | None, slicing: Sequence[object]) -> str:
    purpose, *rest = slicing
    parts = [str(purpose)] if purpose else []
    if axis is not None:
        names = ("axis", "start", "end", "stride", "part_size")
        parts += [f"{name} {value}" for name, value in zip(names, rest, strict=True)]
    return f" ({', '.join(parts)})" if parts else ""


def _source_text(side: GraphSignatures, source: LayerOutput | None) -> str | None:
    if source is None:
        return None
    layer = side.layers[source[0]]
    return layer.key if len(layer.outputs) < 2 else f"{layer.key}:{source[1]}"


# --------------------------------------------------------------------------- connections

LayerOutput = tuple[int, int]
"""The number of a layer and the index of its output."""


@dataclass(frozen=True)
class ChangedInput:
    """An input that reads something else; None stands for an input that one of the layers does not have."""

    index: int
    old: LayerOutput | None
    new: LayerOutput | None


class Connections:
    """The connections that differ between two models whose layers are matched."""

    def __init__(self, matching: Matching) -> None:
        self.matching = matching
        self.a, self.b = matching.a, matching.b
        self._moved_a: set[int] = set()
        self._moved_b: set[int] = set()
        self.replaced = set(self._replacements())
        """Pairs of a removed layer and one that was added in its place; they are matched from now on."""
        for i, j in self.replaced:
            matching.to_b[i], matching.to_a[j] = j, i
        self.restored = {(i, j) for i, j in matching.pairs() if self._is_restored(i, j)}
        """Pairs of constants of which at least one is compressed in another way."""
        self.absorbed_a, self.absorbed_b = self._absorbed(self.a, 0), self._absorbed(self.b, 1)
        """The layers that decompress these."""
        self.moved: list[list[tuple[int, int]]] = []
        """The pairs of each subgraph that has moved."""
        if any(self.changed_inputs(i, j) for i, j in matching.pairs()):
            self._find_moved()

    def changed_inputs(self, i: int, j: int) -> list[ChangedInput]:
        """Return the inputs of a pair that read something else, for which no other entry is an explanation."""
        if (i, j) in self.restored:
            return []
        old, new = self.a.sources[i], self.b.sources[j]
        if (i, j) in self.replaced:
            old, new = old[: len(new)], new[: len(old)]
        changed = []
        for k in range(max(len(old), len(new))):
            first = old[k] if k < len(old) and old[k][0] != NONE else None
            second = new[k] if k < len(new) and new[k][0] != NONE else None
            if not self._is_kept(first, second):
                changed.append(ChangedInput(k, first, second))
        return changed

    def is_gone(self, i: int) -> bool:
        """Return whether a layer of the first model is no longer in its place."""
        return self.matching.to_b[i] == NONE or i in self._moved_a

    def is_new(self, j: int) -> bool:
        """Return whether a layer of the second model was not in its place before."""
        return self.matching.to_a[j] == NONE or j in self._moved_b

    def _is_kept(self, old: LayerOutput | None, new: LayerOutput | None) -> bool:
        """Return whether an input reads the same as before, or something that the entry of another layer explains."""
        if old is None or new is None:
            return (old is None or self.is_gone(old[0])) and (new is None or self.is_new(new[0]))
        if self.matching.to_b[old[0]] == new[0]:
            return old[1] == new[1]
        if not self.is_new(new[0]):  # layers that are gone may have led from one to the other
            return self.is_gone(old[0]) and self.matching.to_a[new[0]] in _ends(self.a, old[0], self.is_gone)
        if self.matching.to_a[new[0]] == NONE or self.is_gone(old[0]):
            return True
        # It reads a layer that has moved; is this one between it and its old source?
        return self.matching.to_b[old[0]] in _ends(self.b, new[0], self.is_new)

    # ----- replaced layers

    def _replacements(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of unmatched layers between the same layers: same source and same reader, or the same name."""
        to_b, to_a = self.matching.to_b, self.matching.to_a
        taken: set[int] = set()
        for i, partner in enumerate(to_b):
            if partner != NONE:
                continue
            votes: Counter[int] = Counter()
            sources = {to_b[source] for source, _ in self.a.sources[i] if source != NONE} - {NONE}
            for reader, k, _ in self.a.readers[i]:
                if to_b[reader] == NONE or k >= len(self.b.sources[to_b[reader]]):
                    continue
                j = self.b.sources[to_b[reader]][k][0]
                if j != NONE and to_a[j] == NONE and self._is_replacement(i, j, sources):
                    votes[j] += 1
            best = next((j for j, _ in votes.most_common() if j not in taken), None)
            if best is not None:
                taken.add(best)
                yield i, best

    def _is_replacement(self, i: int, j: int, sources: set[int]) -> bool:
        near = {source for source, _ in self.b.sources[j]}
        if not self.a.sources[i] or not near:
            return not self.a.sources[i] and not near
        same_name = self.a.layers[i].name == self.b.layers[j].name
        return bool(near & sources) or same_name

    # ----- constants that are compressed in another way

    def _is_restored(self, i: int, j: int) -> bool:
        if not (self.a.is_weight[i] and self.b.is_weight[j]):
            return False
        if self.a.layers[i].type == self.b.layers[j].type == "Const":
            return False
        if self.a.layers[i].outputs[0].shape != self.b.layers[j].outputs[0].shape:
            return False
        return _chain(self.a, i) != _chain(self.b, j)

    def _absorbed(self, side: GraphSignatures, position: int) -> set[int]:
        """Return the layers that only serve constants which are compared as a whole."""
        roots = {pair[position] for pair in self.restored}
        absorbed: set[int] = set()
        pending = list(roots)
        while pending:
            for source, _ in side.sources[pending.pop()]:
                if source not in absorbed and all(r in absorbed or r in roots for r, *_ in side.readers[source]):
                    absorbed.add(source)
                    pending.append(source)
        return absorbed

    # ----- moved subgraphs

    def _find_moved(self) -> None:
        """Find the subgraphs that read something else and are read by others than before, the smallest ones first."""
        import networkx as nx  # importing it takes longer than most comparisons

        graph: nx.Graph[int] = nx.Graph()
        leaving: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for i, j in self.matching.pairs():
            graph.add_node(i)
            changed = {item.index for item in self.changed_inputs(i, j)}
            for k, (source, _) in enumerate(self.a.sources[i]):
                if source == NONE or self.a.is_constant[source]:
                    continue
                if k in changed:
                    leaving[source].append((i, j))
                else:
                    ends = _ends(self.a, source, self.is_gone)
                    graph.add_edges_from((end, i) for end in ends if not self.a.is_constant[end])
        parts = sorted(nx.connected_components(graph), key=lambda part: (len(part), min(part)))
        for part in parts[:-1]:
            pairs = [(i, self.matching.to_b[i]) for i in sorted(part)]
            if all(self.a.is_constant[i] for i in part):
                continue
            enters = any(x.old is None or x.old[0] not in part for pair in pairs for x in self.changed_inputs(*pair))
            leaves = any(self._still_changed(i, other) for i in part for other in leaving[i] if other[0] not in part)
            if enters and leaves:
                self._moved_a.update(i for i, _ in pairs)
                self._moved_b.update(j for _, j in pairs)
                self.moved.append(pairs)
        self.moved.sort()

    def _still_changed(self, source: int, reader: tuple[int, int]) -> bool:
        return any(item.old is not None and item.old[0] == source for item in self.changed_inputs(*reader))


def _ends(side: GraphSignatures, start: int, is_open: Callable[[int], bool]) -> set[int]:
    """Return the first layers from ``start`` backwards that are not ``is_open``."""
    ends: set[int] = set()
    seen, pending = {start}, [start]
    while pending:
        layer = pending.pop()
        if not is_open(layer):
            ends.add(layer)
            continue
        for source, _ in side.sources[layer]:
            if source != NONE and source not in seen:
                seen.add(source)
                pending.append(source)
    return ends


def _chain(side: GraphSignatures, root: int) -> list[str]:
    """Return the types of the layers that decompress a constant, in a fixed order."""
    types: list[str] = []
    pending = [root]
    while pending and len(types) < _LONGEST:
        layer = pending.pop()
        types.append(side.layers[layer].type)
        pending.extend(source for source, _ in side.sources[layer])
    return types


_LONGEST = 100  # layers
