"""The words of a vocabulary by their bytes, to find those with which a text goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

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

    def prefixes(self, text: bytes, start: int) -> Iterator[tuple[int, int]]:
        """Yield the end and the value of each word that the text has at ``start``, from short to long."""
        node = self._root
        for end in range(start, len(text)):
            following = node.get(text[end])
            if following is None:
                return
            node = following
            if _VALUE in node:
                yield end + 1, node[_VALUE]

    def has_prefix(self, text: bytes) -> bool:
        """Return whether a word begins with a text."""
        node: Any = self._root
        for byte in text:
            node = node.get(byte)
            if node is None:
                return False
        return True

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
