"""Rounding to f16 and bf16 against the conversions of NumPy and ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest

from ovir.core.arrays import Array
from ovir.runtime.emulation import narrowed

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


def floats() -> Array:
    """Return floats of all signs and exponents, and those around the ends of f16."""
    bits = np.arange(0, 2**32, 104729, np.uint64).astype(np.uint32)
    ends = np.float32([0.0, -0.0, 65504, 65519.99, 65520, 65535, 65536, 2**-14, 2**-24, 2**-25, 2**-26, np.inf, np.nan])
    return np.concatenate([bits.view(np.float32), ends, -ends])


@pytest.mark.parametrize("element_type", DTYPES)
def test_every_value_is_rounded_as_a_conversion_rounds_it(element_type: str) -> None:
    source = floats()
    with np.errstate(all="ignore"):
        expected = source.astype(DTYPES[element_type]).astype(np.float32)
    found = narrowed(source, element_type)
    np.testing.assert_array_equal(found, expected)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(expected)[is_number])


@pytest.mark.parametrize("element_type", DTYPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layouts_and_outputs(element_type: str, dtype: type) -> None:
    whole = np.random.default_rng(1).standard_normal((4, 6, 8)).astype(dtype)
    for view in (
        whole,
        whole.transpose(2, 0, 1),
        whole[::2, 1:5, ::-1],
        whole[:1, :1, :1],
        whole[:0],
        whole[0, 0, 0:1],
    ):
        expected = view.astype(DTYPES[element_type]).astype(dtype)
        before = view.copy()
        found = narrowed(view, element_type)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(view, before)
        np.testing.assert_array_equal(narrowed(before, element_type, before), expected)
    assert narrowed(np.array(1.0001, dtype), element_type).shape == ()
