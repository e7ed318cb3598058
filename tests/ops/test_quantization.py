"""FakeQuantize and FakeConvert: known answers, ranges out of order, broadcasting, and what is refused."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.tensors import tensor

from ovir.core.element_types import f32
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import OperatorError
from ovir.ops.quantization import FakeConvert, FakeQuantize

NAN, INF = np.nan, np.inf
BF16 = ml_dtypes.bfloat16


def quantized(x: Any, ranges: Any, levels: int, dtype: Any = np.float32, **attributes: Any) -> Any:
    arrays = [np.asarray(r, dtype) for r in ranges]
    return FakeQuantize(levels=levels, **attributes).run(np.asarray(x, dtype), *arrays)


def by_the_formula(x: Any, il: Any, ih: Any, ol: Any, oh: Any, levels: int) -> Any:
    """The specification, one element after another."""
    result = np.empty_like(x)
    for place in np.ndindex(x.shape):
        v, a, b, c, d = x[place], il[place], ih[place], ol[place], oh[place]
        if v <= min(a, b):
            result[place] = c
        elif v > max(a, b):
            result[place] = d
        else:
            result[place] = (
                np.rint((v - a) / (b - a) * x.dtype.type(levels - 1)) / x.dtype.type(levels - 1) * (d - c) + c
            )
    return result


# ----- FakeQuantize


@pytest.mark.parametrize(
    ("ranges", "levels", "expected"),
    [
        ((0, 4, 0, 4), 5, [0, 0, 0, 0, 2, 2, 4, 4, 4, NAN]),  # ties to the even step
        ((0, 4, 4, 0), 5, [4, 4, 4, 4, 2, 2, 0, 0, 0, NAN]),
        ((4, 0, 0, 4), 5, [0, 0, 0, 4, 2, 2, 0, 4, 4, NAN]),  # between the ends it runs the other way
        ((-INF, INF, 0, 1), 3, [0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN]),
    ],
)
def test_fake_quantize(ranges: tuple[float, ...], levels: int, expected: list[float]) -> None:
    x = [-INF, -1, 0, 0.5, 1.5, 2.5, 4, 4.5, INF, NAN]
    np.testing.assert_array_equal(quantized(x, ranges, levels), expected)


def test_the_ends_of_the_output_range_are_met_exactly() -> None:
    ranges = (-1.1, 2.3, -1.5, 1.7)
    result = quantized([-9, 9], ranges, 255)
    assert result.tolist() == [np.float32(-1.5), np.float32(1.7)]


@pytest.mark.parametrize("seed", range(6))
def test_as_the_formula_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, (2, 3, 40)).astype(np.float32)
    shape = [(1,), (3, 1), (1, 3, 1), (40,), (2, 1, 40), (2, 3, 40)][seed]
    ranges = [rng.uniform(-2, 2, shape).astype(np.float32) for _ in range(4)]
    if seed % 2:
        ranges[1] = ranges[0] + 1 + abs(ranges[1])
    full = [np.broadcast_to(r, x.shape) for r in ranges]
    levels = int(rng.choice([2, 5, 16, 255, 256]))
    np.testing.assert_allclose(quantized(x, ranges, levels), by_the_formula(x, *full, levels), rtol=3e-7, atol=1e-7)


def test_channels_where_the_mode_puts_them() -> None:
    x = np.zeros((2, 3, 2), np.float32)
    ranges = (np.full(3, -4.0), np.full(3, 4.0), [1, 2, 3], [1, 2, 3])
    assert quantized(x, ranges, 3, axis=1, auto_broadcast="pdpd")[0].tolist() == [[1, 1], [2, 2], [3, 3]]
    equal = [np.broadcast_to(np.float32(r), x.shape) for r in (-1, 1, 0, 2)]
    assert quantized(x, equal, 3, auto_broadcast="none").tolist() == np.ones((2, 3, 2)).tolist()
    assert quantized(x[0], [np.full((1, 1, 1, 1), r) for r in (-1, 1, 0, 2)], 3).shape == (3, 2)


def test_symbols_pass() -> None:
    x = PartialShape([-1, 3])
    for op, others in ((FakeQuantize(levels=4), 4), (FakeConvert(destination_type="f8e5m2"), 1)):
        assert op.infer(TensorType(f32, x), *[tensor("1")] * others).shape[0] is x[0]


# ----- FakeConvert


def converted(to: str, x: Any, scale: Any = 1, shift: Any = None, dtype: Any = np.float32) -> Any:
    others = [np.asarray(a, dtype) for a in (scale, shift) if a is not None]
    return FakeConvert(destination_type=to).run(np.asarray(x, dtype), *others)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16])
@pytest.mark.parametrize(
    ("to", "x", "expected"),
    [
        ("f8e4m3", [1, 1.0625, 1.1875, -1.07, 17, 19], [1, 1, 1.25, -1.125, 16, 20]),  # ties to even
        ("f8e4m3", [447, 464, 1e4, -INF, NAN], [448, 448, 448, -448, 448]),
        (
            "f8e4m3",
            [2**-6, 2**-7 * 1.9, 2**-9 * 1.9, 2**-9, 2**-9 * 0.99, -(2**-10)],
            [2**-6, 2**-7 * 1.75, 2**-9, 2**-9, 0, 0],
        ),
        ("f8e5m2", [1, 1.125, 1.375, -1.13, 9, 11], [1, 1, 1.5, -1.25, 8, 12]),
        ("f8e5m2", [57344, 61440, 65000, -INF, NAN], [57344, 57344, 57344, -57344, NAN]),
        ("f8e5m2", [2**-14, 2**-16 * 2.5, 2**-16 * 0.51, 2**-17], [2**-14, 2**-15, 2**-16, 0]),
    ],
)
def test_fake_convert(to: str, x: list[float], expected: list[float], dtype: Any) -> None:
    if dtype == BF16:  # it has no room for all of the digits
        x, expected = ([v for v, w in zip(values, x, strict=True) if float(BF16(w)) == w] for values in (x, expected))
    result = converted(to, x, dtype=dtype)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.astype(np.float32), np.asarray(expected, np.float32))


def test_zero_has_no_sign_once_converted() -> None:
    for to in ("f8e4m3", "f8e5m2"):
        assert not np.signbit(converted(to, [-0.0, -1e-9])).any()


def test_scale_and_shift_go_there_and_back() -> None:
    x, scale, shift = np.float32([[3.3, -0.7, 100], [0.2, 5, -9]]), np.float32([2, 0.5, 4]), np.float32([1, -3, 0.5])
    inner = (x * scale - shift).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    np.testing.assert_array_equal(converted("f8e4m3", x, scale, shift), (inner + shift) / scale)
    np.testing.assert_array_equal(converted("f8e4m3", x, scale), converted("f8e4m3", x, scale, np.zeros(3)))


def test_each_step_is_of_the_type_of_the_data() -> None:
    x, scale, shift = np.float16(3.301), np.float16(1.7), np.float16(0.3)
    inner = np.float16(np.float16(x * scale) - shift).astype(ml_dtypes.float8_e5m2).astype(np.float16)
    expected = np.float16(np.float16(inner + shift) / scale)
    assert converted("f8e5m2", [x], scale, shift, np.float16).tolist() == [expected]


def test_sizes_that_meet_only_in_a_run() -> None:
    with pytest.raises(OperatorError, match=r"of shape \[2\] cannot be broadcast"):
        FakeQuantize(levels=4).run(np.ones(3, np.float32), *[np.ones(2, np.float32)] * 4)
