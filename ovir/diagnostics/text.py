"""Texts for people: names and values made short and printable."""

from __future__ import annotations

import re

LONGEST = 100
"""So many characters of a name or value a message shows."""
_SHOWN = 10_000  # of a whole text: no message is longer, except for such a name or value in it

# A name in quotes, a list, or a word; parts of paths are words.
_PARTS = re.compile(r"(?<!\w)'.*?'(?!\w)|\[[^\[\]]*\]|[^\s/\\'\[\]]+", re.DOTALL)


def escaped(text: str) -> str:
    """The text in one line, with what a terminal would not show (or obey) as Python writes it in a string."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def readable(text: str) -> str:
    """The same, with names and values of more than ``LONGEST`` characters shortened."""
    return escaped(_PARTS.sub(lambda part: _shortened(part[0], LONGEST), _shortened(text, _SHOWN)))


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest * 2 // 3]}…{text[-longest // 4 :]}"
