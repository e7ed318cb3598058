"""The text of an .xml cut into its layers and edges, so that layers of equal text need to be read once.

Large models repeat a few blocks many times. Their layers differ in id, name, tensor names and in where the data of a
constant lies; all else, their *form*, is equal to the last character. Whatever is not written as OpenVINO writes it has
no form, and is read element by element.

A document is well-formed if what is left of it without such layers is: another stands there for each, and what differs
can be in any attribute.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from lxml import etree

from ovir.ir.elements import line_of, xml_parser
from ovir.ir.port_maps import BODY_OPERATIONS
from ovir.model import Edge


class LayerText(NamedTuple):
    """A layer as it stands in the file."""

    form: int
    """Equal for layers that differ only in what follows."""
    id: int
    name: str
    names: Sequence[str]
    """What the attributes ``names`` of its output ports say, in order."""
    offset: int | None
    """Of a constant."""
    line: int
    position: int
    """Its place among the layers."""
    is_left_out: bool = False
    """Whether it is one of those that ``Texts.rest`` leaves out, as an earlier one has its form."""
    rt_info: str | None = None


@dataclass(frozen=True)
class Texts:
    """The layers of the outermost <layers>, those within others not among them, and the edges between them.

    None stands for a layer that has no form, and for edges that are not written one in a line.
    """

    layers: list[LayerText | None]
    edges: list[Edge] | None
    rest: str
    """The document without the edges, and without the layers that are left out; all else is on its line."""
    data: bytes
    """The whole of it."""

    def joined(self, group: etree._Element) -> Iterator[tuple[LayerText | None, Any]]:
        """The layers with their elements in ``group``, which is made of what is left; None for those left out."""
        elements = iter(group)
        for text in self.layers:
            yield text, None if text is not None and text.is_left_out else next(elements)

    def fit(self, root: etree._Element) -> bool:
        """Whether the document has its layers and edges, and no others, where they were thought to be."""
        groups, edge_groups = root.findall("layers"), root.findall("edges")
        if len(groups) != 1 or len(edge_groups) != 1 or (self.edges is not None and len(edge_groups[0])):
            return False
        left = [text for text in self.layers if text is None or not text.is_left_out]
        return len(left) == len(groups[0]) and all(
            item.tag == "layer" and (text is None or (item.get("name"), line_of(item)) == (text.name, text.line))
            for text, item in zip(left, groups[0], strict=True)
        )

    @cached_property
    def elements(self) -> list[etree._Element]:
        """The layers of the whole document, which is not parsed before that."""
        return etree.fromstring(self.data, xml_parser("utf-8")).findall("layers/layer")


def cut(data: bytes) -> Texts | None:
    """The parts of a document; None where something may be less than the tag that it seems."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    start, end = text.find("<layers>"), text.rfind("</layers>")
    if not 0 <= start < end:
        return None
    start += len("<layers>")
    layers: list[LayerText | None] = []
    names: list[str] = []
    rest = [text[:start]]
    forms: dict[tuple[object, ...], int] = {}
    left_out = 0  # lines
    line = text.count("\n", 0, start) + 1
    for piece in _pieces(text[start:end]):
        lines = piece.count("\n")
        layer = _layer(piece, line, len(layers), forms)
        layers.append(layer)
        line += lines
        start += len(piece) + len(_END)
        if layer is not None and layer.is_left_out:
            left_out += lines
            names += layer.name, *layer.names
            continue
        rest += "\n" * left_out, piece, _END
        left_out = 0
    rest.append("\n" * left_out)
    begin, stop = text.find("<edges>", end), text.rfind("</edges>")
    edges = _edges(text[begin:stop], text.count("\n", 0, begin) + 1) if end < begin < stop else None
    if edges is None:
        rest.append(text[start:])
    else:
        rest += text[start:begin], "<edges>", "\n" * text.count("\n", begin, stop), text[stop:]
    whole = "".join(rest)
    if _ODD.search(whole, len("<?xml") if whole.startswith("<?xml") else 0) or _ENCODED.match(whole):
        return None
    return Texts(layers, edges, whole, data) if _PLAIN.fullmatch("".join(names)) else None


def _pieces(text: str) -> Iterable[str]:
    """The text of each layer up to its end tag, with what stands before it."""
    parts = text.split(_END)[:-1]
    return parts if "<layers>" not in text else _whole(parts)


def _whole(parts: list[str]) -> Iterator[str]:
    """The same where layers hold others, whose ends have cut the text, too."""
    begun: list[str] = []
    depth = 0
    for part in parts:
        depth += part.count("<layer ") - 1
        begun.append(part)
        if depth <= 0:
            yield _END.join(begun)
            begun = []
            depth = 0


def _layer(piece: str, line: int, position: int, forms: dict[tuple[object, ...], int]) -> LayerText | None:
    """The layer whose text up to its end tag is ``piece``; None where it has no form.

    What may differ is cut out of the text; what is left is its form. Each is looked at once, and numbered in ``forms``.
    """
    parts = piece.split('"', 8)
    if len(parts) < 9:
        return None
    before, number, id_key, name, name_key, kind, type_key, version, tail = parts
    offset = None
    if kind == "Const":
        head, key, behind = tail.partition(' offset="')
        digits, quote, behind = behind.partition('"')
        if _is_number(digits):
            offset = int(digits)
            tail = head + key + quote + behind
    first, *others = tail.split(' names="')
    names: list[str] = []
    behind_names: list[str] = []
    for other in others:
        tensor_names, _, behind = other.partition('"')
        names.append(tensor_names)
        behind_names.append(behind)
    rt_info = head = inside = end = ""
    if "<rt_info" in first:
        head, rt_info, first = first.partition("<rt_info>")
        inside, end, first = first.partition("</rt_info>")
        rt_info += inside + end
        inside = _VALUE.sub(' value=""', inside)  # nothing depends on it
    if not _is_number(number) or "&" in name or (names and "&" in "".join(names)):
        return None
    tags = before, id_key, name_key, type_key
    form = (*tags, kind, version, offset is None, head, inside, end, first, *behind_names)
    index = forms.get(form)
    is_left_out = index is not None
    if index is None:
        is_layer = before.lstrip(_BLANKS) == "<layer id=" and tags[1:] == (" name=", " type=", " version=")
        if not is_layer or kind in BODY_OPERATIONS or "'" in piece or (rt_info and not end):
            return None
        if not _is_usual(head + inside + first, behind_names, offset is not None):
            return None
        index = forms[form] = len(forms)
    line += before.count("\n")
    fields = index, int(number), name, names, offset, line, position, is_left_out, rt_info or None
    return tuple.__new__(LayerText, fields)  # a third of the time of LayerText(...)


def _is_usual(first: str, others: list[str], has_offset: bool) -> bool:
    """Whether all that was cut out of a layer is what it seemed to be; ``others`` is what follows names of tensors."""
    parts = first, *others
    if not first.startswith(">") or any(tag in part for tag in ("<layer", "<rt_info") for part in parts):
        return False
    if has_offset:
        head, _, _ = first.partition(' offset="')
        if head.count("<") > 1 or "<data " not in head:
            return False
    in_ports = all(part.startswith("<port ", part.rfind("<")) for part in parts[:-1])
    return not others or ("<output>" in first and in_ports and not any("names=" in part for part in parts))


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) < 19


_END = "</layer>"
_BLANKS = " \t\r\n"


def _edges(text: str, line: int) -> list[Edge] | None:
    """What stands between <edges>, which begins on ``line``, and </edges>."""
    if _EDGES.fullmatch(text) is None:
        return None
    found = _EDGE.findall(text)
    new = tuple.__new__  # a third of the time of Edge(...)
    return [
        new(Edge, (int(layer), int(port), int(to_layer), int(to_port), number))
        for number, (layer, port, to_layer, to_port) in enumerate(found, line + 1)
    ]


_ENCODED = re.compile(r"""<\?xml[^>]*encoding\s*=\s*["'](?!utf-8["'])""", re.IGNORECASE)
_PLAIN = re.compile(r'[^"&<\x00-\x1f\ufffe\uffff]*')  # what is the value of an attribute, character by character
_VALUE = re.compile(rf' value="{_PLAIN.pattern}"')
_ODD = re.compile("<!|<[?]|xmlns|xml:")
_EDGE = re.compile(
    r'\r?\n[ \t]*<edge from-layer="(\d{1,18})" from-port="(\d{1,18})" to-layer="(\d{1,18})" to-port="(\d{1,18})" ?/>',
    re.ASCII,
)
_EDGES = re.compile(rf"<edges>(?:{_EDGE.pattern})*[ \t\r\n]*", re.ASCII)
