"""Philox4x32-10, a counter-based random generator: its words are a function of key, counter and position.

TensorFlow uses it. Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.parallel import run_blocks

GROUP = 4
"""The number of words per position."""

_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
# Groups per block: its eight arrays stay in a cache.
_BLOCK = 1 << 12
_LEAST_PER_THREAD = 4 * _BLOCK


def generate(key: int, counter: int, first: int, groups: int, consume: Callable[[int, Array], object]) -> None:
    """Generate the words (uint32) of ``groups`` positions from ``first`` on, block by block, on several threads.

    ``consume(start, words)`` receives each block of words and the position of its first word.
    """

    def run(start: int, stop: int) -> None:
        for begin in range(start, stop, _BLOCK):
            count = min(_BLOCK, stop - begin)
            consume(begin * GROUP, _words(key, counter, first + begin, count))

    run_blocks(run, groups, _LEAST_PER_THREAD)


def _words(key: int, counter: int, first: int, groups: int) -> Array:
    # A 128-bit block of four 32-bit words, each held in 64 bits so that products have room.
    position = np.arange(groups, dtype=np.uint64) + np.uint64(first % 2**64)
    a, b = position & _LOW, position >> _HALF
    c, d = (np.full(groups, half, np.uint64) for half in _halves(counter))
    keys = _halves(key)
    for step in range(_ROUNDS):
        first_key, second_key = (
            np.uint64((half + step * raised) % 2**32) for half, raised in zip(keys, _KEY_STEPS, strict=True)
        )
        p, q = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        np.right_shift(q, _HALF, out=a)
        np.bitwise_xor(a, b, out=a)
        np.bitwise_xor(a, first_key, out=a)
        np.right_shift(p, _HALF, out=c)
        np.bitwise_xor(c, d, out=c)
        np.bitwise_xor(c, second_key, out=c)
        b, d = np.bitwise_and(q, _LOW, out=q), np.bitwise_and(p, _LOW, out=p)
    words = np.empty((groups, GROUP), np.uint32)
    for i, column in enumerate((a, b, c, d)):
        words[:, i] = column
    return words.reshape(-1)


def _halves(value: int) -> tuple[int, int]:
    """Return the low and the high 32 of 64 bits."""
    return value % 2**32, value // 2**32 % 2**32
