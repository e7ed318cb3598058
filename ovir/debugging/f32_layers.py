"""Layers that OpenVINO computes in f32: marks on layers, and equal forms of layers whose marks it would lose."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial

import numpy as np

from ovir.building.creation import create_layer
from ovir.core.arrays import Array
from ovir.diagnostics.diagnostic import in_place_of
from ovir.graph.constant_layers import constant_layers
from ovir.graph.layers import Layer, Port, layers_after, layers_before, sources_of
from ovir.graph.rt_info import RtElement
from ovir.model import Model

_MARKS = (
    RtElement(
        1, "attribute", (("name", "DisablePrecisionConversion"), ("version", "0"), ("value", "dynamic:bf16,f16"))
    ),
    RtElement(1, "attribute", (("name", "precise"), ("version", "0"))),
)
"""The mark for OpenVINO 2026 and later, and the mark for versions from 2023 on."""


def with_f32_layers(model: Model, keys: Collection[str]) -> Model:
    """Return a copy of a model in which the layers with these keys, and the constants that they read, are marked.

    Some layers get an equal form first, because OpenVINO would replace them by layers without a mark.
    """
    marked = model.clone()
    wanted = set(keys)
    for part in marked.graphs():
        for layer in [layer for layer in part.layers if layer.key in wanted]:
            forms = equal_form(layer) or [layer]
            info, constants = layer.rt_info.with_marks(*_MARKS), [found for form in forms for found in _constants(form)]
            if forms[-1] is not layer:
                names = layer.outputs[0].own_names
                part.replace(layer, forms[-1])
                forms[-1].outputs[0].names = names
            for form in forms:
                form.rt_info_source = info
            for found in constants:
                found.rt_info_source = found.rt_info.with_marks(*_MARKS)
    return marked


def lost_marks(model: Model, keys: Collection[str]) -> dict[str, str]:
    """Return for which of the layers with these keys OpenVINO's CPU plugin does not honor the marks, and why."""
    wanted = set(keys)
    reasons = {layer.key: lost_mark(layer) for layer in model.walk() if layer.key in wanted}
    return {key: reason for key, reason in reasons.items() if reason is not None}


def _constants(layer: Layer) -> Iterator[Layer]:
    """Yield the layers that compute the real constants that a layer reads."""
    for port in layer.inputs:
        if port.source is not None and port.element_type.is_real:
            yield from constant_layers(port.source.layer) or ()


def equal_form(layer: Layer) -> list[Layer]:
    """Return new layers that compute the same and that OpenVINO leaves as they are; the last one is to replace the
    layer. The list is empty if the layer has no such form, or needs none."""
    make = _FORMS.get(layer.type)
    if make is None or any(port.source is None for port in layer.inputs):
        return []
    with in_place_of(layer.place):
        return make(layer, sources_of(layer))


def lost_mark(layer: Layer) -> str | None:
    """Return the reason why OpenVINO's CPU plugin ignores the mark of a layer; None if no reason is known."""
    if layer.type == "ScaledDotProductAttention" or _is_in_attention(layer):
        return "attention is computed as one layer"
    if layer.type in _REPLACED or (layer.type, layer.version) in _REPLACED_VERSIONS:
        return f"OpenVINO replaces {layer.type} by other layers"
    if layer.type in _FORMS and (layer.type, layer.version) != ("SoftMax", "opset1") and not equal_form(layer):
        return f"OpenVINO replaces {layer.type} by other layers, and for this shape there is no equal form"
    return None


_REPLACED = ("LogSoftmax", "PReLU", "NormalizeL2", "GroupNormalization", "BatchNormInference", "Interpolate")
_REPLACED_VERSIONS = (("MaxPool", "opset8"), ("Pad", "opset12"))


def _softmax(layer: Layer, sources: list[Port]) -> list[Layer]:
    """Return a SoftMax-1, whose axis is not negative."""
    rank = sources[0].shape.rank
    if layer.version == "opset1" or rank is None:
        return []
    axis = int(layer.attributes.get("axis", 1)) % max(rank, 1)
    return [create_layer("SoftMax", sources, {"axis": axis}, version="opset1", name=layer.name)]


def _with_second(layer: Layer, sources: list[Port], inner: str, outer: str) -> list[Layer]:
    """Return the layers that change the second input by an element-wise operation with [-1, -1, ...], and then combine
    both inputs.

    From a single -1, OpenVINO would make a Subtract or a Divide again.
    """
    minus = _minus_ones(layer.outputs[0])
    if minus is None or layer.attributes.get("auto_broadcast", "numpy") != "numpy":
        return []
    changed = create_layer(inner, [sources[1], minus], version="opset1", name=f"{layer.name}/{inner.lower()}")
    return [changed, create_layer(outer, [sources[0], changed], version="opset1", name=layer.name)]


def _minus_ones(port: Port) -> Array | None:
    """Return several -1 in a shape that broadcasting does not change; None if no dimension is known to be above 1."""
    shape = port.shape
    if not port.element_type.is_real or shape.rank is None:
        return None
    known = [(dim.length, i) for i, dim in enumerate(shape) if dim.is_static and dim.length > 1]
    if not known:
        return None
    length, place = min(known)
    sizes = [1] * (shape.rank - place)
    sizes[0] = length
    return np.full(sizes, -1, port.element_type.to_dtype())


_FORMS: Mapping[str, Callable[[Layer, list[Port]], list[Layer]]] = {
    "SoftMax": _softmax,
    "Subtract": partial(_with_second, inner="Multiply", outer="Add"),
    "Divide": partial(_with_second, inner="Power", outer="Multiply"),  # which is how OpenVINO divides real numbers
}


# --------------------------------------------------------------------------- attention

_BETWEEN = ("Add", "Multiply", "Divide", "Subtract", "Reshape", "Select")
_MOST_BETWEEN = 4
"""The most layers, of these types, that attention may have between its products and its SoftMax."""


def _is_in_attention(layer: Layer) -> bool:
    """Return whether a layer is one of two products with a SoftMax between them, or lies between these."""
    if layer.type == "SoftMax":
        return all(any(map(_is_product, _around(layer, step))) for step in (_before, layers_after))
    if _is_product(layer):
        around = [*_around(layer, _before), *_around(layer, layers_after)]
    elif layer.type in _BETWEEN:
        around = [*_around(layer, layers_after)]
    else:
        return False
    return any(found.type == "SoftMax" and _is_in_attention(found) for found in around)


def _is_product(layer: Layer) -> bool:
    """Return whether a layer multiplies two tensors that are not constants."""
    return layer.type == "MatMul" and all(constant_layers(source) is None for source in layers_before(layer))


def _around(layer: Layer, step: Callable[[Layer], Iterable[Layer]]) -> Iterator[Layer]:
    """Yield the layers that one comes to in one direction, until a layer that attention does not have inside."""
    reached = [layer]
    for _ in range(_MOST_BETWEEN):
        reached = [other for item in reached for other in step(item)]
        yield from reached
        reached = [other for other in reached if other.type in _BETWEEN]


def _before(layer: Layer) -> Iterator[Layer]:
    return (port.source.layer for port in layer.inputs[:1] if port.source is not None)
