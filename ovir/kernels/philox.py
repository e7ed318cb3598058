"""Philox4x32-10, a counter-based random generator: its words are a function of key, counter and position.

TensorFlow uses it. Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.parallel import run_blocks

GROUP = 4
"""The number of words per position."""

_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIERS = np.array([[0xD2511F53], [0xCD9E8D57]], np.uint64)
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
# Groups per block: its arrays stay in a cache.
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
    # A 128-bit block of four 32-bit words, each held in 64 bits so that products have room: two that are multiplied,
    # and two that are combined with the products.
    multiplied, others = np.empty((2, groups), np.uint64), np.empty((2, groups), np.uint64)
    position = np.arange(groups, dtype=np.uint64) + np.uint64(first % 2**64)
    np.bitwise_and(position, _LOW, out=multiplied[0])
    np.right_shift(position, _HALF, out=others[0])
    multiplied[1], others[1] = _halves(counter)
    spare = np.empty_like(multiplied)
    for keys in _round_keys(key):
        np.multiply(multiplied, _MULTIPLIERS, out=multiplied)
        np.right_shift(multiplied[::-1], _HALF, out=spare)
        np.bitwise_xor(spare, others, out=spare)
        np.bitwise_xor(spare, keys, out=spare)
        np.bitwise_and(multiplied[::-1], _LOW, out=others)
        multiplied, spare = spare, multiplied
    words = np.empty((groups, GROUP), np.uint32)
    words[:, ::2], words[:, 1::2] = multiplied.T, others.T
    return words.reshape(-1)


@lru_cache(maxsize=32)
def _round_keys(key: int) -> Array:
    """Return the pair of keys of each round, [rounds, 2, 1]."""
    pairs = zip(_halves(key), _KEY_STEPS, strict=True)
    keys = [[(half + step * raised) % 2**32 for step in range(_ROUNDS)] for half, raised in pairs]
    return np.array(keys, np.uint64).T[:, :, np.newaxis]


def _halves(value: int) -> tuple[int, int]:
    """Return the low and the high 32 of 64 bits."""
    return value % 2**32, value // 2**32 % 2**32
