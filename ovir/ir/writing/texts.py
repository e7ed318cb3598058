"""Parts of an .xml as texts: names and attributes, precisions, runtime information."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from lxml import etree

from ovir.core.element_types import ElementType
from ovir.diagnostics.codes import UNWRITABLE
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import WriteError
from ovir.graph.rt_info import RtElement, RtInfo
from ovir.ir.rt_info import RtInfoText, write_rt_info
from ovir.ops.base.attributes import split_names

_SPECIAL = re.compile(r"""[&<>"\x00-\x1f\ud800-\udfff\ufffe\uffff]""")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}


def escaped(text: str) -> str:
    """Return a text as the value of an XML attribute; WriteError for a character that no XML can hold."""
    return text if _SPECIAL.search(text) is None else _SPECIAL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    found = _ESCAPES.get(match[0])
    if found is None:
        message = f"{match.string!r} has the character U+{ord(match[0]):04X}, which XML cannot hold"
        raise WriteError(diagnose(UNWRITABLE, f"cannot save the model: {message}"))
    return found


def names_text(names: Collection[str]) -> str:
    """Return tensor names as one escaped text: sorted, joined by commas; commas within a name get a backslash."""
    if len(names) == 1 and (name := next(iter(names))) and "," not in name and "\\" not in name:
        return escaped(name)
    ordered = sorted(names)
    text = ",".join(name.replace(",", "\\,") for name in ordered)
    if ("\\" in text or "" in ordered) and split_names(text) != ordered:
        message = f"the tensor names {ordered} cannot be distinguished in a file: one is empty, or ends in a backslash"
        raise WriteError(diagnose(UNWRITABLE, f"cannot save the model: {message}"))
    return escaped(text)


_PRECISIONS = {"dynamic": "UNSPECIFIED", "boolean": "BOOL", "u1": "BIN", "f16": "FP16", "f32": "FP32", "f64": "FP64"}


def precision_text(element_type: ElementType) -> str:
    """Return the ``precision`` by which a port declares an element type."""
    return _PRECISIONS.get(element_type.name) or element_type.name.upper()


# --------------------------------------------------------------------------- runtime information

_FLAT = re.compile(r"""<rt_info>\s*((?:<[A-Za-z_][\w.-]*(?: [A-Za-z_][\w.-]*="[^"<>]*")*/>\s*)+)</rt_info>""")
"""An <rt_info>, as lxml writes it, of elements that have nothing but attributes."""
_TAG = re.compile("<[^>]*>")


def rt_info_lines(info: RtInfo | RtInfoText, depth: int) -> str:
    """Return the lines of an ``<rt_info>`` with so many tabs before it; empty if it has no content."""
    if isinstance(info, RtInfoText):
        if (found := _FLAT.fullmatch(info.text)) is not None:  # nearly all are so, and need not be parsed
            tags = [f"{tag[:-2]} />" for tag in _TAG.findall(found[1])]
            return _element_lines("<rt_info>", tags, "</rt_info>", depth)
        info = info()
    if len(info.elements) < 2:
        return ""
    if any(item.text.strip() or item.tail.strip() or item.tag.startswith("{") for item in info.elements):
        # Texts between elements must keep their place, and prefixes of namespaces their meaning.
        return "\t" * depth + etree.tostring(write_rt_info(info), encoding="unicode").strip() + "\n"
    return "".join(_nested_lines(info.elements, depth))


def _element_lines(start: str, inner: Sequence[str], end: str, depth: int) -> str:
    tabs = "\t" * depth
    return "".join((f"{tabs}{start}\n", *(f"{tabs}\t{line}\n" for line in inner), f"{tabs}{end}\n"))


def _nested_lines(elements: Sequence[RtElement], depth: int) -> Iterable[str]:
    open_tags: list[str] = []
    for number, item in enumerate(elements):
        while len(open_tags) > item.depth:
            yield "\t" * (depth + len(open_tags) - 1) + f"</{open_tags.pop()}>\n"
        attributes = "".join(f' {name}="{escaped(value)}"' for name, value in item.attributes)
        has_inner = number + 1 < len(elements) and elements[number + 1].depth > item.depth
        yield "\t" * (depth + item.depth) + f"<{item.tag}{attributes}" + (">\n" if has_inner else " />\n")
        if has_inner:
            open_tags.append(item.tag)
    while open_tags:
        yield "\t" * (depth + len(open_tags) - 1) + f"</{open_tags.pop()}>\n"
