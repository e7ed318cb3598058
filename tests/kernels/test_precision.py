"""Where results are computed, and that they come out once, contiguous and in the type asked for."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ovir.kernels.precision import (
    as_computed,
    as_f32,
    as_native,
    compute_dtype,
    integer_range,
    is_foreign,
    is_integer,
    lowest_finite,
    native_dtype,
    rounded,
    stored,
    sum_dtype,
)


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


INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
SMALL = [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.uint2]
REALS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("dtype", [np.dtype(t) for t in (*INTEGERS, *SMALL, *REALS, np.bool_)])
def test_types_of_arithmetic(dtype: np.dtype[Any]) -> None:
    whole, is_own = dtype in INTEGERS or dtype in SMALL, dtype.type.__module__ == "numpy"
    assert is_integer(dtype) == whole
    assert is_foreign(dtype) == (not is_own)
    wide = np.float64 if whole or dtype in (np.float64, np.bool_) else np.float32
    assert compute_dtype(dtype) == wide
    native = np.int16 if dtype in SMALL else dtype if is_own and dtype != np.float16 else np.float32
    assert native_dtype(dtype) == native
    assert sum_dtype(dtype) == (np.int64 if whole else native)
    assert as_native(np.ones(2, dtype)).dtype == native
    assert as_computed(np.ones(2, dtype)).dtype == wide
    assert as_f32(np.ones(2, dtype)).dtype == np.float32
    if dtype != np.bool_:
        info = ml_dtypes.iinfo(dtype) if whole else ml_dtypes.finfo(dtype)
        assert lowest_finite(dtype) == info.min
        assert not whole or integer_range(dtype) == (info.min, info.max)
