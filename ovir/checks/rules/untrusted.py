"""Rules for the texts of untrusted files; `runs.py` has those for what a run of the model would take."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lxml import etree

from ovir.checks.rule import Context, rule
from ovir.core.element_types import ElementType
from ovir.core.shapes import Dimension, PartialShape
from ovir.diagnostics.codes import NAMED_PATH, SPELLING, UNSAFE_NAME, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.wording import plural, shortened
from ovir.ir.elements import line_of, tag_of
from ovir.ops import resolve
from ovir.ops.base.opsets import canonical_type

# --------------------------------------------------------------------------- texts


@rule(NAMED_PATH, for_untrusted=True)
def named_path(context: Context) -> Iterator[Diagnostic]:
    """Report paths, addresses, libraries and commands in attributes and in runtime information, each kind once.

    Converters of models noted the folders that they were called with: such a note is only a warning.
    """
    found: dict[str, list[tuple[etree._Element, str]]] = {}
    conversion = {element for tag in _CONVERSION for group in context.root.iter(tag) for element in group}
    for element, text in _values(context.root):
        if _MAY_BE_PATH.search(text) is None:
            continue
        for value in (text.strip(), *_QUOTED.findall(text)):
            kind = next((kind for kind, pattern in _PATHS.items() if pattern.search(value)), None)
            if kind == "a path" and element in conversion and _FOLDER.match(value):
                kind = _FOLDER_KIND
            if kind is not None:
                found.setdefault(kind, []).append((element, value))
                break
    for kind, places in found.items():
        element, value = places[0]
        more = f"; and {plural(len(places) - 1, 'more place')}" if len(places) > 1 else ""
        message = f"<{tag_of(element)}> names {kind}: '{shortened(value)}'{more}"
        hint = "a program that follows it reads or loads files that strangers have chosen; remove it"
        severity = Severity.WARNING if kind == _FOLDER_KIND else None
        yield diagnose(NAMED_PATH, message, Place(context.file, line_of(element)), hint=hint, severity=severity)


def _values(root: etree._Element) -> Iterator[tuple[etree._Element, str]]:
    """Yield the values in attributes of layers and in runtime information, and the types and versions of layers."""
    for layer in root.iter("layer"):
        yield layer, layer.get("type", "")
        yield layer, layer.get("version", "")
    for tag in ("data", "rt_info", "meta_data", "quantization_parameters"):
        for group in root.iter(tag):
            for element in group.iter(etree.Element):
                for key, value in element.attrib.items():
                    if key not in _NAMES:
                        yield element, str(value)
                if element.text:
                    yield element, element.text


_NAMES = frozenset({"name", "names", "variable_id"})
_CONVERSION = ("cli_parameters", "conversion_parameters")
_FOLDER_KIND = "a folder of its converter"
_FOLDER = re.compile(r"/(?!etc/|dev/|proc/|sys/|boot/|root/|var/)(?:(?!\.\.)[\w.+ -]+/)*[\w+ -]+/?$", re.ASCII)
_MAY_BE_PATH = re.compile(r"[/\\`]|\$\(|\.(?:so|dll|dylib|pyd|exe)\b|script:", re.IGNORECASE)
_QUOTED = re.compile(r"[\"']([^\"'\n]{3,1000})[\"']")
_FOLDERS = "home|Users|root|tmp|usr|etc|var|opt|mnt|media|dev|proc|sys|srv|boot|private|Volumes|workspace"
_PATHS = {
    "a library": re.compile(r"^[^\n]{1,1000}\.(?:so(?:\.\d+)*|dll|dylib|pyd|exe)$", re.IGNORECASE),
    "an address": re.compile(
        r"^(?:(?:[a-z][a-z0-9+.-]{1,20}://|file:|data:\w+/)\S+$|//[\w.\[\]:@-]+(?:/|$)|(?:java|vb)script:)",
        re.IGNORECASE,
    ),
    "a command": re.compile(r"\$\((?!\?)[^()\n]+\)?|(?<!`)`(?!`)[^`\n]+`(?!`)"),
    "a path": re.compile(
        rf"^(?:/(?:{_FOLDERS})/|~/|[A-Za-z]:[\\/]|\\\\\w)|^(?:\$\w+|\$\{{\w+\}}|%\w+%)[\\/]|(?:^|[\\/])\.\.[\\/]"
    ),
}


@rule(UNSAFE_NAME, for_untrusted=True)
def unsafe_name(context: Context) -> Iterator[Diagnostic]:
    """Report names with control characters or characters that change the direction of a text or are invisible."""
    found: list[tuple[etree._Element, str, str]] = []
    for element in context.root.iter(etree.Element):
        for key, value in element.attrib.items():
            text = str(value)
            if key in _NAME_KEYS and not (text.isascii() and text.isprintable()):
                unsafe = next((c for c in text if unicodedata.category(c) in _UNSAFE or c in _BLANK), None)
                if unsafe is not None:
                    found.append((element, str(key), unsafe))
    if found:
        element, key, character = found[0]
        kind = unicodedata.name(character, "a control character")
        more = f"; and {plural(len(found) - 1, 'more name')}" if len(found) > 1 else ""
        message = f"the attribute '{key}' of <{tag_of(element)}> has U+{ord(character):04X}, {kind}{more}"
        hint = "such a name looks like another one, or changes what a terminal shows"
        yield diagnose(UNSAFE_NAME, message, Place(context.file, line_of(element)), hint=hint)


@rule(SPELLING, for_untrusted=True)
def spelling(context: Context) -> Iterator[Diagnostic]:
    """Report numbers, types and element types that are not spelled as writers do, in one diagnostic at the first."""
    found = [
        (element, what, text)
        for element in context.root.iter(*_SPELLED)
        for what, text, is_usual in _spelled(element)
        if not is_usual
    ]
    if found:
        element, what, text = found[0]
        more = f"; and {plural(len(found) - 1, 'more place')}" if len(found) > 1 else ""
        message = f"the {what} of <{tag_of(element)}> is spelled {shortened(text)!r}{more}"
        hint = "readers interpret it differently; write it as OpenVINO does"
        yield diagnose(SPELLING, message, Place(context.file, line_of(element)), hint=hint)


_SPELLED = ("net", "layer", "port", "dim", "data", "edge", "input", "output")


def _spelled(element: etree._Element) -> Iterator[tuple[str, str, bool]]:
    """Yield the spelled values of an element: their kind, their text, and whether writers use this spelling."""
    tag = tag_of(element)
    usual = _of_operation(element.getparent()) if tag == "data" else _USUAL
    for key, text in element.attrib.items():
        if key in usual:
            yield f"attribute '{key}'", str(text), usual[str(key)](str(text)) is not None
    if tag == "dim":
        text = element.text or ""
        yield "text", text, _PLAIN.fullmatch(text) is not None
    elif tag == "layer":
        kind = element.get("type", "")
        yield "type", kind, canonical_type(kind) in (kind, None)
    elif tag == "net":
        version = element.get("version", "")
        yield "version", version, _PLAIN.fullmatch(version) is not None


def _of_operation(layer: etree._Element | None) -> Mapping[str, Callable[[str], object]]:
    """Return the test of the usual spelling for those attributes of a layer for which there is one."""
    cls = resolve(layer.get("type", ""), layer.get("version", "")) if layer is not None else None
    found = {spec.name: _OF_TYPES.get(spec.type) for spec in cls.attributes.values()} if cls is not None else {}
    return {name: usual for name, usual in found.items() if usual is not None}


_PLAIN = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_SIZE = r"(?:-1|\?|(?:0|[1-9][0-9]*)(?:\.\.(?:0|[1-9][0-9]*)?)?|\.\.(?:0|[1-9][0-9]*))"
_OF_TYPES: Mapping[Any, Callable[[str], object]] = {
    int: _PLAIN.fullmatch,
    tuple[int, ...]: re.compile(rf"({_PLAIN.pattern})(, ?({_PLAIN.pattern}))*|", re.ASCII).fullmatch,
    Dimension: re.compile(_SIZE, re.ASCII).fullmatch,
    PartialShape: re.compile(rf"{_SIZE}(, ?{_SIZE})*|\.\.\.|", re.ASCII).fullmatch,
    ElementType: re.compile(r"[a-z0-9]+", re.ASCII).fullmatch,
}
_USUAL = {
    **dict.fromkeys(("id", "from-layer", "from-port", "to-layer", "to-port"), _PLAIN.fullmatch),
    **dict.fromkeys(("external_port_id", "internal_layer_id", "axis"), _PLAIN.fullmatch),
    **dict.fromkeys(("start", "end", "stride", "part_size"), _PLAIN.fullmatch),
    "precision": re.compile(r"[A-Z0-9]+", re.ASCII).fullmatch,
}


_NAME_KEYS = frozenset({"name", "names", "type", "version", "output_names", "variable_id", "id"})
_UNSAFE = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_BLANK = frozenset(
    map(
        chr,
        [
            0x34F,
            0x115F,
            0x1160,
            0x17B4,
            0x17B5,
            0x2800,
            0x3164,
            0xFFA0,
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ],
    )
)
"""Letters and marks that show nothing: fillers, selectors of variants, the empty pattern of Braille."""
