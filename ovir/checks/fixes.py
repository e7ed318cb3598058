"""The fixes of diagnostics: what the text of the .xml has to become, found from layers and ports."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import ParamSpec

from lxml import etree

from ovir.diagnostics import codes
from ovir.diagnostics.diagnostic import Diagnostic, Fix, TextEdit
from ovir.editing.layer_edits import feeds_result
from ovir.editing.simplification import joined_names, would_merge_ends
from ovir.editing.transaction import owner_of
from ovir.graph.layers import Layer, Port, agrees, layers_after
from ovir.inference.differences import DIFFERENCES
from ovir.ir.elements import Ids, line_of
from ovir.ir.port_maps import BODY_OPERATIONS
from ovir.ir.reader import Document
from ovir.ir.writing.net import escaped, names_text, precision_text
from ovir.ir.xml_text import XmlText
from ovir.model import Model

DECLARATIONS = (DIFFERENCES | {codes.NO_PRECISION.id}) - {codes.EXCHANGED_INPUTS.id}
"""Diagnostics of ports that are to declare what inference gives."""
_OF_INPUTS = {codes.INPUT_SHAPE.id, codes.INPUT_TYPE.id}


MakeFix = Callable[[], Fix | None]
"""Makes a fix, as soon as it is certain that its diagnostic is not one of many that are summed up."""
P = ParamSpec("P")


def _later(make: Callable[P, Fix | None]) -> Callable[P, MakeFix]:
    """Let a method that makes a fix return a function that does."""
    return lambda *args, **kwargs: partial(make, *args, **kwargs)


class Fixes:
    """Makes the fixes of one file. A fix is None if the text does not show clearly what to change."""

    def __init__(self, document: Document[Model], *, are_wanted: bool) -> None:
        self._text = XmlText(document.data if are_wanted else b"", document.root)
        self._document = document
        self.makers: dict[Diagnostic, MakeFix] = {}
        """Makes the fixes of diagnostics that rules have reported."""

    # ----- what rules ask for

    @_later
    def attributes(self, layers: Iterable[Layer], name: str, text: str, *, is_safe: bool = True) -> Fix | None:
        """Write an attribute of the ``<data>`` of layers."""
        items = [None if (item := self._elements.get(layer)) is None else item.find("data") for layer in layers]
        if not items or None in items:
            return None
        edits = tuple(self._text.attribute(item, name, escaped(text)) for item in items if item is not None)
        return Fix(f'writes {name}="{text}"', edits, is_safe)

    @_later
    def declarations(self, ports: Iterable[Port]) -> Fix | None:
        """Let ports declare the types and shapes that inference gives."""
        edits, types = [], []
        for port in ports:
            if (item := self._port(port)) is None:
                return None
            types.append(f"port {port.id} declares {port.type}")
            declared, inferred, shape = port.declared_element_type, port.element_type, port.shape
            if (declared is not inferred and not inferred.is_dynamic) or (declared is None and port.is_output):
                edits.append(self._text.attribute(item, "precision", precision_text(inferred)))
            sizes = [str(dim.lower) if dim.is_static else "-1" for dim in shape.dims] if shape.rank is not None else []
            edits += self._text.children(item, "dim", sizes)
        return Fix(types[0] if len(types) == 1 else f"{types[0]}, and {len(types) - 1} more", tuple(edits))

    @_later
    def without(self, layer: Layer, source: Port | None = None) -> Fix | None:
        """Leave out a layer, and those that only it reads; what reads its output then reads ``source``."""
        edits: list[TextEdit] = []
        if source is not None:
            old, origin = layer.outputs[0], self._port(source)
            is_named_by_layer = self._document.model.version < 11 and owner_of(layer).holder is None
            if origin is None or would_merge_ends(old, source) or (is_named_by_layer and feeds_result(old)):
                return None
            names = joined_names(old, source)
            if any("\\" in name or not name for name in names):
                return None
            if names != source.own_names:
                edits.append(self._text.attribute(origin, "names", names_text(names)))
            readers = {(reader.layer.id, reader.id) for reader in old.readers}
            for number, edge in self._edges_to(layer, {number for number, _ in readers}):
                if (number, Ids()[edge.get("to-port")]) in readers:
                    edits.append(self._text.attribute(edge, "from-layer", str(source.layer.id)))
                    edits.append(self._text.attribute(edge, "from-port", str(source.id)))
        gone = _only_for(layer, source)
        if any(item not in self._elements for item in gone):
            return None
        edits += [self._text.removed(self._elements[item]) for item in gone]
        edits += [self._text.removed(edge) for _, edge in self._edges_to(layer, {item.id for item in gone})]
        others = f" and {len(gone) - 1} that only it reads" if len(gone) > 1 else ""
        return Fix(f"leaves out the layer{others}", tuple(edits))

    # ----- what has been found before the rules

    def added(self, diagnostics: Iterable[Diagnostic], *, are_inferred: bool) -> Iterator[Diagnostic]:
        """Yield the diagnostics; those of the reader and of inference get their fixes.

        The first one of a port that declares something else than inference gives also fixes the ports that follow it,
        which are not reported. As long as there are errors, inferred types may be wrong, and are written to no port.
        """
        every = [port for layer in self._elements for port in (*layer.inputs, *layer.outputs)]
        ports = {(port.layer.title, port.is_output, port.id): port for port in every}
        following = [port for port in every if not agrees(port, port.type)]
        for fault in diagnostics:
            fix = fault.fix
            if fault.code in DECLARATIONS and are_inferred:
                port = ports.get(
                    (fault.layer or "", fault.code not in _OF_INPUTS, -1 if fault.port is None else fault.port)
                )
                if port is not None:
                    fix = self.declarations(dict.fromkeys((port, *following)))()
                    following = []
            elif fault.code == codes.MISSING_KEY.id:
                fix = self._name(fault)
            elif fault.code == codes.REPEATED_RT_INFO.id:
                fix = self._single_rt_info(fault)
            yield fault if fix is None else replace(fault, fix=fix)

    def _name(self, fault: Diagnostic) -> Fix | None:
        layers = [item for item in self._document.root.iter("layer") if item in self._text]
        taken = {item.get("name") for item in layers}
        for item in layers:
            is_meant = line_of(item) == fault.line and fault.message.startswith(f"<layer> {item.get('id', '')!r} ")
            if item.get("name") is None and is_meant:
                name = f"{item.get('type', 'layer')}_{item.get('id', '')}"
                name += "_" * (name in taken)
                return Fix(f"names the layer '{name}'", (self._text.attribute(item, "name", escaped(name)),))
        return None

    def _single_rt_info(self, fault: Diagnostic) -> Fix | None:
        for item in self._document.root.iter("attribute"):
            if line_of(item) == fault.line and item in self._text:
                key = (item.get("name"), item.get("version"))
                earlier = item.itersiblings(preceding=True)
                first = next((o for o in earlier if (o.get("name"), o.get("version")) == key), None)
                if first is not None:
                    is_equal = etree.tostring(first, with_tail=False) == etree.tostring(item, with_tail=False)
                    return Fix(f"leaves out the second '{key[0]}'", (self._text.removed(item),), is_equal)
        return None

    # ----- elements

    @cached_property
    def _elements(self) -> dict[Layer, etree._Element]:
        """Return the elements of layers whose ids occur once."""
        ids, elements = Ids(), {}
        pending = [(self._document.model, self._document.root)]
        while pending:
            model, net = pending.pop()
            layers = {layer.id: layer for layer in model.layers}
            items = [(ids[item.get("id")], item) for item in net.findall("layers/layer") if item in self._text]
            counts = Counter(number for number, _ in items)
            for number, item in items:
                layer = layers.get(-1 if number is None else number)
                if layer is None or counts[number] > 1:
                    continue
                elements[layer] = item
                for key, tags in BODY_OPERATIONS.get(layer.type, {}).items():
                    body = item.find(tags.body)
                    if body is not None and key in layer.bodies:
                        pending.append((layer.bodies[key], body))
        return elements

    def _port(self, port: Port) -> etree._Element | None:
        element = self._elements.get(port.layer)
        if element is None:
            return None
        kind, ports = ("output", port.layer.outputs) if port.is_output else ("input", port.layer.inputs)
        items = element.findall(f"{kind}/port")
        return items[port.index] if len(items) == len(ports) else None

    @cached_property
    def _edges(self) -> dict[etree._Element | None, dict[int | None, list[etree._Element]]]:
        """Return the edges of each net or body, by the layer that they lead to."""
        ids = Ids()
        nets: dict[etree._Element | None, dict[int | None, list[etree._Element]]] = {}
        for group in self._document.root.iter("edges"):
            by_target = nets.setdefault(group.getparent(), defaultdict(list))
            for edge in group.findall("edge"):
                by_target[ids[edge.get("to-layer")]].append(edge)
        return nets

    def _edges_to(self, layer: Layer, targets: Iterable[int]) -> Iterator[tuple[int, etree._Element]]:
        """Yield the edges that lead to layers beside another one, each with the id of its layer."""
        element = self._elements.get(layer)
        group = None if element is None else element.getparent()
        if group is not None:
            edges = self._edges.get(group.getparent(), {})
            for number in targets:
                yield from ((number, edge) for edge in edges.get(number, ()))


def _only_for(layer: Layer, kept: Port | None) -> Sequence[Layer]:
    """Return a layer and those before it that nothing else reads, apart from the one of ``kept``."""
    gone = [layer]
    for item in gone:
        for port in item.inputs:
            if port.source is None or (kept is not None and port.source.layer is kept.layer):
                continue
            before = port.source.layer
            readers = layers_after(before)
            is_pure = before.operator is not None and before.operator.pure
            if is_pure and before not in gone and all(reader in gone for reader in readers):
                gone.append(before)
    return gone
