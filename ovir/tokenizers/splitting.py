"""Strings split into words: at matches of a pattern, and around special tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import boolean
from ovir.core.tensor_types import TensorType
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import register
from ovir.tokenizers.base import (
    ANY_LENGTH,
    TokenizerOperator,
    as_i32,
    ragged_string_types,
    ranges,
    rows_until,
    text_of,
    unpacked,
)
from ovir.tokenizers.patterns import pcre, searched

Piece = tuple[int, int, bool]
"""The begin and the end of a part of a string, and whether it is a match, or is left as it is from then on."""


class _Split(TokenizerOperator):
    """Base of operations that make several words of each string."""

    def _infer(self, inputs: tuple[TensorType, ...], pattern: int) -> tuple[TensorType, ...]:
        self.require_inputs(inputs)
        self.require_rows(inputs, 0)
        self.require_strings(inputs, 2)
        self.require_bytes(inputs, pattern, "pattern")
        return ragged_string_types(inputs[0].shape)

    def _words(
        self, ragged: tuple[Array, ...], skips: Array | None, pieces: Callable[[bytes], Iterable[Piece]]
    ) -> tuple[Array, ...]:
        """Return rows of words with the pieces of each string, and which of them are left as they are."""
        rows_begin, rows_end, begins, ends, symbols = ragged
        strings = list(zip(begins.ravel().tolist(), unpacked(begins, ends, symbols), strict=True))
        skipped = skips.ravel().tolist() if skips is not None else [False] * len(strings)
        row_ends, new_begins, new_ends, new_skips = [], [], [], []
        for first, last in ranges(rows_begin, rows_end):
            for index in range(first, last):
                start, text = strings[index]
                for begin, end, skip in [(0, len(text), True)] if skipped[index] else pieces(text):
                    new_begins.append(start + begin)
                    new_ends.append(start + end)
                    new_skips.append(skip)
            row_ends.append(len(new_begins))
        rows = rows_until(row_ends, rows_begin, rows_end)
        return *rows, as_i32(new_begins), as_i32(new_ends), symbols, np.array(new_skips, np.bool_)


def _in_bytes(text: Sequence[str], places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield places in a text, which do not go back, as places in its bytes."""
    at = before = 0
    for begin, end in places:
        first = before + _size(text[at:begin])
        before = first + _size(text[begin:end])
        at = end
        yield first, before


def _around_tokens(pattern: Any, text: str) -> Iterator[tuple[int, int]]:
    """Yield what a match has before its token, and what it has after it, such as spaces that belong to neither word.

    The token is the last group that takes part in the match, or all of it.
    """
    for found in pattern.finditer(text):
        if found.end() > found.start():
            begin, end = found.span(found.lastindex or 0)
            yield found.start(), begin
            yield end, found.end()


def _size(text: Sequence[str]) -> int:
    """Return the number of bytes of characters, with surrogate escapes for those that are not UTF-8."""
    return len("".join(text).encode(errors="surrogateescape"))


@register("SpecialTokensSplit", version="extension")
class SpecialTokensSplit(_Split):
    """Strings split around matches of a pattern, which are left as they are by what follows.

    If the pattern has groups, the match is what its last group has; the rest of the match is dropped.
    Inputs are rows of strings, optionally which strings are left as they are, and the pattern. The last output says
    which words are left as they are.
    """

    input_counts = (6, 7)

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        return *self._infer(inputs, len(inputs) - 1), TensorType(boolean, ANY_LENGTH)

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        pattern = pcre(text_of(inputs[-1]).decode())

        def pieces(text: bytes) -> Iterator[Piece]:
            seen, characters = searched(text)
            places = _around_tokens(pattern, seen)
            pairs = iter(places if text.isascii() else _in_bytes(characters, places))
            at = 0
            for (start, begin), (end, stop) in zip(pairs, pairs, strict=True):
                if at < start:
                    yield at, start, False
                yield begin, end, True
                at = stop
            if at < len(text):
                yield at, len(text), False

        return self._words(inputs[:5], inputs[5] if len(inputs) == 7 else None, pieces)


@register("RegexSplit", version="extension")
class RegexSplit(_Split):
    """Strings split at the matches of a pattern.

    ``behaviour`` says what becomes of a match: it is removed, a word of its own, or part of the word before or after;
    in ``contiguous``, matches that follow each other are one. With ``invert``, the pattern describes what is between
    matches. Inputs are rows of strings, which of them are left as they are (or none), the pattern and, in older files,
    strings that are left as they are.
    """

    input_counts = (6, 7, 9)

    behaviour: str = attribute(
        default="remove", choices=("remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext")
    )
    invert: bool = attribute(default=False)
    max_splits: int = attribute(default=-1, minimum=-1)

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        has_skips = len(inputs) == 7
        outputs = self._infer(inputs, 5 + has_skips)
        self.require(self.max_splits != 0, "max_splits must be -1 or above 0, got 0")
        return (*outputs, TensorType(boolean, ANY_LENGTH)) if has_skips else outputs

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        has_skips = len(inputs) == 7
        text = text_of(inputs[5 + has_skips]).decode()
        if self.behaviour == "contiguous" and not text.endswith("+"):
            text = f"({text})+"
        pattern = pcre(text)
        kept = set(unpacked(*inputs[6:])) if len(inputs) == 9 else ()

        def pieces(text: bytes) -> Iterable[Piece]:
            if text in kept:
                return [(0, len(text), False)]
            return [(begin, end, False) for begin, end in self._split(text, pattern)]

        outputs = self._words(inputs[:5], inputs[5] if has_skips else None, pieces)
        return outputs if has_skips else outputs[:5]

    def _split(self, text: bytes, pattern: object) -> Iterator[tuple[int, int]]:
        """Yield the words of a string, as places in its bytes."""
        words = self._arranged(list(_parts(text, pattern)), len(text))
        for number, (begin, end) in enumerate(words):
            yield begin, len(text) if number == self.max_splits else end

    def _arranged(self, parts: list[Piece], length: int) -> Iterator[tuple[int, int]]:
        """Yield words made of the matches and of what is between them."""
        pending: int | None = None
        for begin, end, is_match in parts:
            delimits = is_match != self.invert
            if self.behaviour in ("isolate", "contiguous") or (self.behaviour == "remove" and not delimits):
                yield begin, end
            elif self.behaviour == "mergedwithprevious":
                if not delimits and end != length:
                    pending = begin
                else:
                    yield (begin if not delimits else max(pending or 0, 0)), end
            elif self.behaviour == "mergedwithnext":
                if delimits:
                    pending = begin
                else:
                    yield (begin if pending is None else pending), end
        if self.behaviour == "mergedwithnext" and pending is not None and parts and parts[-1][2] != self.invert:
            yield pending, length


def _parts(text: bytes, pattern: object) -> Iterator[Piece]:
    """Return the matches in a text and what is between them; an empty match lets no others follow."""
    seen, characters = searched(text)
    spans = _spans(pattern, seen)
    return _with_gaps(spans if text.isascii() else _in_bytes(characters, spans), len(text))


def _with_gaps(spans: Iterable[tuple[int, int]], length: int) -> Iterator[Piece]:
    """Yield matches, which are marked, and what is between them."""
    at = 0
    for begin, end in spans:
        if at < begin:
            yield at, begin, False
        yield begin, end, True
        at = end
    if at < length:
        yield at, length, False


def _spans(pattern: object, text: str) -> Iterator[tuple[int, int]]:
    for found in pattern.finditer(text):  # type: ignore[attr-defined]
        span = found.span()
        if span[0] == span[1]:
            return
        yield span
