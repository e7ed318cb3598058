"""The characters of a text as numbers, and properties of each character without its neighbors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np

from ovir.core.arrays import Array
from ovir.tokenizers.base import sums


def code_points(text: bytes, errors: str = "strict") -> Array:
    """Return the code points of a text in UTF-8."""
    return np.frombuffer(text.decode(errors=errors).encode("utf-32-le", errors="surrogatepass"), np.uint32)


def byte_places(codes: Array) -> Array:
    """Return the bytes of a text in UTF-8 at which its characters begin, and the number of bytes."""
    sizes = 1 + (codes >= 0x80).astype(np.int32) + (codes >= 0x800) + (codes >= 0x10000)
    return sums(sizes)


class CharacterTable:
    """A number above 0 for each character, computed when the character is first seen."""

    def __init__(self, compute: Callable[[str], Sequence[int]]) -> None:
        self._compute = compute
        self._numbers = np.zeros(sys.maxunicode + 1, np.int32)

    def __call__(self, codes: Array) -> Array:
        """Return the number of each character."""
        numbers = self._numbers[codes]
        if not numbers.all():
            new = np.unique(codes[numbers == 0])
            self._numbers[new] = self._compute("".join(map(chr, new.tolist())))
            numbers = self._numbers[codes]
        return numbers


class CharacterTexts:
    """The replacement of each character, computed when the character is first seen."""

    def __init__(self, compute: Callable[[str], list[bytes]]) -> None:
        self._compute = compute
        self._numbers = CharacterTable(self._add)
        self._texts = np.array([b""], object)
        self._adding = Lock()

    def __call__(self, codes: Array) -> list[bytes]:
        """Return the replacement of each character."""
        numbers = self._numbers(codes)
        return self._texts[numbers].tolist()  # type: ignore[no-any-return]

    def _add(self, characters: str) -> Sequence[int]:
        texts = np.array(self._compute(characters), object)
        with self._adding:
            first = len(self._texts)
            self._texts = np.concatenate([self._texts, texts])
        return range(first, first + len(texts))
