"""Edits of the text of an .xml at the places of its elements; everything else stays as it is, byte by byte."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple
from xml.sax.saxutils import escape

from lxml import etree

from ovir.diagnostics.diagnostic import TextEdit


class _Span(NamedTuple):
    """The place of an element: its first byte, the end of its start tag, and its own end."""

    begin: int
    tag_end: int
    end: int


class XmlText:
    """The bytes of an .xml together with its elements."""

    def __init__(self, data: bytes, root: etree._Element) -> None:
        self._data = data
        self._root = root

    @cached_property
    def _begins(self) -> dict[etree._Element, int]:
        """Return the first byte of each element; nothing if the encoding hides the tags, as UTF-16 does."""
        begins = [match.start() for match in _START.finditer(self._data) if match[1]]
        elements = list(self._root.iter("*"))
        return dict(zip(elements, begins, strict=True)) if len(elements) == len(begins) else {}

    def _span(self, element: etree._Element) -> _Span:
        begin, depth, tag_end = self._begins[element], 0, 0
        for match in _TAG.finditer(self._data, begin):
            tag_end = tag_end or match.end()
            if match[1] is not None and not match[0].endswith(b"/>"):
                depth += -1 if match[1] else 1
            if depth == 0:
                break
        return _Span(begin, tag_end, match.end())

    def _without_space(self, end: int) -> int:
        """Return where the text before a place ends, without the white space between them."""
        begin = self._data.rfind(b">", 0, end) + 1
        return begin + len(self._data[begin:end].rstrip())

    def __contains__(self, element: object) -> bool:
        """Return whether the place of an element is known."""
        return element in self._begins

    def attribute(self, element: etree._Element, name: str, value: str) -> TextEdit:
        """Set an attribute to an escaped text; a new one comes last."""
        span = self._span(element)
        tag = self._data[span.begin : span.tag_end]
        text = _encoded(value.replace("'", "&apos;"))
        for match in _ATTRIBUTE.finditer(tag):
            if match[1] == name.encode():
                begin, end = match.span(2)
                return TextEdit(span.begin + begin + 1, span.begin + end - 1, text)
        place = span.begin + len(tag.rstrip(b"/> \t\r\n"))
        return TextEdit(place, place, b' %s="%s"' % (name.encode(), text))

    def removed(self, element: etree._Element) -> TextEdit:
        """Remove an element, with the white space before it."""
        span = self._span(element)
        return TextEdit(self._without_space(span.begin), span.end, b"")

    def children(self, element: etree._Element, tag: str, texts: Iterable[str]) -> list[TextEdit]:
        """Give an element other children of a tag, which hold nothing but a text; those that remain keep their place.

        Further ones follow, laid out like the last one.
        """
        span, wanted = self._span(element), list(texts)
        edits = []
        present = element.findall(tag)
        for child, text in zip(present, wanted, strict=False):
            if (child.text or "").strip() != text:
                inner = self._span(child)
                edits.append(TextEdit(inner.begin, inner.end, _simple(tag, text)))
        edits += [self.removed(child) for child in present[len(wanted) :]]
        if more := wanted[len(present) :]:
            last = self._span(present[-1]) if present else None
            begin = span.begin if last is None else last.begin
            before = self._data[self._without_space(begin) : begin]  # the line break and the indentation
            lines = b"".join((before if last else before + b"    ") + _simple(tag, text) for text in more)
            if last is not None:
                edits.append(TextEdit(last.end, last.end, lines))
            elif span.tag_end < span.end:
                edits.append(TextEdit(span.tag_end, span.tag_end, lines))
            else:
                name = str(element.tag).encode()
                start = self._without_space(span.tag_end - 2)
                edits.append(TextEdit(start, span.end, b">%s%s</%s>" % (lines, before, name)))
        return edits


_OTHER = rb"!--.*?-->|!\[CDATA\[.*?]]>|\?.*?\?>|![^\[>]*(?:\[.*?])?[^>]*>"
"""The rest of what begins as a tag, but is none, and may hold further signs ``<``."""
_START = re.compile(rb"<(?:%s|([^/]))" % _OTHER, re.DOTALL)
"""The beginning of an element."""
_TAG = re.compile(rb"""<(?:%s|(/?)(?:[^>"']++|"[^"]*+"|'[^']*+')++>)""" % _OTHER, re.DOTALL)
"""A tag, whose group is the slash of an end tag."""
_ATTRIBUTE = re.compile(rb"""([^\s="'<>/]+)\s*=\s*("[^"]*"|'[^']*')""")


def _simple(tag: str, text: str) -> bytes:
    return _encoded(f"<{tag}>{escape(text)}</{tag}>")


def _encoded(text: str) -> bytes:
    """Return a text in any encoding that extends ASCII."""
    return text.encode("ascii", "xmlcharrefreplace")
