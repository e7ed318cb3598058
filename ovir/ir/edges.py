"""Reads the edges of a <net> or body and joins the ports that they name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lxml import etree

from ovir.diagnostics.codes import EDGE_FROM_NOWHERE, EDGE_PORT, EDGE_TO_NOWHERE, FED_TWICE, UNFED_INPUT, Severity
from ovir.diagnostics.diagnostic import Place
from ovir.diagnostics.errors import Diagnostics
from ovir.graph.connections import Edge
from ovir.graph.layers import Layer, Port, join, separate
from ovir.ir.elements import ElementReader, Ids, line_of


@dataclass(eq=False)
class StrayEdge:
    """An edge that leads to the wrong layer, or to a layer that does not exist."""

    origin: tuple[int, int]
    """The ids of the layer and port where the edge begins."""
    source: Port | None = None
    dangling: Edge | None = None
    """The edge itself if it is dangling and has not been reported yet."""


def _declare_the_same(one: Port, other: Port) -> bool:
    return one.declared_element_type == other.declared_element_type and one.declared_shape == other.declared_shape


@dataclass
class Gaps:
    """The layers and edges that could not be read, which has been reported. The consequences are not reported."""

    layers: set[int | None] = field(default_factory=set)
    """Ids of layers; None stands for a layer whose id is unknown."""
    places: list[int] = field(default_factory=list)
    """For each layer that could not be read, the id of the last layer before it that could; -1 if there is none."""
    ports: set[int] = field(default_factory=set)
    """Ids of layers with a port that could not be read."""
    inputs: set[tuple[int, int | None]] = field(default_factory=set)
    """Ids of a layer and its input port to which a rejected edge leads; None stands for an unknown port."""
    absent: set[int] = field(default_factory=set)
    """Ids of layers that edges name and that do not exist; each is reported once."""
    no_ports: set[tuple[int, str, int]] = field(default_factory=set)
    """Ports that edges name and that do not exist, as the id of a layer, ``input`` or ``output``, and the id of the
    port; each is reported once."""
    mixed: set[int] = field(default_factory=set)
    """Ids of layers whose edges may be assigned to the wrong input ports."""
    duplicated: set[int] = field(default_factory=set)
    """Ids that two layers have, so that the edges of both lead to the same one."""
    stray: list[StrayEdge] = field(default_factory=list)
    """Stray edges. Each of them explains an input that has no edge."""

    def name_layers(self, edges: Iterable[Edge], known: set[int]) -> None:
        """Give layers without ids the numbers that edges expect; writers number layers in the order of the file."""
        numbers: list[int] = []
        for before in self.places:
            numbers.append(max([before, *numbers[-1:]]) + 1)
        if None in self.layers and numbers and known.isdisjoint(numbers):
            named = {number for edge in edges for number in (edge.from_layer, edge.to_layer)}
            if named.issuperset(numbers):
                self.layers.discard(None)
                self.layers.update(numbers)

    def has_layer(self, number: int) -> bool:
        """Return whether a missing layer with this id has been reported."""
        return number in self.layers or None in self.layers or number in self.absent


class EdgeReader(ElementReader):
    """Reads the edges of one <net> or body."""

    def __init__(self, file: str | None, diagnostics: Diagnostics, gaps: Gaps, ids: Ids) -> None:
        super().__init__(file, diagnostics)
        self.gaps = gaps
        self._ids = ids

    # ----- the edges of the file

    def parse(self, groups: Iterable[etree._Element], layers: Sequence[Layer]) -> list[Edge]:
        """Read the edges in the order of the file, except those whose numbers cannot be read."""
        edges: list[Edge] = []
        ids = self._ids
        ids_by_name: dict[str | None, list[int]] = {}
        for item in (item for group in groups for item in group[:]):
            if item.tag != "edge" and self.read_as(item, "an <edge>", ("edge",), ("edge",)) is None:
                continue
            from_layer, from_port = ids[item.get("from-layer")], ids[item.get("from-port")]
            to_layer, to_port = ids[item.get("to-layer")], ids[item.get("to-port")]
            if from_layer is None or from_port is None or to_layer is None or to_port is None:
                if not ids_by_name:
                    for layer in layers:
                        ids_by_name.setdefault(layer.name, []).append(layer.id)
                edge = self._edge(item, ids_by_name)
                if edge is not None:
                    edges.append(edge)
            else:
                edges.append(Edge(from_layer, from_port, to_layer, to_port, line_of(item)))
        return edges

    def _edge(self, item: etree._Element, ids_by_name: Mapping[str | None, Sequence[int]]) -> Edge | None:
        """Read an edge whose numbers are not plain digits.

        If a number cannot be read, return None and add the inputs that have no edge because of this to the gaps.
        """
        numbers: list[int] = []
        for key in ("to-layer", "to-port", "from-layer", "from-port"):
            diagnostics = Diagnostics()
            number = ElementReader(self.file, diagnostics).unsigned(item, key)
            named = ids_by_name.get(item.get(key), ()) if key.endswith("-layer") else ()
            hint = f"edges use ids; {item.get(key)} is layer {named[0]}" if len(named) == 1 else None
            self.diagnostics.extend(replace(problem, hint=hint or problem.hint) for problem in diagnostics)
            if number is None:
                break
            numbers.append(number)
        if len(numbers) == 4:
            return Edge(numbers[2], numbers[3], numbers[0], numbers[1], line_of(item))
        if numbers:
            self.gaps.inputs.add((numbers[0], numbers[1] if len(numbers) > 1 else None))
        else:
            silent = ElementReader(self.file, Diagnostics())
            from_layer, from_port = (silent.unsigned(item, key) for key in ("from-layer", "from-port"))
            origin = -1 if from_layer is None else from_layer, -1 if from_port is None else from_port
            self.gaps.stray.append(StrayEdge(origin))
        return None

    # ----- the ports that they join

    def connect(self, edges: list[Edge], layers: Mapping[int, Layer]) -> None:
        """Join the ports that edges name, and report edges and ports for which this is impossible."""
        gaps = self.gaps
        known: dict[tuple[int, bool], dict[int, Port]] = {}

        def find(number: int, port: int, is_output: bool) -> Port | None:
            layer = layers.get(number)
            if layer is None:
                return None
            ports = layer.outputs if is_output else layer.inputs
            place = port - len(layer.inputs) if is_output else port  # nearly all writers number ports in this way
            if 0 <= place < len(ports) and ports[place].id == port and number not in gaps.ports:
                return ports[place]
            if (number, is_output) not in known:
                # Reversed, so that the first of two ports with the same id is found.
                known[number, is_output] = {p.id: p for p in reversed(ports)}
            return known[number, is_output].get(port)

        for stray in gaps.stray:
            stray.source = find(*stray.origin, True)
        twice: list[tuple[Edge, Port, Port]] = []
        for edge in edges:
            from_layer, from_port, to_layer, to_port, _ = edge
            source, target = find(from_layer, from_port, True), find(to_layer, to_port, False)
            if source is None or target is None:
                self._report_unconnected(edge, source, target, layers)
            elif target.source is not None:
                twice.append((edge, source, target))
            else:
                join(source, target, edge.line)
        if twice:
            self._report_second_edges(twice, edges)
        for number in gaps.mixed:
            for port in layers[number].inputs:
                separate(port)
                gaps.inputs.add((number, port.id))
        self._report_unfed(layers)

    def _report_second_edges(self, twice: Sequence[tuple[Edge, Port, Port]], edges: list[Edge]) -> None:
        """Report second edges into a port. If another port of the layer has no edge, both faults become one diagnostic.

        The wrong one of the two is the edge whose source declares another type than the port, otherwise the second.
        """
        gaps = self.gaps
        times = Counter(target for _, _, target in twice)
        fed: dict[int, set[int]] = {}
        unfed_of: dict[int, list[int]] = {}
        starts = Counter((edge.from_layer, edge.from_port) for edge in edges)
        for edge in edges:
            fed.setdefault(edge.to_layer, set()).add(edge.to_port)
        for edge, source, target in twice:
            layer = target.layer
            if layer.id in gaps.duplicated or layer.id in gaps.ports or target not in times:
                continue
            count = times.pop(target)  # one diagnostic is enough, however many edges lead there
            assert target.source is not None
            if layer.id not in unfed_of:
                unfed_of[layer.id] = [port.id for port in layer.inputs if port.id not in fed[layer.id]]
            unfed = unfed_of[layer.id]
            wrong, other, hint = edge, target.source, None
            if unfed:
                hint = f"no edge leads to input port {unfed[0]}: perhaps to-port of one of them should be {unfed[0]}"
                gaps.inputs.add((layer.id, target.id))
                if layer.id not in gaps.mixed:
                    gaps.inputs.update((layer.id, number) for number in unfed)
                gaps.mixed.add(layer.id)
            else:
                if _declare_the_same(source, target) and not _declare_the_same(target.source, target):
                    other = source
                    source = target.source
                    wrong = Edge(source.layer.id, source.id, layer.id, target.id, target.edge_line)
                    separate(target)
                    join(other, target, edge.line)
                origin = wrong.from_layer, wrong.from_port
                if starts[origin] == 1:  # no other edge begins there, so another input may lack this one
                    gaps.stray.append(StrayEdge(origin, source))
            message = f"a second edge into port {target.id}; the other comes from {other.layer.title}"
            if count > 1:
                message += f"; {count - 1:,} more {'follows' if count == 2 else 'follow'}"
            self.diagnostics.report(FED_TWICE, message, layer.at(wrong.line), hint, port=target.id)

    def _report_unconnected(
        self, edge: Edge, source: Port | None, target: Port | None, layers: Mapping[int, Layer]
    ) -> None:
        """Report why an edge joins nothing, unless the cause has been reported."""
        gaps = self.gaps
        from_layer, to_layer = layers.get(edge.from_layer), layers.get(edge.to_layer)
        if to_layer is None:  # no input lacks this edge
            if not gaps.has_layer(edge.to_layer):
                gaps.stray.append(StrayEdge((edge.from_layer, edge.from_port), source, edge))
            return
        gaps.inputs.add((edge.to_layer, target.id if target is not None else None))
        if from_layer is None:
            if not gaps.has_layer(edge.from_layer):
                message = f"the edge leads from layer {edge.from_layer}, which does not exist"
                self.diagnostics.report(EDGE_FROM_NOWHERE, message, to_layer.at(edge.line))
                gaps.absent.add(edge.from_layer)
            return
        for kind, number, layer, ports, port in (
            ("output", edge.from_port, from_layer, from_layer.outputs, source),
            ("input", edge.to_port, to_layer, to_layer.inputs, target),
        ):
            if port is None and layer.id not in gaps.ports and layer.id not in gaps.duplicated:
                if (layer.id, kind, number) in gaps.no_ports:
                    continue
                gaps.no_ports.add((layer.id, kind, number))
                first = ", ".join(str(port.id) for port in ports[:_MOST_LISTED])
                more = f", and {len(ports) - _MOST_LISTED} more" if len(ports) > _MOST_LISTED else ""
                message = f"the edge names {kind} port {number}, but the {kind} ports of the layer are [{first}{more}]"
                self.diagnostics.report(EDGE_PORT, message, layer.at(edge.line))
                if kind == "input":
                    gaps.stray.append(StrayEdge((edge.from_layer, edge.from_port), source))

    def _report_unfed(self, layers: Mapping[int, Layer]) -> None:
        """Report inputs without an edge, and dangling edges; a pair of these is reported as one fault."""
        gaps = self.gaps
        unfed = [
            port
            for layer in layers.values()
            for port in layer.inputs
            if port.source is None and layer.id not in gaps.ports
            if gaps.inputs.isdisjoint(((layer.id, port.id), (layer.id, None)))  # it has not been reported why
        ]
        for stray in gaps.stray[:_MAX_STRAY]:
            start = stray.origin[0]
            missing = [port for port in unfed if stray.source is None or _declare_the_same(stray.source, port)]
            if not missing:
                continue
            nearest = min(missing, key=lambda port: abs(port.layer.id - start))
            unfed.remove(nearest)
            if stray.dangling is not None:
                hint = f"no edge leads to input port {nearest.id} of {nearest.layer.title}: perhaps this edge should"
                self._report_dangling(stray.dangling, hint, Severity.ERROR)
                stray.dangling = None
        for port in unfed:
            self.diagnostics.report(UNFED_INPUT, f"no edge leads to input port {port.id}", port.place, port=port.id)
        for layer in layers.values():
            if layer.type == "Result" and not layer.inputs and layer.id not in gaps.ports:
                self.diagnostics.report(UNFED_INPUT, "the Result has no input port", layer.place)
                layer.operator = None  # inference would report a consequence of the missing port
        for edge in [stray.dangling for stray in gaps.stray if stray.dangling is not None]:
            if edge.to_layer not in gaps.absent:
                gaps.absent.add(edge.to_layer)
                self._report_dangling(edge)

    def _report_dangling(self, edge: Edge, hint: str | None = None, severity: Severity | None = None) -> None:
        consequence = "" if severity else "; it is ignored"
        message = f"the edge leads to layer {edge.to_layer}, which does not exist{consequence}"
        self.diagnostics.report(EDGE_TO_NOWHERE, message, Place(self.file, edge.line), hint, severity=severity)


_MOST_LISTED = 20  # ids of ports in a message

_MAX_STRAY = 100
"""The number of stray edges that are matched with inputs without an edge. A file with more has another fault."""
