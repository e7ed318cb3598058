"""RegionYolo, by passes and the parts of SoftMax."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder, is_real
from ovir.fast.base.passes import call_passes
from ovir.fast.base.recorded import recorded
from ovir.fast.normalization import bind_softmax, redo_if_lost
from ovir.fast.registry import fast
from ovir.ops.activation import Sigmoid
from ovir.ops.yolo import RegionYolo


@fast(RegionYolo)
def region_yolo(op: RegionYolo, binder: Binder, *inputs: Array) -> bool:
    (data,) = inputs
    if not is_real(data) or not data.size:
        return False
    if not data.flags.c_contiguous:
        copy = binder.scratch(data.shape, data.dtype)
        binder.call(np.copyto, copy, data)
        data = copy
    out = binder.output()
    source, target = data.ravel(), out.ravel()
    binder.call(np.copyto, target, source[: target.size])
    batch, _, height, width = data.shape
    blocks = batch * op.regions, op.entries, height * width
    x, y = (flat[: prod(blocks)].reshape(blocks) for flat in (source, target))
    scores = op.coords + 1
    for part in y[:, :2], y[:, op.coords : scores if op.do_softmax else None]:
        call_passes(binder, recorded(Sigmoid().compute), part, part)
    if op.do_softmax and y[:, scores:].size:
        totals = bind_softmax(binder, x[:, scores:], y[:, scores:], 1)
        binder.call(redo_if_lost, totals, op.run, inputs, out)
    return True
