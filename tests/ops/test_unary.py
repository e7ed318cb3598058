"""Elementwise functions of one input, and the error function: values, integers, what is known, what is refused."""

from math import erf as exact_erf
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.tensors import inferred, inferred_value, ran, tensor

from ovir.core.element_types import boolean, f32, f64, i64
from ovir.core.shapes import PartialShape, new_symbol
from ovir.core.tensor_types import TensorType
from ovir.core.values import from_bounds
from ovir.kernels.erf import erf, erfinv
from ovir.ops import unary as un
from ovir.ops.base.operator import Operator

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("op", "x", "expected"),
    [
        (un.Abs(), [-2.5, -0.0, 3, NAN, -INF], [2.5, 0, 3, NAN, INF]),
        (un.Negative(), [-2.5, 3, INF], [2.5, -3, -INF]),
        (un.Sign(), [-2.5, 0, -0.0, 3, NAN, -INF], [-1, 0, 0, 1, NAN, -1]),
        (un.Floor(), [-2.5, 2.5, NAN, INF], [-3, 2, NAN, INF]),
        (un.Ceiling(), [-2.5, 2.5, -INF], [-2, 3, -INF]),
        (un.Round(), [-4.5, -1.9, -1.5, 0.5, 0.9, 1.5, 2.3, 2.5], [-4, -2, -2, 0, 1, 2, 2, 2]),
        (un.Sqrt(), [4, 0, -1, INF], [2, 0, NAN, INF]),
        (un.Exp(), [0, 1, -INF, INF], [1, np.e, 0, INF]),
        (un.Log(), [1, np.e, 0, -1], [0, 1, -INF, NAN]),
        (un.Sin(), [0, np.pi / 6, INF], [0, 0.5, NAN]),
        (un.Cos(), [0, np.pi / 3], [1, 0.5]),
        (un.Tan(), [0, np.pi / 4], [0, 1]),
        (un.Asin(), [1, -0.5, 1.5], [np.pi / 2, -np.pi / 6, NAN]),
        (un.Acos(), [1, 0, -1, 2], [0, np.pi / 2, np.pi, NAN]),
        (un.Atan(), [1, -INF], [np.pi / 4, -np.pi / 2]),
        (un.Sinh(), [0, 1, -1], [0, 1.1752012, -1.1752012]),
        (un.Cosh(), [0, 1, -1], [1, 1.5430806, 1.5430806]),
        (un.Asinh(), [0, 2], [0, 1.4436355]),
        (un.Acosh(), [1, 2, 0.5], [0, 1.3169579, NAN]),
        (un.Atanh(), [0, 0.5, 1, 2], [0, 0.54930615, INF, NAN]),
        (un.Erf(), [0, 1, -2, 9, -INF, NAN], [0, 0.8427008, -0.9953223, 1, -1, NAN]),
        (un.ErfInv(), [0, 0.5, -0.99, 1, -1, 1.5], [0, 0.47693628, -1.8213864, INF, -INF, NAN]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values(op: Operator, x: list[float], expected: list[float]) -> None:
    for dtype in (np.float32, np.float64):
        np.testing.assert_allclose(ran(op, x, dtype=dtype), expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose([ran(op, number, dtype=dtype) for number in x], expected, rtol=1e-6, atol=1e-7)
    x16 = np.array(x, ml_dtypes.bfloat16)
    of_rounded = ran(op, x16.astype(np.float32)).astype(ml_dtypes.bfloat16)
    of_narrow = ran(op, x16).astype(np.float32)
    np.testing.assert_array_equal(of_narrow, of_rounded.astype(np.float32))


def test_round_half_away_from_zero() -> None:
    op = un.Round(mode="half_away_from_zero")
    x = [-4.5, -1.9, -1.5, 0.5, 0.9, 1.5, 2.5, 0.49999997, -0.2, 8388609, -INF, NAN]
    result = ran(op, x, dtype=np.float32)
    np.testing.assert_array_equal(result, [-5, -2, -2, 1, 1, 2, 3, 0, -0.0, 8388609, -INF, NAN])
    assert np.signbit(result[8])


@pytest.mark.parametrize(
    ("op", "dtype", "x", "expected"),
    [
        (un.Negative(), np.int8, [-128, 3], [127, -3]),
        (un.Sign(), np.int64, [-4, 0, 3], [-1, 0, 1]),
        (un.Floor(), np.int32, [-4, 3], [-4, 3]),
        (un.Round(), np.uint8, [4, 3], [4, 3]),
        (un.Sqrt(), np.int32, [4, 7, 9, 10], [2, 3, 3, 3]),
        (un.Tan(), np.int32, [1, -5], [2, 3]),
        (un.Exp(), np.uint8, [1, 5, 4, 7], [3, 148, 55, 255]),
        (un.Sin(), np.int64, [2, -4], [0, 0]),
        (un.Abs(), np.int64, [-(2**62) - 1], [2**62 + 1]),
        (un.Atanh(), np.int64, [2, 1, 0, -1], [2**63 - 1, 2**63 - 1, 0, -(2**63)]),
        (un.Atanh(), np.uint64, [2**64 - 1, 1, 0], [2**64 - 1, 2**64 - 1, 0]),
        (un.Asin(), np.int32, [-1, 0, 1], [-1, 0, 1]),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_integers(op: Operator, dtype: Any, x: list[int], expected: list[int]) -> None:
    assert ran(op, x, dtype=dtype).tolist() == expected


def test_identity_is_a_view_of_anything() -> None:
    x = np.array(["a", "b"], np.dtypes.StringDType())
    assert un.Identity().run(x) is x
    assert inferred(un.Identity(), tensor("?,2", boolean)) == "[?,2]"


# --------------------------------------------------------------------------- known content


@pytest.mark.parametrize(
    ("op", "lower", "upper", "expected"),
    [
        (un.Abs(), -3, 2, (0, 3)),
        (un.Negative(), 2, INF, (-INF, -2)),
        (un.Floor(), 1.5, 3.5, (1, 3)),
        (un.Ceiling(), 1.5, INF, (2, INF)),
        (un.Sqrt(), 4, 16, (2, 4)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_bounds(op: Operator, lower: float, upper: float, expected: tuple[float, float]) -> None:
    value = from_bounds(f32, np.array([lower]), np.array([upper]))
    found = inferred_value(op, TensorType(f32, PartialShape([1]), value))
    assert (found.lower[0], found.upper[0]) == expected


@pytest.mark.parametrize("op", [un.Floor(), un.Ceiling(), un.Round(), un.Abs()])
def test_symbols_of_sizes_survive(op: Operator) -> None:
    symbol = new_symbol()
    for element_type, most in ((f32, 1000), (f64, INF), (i64, INF)):
        value = from_bounds(element_type, np.zeros(1), np.array([most]), np.array([symbol]), sizes=True)
        found = inferred_value(op, TensorType(element_type, PartialShape([1]), value))
        assert found.symbols.tolist() == [symbol]


# --------------------------------------------------------------------------- the error function


@pytest.mark.parametrize(("dtype", "ulps"), [(np.float32, 4), (np.float64, 5)])
def test_erf_is_right_to_a_few_units_in_the_last_place(dtype: Any, ulps: int) -> None:
    x = np.concatenate([np.linspace(-6.5, 6.5, 20001), 10.0 ** -np.arange(1, 37)]).astype(dtype)
    expected = np.array([exact_erf(v) for v in x.tolist()])
    error = np.abs(erf(x).astype(np.float64) - expected) / np.spacing(np.abs(expected).astype(dtype)).astype(np.float64)
    assert error.max() <= ulps


def test_erf_does_not_exceed_1() -> None:
    x = np.linspace(3, 5, 100_001, dtype=np.float32)
    for values in (erf(x), -erf(-x)):
        assert values.max() == values[-1] == 1
        assert values.min() > 0.99997


def test_erf_at_the_ends() -> None:
    for dtype in (np.float32, np.float64):
        result = erf(np.array([INF, -INF, 1e30, NAN, -0.0], dtype))
        np.testing.assert_array_equal(result, np.array([1, -1, 1, NAN, -0.0], dtype))
        assert np.signbit(result[4])
    assert erf(np.array(0.5)).shape == ()


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 4e-7), (np.float64, 4e-15)])
def test_erfinv_undoes_erf(dtype: Any, tolerance: float) -> None:
    y = np.concatenate([np.linspace(0, 2, 501), 10.0 ** -np.arange(1, 30)])
    x = np.array([exact_erf(v) for v in y]).astype(dtype)
    # What rounding x changes of y is not an error of the inverse.
    slope = np.sqrt(np.pi) / 2 * np.exp(y * y)
    allowed = tolerance * y + slope * np.spacing(x).astype(np.float64)
    assert (np.abs(erfinv(x) - y) <= allowed).all()
