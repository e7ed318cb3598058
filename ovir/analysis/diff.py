"""``ovir.diff``: what is different between two models.

Models are equal if they mean the same: ids, the order of layers in the file, the place of constants in the weights, the
spelling of opsets and of defaults do not count, nor do dead layers. docs/command-line.md lists all of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from numbers import Real
from typing import Any

from ovir.analysis.constant_differences import Tolerance
from ovir.analysis.diff_connections import ChangedInput, Connections, Source
from ovir.analysis.diff_layers import (
    Options,
    data_changes,
    label_changes,
    model_rt_info_changes,
    own_changes,
    restored_changes,
    restored_label_changes,
    type_changes,
)
from ovir.analysis.diff_result import Affected, Change, Diff, LayerDiff
from ovir.analysis.matching import NONE, Matching, matching_of
from ovir.analysis.signatures import Interner, Side, slicing_of
from ovir.core.interpreter import without_garbage_collection
from ovir.core.progress import counted, stage
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import plural
from ovir.graph.layers import Layer
from ovir.ir.source import Source as File
from ovir.model import Model, read_model

Pair = tuple[int, int]


def diff(a: Model | File, b: Model | File, *, ignore_names: bool = False, rtol: float = 0.0, atol: float = 0.0) -> Diff:
    """Return what is different between two models, each given as a Model or as ``read_model`` takes it.

    The result is true if there are differences. With ``ignore_names``, other names of layers, tensors and the model
    alone are no difference. Numbers x of ``a`` and y of ``b`` in constants count as equal if ``|x - y| <= atol + rtol *
    |y|``; by default only equal ones do, and NaN equals NaN.

    Raises InputError for an invalid tolerance, and what ``read_model`` raises for files that cannot be read.
    """
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not isinstance(value, Real) or not value >= 0:
            raise InputError.usage(f"{name} must be a number that is not negative, got {value!r}")
    first, second = (model if isinstance(model, Model) else read_model(model) for model in (a, b))
    options = Options(ignore_names, Tolerance(rtol, atol))
    with without_garbage_collection():
        interner = Interner()
        result = Diff(first, second)
        with stage("matching layers"):
            comparison = _Comparison(Side(first, interner), Side(second, interner), result, options, count())
        result.layers = comparison.entries()
        result.model = list(_model_changes(comparison.matching, options))
        result.notes = list(_notes(first, second))
    return result


def _model_changes(matching: Matching, options: Options) -> Iterator[Change]:
    a, b = matching.a.model, matching.b.model
    if a.name != b.name and not options.ignore_names:
        yield Change("name", old=a.name, new=b.name)
    for what, first, second in (("inputs", a.inputs, b.inputs), ("outputs", a.outputs, b.outputs)):
        place = {port.layer: k for k, port in enumerate(second)}
        kept = [port.layer for port in first if _partner(matching, port.layer) is not None]
        order = [place[partner] for layer in kept if (partner := _partner(matching, layer)) in place]
        if order != sorted(order):
            yield Change(f"order of {what}", old=[p.any_name for p in first], new=[p.any_name for p in second])
    yield from model_rt_info_changes(a.rt_info, b.rt_info)


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


class _Comparison:
    """Compares the layers of two models, or of two bodies."""

    def __init__(self, a: Side, b: Side, result: Diff, options: Options, groups: count[int]) -> None:
        self.a, self.b = a, b
        self.result = result
        self.options = options
        self.groups = groups
        self.matching = matching_of(a, b)
        self.connections = Connections(self.matching)
        self._bodies: dict[tuple[int, int, str], _Comparison] = {}

    def entries(self) -> list[LayerDiff]:
        """Return the layers that differ, in the order of the second model, and note which outputs are affected."""
        found: list[tuple[float, list[LayerDiff]]] = []
        groups = self._groups()
        behind = -1.0  # a removed layer is listed behind the matched layer before it
        for i, j in enumerate(counted("comparing layers", self.matching.to_b)):
            if j == NONE:
                if i not in self.connections.absorbed_a:
                    found.append((behind + 0.5, [self._lone(self.a, i, is_removed=True)]))
                continue
            behind = float(j)
            if not (i in self.connections.absorbed_a and j in self.connections.absorbed_b):
                found.append((behind, list(self._pair(i, j, groups.get((i, j))))))
        for j, i in enumerate(self.matching.to_a):
            if i == NONE and j not in self.connections.absorbed_b:
                found.append((float(j), [self._lone(self.b, j, is_removed=False)]))
        found.sort(key=lambda item: item[0])
        return [entry for _, entries in found for entry in entries]

    def _groups(self) -> dict[Pair, int]:
        """Return for each pair of a moved subgraph the number of the subgraph."""
        return {pair: number for pairs in self.connections.moved for number in [next(self.groups)] for pair in pairs}

    # ----- matched layers

    def _pair(self, i: int, j: int, group: int | None) -> Iterator[LayerDiff]:
        first, second = self.a.layers[i], self.b.layers[j]
        if (i, j) in self.connections.restored:
            changes = list(restored_changes(first, second, self.options))
            chains = self._decompression(self.a, i), self._decompression(self.b, j)
            labels = restored_label_changes(*chains, self.options)
            types: list[Change] = []
        else:
            changes = list(own_changes(first, second))
            changes += data_changes(first, second, self.options)
            changes += self._wiring_changes(i, j)
            changes += map(self._input_change, self.connections.changed_inputs(i, j))
            types = list(type_changes(first, second))
            versions = self.a.model.version, self.b.model.version
            labels = label_changes(first, second, versions, self.options)
        if changes:
            changes += types
        else:
            self._affect(first, second, types)
        changes += labels
        if group is not None:
            sources, readers = self._around(self.b, j)
            yield LayerDiff("moved", first, second, tuple(changes), sources, readers, group)
        elif changes:
            is_replaced = (i, j) in self.connections.replaced and first.type != second.type
            yield LayerDiff("replaced" if is_replaced else "changed", first, second, tuple(changes))
        yield from self._body_entries(i, j)

    def _decompression(self, side: Side, start: int) -> list[Layer]:
        """Return the layers that decompress a constant, the one that is read first."""
        absorbed = self.connections.absorbed_a if side is self.a else self.connections.absorbed_b
        found, pending = [start], [start]
        while pending:
            sources = {source for source, _ in side.sources[pending.pop()]} & absorbed
            pending += sources
            found += sorted(sources)
        return [side.layers[k] for k in dict.fromkeys(found)]

    def _affect(self, a: Layer, b: Layer, types: Iterable[Change]) -> None:
        self.result.affected += [Affected(a, b, int(change.name), change.old, change.new) for change in types]

    def _input_change(self, changed: ChangedInput) -> Change:
        old, new = _source_text(self.a, changed.old), _source_text(self.b, changed.new)
        return Change("input", str(changed.index), old, new)

    # ----- layers of one model

    def _lone(self, side: Side, i: int, *, is_removed: bool) -> LayerDiff:
        layer = side.layers[i]
        around = self._around(side, i)
        if is_removed:
            return LayerDiff("removed", layer, None, (), *around)
        return LayerDiff("added", None, layer, (), *around)

    def _around(self, side: Side, i: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the keys of the layers that a layer reads, without constants, and of those that read it."""
        sources = dict.fromkeys(s for s, _ in side.sources[i] if s >= 0 and not side.is_constant[s])
        readers = dict.fromkeys(reader for reader, *_ in side.readers[i])
        return tuple(side.layers[s].key for s in sources), tuple(side.layers[r].key for r in readers)

    # ----- bodies

    def _body_entries(self, i: int, j: int) -> Iterator[LayerDiff]:
        first, second = self.a.bodies[i], self.b.bodies[j]
        for key in [key for key in first if key in second]:
            yield from self._body(i, j, key).entries()

    def _body(self, i: int, j: int, key: str) -> _Comparison:
        """Return the comparison of the bodies of a matched layer."""
        place = i, j, key
        if place not in self._bodies:
            sides = self.a.bodies[i][key], self.b.bodies[j][key]
            self._bodies[place] = _Comparison(*sides, self.result, self.options, self.groups)
        return self._bodies[place]

    def _wiring_changes(self, i: int, j: int) -> Iterator[Change]:
        """Yield how port maps and back edges differ; bodies may list their parameters in another order."""
        for key in [key for key in self.a.bodies[i] if key in self.b.bodies[j]]:
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
    """Return port map and back edges of a body: what joins which numbers of ``names``, with a text for each."""
    result: Wiring = {"port map": {}, "back edges": {}}
    wiring = layer.operator.wiring.get(key) if layer.operator is not None else None
    if wiring is None:
        return result
    body = layer.bodies[key]
    parameters, results = _ends(body.inputs), _ends(body.outputs)
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


def _ends(ports: Sequence[Any]) -> list[Layer]:
    return [port.layer for port in ports]


def _slicing_text(axis: int | None, slicing: Sequence[object]) -> str:
    purpose, *rest = slicing
    parts = [str(purpose)] if purpose else []
    if axis is not None:
        names = ("axis", "start", "end", "stride", "part_size")
        parts += [f"{name} {value}" for name, value in zip(names, rest, strict=True)]
    return f" ({', '.join(parts)})" if parts else ""


def _source_text(side: Side, source: Source | None) -> str | None:
    if source is None:
        return None
    layer = side.layers[source[0]]
    return layer.key if len(layer.outputs) < 2 else f"{layer.key}:{source[1]}"
