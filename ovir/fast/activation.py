"""Activations, in passes."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder
from ovir.fast.base.passes import bind_passes
from ovir.fast.registry import fast
from ovir.ops.activation import ActivationBase


@fast(ActivationBase)
def activation(op: ActivationBase, binder: Binder, *inputs: Array) -> bool:
    data, *parameters = inputs
    if data.dtype not in (np.float32, np.float64) or not all(map(binder.is_constant, range(1, len(inputs)))):
        return False
    bind_passes(binder, op.calls_for(*parameters), data, heavy=op.heavy)
    return True
