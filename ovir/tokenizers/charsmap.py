"""The normalizer of SentencePiece: characters, and sequences of them, mapped to others."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Literal, Protocol

import numpy as np

from ovir.diagnostics.errors import OperatorError
from ovir.tokenizers.characters import CharacterTable, CharacterTexts, byte_places, code_points

_SPACE = b" "
_VISIBLE_SPACE = "\u2581".encode()
_REPLACEMENT = "\ufffd".encode()
_INVALID = re.compile("([\udc80-\udcff])")
"""The surrogate escape of a byte that is not UTF-8."""
_CONTINUATIONS = bytes(range(0x80, 0xC0))


class CharacterMap(Protocol):
    """The replacements of characters and sequences of characters."""

    def longest(self, text: bytes, start: int) -> tuple[int, bytes]:
        """Return the end of the longest key at ``start`` and its replacement; ``start`` if there is none."""

    def alone(self, character: str) -> bytes:
        """Return the replacement of a character that is not part of a sequence."""

    def seconds(self, character: str) -> bytes:
        """Return the first bytes of the characters that may follow this one in a sequence."""


class Normalizer:
    """Replaces the longest sequences that a map has, from left to right."""

    def __init__(self, mapping: CharacterMap, adds_prefix: bool, removes_spaces: bool, escapes_spaces: bool) -> None:
        self._map = mapping
        self._adds_prefix = adds_prefix
        self._removes_spaces = removes_spaces
        self._space = _VISIBLE_SPACE if escapes_spaces else _SPACE
        self._alone = CharacterTexts(lambda characters: list(map(mapping.alone, characters)))
        self._begins = CharacterTable(self._places_in_sequences)
        self._is_second = np.zeros(256, np.bool_)
        """The first bytes of characters that are second in sequences whose first character was seen."""

    def __call__(self, text: bytes) -> bytes:
        """Return a string in UTF-8, normalized."""
        parts: list[bytes] = []
        try:
            parts = self._mapped(text)
        except UnicodeDecodeError:
            for number, piece in enumerate(_INVALID.split(text.decode(errors="surrogateescape"))):
                parts += [_REPLACEMENT] if number % 2 else self._mapped(piece.encode())
        result = b"".join(parts)
        if self._removes_spaces and b"  " in b" %b " % result:
            result = b"".join(_without_extra_spaces(parts))
        if self._adds_prefix and (result if self._removes_spaces else text):
            result = _SPACE + result
        return result.replace(_SPACE, self._space)

    def _mapped(self, text: bytes) -> list[bytes]:
        """Return the replacement of each character; that of a sequence stands at its first character."""
        codes = code_points(text)
        parts = self._alone(codes)
        is_first = self._begins(codes) == _FIRST
        if not is_first.any():
            return parts
        following = np.frombuffer(_leads(text), np.uint8)[1:]
        places = byte_places(codes)
        end = 0
        for index in np.flatnonzero(is_first[:-1] & self._is_second[following]).tolist():
            start = int(places[index])
            if start < end:
                continue  # the last sequence has it
            end, part = self._map.longest(text, start)
            if end > start:
                count = len(_leads(text[start:end]))
                parts[index : index + count] = [part] + [b""] * (count - 1)
        return parts

    def _places_in_sequences(self, characters: str) -> list[int]:
        """Return for each character whether it may be the first of a sequence."""
        seconds = list(map(self._map.seconds, characters))
        self._is_second[list(b"".join(seconds))] = True
        return [_FIRST if bytes_after else _NOT_FIRST for bytes_after in seconds]


_NOT_FIRST, _FIRST = 1, 2


def _leads(text: bytes) -> bytes:
    """Return the first byte of each character."""
    return text.translate(None, _CONTINUATIONS)


def _without_extra_spaces(parts: list[bytes]) -> list[bytes]:
    """Return the parts without spaces at the ends and without spaces that follow one which ends a part."""
    kept = []
    after_space = True
    for part in parts:
        rest = part.lstrip(_SPACE) if after_space else part
        if rest:
            kept.append(rest)
            after_space = rest.endswith(_SPACE)
    return [*kept[:-1], kept[-1].rstrip(_SPACE)] if kept else []


# --------------------------------------------------------------------------- maps of normalization forms

_Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
_FORMS: dict[str, tuple[_Form, _Form | None]] = {
    "nfc": ("NFC", "NFD"),
    "nfkc": ("NFKC", "NFKD"),
    "nfd": ("NFD", None),
    "nfkd": ("NFKD", None),
}
"""The forms of Unicode, each with the decomposition before it composes."""


@cache
def unicode_map(form: str, case_fold: bool) -> UnicodeMap:
    """Return the map of a normalization form, or of none (``identity``)."""
    return UnicodeMap(form, case_fold)


class UnicodeMap(CharacterMap):
    """The map of a normalization form, with simple case folding after it, or of folding alone.

    It changes characters, and the sequences that a composed character decomposes to; unlike normalization, it does not
    put marks in their order.
    """

    def __init__(self, form: str, case_fold: bool) -> None:
        forms: tuple[_Form | None, _Form | None] = _FORMS.get(form, (None, None))
        self._form, self._decomposition = forms
        self._case_fold = case_fold
        self._composed: dict[str, str] = {}
        """The compositions of sequences. These consist of parts: decomposed characters."""
        self._seconds: dict[str, bytes] = {}
        """For the first part of sequences, the first bytes of the characters that may follow it."""
        if self._form and self._decomposition:
            self._add_sequences(self._form, self._decomposition)
        self._beginnings = {parts[:size] for parts in self._composed for size in range(1, len(parts))}
        self._longest = max(map(len, self._composed), default=1)

    def longest(self, text: bytes, start: int) -> tuple[int, bytes]:
        characters = text[start : start + 4 * self._longest].decode(errors="ignore")
        alone = self._normal(characters[0])
        size, found = (0, "") if alone == characters[0] else (1, alone)
        parts = ""
        for number, character in enumerate(characters, 1):
            parts += self._part(character)
            if parts in self._composed:
                size, found = number, self._composed[parts]
            if parts not in self._beginnings:
                break
        return start + len(characters[:size].encode()), found.encode()

    def alone(self, character: str) -> bytes:
        return self._normal(character).encode()

    def seconds(self, character: str) -> bytes:
        return self._seconds.get(self._part(character), b"")

    def _add_sequences(self, form: _Form, decomposition: _Form) -> None:
        alike: dict[str, list[str]] = {}
        for character in _decomposable():
            parts = unicodedata.normalize(decomposition, character)
            if len(parts) == 1:
                alike.setdefault(parts, []).append(character)
            elif parts != unicodedata.normalize(form, character):
                self._composed[parts] = self._normal(character)
        for first, second in {(parts[0], parts[1]) for parts in self._composed}:
            leads = (character.encode()[:1] for character in (second, *alike.get(second, ())))
            self._seconds[first] = self._seconds.get(first, b"") + b"".join(leads)

    def _part(self, character: str) -> str:
        """Return the decomposition of a character if it is one character; otherwise the character."""
        if self._decomposition is None:
            return character
        parts = unicodedata.normalize(self._decomposition, character)
        return parts if len(parts) == 1 else character

    def _normal(self, character: str) -> str:
        normal = unicodedata.normalize(self._form, character) if self._form else character
        return "".join(map(_folded, normal)) if self._case_fold else normal


def _decomposable() -> Iterator[str]:
    """Yield the characters with a decomposition; those of Hangul have one by rule."""
    for code in _DECOMPOSABLE:
        if unicodedata.decomposition(chr(code)) or 0xAC00 <= code < 0xD7A4:
            yield chr(code)


_DECOMPOSABLE = [*range(0xA0, 0x3400), *range(0xA000, 0xD800), *range(0xF900, 0x20000), *range(0x2F800, 0x2FA20)]
"""The code points among which are all that have a decomposition."""


def _folded(character: str) -> str:
    """Return the simple case folding of a character, which is one character."""
    folded = character.casefold()
    if len(folded) > 1:
        folded = character.lower()
    return folded if len(folded) == 1 else character


# --------------------------------------------------------------------------- compiled maps


_LABELS = np.arange(1, 256)


class CompiledMap(CharacterMap):
    """A map that SentencePiece has compiled: a double-array trie of keys, and the texts that they become.

    A unit of the trie has the label of its node in 8 bits, and where its children are, relative to its own place: a
    child is there, exclusive-or its label. The child with label 0 holds the value, which is the place of a text.
    """

    def __init__(self, data: bytes) -> None:
        size = int.from_bytes(data[:4], "little")
        if data and (len(data) < 4 or size % 4 or size + 4 > len(data)):
            raise OperatorError(f"the compiled map of {len(data)} bytes is truncated")
        self._units = memoryview(data)[4 : 4 + size].cast("I")
        self._unit_array = np.frombuffer(self._units, np.uint32)
        self._texts = data[4 + size :]

    def longest(self, text: bytes, start: int) -> tuple[int, bytes]:
        _, _, found, value = self._walk(text, start)
        return found, self._texts[value : self._texts.index(0, value)] if found > start else b""

    def alone(self, character: str) -> bytes:
        text = character.encode()
        end, part = self.longest(text, 0)
        return part if end else text

    def _walk(self, text: bytes, start: int) -> tuple[int, int, int, int]:
        """Return the end of the longest beginning of a key in the text from ``start``, the place of the children there,
        and the end and value of the longest key."""
        units = self._units
        found, value = start, 0
        place, end = _children(units[0], 0) if units else 0, start
        while end < len(text) and units:
            place ^= text[end]
            unit = units[place] if place < len(units) else 0
            if unit & 0x800000FF != text[end]:
                break
            end += 1
            place = _children(unit, place)
            if unit & 0x100:
                found, value = end, units[place] & 0x7FFFFFFF
        return end, place, found, value

    def seconds(self, character: str) -> bytes:
        text = character.encode()
        end, place, _, _ = self._walk(text, 0)
        if end < len(text):
            return b""
        places = place ^ _LABELS
        labels = _LABELS[places < len(self._units)]
        return bytes(labels[self._unit_array[place ^ labels] & 0x800000FF == labels].tolist())


def _children(unit: int, place: int) -> int:
    """Return the place of a node's children: the offset is in 22 bits, or counts 256 units."""
    return place ^ (unit >> 10) << ((unit & 0x200) >> 6)
