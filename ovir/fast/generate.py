"""Ranges of integers by one call, as decoders count the positions of their caches in each run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import i32, i64
from ovir.fast.registry import fast_kernel
from ovir.ops.generate import RangeBase

_LIMIT = 1 << 31
"""Smaller numbers fit i32, and the count of a range of them, a quotient that NumPy rounds up, is exact."""


@fast_kernel(RangeBase)
def small_range(op: RangeBase) -> Callable[..., Array]:
    def run(start: Array, stop: Array, step: Array) -> Array:
        first, last, stride = start.item(), stop.item(), step.item()
        if stride and max(abs(first), abs(last), abs(stride)) < _LIMIT:
            return np.arange(first, last, stride, dtype=dtype)
        return op.run(start, stop, step)

    if not op.input_types or op.output_types[0] not in (i32, i64) or any(kind.is_real for kind in op.input_types):
        return op.run
    dtype = op.output_types[0].to_dtype()
    return run
