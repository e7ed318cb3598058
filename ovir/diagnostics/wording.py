"""Words of messages: counted nouns, numbers, and suggestions for unknown words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
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


def filled(message: str, values: Iterable[object]) -> str:
    """Return a message with values in place of its ``{}``.

    ``{:channel}`` is replaced by a number and its noun: ``1 channel``, ``3 channels``.
    """
    return message.format(*map(_Value, values))


class _Value:
    """A value that can be formatted with a noun."""

    def __init__(self, value: object) -> None:
        self.value = shown(value)

    def __format__(self, spec: str) -> str:
        if spec.replace(" ", "").isalpha() and len(spec) > 1:
            return f"{self.value} {_number_of(str(self.value) == '1', spec)}"
        return format(self.value, spec)

    def __repr__(self) -> str:
        return repr(self.value)


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest * 2 // 3]}…{text[-longest // 4 :]}"


def number_text(value: float | int) -> str:
    """Return an integer in full, another number with six significant digits."""
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def size_text(amount: int) -> str:
    """Return a number of bytes in readable units, such as ``7.5 GB``; units are powers of 1000."""
    value = float(amount)
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB", "EB"):
        if value < 1000 or unit == "EB":
            break
        value /= 1000
    return plural(amount, "byte") if unit == "bytes" else f"{value:.1f} {unit}"


def count_text(amount: int) -> str:
    """Return a number in short, such as ``3.87 G``; units are powers of 1000."""
    value = float(amount)
    for unit in ("", " k", " M", " G", " T"):
        if value < 1000 or unit == " T":
            break
        value /= 1000
    return f"{amount:,}" if not unit else f"{value:.3g}{unit}" if value < 1000 else f"{value:,.0f}{unit}"


def exact_size_text(amount: int) -> str:
    """Return a number of bytes in readable units and in full: ``7.5 GB (7,516,192,768 bytes)``."""
    return size_text(amount) if amount < 1000 else f"{size_text(amount)} ({amount:,} bytes)"


def plural(amount: int, noun: str) -> str:
    """Return a number of things in words: ``1 layer``, ``2,000 layers``."""
    return f"{amount:,} {_number_of(amount == 1, noun)}"


def reason_of(error: BaseException) -> str:
    """Return why something failed: what the system says of it, which repeats no path, or else the text of the error."""
    return getattr(error, "strerror", None) or str(error)


def quoted(names: Iterable[str]) -> str:
    """Return names in quotes, with commas."""
    return ", ".join(f"'{name}'" for name in names)


def first_quoted(names: Sequence[str], most: int) -> str:
    """Return the first names in quotes, and how many follow."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{quoted(names[:most])}{more}"


def and_others(count: int, noun: str) -> str:
    """Return the end of a message that applies to further things as well; nothing if there are none."""
    return f"; the same applies to {plural(count, noun)}" if count else ""


def _number_of(is_one: bool, noun: str) -> str:
    return noun if is_one else _IRREGULAR.get(noun, f"{noun}s")


_IRREGULAR = {"axis": "axes", "class": "classes", "index": "indices"}


def closest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known word that is most similar, or None; ``cutoff`` is the least similarity, 1 for equal words."""
    return _closest(word, tuple(known), cutoff)


def did_you_mean(word: str, known: Iterable[str], form: str = "'{}'", cutoff: float = 0.6) -> str | None:
    """Return a hint that suggests the closest known word, or None; ``form`` quotes the word."""
    meant = closest(word, known, cutoff)
    return None if meant is None else f"did you mean {form.format(meant)}?"


@lru_cache(1024)  # one misspelled word often occurs many times in a file
def _closest(word: str, known: tuple[str, ...], cutoff: float) -> str | None:
    from difflib import get_close_matches  # valid files do not need it

    return next(iter(get_close_matches(word, known, n=1, cutoff=cutoff)), None)


def shortened(text: str, length: int = 60) -> str:
    """Return a string for use in a message, cut off if it is long."""
    return text if len(text) <= length else f"{text[:length]}..."
