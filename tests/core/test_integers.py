from typing import Any

import numpy as np
import pytest

from ovir.core.arrays import listed_array
from ovir.core.element_types import ElementType
from ovir.core.shapes import INT64, UINT64, OutOfRangeError, parse_integer, parse_value


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("+7", 7), ("\n -12", -12), ("007", 7), ("-0", 0), (str(2**63 - 1), 2**63 - 1), ("0" * 5000 + "1", 1)],
)
def test_integers(text: str, value: int) -> None:
    assert parse_integer(text) == value


@pytest.mark.parametrize(
    "text", ["", "-", "1_0", "\u0663", "\u00b2", "1.0", "0x1", "1e3", "- 1", "1 2", "\u00a01", "nan", "1 ", "1\n"]
)
def test_no_integers(text: str) -> None:
    with pytest.raises(ValueError, match="is not an integer"):
        parse_integer(text)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [(str(2**63), INT64), (str(-(2**63) - 1), INT64), ("-1", UINT64), (str(2**64), UINT64), ("9" * 5000, UINT64)],
)
def test_beyond_64_bits(text: str, allowed: range) -> None:
    with pytest.raises(OutOfRangeError, match="64-bit integers") as caught:
        parse_integer(text, allowed)
    assert len(str(caught.value)) < 200  # a long text is not repeated


@pytest.mark.parametrize(("text", "value"), [("7", 7), (" -7\n", -7), ("007", 7)])
def test_values_of_operations(text: str, value: int) -> None:
    assert parse_value(text) == value


@pytest.mark.parametrize("text", ["+7", " +7", "7\u00a0", "1_0", ""])
def test_no_values_of_operations(text: str) -> None:
    with pytest.raises(ValueError, match="is not an integer"):
        parse_value(text)


@pytest.mark.parametrize(
    ("value", "element_type", "expected"),
    [
        ([1, -(2**63)], None, np.int64([1, -(2**63)])),
        ([[0], [2**64 - 1]], None, np.uint64([[0], [2**64 - 1]])),
        (2**63, "u64", np.uint64(2**63)),
        ([2**63, -1.5], None, np.float64([2**63, -1.5])),
        ([1, 2**63], "u64", np.uint64([1, 2**63])),
        ([-1, 2**64 - 1], "u64", "-1 is not a value of u64, which holds integers from 0 to 18446744073709551615"),
        ([0.0, 2.0**63], None, np.float64([0, 2**63])),
        ([None, 2**63], None, np.array([None, 2**63])),
        ([], "f32", np.float64([])),
        ([2**64, -(2**63) - 1], "f32", np.float64([2**64, -(2**63) - 1])),
        ([-1, 2**63], None, "no integer type has both -1 and 9223372036854775808"),
        ([-(2**63), 2**63], None, "no integer type has both -9223372036854775808 and 9223372036854775808"),
        ([0, 2**64], None, "18446744073709551616 exceeds the 64 bits"),
        ([-(2**63) - 1], None, "-9223372036854775809 exceeds the 64 bits"),
        ([-1, 2**63], "i64", "9223372036854775808"),
        ([10**400], "f64", "beyond the numbers of f64"),
        ([[1], [1, 2]], None, "lists of equal lengths"),
    ],
)
def test_listed_integers_stay_exact(value: Any, element_type: str | None, expected: Any) -> None:
    kind = None if element_type is None else ElementType.parse(element_type)
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            listed_array(value, kind)
    else:
        found = listed_array(value, kind)
        assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())
