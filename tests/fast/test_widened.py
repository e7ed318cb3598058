"""f16 and bf16 in the fast forms for f32: results are rounded once, and inputs stay as they are."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.binding import bound_results
from support.tensors import applied_to

from ovir.core.arrays import Array
from ovir.ops.activation import Selu
from ovir.ops.normalization import MVN6, GroupNormalization, LogSoftmax, SoftMax8
from ovir.ops.pooling import MaxPool1


@pytest.mark.parametrize("shape", [(), (3,)])
def test_parameters_of_more_axes_than_the_data(shape: tuple[int, ...]) -> None:
    inputs = np.full(shape, -1, np.float16), np.full((1, 1), 1.5, np.float16), np.full(1, 2, np.float16)
    op = applied_to(Selu(), *inputs)
    got = bound_results(op, inputs, [np.empty(shape, np.float16)], {1, 2})
    assert got is not None
    np.testing.assert_array_equal(got[0], op.run(*inputs))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shares_memory", [False, True])
@pytest.mark.parametrize(
    ("op", "others"),
    [
        (SoftMax8(axis=-1), ()),
        (LogSoftmax(axis=1), ()),
        (MVN6(normalize_variance=True), (np.array([2, 3]),)),
        (GroupNormalization(num_groups=2), (np.linspace(1, 2, 4), np.linspace(-1, 1, 4))),
    ],
)
def test_results_are_rounded_once(op: Any, others: tuple[Array, ...], shares_memory: bool, dtype: Any) -> None:
    data = np.random.default_rng(0).standard_normal((2, 4, 5, 6)).astype(dtype)
    inputs = data, *(other.astype(dtype) if other.dtype.kind == "f" else other for other in others)
    exact = op.run(*(a.astype(np.float64) if a.dtype == dtype else a for a in inputs))
    op = applied_to(op, *inputs)
    for order in (data, np.moveaxis(np.moveaxis(data, 1, -1).copy(), -1, 1)):
        given = order.copy(order="K"), *inputs[1:]
        constants = set(range(1, len(inputs)))
        got = bound_results(op, given, [np.empty_like(data)], constants, shares_memory=shares_memory)
        assert got is not None
        assert got[0].dtype == dtype
        np.testing.assert_array_equal(order, data)
        error = np.abs(got[0].astype(np.float64) - exact)
        assert (error <= 0.51 * np.spacing(np.abs(exact).astype(dtype)).astype(np.float64) + 1e-6).all()


def test_numbers_that_only_f32_holds_between_the_steps() -> None:
    data = np.array([[60000, -60000, 60000]], np.float16)
    op = MVN6(normalize_variance=True)
    inputs = data, np.array([1])
    got = bound_results(applied_to(op, *inputs), inputs, [data], {1})
    assert got is not None
    np.testing.assert_allclose(got[0].astype(np.float32), [[0.7071, -1.4142, 0.7071]], rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_the_lowest_number_is_that_of_the_narrow_type(dtype: Any) -> None:
    data = np.full((1, 2, 4, 4), -np.inf).astype(dtype)
    op = MaxPool1(kernel=(2, 2), strides=(2, 2), pads_begin=(0, 0), pads_end=(0, 0))
    expected = op.run(data)
    got = bound_results(applied_to(op, data), (data,), [expected], set())
    assert got is not None
    np.testing.assert_array_equal(got[0], expected)
    assert np.isfinite(got[0].astype(np.float32)).all()
