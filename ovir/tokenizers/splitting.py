"""Strings split into words: at matches of a pattern, and around special tokens."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
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
from ovir.tokenizers.cache import Memo
from ovir.tokenizers.patterns import pcre, searched

Pieces = list[int]
"""The parts of a string, with three numbers each: begin, end, and 1 if the part is left as it is from then on."""
Splitter = Memo[bytes, Pieces]

_MOST_STRINGS = 1 << 15
"""The number of strings of which a layer keeps the parts."""


class _Split(TokenizerOperator):
    """Base of operations that make several words of each string."""

    def _infer(self, inputs: tuple[TensorType, ...], pattern: int) -> tuple[TensorType, ...]:
        self.require_inputs(inputs)
        self.require_rows(inputs, 0)
        self.require_strings(inputs, 2)
        self.require_bytes(inputs, pattern, "pattern")
        return ragged_string_types(inputs[0].shape)

    def _words(self, ragged: tuple[Array, ...], skips: Array | None, known: Splitter) -> tuple[Array, ...]:
        """Return rows of words with the parts of each string, and which of them are left as they are."""
        rows_begin, rows_end, begins, ends, symbols = ragged
        starts, strings = begins.ravel().tolist(), unpacked(begins, ends, symbols)
        skipped = skips.ravel().tolist() if skips is not None else [False] * len(strings)
        parts: list[Pieces] = []
        shifts: list[int] = []
        row_ends = []
        for first, last in ranges(rows_begin, rows_end):
            for text, start, skip in zip(strings[first:last], starts[first:last], skipped[first:last], strict=True):
                found = [0, len(text), 1] if skip else known[text]
                parts.append(found)
                shifts += [start] * (len(found) // 3)
            row_ends.append(len(shifts))
        numbers = np.fromiter(chain.from_iterable(parts), np.int32, 3 * len(shifts)).reshape(-1, 3)
        shift = as_i32(shifts)
        rows = rows_until(row_ends, rows_begin, rows_end)
        return *rows, numbers[:, 0] + shift, numbers[:, 1] + shift, symbols, numbers[:, 2] != 0


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
        known = self.prepared(SpecialTokensSplit.splitter, inputs[-1])
        return self._words(inputs[:5], inputs[5] if len(inputs) == 7 else None, known)

    def splitter(self, pattern: Array) -> Splitter:
        """Return the parts of strings at the special tokens that a pattern describes."""
        compiled = pcre(text_of(pattern).decode())

        def split(text: bytes) -> Pieces:
            seen, places = searched(text)
            pieces: Pieces = []
            at = 0
            for found in compiled.finditer(seen):
                start, stop = found.span()
                if start == stop:
                    continue
                begin, end = found.span(found.lastindex or 0)  # without spaces around it that belong to neither word
                if at < places[start]:
                    pieces += (at, places[start], 0)
                pieces += (places[begin], places[end], 1)
                at = places[stop]
            return [*pieces, at, len(text), 0] if at < len(text) else pieces

        return Memo(split, _MOST_STRINGS)


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
        known = self.prepared(RegexSplit.splitter, *inputs[5 + has_skips :])
        outputs = self._words(inputs[:5], inputs[5] if has_skips else None, known)
        return outputs if has_skips else outputs[:5]

    def splitter(self, pattern: Array, *kept: Array) -> Splitter:
        """Return the parts of strings at the matches of a pattern; strings to keep have one."""
        text = text_of(pattern).decode()
        if self.behaviour == "contiguous" and not text.endswith("+"):
            text = f"({text})+"
        compiled = pcre(text)
        whole = set(unpacked(*kept)) if kept else ()

        def split(text: bytes) -> Pieces:
            if text in whole:
                return [0, len(text), 0]
            words = self._arranged(_parts(text, compiled), len(text))
            pieces = [number for begin, end in words for number in (begin, end, 0)]
            if len(pieces) > 3 * self.max_splits > 0:
                pieces[3 * self.max_splits + 1] = len(text)
            return pieces

        return Memo(split, _MOST_STRINGS)

    def _arranged(self, parts: list[tuple[int, int, bool]], length: int) -> Iterator[tuple[int, int]]:
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


def _parts(text: bytes, pattern: Any) -> list[tuple[int, int, bool]]:
    """Return the matches in a text, which are marked, and what is between them; an empty match lets none follow."""
    seen, places = searched(text)
    parts = []
    at = 0
    for found in pattern.finditer(seen):
        start, stop = found.span()
        if start == stop:
            break
        begin, end = places[start], places[stop]
        if at < begin:
            parts.append((at, begin, False))
        parts.append((begin, end, True))
        at = end
    if at < len(text):
        parts.append((at, len(text), False))
    return parts
