"""Reduction over segments of rows: runs of any length, of which some may be empty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.parallel import run_blocks

# Segments up to this long are reduced side by side, row by row; for longer ones a call each is cheaper.
_LONG = 64
_ROWS = 1 << 12  # of a long segment that are fetched at once
_LEAST_PER_THREAD = 1 << 18


def reduce_segments(
    function: np.ufunc, fetch: Callable[[Array], Array], starts: Array, counts: Array, out: Array
) -> None:
    """out[i] = ``function`` over the rows from starts[i] on, counts[i] of them; of an empty segment it stays as it is.

    ``fetch`` gives the rows at some positions as a new array [rows, width] of the type of ``out``.
    """
    # Not by reduceat, which along the first axis takes several times as long, and knows no empty segment.
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
    # Longest first: those that have a row j more are the first ones.
    short = short[np.argsort(-counts[short], kind="stable")]
    lengths, begins = counts[short], starts[short]
    reduced = fetch(begins)
    for j in range(1, int(lengths[0])):
        active = int(np.searchsorted(-lengths, -j))
        function(reduced[:active], fetch(begins[:active] + j), out=reduced[:active])
    out[short] = reduced
