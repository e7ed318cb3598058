"""Mark layers of a model so that OpenVINO computes them in f32 on a device that otherwise uses f16 or bf16.

docs/precision.md says which devices honour the marks, and where they get lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ovir.debugging.exact_forms import equal_form, lost_mark
from ovir.graph.layers import Layer
from ovir.graph.rt_info import RtElement, RtInfo
from ovir.inference.constant_layers import constant_layers
from ovir.model import Model

_MARKS = (
    RtElement(
        1, "attribute", (("name", "DisablePrecisionConversion"), ("version", "0"), ("value", "dynamic:bf16,f16"))
    ),
    RtElement(1, "attribute", (("name", "precise"), ("version", "0"))),
)
"""The mark of OpenVINO 2026 and later, and the one that versions from 2023 on know."""


def with_exact_layers(model: Model, keys: Collection[str]) -> Model:
    """Return a copy of a model in which the layers with these keys, and the constants that they read, are marked.

    Some layers get an equal form first, because OpenVINO would replace them by layers without a mark.
    """
    marked = model.clone()
    wanted = set(keys)
    for part in marked.graphs():
        for layer in [layer for layer in part.layers if layer.key in wanted]:
            forms = equal_form(layer) or [layer]
            info, constants = _with_marks(layer.rt_info), [found for form in forms for found in _constants(form)]
            if forms[-1] is not layer:
                names = layer.outputs[0].own_names
                part.replace(layer, forms[-1])
                forms[-1].outputs[0].names = names
            for form in forms:
                form.rt_info_source = info
            for found in constants:
                found.rt_info_source = _with_marks(found.rt_info)
    return marked


def lost_marks(model: Model, keys: Collection[str]) -> dict[str, str]:
    """Return for which of the layers with these keys OpenVINO's CPU plugin does not honour the marks, and why."""
    wanted = set(keys)
    reasons = {layer.key: lost_mark(layer) for layer in model.walk() if layer.key in wanted}
    return {key: reason for key, reason in reasons.items() if reason is not None}


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
