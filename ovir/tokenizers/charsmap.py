"""The normalizer of SentencePiece: characters, and sequences of them, mapped to others."""

from __future__ import annotations

import itertools
import re
import unicodedata
from functools import cache
from typing import Literal, Protocol

from ovir.diagnostics.errors import OperatorError
from ovir.tokenizers.memo import Memo
from ovir.tokenizers.trie import Trie

_SPACE = b" "
_VISIBLE_SPACE = "\u2581".encode()
_REPLACEMENT = "\ufffd".encode()
_INVALID = re.compile("([\udc80-\udcff])")
"""What stands for a byte that is not UTF-8."""
_MOST_CHARACTERS = 1 << 16
"""The number of characters, each with a byte after it, of which is kept what becomes of them."""


class CharacterMap(Protocol):
    """What characters and sequences of characters become."""

    def longest(self, text: bytes, start: int) -> tuple[int, bytes]:
        """Return the end of the longest key at ``start`` and what becomes of it; ``start`` if there is none."""

    def has_prefix(self, text: bytes) -> bool:
        """Return whether a key begins with a text."""


class Normalizer:
    """Replaces the longest sequences that a map has, from left to right."""

    def __init__(self, mapping: CharacterMap, adds_prefix: bool, removes_spaces: bool, escapes_spaces: bool) -> None:
        self._map = mapping
        self._adds_prefix = adds_prefix
        self._removes_spaces = removes_spaces
        self._space = _VISIBLE_SPACE if escapes_spaces else _SPACE
        self._alone = Memo(self._what_becomes_of, _MOST_CHARACTERS)

    def __call__(self, text: bytes) -> bytes:
        """Return a string in UTF-8, normalized."""
        parts = []
        for number, piece in enumerate(_INVALID.split(text.decode(errors="surrogateescape"))):
            parts += [_REPLACEMENT] if number % 2 else self._mapped(piece)
        result = b"".join(parts)
        if self._removes_spaces and (b"  " in result or result.startswith(_SPACE) or result.endswith(_SPACE)):
            result = b"".join(_without_extra_spaces(parts))
        if self._adds_prefix and (result if self._removes_spaces else text):
            result = _SPACE + result
        return result.replace(_SPACE, self._space)

    def _mapped(self, text: str) -> list[bytes]:
        """Return what becomes of each character or sequence."""
        if not text:
            return []
        encoded = text.encode()
        parts = [self._alone[key] for key in zip(text, _leads(encoded)[1:] + b"\0", strict=True)]
        whole: list[bytes] = []
        at = place = 0  # where the rest begins, in characters and in bytes
        for index in [number for number, part in enumerate(parts) if part is None]:
            if index < at:
                continue  # the last sequence has it
            whole += parts[at:index]  # type: ignore[arg-type]
            place += len(text[at:index].encode())
            end, part = self._map.longest(encoded, place)
            if end == place:
                part = text[index].encode()
                end += len(part)
            whole.append(part)
            at, place = index + len(_leads(encoded[place:end])), end
        return whole + parts[at:]  # type: ignore[operator]

    def _what_becomes_of(self, key: tuple[str, int]) -> bytes | None:
        """Return what becomes of a character before a byte; None if that byte may belong to a sequence with it."""
        character = key[0].encode()
        if self._map.has_prefix(character + bytes([key[1]])):
            return None
        end, part = self._map.longest(character, 0)
        return part if end else character


_CONTINUATIONS = bytes(range(0x80, 0xC0))


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
    while kept and kept[-1].endswith(_SPACE):
        kept[-1] = kept[-1].rstrip(_SPACE)
        if not kept[-1]:
            kept.pop()
    return kept


# --------------------------------------------------------------------------- maps of normalization forms

_CODES = [*range(1, 0xD800), *range(0xE000, 0x32400), *range(0xE0000, 0xE1000)]
"""The code points among which are all that normalization or case folding changes."""


@cache
def unicode_map(form: str, case_fold: bool) -> UnicodeMap:
    """Return the map of a normalization form, or of none (``identity``).

    It changes characters, and the sequences that a composed character decomposes to; unlike normalization, it does not
    put marks in their order.
    """
    mapping = {} if form == "identity" else _normalization_map(form)
    if case_fold:
        mapping = {key: "".join(map(_folded, value)) for key, value in mapping.items()}
        for character in map(chr, _CODES):
            folded = _folded(character)
            if folded != character:
                mapping.setdefault(character, folded)
    return UnicodeMap(mapping)


class UnicodeMap:
    """A map from characters and sequences of characters to texts."""

    def __init__(self, mapping: dict[str, str]) -> None:
        self._texts = [text.encode() for text in mapping.values()]
        self._trie = Trie((key.encode(), number) for number, key in enumerate(mapping))

    def longest(self, text: bytes, start: int) -> tuple[int, bytes]:
        """Return the end of the longest key at ``start`` and what becomes of it; ``start`` if there is none."""
        end, number = self._trie.longest(text, start)
        return end, self._texts[number] if end > start else b""

    def has_prefix(self, text: bytes) -> bool:
        """Return whether a key begins with a text."""
        return self._trie.has_prefix(text)


def _folded(character: str) -> str:
    """Return the simple case folding of a character, which is one character."""
    folded = character.casefold()
    if len(folded) > 1:
        folded = character.lower()
    return folded if len(folded) == 1 else character


_Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
_FORMS: dict[str, tuple[_Form, _Form | None]] = {
    "nfc": ("NFC", "NFD"),
    "nfkc": ("NFKC", "NFKD"),
    "nfd": ("NFD", None),
    "nfkd": ("NFKD", None),
}
"""The forms of Unicode, each with the decomposition before it composes."""


def _normalization_map(name: str) -> dict[str, str]:
    form, decomposition = _FORMS[name]
    mapping = {}
    originals: dict[str, list[str]] = {}
    decomposed = {}
    for character in map(chr, _CODES):
        normal = unicodedata.normalize(form, character)
        if normal != character:
            mapping[character] = normal
        if decomposition is not None:
            parts = unicodedata.normalize(decomposition, character)
            if len(parts) == 1:
                originals.setdefault(parts, []).append(character)
            elif parts != normal:
                decomposed[parts] = normal
    for parts, normal in decomposed.items():
        for sequence in itertools.product(*(originals.get(part, [part]) for part in parts)):
            mapping["".join(sequence)] = normal
    return mapping


# --------------------------------------------------------------------------- compiled maps


class CompiledMap:
    """A map that SentencePiece has compiled: a double-array trie of keys, and the texts that they become.

    A unit of the trie has the label of its node in 8 bits, and where its children are, relative to its own place: a
    child is there, exclusive-or its label. The child with label 0 holds the value, which is the place of a text.
    """

    def __init__(self, data: bytes) -> None:
        size = int.from_bytes(data[:4], "little")
        if data and (len(data) < 4 or size % 4 or size + 4 > len(data)):
            raise OperatorError(f"the compiled map of {len(data)} bytes is truncated")
        self._units = memoryview(data)[4 : 4 + size].cast("I")
        self._texts = data[4 + size :]

    def longest(self, text: bytes, start: int) -> tuple[int, bytes]:
        """Return the end of the longest key at ``start`` and what becomes of it; ``start`` if there is none."""
        _, found, value = self._walk(text, start)
        return found, self._texts[value : self._texts.index(0, value)] if found > start else b""

    def _walk(self, text: bytes, start: int) -> tuple[int, int, int]:
        """Return how far the text from ``start`` on is the beginning of a key, and the end and value of the longest."""
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
        return end, found, value

    def has_prefix(self, text: bytes) -> bool:
        """Return whether a key begins with a text."""
        return self._walk(text, 0)[0] == len(text)


def _children(unit: int, place: int) -> int:
    """Return where the children of a node are: the offset is in 22 bits, or counts 256 units."""
    return place ^ (unit >> 10) << ((unit & 0x200) >> 6)
