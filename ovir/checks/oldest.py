"""The oldest OpenVINO release that reads a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ovir.checks.releases import (
    ELEMENT_TYPES_SINCE,
    IR_VERSION_11,
    RELEASES,
    Release,
    element_types_of,
    opset_number,
    release_text,
)
from ovir.core.element_types import ElementType
from ovir.graph.layers import Layer
from ovir.model import Model


@dataclass(frozen=True)
class Need:
    """A release and what needs it; the release is None if ovir does not know it yet."""

    release: Release | None
    what: str

    def __str__(self) -> str:
        if self.release is None:
            return f"a release that this ovir does not know, for {self.what}"
        return f"OpenVINO {release_text(self.release)} or later, for {self.what}"


def oldest_release(model: Model) -> Need:
    """Return the oldest release that reads the IR version, the opsets and the element types of a model, and the reason.

    Operations of extensions are ignored, because they do not depend on the release.
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
    for layer in model.walk():
        if (number := opset_number(layer.version)) is not None:
            opsets.setdefault(number, layer)
        types.update(element_types_of(layer))
    for number, layer in opsets.items():
        releases = [release for release, newest in RELEASES.items() if newest >= number]
        yield Need(min(releases, default=None), f"{layer.type} of {layer.version}")
    for element_type in types:
        if (since := ELEMENT_TYPES_SINCE.get(element_type)) is not None:
            yield Need(since, f"the element type {element_type}")
