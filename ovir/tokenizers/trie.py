"""The words of a vocabulary by their bytes, to find those with which a text goes on."""

from __future__ import annotations

from collections.abc import Iterable
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
