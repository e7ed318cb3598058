"""Samples of images in blocks, which stay in a cache and are shared by threads."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.parallel import threads
from ovir.fast.base.binder_protocol import Binder, call_shares, cuts
from ovir.fast.registry import fast
from ovir.ops.grid_sample import GridSample

_BLOCK_ELEMENTS = 1 << 18
"""Elements of a block."""


@fast(GridSample)
def grid_sample(op: GridSample, binder: Binder, data: Array, grid: Array) -> bool:
    images, rows = grid.shape[:2]
    out = binder.output()
    if not out.size or not data.size or op.mode == "nearest":  # whose samples are read once
        return False
    size = max(prod(data.shape[1:]), prod(out.shape[1:]))
    if size < _BLOCK_ELEMENTS:
        parts = [(cut, slice(None)) for cut in cuts(images, -(-images * size // _BLOCK_ELEMENTS))]
    else:
        count = min(-(-prod(out.shape[1:]) // _BLOCK_ELEMENTS), threads())  # each block prepares the whole image
        parts = [(slice(image, image + 1), cut) for image in range(images) for cut in cuts(rows, count)]
    blocks = [(data[some], grid[some, cut], out[some, :, cut]) for some, cut in parts]
    call_shares(binder, [[(_fill, (op, *block))] for block in blocks])
    return True


def _fill(op: GridSample, data: Array, grid: Array, out: Array) -> None:
    np.copyto(out, op.run(data, grid))
