"""Results that are kept for keys which were seen before."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import TypeVar

K = TypeVar("K", bound=Sized)
T = TypeVar("T")

_LONGEST = 256
"""The length, such as the number of bytes, of the longest key whose result is kept."""


class Memo(dict[K, T]):
    """The results of a function of keys; those of other keys are computed. When it is full, it begins anew."""

    def __init__(self, compute: Callable[[K], T], capacity: int) -> None:
        super().__init__()
        self._compute = compute
        self._capacity = capacity

    def __missing__(self, key: K) -> T:
        """Compute the result for a key."""
        result = self._compute(key)
        if len(key) <= _LONGEST:
            if len(self) >= self._capacity:
                self.clear()
            self[key] = result
        return result
