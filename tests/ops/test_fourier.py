"""DFT, IDFT, RDFT and IRDFT."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tensors import tensor

from ovir.core.element_types import ElementType, bf16, f16, f64, i32, i64, u8
from ovir.core.shapes import Dimension
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import from_dimensions
from ovir.diagnostics.errors import OperatorError
from ovir.ops.fourier import DFT, IDFT, IRDFT, RDFT

Array = np.ndarray[Any, Any]


def const(*values: int) -> TensorType:
    return constant_type(np.array(values, np.int64))


def pairs(numbers: Any, dtype: Any = np.float32) -> Array:
    numbers = np.asarray(numbers, np.complex128)
    return np.stack([numbers.real, numbers.imag], -1).astype(dtype)


def numbers(array: Array) -> Array:
    return np.asarray(array[..., 0].astype(np.float64) + 1j * array[..., 1].astype(np.float64))


def random_numbers(*shape: int) -> Array:
    rng = np.random.default_rng(0)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def slow_dft(signal: Array, axis: int, sign: int = -1) -> Array:
    n = np.arange(signal.shape[axis])
    matrix = np.exp(sign * 2j * np.pi * np.outer(n, n) / len(n))
    return np.moveaxis(np.tensordot(matrix, signal, (1, axis)), 0, axis)


def test_dft_of_an_impulse_and_of_a_wave() -> None:
    one = pairs([0, 1, 0, 0])
    np.testing.assert_allclose(numbers(DFT().run(one, np.array([0]))), [1, -1j, -1, 1j], atol=1e-7)
    np.testing.assert_allclose(numbers(IDFT().run(one, np.array([-1]))), np.array([1, 1j, -1, -1j]) / 4, atol=1e-7)
    wave = np.cos(2 * np.pi * np.arange(8) / 8).astype(np.float32)
    np.testing.assert_allclose(numbers(RDFT().run(wave, np.array([0]))), [0, 4, 0, 0, 0], atol=1e-6)


@pytest.mark.parametrize("axes", [[1], [0, 2], [2, 0], [-1, 1], [0, 1, 2]])
def test_transforms_follow_the_formula(axes: list[int]) -> None:
    data = random_numbers(3, 4, 5)
    expected, restored = data, data
    for axis in axes:
        expected = slow_dft(expected, axis)
        restored = slow_dft(restored, axis, sign=1) / data.shape[axis]
    forward = DFT().run(pairs(data), np.array(axes))
    assert forward.dtype == np.float32
    np.testing.assert_allclose(numbers(forward), expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(numbers(IDFT().run(pairs(data), np.array(axes))), restored, rtol=1e-5, atol=1e-5)
    half = RDFT().run(data.real.astype(np.float32), np.array(axes))
    whole = data.real
    for axis in axes:
        whole = slow_dft(whole, axis)
    last = axes[-1] % 3
    np.testing.assert_allclose(
        numbers(half), whole[(slice(None),) * last + (slice(half.shape[last]),)], rtol=1e-5, atol=1e-4
    )
    back = IRDFT().run(half, np.array(axes), np.array([data.shape[axis] for axis in axes]))
    np.testing.assert_allclose(back, data.real, atol=1e-5)


def test_signals_are_cut_and_filled() -> None:
    data = random_numbers(3, 4)
    axes = np.array([1, 0])
    for sizes in ([2, 5], [6, -1], [-1, 2], [7, 7], [1, 1]):
        rows, columns = sizes[1] if sizes[1] > 0 else 3, sizes[0] if sizes[0] > 0 else 4
        signal = np.zeros((rows, columns), np.complex128)
        signal[:3, :4] = data[:rows, :columns]
        expected = slow_dft(slow_dft(signal, 0), 1)
        result = DFT().run(pairs(data), axes, np.array(sizes))
        np.testing.assert_allclose(numbers(result), expected, rtol=1e-5, atol=1e-5)
        # The last of the axes, of which RDFT keeps half, is here axis 0.
        real = RDFT().run(data.real.astype(np.float32), axes, np.array(sizes))
        expected = slow_dft(slow_dft(signal.real, 0), 1)[: rows // 2 + 1]
        np.testing.assert_allclose(numbers(real), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (None, [1.5, 0.5, 0.5, 0.5]),  # 2 * (3 - 1)
        (4, [1.5, 0.5, 0.5, 0.5]),
        (2, [2, 1]),  # of three numbers the first two
        (3, [5 / 3, 2 / 3, 2 / 3]),
        (6, [7 / 6, 1 / 2, 1 / 6, 1 / 2, 1 / 6, 1 / 2]),  # the fourth is missing and counts as 0
    ],
)
def test_irdft_has_the_conjugates_that_are_not_there(size: int | None, expected: list[float]) -> None:
    data = pairs([3, 1, 1])
    result = IRDFT().run(data, np.array([0]), None if size is None else np.array([size]))
    np.testing.assert_allclose(result, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.float64, 1e-13), (np.float16, 2e-3), (ml_dtypes.bfloat16, 1e-2), (np.float32, 1e-6)]
)
def test_types(dtype: Any, tolerance: float) -> None:
    data = np.arange(12).reshape(2, 6).astype(dtype)
    half = RDFT().run(data, np.array([1]))
    assert half.dtype == dtype
    np.testing.assert_allclose(numbers(half), np.fft.rfft(data.astype(np.float64)), rtol=tolerance, atol=tolerance)
    out = IRDFT().run(half, np.array([1]))
    np.testing.assert_allclose(out.astype(np.float64), data.astype(np.float64), rtol=tolerance, atol=10 * tolerance)


def test_large_data_in_blocks() -> None:
    data = random_numbers(3, 300, 250)
    for axes in ([1], [2, 1], [0]):
        result = DFT().run(pairs(data)[:, :, ::-1], np.array(axes))
        expected = np.fft.fftn(data[:, :, ::-1], axes=axes)
        np.testing.assert_allclose(numbers(result), expected, rtol=1e-4, atol=1e-2)


def test_empty_and_trivial_signals() -> None:
    assert DFT().run(np.ones((2, 0, 2), np.float32), np.array([0])).shape == (2, 0, 2)
    assert DFT().run(np.ones((2, 3, 2), np.float32), np.array([1]), np.array([0])).shape == (2, 0, 2)
    np.testing.assert_array_equal(DFT().run(np.ones((3, 2), np.float32), np.array([], np.int64)), np.ones((3, 2)))
    np.testing.assert_array_equal(
        RDFT().run(np.ones((2, 0), np.float32), np.array([1]), np.array([4])), np.zeros((2, 3, 2))
    )
    np.testing.assert_array_equal(
        IRDFT().run(np.ones((2, 0, 2), np.float32), np.array([0, 1]), np.array([3, 4])), np.zeros((3, 4))
    )
    assert IRDFT().run(np.ones((1, 2), np.float32), np.array([0])).shape == (0,)


@pytest.mark.parametrize(
    ("op", "data", "sizes", "expected"),
    [
        (DFT(), "4,6,2", None, "[4,6,2]"),
        (DFT(), "?,2..5,..4", None, "[?,2..5,2]"),
        (DFT(), "4,6,2", (-1, 9), "[9,6,2]"),
        (IDFT(), "...", (-1, 9), "[...]"),
        (RDFT(), "8,8..11", None, "[5,8..11,2]"),
        (RDFT(), "8,8..11", (-1, -1), "[5,8..11,2]"),
        (RDFT(), "?,7", (3, 9), "[5,3,2]"),
        (RDFT(), "0,7", None, "[0,7,2]"),
        (IRDFT(), "5,6..7,2", None, "[8,6..7]"),
        (IRDFT(), "2..4,?,?", (8, -1), "[2..6,8]"),
        (IRDFT(), "0,7,2", None, "[0,7]"),
    ],
)
def test_inference(op: Any, data: str, sizes: tuple[int, ...] | None, expected: str) -> None:
    inputs = [tensor(data), const(1, 0)] + ([] if sizes is None else [const(*sizes)])
    assert str(op.infer(*inputs).shape) == expected


@pytest.mark.parametrize(
    ("op", "without_sizes", "with_sizes"),
    [(DFT(), "[4,6,2]", "[?,?,2]"), (RDFT(), "[?,?,?,2]", "[?,?,?,2]"), (IRDFT(), "[?,?]", "[?,?]")],
)
def test_inference_with_unknown_axes(op: Any, without_sizes: str, with_sizes: str) -> None:
    assert str(op.infer(tensor("4,6,2"), tensor("?", i64)).shape) == without_sizes
    assert str(op.infer(tensor("4,6,2"), tensor("2", i32), const(3, 4)).shape) == with_sizes


def test_sizes_that_are_known_in_part() -> None:
    value = from_dimensions(i64, [Dimension(3, 5, 7), Dimension()])
    sizes = tensor("2", i64).with_value(value)
    result = DFT().infer(tensor("4,6,2"), const(0, 1), sizes).shape
    assert str(result) == "[3..5,?,2]"
    assert result[0].symbol == 7
    assert str(DFT().infer(tensor("4,6,2"), const(0, 1), tensor("2", i64)).shape) == "[?,?,2]"
    assert str(RDFT().infer(tensor("4,6"), const(0, 1), sizes).shape) == "[3..5,?,2]"


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        (DFT(), (tensor("4,6,2"), const(2)), "axis 2 is outside [-2, 1] of a tensor of rank 2"),
        (RDFT(), (tensor("4,6,2"), const(-4)), "axis -4 is outside [-3, 2]"),
        (IRDFT(), (tensor("4,6,2"), const(0, -2)), "axes [0,-2] are not distinct"),
        (DFT(), (tensor("4,6,3"), const(0)), "the last dimension of data must be 2, for complex numbers; got [4,6,3]"),
        (DFT(), (tensor("2"), const(0)), "data must have rank 2 or more, got shape [2]"),
        (RDFT(), (tensor(""), const(0)), "data must have rank 1 or more, got shape []"),
        (
            DFT(),
            (tensor("4,2"), tensor("2", i64)),
            "axes has 2 elements, but data of shape [4,2] has only 1 transformable axis",
        ),
        (DFT(), (tensor("4,2"), tensor("", i64)), "axes must have rank 1, got shape []"),
        (DFT(), (tensor("4,2"), tensor("1", u8)), "axes must be i32 or i64, got u8"),
        (DFT(), (tensor("4,2", u8), const(0)), "data must be f16, bf16, f32 or f64, got u8"),
        (
            DFT(),
            (tensor("..."), const(0), const(1, 2)),
            "axes of shape [1] and signal_size of shape [2] must have the same number of elements",
        ),
        (DFT(), (tensor("4,2"), const(0), const(-2)), "signal_size must not be below -1, got [-2]"),
        (DFT(), (tensor("4,2"), const(0), tensor("1")), "signal_size must be i32 or i64, got f32"),
        (RDFT(), (tensor("4,2"), const()), "axes must name at least one axis, got none"),
    ],
)
def test_errors(op: Any, inputs: tuple[TensorType, ...], message: str) -> None:
    with pytest.raises(OperatorError) as error:
        op.infer(*inputs)
    assert message in error.value.message


def test_errors_that_only_the_run_finds() -> None:
    data = np.ones((4, 2), np.float32)
    with pytest.raises(OperatorError, match=r"axis 1 is outside \[-1, 0\]"):
        DFT().run(data, np.array([1]))
    with pytest.raises(OperatorError, match=r"an element for each of the axes \[0\], got shape \[2\]"):
        DFT().run(data, np.array([0]), np.array([3, 3]))


@pytest.mark.parametrize("element_type", [f16, bf16, f64])
def test_the_type_is_that_of_data(element_type: ElementType) -> None:
    assert RDFT().infer(tensor("4", element_type), const(0)).element_type == element_type
