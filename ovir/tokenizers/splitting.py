"""Strings split into words: at matches of a pattern, and around special tokens."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.tensor_types import Outputs, TensorType
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import register
from ovir.tokenizers import base
from ovir.tokenizers.characters import CharacterTable, byte_places, code_points
from ovir.tokenizers.patterns import is_refused, known, pcre, runs_of_classes, searched

Pieces = list[int]
"""The parts of a string, with three numbers each: begin, end, and 1 if the part is left as it is from then on."""
Splitter = base.Memo[bytes, Pieces]

_MOST_STRINGS = 1 << 15
"""The number of strings of which a layer keeps the parts."""
_SHORT = 300
"""The bytes below which a search takes less time than the functions of NumPy for all characters."""


_STRINGS = f"{base.ROWS}; {base.STRINGS}"
_SKIPS = "skips boolean[Skips...]"


class _Split(base.TokenizerOperator):
    """Base of operations that make several words of each string."""

    takes: ClassVar[str | tuple[str, ...]] = (f"{_STRINGS}; pattern u8[...]", f"{_STRINGS}; {_SKIPS}; pattern u8[...]")
    gives = f"{base.WORDS}; skips boolean[Words]"

    def _words(self, ragged: tuple[Array, ...], skips: Array | None, parts_of: Splitter) -> tuple[Array, ...]:
        """Return rows of words with the parts of each string, and which of them are left as they are."""
        rows_begin, rows_end, begins, ends, symbols = ragged
        starts, strings = begins.ravel().tolist(), base.unpacked(begins, ends, symbols)
        skipped = skips.ravel().tolist() if skips is not None else [False] * len(strings)
        parts: list[Pieces] = []
        shifts: list[int] = []
        row_ends = []
        for first, last in base.ranges(rows_begin, rows_end, len(strings)):
            for text, start, skip in zip(strings[first:last], starts[first:last], skipped[first:last], strict=True):
                found = [0, len(text), 1] if skip else parts_of[text]
                parts.append(found)
                shifts += [start] * (len(found) // 3)
            row_ends.append(len(shifts))
        numbers = np.fromiter(chain.from_iterable(parts), np.int32, 3 * len(shifts)).reshape(-1, 3)
        shift = base.as_i32(shifts)
        rows = base.rows_until(row_ends, rows_begin, rows_end)
        return *rows, numbers[:, 0] + shift, numbers[:, 1] + shift, symbols, numbers[:, 2] == 1


@register("SpecialTokensSplit", version="extension")
class SpecialTokensSplit(_Split):
    """Strings split around matches of a pattern, which later operations leave as they are.

    If the pattern has groups, the match is what its last group has; the rest of the match is dropped.
    Inputs are rows of strings, optionally which strings are left as they are, and the pattern. The last output says
    which words are left as they are.
    """

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        parts_of = self.prepared(SpecialTokensSplit.splitter, inputs[-1])
        return self._words(inputs[:5], inputs[5] if len(inputs) == 7 else None, parts_of)

    def splitter(self, pattern: Array) -> Splitter:
        """Return the parts of strings at the special tokens that a pattern describes."""
        compiled = pcre(pattern.tobytes().decode())

        def split(text: bytes) -> Pieces:
            seen, places = searched(text)
            pieces: Pieces = []
            at = 0
            for match in compiled.finditer(seen):
                start, stop = match.span()
                if start == stop:
                    continue
                begin, end = match.span(match.lastindex or 0)  # without spaces around it that belong to neither word
                if at < places[start]:
                    pieces += (at, places[start], 0)
                pieces += (places[begin], places[end], 1)
                at = places[stop]
            return [*pieces, at, len(text), 0] if at < len(text) else pieces

        return base.Memo(split, _MOST_STRINGS)


@register("RegexSplit", version="extension")
class RegexSplit(_Split):
    """Strings split at the matches of a pattern.

    ``behaviour`` says what becomes of a match: it is removed, a word of its own, or part of the word before or after;
    in ``contiguous``, matches that follow each other are one. With ``invert``, the pattern describes what is between
    matches. Inputs are rows of strings, which of them are left as they are (or none), the pattern and, in older files,
    strings that are left as they are.
    """

    takes = (
        *_Split.takes,
        f"{_STRINGS}; pattern u8[...]; kept_begins i32[Kept...]; kept_ends i32[Kept...]; kept_symbols u8[...]",
    )
    behaviour: str = attribute(
        default="remove", choices=("remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext")
    )
    invert: bool = attribute(default=False)
    max_splits: int = attribute(default=-1, minimum=-1)

    def infer(self, *inputs: TensorType) -> Outputs:
        solution = self.solved(*inputs)
        self.require(self.max_splits != 0, "max_splits must be -1 or above 0, got 0")
        return solution.outputs(self.gives if len(inputs) == 7 else base.WORDS)

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        has_skips = len(inputs) == 7
        skips, constants = inputs[5] if has_skips else None, inputs[5 + has_skips :]
        at_classes = self.prepared(RegexSplit.class_splitter, *constants)
        outputs = None if at_classes is None else at_classes(inputs[:5], skips)
        if outputs is None:
            outputs = self._words(inputs[:5], skips, self.prepared(RegexSplit.splitter, *constants))
        return outputs if has_skips else outputs[:5]

    def class_splitter(self, pattern: Array, *kept: Array) -> _ClassSplitter | None:
        """Return a splitter of all strings at once, if the pattern is a choice of classes and nothing else is asked."""
        searched_for = self._pattern(pattern)
        classes = runs_of_classes(searched_for)
        merges = self.behaviour == "mergedwithprevious" or (self.behaviour == "mergedwithnext" and self.invert)
        if classes is None or kept or merges or self.max_splits > 0 or is_refused(searched_for):
            return None
        return _ClassSplitter(self, classes)

    def _pattern(self, pattern: Array) -> str:
        text = pattern.tobytes().decode()
        return f"({text})+" if self.behaviour == "contiguous" and not text.endswith("+") else text

    def splitter(self, pattern: Array, *kept: Array) -> Splitter:
        """Return the parts of strings at the matches of a pattern; strings to keep have one."""
        compiled = pcre(self._pattern(pattern))
        whole = set(base.unpacked(*kept)) if kept else ()

        def split(text: bytes) -> Pieces:
            if text in whole:
                return [0, len(text), 0]
            words = self._arranged(_parts(text, compiled), len(text))
            pieces = [number for begin, end in words for number in (begin, end, 0)]
            if len(pieces) > 3 * self.max_splits > 0:
                pieces[3 * self.max_splits + 1] = len(text)
            return pieces

        return base.Memo(split, _MOST_STRINGS)

    def _arranged(self, parts: list[tuple[int, int, bool]], length: int) -> Iterator[tuple[int, int]]:
        """Yield words made of the matches and of the text between them."""
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
        if self.behaviour == "mergedwithnext" and not self.invert and (not parts or parts[-1][2]):
            yield (parts[-1][0] if parts else 0), length  # an empty string remains a word


class _ClassSplitter:
    """Splits all strings at once, at characters of classes or at runs of them."""

    def __init__(self, op: RegexSplit, classes: list[tuple[str, bool]]) -> None:
        self._op = op
        self._patterns = [pcre(text) for text, _ in classes]
        self._repeats = np.array([False, True, *(repeats for _, repeats in classes), False])
        self._several = len(classes) + 2
        self._classes = CharacterTable(self._numbers_of_classes)

    def _numbers_of_classes(self, characters: str) -> list[int]:
        """Return 1 for characters of no class, numbers from 2 on for classes, and one more for those of several."""
        seen = known(characters)
        numbers = [1] * len(seen)
        for number, pattern in enumerate(self._patterns, 2):
            for match in pattern.finditer(seen):
                place = match.start()
                numbers[place] = number if numbers[place] == 1 else self._several
        return numbers

    def __call__(self, ragged: tuple[Array, ...], skips: Array | None) -> tuple[Array, ...] | None:
        """Return rows of words, and which are left as they are; None if a search in each string has to find them.

        This is so for short texts, for characters of several classes, and if strings are not UTF-8, do not follow each
        other, or are words although they are empty.
        """
        rows_begin, rows_end, begins, ends, symbols = ragged
        if symbols.size < _SHORT or not begins.size or not rows_begin.size:
            return None
        begins, ends = begins.ravel(), ends.ravel()
        are_left = np.zeros(begins.size, np.bool_) if skips is None else skips.ravel()
        has_rows_inside = rows_begin.min() >= 0 and rows_end.max() <= begins.size
        are_words = are_left | (self._op.behaviour == "mergedwithnext")
        if not has_rows_inside or (begins[1:] < ends[:-1]).any() or (begins + are_words > ends).any():
            return None
        try:
            codes = code_points(symbols.tobytes())
        except UnicodeDecodeError:
            return None
        places = byte_places(codes)
        first, last = (np.minimum(np.searchsorted(places, side), codes.size) for side in (begins, ends))
        classes = self._classes(codes)
        if (classes == self._several).any() or (places[first] != begins).any() or (places[last] != ends).any():
            return None
        is_bound = np.ones(codes.size + 1, np.bool_)
        is_bound[1:-1] = (classes[1:] != classes[:-1]) | ~self._repeats[classes[1:]]
        for number in np.flatnonzero(are_left).tolist():
            is_bound[first[number] : last[number]] = False
        is_bound[first] = is_bound[last] = True
        depths = np.bincount(first, minlength=codes.size + 1) - np.bincount(last, minlength=codes.size + 1)
        bounds = np.flatnonzero(is_bound)
        is_inside = np.cumsum(depths)[bounds[:-1]] > 0
        starts, stops = bounds[:-1][is_inside], bounds[1:][is_inside]
        before = base.sums(np.searchsorted(starts, last) - np.searchsorted(starts, first))
        left = np.repeat(are_left, np.diff(before))
        is_word = self._merge((classes != 1)[starts], left, starts, before)
        before = base.sums(is_word)[before]
        rows = base.as_i32(before[rows_begin], rows_begin.shape), base.as_i32(before[rows_end], rows_end.shape)
        return *rows, base.as_i32(places[starts[is_word]]), base.as_i32(places[stops[is_word]]), symbols, left[is_word]

    def _merge(self, matches: Array, left: Array, starts: Array, before: Array) -> Array:
        """Return the mask of the parts that are words; merged parts now start with the one before them.

        ``before`` has the number of parts before each string.
        """
        if self._op.behaviour == "remove":
            return np.where(left, True, matches == self._op.invert)
        if self._op.behaviour != "mergedwithnext" or not starts.size:
            return np.ones_like(left)
        merges = np.append(False, matches[:-1] & ~matches[1:])
        merges[before[before < starts.size]] = False
        starts[merges] = starts[np.flatnonzero(merges) - 1]
        is_word = left | ~matches
        is_word[before[1:] - 1] = True  # the last part of a string
        return is_word


def _parts(text: bytes, pattern: Any) -> list[tuple[int, int, bool]]:
    """Return the matches in a text, which are marked, and the text between them; an empty match ends the search."""
    seen, places = searched(text)
    parts = []
    at = 0
    for match in pattern.finditer(seen):
        start, stop = match.span()
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
