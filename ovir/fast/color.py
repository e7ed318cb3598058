"""Images in blocks of rows, which stay in a cache and are shared by threads."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder, call_shares, cuts
from ovir.fast.registry import fast
from ovir.ops.color import YuvToRgbBase

_BLOCK_PIXELS = 1 << 16
"""Pixels of a block."""


@fast(YuvToRgbBase)
def yuv_to_rgb(op: YuvToRgbBase, binder: Binder, *inputs: Array) -> bool:
    out = binder.output()
    if not out.size or not all(array.flags.c_contiguous for array in inputs):
        return False
    y, u, v = op.planes(*inputs)
    pairs = cuts(u.shape[1], -(-y.size // _BLOCK_PIXELS))
    blocks = [(y[:, 2 * p.start : 2 * p.stop], u[:, p], v[:, p], out[:, 2 * p.start : 2 * p.stop]) for p in pairs]
    call_shares(binder, [[(_fill, (op, *block))] for block in blocks])
    return True


def _fill(op: YuvToRgbBase, y: Array, u: Array, v: Array, out: Array) -> None:
    for channel, color in enumerate(op.colors(y, u, v)):
        np.copyto(out[..., channel], color)
