"""MT19937, the Mersenne Twister, as PyTorch and C++ seed it. NumPy has the generator but seeds it differently."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from ovir.core.arrays import Array

_STATE = 624
_BLOCK = 1 << 14
# Words that are cached, because making a generator takes much longer than generating them.
_FEW = 1 << 12


def generate(seed: int, count: int, consume: Callable[[int, Array], object]) -> None:
    """Generate ``count`` words (uint32), block by block, from the low 32 bits of ``seed``.

    ``consume(start, words)`` receives each block of words and the position of its first word.
    """
    generator = np.random.RandomState(seed % 2**32)
    for start in range(0, count, _BLOCK):
        consume(start, generator.randint(0, 1 << 32, min(_BLOCK, count - start), dtype=np.uint32))


def seeded_by_sequence(seeds: Sequence[int], count: int) -> Array:
    """Return ``count`` words of a ``std::mt19937`` seeded by a ``std::seed_seq`` of these seeds."""
    lowest = tuple(seed % 2**32 for seed in seeds)
    return _few_words(lowest, count) if count <= _FEW else _words(lowest, count)


@lru_cache(maxsize=32)
def _few_words(seeds: tuple[int, ...], count: int) -> Array:
    words = _words(seeds, count)
    words.flags.writeable = False
    return words


def _words(seeds: tuple[int, ...], count: int) -> Array:
    generator = np.random.MT19937(0)
    key = np.array(_seed_sequence(seeds), np.uint32)
    generator.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": _STATE}}
    return generator.random_raw(count).astype(np.uint32)


def _seed_sequence(seeds: Sequence[int]) -> list[int]:
    """Return the state that the C++ standard ([rand.util.seedseq]) derives from 32-bit seeds."""
    size, lag = _STATE, 11
    state = [0x8B8B8B8B] * size
    first, second = (size - lag) // 2, (size - lag) // 2 + lag
    rounds = max(len(seeds) + 1, size)
    for k in range(rounds + size):
        i, j, last = k % size, (k + first) % size, (k - 1) % size
        if k < rounds:
            mixed = state[i] ^ state[j] ^ state[last]
            added = 1664525 * (mixed ^ mixed >> 27) % 2**32
            state[j] = (state[j] + added) % 2**32
            added += len(seeds) if k == 0 else i + (seeds[k - 1] if k <= len(seeds) else 0)
            state[i] = added % 2**32
            state[(k + second) % size] = (state[(k + second) % size] + state[i]) % 2**32
        else:
            mixed = (state[i] + state[j] + state[last]) % 2**32
            removed = 1566083941 * (mixed ^ mixed >> 27) % 2**32
            state[j] ^= removed
            state[i] = (removed - i) % 2**32
            state[(k + second) % size] ^= state[i]
    return state
