"""Rules for the texts of files from strangers; `runs.py` has those for what a run of the model would take."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from lxml import etree

from ovir.checks.rule import Context, rule
from ovir.diagnostics.codes import NAMED_PATH, UNSAFE_NAME
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.wording import plural, shortened
from ovir.ir.elements import line_of, tag_of

# --------------------------------------------------------------------------- texts


@rule(NAMED_PATH, for_strangers=True)
def named_path(context: Context) -> Iterator[Diagnostic]:
    """Report paths, addresses and libraries in attributes and in runtime information, each kind once."""
    found: dict[str, list[tuple[etree._Element, str]]] = {}
    for element, text in _values(context.root):
        if _MAY_BE_PATH.search(text) is None:
            continue
        for value in (text.strip(), *_QUOTED.findall(text)):
            kind = next((kind for kind, pattern in _PATHS.items() if pattern.search(value)), None)
            if kind is not None:
                found.setdefault(kind, []).append((element, value))
                break
    for kind, places in found.items():
        element, value = places[0]
        more = f"; and {plural(len(places) - 1, 'more place')}" if len(places) > 1 else ""
        message = f"<{tag_of(element)}> names {kind}: '{shortened(value)}'{more}"
        hint = "a program that obeys it reads or loads what strangers have chosen; remove it"
        yield diagnose(NAMED_PATH, message, Place(context.file, line_of(element)), hint=hint)


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
_MAY_BE_PATH = re.compile(r"[/\\]|\.(?:so|dll|dylib|pyd|exe)\b|script:", re.IGNORECASE)
_QUOTED = re.compile(r"[\"']([^\"'\n]{3,1000})[\"']")
_FOLDERS = "home|Users|root|tmp|usr|etc|var|opt|mnt|media|dev|proc|sys|srv|boot|private|Volumes|workspace"
_PATHS = {
    "a library": re.compile(r"^[^\n]{1,1000}\.(?:so(?:\.\d+)*|dll|dylib|pyd|exe)$", re.IGNORECASE),
    "an address": re.compile(
        r"^(?:(?:[a-z][a-z0-9+.-]{1,20}://|file:|data:\w+/)\S+$|(?:java|vb)script:)", re.IGNORECASE
    ),
    "a path": re.compile(
        rf"^(?:/(?:{_FOLDERS})/|~/|[A-Za-z]:[\\/]|\\\\\w)|^(?:\$\w+|\$\{{\w+\}}|%\w+%)[\\/]|(?:^|[\\/])\.\.[\\/]"
    ),
}


@rule(UNSAFE_NAME, for_strangers=True)
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
