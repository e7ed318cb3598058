"""Conversion of numbers to an element type, and the mask of those that it cannot hold, by exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from ovir.core import element_types as t

INTEGERS = ["boolean", "u1", "u2", "u3", "i4", "u4", "u6", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
SOURCES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]


def numbers_of(dtype: np.dtype) -> np.ndarray:
    """Return numbers beside the limits of all integer types, as far as a dtype has them."""
    wide = [
        sign * (1 << bits) + more
        for bits in (0, 1, 2, 3, 4, 6, 7, 8, 15, 16, 31, 32, 63, 64)
        for sign in (1, -1)
        for more in (-1, 0, 1)
    ]
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.array([*wide, 0.5, -0.5, 1.5, np.inf, -np.inf, np.nan]).astype(dtype)
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return np.array([number for number in wide if low <= number <= high], dtype)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", INTEGERS)
def test_integers(kind: str, source: str) -> None:
    element_type = t.ElementType.parse(kind)
    array = numbers_of(np.dtype(source))
    low, high = (0, 1) if kind == "boolean" else t.value_range(element_type)
    fits = [bool(np.isfinite(x)) and Fraction(x.item()).denominator == 1 and low <= int(x) <= high for x in array]
    converted, lost = t.converted_values(array, element_type)
    assert lost.tolist() == [not each for each in fits]
    assert converted[fits].tolist() == array[fits].tolist()
    assert not t.converted_values(array[fits], element_type)[1].any()
    assert t.converted_values(array[:0], element_type)[1].shape == (0,)


@pytest.mark.parametrize(
    ("kind", "held", "lost"),
    [
        ("f16", [65504, 65519, np.inf, np.nan, 1e-9], [65520, -1e6]),
        ("bf16", [3e38, -np.inf, np.nan], [3.4e38]),
        ("f32", [3.4028235e38, np.inf], [1e39]),
        ("f4e2m1", [6, -6, 0.1], [7.1, -8, np.inf, np.nan]),
        ("f8e4m3", [448, -448, np.nan], [500, np.inf]),
        ("f8e5m2", [57344, np.inf, np.nan], [65520]),
    ],
)  # fmt: skip
def test_real_numbers(kind: str, held: list[float], lost: list[float]) -> None:
    converted, mask = t.converted_values(np.array([*held, *lost]), t.ElementType.parse(kind))
    assert mask.tolist() == [False] * len(held) + [True] * len(lost)
    assert np.isnan(converted[: len(held)].astype(float)).tolist() == np.isnan(held).tolist()
