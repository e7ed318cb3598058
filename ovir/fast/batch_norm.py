"""Batch normalization as a product and a sum."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, tiled
from ovir.fast.base.passes import call_passes
from ovir.fast.registry import fast
from ovir.kernels.coalesce import memory_order
from ovir.ops.batch_norm import BatchNormBase, BatchNormInference1, BatchNormInference5, scaled
from ovir.ops.normalization import per_channel


@fast(BatchNormInference1)
def batch_norm_inference1(op: BatchNormInference1, binder: Binder, *inputs: Array) -> bool:
    return _bind_normalized(op, binder, 2)


@fast(BatchNormInference5)
def batch_norm_inference5(op: BatchNormInference5, binder: Binder, *inputs: Array) -> bool:
    return _bind_normalized(op, binder, 0)


def _bind_normalized(op: BatchNormBase, binder: Binder, position: int) -> bool:
    """Bind the normalization of the input at ``position`` by all other inputs, which must be constant."""
    data = binder.inputs[position]
    others = [index for index in range(len(binder.inputs)) if index != position]
    if data.dtype not in (np.float32, np.float64) or not all(map(binder.is_constant, others)):
        return False
    gamma, beta, mean, variance = (per_channel(binder.inputs[index], data.ndim) for index in others)
    scale = gamma / np.sqrt(variance + data.dtype.type(op.epsilon))
    out = binder.overwrite(position) if binder.may_overwrite(position) else binder.output(order=memory_order(data))
    call_passes(binder, scaled, data, *(tiled(array, data) for array in (mean, scale, beta)), out, heavy=False)
    return True
