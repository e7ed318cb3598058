"""Reduce segments of rows: runs of any length, some of which may be empty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.parallel import run_blocks

# Segments up to this length are reduced side by side, row by row; longer ones take one call each.
_LONG = 64
_ROWS = 1 << 12  # rows of a long segment that are fetched at once
_LEAST_PER_THREAD = 1 << 18


def reduce_segments(
    function: np.ufunc, fetch: Callable[[Array], Array], starts: Array, counts: Array, out: Array
) -> None:
    """Reduce ``counts[i]`` rows from starts[i] on with ``function`` into out[i]; rows of empty segments stay unchanged.

    ``fetch`` returns the rows at some positions as a new array [rows, width] of the type of ``out``.
    """
    # reduceat is several times slower along the first axis and cannot handle empty segments.
    work = int(counts.sum()) * out.shape[1] // max(len(counts), 1)

    def run(first: int, last: int) -> None:
        with np.errstate(all="ignore"):
            _reduce(function, fetch, starts[first:last], counts[first:last], out[first:last])

    run_blocks(run, len(counts), _LEAST_PER_THREAD // max(work, 1))


def _reduce(function: np.ufunc, fetch: Callable[[Array], Array], starts: Array, counts: Array, out: Array) -> None:
    for i in np.flatnonzero(counts > _LONG):
        rows = range(starts[i], starts[i] + counts[i], _ROWS)
        parts = (np.arange(start, min(start + _ROWS, starts[i] + counts[i])) for start in rows)
        for number, part in enumerate(parts):
            reduced = function.reduce(fetch(part), axis=0)
            out[i] = function(out[i], reduced) if number else reduced
    short = np.flatnonzero((counts > 0) & (counts <= _LONG))
    if not short.size:
        return
    # Longest first: the segments that have a row j are then the first ones.
    short = short[np.argsort(-counts[short], kind="stable")]
    lengths, begins = counts[short], starts[short]
    reduced = fetch(begins)
    for j in range(1, int(lengths[0])):
        active = int(np.searchsorted(-lengths, -j))
        function(reduced[:active], fetch(begins[:active] + j), out=reduced[:active])
    out[short] = reduced
