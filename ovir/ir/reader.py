"""Reads files of IR versions 10 and 11 into a graph of layers, which is not inferred.

No file is trusted: entities are not expanded, nothing is fetched, and every number is checked before it is used. All
diagnostics are collected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from lxml import etree

from ovir.core.shapes import UINT64, parse_integer
from ovir.diagnostics import codes
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import Diagnostics, ModelError, ReadError
from ovir.diagnostics.wording import exact_size_text
from ovir.graph.connections import MAX_DEPTH
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer
from ovir.ir.edges import EdgeReader, Gaps
from ovir.ir.elements import ElementReader, line_of, read_model_info, tag_of
from ovir.ir.extensions import missing_extensions
from ovir.ir.layer_reader import LayerReader
from ovir.ir.port_maps import BODY_OPERATIONS, read_body_map
from ovir.ir.repair import cut_cycles, layers_by_id
from ovir.ir.source import Source, find_weights, parse_xml
from ovir.ir.weights import WeightBytes, WeightsMark
from ovir.system.progress import counted, stage

G = TypeVar("G", bound=LayerGraph)


@dataclass(frozen=True)
class Document(Generic[G]):
    """A file that has been read but not inferred."""

    root: etree._Element
    data: bytes
    """The content of the file."""
    file: str | None
    weights: WeightBytes
    model: G
    mark: WeightsMark | None
    """The mark of the .bin that the file was saved with, if the file has one."""

    @property
    def place(self) -> Place:
        """Return the place of the model as a whole: its root element."""
        return Place(self.file, line_of(self.root))


def load(
    source: Source, weights: Any, kind: type[G], diagnostics: Diagnostics, *, need_weights: bool = True
) -> Document[G] | None:
    """Read a file as a graph of a class, and add its faults to ``diagnostics``; return None if there is no model.

    Without ``need_weights`` no weights are opened, and constants have no data.
    """
    try:
        with stage("reading"):
            root, data, name, mark = parse_xml(source, diagnostics)
            opened = WeightBytes.none("of weights")
            if need_weights:
                try:
                    opened = find_weights(name, weights)
                except ReadError as error:
                    diagnostics.extend(error.diagnostics)
                    need_weights = False
            if mark is not None:
                misfit = None if opened.missing else mark.misfit(opened.name, opened.data)
                if misfit is not None:
                    diagnostics.report(codes.FOREIGN_WEIGHTS, misfit, Place(name, line_of(root)), SAVED_APART)
                if name is not None and weights is None:
                    opened.trust(mark, name)
            reader = _Reader(name, opened, kind, diagnostics, need_weights)
            return Document(root, data, name, opened, reader.document(root), mark)
    except (ReadError, ModelError) as error:
        diagnostics.extend(error.diagnostics)
    return None


SAVED_APART = "one of the two files is older, or incomplete: save or copy both again"
"""The hint of an error for weights that do not belong to the .xml."""


# --------------------------------------------------------------------------- the document


class _Reader(ElementReader, Generic[G]):
    """Reads one document."""

    def __init__(
        self, file: str | None, weights: WeightBytes, kind: type[G], diagnostics: Diagnostics, need_weights: bool
    ) -> None:
        super().__init__(file, diagnostics)
        self.weights = weights
        self.kind = kind
        self.need_weights = need_weights
        self.layers = LayerReader(file, weights, diagnostics)

    def document(self, root: etree._Element) -> G:
        """Read the whole file: layers and edges, pre-processing, and which weights are missing."""
        version = self._version(root)
        if root.find("layers/layer[@version]") is None:
            from ovir.ir.executed import refuse_executed  # whose layers have no versions

            refuse_executed(root, self.at(root))
        model = self.network(root, "", version, Gaps())
        if self.layers.of_extensions:
            self.diagnostics.extend(missing_extensions(self.layers.of_extensions))
        if (pre_process := root.find("pre-process")) is not None and self.need_weights:
            from ovir.ir.legacy import apply_pre_process  # which only files of version 10 have

            apply_pre_process(model, pre_process, self.weights, self.diagnostics)
        if self.need_weights:
            self._missing_weights()
            self._short_weights(model)
        return model

    def _missing_weights(self) -> None:
        """Report all constants without data as one diagnostic: the .bin is missing."""
        if constants := self.layers.without_data:
            _, place, _ = constants[0]
            ranges = {(layer.attributes.get("offset"), size) for layer, _, size in constants}
            bytes_needed = sum(size for _, size in ranges)
            many = f"{len(constants)} constants (this is the first) need"
            these = "a constant needs" if len(constants) == 1 else many
            message = f"{these} {exact_size_text(bytes_needed)} of weights, but there is no file {self.weights.name}"
            beside = "put the .bin next to the .xml, or " if self.file is not None else ""
            hint = f"{beside}give its path: --weights FILE, or weights= in Python"
            self.diagnostics.report(codes.NO_WEIGHTS, message, place, hint)

    def _short_weights(self, model: LayerGraph) -> None:
        """Report constants past the end of the weights; many of them are reported as one diagnostic, because they have
        one cause."""
        if any(fault.code == codes.FOREIGN_WEIGHTS.id for fault in self.diagnostics):
            return
        faults = self.layers.past_end
        if len(faults) > (_MANY_PAST_END if self.weights.data.size else 1):
            constants = sum(layer.type == "Const" for layer in model.walk())
            message = f"{faults[0].message}: {len(faults)} of {constants} constants lie past its end"
            faults = [replace(faults[0], message=message)]
        self.diagnostics.extend(faults)

    def _version(self, root: etree._Element) -> int:
        if etree.QName(root).localname.lower() != "net":
            message = f"the root element is <{tag_of(root)}>, expected <net>"
            raise ReadError(diagnose(codes.NOT_IR, message, self.at(root)))
        text = root.get("version")
        try:
            version = parse_integer(text or "", UINT64)
        except ValueError as error:
            message = f"the version of the <net> element: {error}"
            if text is None:
                message = "the <net> element has no version"
            hint = "ovir reads versions 10 and 11"
            raise ReadError(diagnose(codes.IR_VERSION, message, self.at(root), hint=hint)) from None
        if version in (10, 11):
            return version
        if version < 10:
            message = f"this is IR version {version}: ovir reads 10 and 11, as OpenVINO does since release 2022.1"
            hint = "convert the original model again with a current OpenVINO (`ovc model.onnx`)"
        else:
            message = f"this is IR version {version}: ovir reads versions 10 and 11"
            hint = "a newer release of ovir may read it"
        raise ReadError(diagnose(codes.IR_VERSION, message, self.at(root), hint=hint))

    def network(self, element: etree._Element, scope: str, version: int, gaps: Gaps, depth: int = 0) -> G:
        """Read the layers and edges of a <net> or a body; record unreadable ones in ``gaps``."""
        known = self.diagnostics.added
        layers: list[Layer] = []
        groups = element.findall("layers")
        if not groups:
            of_layer = f" of layer '{scope[:-1].rpartition('/')[0]}'" if scope else ""
            message = f"<{tag_of(element)}>{of_layer} has no <layers>"
            self.diagnostics.report(codes.MISSING_ELEMENT, message, self.at(element))
            gaps.layers.add(None)
        for group in groups[:1]:
            self.layers.ids.expect(len(group))
            for item in counted("reading layers", group):
                if item.tag != "layer":
                    message = f"<{tag_of(item)}> is not a <layer>; it is ignored"
                    self.diagnostics.report(codes.UNKNOWN_ELEMENT, message, self.at(item))
                    continue
                layer = self.layers.read(item, scope, gaps)
                if layer is None:
                    gaps.places.append(layers[-1].id if layers else -1)
                else:
                    layers.append(layer)
                    if layer.type in BODY_OPERATIONS:
                        self.bodies(item, layer, version, depth)
        edge_groups = element.findall("edges")
        if not edge_groups and any(layer.inputs for layer in layers):
            self.diagnostics.report(codes.MISSING_ELEMENT, f"<{tag_of(element)}> has no <edges>", self.at(element))
            gaps.inputs.update((layer.id, None) for layer in layers)
        self.report_repeated((*groups[1:], *edge_groups[1:]))
        reader = EdgeReader(self.file, self.diagnostics, gaps, self.layers.ids)
        edges = reader.parse(edge_groups[:1], layers)
        if edge_groups and not (edges or gaps.inputs or gaps.stray) and sum(len(layer.inputs) for layer in layers) > 1:
            self.diagnostics.report(codes.MISSING_ELEMENT, "<edges> has no edge", self.at(edge_groups[0]))
            gaps.inputs.update((layer.id, None) for layer in layers)
        gaps.name_layers(edges, {layer.id for layer in layers} if gaps.places else set())
        by_id = {layer.id: layer for layer in layers}
        if len(by_id) < len(layers):
            by_id = layers_by_id(layers, edges, gaps, self.diagnostics)
        reader.connect(edges, by_id)

        def graph() -> G:
            return self.kind.of_layers(
                by_id.values(),
                name=element.get("name", ""),
                version=version,
                path=self.file,
                rt_info=read_model_info(element),
                has_gaps=any(d.code.startswith(GAP_CODES) for d in self.diagnostics.errors_since(known)),
            )

        try:
            return graph()
        except ModelError:
            cut_cycles(by_id, self.diagnostics)
            return graph()

    def bodies(self, element: etree._Element, layer: Layer, version: int, depth: int) -> None:
        """Read the bodies of a layer, and how they are connected with it."""
        if depth >= MAX_DEPTH:
            message = f"bodies are nested more than {MAX_DEPTH} deep; the contents of this one are not read"
            self.diagnostics.report(codes.TOO_DEEP, message, layer.place)
            layer.operator = None
            return
        for key, tags in BODY_OPERATIONS[layer.type].items():
            body = element.find(tags.body)
            if body is None:
                self.diagnostics.report(codes.NO_BODY, f"{layer.type} has no <{tags.body}>", layer.place)
                layer.operator = None
                continue
            gaps = Gaps()
            model = self.network(body, f"{layer.scope}{layer.name}/{key}/", version, gaps, depth + 1)
            layer.bodies[key] = model
            # The port map may name a layer that could not be read.
            wiring = None if gaps.layers else read_body_map(element, tags, layer, model, self.file, self.diagnostics)
            if wiring is None:
                layer.operator = None
            elif layer.operator is not None:
                layer.operator.wiring = {**layer.operator.wiring, key: wiring}


GAP_CODES = ("OVIR1", "OVIR2")
"""Codes of errors after which layers or edges may be missing."""

_MANY_PAST_END = 5  # constants past the end; more than these have a common cause


__all__ = ["GAP_CODES", "Document", "load"]
