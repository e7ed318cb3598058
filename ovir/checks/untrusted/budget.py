"""The limits of the check of one file."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import size_text


@dataclass(frozen=True)
class Budget:
    """The time and memory that the check of one untrusted file may take; it is an error, OVIR001, to take more.

    The memory is limited on Linux, the time everywhere.
    """

    seconds: float | None = None
    """The time in seconds. None means 30, and 15 more for each GB of weights on the disk."""
    memory: int = 1 << 30
    """Bytes of memory, besides Python with its packages and the pages of the weights."""
    run: bool = False
    """Whether a file without errors is also run on random inputs, with as much time and memory again."""

    def __post_init__(self) -> None:
        if self.seconds is not None and not (0 < self.seconds <= _MOST_SECONDS):
            message = f"must be above 0 and at most {_MOST_SECONDS:,}, got {self.seconds}"
            raise InputError.usage(message, option="seconds")
        if not (_LEAST <= self.memory <= _MOST):
            message = f"must be at least {size_text(_LEAST)} and at most {size_text(_MOST)}"
            raise InputError.usage(f"{message}, got {size_text(self.memory)}", option="memory")

    def seconds_for(self, weights: str) -> float:
        """Return the time for a model whose weights are in a file, which need not exist."""
        if self.seconds is not None:
            return self.seconds
        try:
            state = os.lstat(weights)
        except OSError:
            return _SECONDS
        return _SECONDS + _SECONDS_PER_GB * stored_size(state) / 1e9


def stored_size(state: os.stat_result) -> int:
    """Return the bytes of a file that are on the disk, which are fewer than its size if it has holes."""
    blocks = getattr(state, "st_blocks", None)  # Windows does not say
    return state.st_size if blocks is None else min(state.st_size, blocks * 512)


_LEAST = 1 << 24
_MOST = 1 << 50
"""Systems refuse limits near 2**63."""
_MOST_SECONDS = 1_000_000
"""Systems refuse to wait much longer."""
_SECONDS = 30.0
_SECONDS_PER_GB = 15.0
