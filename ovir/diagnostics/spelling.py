"""Suggestions for unknown words."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


def closest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known word that is most similar, or None; ``cutoff`` is the least similarity, 1 for equal words."""
    return _closest(word, tuple(known), cutoff)


def did_you_mean(word: str, known: Iterable[str], form: str = "'{}'", cutoff: float = 0.6) -> str | None:
    """Return a hint that suggests the closest known word, or None; ``form`` quotes the word."""
    meant = closest(word, known, cutoff)
    return None if meant is None else f"did you mean {form.format(meant)}?"


@lru_cache(1024)  # one misspelt word often occurs many times in a file
def _closest(word: str, known: tuple[str, ...], cutoff: float) -> str | None:
    from difflib import get_close_matches  # valid files do not need it

    return next(iter(get_close_matches(word, known, n=1, cutoff=cutoff)), None)
