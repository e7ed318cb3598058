"""STFT and ISTFT."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tensors import tensor

from ovir.core.element_types import f16, i16, i32, i64
from ovir.core.shapes import Dimension
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import from_bounds
from ovir.diagnostics.errors import OperatorError
from ovir.ops.fourier import ISTFT, STFT

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)


def const(value: int) -> TensorType:
    return constant_type(np.array(value, np.int64))


def scalar(lower: float, upper: float) -> TensorType:
    return tensor("", i64).with_value(from_bounds(i64, np.array(lower), np.array(upper)))


def stft(signal: Array, window: Array, size: int, step: int, **attributes: bool) -> Array:
    result = STFT(**attributes).run(signal, window, np.array(size), np.array(step))
    assert isinstance(result, np.ndarray)
    return result


def istft(data: Array, window: Array, size: int, step: int, length: int | None = None, **attributes: bool) -> Array:
    lengths = [] if length is None else [np.array([length])]
    result = ISTFT(**attributes).run(data, window, np.array(size), np.array(step), *lengths)
    assert isinstance(result, np.ndarray)
    return result


def test_frames_of_a_constant_signal() -> None:
    ones = np.ones(7, np.float32)
    result = stft(ones, np.ones(4, np.float32), 4, 2)
    assert result.tolist() == [[[4, 0], [0, 0], [0, 0]]] * 2
    np.testing.assert_array_equal(stft(np.stack([ones, 2 * ones]), ones[:4], 4, 2), np.stack([result, 2 * result]))


def test_a_short_window_stands_in_the_middle() -> None:
    signal = np.arange(1, 6, dtype=np.float32)
    # In frames of 5 a window of 2 leaves one sample before it and two after it.
    result = stft(signal, np.array([10, 1], np.float32), 5, 1)
    framed = np.fft.rfft([0, 20, 3, 0, 0])
    np.testing.assert_allclose(result[0], np.stack([framed.real, framed.imag], -1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize(("size", "step", "taps"), [(8, 3, 8), (7, 9, 4), (5, 1, 5), (1, 1, 1)])
def test_transpose(batch: tuple[int, ...], size: int, step: int, taps: int) -> None:
    signal = RNG.standard_normal((*batch, 40)).astype(np.float32)
    window = np.hanning(taps + 2)[1:-1].astype(np.float32)
    plain = stft(signal, window, size, step)
    frames = (40 - size) // step + 1
    assert plain.shape == (*batch, frames, size // 2 + 1, 2)
    result = STFT(transpose_frames=True).run(signal, window, np.array(size), np.array(step))
    np.testing.assert_allclose(result, plain.swapaxes(-2, -3), atol=1e-6)


def test_long_signals_in_blocks() -> None:
    signal = RNG.standard_normal((2, 300_000)).astype(np.float32)
    window = np.hanning(400).astype(np.float32)
    result = stft(signal, window, 400, 160)
    for batch, frame in ((0, 0), (1, 1000), (1, result.shape[1] - 1)):
        expected = np.fft.rfft(signal[batch, frame * 160 : frame * 160 + 400] * window)
        np.testing.assert_allclose(result[batch, frame, :, 0], expected.real, atol=1e-3)
    restored = istft(result.swapaxes(1, 2), window, 400, 160)
    np.testing.assert_allclose(restored[:, 400:-400], signal[:, 400 : restored.shape[1] - 400], atol=1e-4)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(("size", "step", "taps"), [(8, 3, 8), (7, 2, 5), (6, 6, 6), (9, 1, 9)])
def test_istft_restores_the_signal(size: int, step: int, taps: int, center: bool, normalized: bool) -> None:
    length = 3 * step + size
    signal = RNG.standard_normal((2, length)).astype(np.float64)
    window = RNG.uniform(0.5, 1, taps)
    scale = np.sqrt(size) if normalized else 1
    data = stft(signal, window, size, step, transpose_frames=True) / scale
    result = istft(data, window, size, step, center=center, normalized=normalized)
    margin = size // 2 if center else 0
    expected = signal[:, margin : length - margin]
    assert result.shape == expected.shape
    before = 0 if center else (size - taps) // 2
    covered = slice(before, expected.shape[1] - (size - taps - before if not center else 0))
    np.testing.assert_allclose(result[:, covered], expected[:, covered], atol=1e-12)
    np.testing.assert_array_equal(result[:, : covered.start], 0)
    for wanted in (1, expected.shape[1] - 1, length + 5):
        given = istft(data, window, size, step, wanted, center=center, normalized=normalized)
        assert given.shape == (2, wanted)
        same = min(wanted, expected.shape[1])
        np.testing.assert_array_equal(given[:, :same], result[:, :same])
        np.testing.assert_array_equal(given[:, length - margin :], 0)


def test_istft_without_windows_or_frames_is_zero() -> None:
    data = np.ones((3, 2, 2), np.float32)
    assert istft(data, np.zeros(4, np.float32), 4, 2).tolist() == [0] * 6
    # Between frames further apart than they are long nothing is known.
    apart = istft(data, np.ones(4, np.float32), 4, 6)
    assert apart[4:6].tolist() == [0, 0]
    assert istft(data[:, :0], np.ones(4, np.float32), 4, 2).tolist() == [0] * 4
    assert istft(data[:, :1], np.ones(4, np.float32), 4, 1 << 40).shape == (4,)
    assert istft(np.ones((0, 3, 2, 2), np.float32), np.ones(4, np.float32), 4, 2).shape == (0, 6)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float16, 1e-2), (ml_dtypes.bfloat16, 0.1)])
def test_short_types_are_rounded_once(dtype: Any, tolerance: float) -> None:
    signal = RNG.standard_normal(32).astype(dtype)
    window = np.ones(8, dtype)
    data = stft(signal, window, 8, 4, transpose_frames=True)
    assert data.dtype == dtype
    exact = stft(signal.astype(np.float32), window.astype(np.float32), 8, 4, transpose_frames=True)
    np.testing.assert_array_equal(data, exact.astype(dtype))
    result = istft(data, window, 8, 4)
    assert result.dtype == dtype
    np.testing.assert_allclose(result.astype(np.float32), signal.astype(np.float32), atol=tolerance)


@pytest.mark.parametrize(
    ("signal", "size", "step", "expected"),
    [
        ("56", const(11), const(3), "[16,6,2]"),
        ("3,56", const(11), const(3), "[3,16,6,2]"),
        ("?,15..18", const(8), const(4), "[?,2..3,5,2]"),
        ("?", const(8), const(4), "[1..,5,2]"),
        ("...", const(8), const(4), "[...]"),
        ("20", tensor("", i64), const(4), "[1..5,1..11,2]"),
        ("20", const(8), tensor("", i32), "[1..13,5,2]"),
        ("20", scalar(8, 10), scalar(2, 4), "[3..7,5..6,2]"),
    ],
)
def test_stft_inference(signal: str, size: TensorType, step: TensorType, expected: str) -> None:
    assert str(STFT().infer(tensor(signal), tensor("?"), size, step).shape) == expected
    if expected == "[3,16,6,2]":
        turned = STFT(transpose_frames=True).infer(tensor(signal), tensor("?"), size, step)
        assert str(turned.shape) == "[3,6,16,2]"


@pytest.mark.parametrize(
    ("data", "size", "step", "plain", "centered"),
    [
        ("6,16,2", const(10), const(3), "[55]", "[45]"),
        ("6,16,2", const(11), const(3), "[56]", "[46]"),
        ("?,?,2..5,?", const(8), const(4), "[?,12..24]", "[?,4..16]"),
        ("5,..3,2", const(8), const(4), "[8..16]", "[..8]"),
        ("5,4,2", scalar(8, 9), const(4), "[20..21]", "[12..13]"),
        ("5,4,2", tensor("", i64), const(4), "[13..]", "[12..13]"),
        ("...", const(8), const(4), "[...]", "[...]"),
    ],
)
def test_istft_inference(data: str, size: TensorType, step: TensorType, plain: str, centered: str) -> None:
    for center, expected in ((False, plain), (True, centered)):
        assert str(ISTFT(center=center).infer(tensor(data), tensor("?"), size, step).shape) == expected


def test_the_length_that_is_given() -> None:
    inputs = tensor("2,5,?,2"), tensor("8"), const(8), const(4)
    assert str(ISTFT().infer(*inputs, const(30)).shape) == "[2,30]"
    assert str(ISTFT().infer(*inputs, tensor("1", i32)).shape) == "[2,?]"
    assert ISTFT().infer(*inputs, scalar(3, 7)).shape[1] == Dimension(3, 7)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((tensor("10"), tensor("8"), const(11), const(3)), "frame_size 11 is longer than the signal [10]"),
        ((tensor("1,2,30"), tensor("8"), const(11), const(3)), "signal must have rank 1 or 2, got shape [1,2,30]"),
        ((tensor("30"), tensor("2,4"), const(11), const(3)), "window must have rank 1, got shape [2,4]"),
        ((tensor("30"), tensor("12.."), const(11), const(3)), "it has 12.. elements, but a frame has 11"),
        ((tensor("30"), tensor("0"), const(11), const(3)), "window must have at least one element"),
        ((tensor("30"), tensor("8"), const(0), const(3)), "frame_size must be above 0, got 0"),
        ((tensor("30"), tensor("8"), const(11), const(-3)), "frame_step must be above 0, got -3"),
        ((tensor("30"), tensor("8"), tensor("1", i64), const(3)), "frame_size must have rank 0, got shape [1]"),
        ((tensor("30"), tensor("8"), const(11), tensor("", i16)), "frame_step must be i32 or i64, got i16"),
        ((tensor("30", f16), tensor("8"), const(11), const(3)), "signal is f16 and window is f32"),
        (
            (tensor("30", i32), tensor("8", i32), const(11), const(3)),
            "signal must be of a floating-point type, got i32",
        ),
    ],
)
def test_stft_errors(inputs: tuple[TensorType, ...], message: str) -> None:
    with pytest.raises(OperatorError) as error:
        STFT().infer(*inputs)
    assert message in error.value.message


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((tensor("6,16"), const(11)), "data must have rank 3 or 4, got shape [6,16]"),
        (
            (tensor("2,5,?,2"), const(11)),
            "dimension 1 of data [2,5,?,2] must be 6, which is frame_size // 2 + 1 for fra",
        ),
        ((tensor("6,16,3"), const(11)), "the last dimension of data must be 2, for complex numbers; got [6,16,3]"),
        (
            (tensor("6,16,2"), const(11), constant_type(np.array([3, 4]))),
            "signal_length must be a scalar or have one element, got shape [2]",
        ),
        ((tensor("6,16,2"), const(11), const(-1)), "signal_length must not be negative, got -1"),
        ((tensor("6,16,2"), const(11), tensor("")), "signal_length must be i32 or i64, got f32"),
    ],
)
def test_istft_errors(inputs: tuple[TensorType, ...], message: str) -> None:
    data, size, *length = inputs
    with pytest.raises(OperatorError) as error:
        ISTFT().infer(data, tensor("7"), size, const(3), *length)
    assert message in error.value.message


def test_errors_of_the_run() -> None:
    with pytest.raises(OperatorError, match=r"frame_size 11 is longer than the signal \[10\]"):
        stft(np.ones(10, np.float32), np.ones(3, np.float32), 11, 1)
    with pytest.raises(OperatorError, match="must be 6, which is frame_size // 2"):
        istft(np.ones((5, 2, 2), np.float32), np.ones(3, np.float32), 11, 1)
