"""Where results are computed, and that they come out once, contiguous and in the type asked for."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ovir.kernels.precision import as_computed, as_f32, rounded, stored


@pytest.mark.parametrize(
    ("dtype", "computed"),
    [(np.float32, np.float32), (np.float64, np.float64), (np.float16, np.float32), (ml_dtypes.bfloat16, np.float32)],
)
def test_types(dtype: Any, computed: Any) -> None:
    data = np.array([1.5, -2], dtype)
    assert as_computed(data).dtype == computed
    assert as_f32(data).dtype == np.float32
    assert as_f32(data).tolist() == [1.5, -2]


def test_stored() -> None:
    result = np.arange(6, dtype=np.float32).reshape(2, 3).T
    for dtype in (np.float32, np.float16):
        copy = stored(result, np.dtype(dtype))
        assert copy.dtype == dtype
        assert copy.flags.c_contiguous
        np.testing.assert_array_equal(copy, result)


def test_rounded() -> None:
    reals = np.array([0.5, 1.5, -2.75])
    assert rounded(reals, np.dtype(np.int8)).tolist() == [0, 2, -3]
    assert rounded(reals, np.dtype(np.float16)).tolist() == [0.5, 1.5, -2.75]
    assert rounded(reals, np.dtype(np.float64)) is reals
