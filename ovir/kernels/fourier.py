"""One-dimensional Fourier transforms of many lines, in blocks and on threads, for the operations made of them.

Complex numbers are in the tensors as pairs, real part first, along a last axis of 2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.blocked import BLOCK
from ovir.kernels.parallel import run_blocks

Transform = Callable[..., Array]
"""One of ``np.fft``: of lines along an axis, cut or filled with zeros to a length. f32 is computed in f32."""

# Elements that a thread must have at least.
_LEAST_PER_THREAD = 1 << 15


def as_complex(pairs: Array) -> Array:
    """The complex numbers that the pairs along the last axis mean; of a contiguous array a view."""
    pairs = np.ascontiguousarray(pairs)
    view: Array = pairs.view(np.result_type(pairs.dtype, np.complex64))
    return view[..., 0]


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

    run_blocks(run, out.shape[across], -(-_LEAST_PER_THREAD // size))
