"""Reads the edges of a <net> or body, and joins the ports of its layers by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lxml import etree

from ovir.diagnostics.codes import EDGE_FROM_NOWHERE, EDGE_PORT, EDGE_TO_NOWHERE, FED_TWICE, UNFED_INPUT, Severity
from ovir.diagnostics.collector import Diagnostics
from ovir.diagnostics.diagnostic import Place
from ovir.graph.connections import Edge
from ovir.graph.layers import Layer, Port, join, separate
from ovir.ir.elements import Ids, line_of, read_as, unsigned


@dataclass(eq=False)
class Astray:
    """An edge that leads to the wrong layer, or to none."""

    origin: tuple[int, int]
    """The ids of the layer and port that it comes from."""
    source: Port | None = None
    to_nowhere: Edge | None = None
    """The edge, where nothing has been told of it yet."""

    def may_lead_to(self, port: Port) -> bool:
        """Whether what is declared of both ends agrees."""
        return self.source is None or _state_the_same(self.source, port)


def _state_the_same(one: Port, other: Port) -> bool:
    return one.declared_element_type == other.declared_element_type and one.declared_shape == other.declared_shape


@dataclass
class Lost:
    """What could not be read, and has been told. What only follows from that is not told."""

    layers: set[int | None] = field(default_factory=set)
    """Ids of layers; None stands for a layer whose id is unknown."""
    places: list[int] = field(default_factory=list)
    """For each layer that could not be read the id of the last before it that could, -1 for none."""
    ports: set[int] = field(default_factory=set)
    """Ids of the layers of which a port could not be read."""
    inputs: set[tuple[int, int | None]] = field(default_factory=set)
    """Ids of layer and input port to which an edge that was refused leads; None stands for an unknown port."""
    absent: set[int] = field(default_factory=set)
    """Ids that edges name and no layer has; each is told once."""
    mixed: set[int] = field(default_factory=set)
    """Ids of layers whose inputs may be fed by other edges than those that name them."""
    doubled: set[int] = field(default_factory=set)
    """Ids that two layers have, so that the edges of both lead to one of them."""
    astray: list[Astray] = field(default_factory=list)
    """Edges that do not lead where they should, each of which explains an input that has none."""

    def name_layers(self, edges: Iterable[Edge], known: set[int]) -> None:
        """Take layers without ids for those that edges name: writers number layers as they stand in the file."""
        numbers: list[int] = []
        for before in self.places:
            numbers.append(max([before, *numbers[-1:]]) + 1)
        if None in self.layers and numbers and known.isdisjoint(numbers):
            named = {number for edge in edges for number in (edge.from_layer, edge.to_layer)}
            if named.issuperset(numbers):
                self.layers.discard(None)
                self.layers.update(numbers)

    def has_layer(self, number: int) -> bool:
        return number in self.layers or None in self.layers or number in self.absent

    def has_input(self, layer: int, port: int) -> bool:
        return (layer, port) in self.inputs or (layer, None) in self.inputs


def parse_edges(
    groups: Iterable[etree._Element],
    layers: Sequence[Layer],
    lost: Lost,
    file: str | None,
    diagnostics: Diagnostics,
) -> list[Edge]:
    """Read the edges as they stand, without those whose numbers cannot be read."""
    edges: list[Edge] = []
    ids = Ids()
    ids_by_name: dict[str | None, list[int]] | None = None
    for item in (item for group in groups for item in group):
        if item.tag != "edge":
            place = Place(file, line_of(item))
            if read_as(item, "an <edge>", ("edge",), ("edge",), place, diagnostics) is None:
                continue
        from_layer, from_port = ids[item.get("from-layer")], ids[item.get("from-port")]
        to_layer, to_port = ids[item.get("to-layer")], ids[item.get("to-port")]
        if from_layer is None or from_port is None or to_layer is None or to_port is None:
            if ids_by_name is None:
                ids_by_name = _ids_by_name(layers)
            edge = _parse_edge(item, ids_by_name, lost, file, diagnostics)
            if edge is not None:
                edges.append(edge)
        else:
            edges.append(Edge(from_layer, from_port, to_layer, to_port, line_of(item)))
    return edges


def _ids_by_name(layers: Iterable[Layer]) -> dict[str | None, list[int]]:
    found: dict[str | None, list[int]] = {}
    for layer in layers:
        found.setdefault(layer.name, []).append(layer.id)
    return found


def _parse_edge(
    item: etree._Element,
    ids_by_name: Mapping[str | None, Sequence[int]],
    lost: Lost,
    file: str | None,
    diagnostics: Diagnostics,
) -> Edge | None:
    """Read an edge whose numbers are not plain digits; where they are none, add to ``lost`` what misses it."""
    numbers: list[int] = []
    for key in ("to-layer", "to-port", "from-layer", "from-port"):
        number = _end(item, key, ids_by_name, file, diagnostics)
        if number is None:
            break
        numbers.append(number)
    if len(numbers) == 4:
        return Edge(numbers[2], numbers[3], numbers[0], numbers[1], line_of(item))
    if numbers:
        lost.inputs.add((numbers[0], numbers[1] if len(numbers) > 1 else None))
    else:
        origin = [unsigned(item, key, Diagnostics(), file) for key in ("from-layer", "from-port")]
        lost.astray.append(Astray((-1 if origin[0] is None else origin[0], -1 if origin[1] is None else origin[1])))
    return None


def _end(
    item: etree._Element,
    key: str,
    ids_by_name: Mapping[str | None, Sequence[int]],
    file: str | None,
    diagnostics: Diagnostics,
) -> int | None:
    """Return the number at one end of an edge; None where it is none, with a hint where it is a layer's name."""
    number = unsigned(item, key, found := Diagnostics(), file)
    named = ids_by_name.get(item.get(key), ()) if key.endswith("-layer") else ()
    hint = f"edges use ids; {item.get(key)} is layer {named[0]}" if len(named) == 1 else None
    diagnostics.extend(replace(problem, hint=hint or problem.hint) for problem in found)
    return number


def connect(
    edges: list[Edge], layers: Mapping[int, Layer], lost: Lost, file: str | None, diagnostics: Diagnostics
) -> None:
    """Join the ports that edges name; what is wrong is added to ``diagnostics``."""
    known: dict[tuple[int, bool], dict[int, Port]] = {}

    def find(number: int, port: int, is_output: bool) -> Port | None:
        layer = layers.get(number)
        if layer is None:
            return None
        ports = layer.outputs if is_output else layer.inputs
        place = port - len(layer.inputs) if is_output else port  # where nearly all writers have it
        if 0 <= place < len(ports) and ports[place].id == port and number not in lost.ports:
            return ports[place]
        if (number, is_output) not in known:
            known[number, is_output] = {p.id: p for p in reversed(ports)}  # of two with one id the first
        return known[number, is_output].get(port)

    for astray in lost.astray:
        astray.source = find(*astray.origin, True)
    twice: list[tuple[Edge, Port, Port]] = []
    for edge in edges:
        from_layer, from_port, to_layer, to_port, _ = edge
        source, target = find(from_layer, from_port, True), find(to_layer, to_port, False)
        if source is None or target is None:
            _explain(edge, source, target, layers, lost, Place(file, edge.line), diagnostics)
        elif target.source is not None:
            twice.append((edge, source, target))
        else:
            join(source, target, edge.line)
    if twice:
        _second_edges(twice, edges, lost, diagnostics)
    for number in lost.mixed:
        for port in layers[number].inputs:
            separate(port)
            lost.inputs.add((number, port.id))
    _unfed(layers, lost, file, diagnostics)


def _second_edges(
    twice: Sequence[tuple[Edge, Port, Port]], edges: list[Edge], lost: Lost, diagnostics: Diagnostics
) -> None:
    """Two edges into one port; where another port of the layer then has none, one fault explains both.

    Of the two that is wrong whose source states something else than the port, or else the second.
    """
    fed: dict[int, set[int]] = {}
    starts = Counter((edge.from_layer, edge.from_port) for edge in edges)
    for edge in edges:
        fed.setdefault(edge.to_layer, set()).add(edge.to_port)
    for edge, source, target in twice:
        layer = target.layer
        if layer.id in lost.doubled | lost.ports:
            continue
        assert target.source is not None
        unfed = [port.id for port in layer.inputs if port.id not in fed[layer.id]]
        wrong, other, hint = edge, target.source, None
        if unfed:
            hint = f"input port {unfed[0]} has none: perhaps to-port is to be {unfed[0]} in one of them"
            lost.inputs.update((layer.id, number) for number in (*unfed, target.id))
            lost.mixed.add(layer.id)
        else:
            if _state_the_same(source, target) and not _state_the_same(target.source, target):
                other = source
                source = target.source
                wrong = Edge(source.layer.id, source.id, layer.id, target.id, target.edge_line)
                separate(target)
                join(other, target, edge.line)
            origin = wrong.from_layer, wrong.from_port
            if starts[origin] == 1:  # nothing else reads its source, which some input may miss
                lost.astray.append(Astray(origin, source))
        message = f"a second edge into port {target.id}; the other comes from {other.layer.title}"
        diagnostics.report(FED_TWICE, message, layer.at(wrong.line), hint, port=target.id)


def _explain(
    edge: Edge,
    source: Port | None,
    target: Port | None,
    layers: Mapping[int, Layer],
    lost: Lost,
    place: Place,
    diagnostics: Diagnostics,
) -> None:
    """Say why an edge joins nothing, unless that has been told."""
    from_layer, to_layer = layers.get(edge.from_layer), layers.get(edge.to_layer)
    if to_layer is None:  # nothing can miss the edge
        if not lost.has_layer(edge.to_layer):
            lost.astray.append(Astray((edge.from_layer, edge.from_port), source, edge))
        return
    lost.inputs.add((edge.to_layer, target.id if target is not None else None))
    if from_layer is None:
        if not lost.has_layer(edge.from_layer):
            message = f"the edge leads from layer {edge.from_layer}, which does not exist"
            diagnostics.report(EDGE_FROM_NOWHERE, message, to_layer.at(edge.line))
            lost.absent.add(edge.from_layer)
        return
    for kind, number, layer, ports, port in (
        ("output", edge.from_port, from_layer, from_layer.outputs, source),
        ("input", edge.to_port, to_layer, to_layer.inputs, target),
    ):
        if port is None and layer.id not in lost.ports and layer.id not in lost.doubled:
            ids = [p.id for p in ports]
            message = f"the edge names {kind} port {number} of {layer.title}, whose {kind} ports are {ids}"
            diagnostics.report(EDGE_PORT, message, layer.at(edge.line))
            if kind == "input":
                lost.astray.append(Astray((edge.from_layer, edge.from_port), source))


def _unfed(layers: Mapping[int, Layer], lost: Lost, file: str | None, diagnostics: Diagnostics) -> None:
    """Tell of inputs without an edge, and of edges that lead nowhere: one of each is one fault."""
    unfed = [
        port
        for layer in layers.values()
        for port in layer.inputs
        if port.source is None and layer.id not in lost.ports and not lost.has_input(layer.id, port.id)
    ]
    for astray in lost.astray[:_MOST_ASTRAY]:
        start = astray.origin[0]
        missing = [port for port in unfed if astray.may_lead_to(port)]
        if not missing:
            continue
        nearest = min(missing, key=lambda port: abs(port.layer.id - start))
        unfed.remove(nearest)
        if astray.to_nowhere is not None:
            hint = f"no edge leads to input port {nearest.id} of {nearest.layer.title}: perhaps this one is to"
            _to_nowhere(astray.to_nowhere, file, diagnostics, hint, Severity.ERROR)
            astray.to_nowhere = None
    for port in unfed:
        diagnostics.report(UNFED_INPUT, f"no edge leads to input port {port.id}", port.place, port=port.id)
    for layer in layers.values():
        if layer.type == "Result" and not layer.inputs and layer.id not in lost.ports:
            diagnostics.report(UNFED_INPUT, "the Result has no input port", layer.place)
            layer.operator = None  # what its inference would tell follows
    for edge in [astray.to_nowhere for astray in lost.astray if astray.to_nowhere is not None]:
        if edge.to_layer not in lost.absent:
            lost.absent.add(edge.to_layer)
            _to_nowhere(edge, file, diagnostics)


_MOST_ASTRAY = 100
"""So many edges are brought together with the inputs that miss them; a file with more is broken in another way."""


def _to_nowhere(
    edge: Edge, file: str | None, diagnostics: Diagnostics, hint: str | None = None, severity: Severity | None = None
) -> None:
    consequence = "" if severity else "; it is ignored"
    message = f"the edge leads to layer {edge.to_layer}, which does not exist{consequence}"
    diagnostics.report(EDGE_TO_NOWHERE, message, Place(file, edge.line), hint, severity=severity)
