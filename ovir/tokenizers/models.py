"""From words to numbers and back: BPE, WordPiece, Unigram, Trie, and vocabularies of whole words."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.diagnostics.errors import OperatorError
from ovir.ops.base.attributes import attribute
from ovir.ops.base.registry import register
from ovir.tokenizers import base

Ids = Sequence[int]
_WORDS = f"{base.ROWS}; {base.STRINGS}; {base.VOCABULARY}"


class WordModel(base.TokenizerOperator):
    """Base of operations that make ids of each word of a ragged tensor of strings."""

    gives = f"{base.ROWS}; ids i32[Ids]"
    cache_capacity: int = 1 << 15

    def run(
        self, rows_begin: Array, rows_end: Array, begins: Array, ends: Array, symbols: Array, *model: Array
    ) -> tuple[Array, ...]:
        known = self.prepared(type(self).word_ids, *model)
        words = base.unpacked(begins, ends, symbols)
        ids: list[int] = []
        row_ends = []
        for begin, end in base.ranges(rows_begin, rows_end, len(words)):
            for word in words[begin:end]:
                ids += known[word]
            row_ends.append(len(ids))
        return *base.rows_until(row_ends, rows_begin, rows_end), base.as_i32(ids)

    def word_ids(self, *model: Array) -> base.Memo[bytes, Ids]:
        """Return the ids of words with the vocabulary that the inputs from the sixth on hold."""
        return base.Memo(self.encoder(*model), self.cache_capacity)

    def encoder(self, *model: Array) -> Callable[[bytes], Ids]:
        """Return the function from a word to its ids."""
        raise NotImplementedError


# --------------------------------------------------------------------------- words by their bytes

_VALUE = -1
"""The key of a node's value; the other keys are bytes."""


class Trie:
    """A prefix tree of words. Of equal words the last counts; the empty word has no value."""

    def __init__(self, words: Iterable[tuple[bytes, int]]) -> None:
        self._root: dict[int, Any] = {}
        for word, value in words:
            node = self._root
            for byte in word:
                node = node.setdefault(byte, {})
            if word:
                node[_VALUE] = value

    def longest(self, text: bytes, start: int) -> tuple[int, int]:
        """Return the end and the value of the longest word at ``start``; ``start`` and -1 if there is none."""
        node = self._root
        found = start, -1
        for end in range(start, len(text)):
            following = node.get(text[end])
            if following is None:
                break
            node = following
            value = node.get(_VALUE)
            if value is not None:
                found = end + 1, value
        return found


# --------------------------------------------------------------------------- BPE


_MERGED = f"{_WORDS}; merge_begins i32[Merges...]; merge_ends i32[Merges...]; merge_symbols u8[...]"
_RIGHT_PARTS = "right_begins i32[Rights...]; right_ends i32[Rights...]; right_symbols u8[...]"
_MORE_TOKENS = "token_begins i32[T...]; token_ends i32[T...]; token_symbols u8[...]; token_ids integer[...]"


@register("BPETokenizer", version="extension")
class BPETokenizer(WordModel):
    """The ids of words: the longest words of the vocabulary that no merge makes, then merged pair by pair.

    Inputs are rows of words, the vocabulary, the merges in their order (texts with a space, or their left and their
    right parts), and optionally further tokens with their ids. A byte with which no word of the vocabulary begins
    becomes the token of that byte, or the unknown token, or is dropped if there is none. ``fuse_unk`` has no effect, as
    in openvino_tokenizers. Outputs are rows of ids.
    """

    takes = (
        _MERGED,
        f"{_MERGED}; {_RIGHT_PARTS}",
        f"{_MERGED}; {_MORE_TOKENS}",
        f"{_MERGED}; {_RIGHT_PARTS}; {_MORE_TOKENS}",
    )
    unk_token: str = attribute(default="")
    fuse_unk: bool = attribute(default=False)
    suffix_indicator: str = attribute(default="")
    end_suffix: str = attribute(default="")
    byte_fallback: bool = attribute(default=False)
    cache_capacity: int = attribute(default=20000, minimum=0)

    def encoder(self, *model: Array) -> Callable[[bytes], Ids]:
        vocabulary = {word: number for number, word in enumerate(base.unpacked(*model[:3]))}
        left = base.unpacked(*model[3:6])
        if len(model) in (9, 13):
            pairs = list(zip(left, base.unpacked(*model[6:9]), strict=True))
        else:
            pairs = [(first, second) for first, _, second in (merge.partition(b" ") for merge in left)]
        if len(model) in (10, 13):
            for token, number in zip(base.unpacked(*model[-4:-1]), model[-1].ravel().tolist(), strict=True):
                vocabulary.setdefault(token, number)
        return _Merger(self, vocabulary, pairs)


class _Merger:
    """BPE with one vocabulary and its merges."""

    def __init__(self, op: BPETokenizer, vocabulary: dict[bytes, int], pairs: list[tuple[bytes, bytes]]) -> None:
        self._suffix = op.end_suffix.encode()
        self._unknown = vocabulary.get(op.unk_token.encode())
        try:
            self._merges = {
                (vocabulary[left], vocabulary[right]): (rank, vocabulary[left + right])
                for rank, (left, right) in enumerate(pairs)
            }
        except KeyError as error:
            raise OperatorError(f"a merge needs {error.args[0]!r}, which is not in the vocabulary") from None
        made = {left + right for left, right in pairs}
        self._trie = Trie((word, number) for word, number in vocabulary.items() if word not in made)
        self._bytes = [vocabulary.get(b"<0x%02X>" % byte) for byte in range(256)] if op.byte_fallback else None

    def __call__(self, word: bytes) -> Ids:
        """Return the ids of a word."""
        text = word + self._suffix
        symbols: list[int] = []
        at = 0
        while at < len(text):
            end, number = self._trie.longest(text, at)
            if end == at:
                symbols += self._fallback(text[at])
                at += 1
            else:
                symbols.append(number)
                at = end
        return self._merged(symbols)

    def _fallback(self, byte: int) -> list[int]:
        """Return the token of a byte with which no word begins, else the unknown token, or none."""
        number = None if self._bytes is None else self._bytes[byte]
        if number is None:
            number = self._unknown
        return [] if number is None else [number]

    def _merged(self, symbols: list[int]) -> Ids:
        """Return the symbols with all merges done; of equal ones, the pair that arose first is merged first.

        A merged pair is a symbol of its own, so that what was queued for its parts is recognized as outdated.
        """
        merges = self._merges
        count = len(symbols)
        queue = [
            (known[0], i, i, i + 1, known[1])
            for i, pair in enumerate(pairwise(symbols))
            if (known := merges.get(pair)) is not None
        ]
        if not queue:
            return symbols
        heapify(queue)
        before, after = [*range(-1, count - 1)], [*range(1, count), -1]
        first = 0
        while queue:
            _, _, left, right, merged = heappop(queue)
            if after[left] != right:
                continue
            new = len(symbols)
            symbols.append(merged)
            previous, following = before[left], after[right]
            before.append(previous)
            after.append(following)
            after[left] = after[right] = -2
            if previous >= 0:
                after[previous] = new
                if (known := merges.get((symbols[previous], merged))) is not None:
                    heappush(queue, (known[0], new, previous, new, known[1]))
            else:
                first = new
            if following >= 0:
                before[following] = new
                if (known := merges.get((merged, symbols[following]))) is not None:
                    heappush(queue, (known[0], new, new, following, known[1]))
        result = []
        while first >= 0:
            result.append(symbols[first])
            first = after[first]
        return result


# --------------------------------------------------------------------------- longest matches


@register("WordpieceTokenizer", version="extension")
class WordpieceTokenizer(WordModel):
    """The ids of words: the longest word of the vocabulary that a word begins with, then the longest continuations.

    Continuations are the words of the vocabulary that begin with ``suffix_indicator``. A word that cannot be made of
    them and one of more than ``max_bytes_per_word`` bytes become the unknown token, which the last input holds.
    """

    takes = f"{_WORDS}; unknown integer[...]"

    suffix_indicator: str = attribute(default="##")
    max_bytes_per_word: int = attribute(default=100)

    def encoder(self, *model: Array) -> Callable[[bytes], Ids]:
        prefix = self.suffix_indicator.encode()
        words = [(word, number) for number, word in enumerate(base.unpacked(*model[:3]))]
        beginnings = Trie((word, number) for word, number in words if not word.startswith(prefix))
        continuations = Trie((word[len(prefix) :], number) for word, number in words if word.startswith(prefix))
        unknown = [model[3].item()]

        def encode(word: bytes) -> Ids:
            if len(word) > self.max_bytes_per_word:
                return unknown
            at, number = beginnings.longest(word, 0)
            ids = [number]
            while number != -1 and at < len(word):
                at, number = continuations.longest(word, at)
                ids.append(number)
            return unknown if number == -1 else ids

        return encode


@register("TrieTokenizer", version="extension")
class TrieTokenizer(WordModel):
    """The ids of words: the longest words of the vocabulary, one after the other. The last input has their ids."""

    takes = f"{_WORDS}; ids integer[...]"

    def encoder(self, *model: Array) -> Callable[[bytes], Ids]:
        trie = Trie(zip(base.unpacked(*model[:3]), model[3].ravel().tolist(), strict=True))

        def encode(word: bytes) -> Ids:
            ids = []
            at = 0
            while at < len(word):
                end, number = trie.longest(word, at)
                if end == at:
                    raise OperatorError(f"no word of the vocabulary begins with {word[at : at + 8]!r}")
                ids.append(number)
                at = end
            return ids

        return encode


# --------------------------------------------------------------------------- Unigram

_UNKNOWN_PENALTY = np.float32(10)


@register("UnigramTokenizer", version="extension")
class UnigramTokenizer(WordModel):
    """The ids of the words of the vocabulary that make a word with the largest sum of scores, in f32.

    Inputs are rows of words, the vocabulary, and its scores. Unknown characters that follow each other are one token,
    whatever the attributes but ``unk_token_id`` say, as in openvino_tokenizers.
    """

    takes = f"{_WORDS}; scores numeric[...]"

    byte_fallback: bool = attribute(default=False)
    unk_token_id: int = attribute(default=0)
    fuse_unk: bool = attribute(default=True)
    min_score: float = attribute(default=inf)

    def encoder(self, *model: Array) -> Callable[[bytes], Ids]:
        scores = model[3].astype(np.float32).ravel()
        words = zip(base.unpacked(*model[:3]), scores.tolist(), strict=True)
        return _BestPath(words, self.unk_token_id, float(scores.min() - _UNKNOWN_PENALTY))


class _BestPath:
    """The words with the largest sum of scores, found from left to right for each place where a word may end."""

    def __init__(self, words: Iterable[tuple[bytes, float]], unknown: int, unknown_score: float) -> None:
        self._unknown = unknown
        self._unknown_score = unknown_score
        self._root = _Node()
        for number, (word, score) in enumerate(words):
            node = self._root
            for character in _characters(word):
                node = node.following.setdefault(character, _Node())
            node.number, node.score = number, score

    def __call__(self, text: bytes) -> Ids:
        """Return the ids of a text."""
        characters = _characters(text)
        count = len(characters)
        best = array("f", [-inf]) * (count + 1)  # an array of f32, which rounds the sums
        best[0] = 0.0
        origins, numbers = [0] * (count + 1), [self._unknown] * (count + 1)
        for start, node in enumerate(map(self._root.following.get, characters)):
            so_far = best[start]
            end = start + 1
            if node is None or node.number < 0:
                total = self._unknown_score + so_far
                if total > best[end]:
                    best[end] = total
                    origins[end], numbers[end] = start, self._unknown
            while node is not None:
                if node.number >= 0:
                    total = node.score + so_far
                    other = best[end]
                    if total > other:
                        best[end] = total
                        if best[end] > other:
                            origins[end], numbers[end] = start, node.number
                if end == count or not node.following:
                    break
                node = node.following.get(characters[end])
                end += 1
        return self._traced(origins, numbers)

    def _traced(self, origins: list[int], numbers: list[int]) -> Ids:
        """Return the ids on the way that leads to the end, with one for unknown characters that follow each other."""
        ids: list[int] = []
        end = len(origins) - 1
        while end > 0:
            ids.append(numbers[end])
            end = origins[end]
        ids.reverse()
        if (unknown := self._unknown) not in ids:
            return ids
        pairs = zip(ids, [None, *ids], strict=False)
        return [number for number, last in pairs if number != unknown or last != number]


class _Node:
    """The beginning of words: the nodes by the characters that may follow, and the word that ends here, if one does."""

    __slots__ = ("following", "number", "score")

    def __init__(self) -> None:
        self.following: dict[str, _Node] = {}
        self.number = -1
        self.score = 0.0


_CHARACTERS = re.compile(rb"[\x00-\xbf]|[\xc0-\xdf].?|[\xe0-\xef].{0,2}|[\xf0-\xff].{0,3}", re.DOTALL)


def _characters(text: bytes) -> Sequence[str]:
    """Return the characters of a text; if it is not UTF-8, each is as long as its first byte says."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return [character.decode(errors="surrogateescape") for character in _CHARACTERS.findall(text)]


# --------------------------------------------------------------------------- whole words


@register("VocabEncoder", version="extension")
class VocabEncoder(base.TokenizerOperator):
    """The id of each string in a vocabulary of strings and ids, or the last input if the string is not in it."""

    takes = f"{base.STRINGS}; {base.VOCABULARY}; ids integer[...]; default integer[...]"
    gives = "i32[S...]"

    def run(self, begins: Array, ends: Array, symbols: Array, *model: Array) -> Array:
        known = self.prepared(VocabEncoder.vocabulary, *model[:4])
        default = model[4].item()
        return base.as_i32([known.get(word, default) for word in base.unpacked(begins, ends, symbols)], begins.shape)

    def vocabulary(self, begins: Array, ends: Array, symbols: Array, ids: Array) -> dict[bytes, int]:
        """Return the ids of strings; of equal strings the first counts."""
        items = list(zip(base.unpacked(begins, ends, symbols), ids.ravel().tolist(), strict=True))
        return dict(reversed(items))


@register("VocabDecoder", version="extension")
class VocabDecoder(base.TokenizerOperator):
    """The strings of ids [batch, length] as rows of strings; ids outside the vocabulary and those to skip are empty.

    The ids to skip are the last input, or an attribute of older files. With length 0, a row has one empty string.
    """

    takes = f"ids integer[Batch, Length]; {base.VOCABULARY}; ?skipped integer[...]"
    gives = "row_begins i32[Batch]; row_ends i32[Batch]; begins i32[Words]; ends i32[Words]; symbols u8[Bytes]"
    skip_tokens: tuple[int, ...] = attribute(default=())

    def run(self, ids: Array, *model: Array) -> tuple[Array, ...]:
        words = self.prepared(VocabDecoder.words, *model[:3])
        skipped = set(model[3].ravel().tolist() if len(model) == 4 else self.skip_tokens)
        batch, length = ids.shape
        count = len(words)
        strings = [
            words[number] if 0 <= number < count and number not in skipped else b"" for number in ids.ravel().tolist()
        ] or [b""] * batch
        width = max(length, 1)
        rows = np.arange(batch, dtype=np.int32) * width
        return rows, rows + np.int32(width), *base.packed(strings, (-1,))

    def words(self, *model: Array) -> list[bytes]:
        """Return the strings of the vocabulary."""
        return base.unpacked(*model)
