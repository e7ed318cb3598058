"""Patterns of PCRE2, which the operations hold, for the package ``regex``."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, islice
from typing import Any

import numpy as np

from ovir.diagnostics.errors import OperatorError, require_packages
from ovir.diagnostics.kernel_warnings import report
from ovir.diagnostics.wording import shortened
from ovir.tokenizers.pcre2 import NoPattern, translated

_NEW_IN_UNICODE_18 = (
    "558 58B-58C 5C8-5C9 B53-B54 1ADE-1ADF 1AEC-1AF0 208F 209D-209F 20C2-20C4 2E60-2E63 A7DD A7E2 AB6C-AB6D"
)
_NEW_BEYOND_FFFF = (
    "107BB-107BF 10EC9-10ECF 10ED9-10EEE 10EF0-10EF9 11B0A 11DF0-11DF1 1246F 12475-1247F 12550-12686 "
    "18CD6-18CDA 18D1F-18D20 18E00-19191 191A0-191D2 1B123-1B128 1B168 1CED2-1CED4 1CEDD-1CEDF 1CEF1-1CEFD "
    "1D127-1D128 1D1EB-1D1FF 1D250-1D281 1D6A6 1DB00-1DB1C 1DF1F-1DF24 1DF2B-1DF81 1DF90-1DF96 1DFCD-1DFFF "
    "1F1AE 1F6D9 1F7DA-1F7DB 1F7F1-1F7FF 1FA8B-1FA8D 1FACC 1FADD 1FAEB 1FAF9-1FAFA 2B81E 3D000-3FC3F"
)


def _class_of(ranges: str) -> str:
    ends = (part.partition("-") for part in ranges.split())
    return "".join(f"{chr(int(first, 16))}-{chr(int(last or first, 16))}" for first, _, last in ends)


_NEWER = re.compile(f"[{_class_of(_NEW_IN_UNICODE_18)}]")
_NEWER_BEYOND_FFFF = re.compile(f"[{_class_of(_NEW_BEYOND_FFFF)}]")
_BEYOND_FFFF = re.compile("[\U00010000-\U0010ffff]")
"""Patterns of their own, because ``re`` looks a character up in a table only if all of a class are below this."""
_UNASSIGNED = "\u0378"

_SHORT = 64
"""The bytes below which Python counts the characters of a text faster than NumPy."""


_BY_LEAD = re.compile(rb"[\x00-\xbf]|[\xc0-\xdf].|[\xe0-\xef]..|[\xf0-\xff].{3}|(?P<cut>.+)", re.DOTALL)
_CUT_OFF = re.compile(rb"([\xc0-\xff]|[\xe0-\xff][\x80-\xbf]|[\xf0-\xff][\x80-\xbf]{2})\Z")


def searched(text: bytes) -> tuple[str, Sequence[int]]:
    """Return a text as PCRE2 sees it, and where its characters begin in the bytes; the end of the last comes after.

    PCRE2 is told not to check texts: the first byte of a character says how many bytes it has, whatever they are, and
    what is cut off at the end is not a character. It has Unicode 17; newer characters are unassigned.
    """
    if text.isascii():
        return text.decode(), range(len(text) + 1)
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        parts = [character for character in _BY_LEAD.finditer(text) if character["cut"] is None]
        seen = "".join([_seen(character[0]) for character in parts])
        return known(seen), [*(character.start() for character in parts), parts[-1].end() if parts else 0]
    if len(text) < _SHORT:
        sizes = [1 if c < "\x80" else 2 if c < "\u0800" else 3 if c < "\U00010000" else 4 for c in decoded]
        return known(decoded), [0, *accumulate(sizes)]
    is_first = (np.frombuffer(text, np.uint8) & 0xC0) != 0x80
    return known(decoded), [*np.flatnonzero(is_first).tolist(), len(text)]


def known(text: str) -> str:
    """Return a text with an unassigned character in place of those that are newer than the Unicode of PCRE2."""
    if text.isascii():
        return text
    if _NEWER.search(text):
        text = _NEWER.sub(_UNASSIGNED, text)
    if _BEYOND_FFFF.search(text) and _NEWER_BEYOND_FFFF.search(text):
        text = _NEWER_BEYOND_FFFF.sub(_UNASSIGNED, text)
    return text


def _seen(character: bytes) -> str:
    """Return the character that bytes stand for which need not be UTF-8."""
    first, *others = character
    code = first & (0xFF >> len(character) + 1) if others else first
    for byte in others:
        code = code << 6 | byte & 0x3F
    return chr(code) if code < sys.maxunicode else _UNASSIGNED


def pcre(pattern: str) -> Any:
    """Return a pattern of PCRE2, with Unicode properties, as a pattern of ``regex``.

    A pattern that PCRE2 refuses matches nothing, as in openvino_tokenizers, and is reported. Raises OperatorError for a
    pattern that has no translation.
    """
    require_packages("the tokenizer", "tokenizers", "regex")
    compiled, refusal = _compiled(pattern)
    if refusal:
        report(f"PCRE2 refuses the pattern {shortened(repr(pattern))}: {refusal}", "it matches nothing")
    return compiled


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> tuple[Any, str]:
    """Return a compiled pattern, and why PCRE2 refuses it, or an empty text."""
    import regex

    try:
        return regex.compile(translated(pattern)), ""
    except NoPattern as error:
        return regex.compile("(?!)"), str(error)
    except RecursionError:
        reason = "its groups are nested too deep"
    except (regex.error, OperatorError) as error:
        reason = str(error)
    raise OperatorError(f"the pattern {shortened(repr(pattern))} cannot be used: {reason}")


def is_refused(pattern: str) -> bool:
    """Return whether PCRE2 refuses a pattern."""
    return _compiled(pattern)[1] != ""


_CLASS = (
    r"(?:\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]|\\[pP]\{\w+\}|\\x\{[0-9A-Fa-f]+\}|\\[sSwWhdD]"
    r"|\\[^\w\s]|[^\\()\[\]{}|?*+.^$])"
)
_CLASSES = re.compile(rf"(\((?:\?:)?)?(?P<choices>{_CLASS}\+?(?:\|{_CLASS}\+?)*)(?(1)\)(?P<repeats>\+)?)", re.DOTALL)
_CHOICE = re.compile(rf"({_CLASS})(\+?)", re.DOTALL)


def runs_of_classes(pattern: str) -> list[tuple[str, bool]] | None:
    r"""Return the classes of characters that a pattern of PCRE2 is a choice of, and which of them it repeats.

    An example is ``\w+|[^\w\s]+``. Classes that are not repeated are one. Other patterns have None.
    """
    match = _CLASSES.fullmatch(pattern)
    if match is None:
        return None
    choices = [(text, bool(plus)) for text, plus in _CHOICE.findall(match["choices"])]
    if not any(repeats for _, repeats in choices):
        return [("|".join([text for text, _ in choices]), match["repeats"] is not None)]
    return choices if match["repeats"] is None else None


class Replacement:
    r"""A text that takes the place of matches, in which ``$1`` or ``\1`` stands for a group."""

    def __init__(self, template: str) -> None:
        parts = re.split(r"\$(?:\{(\w+)\}|(\d+)|(\$))", re.sub(r"\\([1-9])", r"$\1", template))
        self._first = parts[0]
        groups = (int(number) if number else name for name, number in zip(parts[1::4], parts[2::4], strict=True))
        self._others = list(zip(groups, parts[3::4], parts[4::4], strict=True))

    def __call__(self, match: Any, text: str) -> str:
        """Return the replacement of a match in a text; raise LookupError for a group that is not part of it."""
        result: str = self._first
        for group, dollar, following in self._others:
            if dollar:
                result += dollar + following
                continue
            begin, end = match.span(group)
            if begin < 0:
                raise LookupError(group)
            result += text[begin:end] + following
        return result


def replaced(pattern: Any, replacement: Replacement, text: bytes, count: int | None) -> bytes:
    """Return a text with its matches replaced, or the first ``count``; the text itself if a group has no match.

    A search may begin at each byte that begins a character. So unlike in ``searched``, bytes that are not UTF-8 are
    characters of their own.
    """
    try:
        characters = text.decode()
        seen = known(characters)
    except UnicodeDecodeError:
        characters = text.decode(errors="surrogateescape")
        seen = known(characters[: len(characters) - _size_cut_off(text)]).translate(_ALONE)
    parts = []
    at = 0
    try:
        for match in islice(pattern.finditer(seen), count):
            parts += [characters[at : match.start()], replacement(match, characters)]
            at = match.end()
    except LookupError:
        return text
    return "".join([*parts, characters[at:]]).encode(errors="surrogateescape") if parts else text


def replaced_alone(pattern: Any, replacement: Replacement, characters: str) -> list[bytes]:
    """Return the replacement of each character, for a pattern that matches single characters in any context."""
    texts = list(characters)
    try:
        for match in pattern.finditer(known(characters)):
            texts[match.start()] = replacement(match, characters)
    except LookupError:
        pass  # no match has that group
    return [text.encode() for text in texts]


_ALONE = {0xDC00 + byte: byte for byte in range(0x80, 0xC0)}
"""The bytes that PCRE2 sees for continuation bytes without a first byte, by their surrogate escapes."""


def _size_cut_off(text: bytes) -> int:
    """Return the number of bytes of a character at the end of a text that has too few of them."""
    if not text or text[-1] < 0x80:
        return 0
    match = _CUT_OFF.search(text)
    return len(match[0]) if match else 0
