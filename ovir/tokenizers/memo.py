"""Results that are kept for keys which were seen before."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LONGEST = 256
"""Bytes of the longest key whose result is kept."""


class Memo(dict[bytes, T]):
    """The results of a function of bytes; those of other keys are computed. When it is full, it begins anew."""

    def __init__(self, compute: Callable[[bytes], T], capacity: int) -> None:
        super().__init__()
        self._compute = compute
        self._capacity = capacity

    def __missing__(self, key: bytes) -> T:
        """Compute the result for a key."""
        result = self._compute(key)
        if len(key) <= _LONGEST:
            if len(self) >= self._capacity:
                self.clear()
            self[key] = result
        return result
