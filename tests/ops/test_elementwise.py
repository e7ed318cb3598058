"""Arithmetic, comparison, logic, bitwise operations and Select: values, broadcasting, inference and known content."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.tensors import applied, assert_refused, inferred_value, ran, reports, tensor

from ovir.core.element_types import ElementType, boolean, i64, nf4, u3
from ovir.core.shapes import PartialShape, new_symbol, symbol_of_sum
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import from_bounds
from ovir.diagnostics.errors import OperatorError
from ovir.ops import arithmetic as ar
from ovir.ops import comparison as cp
from ovir.ops import logic as lg
from ovir.ops.arithmetic import Power
from ovir.ops.base.elementwise import BinaryBase
from ovir.ops.base.operator import Operator
from ovir.ops.select import Select

INF, NAN = np.inf, np.nan


def sizes(lower: Any, upper: Any, symbols: Any = None, element_type: ElementType = i64) -> TensorType:
    low, high = np.array(lower, np.float64), np.array(upper, np.float64)
    value = from_bounds(element_type, low, high, None if symbols is None else np.array(symbols), sizes=True)
    return TensorType(element_type, PartialShape(low.shape), value)


@pytest.mark.parametrize(
    ("op", "a", "b", "dtype", "expected"),
    [
        (ar.Add(), [7, 65000, 65535], [3, 1000, 2], np.uint16, [10, 464, 1]),
        (ar.Subtract(), [5, 0], [7, 1], np.uint8, [254, 255]),
        (ar.Multiply(), [127, -128, 3], [-5, 3, 4], np.int8, [-128, -128, 12]),
        (ar.Divide(m_pythondiv=False), [7, -7, 7, -7, -6], [3, 3, -3, -3, 3], np.int32, [2, -2, -2, 2, -2]),
        (ar.FloorMod(), [5.5, -5.5, 5.5, -5.5], [2, 2, -2, -2], np.float32, [1.5, 0.5, -0.5, -1.5]),
        (ar.Mod(), [7, -7, 7, -7], [3, 3, -3, -3], np.int64, [1, -1, 1, -1]),
        (ar.Mod(), [5.5, -5.5, 5.5, -5.5], [2, 2, -2, -2], np.float64, [1.5, -1.5, 1.5, -1.5]),
        (ar.Maximum(), [NAN, 1, INF, -1], [1, NAN, 2, 3], np.float32, [NAN, 1, INF, 3]),
        (ar.Minimum(), [NAN, 1, INF, -1], [1, NAN, 2, 3], np.float32, [NAN, 1, 2, -1]),
        (Power(), [2, 2, -3, 0], [10, -1, 3, 0], np.int32, [1024, 0, -27, 1]),
        (ar.SquaredDifference(), [7, -7], [3, 3], np.int16, [16, 100]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_arithmetic(op: Operator, a: Any, b: Any, dtype: Any, expected: Any) -> None:
    np.testing.assert_allclose(ran(op, a, b, dtype=dtype), expected, rtol=1e-6)


@pytest.mark.parametrize("exponent", [-1, 0.5, 1, 2, 3, 2.5])
def test_power_by_one_number_is_that_of_libm(exponent: float) -> None:
    x = np.array([-INF, -2, -0.0, 0, 0.25, 3, INF, NAN], np.float32)
    expected = np.power(x, np.full(8, exponent, np.float32))
    result = ran(Power(), x, np.float32(exponent))
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


def test_floor_mod_does_not_lose_a_whole_divisor() -> None:
    result = ran(ar.FloorMod(), [0.7], [0.1], dtype=np.float32)
    np.testing.assert_allclose(result, [0.1], rtol=1e-5)


def test_int4_keeps_its_four_bits() -> None:
    a = np.array([7, -8, 3], ml_dtypes.int4)
    assert ran(ar.Add(), a, np.array([1, -1, 2], ml_dtypes.int4)).tolist() == [-8, 7, 5]


@pytest.mark.parametrize("op", [ar.Divide(), ar.Mod(), ar.FloorMod()])
def test_integer_division_by_zero_gives_zero_and_is_reported(op: Operator) -> None:
    with reports() as found:
        assert ran(op, [5, 6], [0, 4], dtype=np.int32)[0] == 0
    assert "divided by 0" in found[0]


# --------------------------------------------------------------------------- broadcasting


def test_pdpd_values() -> None:
    a = np.zeros((2, 3, 2), np.float32)
    assert ran(ar.Add(auto_broadcast="pdpd", axis=1), a, [1.0, 2.0, 3.0], dtype=np.float32)[1].tolist() == [
        [1, 1], [2, 2], [3, 3]
    ]  # fmt: skip
    result = ran(ar.Subtract(auto_broadcast="pdpd", axis=2), a, [[1.0], [2.0]], dtype=np.float32)
    assert result[0, 0].tolist() == [-1, -2]


# --------------------------------------------------------------------------- types


def test_codes_are_not_computed_with() -> None:
    assert_refused("the inputs must be of a numeric type, got nf4", ar.Add(), tensor("2", nf4), tensor("2", nf4))
    op = applied(ar.Add(), tensor("2", u3), tensor("2", u3))
    with pytest.raises(OperatorError, match="execution of Add on u3 is not supported"):
        op.run(np.zeros(2, np.uint8), np.zeros(2, np.uint8))


# --------------------------------------------------------------------------- comparison, logic, bits, Select


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (cp.Equal(), [0, 1, 0, 0]),
        (cp.NotEqual(), [1, 0, 1, 1]),
        (cp.Greater(), [0, 0, 1, 0]),
        (cp.GreaterEqual(), [0, 1, 1, 0]),
        (cp.Less(), [1, 0, 0, 0]),
        (cp.LessEqual(), [1, 1, 0, 0]),
    ],
)
def test_comparison(op: Operator, expected: list[int]) -> None:
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
        assert ran(op, [1, 2, 3, NAN], [2, 2, 2, NAN], dtype=dtype).tolist() == expected


def test_properties_of_numbers() -> None:
    x = np.array([NAN, INF, -INF, 0, 1], np.float32)
    assert ran(cp.IsFinite(), x).tolist() == [0, 0, 0, 1, 1]
    assert ran(cp.IsNaN(), x.astype(np.float16)).tolist() == [1, 0, 0, 0, 0]
    assert ran(cp.IsInf(), x).tolist() == [0, 1, 1, 0, 0]
    assert ran(cp.IsInf(detect_negative=False), x).tolist() == [0, 1, 0, 0, 0]
    assert ran(cp.IsInf(detect_positive=False), x).tolist() == [0, 0, 1, 0, 0]
    assert not ran(cp.IsInf(detect_positive=False, detect_negative=False), x).any()
    assert not ran(cp.IsFinite(), np.array(NAN))


def test_logic() -> None:
    a, b = [False, False, True, True], [False, True, False, True]
    assert ran(lg.LogicalAnd(), a, b).tolist() == [0, 0, 0, 1]
    assert ran(lg.LogicalOr(), a, b).tolist() == [0, 1, 1, 1]
    assert ran(lg.LogicalXor(), a, b).tolist() == [0, 1, 1, 0]
    assert ran(lg.Xor(), a, b).tolist() == [0, 1, 1, 0]
    assert ran(lg.LogicalNot(), a).tolist() == [1, 1, 0, 0]


def test_bits() -> None:
    a, b = np.array([12, 7], np.uint8), np.array([10, 255], np.uint8)
    assert ran(lg.BitwiseAnd(), a, b).tolist() == [8, 7]
    assert ran(lg.BitwiseOr(), a, b).tolist() == [14, 255]
    assert ran(lg.BitwiseXor(), a, b).tolist() == [6, 248]
    assert ran(lg.BitwiseNot(), a).tolist() == [243, 248]
    assert ran(lg.BitwiseNot(), [True, False]).tolist() == [False, True]
    assert ran(lg.BitwiseLeftShift(), [200, 3], [1, 2], dtype=np.uint8).tolist() == [144, 12]
    assert ran(lg.BitwiseRightShift(), [-8, 9], [1, 2], dtype=np.int32).tolist() == [-4, 2]


def test_shifts_by_all_the_bits_are_reported() -> None:
    with reports() as found:
        assert ran(lg.BitwiseLeftShift(), [1], [8], dtype=np.uint8).tolist() == [0]
        assert ran(lg.BitwiseLeftShift(), [-3, 1], [-3, 33], dtype=np.int32).tolist() == [-1610612736, 2]
        assert ran(lg.BitwiseRightShift(), [-8, 64], [-1, 66], dtype=np.int64).tolist() == [-1, 16]
    assert found[0] == "a shift of u8 by less than 0 or more than 7 places is undefined"


# --------------------------------------------------------------------------- known content


@pytest.mark.parametrize(
    ("op", "a", "b", "lower", "upper"),
    [
        (ar.Add(), (2, 5), (1, INF), 3, INF),
        (ar.Divide(), (4, 8), (0, 4), 0, 8),
        (ar.Divide(), (4, 8), (-4, 0), -8, 0),
        (ar.FloorMod(), (6, 8), (5, 5), 1, 3),
        (ar.Mod(), (0, INF), (3, 6), 0, 5),
        (ar.Minimum(), (2, INF), (3, 4), 2, 4),
        (Power(), (2, 3), (0, 2), 1, 9),
    ],
    ids=lambda value: type(value).__name__,
)
def test_bounds(op: Operator, a: Any, b: Any, lower: float, upper: float) -> None:
    value = inferred_value(op, sizes([a[0]], [a[1]]), sizes([b[0]], [b[1]]))
    assert (value.lower[0], value.upper[0]) == (lower, upper)


ENDS = [(low, high) for low in range(-2, 4) for high in range(low, 4)]
EXACT = (ar.Add, ar.Subtract, ar.Multiply, ar.Maximum, ar.Minimum, ar.SquaredDifference)
RELATIONS = (cp.Equal, cp.NotEqual, cp.Greater, cp.GreaterEqual, cp.Less, cp.LessEqual)


@pytest.mark.parametrize("cls", [*EXACT, *RELATIONS, ar.Divide, ar.Mod, ar.FloorMod, Power])
def test_bounds_of_all_small_intervals(cls: type[Operator]) -> None:
    """They hold for all results; of some operations they are results themselves."""
    pairs = np.array(list(itertools.product(ENDS, repeat=2)))
    value = inferred_value(cls(), *(sizes(pairs[:, i, 0], pairs[:, i, 1]) for i in (0, 1)))
    for (a, b), low, high in zip(pairs.tolist(), value.lower.tolist(), value.upper.tolist(), strict=True):
        numbers = np.arange(a[0], a[1] + 1)[:, np.newaxis], np.arange(b[0], b[1] + 1)
        with np.errstate(all="ignore"), reports():
            results = ran(cls(), *numbers, dtype=np.int64)
        if cls in EXACT or cls in RELATIONS:
            assert (low, high) == (results.min(), results.max()), (a, b)
        assert low <= results.min(), (a, b)
        assert high >= results.max(), (a, b)


@pytest.mark.parametrize(("b", "known_bounds"), [((-2, 2), False), ((2, 2), True)])
def test_bounds_of_an_operation_that_does_not_say_that_it_is_monotone(b: tuple[int, int], known_bounds: bool) -> None:
    tensors = sizes([1], [1]), sizes([b[0]], [b[1]])
    op = applied(ar.SquaredDifference(), *tensors)
    lower, upper = BinaryBase.bounds(op, *(tensor.bounds_or_unknown() for tensor in tensors))
    assert (lower == upper) == known_bounds


@pytest.mark.parametrize("divisor", [(-1, 1), (0, 0)])
def test_nothing_is_known_of_a_quotient_whose_divisor_may_change_sign(divisor: tuple[int, int]) -> None:
    assert inferred_value(ar.Divide(), sizes([1], [9]), sizes([divisor[0]], [divisor[1]])) is None


def test_symbols_survive_where_nothing_changes() -> None:
    symbol = new_symbol()
    size = sizes([0, 0], [INF, INF], [symbol, symbol])

    def by(numbers: list[int]) -> TensorType:
        return constant_type(np.array(numbers))

    for one, other in ((size, by([0, 1])), (by([0, 1]), size)):
        assert inferred_value(ar.Add(), one, other).symbols.tolist() == [symbol, symbol_of_sum(symbol, 1)]
    assert inferred_value(ar.Subtract(), size, by([0, 1])).symbols.tolist() == [symbol, 0]
    assert inferred_value(ar.Multiply(), by([1, 2]), size).symbols.tolist() == [symbol, 0]
    assert inferred_value(ar.Divide(), size, by([1, 2])).symbols.tolist() == [symbol, 0]
    small = sizes([0, 0], [4, 4], [symbol, symbol])
    assert inferred_value(ar.Mod(), small, by([5, 4])).symbols.tolist() == [symbol, 0]


def test_comparison_of_equal_symbols() -> None:
    size = sizes([0], [INF], [new_symbol()])
    for op, holds in ((cp.Equal(), True), (cp.LessEqual(), True), (cp.Greater(), False), (cp.NotEqual(), False)):
        constant = inferred_value(op, size, size).constant
        assert constant is not None
        assert constant.tolist() == [holds]


def test_logic_of_the_partly_known() -> None:
    maybe = sizes([0, 0, 1], [1, 1, 1], element_type=boolean)
    fixed = constant_type(np.array([False, True, True]))
    value = inferred_value(lg.LogicalAnd(), maybe, fixed)
    assert (value.lower.tolist(), value.upper.tolist()) == ([0, 0, 1], [0, 1, 1])
    value = inferred_value(lg.LogicalOr(), maybe, fixed)
    assert (value.lower.tolist(), value.upper.tolist()) == ([0, 1, 1], [1, 1, 1])
    value = inferred_value(lg.LogicalXor(), maybe, fixed)
    assert (value.lower.tolist(), value.upper.tolist()) == ([0, 0, 0], [1, 1, 0])
    value = inferred_value(lg.LogicalNot(), maybe)
    assert (value.lower.tolist(), value.upper.tolist()) == ([0, 0, 0], [1, 1, 0])


def test_select_of_the_partly_known() -> None:
    symbol = new_symbol()
    cond = sizes([0, 1, 0, 0], [0, 1, 1, 1], element_type=boolean)
    then = sizes([2, 3, 4, 1], [2, 6, 5, INF], [0, symbol, 0, symbol])
    other = sizes([0, 9, 7, 1], [INF, 9, 8, INF], [symbol, 0, 0, symbol])
    value = inferred_value(Select(), cond, then, other)
    assert value.lower.tolist() == [0, 3, 4, 1]
    assert value.upper.tolist() == [INF, 6, 8, INF]
    assert value.symbols.tolist() == [symbol, symbol, 0, symbol]
    assert value.is_size.all()
    data = TensorType(i64, PartialShape([4]), from_bounds(i64, np.array([2.0, 3, 4, 1]), np.array([2.0, 6, 5, 9])))
    for one, both in ((data, other), (then, data), (data, data)):
        value = inferred_value(Select(), cond, one, both)
        assert value.marks[2] == 0


@pytest.mark.parametrize("place", range(3))
def test_select_from_what_has_no_known_size(place: int) -> None:
    inputs = [constant_type(np.zeros(1, dtype)) for dtype in (np.bool_, np.int64, np.int64)]
    inputs[place] = TensorType(inputs[place].element_type, PartialShape.parse("[?]"))
    assert inferred_value(Select(), *inputs) is None
