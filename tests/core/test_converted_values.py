"""Conversion of numbers to an element type, and the mask of those that it cannot hold, by exact arithmetic."""

import re
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


@pytest.mark.parametrize(
    ("source", "values", "kind", "held"),
    [
        (t.f4e2m1, [0.5, 6, -3], "f32", [True, True, True]),
        (t.f4e2m1, [0.5, 6, -3], "u8", [False, True, False]),
        (t.bf16, [255, 256], "u8", [True, False]),
        (t.i4, [-8, 7], "i64", [True, True]),
        (t.u2, [0, 3], "f8e5m2", [True, True]),
    ],
)
def test_types_of_ml_dtypes(source: t.ElementType, values: list[float], kind: str, held: list[bool]) -> None:
    array = np.array(values).astype(source.to_dtype())
    converted, lost = t.converted_values(array, t.ElementType.parse(kind))
    assert (~lost).tolist() == held
    assert converted[held].astype(float).tolist() == np.array(values, float)[held].tolist()
    with pytest.raises(ValueError, match="values of NumPy's complex128 are not real numbers"):
        t.converted_values(array.astype(complex), source)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("boolean", 2, "2 is not a value of boolean, which holds False and True"),
        ("nf4", 16, "16 is not a value of nf4, which holds codes from 0 to 15"),
        ("i8", -129, "-129 is not a value of i8, which holds integers from -128 to 127"),
        ("f16", 1e6, "1000000.0 is not a value of f16, which holds numbers from -65504 to 65504"),
    ],
)
def test_numbers_that_a_type_does_not_hold(kind: str, value: float, message: str) -> None:
    array = np.array([1, value, 99])
    element_type = t.ElementType.parse(kind)
    mask = t.converted_values(array, element_type)[1] if kind != "nf4" else array > 15
    with pytest.raises(ValueError, match=re.escape(message)):
        t.require_held(array, mask, element_type)
    t.require_held(array, np.zeros(3, np.bool_), element_type)


@pytest.mark.parametrize("kind", [kind for kind in t.ELEMENT_TYPES if kind.bits], ids=str)
def test_bytes_are_as_few_as_hold_all_elements(kind: t.ElementType) -> None:
    for count in range(1, 20):
        assert 8 * (kind.stored_bytes(count) - 1) < count * kind.bits <= 8 * kind.stored_bytes(count)
