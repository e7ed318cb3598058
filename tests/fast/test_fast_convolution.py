"""Convolutions of integers, which are computed in f64 where that is exact, of bits, with strides, and with moved taps."""

from typing import Any

import numpy as np
import pytest
from support.binding import Bound, bound_results

from ovir.fast.registry import pays_at_once
from ovir.ops.convolution import (
    BinaryConvolution,
    Convolution,
    ConvolutionBackpropData,
    DeformableConvolution8,
    GroupConvolution,
    GroupConvolutionBackpropData,
)

WINDOW: dict[str, Any] = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1)}


@pytest.mark.slow
@pytest.mark.parametrize("constants", [{1}, set()])
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize(
    ("op", "channels", "filters"),
    [
        (Convolution(**WINDOW), 48, (48, 48, 3, 3)),  # large enough for tiles
        (Convolution(**WINDOW | {"strides": (2, 2)}), 3, (8, 3, 3, 3)),
        (Convolution(**WINDOW), 5, (4, 5, 1, 1)),
        (GroupConvolution(**WINDOW), 6, (2, 4, 3, 3, 3)),
        (GroupConvolution(**WINDOW), 4, (4, 1, 1, 3, 3)),
        (ConvolutionBackpropData(**WINDOW | {"strides": (2, 2)}), 4, (4, 3, 4, 4)),
        (GroupConvolutionBackpropData(**WINDOW), 4, (2, 2, 3, 3, 3)),
    ],
)
def test_integers_wrap_around(op: Any, channels: int, filters: Any, dtype: Any, constants: set[int]) -> None:
    rng, info = np.random.default_rng(0), np.iinfo(dtype)
    weights = rng.integers(0, 100, filters).astype(dtype)
    small = rng.integers(0, 100, (2, channels, 18, 18)).astype(dtype)
    large = rng.integers(info.min, info.max, small.shape, dtype, endpoint=True)
    bound = Bound(op, (small, weights), [op.run(small, weights)], constants)
    assert bound.has_form
    for data in (small, large, small):
        np.testing.assert_array_equal(bound.run((data, weights))[0], op.run(data, weights))


@pytest.mark.parametrize("pad_value", [0.0, -1.0, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int64])
@pytest.mark.parametrize("filters", [(48, 48, 3, 3), (1, 8, 3, 3), (16, 3, 1, 1)])
def test_bits(filters: tuple[int, ...], dtype: Any, pad_value: float) -> None:
    op, rng = BinaryConvolution(**WINDOW, pad_value=pad_value), np.random.default_rng(0)
    data = rng.integers(0, 2, (2, filters[1], 12, 13)).astype(dtype)
    bits = rng.integers(0, 2, filters).astype(np.uint8)
    expected = op.run(data, bits)
    got = bound_results(op, (data, bits), [expected], {1})
    assert got is not None
    np.testing.assert_array_equal(got[0], expected)


@pytest.mark.parametrize(
    ("op", "filters"),
    [
        (Convolution(**WINDOW | {"strides": (2**62, 1)}), (4, 2, 6, 3)),
        (Convolution(**WINDOW | {"dilations": (2**62, 1), "pads_begin": (0, 1), "pads_end": (0, 1)}), (4, 2, 1, 3)),
        (GroupConvolution(**WINDOW | {"strides": (2**62, 1)}), (2, 1, 1, 6, 3)),
        (GroupConvolution(**WINDOW | {"dilations": (2**62, 1), "pads_begin": (0, 1)}), (2, 1, 1, 1, 3)),
    ],
)
def test_a_stride_or_dilation_that_moves_nothing_may_exceed_any_array(op: Any, filters: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    data, weights = (rng.normal(size=shape).astype(np.float32) for shape in ((1, 2, 6, 9), filters))
    expected = op.run(data, weights)
    got = bound_results(op, (data, weights), [expected], {1})
    assert got is not None
    np.testing.assert_allclose(got[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("pads", [(0, 2), (3, 0)])
@pytest.mark.parametrize("strides", [(2, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 2), (2, 5)])
def test_strides_of_single_channels(kernel: tuple[int, int], strides: tuple[int, int], pads: tuple[int, int]) -> None:
    op, rng = GroupConvolution(**WINDOW | {"strides": strides, "pads_begin": pads}), np.random.default_rng(0)
    data = rng.normal(size=(2, 6, 9, 8)).astype(np.float32)
    data[0, 0, 0, 0] = np.inf  # reaches only the outputs that read it
    filters = rng.normal(size=(6, 1, 1, *kernel)).astype(np.float32)
    with np.errstate(invalid="ignore"):
        expected = op.run(data, filters)
    got = bound_results(op, (data, filters), [expected], {1})
    assert got is not None
    np.testing.assert_allclose(got[0], expected, 1e-5, 1e-5)


def test_infinite_filters_that_meet_no_zeros() -> None:
    data, filters = np.ones((1, 2, 3, 4), np.float32), np.full((5, 2, 1, 1), np.inf, np.float32)
    for pads, has_form in (((0, 0), True), ((1, 1), False)):
        op = Convolution(**WINDOW | {"pads_begin": pads, "pads_end": pads})
        got = bound_results(op, (data, filters), [op.run(data, filters)], {1})
        assert (got is not None) == has_form
        if got is not None:
            np.testing.assert_array_equal(got[0], op.run(data, filters))


@pytest.mark.parametrize("has_mask", [False, True])
@pytest.mark.parametrize("parts", [1, 3])
def test_moved_taps(parts: int, has_mask: bool) -> None:
    settings = {"group": 1, "deformable_group": parts, "bilinear_interpolation_pad": True, "strides": (2, 1)}
    op, rng = DeformableConvolution8(**WINDOW | settings), np.random.default_rng(0)
    data, filters = (rng.normal(size=s).astype(np.float32) for s in ((2, 6, 7, 5), (4, 6, 3, 2)))
    offsets, mask = (rng.normal(size=(2, n * parts * 6, 4, 6)).astype(np.float32) * 3 for n in (2, 1))
    offsets[0, 0, 0, :3] = np.nan, np.inf, -1e9
    inputs = (data, offsets, filters, mask)[: 4 if has_mask else 3]
    expected = op.run(*inputs)
    got = bound_results(op, inputs, [expected], {2})
    assert got is not None
    np.testing.assert_allclose(got[0], expected, 1e-5, 1e-5)


@pytest.mark.parametrize(("kernel", "pays"), [((8, 8), True), ((7, 9), False)])
def test_the_taps_of_filters_decide_where_inputs_are_small(kernel: tuple[int, int], pays: bool) -> None:
    data, filters = np.zeros((1, 1, 9, 9), np.float32), np.zeros((1, 1, *kernel), np.float32)
    offsets = np.zeros((1, 2 * kernel[0] * kernel[1], 1, 1), np.float32)
    for op, inputs in (
        (DeformableConvolution8(group=1, deformable_group=1), (data, offsets, filters)),
        (Convolution(), (data, filters)),
    ):
        pays_for = pays_at_once(op)
        assert pays_for is not None
        assert pays_for(op, *inputs) == pays
