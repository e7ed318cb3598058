"""Lowers models: replaces operation versions that an OpenVINO release does not know by older ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ovir.diagnostics.codes import NEWER_THAN_RUNTIME
from ovir.diagnostics.diagnostic import Diagnostic, diagnose, in_place_of
from ovir.diagnostics.errors import ExportError
from ovir.editing.constant_edits import remove_unread
from ovir.editing.transaction import editing, with_types
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port, separate, sources_of
from ovir.graph.names import take_name
from ovir.graph.rt_info import NO_RT_INFO, RtElement
from ovir.inference.models import infer_model
from ovir.lowering import releases
from ovir.lowering.constructs import changes_for
from ovir.lowering.decompose import decomposed, is_newer, new_layers
from ovir.lowering.registry import LOWERED_FROM, NotLowered
from ovir.lowering.sizes import tensor
from ovir.opset1 import convert
from ovir.system.progress import counted


def lower(model: LayerGraph, target: str | int) -> list[Layer]:
    """Replace operations that a release does not know; see ``Model.lower``."""
    release = releases.as_release(target)
    with_types(model)
    refused = [diagnostic for layer in model.walk() for diagnostic in _refused_types(layer, release)]
    with editing(model):
        if model.needs_inference:
            infer_model(model)
        rewritten: list[Layer] = []
        for graph in model.graphs():
            rewritten += _lower_graph(graph, release, refused)
            rewritten += _avoid_failures(graph, release, refused)
        if refused:
            raise ExportError(*refused)
    return rewritten


def _lower_graph(graph: LayerGraph, release: releases.Release, refused: list[Diagnostic]) -> Iterator[Layer]:
    taken = {layer.name for layer in graph.layers}
    for layer in counted("lowering", list(graph.layers)):
        newest = releases.newest_opset_for(layer, release)
        if not is_newer(layer, newest):
            op = layer.operator  # a file may name a later opset than a release knows
            if op is not None and op.opset and (releases.opset_number(layer.version) or 0) > newest:
                layer.version = f"opset{op.opset}"
            continue
        try:
            with in_place_of(layer.place):
                ports = decomposed(layer, newest)
        except NotLowered as error:
            refused.append(_diagnostic(layer, release, error))
            continue
        yield _put(graph, layer, ports, taken)


def _avoid_failures(graph: LayerGraph, release: releases.Release, refused: list[Diagnostic]) -> Iterator[Layer]:
    """Rewrite the layers that the release reads but fails to run."""
    taken = {layer.name for layer in graph.layers}
    for layer in list(graph.layers):
        if is_newer(layer, releases.newest_opset_for(layer, release)):
            continue  # it is refused already
        try:
            with in_place_of(layer.place):
                changes = changes_for(layer, release)
        except NotLowered as error:
            message = f"OpenVINO {releases.release_text(release)} reads this layer, but {error.reason}"
            refused.append(diagnose(NEWER_THAN_RUNTIME, message, layer.place, hint=error.hint))
            continue
        if any(port in changes for port in layer.outputs):
            parts = [tensor(changes[port]) if port in changes else None for port in layer.outputs]
            yield _put(graph, layer, parts, taken)
            continue
        for port, new in changes.items():
            _add_layers(graph, layer, [tensor(new)], taken)
            graph.connect(tensor(new), port)
            yield tensor(new).layer


def _put(graph: LayerGraph, old: Layer, tensors: Sequence[Port | None], taken: set[str]) -> Layer:
    """Replace a layer by the new layers of these tensors, and return the one that takes its name."""
    pairs = zip(old.outputs, tensors, strict=False)
    with in_place_of(old.place):
        pairs_of_layers = [(before, _new(after)) for before, after in pairs if after is not None]
    ports = [after for _, after in pairs_of_layers]
    last = ports[0].layer
    _add_layers(graph, old, ports, taken, last)
    for before, after in pairs_of_layers:
        after.own_names |= before.own_names
        after.rt_info = after.rt_info or before.rt_info
        before.own_names = frozenset()
        graph.move_readers(before, after)
    fed = sources_of(old)
    graph.remove_layer(old)
    remove_unread(graph, fed)
    return last


def _add_layers(
    graph: LayerGraph, old: Layer, tensors: Sequence[Port], taken: set[str], last: Layer | None = None
) -> None:
    """Add the new layers of these tensors, which a layer was rewritten to; ``last`` takes its name."""
    assert old.operator is not None
    origin = f"{old.operator.type}-{old.operator.opset}"
    mark = RtElement(1, "attribute", (("name", LOWERED_FROM), ("version", "0"), ("value", origin)))
    for layer in new_layers(tensors):
        is_last = layer is last
        sources = [port.source for port in layer.inputs]
        for port in layer.inputs:
            separate(port)
        layer.id = graph.next_id
        layer.name = old.name if is_last else take_name(f"{old.name}/{layer.name or layer.type}", taken)
        if is_last or layer.type != "Const":
            info = old.rt_info if is_last else NO_RT_INFO
            layer.rt_info_source = info if LOWERED_FROM in info else info.with_marks(mark)
        graph.add_layer(layer, [source for source in sources if source is not None])


def _new(port: Port) -> Port:
    """Return a tensor of a new layer, which can take names: a copy of a tensor that the model already has."""
    return port if port.layer.owner is None else convert(port, port.element_type).outputs[0]


# --------------------------------------------------------------------------- what is refused


def _diagnostic(layer: Layer, release: releases.Release, error: NotLowered) -> Diagnostic:
    op = layer.operator
    number = releases.opset_number(layer.version) if op is None else op.opset
    first = releases.since_later(layer) or releases.release_of_opset(number or 1)
    since = f"OpenVINO knows it from release {releases.release_text(first)}"
    message = f"this layer cannot be rewritten for OpenVINO {releases.release_text(release)}: {error.reason}"
    hint = f"{error.hint}; {since}" if error.hint else since
    return diagnose(NEWER_THAN_RUNTIME, message, layer.place, hint=hint)


def _refused_types(layer: Layer, release: releases.Release) -> Iterator[Diagnostic]:
    for element_type in releases.own_element_types(layer):
        since = releases.ELEMENT_TYPES_SINCE.get(element_type, release)
        if since > release:
            message = f"OpenVINO {releases.release_text(release)} does not support the element type {element_type}"
            hint = f"OpenVINO supports {element_type} from release {releases.release_text(since)}"
            if layer.type == "Const":
                hint = f"--decompress (Model.decompress) replaces compressed weights by numbers; {hint}"
            yield diagnose(NEWER_THAN_RUNTIME, message, layer.place, hint=hint)
