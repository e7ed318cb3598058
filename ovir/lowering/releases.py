"""OpenVINO releases, and the opsets, element types and IR versions that they read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ovir.core.element_types import ElementType, f4e2m1, f8e4m3, f8e5m2, f8e8m0, nf4, string, u2, u3, u6
from ovir.diagnostics.errors import InputError
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer

Release = tuple[int, int]
"""A release such as 2022.3, without its patch number."""

RELEASES = {
    (2020, 1): 1, (2020, 2): 2, (2020, 4): 3, (2021, 1): 4, (2021, 2): 5, (2021, 3): 6, (2021, 4): 7, (2022, 1): 8,
    (2022, 2): 9, (2022, 3): 10, (2023, 0): 11, (2023, 1): 12, (2023, 2): 13, (2024, 0): 14, (2024, 5): 15,
    (2025, 0): 16, (2026, 4): 17,
}  # fmt: skip
"""The newest opset of each OpenVINO release that introduced one. Source: OpenVINO's page on available operation
sets."""

_OF_YEARS = {
    2020: (1, 4), 2021: (1, 4), 2022: (1, 3), 2023: (0, 3), 2024: (0, 6), 2025: (0, 4), 2026: (0, 4),
}  # fmt: skip
"""The first and the last release of each year. Source: the list of published packages."""

IR_VERSION_11 = (2022, 1)
"""The first release that reads IR version 11."""

ELEMENT_TYPES_SINCE: dict[ElementType, Release] = {
    nf4: (2023, 2), string: (2023, 3), f8e4m3: (2024, 0), f8e5m2: (2024, 0), f8e8m0: (2024, 3), f4e2m1: (2024, 3),
    u2: (2024, 5), u3: (2024, 5), u6: (2024, 5),
}  # fmt: skip
"""The first release that supports an element type, measured with the published packages; all releases support the
others."""


OPERATIONS_SINCE: dict[tuple[str, int], Release] = {
    ("ScaledDotProductAttention", 13): (2023, 3), ("FakeConvert", 13): (2023, 3), ("ISTFT", 16): (2025, 1),
    ("SegmentMax", 16): (2025, 1), ("SparseFillEmptyRows", 16): (2025, 2), ("AvgPool", 16): (2025, 3),
    ("OneHot", 16): (2025, 4),
}  # fmt: skip
"""The first release that reads an operation version, where this is not the first release of its opset; measured with
the published packages."""

_INPUTS_SINCE: dict[tuple[str, int], Release] = {("ScaledDotProductAttention", 6): (2025, 4)}
"""The first release that computes with so many inputs of an operation; measured with the published packages, of which
the older ones read the sink of attention and ignore it without a message."""


def newest_opset(release: Release) -> int:
    """Return the newest opset that a release supports, 0 for a release older than all of them."""
    return max((opset for first, opset in RELEASES.items() if first <= release), default=0)


def newest_opset_for(layer: Layer, release: Release) -> int:
    """Return the newest opset from which a release knows the operation of a layer."""
    newest, op = newest_opset(release), layer.operator
    if op is not None and op.opset and (since_later(layer) or release) > release:
        return min(newest, op.opset - 1)
    return newest


def since_later(layer: Layer) -> Release | None:
    """Return the first release that knows the operation of a layer and all of its inputs; None if it is the first one
    of its opset."""
    op = layer.operator
    if op is None:
        return None
    return _INPUTS_SINCE.get((op.type, len(layer.inputs))) or OPERATIONS_SINCE.get((op.type, op.opset))


def release_of_opset(opset: int) -> Release:
    """Return the first release whose newest opset is at least this one; InputError for an opset that no release has."""
    releases = [release for release, newest in RELEASES.items() if newest >= opset]
    if opset < 1 or not releases:
        raise InputError.usage(f"opset{opset} is not an opset: known are opset1 to opset{max(RELEASES.values())}")
    return min(releases)


def opset_number(version: str) -> int | None:
    """Return the number of the opset that a layer's version names, None if it names none."""
    number = version.lower().removeprefix("opset")
    return int(number) if number.isdecimal() and number.isascii() else None


def own_element_types(layer: Layer) -> dict[ElementType, None]:
    """Return the element types that a layer's attributes name or that its outputs have, each once."""
    types = [value for value in layer.attributes.values() if isinstance(value, ElementType)]
    return dict.fromkeys([*types, *(port.element_type for port in layer.outputs)])


def element_types_of(layer: Layer) -> dict[ElementType, None]:
    """Return the element types that a layer's attributes and ports declare or that its outputs have, each once."""
    ports = (*layer.inputs, *layer.outputs)
    declared = [port.declared_element_type for port in ports if port.declared_element_type]
    return own_element_types(layer) | dict.fromkeys(declared)


def release_text(release: Release) -> str:
    return f"{release[0]}.{release[1]}"


def parse_release(text: str) -> Release:
    """Parse ``2022.3`` or ``2024.5.1`` as (2022, 3) or (2024, 5); raise InputError for an unknown release."""
    match = re.fullmatch(r"(\d{4})\.(\d{1,2})(\.\d+)*", text, re.ASCII)
    if match is None:
        raise InputError.usage(f"{text!r} is not an OpenVINO release, such as '2022.3'")
    release = int(match[1]), int(match[2])
    years = sorted(_OF_YEARS)
    oldest, newest = (years[0], _OF_YEARS[years[0]][0]), (years[-1], _OF_YEARS[years[-1]][1])
    if release < oldest:
        raise InputError.usage(
            f"OpenVINO {text} reads neither IR version 10 nor 11; the first release that does is {release_text(oldest)}"
        )
    if release > newest:
        raise InputError.usage(
            f"OpenVINO {text} is newer than the releases that ovir supports, up to {release_text(newest)}"
        )
    first, last = _OF_YEARS[release[0]]
    if not first <= release[1] <= last:
        of_year = f"{release_text((release[0], first))} to {release_text((release[0], last))}"
        raise InputError.usage(f"there is no OpenVINO release {text}: that year has releases {of_year}")
    return release


def as_release(target: str | int) -> Release:
    """Return the release that a text such as ``2022.3`` names, or the first one that knows an opset, such as 8."""
    if isinstance(target, bool) or not isinstance(target, (str, int)):
        raise InputError.usage(f"expected a release, such as '2022.3', or an opset, such as 8, got {target!r}")
    return release_of_opset(target) if isinstance(target, int) else parse_release(target)


@dataclass(frozen=True)
class Need:
    """A release and the reason for it; the release is None if ovir does not know it yet."""

    release: Release | None
    what: str

    def __str__(self) -> str:
        if self.release is None:
            return f"a release that this ovir does not know, because of {self.what}"
        return f"OpenVINO {release_text(self.release)} or newer, because of {self.what}"


def with_inputs(layer: Layer) -> str:
    """Return words for the number of inputs of a layer, where they make it newer than its opset."""
    count = len(layer.inputs)
    return f" with {count} inputs" if (layer.type, count) in _INPUTS_SINCE else ""


def oldest_release(model: LayerGraph) -> Need:
    """Return the oldest release that reads the IR version, the opsets and the element types of a model, and the reason.

    Operations of extensions are ignored, because they do not depend on the release.
    """
    needs = list(_needs(model))
    unknown = [need for need in needs if need.release is None]
    return unknown[0] if unknown else max(needs, key=lambda need: need.release or (0, 0))


def _needs(model: LayerGraph) -> Iterator[Need]:
    if model.version >= 11:
        yield Need(IR_VERSION_11, "IR version 11")
    else:
        yield Need(min(RELEASES), f"IR version {model.version}")
    opsets: dict[int, Layer] = {}
    late: dict[tuple[Release, str], None] = {}
    types: dict[ElementType, None] = {}
    for layer in model.walk():
        if (number := opset_number(layer.version)) is not None:
            opsets.setdefault(number, layer)
        types.update(element_types_of(layer))
        if (since := since_later(layer)) is not None:
            late[since, f"{layer.type} of {layer.version}{with_inputs(layer)}"] = None
    for release, what in late:
        yield Need(release, what)
    for number, layer in opsets.items():
        releases = [release for release, newest in RELEASES.items() if newest >= number]
        yield Need(min(releases, default=None), f"{layer.type} of {layer.version}")
    for element_type in types:
        if (first := ELEMENT_TYPES_SINCE.get(element_type)) is not None:
            yield Need(first, f"the element type {element_type}")
