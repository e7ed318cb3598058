"""Names that fit: long ones leave out the parts that many names have in common, so that they still differ."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from itertools import groupby

_PARTS = re.compile(r"(?:^[/.:_]+)?[^/.:_]+[/.:_]*|[/.:_]+")
"""The parts of a name, with the separators after each."""


def columns_of(text: str) -> int:
    """Return the number of terminal columns that a string takes: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def short_names(names: Sequence[str], width: int) -> list[str]:
    """Return names that take at most ``width`` columns; ``…`` stands for parts of the longer ones.

    Parts that all names have are left out first, then long ones that many have. So numbers and rare parts remain, in
    which names differ. Names that would look alike nevertheless are numbered.
    """
    if all(columns_of(name) <= width for name in names):
        return list(names)
    distinct = dict.fromkeys(names)
    counts = Counter(part for name in distinct for part in set(_PARTS.findall(name)))
    weights = {p: math.inf if n == len(distinct) > 1 else n * (len(p) - 1) for p, n in counts.items()}
    alike: dict[str, list[str]] = {}
    for name in distinct:
        short = name if columns_of(name) <= width else _short(name, width, weights)
        alike.setdefault(short, []).append(name)
    found = {name: text for short, group in alike.items() for name, text in _numbered(short, group, width)}
    return [found[name] for name in names]


def _short(name: str, width: int, weights: Mapping[str, float]) -> str:
    """Return the rarest parts that fit."""
    parts = _PARTS.findall(name)
    kept: set[int] = set()
    for index in sorted(range(len(parts)), key=lambda i: weights[parts[i]]):
        if columns_of(_joined(parts, kept | {index})) <= width:
            kept.add(index)
        elif not kept:
            break
    return _joined(parts, kept) if kept else without_middle(name, width)


def _numbered(short: str, names: Sequence[str], width: int) -> list[tuple[str, str]]:
    """Return names that have the same short form with a form for each; one that is short enough keeps its own."""
    if len(names) == 1:
        return [(names[0], short)]
    marks = [f" ({number})" for number in range(1, len(names) + 1)]
    return [
        (name, name if name == short else without_middle(short, max(width - len(mark), 1)) + mark)
        for name, mark in zip(names, marks, strict=True)
    ]


def _joined(parts: Sequence[str], kept: Container[int]) -> str:
    """Return the parts at the given positions, with ``…`` for those between them."""
    runs = groupby(range(len(parts)), key=lambda i: i in kept)
    return "".join("".join(parts[i] for i in run) if is_kept else "…" for is_kept, run in runs)


def without_middle(text: str, width: int) -> str:
    """Return a string that takes at most ``width`` columns: its first third, ``…`` and its end, if it takes more."""
    if columns_of(text) <= width:
        return text
    ahead = (width - 1) // 3
    return f"{_beginning(text, ahead)}…{_beginning(text[::-1], width - 1 - ahead)[::-1]}"


def _beginning(text: str, width: int) -> str:
    """Return as much of the beginning as fits into ``width`` columns."""
    used = 0
    for index, character in enumerate(text):
        used += columns_of(character)
        if used > width:
            return text[:index]
    return text
