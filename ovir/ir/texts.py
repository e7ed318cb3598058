"""The text of an .xml cut into its layers and edges, so that layers of equal text need to be read once.

Large models repeat a few blocks many times. Their layers differ in id, name, tensor names and in where the data of a
constant lies; all else, their *form*, is equal to the last character. Whatever is not written as OpenVINO writes it has
no form, and is read element by element.

Such a layer is not parsed but cut out of the document. So what differs must be the whole value of an attribute, and a
text that any attribute may hold; then the document is as well-formed as what is left of it, where another layer of the
form stands. Where that is not sure the document is read whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from lxml import etree

from ovir.graph.connections import Edge
from ovir.ir.elements import is_plain_number, line_of, xml_parser
from ovir.ir.port_maps import BODY_OPERATIONS


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
    """Its place among the layers, in ``Texts.layers`` as in ``Texts.elements``."""
    is_left_out: bool = False
    """Whether it is one of those that ``Texts.rest`` leaves out, as an earlier one has its form."""
    rt_info: str | None = None
    """The element <rt_info>, where it has one."""


@dataclass(frozen=True)
class Texts:
    """The layers of the outermost <layers>, those within others not among them, and the edges between them.

    None stands for what has no form, be it a layer or something else, and for edges that are not written one in a line.
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
        """The layers of the whole document, which is not parsed before that: here it may turn out to be ill-formed."""
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
    edges = None
    if end < begin < stop and text.count("<edges", end) == 1:
        edges = _edges(text[begin:stop], text.count("\n", 0, begin) + 1)
    if edges is None:
        rest.append(text[start:])
    else:
        rest += text[start:begin], "<edges>", "\n" * text.count("\n", begin, stop), text[stop:]
    whole = "".join(rest)
    if _ODD.search(whole, len("<?xml") if whole.startswith("<?xml") else 0) or _ENCODED.match(whole):
        return None
    if not _is_spelt_as_usual(whole):
        return None
    return Texts(layers, edges, whole, data) if _PLAIN.fullmatch("".join(names)) else None


def _is_spelt_as_usual(text: str) -> bool:
    """Whether each tag of layers and groups of them is found by its usual spelling."""
    begun, ended = text.count("<layer "), text.count("</layer>")
    groups, groups_ended = text.count("<layers>"), text.count("</layers>")
    has_others = text.count("<layer") > begun + groups or text.count("</layer") > ended + groups_ended
    return begun == ended and groups == groups_ended and not has_others


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

    ``forms`` numbers the forms. What holds for all layers of a form is asked of the first of them.
    """
    parts = piece.split('"', 8)
    if len(parts) < 9:
        return None
    before, number, id_key, name, name_key, kind, type_key, version, tail = parts
    offset = None
    if kind == "Const":
        head, key, rest = tail.partition(' offset="')
        digits, quote, rest = rest.partition('"')
        if is_plain_number(digits):
            offset = int(digits)
            tail = head + key + quote + rest
    front, *others = tail.split(' names="')  # what stands before the first name, which is nearly all
    names: list[str] = []
    behind_names: list[str] = []
    for other in others:
        tensor_names, _, rest = other.partition('"')
        names.append(tensor_names)
        behind_names.append(rest)
    if not is_plain_number(number) or "&" in name or (names and "&" in "".join(names)):
        return None
    before_info = info = info_end = ""
    fixed_info: list[str] = []
    behind_info = front
    if "<rt_info>" in front:
        before_info, _, behind_info = front.partition("<rt_info>")
        info, info_end, behind_info = behind_info.partition("</rt_info>")
        fixed_info, values = _without_values(info)  # on which nothing depends
        if _PLAIN_TEXT.fullmatch(values) is None:
            return None
    tags = before, id_key, name_key, type_key
    form = (*tags, kind, version, offset is None, before_info, *fixed_info, info_end, behind_info, *behind_names)
    index = forms.get(form)
    is_left_out = index is not None
    if index is None:
        is_layer = before.lstrip(_BLANKS) == "<layer id=" and tags[1:] == (" name=", " type=", " version=")
        if not is_layer or kind.lower() in _WITH_BODIES or "'" in piece or not _is_usual(front, behind_names):
            return None
        if any(part[-1:] in _OPENING for part in fixed_info[:-1]):
            return None
        if offset is not None and not _has_offset(front, info):
            return None
        index = forms[form] = len(forms)
    line += before.count("\n")
    rt_info = f"<rt_info>{info}</rt_info>" if info_end else None
    fields = index, int(number), name, names, offset, line, position, is_left_out, rt_info
    return tuple.__new__(LayerText, fields)  # a third of the time of LayerText(...)


def _without_values(info: str) -> tuple[list[str], str]:
    """What stands in an <rt_info> around the values of its attributes, and these in one."""
    first, *others = info.split('" value="')
    fixed, values = [first], ""
    for other in others:
        value, _, rest = other.partition('"')
        fixed.append(rest)
        values += value
    return fixed, values


def _is_usual(front: str, behind_names: list[str]) -> bool:
    """Whether names of tensors that have been cut out of a layer are attributes of its output ports."""
    parts = front, *behind_names
    if (
        not front.startswith(">")
        or front.count("<rt_info") > 1
        or front.count("<rt_info>") != front.count("</rt_info>")
    ):
        return False
    if any("<layer" in part for part in parts) or any("<rt_info" in part for part in behind_names):
        return False
    tags = [part[part.rfind("<") :] for part in parts[:-1]]
    if not all(tag.startswith("<port ") and tag.count('"') % 2 == 0 for tag in tags):
        return False
    return not behind_names or ("<output>" in front and not any("names=" in part for part in parts))


def _has_offset(front: str, info: str) -> bool:
    """Whether the offset that has been cut out of a constant is an attribute of its <data>."""
    head, _, _ = front.partition(' offset="')
    return " offset=" not in info and head.count("<") == 1 and "<data " in head and head.count('"') % 2 == 0


_END = "</layer>"
_BLANKS = " \t\r\n"
_WITH_BODIES = {kind.lower() for kind in BODY_OPERATIONS}  # a type may be written in any case


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
_PLAIN_TEXT = re.compile(r'[^"&<>\x00-\x1f\ufffe\uffff]*')  # the same, outside of tags, too
_OPENING = ("", "=", " ", "\t", "\n", "\r")  # what may stand before the quote that begins a value
_ODD = re.compile("<!|<[?]|xmlns|xml:")
_EDGE = re.compile(
    r'\r?\n[ \t]*<edge from-layer="(\d{1,18})" from-port="(\d{1,18})" to-layer="(\d{1,18})" to-port="(\d{1,18})" ?/>',
    re.ASCII,
)
_EDGES = re.compile(rf"<edges>(?:{_EDGE.pattern})*[ \t\r\n]*", re.ASCII)
