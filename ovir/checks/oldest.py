"""The oldest OpenVINO release that reads a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ovir.checks.releases import ELEMENT_TYPES_SINCE, IR_VERSION_11, RELEASES, Release, release_text
from ovir.core.element_types import ElementType
from ovir.graph.layers import Layer
from ovir.graph.model import Model
from ovir.runtime.listeners import all_layers


@dataclass(frozen=True)
class Need:
    """A release, and what it is needed for; None for one that this ovir does not know."""

    release: Release | None
    what: str

    def __str__(self) -> str:
        if self.release is None:
            return f"a release that this ovir does not know, for {self.what}"
        return f"OpenVINO {release_text(self.release)} or later, for {self.what}"


def oldest_release(model: Model) -> Need:
    """Return the oldest release that knows the IR version, the opsets and the element types of a model, and why it.

    Operations of extensions are not looked at: which release has them is not the question.
    """
    needs = list(_needs(model))
    unknown = [need for need in needs if need.release is None]
    return unknown[0] if unknown else max(needs, key=lambda need: need.release or (0, 0))


def _needs(model: Model) -> Iterator[Need]:
    if model.version >= 11:
        yield Need(IR_VERSION_11, "IR version 11")
    else:
        yield Need(min(RELEASES), f"IR version {model.version}")
    opsets: dict[int, Layer] = {}
    types: dict[ElementType, None] = {}
    for layer in all_layers(model):
        version = layer.version.lower().removeprefix("opset")
        if version.isdecimal() and version.isascii():
            opsets.setdefault(int(version), layer)
        types.update(dict.fromkeys(_types_of(layer)))
    for number, layer in opsets.items():
        releases = [release for release, newest in RELEASES.items() if newest >= number]
        yield Need(min(releases, default=None), f"{layer.type} of {layer.version}")
    for element_type in types:
        if (since := ELEMENT_TYPES_SINCE.get(element_type)) is not None:
            yield Need(since, f"the element type {element_type}")


def _types_of(layer: Layer) -> Iterator[ElementType]:
    """Yield the element types that attributes and ports declare, or that outputs have."""
    yield from (value for value in layer.attributes.values() if isinstance(value, ElementType))
    for port in (*layer.inputs, *layer.outputs):
        if port.declared_element_type is not None:
            yield port.declared_element_type
    yield from (port.element_type for port in layer.outputs)
