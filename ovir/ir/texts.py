"""The text of an .xml cut into its layers and edges, so that layers of equal text need to be read once.

Large models repeat a few blocks many times. Their layers differ in id, name, tensor names and in where the data of a
constant lies; all else, their *form*, is equal to the last character. The parser has found the whole document to be
well-formed; here it is only found again where its parts begin. Whatever is not written as OpenVINO writes it has no
form, and is read element by element.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ovir.model import Edge


class LayerText(NamedTuple):
    """A layer as it stands in the file."""

    form: tuple[str, ...]
    """Equal for layers that differ only in what follows."""
    id: int
    name: str
    names: list[str]
    """What the attributes ``names`` of its output ports say, in order."""
    offset: int | None
    """Of a constant."""
    line: int


@dataclass(frozen=True)
class Texts:
    """The layers of the outermost <layers>, those within others not among them, and the edges between them.

    None stands for a layer that has no form, and for edges that are not written one in a line.
    """

    layers: list[LayerText | None]
    edges: list[Edge] | None


def cut(data: bytes) -> Texts | None:
    """The parts of a well-formed document; None where a tag may be less than it seems, or a character another."""
    if b"<!" in data or data.count(b"<?") > data.startswith(b"<?xml") or _ENCODED.match(data):
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    start, end = text.find("<layers>"), text.rfind("</layers>")
    if not 0 <= start < end:
        return None
    layers = list(_layers(text[start + len("<layers>") : end], text.count("\n", 0, start) + 1))
    begin, stop = text.find("<edges>", end), text.rfind("</edges>")
    edges = _edges(text[begin:stop], text.count("\n", 0, begin) + 1) if begin >= 0 else None
    return Texts(layers, edges)


def _layers(text: str, line: int) -> Iterator[LayerText | None]:
    """What stands between <layers>, which begins on ``line``, and </layers>."""
    *pieces, _ = text.split("</layer>")
    depth = 0  # of layers within layers, whose ends cut the text, too
    for piece in pieces:
        opened = piece.count("<layer ")
        if depth == 0 and opened == 1:
            yield _layer(piece, line)
        else:
            depth += opened - 1
            if depth == 0:
                yield None
        line += piece.count("\n")


def _layer(piece: str, line: int) -> LayerText | None:
    match = _LAYER.match(piece)
    if match is None or "'" in piece:
        return None
    number, name, kind, version, data = match.groups()
    rest = piece[match.end() :]
    if "<data" in rest:
        return None
    offset = None
    if kind == "Const" and data is not None and (found := _OFFSET.search(data)) is not None:
        offset = int(found[1])
        data = data[: found.start(1)] + data[found.end(1) :]
    if "<rt_info" in rest:
        rest = _VALUE.sub("", rest)  # it is kept, and nothing depends on it
    head, tag, tail = rest.partition("<output>")
    names: list[str] = []
    if "names=" in tail:
        names = _NAMES.findall(tail)
        tail = _NAMES.sub("", tail)
    form = kind, version, data or "", head, tag, tail
    return LayerText(form, int(number), name, names, offset, line + piece.count("\n", 0, match.start(1)))


def _edges(text: str, line: int) -> list[Edge] | None:
    """What stands between <edges>, which begins on ``line``, and </edges>."""
    found = _EDGE.findall(text)
    if text.count("<") != len(found) + 1 or text.count("\n") != len(found) + 1:
        return None
    return [
        Edge(int(layer), int(port), int(to_layer), int(to_port), number)
        for number, (layer, port, to_layer, to_port) in enumerate(found, line + 1)
    ]


_ENCODED = re.compile(rb"""<\?xml[^>]*encoding\s*=\s*["'](?!utf-8["'])""", re.IGNORECASE)
_PLAIN = r'([^"&<\n\t\r]*)'  # what an attribute's value is, character by character
_LAYER = re.compile(
    rf'\s*<layer id="(\d{{1,18}})" name="{_PLAIN}" type="{_PLAIN}" version="{_PLAIN}">\s*(?:<data ([^<>]*)/>)?',
    re.ASCII,
)
_OFFSET = re.compile(r'(?:^|\s)offset="(\d{1,18})"', re.ASCII)
_NAMES = re.compile(rf'(?<= names="){_PLAIN}(?=")')
_VALUE = re.compile(r'(?<= value=")[^"]*')
_EDGE = re.compile(
    r'\n[ \t]*<edge from-layer="(\d{1,18})" from-port="(\d{1,18})" to-layer="(\d{1,18})" to-port="(\d{1,18})" ?/>',
    re.ASCII,
)
