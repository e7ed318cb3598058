"""Mark layers of a model so that OpenVINO computes them in f32 on a device that otherwise uses f16 or bf16.

docs/precision.md says which devices honour the marks, and where they get lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ovir.build.generic import create_layer
from ovir.graph.layers import Layer
from ovir.graph.model import Model
from ovir.graph.rt_info import RtElement, RtInfo
from ovir.inference.constant_layers import constant_layers

_MARKS = (
    RtElement(
        1, "attribute", (("name", "DisablePrecisionConversion"), ("version", "0"), ("value", "dynamic:bf16,f16"))
    ),
    RtElement(1, "attribute", (("name", "precise"), ("version", "0"))),
)
"""The mark of OpenVINO 2026 and later, and the one that versions from 2023 on know."""


def with_exact_layers(model: Model, keys: Collection[str]) -> Model:
    """Return a copy of a model in which the layers with these keys, and the constants that they read, are marked.

    A SoftMax-8 becomes the equal SoftMax-1, because OpenVINO replaces the former by a layer without a mark.
    """
    marked = model.clone()
    wanted = set(keys)
    for part in marked.graphs():
        for layer in [layer for layer in part.layers if layer.key in wanted]:
            for found in (layer, *_constants(layer)):
                found.rt_info_source = _with_marks(found.rt_info)
            _replace_softmax(part, layer)
    return marked


def _constants(layer: Layer) -> Iterator[Layer]:
    """Yield the layers that compute the real constants that a layer reads."""
    for port in layer.inputs:
        if port.source is not None and port.element_type.is_real:
            yield from constant_layers(port.source.layer) or ()


def _with_marks(info: RtInfo) -> RtInfo:
    root, *inner = info.elements or (RtElement(0, "rt_info"),)
    names = {mark.key for mark in _MARKS}
    kept = [item for item in inner if item.depth > 1 or item.key not in names]
    return RtInfo((root, *_MARKS, *kept))


def _replace_softmax(model: Model, layer: Layer) -> None:
    source = layer.inputs[0].source if layer.inputs else None
    if layer.type != "SoftMax" or layer.version == "opset1" or source is None or source.shape.rank is None:
        return
    axis = int(layer.attributes.get("axis", 1)) % max(source.shape.rank, 1)
    names, info = layer.outputs[0].own_names, layer.rt_info
    new = create_layer("SoftMax", [source], {"axis": axis}, version="opset1", name=layer.name)
    model.replace(layer, new)
    new.rt_info_source = info
    new.outputs[0].names = names
