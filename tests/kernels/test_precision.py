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
    fill_saturated,
    integer_range,
    is_foreign,
    is_integer,
    lowest_finite,
    native_dtype,
    rounded,
    stored,
    sum_dtype,
    to_integers,
)


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
    if dtype != np.bool_:
        info = ml_dtypes.iinfo(dtype) if whole else ml_dtypes.finfo(dtype)
        assert lowest_finite(dtype) == info.min
        assert not whole or integer_range(dtype) == (info.min, info.max)


@pytest.mark.parametrize("dtype", [np.dtype(t) for t in (*INTEGERS, *SMALL)])
@pytest.mark.parametrize("real", [np.float32, np.float64, np.float16])
def test_real_numbers_at_the_limits_of_integers(dtype: np.dtype[Any], real: Any) -> None:
    """They are truncated into 32 bits, or 64 for u32 and wider types, of which the low bits are kept; what these do not
    hold becomes their least number, but u64 goes on to 2^64."""
    ends = [2.0**n for n in (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64)]
    numbers = [sign * (end + d) for end in ends for d in (-1, 0, 0.5, 1) for sign in (1, -1)]
    with np.errstate(over="ignore"):
        x = np.array([*numbers, 0, -0.5, np.nan, np.inf, -np.inf, 1e30], real)
    bits = 64 if dtype in (np.uint32, np.int64, np.uint64) else 32
    info, wrapped, saturated = ml_dtypes.iinfo(dtype), [], []
    for number in x.tolist():
        whole = int(number) if np.isfinite(number) else None
        if dtype == np.uint64 and number >= 2**63:
            whole = whole if whole is not None and whole < 2**64 else 0
        elif whole is None or not -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1):
            whole = -(2 ** (bits - 1))
        whole %= 2**info.bits
        wrapped.append(whole - 2**info.bits * (info.min < 0 and whole >= 2 ** (info.bits - 1)))
        inside = min(max(number, -1e30), 1e30)
        saturated.append(0 if np.isnan(number) else min(max(int(inside), info.min), info.max))
    assert to_integers(x, dtype).astype(object).tolist() == wrapped
    out = np.empty(x.shape, dtype)
    with np.errstate(all="ignore"):
        fill_saturated(x, out)
    assert out.astype(object).tolist() == saturated
