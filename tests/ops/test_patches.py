"""ExtractImagePatches, Col2Im and DeformableConvolution."""

from typing import Any

import numpy as np
import pytest
from support.tensors import tensor

from ovir.ops import convolution
from ovir.ops.convolution import DeformableConvolution1, DeformableConvolution8, GroupConvolution
from ovir.ops.patches import Col2Im, ExtractImagePatches

IMAGE = np.arange(1, 26).reshape(1, 1, 5, 5)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"strides": (3, 3), "auto_pad": "valid"}, [[1, 4, 16, 19], [2, 5, 17, 20], [6, 9, 21, 24], [7, 10, 22, 25]]),
        ({"strides": (3, 3), "rates": (2, 3), "auto_pad": "valid"}, [[1], [4], [11], [14]]),
        ({"strides": (4, 4), "auto_pad": "same_upper"}, [[1, 5, 21, 25], [2, 0, 22, 0], [6, 10, 0, 0], [7, 0, 0, 0]]),
        ({"strides": (4, 4), "auto_pad": "same_lower"}, [[0, 0, 0, 19], [0, 0, 16, 20], [0, 4, 0, 24], [1, 5, 21, 25]]),
    ],
)
def test_extract_image_patches(attributes: dict[str, Any], expected: list[list[int]]) -> None:
    op = ExtractImagePatches(**({"sizes": (2, 2), "rates": (1, 1)} | attributes))
    result = op.run(IMAGE)
    assert result.shape == op.infer(tensor("1,1,5,5")).shape.to_tuple()
    assert result.reshape(4, -1).tolist() == expected


def test_patches_lie_before_channels() -> None:
    data = np.arange(8).reshape(1, 2, 2, 2)
    op = ExtractImagePatches(sizes=(2, 2), strides=(1, 1), rates=(1, 1), auto_pad="valid")
    assert op.run(data).ravel().tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_col2im_adds_up_what_overlaps(dtype: Any) -> None:
    op = Col2Im()
    data = np.ones((1, 4, 4), dtype)
    sizes = np.array([3, 3]), np.array([2, 2])
    expected = [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
    for batched in (data, data[0]):
        result = op.run(batched, *sizes)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result.reshape(3, 3), expected)


def test_col2im_with_all_attributes() -> None:
    op = Col2Im(strides=(2, 1), dilations=(2, 1), pads_begin=(1, 0), pads_end=(0, 1))
    data = np.arange(1, 9, dtype=np.float64).reshape(4, 2)
    # One row of windows, at row -1, and two columns of them: of each window the lower half is inside.
    assert op.run(data, np.array([2, 2]), np.array([2, 2])).tolist() == [[[0, 0], [5, 13]]]


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
