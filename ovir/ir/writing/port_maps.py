"""Writes how If, Loop and TensorIterator are connected with their bodies; the inverse of ``ovir.ir.port_maps``."""

from __future__ import annotations

from collections.abc import Iterator

from ovir.diagnostics.codes import BODY
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import ModelError
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer
from ovir.ir.port_maps import BodyTags
from ovir.ops.base.bodies import BodyMap, Entry


def port_map_lines(layer: Layer, key: str, tags: BodyTags, depth: int) -> Iterator[str]:
    """Yield the lines of the port map and the back edges of one body, with so many tabs before them."""
    body: LayerGraph = layer.bodies[key]
    wiring = None if layer.operator is None else layer.operator.wiring.get(key)
    if wiring is None:
        message = f"it is not known how the body '{key}' is connected with the layer"
        raise ModelError(diagnose(BODY, message, layer.place))
    tabs = "\t" * depth
    entries = _entries(wiring, body, len(layer.inputs))
    yield f"{tabs}<{tags.port_map}>\n"
    entries.sort(key=lambda entry: entry[0])  # OpenVINO writes the special ports of a Loop last
    yield from (f"{tabs}\t{text}\n" for _, text in entries)
    yield f"{tabs}</{tags.port_map}>\n"
    if wiring.back_edges:
        yield f"{tabs}<{tags.back_edges}>\n"
        for edge in wiring.back_edges:
            result, parameter = body.outputs[edge.result].layer.id, body.inputs[edge.parameter].layer.id
            yield f'{tabs}\t<edge from-layer="{result}" to-layer="{parameter}" />\n'
        yield f"{tabs}</{tags.back_edges}>\n"


def _entries(wiring: BodyMap, body: LayerGraph, input_count: int) -> list[tuple[bool, str]]:
    """Return the entries of the port map, each with whether it is a special port without an external one."""
    found = []
    for item in wiring.inputs:
        internal = body.inputs[item.parameter].layer.id
        found.append((item.external < 0, _entry("input", item, item.external, internal)))
    for result in wiring.outputs:
        internal = body.outputs[result.result].layer.id
        external = result.external if result.external < 0 else input_count + result.external
        found.append((result.external < 0, _entry("output", result, external, internal)))
    return found


def _entry(tag: str, item: Entry, external: int, internal: int) -> str:
    axis = slicing = ""
    if item.axis is not None:
        axis = f' axis="{item.axis}"'
        slicing = f' start="{item.start}" end="{item.end}" stride="{item.stride}" part_size="{item.part_size}"'
    purpose = f' purpose="{item.purpose}"' if item.purpose else ""
    return f'<{tag}{axis} external_port_id="{external}" internal_layer_id="{internal}"{slicing}{purpose} />'
