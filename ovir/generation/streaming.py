"""Text that appears token by token."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_INCOMPLETE = "\ufffd"
"""What a detokenizer makes of the first bytes of a character."""


class TextStream:
    """Turns tokens into pieces of text, which end between characters.

    The text of a token depends on the one before it, as where a space is the beginning of a word. So each piece is what
    a few tokens together have more than the first of them.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        """Begin a text; ``decode`` returns the text of tokens."""
        self._decode = decode
        self._ids: list[int] = []
        self._start = self._end = 0
        """The tokens from start to end are text already; they are decoded again as the context of those after them."""
        self.text = ""

    def add(self, token: int) -> str:
        """Add a token, and return the text that is complete with it."""
        self._ids.append(token)
        piece = self._waiting()
        return "" if piece.endswith(_INCOMPLETE) else self._taken(piece)

    def close(self) -> str:
        """Return the text of the tokens that have waited for others."""
        return self._taken(self._waiting())

    def _waiting(self) -> str:
        known = self._decode(self._ids[self._start : self._end]) if self._end else ""
        return self._decode(self._ids[self._start :])[len(known) :]

    def _taken(self, piece: str) -> str:
        if piece:
            self._start, self._end = self._end, len(self._ids)
            self.text += piece
        return piece
