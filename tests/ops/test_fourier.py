"""DFT, IDFT, RDFT, IRDFT, STFT and ISTFT."""

from typing import Any

import numpy as np
import pytest

from ovir.core.arrays import Array
from ovir.diagnostics.errors import OperatorError
from ovir.ops.fourier import DFT, IDFT, IRDFT, ISTFT, RDFT, STFT


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


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (None, [1.5, 0.5, 0.5, 0.5]),  # 2 * (3 - 1)
        (2, [2, 1]),  # of three numbers the first two
        (3, [5 / 3, 2 / 3, 2 / 3]),
        (6, [7 / 6, 1 / 2, 1 / 6, 1 / 2, 1 / 6, 1 / 2]),  # the fourth is missing and counts as 0
    ],
)
def test_irdft_has_the_conjugates_that_are_not_there(size: int | None, expected: list[float]) -> None:
    data = pairs([3, 1, 1])
    result = IRDFT().run(data, np.array([0]), None if size is None else np.array([size]))
    np.testing.assert_allclose(result, expected, atol=1e-6)


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


# --------------------------------------------------------------------------- short frames


RNG = np.random.default_rng(0)


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


def test_errors_of_the_run() -> None:
    with pytest.raises(OperatorError, match=r"frame_size 11 is longer than the signal \[10\]"):
        stft(np.ones(10, np.float32), np.ones(3, np.float32), 11, 1)
    with pytest.raises(OperatorError, match="must have 6 numbers, which is frame_size // 2"):
        istft(np.ones((5, 2, 2), np.float32), np.ones(3, np.float32), 11, 1)
