"""Conversion between NV12 or I420 and RGB or BGR."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ovir.ops.color import BGRtoNV12, I420toBGR, I420toRGB, NV12toBGR, NV12toRGB, RGBtoNV12

# Two by two pixels of one chroma.
LUMA = np.array([[16, 81], [145, 235]])
U, V = 90, 240
RGB = [
    [[178.752, 0, 0], [254.412, 0, 0]],
    [[255, 73.958, 73.472], [255, 178.718, 178.232]],
]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_one_chroma_for_four_pixels(dtype: Any) -> None:
    y = LUMA.reshape(1, 2, 2, 1).astype(dtype)
    u, v = (np.full((1, 1, 1, 1), value).astype(dtype) for value in (U, V))
    uv = np.concatenate([u, v], axis=-1)
    whole = np.array([*LUMA.ravel(), U, V]).reshape(1, 3, 2, 1).astype(dtype)
    expected = np.array(RGB)[np.newaxis]
    if dtype == np.uint8:
        expected = np.rint(expected)
    for op, planes in (
        (NV12toRGB(), (y, uv)),
        (NV12toRGB(), (whole,)),
        (I420toRGB(), (y, u, v)),
        (I420toRGB(), (whole,)),
    ):
        result = op.run(*planes)
        assert result.dtype == dtype
        np.testing.assert_allclose(
            result.astype(np.float64), expected.astype(dtype).astype(np.float64), rtol=1e-5, atol=1e-5
        )
    for other, planes in ((NV12toBGR(), (y, uv)), (I420toBGR(), (whole,))):
        np.testing.assert_array_equal(other.run(*planes), result[..., ::-1])


def test_halves_are_rounded_up_and_values_clipped() -> None:
    # In exact arithmetic 1.164 * (141 - 16) = 145.5
    y = np.full((1, 2, 2, 1), 141, np.uint8)
    result = NV12toRGB().run(y, np.full((1, 1, 1, 2), 128, np.uint8))
    assert result.tolist() == [[[[146] * 3] * 2] * 2]
    extreme = NV12toRGB().run(
        np.array([0, 255, 0, 255]).reshape(1, 2, 2, 1).astype(np.float32), np.full((1, 1, 1, 2), 128.0)
    )
    assert extreme[0, 0].tolist() == [[0, 0, 0], [255, 255, 255]]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, np.float16])
def test_to_nv12(dtype: Any) -> None:
    red, green, blue, black = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [0, 0, 0]])
    image = np.array([[red, green], [blue, black]])[np.newaxis].astype(dtype)
    luma = [0.257 * 255 + 16, 0.504 * 255 + 16, 0.098 * 255 + 16, 16]
    u = [128 - 0.148 * 255, 128 - 0.291 * 255, 128 + 0.439 * 255, 128]
    v = [128 + 0.439 * 255, 128 - 0.368 * 255, 128 - 0.071 * 255, 128]
    if dtype == np.uint8:
        luma, u, v = np.rint([luma, u, v]).tolist()
    chroma = [np.mean(u), np.mean(v)]
    if dtype == np.uint8:
        chroma = [np.floor(mean + 0.5) for mean in chroma]
    tolerance = 1e-3 if dtype == np.float16 else 1e-6
    whole = RGBtoNV12().run(image)
    assert isinstance(whole, np.ndarray)
    assert (whole.shape, whole.dtype) == ((1, 3, 2, 1), dtype)
    np.testing.assert_allclose(whole.ravel().astype(np.float64), [*luma, *chroma], rtol=tolerance)
    y, uv = RGBtoNV12(single_plane=False).run(image)
    np.testing.assert_array_equal(np.concatenate([y.ravel(), uv.ravel()]), whole.ravel())
    np.testing.assert_array_equal(BGRtoNV12().run(image[..., ::-1]), whole)


def test_to_nv12_in_one_plane_or_two() -> None:
    image = np.random.default_rng(0).integers(0, 256, (2, 4, 6, 3), np.uint8)
    whole = BGRtoNV12().run(image)
    assert isinstance(whole, np.ndarray)
    y, uv = BGRtoNV12(single_plane=False).run(image)
    np.testing.assert_array_equal(whole[:, :4], y)
    np.testing.assert_array_equal(whole[:, 4:].reshape(uv.shape), uv)
    # There and back again, an image of one color each keeps its colors.
    plain = np.repeat(np.array([[200, 30, 90], [10, 240, 120]], np.uint8), 24, axis=0).reshape(2, 4, 6, 3)
    back = NV12toRGB().run(RGBtoNV12().run(plain))
    np.testing.assert_allclose(back.astype(int), plain.astype(int), atol=3)
