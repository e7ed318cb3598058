"""One-dimensional Fourier transforms of many lines, in blocks and on threads.

A tensor holds complex numbers as pairs, real part first, along a last axis of size 2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.blocked import BLOCK
from ovir.kernels.parallel import run_blocks

Transform = Callable[..., Array]
"""A function of ``np.fft``: transforms lines along an axis, cut or zero-padded to a length. f32 is computed in f32."""

# A thread with fewer elements costs more than it gains.
_LEAST_PER_THREAD = 1 << 15


def as_complex(pairs: Array) -> Array:
    """Return the complex numbers that the pairs along the last axis represent; a view if the array is contiguous."""
    pairs = np.ascontiguousarray(pairs)
    view: Array = pairs.view(np.result_type(pairs.dtype, np.complex64))
    return view[..., 0]


def transform(function: Transform, source: Array, axis: int, length: int, out: Array) -> None:
    """Compute ``out = function(source, length, axis)``. ``out`` may be ``source`` itself."""
    if not source.shape[axis]:  # NumPy would read past the end
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
