"""The texts of an untrusted .xml: paths, names that mislead, and spellings that readers take for different things."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ovir.core.element_types import ElementType
from ovir.core.shapes import Dimension, PartialShape
from ovir.diagnostics.codes import NAMED_PATH, SPELLING, UNSAFE_NAME, Code, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.wording import plural, shortened
from ovir.ops import resolve
from ovir.ops.base.opsets import canonical_type

GROUPS = frozenset({"data", "rt_info", "meta_data", "quantization_parameters"})
"""Tags of elements in which any attribute and text is a value."""


class Where(NamedTuple):
    """The place of a text."""

    tag: str
    line: int
    in_group: bool
    """Whether it is in one of ``GROUPS``."""
    parent: str = ""
    """The tag of the element around."""
    layer: tuple[str, str] = ("", "")
    """The type and the version of the layer of a <data>."""


class Texts:
    """Collects the faults of texts. Each kind of fault becomes one diagnostic, at its first place."""

    def __init__(self) -> None:
        self._found: dict[tuple[Code, str], list[tuple[Where, str]]] = {}

    def look_at_element(self, attributes: Mapping[str, str], where: Where) -> None:
        """Look at the attributes of an element."""
        usual = _usual_in_data(*where.layer) if where.tag == "data" else _USUAL.get(where.tag, {})
        for key, text in attributes.items():
            if key in usual and usual[key](text) is None:
                self._add_spelling(f"attribute '{key}'", text, where)
            if text.isalnum() and text.isascii():
                continue
            if (where.in_group and key not in _NAMES) or (where.tag == "layer" and key in ("type", "version")):
                self._look_for_path(text, where)
            if key in _NAME_KEYS and (unsafe := unsafe_character(text)) is not None:
                self._add(UNSAFE_NAME, "", where, f"the attribute '{key}' of <{where.tag}> has {unsafe}")

    def look_at_text(self, text: str, where: Where) -> None:
        """Look at a text between two tags, or at the missing one of a size."""
        if where.tag == "dim" and _PLAIN.fullmatch(text) is None:
            self._add_spelling("text", text.strip(), where)
        if where.in_group:
            self._look_for_path(text, where)

    def diagnostics(self, file: str) -> Iterator[Diagnostic]:
        """Yield the diagnostics."""
        for (code, kind), places in self._found.items():
            where, message = places[0]
            more = f"; and {plural(len(places) - 1, 'other text')}" if len(places) > 1 else ""
            severity = Severity.WARNING if kind == _FOLDER_KIND else None
            place = Place(file, where.line)
            yield diagnose(code, f"{message}{more}", place, hint=_HINTS[code], severity=severity)

    def _add(self, code: Code, kind: str, where: Where, message: str) -> None:
        self._found.setdefault((code, kind), []).append((where, message))

    def _add_spelling(self, what: str, text: str, where: Where) -> None:
        self._add(SPELLING, "", where, f"the {what} of <{where.tag}> is spelled {shortened(text)!r}")

    def _look_for_path(self, text: str, where: Where) -> None:
        """Look for paths, addresses, libraries and commands in a value.

        Converters of models noted the folders that they were called with: such a note is only a warning.
        """
        if _MAY_BE_PATH.search(text) is None:
            return
        for value in (text.strip(), *_QUOTED.findall(text)):
            kind = next((kind for kind, pattern in _PATHS.items() if pattern.search(value)), None)
            if kind == "an address" and where.tag != "data" and _LINK.match(value):
                continue  # converters copy links to documentation; no reader opens them
            if kind == "a path" and where.parent in _CONVERSION and _FOLDER.match(value):
                kind = _FOLDER_KIND
            if kind is not None:
                self._add(NAMED_PATH, kind, where, f"<{where.tag}> names {kind}: '{shortened(value)}'")
                break


_HINTS = {
    NAMED_PATH: "a program that follows it reads or loads files that an untrusted file has chosen; remove it",
    UNSAFE_NAME: "such a name looks like another one, or changes what a terminal shows",
    SPELLING: "readers interpret it differently; write it as OpenVINO does",
}

# --------------------------------------------------------------------------- paths

_NAMES = frozenset({"name", "names", "variable_id"})
_CONVERSION = ("cli_parameters", "conversion_parameters")
_FOLDER_KIND = "a folder of its converter"
_FOLDER = re.compile(r"/(?!etc/|dev/|proc/|sys/|boot/|root/|var/)(?:(?!\.\.)[\w.+ -]+/)*[\w+ -]+/?$", re.ASCII)
_LINK = re.compile(r"https?://[\w.-]+(?::\d+)?(?:[/?#]\S*)?$", re.ASCII | re.IGNORECASE)
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

# --------------------------------------------------------------------------- names

_NAME_KEYS = frozenset({"name", "names", "type", "version", "output_names", "variable_id", "id"})
_UNSAFE = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_FILLERS = (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0)
_BLANK = frozenset(map(chr, (*_FILLERS, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Letters and marks that show nothing: fillers, selectors of variants, the empty pattern of Braille."""


def unsafe_character(name: str) -> str | None:
    """Return the first character of a name that is invisible or that a terminal obeys, in words; None without one."""
    if name.isprintable() and name.isascii():
        return None
    for character in name:
        if unicodedata.category(character) in _UNSAFE or character in _BLANK:
            return f"U+{ord(character):04X}, {unicodedata.name(character, 'a control character')}"
    return None


# --------------------------------------------------------------------------- spellings


@lru_cache(512)
def _usual_in_data(kind: str, version: str) -> Mapping[str, Callable[[str], object]]:
    cls = resolve(kind, version)
    usual_values = {spec.name: _OF_TYPES.get(spec.type) for spec in cls.attributes.values()} if cls is not None else {}
    return {name: usual for name, usual in usual_values.items() if usual is not None}


def _as_written(kind: str) -> str | None:
    """Return the type of a layer if it is spelled as writers do."""
    return kind if canonical_type(kind) in (kind, None) else None


_PLAIN = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_SIZE = r"(?:-1|\?|(?:0|[1-9][0-9]*)(?:\.\.(?:0|[1-9][0-9]*)?)?|\.\.(?:0|[1-9][0-9]*))"
_OF_TYPES: Mapping[Any, Callable[[str], object]] = {
    int: _PLAIN.fullmatch,
    tuple[int, ...]: re.compile(rf"({_PLAIN.pattern})(, ?({_PLAIN.pattern}))*|", re.ASCII).fullmatch,
    Dimension: re.compile(_SIZE, re.ASCII).fullmatch,
    PartialShape: re.compile(rf"{_SIZE}(, ?{_SIZE})*|\.\.\.|", re.ASCII).fullmatch,
    ElementType: re.compile(r"[a-z0-9]+", re.ASCII).fullmatch,
}
_NUMBERS = {
    **dict.fromkeys(("id", "from-layer", "from-port", "to-layer", "to-port", "axis"), _PLAIN.fullmatch),
    **dict.fromkeys(("external_port_id", "internal_layer_id", "start", "end", "stride", "part_size"), _PLAIN.fullmatch),
    "precision": re.compile(r"[A-Z0-9]+", re.ASCII).fullmatch,
}
_USUAL: Mapping[str, Mapping[str, Callable[[str], object]]] = {
    **dict.fromkeys(("port", "dim", "edge", "input", "output"), _NUMBERS),
    "layer": {**_NUMBERS, "type": _as_written},
    "net": {**_NUMBERS, "version": _PLAIN.fullmatch},
}
