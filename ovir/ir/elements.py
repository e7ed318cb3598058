"""What every reader of a part of the .xml needs of its elements."""

from __future__ import annotations

from lxml import etree

from ovir.diagnostics import BAD_ATTRIBUTE, Findings, Place
from ovir.integers import UINT64, parse_integer


def tag_of(element: etree._Element) -> str:
    return str(element.tag)


def line_of(element: etree._Element) -> int | None:
    return element.sourceline


def unsigned(element: etree._Element, key: str, place: Place, findings: Findings) -> int | None:
    """The number that an attribute gives, as an id; None, and a finding, where it gives none."""
    text = element.get(key)
    try:
        if text is None:
            raise ValueError("it is missing")
        return parse_integer(text, UINT64)
    except ValueError as error:
        findings.error(BAD_ATTRIBUTE, f"attribute '{key}' of <{tag_of(element)}>: {error}", place)
        return None
