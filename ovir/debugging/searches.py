"""Searches that take few tests: for the least number that suffices, and for the items that are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def least(
    refused: int,
    found: int,
    suffices: Callable[[int], bool],
    *,
    least_gain: int = 1,
    narrowed: Callable[[int, int], None] | None = None,
) -> int:
    """Return the least sufficient number, by halving the range between an insufficient and a sufficient one.

    ``refused`` is known not to suffice, ``found`` is known to suffice; numbers above one that suffices are taken to
    suffice, too. As long as ``found`` itself is the only one that suffices, the search ends when no more than
    ``least_gain`` can be gained. ``narrowed`` is called with the range after each test.
    """
    end = found
    while found - refused > (least_gain if found == end else 1):
        middle = (refused + found) // 2
        if suffices(middle):
            found = middle
        else:
            refused = middle
        if narrowed is not None:
            narrowed(refused, found)
    return found


def needed(
    items: Sequence[Item],
    can_remove: Callable[[Sequence[Item], Sequence[Item]], bool],
    *,
    most_failures: int | None = None,
) -> list[Item]:
    """Return the items that are left after chunks of them are removed: half of them at first, single ones in the end.

    ``can_remove`` is called with a chunk, and with the items that would be left without it, which are never none. The
    search ends early after ``most_failures`` sizes of chunks in a row of which no chunk can be removed.
    """
    left, size, failures = list(items), len(items) // 2, 0
    while size and failures != most_failures:
        before, start = len(left), 0
        while start < len(left):
            chunk, rest = left[start : start + size], left[:start] + left[start + size :]
            if rest and can_remove(chunk, rest):
                left = rest
            else:
                start += size
        failures = 0 if len(left) < before else failures + 1
        size //= 2
    return left
