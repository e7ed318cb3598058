"""Activation functions: known values, types, shapes, and blocks."""

from math import erfc, sqrt
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.tensors import ran

from ovir.ops import activation as act
from ovir.ops.activation import Gelu2, Gelu7, PReLU
from ovir.ops.base.operator import Operator

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("op", "x", "y"),
    [
        (act.ReLU(), [-2, 0, 3, NAN, INF], [0, 0, 3, NAN, INF]),
        (act.Clamp(min=-1.5, max=2), [-2, 0, 3, NAN, -INF], [-1.5, 0, 2, NAN, -1.5]),
        (act.Clamp(min=-1, max=INF), [-2, 1e30, INF], [-1, 1e30, INF]),
        (act.Sigmoid(), [0, 1, -100, 100, NAN], [0.5, 0.7310586, 3.8e-44, 1, NAN]),
        (act.Tanh(), [0, 1, -INF], [0, 0.7615942, -1]),
        (act.HSigmoid(), [-4, -3, 0, 1.5, 4, NAN], [0, 0, 0.5, 0.75, 1, NAN]),
        (act.HSwish(), [-4, -1, 0, 1.5, 4, 3e38], [0, -1 / 3, 0, 1.125, 4, 3e38]),
        (act.Elu(alpha=2.0), [-INF, -1, 0, 1, NAN], [-2, 2 * np.expm1(-1), 0, 1, NAN]),
        (act.Elu(alpha=0.5), [-INF, -1, 0, 1, NAN], [-0.5, 0.5 * np.expm1(-1), 0, 1, NAN]),
        (act.Elu(alpha=-1.0), [-1, 2], [-np.expm1(-1), 2]),
        (act.Mish(), [-30, 0, 1, 50, INF, -INF], [-30 * 9.357623e-14, 0, 0.86509839, 50, INF, NAN]),
        (act.SoftPlus(), [-INF, 0, 1, 100, INF], [0, np.log(2), 1.3132617, 100, INF]),
        (act.SoftSign(), [-1, 0, 3], [-0.5, 0, 0.75]),
        (Gelu2(), [-1, 0, 1, INF], [-0.15865525, 0, 0.84134475, INF]),
        (Gelu7(), [-1, 0, 2], [-0.15865525, 0, 1.9544997]),
        (Gelu7(approximation_mode="TANH"), [-1, 0, 2, INF, -INF], [-0.158808, 0, 1.9545977, INF, NAN]),
        (act.Swish(), [-1, 0, 2, -INF], [-0.26894142, 0, 1.7615942, NAN]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_known_values(op: Operator, x: list[float], y: list[float]) -> None:
    np.testing.assert_allclose(ran(op, x, dtype=np.float32), np.array(y, np.float32), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ran(op, x, dtype=np.float64), y, rtol=1e-5, atol=1e-7)
    for narrow in (np.float16, ml_dtypes.bfloat16):
        inputs = np.asarray(x, narrow)
        expected = ran(op, inputs.astype(np.float32)).astype(narrow)
        result = ran(op, inputs, dtype=narrow)
        np.testing.assert_array_equal(result.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_soft_plus_of_negative_numbers_keeps_its_digits(dtype: type[np.floating[Any]]) -> None:
    x = np.arange(-80.0, -5, dtype=dtype)
    np.testing.assert_allclose(ran(act.SoftPlus(), x, dtype=dtype), np.logaddexp(0, x.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize(
    ("op", "parameters", "x", "y"),
    [
        (act.HardSigmoid(), (0.2, 0.5), [-5, -1, 0, 5], [0, 0.3, 0.5, 1]),
        (act.Selu(), ([2], [3]), [-INF, 0, 2], [-6, 0, 6]),
        (act.Selu(), ([INF], [1]), [-1, 2], [-INF, 2]),
        (act.Swish(), (2.0,), [-1, 1], [-0.11920292, 0.88079708]),
        (PReLU(), (0.5,), [-2, 3, -INF, INF], [-1, 3, -INF, INF]),
        (PReLU(), (-2,), [-2, 3, INF], [4, 3, INF]),
        (PReLU(), (0,), [-2, 3, INF], [0, 3, INF]),
        (PReLU(), ([INF, 2, 3, 4],), [1, -1, 1, -2], [1, -2, 1, -8]),
    ],
)
def test_parameters(op: Operator, parameters: tuple[Any, ...], x: list[float], y: list[float]) -> None:
    np.testing.assert_allclose(ran(op, x, *parameters, dtype=np.float32), y, rtol=1e-6)


def test_prelu_slope_is_one_a_channel_where_it_can_be() -> None:
    x = -np.ones((2, 3, 3), np.float32)
    np.testing.assert_array_equal(ran(PReLU(), x, np.float32([1, 2, 3]))[1], np.repeat([[-1.0], [-2], [-3]], 3, 1))
    np.testing.assert_array_equal(ran(PReLU(), x[:, :2], np.float32([1, 2, 3]))[1], [[-1, -2, -3]] * 2)
    np.testing.assert_array_equal(ran(PReLU(), x[0], np.float32([0, 2, 3])), [[0, -2, -3]] * 3)


@pytest.mark.parametrize(
    ("op", "y"),
    [
        (act.ReLU(), [0, 0, 0, 2]),
        (act.Clamp(min=-1e20, max=1e20), [-3, -1, 0, 2]),
        (act.Tanh(), [-1, -1, 0, 1]),
        (act.Sigmoid(), [0, 0, 0, 1]),
    ],
)
def test_integers_are_rounded_to_the_nearest(op: Operator, y: list[int]) -> None:
    np.testing.assert_array_equal(ran(op, [-3, -1, 0, 2], dtype=np.int32), y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gelu_is_as_exact_as_its_type(dtype: Any) -> None:
    x = np.concatenate([np.linspace(-20, 20, 4001), np.logspace(-30, 1, 400), [3e38, -3e38]]).astype(dtype)
    exact = np.array([v / 2 * erfc(-v / sqrt(2)) for v in x.tolist()])
    error = np.abs(ran(Gelu7(), x, dtype=dtype) - exact)
    eps = np.finfo(dtype).eps
    assert (error <= 2 * eps * np.abs(x)).all()
    assert (error <= 4 * eps * np.abs(exact))[x > 0].all()


@pytest.mark.parametrize("slopes", [(0.5, 0.25), (-2, 1), (1, 3), (0.5, 3), (0, 0.5)])
def test_prelu_of_any_slopes(slopes: tuple[float, float]) -> None:
    x = np.array([[-4, -4], [0, 0], [4, 4], [INF, INF], [NAN, NAN]], np.float32)
    expected = np.where(x >= 0, x, x * np.array(slopes, np.float32))
    np.testing.assert_array_equal(ran(PReLU(), x, np.float32(slopes)), expected)


def test_clamp_bounds_meet_unsigned_types() -> None:
    np.testing.assert_array_equal(ran(act.Clamp(min=-1.5, max=300), [0, 7, 255], dtype=np.uint8), [0, 7, 255])


def test_hard_sigmoid_of_nan_is_1() -> None:
    result = act.HardSigmoid().run(np.float32([np.nan, np.inf, -np.inf]), np.float32(0.2), np.float32(0.5))
    assert result.tolist() == [1, 1, 0]
