"""The normalizer of SentencePiece: characters, and sequences of them, mapped to others."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Mapping
from functools import cache

import numpy as np

from ovir.diagnostics.errors import OperatorError

CharacterMap = Mapping[str, str]
"""What characters and sequences of characters become."""

_SPACE = " "
_VISIBLE_SPACE = "\u2581"


class Normalizer:
    """Replaces the longest sequences that a map has, from left to right."""

    def __init__(self, mapping: CharacterMap, adds_prefix: bool, removes_spaces: bool, escapes_spaces: bool) -> None:
        self._map = mapping
        self._lengths: dict[str, list[int]] = {}
        for key in mapping:
            lengths = self._lengths.setdefault(key[0], [])
            if len(key) not in lengths:
                lengths.append(len(key))
        for lengths in self._lengths.values():
            lengths.sort(reverse=True)
        self._adds_prefix = adds_prefix
        self._removes_spaces = removes_spaces
        self._space = _VISIBLE_SPACE if escapes_spaces else _SPACE

    def __call__(self, text: bytes) -> bytes:
        """Return a string in UTF-8, normalized."""
        parts = self._mapped(text.decode(errors="surrogateescape"))
        if self._removes_spaces:
            parts = _without_extra_spaces(parts)
        result = "".join(parts)
        if self._adds_prefix and (result if self._removes_spaces else text):
            result = _SPACE + result
        return result.replace(_SPACE, self._space).encode()

    def _mapped(self, text: str) -> list[str]:
        """Return what becomes of each character or sequence."""
        lengths, mapping = self._lengths, self._map
        parts = []
        at = 0
        while at < len(text):
            character = text[at]
            length = 1
            part = character if not "\udc80" <= character <= "\udcff" else "\ufffd"
            for size in lengths.get(character, ()):
                found = mapping.get(text[at : at + size])
                if found is not None:
                    part, length = found, size
                    break
            parts.append(part)
            at += length
        return parts


def _without_extra_spaces(parts: list[str]) -> list[str]:
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
def unicode_map(form: str, case_fold: bool) -> CharacterMap:
    """Return the map of a normalization form, or of none (``identity``).

    It changes characters, and the sequences that a composed character decomposes to; unlike normalization, it does not
    put marks in their order.
    """
    mapping = {} if form == "identity" else _normalization_map(form.upper())
    if case_fold:
        mapping = {key: "".join(map(_folded, value)) for key, value in mapping.items()}
        for character in map(chr, _CODES):
            folded = _folded(character)
            if folded != character:
                mapping.setdefault(character, folded)
    return mapping


def _folded(character: str) -> str:
    """Return the simple case folding of a character, which is one character."""
    folded = character.casefold()
    if len(folded) > 1:
        folded = character.lower()
    return folded if len(folded) == 1 else character


def _normalization_map(form: str) -> dict[str, str]:
    decomposition = {"NFC": "NFD", "NFKC": "NFKD"}.get(form)
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


def compiled_map(data: bytes) -> CharacterMap:
    """Return a map that SentencePiece has compiled: a double-array trie of keys, and the texts that they become."""
    if not data:
        return {}
    size = int.from_bytes(data[:4], "little")
    if len(data) < 4 or size % 4 or size + 4 > len(data):
        raise OperatorError(f"the compiled map of {len(data)} bytes is truncated")
    units = np.frombuffer(data, np.uint32, size // 4, 4)
    texts = data[4 + size :]
    return {key.decode(): texts[value : texts.index(0, value)].decode() for key, value in _keys(units)}


def _keys(units: np.ndarray) -> list[tuple[bytes, int]]:
    """Return the keys and values of a double-array trie, level by level.

    A unit has the label of its node in 8 bits, and the place of its children relative to its own: a child is at that
    place, exclusive-or its label. The child with label 0 holds the value.
    """
    labels = np.arange(256, dtype=np.uint32)
    found: list[tuple[bytes, int]] = []
    nodes, keys = np.zeros(1, np.int64), [b""]
    while nodes.size:
        node = units[nodes]
        offsets = (node >> 10) << ((node & 0x200) >> 6)
        places = nodes ^ offsets
        for index in np.flatnonzero(node & 0x100):
            found.append((keys[index], int(units[places[index]] & 0x7FFFFFFF)))
        children = places[:, np.newaxis] ^ labels
        is_inside = children < units.size
        unit = units[np.where(is_inside, children, 0)]
        is_child = is_inside & (unit & 0x800000FF == labels) & (labels > 0)
        rows, columns = np.nonzero(is_child)
        nodes = children[rows, columns]
        keys = [keys[row] + bytes([label]) for row, label in zip(rows.tolist(), columns.tolist(), strict=True)]
    return found
