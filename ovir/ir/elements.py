"""Elements of XML: their lines, attributes and runtime information."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lxml import etree

from ovir.core.shapes import UINT64, parse_integer
from ovir.diagnostics.codes import BAD_NUMBER, MISSING_KEY, REPEATED_ELEMENT, UNKNOWN_ELEMENT, Severity
from ovir.diagnostics.diagnostic import Place
from ovir.diagnostics.errors import Diagnostics
from ovir.diagnostics.wording import closest
from ovir.graph.layers import Layer
from ovir.graph.rt_info import NO_RT_INFO, RtElement, RtInfo


def xml_parser(encoding: str | None) -> etree.XMLParser[etree._Element]:
    """Return a parser that neither expands entities nor accesses the network."""
    options = {**SAFE, "huge_tree": True, "remove_comments": True, "remove_pis": True}
    parser: etree.XMLParser[etree._Element] = etree.XMLParser(encoding=encoding, **options)
    return parser


SAFE: dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False}


def tag_of(element: etree._Element) -> str:
    return str(element.tag)


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
    after = 0
    for _ in range(_FAR):
        following = element[0] if len(element) else element.getnext()
        while following is None:
            parent = element.getparent()
            if parent is None:
                return line
            element = parent
            after += (element.tail or "").count("\n")
            following = element.getnext()
        element = following
        text = element.text or ("" if len(element) else element.tail)
        if text:
            return (element.sourceline or line) - text.count("\n") - after
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

    None means that the text is not a plain number of 64 bits; ``ElementReader.unsigned`` reports what is wrong.
    """

    def __missing__(self, text: str | None) -> int | None:
        is_plain = text is not None and text.isdecimal() and text.isascii() and len(text) < 19
        number = self[text] = int(text) if text is not None and is_plain else None
        return number

    def expect(self, count: int) -> None:
        """Add the ids of so many layers in advance: nearly all writers number them from 0 on."""
        self.update(zip(map(str, range(count)), range(count), strict=True))


class ElementReader:
    """Reads elements of one file, and reports their faults."""

    def __init__(self, file: str | None, diagnostics: Diagnostics) -> None:
        self.file = file
        self.diagnostics = diagnostics

    def at(self, element: etree._Element, layer: Layer | None = None) -> Place:
        """Return the place of an element, which may be part of a layer."""
        line = line_of(element)
        return Place(self.file, line) if layer is None else layer.at(line)

    def unsigned(self, element: etree._Element, key: str, layer: Layer | None = None) -> int | None:
        """Return the number that an attribute gives, or None after reporting that there is none."""
        text = element.get(key)
        if text is None:
            message = f"<{tag_of(element)}> has no attribute '{key}'"
            self.diagnostics.report(MISSING_KEY, message, self.at(element, layer))
            return None
        try:
            return parse_integer(text, UINT64)
        except ValueError as error:
            message = f"attribute '{key}' of <{tag_of(element)}>: {error}"
            self.diagnostics.report(BAD_NUMBER, message, self.at(element, layer))
            return None

    def read_as(
        self,
        element: etree._Element,
        wanted: str,
        known: Sequence[str],
        missed: Collection[str],
        layer: Layer | None = None,
    ) -> str | None:
        """Report an element that is not the ``wanted`` one; return the tag among ``missed`` that it misspells.

        That is an error, because OpenVINO ignores the element. Otherwise return None and report a warning.
        """
        meant = closest(tag_of(element), known)
        is_missed = meant in missed
        message = f"<{tag_of(element)}> is not {wanted}" + ("" if is_missed else "; it is ignored")
        severity = Severity.ERROR if is_missed else None
        hint = f"did you mean <{meant}>?" if meant is not None else None
        self.diagnostics.report(UNKNOWN_ELEMENT, message, self.at(element, layer), hint, severity=severity)
        return meant if is_missed else None

    def report_repeated(self, elements: Iterable[etree._Element], layer: Layer | None = None) -> None:
        """Report elements that may occur only once; OpenVINO and ovir ignore the others."""
        where = "" if layer is None else " in one layer"
        for element in elements:
            message = f"a second <{tag_of(element)}>{where}; it is ignored"
            self.diagnostics.report(REPEATED_ELEMENT, message, self.at(element, layer))


OLD_KEYS = {"cli_parameters": "conversion_parameters", "quantization_parameters": "optimization"}
"""Keys in files of version 10, and their names today."""


def read_rt_info(element: etree._Element) -> RtInfo:
    """Return the data of an ``<rt_info>``."""
    found: list[RtElement] = []
    depth = 0
    for event, item in etree.iterwalk(element, events=("start", "end")):
        if event == "end":
            depth -= 1
            continue
        tail = (item.tail or "") if depth else ""
        found.append(RtElement(depth, str(item.tag), tuple(items_of(item)), item.text or "", tail))
        depth += 1
    return RtInfo(tuple(found))


def read_model_info(net: etree._Element) -> RtInfo:
    """Return the runtime information of a model: its ``<rt_info>``, or the elements in its place before version 11.

    That is a ``<meta_data>`` and a ``<quantization_parameters>`` next to it, which becomes an entry of the former. A
    text in it becomes a ``value`` without line breaks, as when OpenVINO reads it.
    """
    info, parameters = net.find("rt_info"), net.find("quantization_parameters")
    if info is not None or parameters is None:
        info = net.find("meta_data") if info is None else info
        return NO_RT_INFO if info is None else read_rt_info(info)
    meta = net.find("meta_data")
    head = (RtElement(0, "meta_data"),) if meta is None else read_rt_info(meta).elements
    entries = [item._replace(depth=item.depth + 1) for item in read_rt_info(parameters).elements]
    for i, item in enumerate(entries):
        if item.text.strip() and not item.attributes:
            entries[i] = item._replace(attributes=(("value", item.text.replace("\n", "")),), text="")
    return RtInfo((*head, *entries))


@dataclass(frozen=True, slots=True)
class RtInfoText:
    """The text of an ``<rt_info>`` as lxml writes it, which is parsed when it is called."""

    text: str

    @classmethod
    def of(cls, element: etree._Element) -> RtInfoText:
        return cls(etree.tostring(element, encoding="unicode", with_tail=False))

    def __call__(self) -> RtInfo:
        return read_rt_info(etree.fromstring(self.text, xml_parser(None)))


def write_rt_info(info: RtInfo) -> etree._Element:
    """Return the element from which ``read_rt_info`` reads ``info``."""
    open_elements: list[etree._Element] = []
    for item in info.elements:
        attributes = dict(item.attributes)
        del open_elements[item.depth :]
        if open_elements:
            element = etree.SubElement(open_elements[-1], item.tag, attributes)
        else:
            element = etree.Element(item.tag, attributes)
        element.text, element.tail = item.text or None, item.tail or None
        open_elements.append(element)
    return open_elements[0] if open_elements else etree.Element("rt_info")
