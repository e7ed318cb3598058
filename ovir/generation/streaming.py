"""Text that appears token by token."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_INCOMPLETE = "\ufffd"
"""The output of a detokenizer for the first bytes of a character."""


class TextStream:
    """Turns tokens into pieces of text, which end between characters. A text ends before the first text that stops it.

    The text of a token depends on the one before it, as where a space is the beginning of a word. So each piece is what
    a few tokens together have more than the first of them.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], stops: Sequence[str] = ()) -> None:
        """Begin a text; ``decode`` returns the text of tokens."""
        self._decode = decode
        self._stops = stops
        self._held = ""
        """Text that is complete, but may be the beginning of one that stops it."""
        self.stopped = False
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
        """Return the text that has waited for other tokens."""
        piece = self._taken(self._waiting()) + self._held
        self.text += self._held
        self._held = ""
        return piece

    def _waiting(self) -> str:
        known = self._decode(self._ids[self._start : self._end]) if self._end else ""
        return self._decode(self._ids[self._start :])[len(known) :]

    def _taken(self, piece: str) -> str:
        """Return the text that is certainly not part of a stop text."""
        if not piece or self.stopped:
            return ""
        self._start, self._end = self._end, len(self._ids)
        text = self._held + piece
        found = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        self.stopped = bool(found)
        end = min(found) if found else len(text) - self._size_held(text)
        self._held = "" if found else text[end:]
        self.text += text[:end]
        return text[:end]

    def _size_held(self, text: str) -> int:
        """Return the size of the longest end of a text with which a text that stops it may begin."""
        longest = max(map(len, self._stops), default=1) - 1
        sizes = range(min(longest, len(text)), 0, -1)
        return next((size for size in sizes if any(stop.startswith(text[-size:]) for stop in self._stops)), 0)
