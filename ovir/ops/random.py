"""RandomUniform and Multinomial: random numbers and samples, equal to OpenVINO's for equal seeds."""

from __future__ import annotations

import secrets
from functools import cached_property, lru_cache
from math import prod
from threading import Lock
from typing import Any

import ml_dtypes
import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.tensor_types import Outputs, TensorType
from ovir.core.values import Value
from ovir.kernels.precision import compute_dtype, native_dtype
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import ONE, SMALL, ZERO, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.traits import ALL


class RandomBase(Operator):
    """Base of random operations with two seeds. If both are 0, every call gives different numbers."""

    unmatched = "draw the numbers that a seed gives"
    pure = False
    global_seed: int = attribute(default=0)
    op_seed: int = attribute(default=0)

    @property
    def is_seeded(self) -> bool:
        return (self.global_seed, self.op_seed) != (0, 0)


# --------------------------------------------------------------------------- RandomUniform


@operator("RandomUniform", opset=8)
class RandomUniform(RandomBase):
    """Uniform random numbers in [minval, maxval) of shape ``shape``.

    ``alignment`` "tensorflow": Philox with key ``global_seed`` and counter ``op_seed``; its sequence continues from
    call to call of a compiled model. "pytorch": MT19937 seeded with ``global_seed``, restarted in each call. For real
    types, random bits become the fraction of a number in [0, 1), which is scaled; integers are taken modulo maxval -
    minval. f16 and bf16 are rounded after each step with "tensorflow", and once at the end with "pytorch".

    >>> ops.random_uniform([3], np.float32(0), np.float32(1), "f32", 1, 2)
    [0.40639675 0.8575996 0.05539584]
    """

    takes = (
        "shape index[Rank]; minval output_type[]|[1]; maxval output_type[]|[1]; output_type f16|bf16|f32|f64|i32|i64"
    )
    gives = "output_type[Sizes...]"
    arguments = "output_shape:shape min_val:minval max_val:maxval output_type global_seed= op_seed= alignment="
    domains = by_input(shape=SMALL, minval=ZERO, maxval=ONE)
    output_type: ElementType = attribute()
    alignment: str = attribute(default="tensorflow", choices=("tensorflow", "pytorch"))

    value_inputs = ALL

    def infer(self, shape: TensorType, minval: TensorType, maxval: TensorType) -> Outputs:
        found = self.solved(shape, minval, maxval)
        if minval.constant is not None and maxval.constant is not None:
            self._check_range(minval.constant, maxval.constant)
        known = shape.bounds_or_unknown()
        if known is not None:
            found.shapes["Sizes"] = tuple(self.sizes_in("shape", known))
        return found.outputs()

    @cached_property
    def _generator(self) -> _Philox:
        """Return the sequence of numbers, which each call continues where the previous one ended."""
        return _Philox(self)

    def run(self, shape: Array, minval: Array, maxval: Array) -> Array:
        self._check_range(minval, maxval)
        sizes, dtype = [dim.length for dim in self.sizes_in("shape", Value(shape))], self.output_type.to_dtype()
        count = prod(sizes)
        # The bounds stay in their own type, in which the span is computed.
        low, high = minval.reshape(()), maxval.reshape(())
        words_each = 2 if dtype.itemsize == 8 else 1
        if self.alignment == "tensorflow":
            numbers = _tensorflow_numbers(self._generator.words(count * words_each), low, high, dtype)
        else:
            if dtype == np.int64 and high < 2**32:
                words_each = 1
            seed = self.global_seed if self.is_seeded else secrets.randbits(32)
            numbers = _pytorch_numbers(mersenne_words(seed, count * words_each), words_each, low, high, dtype)
        return numbers.reshape(sizes)

    def _check_range(self, minval: Array, maxval: Array) -> None:
        low, high = minval.item(), maxval.item()
        self.require(low < high, "minval must be less than maxval, got {} and {}", low, high)


class _Philox:
    """The sequence of one RandomUniform. Requests may share it; each call gets its own part."""

    def __init__(self, op: RandomUniform) -> None:
        self._key = op.global_seed if op.is_seeded else secrets.randbits(64)
        self._counter = op.op_seed
        self._position = 0
        self._lock = Lock()

    def words(self, count: int) -> Array:
        """Return the next words."""
        groups = -(-count // 4)
        with self._lock:
            first = self._position
            # TensorFlow leaves room for generators that need more words per number than this one.
            self._position += 256 * groups
        return philox_words(self._key, self._counter, first, groups)[:count]


def _tensorflow_numbers(words: Array, low: Array, high: Array, dtype: np.dtype[Any]) -> Array:
    """Return random words as numbers in [low, high) as TensorFlow does."""
    if dtype.kind == "i":
        # Only 64-bit integers have the low word first.
        return _modulo(words if dtype.itemsize == 4 else _joined(words[1::2], words[::2]), low, high, dtype)
    # The bits are the fraction of a number in [1, 2), from which 1 is subtracted.
    bits = np.dtype(f"u{dtype.itemsize}")
    fraction = (words if dtype.itemsize <= 4 else _joined(words[::2], words[1::2])).astype(bits)
    fraction &= bits.type((1 << _digits(dtype)) - 1)
    fraction |= np.ones((), dtype).view(bits)
    numbers = fraction.view(dtype).astype(native_dtype(dtype)) - 1
    product = (numbers * numbers.dtype.type(high - low)).astype(dtype)  # rounded first, then the sum
    return np.asarray(product.astype(numbers.dtype) + numbers.dtype.type(low)).astype(dtype)


def _pytorch_numbers(words: Array, words_each: int, low: Array, high: Array, dtype: np.dtype[Any]) -> Array:
    """Return random words as numbers in [low, high) as PyTorch does."""
    numbers = words if words_each == 1 else _joined(words[::2], words[1::2])
    if dtype.kind == "i":
        return _modulo(numbers, low, high, dtype)
    digits = _digits(dtype) + 1
    computed = np.float64 if dtype.itemsize == 8 else np.float32
    scaled = (numbers & numbers.dtype.type((1 << digits) - 1)).astype(computed) * computed(2.0**-digits)
    return np.asarray(scaled * computed(high - low) + computed(low)).astype(dtype)


def _modulo(numbers: Array, low: Array, high: Array, dtype: np.dtype[Any]) -> Array:
    """Reduce in unsigned integers, in which every span fits and sums wrap around to the signed result."""
    unsigned = numbers.dtype.type if numbers.dtype.itemsize == dtype.itemsize else np.uint64
    bits = 8 * np.dtype(unsigned).itemsize
    remainder = numbers.astype(unsigned) % unsigned(int(high) - int(low))
    remainder += unsigned(int(low) % 2**bits)
    return np.asarray(remainder).view(dtype)


def _joined(high: Array, low: Array) -> Array:
    return np.asarray(high.astype(np.uint64) << np.uint64(32) | low)


def _digits(dtype: np.dtype[Any]) -> int:
    """Return the number of fraction bits."""
    return int(ml_dtypes.finfo(dtype).nmant)  # type: ignore[no-untyped-call]


# --------------------------------------------------------------------------- Multinomial


@operator("Multinomial", opset=13)
class Multinomial(RandomBase):
    """``num_samples`` random classes for each row of ``probs``, drawn with these probabilities.

    A row need not sum to 1; with ``log_probs`` it holds logarithms. A sample u in [0, 1] selects the first class whose
    cumulative probability is at least u. Without ``with_replacement``, a drawn class cannot be drawn again: its
    probability is removed and the others are rescaled. The samples of all rows, in order, are words of an MT19937
    seeded with both seeds, divided by 2^32 in f32. The specification names no generator; this one is the generator of
    OpenVINO's CPU plugin.

    >>> ops.multinomial([[0.0, 1.0, 0.0]], [4], "i32", True, False, 1, 2)
    [[1 1 1 1]]
    """

    takes = "probs real[N, C]; num_samples integer[]|[1]; convert_type index"
    gives = "convert_type[N, Samples]"
    arguments = "probs num_samples convert_type with_replacement log_probs global_seed= op_seed="
    domains = by_input(num_samples=SMALL)
    convert_type: ElementType = attribute()
    with_replacement: bool = attribute(default=False, specified=True)
    log_probs: bool = attribute(default=False, specified=True)

    value_inputs = (1,)

    def infer(self, probs: TensorType, num_samples: TensorType) -> Outputs:
        found = self.solved(probs, num_samples)
        found.sizes["Samples"] = self.count_of("num_samples", num_samples)
        return found.outputs()

    def run(self, probs: Array, num_samples: Array) -> Array:
        count = int(num_samples.item())
        self.check_count("num_samples", count)
        rows = len(probs)
        out = np.empty((rows, count), self.convert_type.to_dtype())
        if not out.size:
            return out
        seeds = (self.global_seed, self.op_seed) if self.is_seeded else (secrets.randbits(32), secrets.randbits(32))
        is_kept = self.is_seeded and out.size <= _KEPT_WORDS
        draw = mersenne_words_of_seeds if is_kept else mersenne_words_of_seeds.__wrapped__
        words = draw(tuple(seed % 2**32 for seed in seeds), out.size)
        samples = (words.astype(np.float32) * np.float32(2.0**-32)).reshape(rows, count)
        cumulative = self._cumulative(probs)
        if not self.with_replacement:
            return self._without_replacement(cumulative, samples, out)
        for row in range(rows):
            out[row] = np.searchsorted(cumulative[row], samples[row])
        return out

    def _cumulative(self, probs: Array) -> Array:
        """Return the cumulative probabilities, scaled so that the last one of each row is 1."""
        self.require(probs.shape[1] > 0, "probs of shape {} has no classes to draw from", probs.shape)
        probs = probs.astype(compute_dtype(probs.dtype))
        if self.log_probs:
            probs = np.exp(probs - probs.max(axis=1, keepdims=True))
        cumulative = probs.cumsum(axis=1)
        whole = cumulative[:, -1:]
        wrong = ~((probs >= 0).all(axis=1) & np.isfinite(whole[:, 0]) & (whole[:, 0] > 0))
        if wrong.any():
            row = int(wrong.argmax())
            if self.log_probs:
                self.fail(
                    "row {} of probs must hold logarithms of probabilities that are not NaN or +inf, and not all -inf",
                    row,
                )
            self.fail("row {} of probs must hold probabilities, and at least one must be above 0", row)
        cumulative /= whole
        return cumulative

    def _without_replacement(self, cumulative: Array, samples: Array, out: Array) -> Array:
        places, rows = np.arange(cumulative.shape[1]), np.arange(len(cumulative))
        for i in range(samples.shape[1]):
            left = cumulative[:, -1] > 0
            if not left.all():
                row = int(left.argmin())
                self.fail(
                    "num_samples is {}, but row {} of probs has only {} classes to draw", samples.shape[1], row, i
                )
            # Rounding can leave the last one slightly below 1.
            sample = np.minimum(samples[:, i : i + 1], cumulative[:, -1:])
            drawn = (sample <= cumulative).argmax(axis=1)
            out[:, i] = drawn
            before = np.where(drawn > 0, cumulative[rows, drawn - 1], 0)
            probability = (cumulative[rows, drawn] - before)[:, np.newaxis]
            np.subtract(cumulative, probability, out=cumulative, where=places > drawn[:, np.newaxis])
            cumulative[rows, drawn] = before
            cumulative /= 1 - probability
        return out


# --------------------------------------------------------------------------- generators


def philox_words(key: int, counter: int, first: int, groups: int) -> Array:
    """Return the words (uint32) of ``groups`` positions from ``first`` on, four for each, of Philox4x32-10.

    They are a function of key, counter and position. Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3
    (2011).
    """
    # Words of 32 bits are held in 64 bits, so that products have room.
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    position = np.arange(groups, dtype=np.uint64) + np.uint64(first % 2**64)
    a, b = position & low, position >> half
    c, d = (np.full(groups, part, np.uint64) for part in _halves(counter))
    first_key, second_key = _halves(key)
    for _ in range(10):
        p, q = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b, c, d = (q >> half) ^ b ^ np.uint64(first_key), q & low, (p >> half) ^ d ^ np.uint64(second_key), p & low
        first_key, second_key = (first_key + 0x9E3779B9) % 2**32, (second_key + 0xBB67AE85) % 2**32
    return np.stack([a, b, c, d], axis=1).astype(np.uint32).ravel()


def _halves(value: int) -> tuple[int, int]:
    """Return the low and the high 32 of 64 bits."""
    return value % 2**32, value // 2**32 % 2**32


def mersenne_words(seed: int, count: int) -> Array:
    """Return words (uint32) of MT19937, the Mersenne Twister, from the low 32 bits of a seed."""
    return np.random.RandomState(seed % 2**32).randint(0, 1 << 32, count, dtype=np.uint32)


@lru_cache(maxsize=8)  # each run of an operation with seeds draws the same words; making a generator takes 0.1 ms
def mersenne_words_of_seeds(seeds: tuple[int, ...], count: int) -> Array:
    """Return words of a ``std::mt19937`` seeded by a ``std::seed_seq``, which NumPy seeds differently."""
    generator = np.random.MT19937(0)
    key = np.array(_seed_sequence(seeds), np.uint32)
    generator.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": _STATE}}
    words = generator.random_raw(count).astype(np.uint32)
    words.flags.writeable = False
    return words


_KEPT_WORDS = 1 << 16
"""Generating more words takes longer than making a generator."""
_STATE = 624
"""The number of words in the state of MT19937."""


@lru_cache(maxsize=32)
def _seed_sequence(seeds: tuple[int, ...]) -> list[int]:
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
