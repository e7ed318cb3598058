"""Shorten names and values, make them printable, and count them."""

from __future__ import annotations

import re
from numbers import Integral

LONGEST = 100
"""The largest number of characters of a name or value that a message shows."""
_SHOWN = 10_000  # the same for a whole text; only long names and values make it longer

# A name in quotes, a list, or a word; parts of paths are words.
_PARTS = re.compile(r"(?<!\w)'.*?'(?!\w)|\[[^\[\]]*\]|[^\s/\\'\[\]]+", re.DOTALL)


def escaped(text: str) -> str:
    """Return the text in one line; characters that a terminal does not show, or obeys, are escaped as in Python
    strings."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def readable(text: str) -> str:
    """Return the escaped text, with names and values of more than ``LONGEST`` characters shortened."""
    return escaped(_PARTS.sub(lambda part: _shortened(part[0], LONGEST), _shortened(text, _SHOWN)))


def shown(value: object) -> object:
    """Return a value as messages show it: sequences of integers, most of which are shapes, in the form of a
    PartialShape."""
    if isinstance(value, tuple | list) and all(isinstance(item, Integral) for item in value):
        return f"[{','.join(map(str, value))}]"
    return value


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest * 2 // 3]}…{text[-longest // 4 :]}"


def size_text(amount: int) -> str:
    """Return a number of bytes in readable units, such as ``7.5 GB``; units are powers of 1000."""
    value = float(amount)
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB", "EB"):
        if value < 1000 or unit == "EB":
            break
        value /= 1000
    return plural(amount, "byte") if unit == "bytes" else f"{value:.1f} {unit}"


def exact_size_text(amount: int) -> str:
    """Return a number of bytes in readable units and in full: ``7.5 GB (7,516,192,768 bytes)``."""
    return size_text(amount) if amount < 1000 else f"{size_text(amount)} ({amount:,} bytes)"


def plural(amount: int, noun: str) -> str:
    """Return a number of things in words: ``1 layer``, ``2,000 layers``."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"
