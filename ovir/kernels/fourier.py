"""One-dimensional Fourier transforms of many lines, in blocks and on threads, for the operations made of them.

Complex numbers are in the tensors as pairs, real part first, along a last axis of 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ovir.arrays import Array
from ovir.kernels import half
from ovir.kernels.blocked import BLOCK, compute_dtype
from ovir.kernels.parallel import run_blocks

Transform = Callable[..., Array]
"""One of ``np.fft``: of lines along an axis, cut or filled with zeros to a length. f32 is computed in f32."""

# Elements that a thread must have at least.
_LEAST = 1 << 15


def as_complex(pairs: Array) -> Array:
    """The complex numbers that the pairs along the last axis mean; of a contiguous array a view."""
    pairs = np.ascontiguousarray(pairs)
    view: Array = pairs.view(np.result_type(pairs.dtype, np.complex64))
    return view[..., 0]


def widened(data: Array) -> Array:
    """The data in the type that it is transformed in: f32, or f64 as it is."""
    return half.converted(data, compute_dtype(data.dtype))


def work_array(shape: tuple[int, ...], dtype: np.dtype[Any], out: Array | None) -> Array:
    """Where to compute a result of type ``dtype``: ``out`` if that has the type that is computed in."""
    computed = compute_dtype(dtype)
    return out if out is not None and computed == dtype else np.empty(shape, computed)


def narrowed(result: Array, dtype: np.dtype[Any], out: Array | None) -> Array:
    """What was computed in a ``work_array``, rounded once to ``dtype``."""
    if result.dtype == dtype:
        return result
    if out is None:
        out = np.empty(result.shape, dtype)
    half.copy(result, out)
    return out


def transform(function: Transform, source: Array, axis: int, length: int, out: Array) -> None:
    """``out = function(source, length, axis)``. ``out`` may be the source itself."""
    if not source.shape[axis]:  # NumPy would read what is not there
        out[...] = 0
    if not source.size or not out.size:
        return
    across = next((i for i, size in enumerate(out.shape) if i != axis and size > 1), None)
    if across is None:
        with np.errstate(all="ignore"):
            function(source, length, axis, out=out)
        return
    size = out.size // out.shape[across]
    count = max(BLOCK // size, 1)
    before = (slice(None),) * across

    def run(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            for i in range(start, stop, count):
                place = (*before, slice(i, min(i + count, stop)))
                function(source[place], length, axis, out=out[place])

    run_blocks(run, out.shape[across], -(-_LEAST // size))
