"""ExtractImagePatches and Col2Im."""

from typing import Any

import numpy as np
import pytest
from support.tensors import tensor

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
