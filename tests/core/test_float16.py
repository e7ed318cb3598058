"""Conversion between float16 and float32 gives what NumPy's gives."""

import numpy as np

from ovir.core import float16
from ovir.core.arrays import Array

ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def narrowed(x: Array) -> Array:
    result = np.empty(x.shape, np.float16)
    float16.copy(x, result)
    return result


def same(a: Array, b: Array) -> bool:
    """Whether all bits are equal, but for those of NaN."""
    bits = a.dtype.str.replace("f", "u")
    return bool(np.array_equal(a.view(bits)[~np.isnan(a)], b.view(bits)[~np.isnan(b)])) and np.array_equal(
        np.isnan(a), np.isnan(b)
    )


def test_every_float16_becomes_the_same_float32() -> None:
    with np.errstate(all="ignore"):
        finite = ALL[np.isfinite(ALL)]
        assert same(float16.converted(ALL, np.dtype(np.float32)), ALL.astype(np.float32))
        assert same(float16.converted(finite, np.dtype(np.float32)), finite.astype(np.float32))
        assert same(float16.converted(ALL[:7], np.dtype(np.float32)), ALL[:7].astype(np.float32))


def test_float32_is_rounded_to_the_nearest_ties_to_even() -> None:
    wide = ALL[np.isfinite(ALL)].astype(np.float32)
    middles = (wide[:-1] + wide[1:]) / 2
    rng = np.random.default_rng(0)
    anything = rng.integers(0, 1 << 32, 300_000, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        for x in (
            ALL.astype(np.float32),
            wide,
            middles,
            np.nextafter(middles, 0, dtype=np.float32),
            np.nextafter(middles, np.inf, dtype=np.float32),
            anything,
        ):
            assert same(narrowed(x), x.astype(np.float16))
        around = np.array(
            [65503, 65504, 65519.99, 65520, 65536, 1e30, np.inf, -65520, -1e30, -np.inf, -0.0] * 200, np.float32
        )
        assert same(narrowed(around), around.astype(np.float16))


def test_strides() -> None:
    x = np.random.default_rng(1).standard_normal((60, 70), np.float32)
    target = np.empty((70, 60), np.float16)
    float16.copy(x.T, target)
    assert same(target, x.T.astype(np.float16))
    assert same(float16.converted(target.T, np.dtype(np.float32)), x.astype(np.float16).astype(np.float32))
