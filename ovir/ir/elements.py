"""Helpers for reading XML elements: lines, numbers, unknown elements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from lxml import etree

from ovir.core.integers import UINT64, parse_integer
from ovir.diagnostics.codes import BAD_NUMBER, MISSING_KEY, UNKNOWN_ELEMENT, Severity
from ovir.diagnostics.collector import Diagnostics
from ovir.diagnostics.diagnostic import Place
from ovir.diagnostics.spelling import closest
from ovir.graph.layers import Layer


def xml_parser(encoding: str | None) -> etree.XMLParser[etree._Element]:
    """Return a parser that neither expands entities nor accesses the network."""
    options = {**SAFE, "huge_tree": True, "remove_comments": True, "remove_pis": True}
    parser: etree.XMLParser[etree._Element] = etree.XMLParser(encoding=encoding, **options)
    return parser


SAFE: dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False}


def tag_of(element: etree._Element) -> str:
    return str(element.tag)


def read_as(
    element: etree._Element,
    wanted: str,
    known: Sequence[str],
    missed: Collection[str],
    place: Place,
    diagnostics: Diagnostics,
) -> str | None:
    """Report an element that is not the ``wanted`` one; return the tag among ``missed`` of which it is a misspelling.

    That is an error, because OpenVINO ignores the element. Otherwise return None and report a warning.
    """
    meant = closest(tag_of(element), known)
    is_missed = meant in missed
    message = f"<{tag_of(element)}> is not {wanted}" + ("" if is_missed else "; it is ignored")
    severity = Severity.ERROR if is_missed else None
    hint = f"did you mean <{meant}>?" if meant is not None else None
    diagnostics.report(UNKNOWN_ELEMENT, message, place, hint, severity=severity)
    return meant if is_missed else None


def line_of(element: etree._Element) -> int | None:
    """Return the line on which an element begins."""
    line = element.sourceline
    if line is None or line < _LINE_LIMIT:
        return line
    # From there on, libxml2 gives the line on which the next text ends, inside or after the element.
    text = element.text or ("" if len(element) else element.tail)
    return line - text.count("\n") if text else _line_before_texts(element, line)


def _line_before_texts(element: etree._Element, line: int) -> int:
    """Return the line of an element without text in or after it, computed from the line of the next text."""
    behind = 0
    for _ in range(_FAR):
        following = element[0] if len(element) else element.getnext()
        while following is None:
            parent = element.getparent()
            if parent is None:
                return line
            element = parent
            behind += (element.tail or "").count("\n")
            following = element.getnext()
        element = following
        text = element.text or ("" if len(element) else element.tail)
        if text:
            return (element.sourceline or line) - text.count("\n") - behind
    return line


_LINE_LIMIT = 0xFFFF
"""The first line number that libxml2 does not store: it has 16 bits."""
_FAR = 20  # consecutive elements without text; writers begin a new line, or write a number, earlier


def items_of(element: etree._Element) -> list[tuple[str, str]]:
    """Return the XML attributes of an element, in the order of the file.

    ``element.items()`` searches for each of them from the first one on; XPath lists all in one pass.
    """
    if len(element.attrib) < _MANY:
        return element.items()
    return [(str(text.attrname), str(text)) for text in element.xpath("@*")]


_MANY = 100  # attributes; below, XPath takes longer


class Ids(dict[str | None, int | None]):
    """Numbers of ids by their texts, each parsed once.

    None means that the text is not a plain number of 64 bits; ``unsigned`` reports what is wrong.
    """

    def __missing__(self, text: str | None) -> int | None:
        is_plain = text is not None and text.isdecimal() and text.isascii() and len(text) < 19
        number = self[text] = int(text) if text is not None and is_plain else None
        return number


def unsigned(
    element: etree._Element, key: str, diagnostics: Diagnostics, file: str | None, layer: Layer | None = None
) -> int | None:
    """Return the number that an attribute gives, or None after reporting that there is none."""
    text = element.get(key)
    line = line_of(element)
    where = layer.at(line) if layer is not None else Place(file, line)
    if text is None:
        diagnostics.report(MISSING_KEY, f"<{tag_of(element)}> has no attribute '{key}'", where)
        return None
    try:
        return parse_integer(text, UINT64)
    except ValueError as error:
        diagnostics.report(BAD_NUMBER, f"attribute '{key}' of <{tag_of(element)}>: {error}", where)
        return None
