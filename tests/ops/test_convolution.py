"""Convolutions: known answers, equality with sums of single products, inference, and error texts."""

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.binding import bound_results
from support.tensors import tensor

from ovir.core.element_types import f32, u1
from ovir.core.shapes import Dimension, PartialShape, new_symbol
from ovir.core.tensor_types import TensorType, constant_type
from ovir.diagnostics.errors import OperatorError
from ovir.ops import convolution
from ovir.ops.convolution import (
    BinaryConvolution,
    Convolution,
    ConvolutionBackpropData,
    DeformableConvolution1,
    DeformableConvolution8,
    ForwardConvolutionBase,
    GroupConvolution,
)

DATA = np.arange(1, 13, dtype=np.float32).reshape(1, 1, 3, 4)
# Each output is the sum of the pixel to the right and the one below.
FILTERS = np.array([[[[0, 1], [1, 0]]]], np.float32)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [[7, 9, 11], [15, 17, 19]]),
        ({"strides": (2, 2)}, [[7, 11]]),
        ({"dilations": (2, 1)}, [[11, 13, 15]]),
        ({"pads_begin": (1, 0), "pads_end": (0, 1)}, [[1, 2, 3, 4], [7, 9, 11, 8], [15, 17, 19, 12]]),
        ({"pads_begin": (-1, 0)}, [[15, 17, 19]]),
        ({"pads_begin": (1, 1), "auto_pad": "notset"}, [[0, 1, 2, 3], [1, 7, 9, 11], [5, 15, 17, 19]]),
        ({"pads_begin": (1, 1), "auto_pad": "valid"}, [[7, 9, 11], [15, 17, 19]]),
        ({"strides": (1, 3), "auto_pad": "same_upper"}, [[7, 8], [15, 12], [10, 0]]),
        ({"strides": (1, 3), "auto_pad": "same_lower"}, [[0, 3], [1, 11], [5, 19]]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint64])
def test_known_answers(attributes: dict[str, Any], expected: list[list[float]], dtype: Any) -> None:
    op = Convolution(**attributes)
    data, filters = DATA.astype(dtype), FILTERS.astype(dtype)
    result = op.run(data, filters)
    assert isinstance(result, np.ndarray)
    assert result.dtype == dtype
    assert result.shape == op.infer(tensor("1,1,3,4"), tensor("1,1,2,2")).shape.to_tuple()
    np.testing.assert_array_equal(result[0, 0].astype(np.float64), expected)


def direct(op: ForwardConvolutionBase, data: Any, filters: Any) -> Any:
    """What a convolution is defined as, a term for each tap and output."""
    groups, outputs, depth, *kernel = filters.shape
    sizes = [
        (size + begin + end - (taps - 1) * dilation - 1) // stride + 1
        for size, taps, stride, dilation, begin, end in zip(
            data.shape[2:], kernel, op.strides, op.dilations, op.pads_begin, op.pads_end, strict=True
        )
    ]
    out = np.zeros((len(data), groups * outputs, *sizes), data.dtype)
    for n, g, o, c in product(*map(range, (len(data), groups, outputs, depth))):
        for place, tap in product(np.ndindex(*sizes), np.ndindex(*kernel)):
            steps = zip(place, op.strides, tap, op.dilations, op.pads_begin, strict=True)
            at = [p * stride + t * dilation - pad for p, stride, t, dilation, pad in steps]
            if all(0 <= i < size for i, size in zip(at, data.shape[2:], strict=True)):
                out[(n, g * outputs + o, *place)] += data[(n, g * depth + c, *at)] * filters[(g, o, c, *tap)]
    return out


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_each_output_is_the_sum_of_its_taps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    axes = int(rng.integers(1, 4))
    images, groups, outputs, depth = (int(rng.integers(1, 4)) for _ in range(4))
    kernel, strides, dilations = (tuple(map(int, rng.integers(1, 4, axes))) for _ in range(3))
    begin, end = (tuple(map(int, rng.integers(-1, 3, axes))) for _ in range(2))
    if seed % 8 == 0:  # each output is the sum of one place
        kernel, strides, begin, end = (1,) * axes, (1,) * axes, (0,) * axes, (0,) * axes
    is_single = seed % 8 == 4  # one window of each channel by itself
    if is_single:
        groups, outputs, depth, strides = 3, 1, 1, (1,) * axes
    sizes = [
        (taps - 1) * dilation + 1 - first - last + int(rng.integers(1 if is_single else 5))
        for taps, dilation, first, last in zip(kernel, dilations, begin, end, strict=True)
    ]
    op = GroupConvolution(strides=strides, dilations=dilations, pads_begin=begin, pads_end=end)
    data = rng.integers(-4, 5, (images, groups * depth, *(max(size, 1) for size in sizes))).astype(np.float32)
    filters = rng.integers(-4, 5, (groups, outputs, depth, *kernel)).astype(np.float32)
    expected = direct(op, data, filters)
    np.testing.assert_array_equal(op.run(data, filters), expected)
    for constants, dtype in product(({1}, set()), (np.float32, np.float64, np.float16, np.int8, np.uint16)):
        typed = data.astype(dtype), filters.astype(dtype)
        whole = op.run(*typed)
        results = bound_results(op, typed, [whole], constants)
        if min(begin) >= 0 and whole.size and data.size > 8:
            assert results is not None
        assert results is None or np.array_equal(results[0], whole)
    if groups == 1:
        np.testing.assert_array_equal(Convolution(**vars(op)).run(data, filters[0]), expected)


def test_infinite_weights_do_not_meet_the_zeros_around_the_data() -> None:
    filters = np.array([[[np.inf, 1]]], np.float32)
    inputs = np.ones((1, 1, 3), np.float32), filters
    op = Convolution(strides=(1,), dilations=(1,), pads_begin=(1,), pads_end=(0,))
    expected = op.run(*inputs)
    assert expected.ravel().tolist() == [1, np.inf, np.inf]
    assert bound_results(op, inputs, [expected], {1}) is None
    results = bound_results(op, inputs, [expected], set())
    assert results is not None
    np.testing.assert_array_equal(results[0], expected)


def test_taps_that_read_only_zeros_take_no_memory() -> None:
    op = Convolution(strides=(1,), dilations=(10**9,), pads_begin=(10**9,), pads_end=(10**9,))
    data, filters = np.ones((1, 1, 3), np.float32), np.ones((1, 1, 3), np.float32)
    assert op.run(data, filters).tolist() == [[[1, 1, 1]]]
    assert bound_results(op, (data, filters), [data], {1}) is None


@pytest.mark.parametrize(("images", "outputs", "products"), [(0, 3, 0), (2, 0, 0), (2, 3, 4)])
def test_no_taps_are_taken_where_there_is_no_output(
    images: int, outputs: int, products: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Any] = []
    mixed = convolution.mixed_channels
    monkeypatch.setattr(convolution, "mixed_channels", lambda *arrays: taken.append(arrays) or mixed(*arrays))
    op = Convolution(strides=(1,), pads_begin=(0,), pads_end=(0,), dilations=(1,))
    result = op.run(np.ones((images, 2, 6), np.float32), np.ones((outputs, 2, 4), np.float32))
    assert result.shape == (images, outputs, 3)
    assert len(taken) == products


def test_integers_are_exact_and_wrap_around() -> None:
    data = np.array([[[2**62, 2**62 + 1]]], np.int64)
    assert Convolution().run(data, np.ones((1, 1, 2), np.int64)).item() == 2**63 + 1 - 2**64
    assert Convolution().run(np.full((1, 1, 2), 100, np.int8), np.ones((1, 1, 2), np.int8)).item() == 200 - 256


def test_binary_convolution_counts_equal_bits() -> None:
    # Of the bits of a byte of u1 filters, devices take the lowest for the first; the reader takes the highest.
    filters = np.array([1, 0, 0, 0, 0, 0, 0, 0], np.uint8).reshape(1, 1, 1, 8)
    data = np.array([0, 0, 0, 0, 0, 0, 0, 1], np.float32).reshape(1, 1, 1, 8)
    assert BinaryConvolution().run(data, filters).item() == 8
    assert BinaryConvolution().run(1 - data, filters).item() == -8
    for pad_value, expected in ((-1.0, 8), (0.0, 7), (1.0, 6)):
        op = BinaryConvolution(pad_value=pad_value, pads_begin=(0, 1), pads_end=(0, 0))
        assert op.run(data[..., 1:], filters).item() == expected
    assert str(BinaryConvolution().infer(tensor("?,8,4,4"), tensor("2,8,3,3", u1))) == "f32[?,2,2,2]"


def test_infer_keeps_the_symbol_of_a_size_that_stays() -> None:
    size = Dimension(1, None, new_symbol())
    data = TensorType(f32, PartialShape([size, 3, size]))
    inferred = Convolution(pads_begin=(1,), pads_end=(1,)).infer(data, tensor("8,3,3")).shape
    assert [dim.symbol for dim in inferred] == [size.symbol, 0, size.symbol]


def test_run_errors() -> None:
    ones = np.ones((1, 2, 3), np.float32)
    # As for shapes that are known: also where the strides would make a count of windows that is not negative.
    for strides in ((1,), (4,)):
        with pytest.raises(OperatorError, match=r"it covers 5 \(kernel 5, dilation 1\), but data has 3"):
            Convolution(strides=strides).run(ones, np.ones((1, 2, 5), np.float32))
    with pytest.raises(OperatorError, match=r"a filter of size \[0\] has no elements"):
        Convolution().run(ones, np.ones((1, 2, 0), np.float32))
    with pytest.raises(OperatorError, match=r"filters of shape \[1,2,1,1\] do not fill whole bytes"):
        BinaryConvolution().run(ones[..., None], np.ones((1, 2, 1, 1), np.uint8))


@pytest.mark.parametrize(
    ("attributes", "sizes", "expected"),
    [
        ({}, None, [1, 12, 123, 230, 300]),
        ({"strides": (2,)}, None, [1, 10, 102, 20, 203, 30, 300]),
        ({"strides": (4,)}, None, [1, 10, 100, 0, 2, 20, 200, 0, 3, 30, 300]),
        ({"dilations": (2,)}, None, [1, 2, 13, 20, 130, 200, 300]),
        ({"strides": (2,), "pads_begin": (1,), "pads_end": (2,)}, None, [10, 102, 20, 203]),
        ({"strides": (2,), "output_padding": (1,)}, None, [1, 10, 102, 20, 203, 30, 300, 0]),
        ({"strides": (2,), "pads_begin": (1,), "auto_pad": "same_upper"}, None, [1, 10, 102, 20, 203, 30, 300]),
        ({"strides": (2,), "auto_pad": "same_upper"}, 6, [10, 102, 20, 203, 30, 300]),
        ({"strides": (2,), "auto_pad": "same_lower"}, 6, [1, 10, 102, 20, 203, 30]),
        ({"strides": (2,), "auto_pad": "same_lower"}, 5, [10, 102, 20, 203, 30]),
        ({"strides": (2,), "pads_begin": (1,)}, 5, [10, 102, 20, 203, 30]),
        ({"strides": (2,), "pads_begin": (1,), "auto_pad": "valid"}, 8, [1, 10, 102, 20, 203, 30, 300, 0]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_backprop_known_answers(attributes: dict[str, Any], sizes: int | None, expected: list[int], dtype: Any) -> None:
    op = ConvolutionBackpropData(**attributes)
    data, filters = np.array([[[1, 2, 3]]], dtype), np.array([[[1, 10, 100]]], dtype)
    shape = None if sizes is None else np.array([sizes], np.int64)
    inputs = (data, filters) if shape is None else (data, filters, shape)
    result = op.run(*inputs)
    assert isinstance(result, np.ndarray)
    assert result.dtype == dtype
    assert result.ravel().tolist() == expected
    inferred = op.infer(tensor("1,1,3"), tensor("1,1,3"), None if shape is None else constant_type(shape))
    assert result.shape == inferred.shape.to_tuple()


# ----- DeformableConvolution


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("deformable_group", [1, 2])
def test_without_offsets_deformable_is_an_ordinary_convolution(group: int, deformable_group: int) -> None:
    rng = np.random.default_rng(0)
    data, filters = rng.standard_normal((2, 4, 6, 5)), rng.standard_normal((2, 4 // group, 3, 2))
    attributes: dict[str, Any] = {"strides": (2, 1), "pads_begin": (1, 0), "pads_end": (1, 2), "dilations": (1, 2)}
    expected = GroupConvolution(**attributes).run(data, filters.reshape(group, 2 // group, 4 // group, 3, 2))
    op = DeformableConvolution1(group=group, deformable_group=deformable_group, **attributes)
    offsets = np.zeros((2, 12 * deformable_group, *expected.shape[2:]))
    np.testing.assert_allclose(op.run(data, offsets, filters), expected, atol=1e-12)
    assert op.run(data[:0], offsets[:0], filters).shape == (0, *expected.shape[1:])
    whole = offsets.copy()
    whole[:, 0::2] = 1  # all taps one row down, as if data were one row up
    moved = np.concatenate([data[:, :, 1:], np.zeros_like(data[:, :, :1])], axis=2)
    first = data[:, :, :1]
    padded = np.concatenate([first, moved], axis=2)  # the row above, which was padding, is now inside
    attributes["pads_begin"] = (0, 0)
    expected = GroupConvolution(**attributes).run(padded, filters.reshape(group, 2 // group, 4 // group, 3, 2))
    np.testing.assert_allclose(op.run(data, whole, filters), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("place", "inside", "padded"),
    [(0.25, 12.5, 12.5), (-0.25, 0, 7.5), (1.5, 20, 10), (-1.0, 0, 0), (2.0, 0, 0), (np.nan, 0, 0), (1e30, 0, 0)],
)
def test_places_between_and_outside_of_pixels(place: float, inside: float, padded: float) -> None:
    data, filters = np.array([[[[10, 20]]]], np.float32), np.ones((1, 1, 1, 1), np.float32)
    offsets = np.zeros((1, 2, 1, 2), np.float32)
    offsets[0, 1] = [[place, place - 1]]  # the second output begins one pixel further on
    for pad, expected in ((False, inside), (True, padded)):
        op = DeformableConvolution8(group=1, deformable_group=1, bilinear_interpolation_pad=pad)
        assert op.run(data, offsets, filters).ravel().tolist() == [expected] * 2
        mask = np.array([0.5, 2], np.float32).reshape(1, 1, 1, 2)
        assert op.run(data, offsets, filters, mask).ravel().tolist() == [expected / 2, expected * 2]


def test_each_deformable_image_has_its_own_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    data, filters = rng.normal(size=(5, 4, 6, 7)), rng.normal(size=(6, 2, 3, 2))
    moves, mask = rng.normal(size=(5, 24, 4, 6)), rng.random((5, 12, 4, 6))
    op = DeformableConvolution8(group=2, deformable_group=2, bilinear_interpolation_pad=True)
    one_by_one = np.concatenate([op.run(data[i : i + 1], moves[i : i + 1], filters, mask[i : i + 1]) for i in range(5)])
    np.testing.assert_allclose(op.run(data, moves, filters, mask), one_by_one, rtol=1e-12)
    for count in (24, 10):  # outputs that are sampled at a time; an image has 24
        monkeypatch.setattr(convolution, "_SAMPLES", count * 6 * 4)
        np.testing.assert_allclose(op.run(data, moves, filters, mask), one_by_one, rtol=1e-12)
