"""What was probably meant by a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


def closest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that is most alike; None where none is. ``cutoff`` is how much alike: 1 is the same."""
    return _closest(word, tuple(known), cutoff)


def did_you_mean(word: str, known: Iterable[str], form: str = "'{}'", cutoff: float = 0.6) -> str | None:
    """A hint that names it, in the form of what it is."""
    meant = closest(word, known, cutoff)
    return None if meant is None else f"did you mean {form.format(meant)}?"


@lru_cache(1024)  # a writer who does not know a word writes it many times
def _closest(word: str, known: tuple[str, ...], cutoff: float) -> str | None:
    from difflib import get_close_matches  # a sound file needs none

    return next(iter(get_close_matches(word, known, n=1, cutoff=cutoff)), None)
