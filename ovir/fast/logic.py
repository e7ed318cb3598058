"""LogicalNot and BitwiseNot, each as one call; shifts have no fast form."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder, bind_elementwise
from ovir.fast.registry import fast
from ovir.kernels.precision import native_dtype
from ovir.ops.base.elementwise import HELD_IN_BYTES
from ovir.ops.logic import BitwiseNot, LogicalNot, ShiftBase


@fast(LogicalNot)
def logical_not(op: LogicalNot, binder: Binder, *inputs: Array) -> bool:
    bind_elementwise(binder, np.logical_not, *inputs)
    return True


@fast(BitwiseNot)
def bitwise_not(op: BitwiseNot, binder: Binder, *inputs: Array) -> bool:
    if op.output_types[0] in HELD_IN_BYTES or native_dtype(inputs[0].dtype) != inputs[0].dtype:
        return False
    bind_elementwise(binder, np.invert, *inputs)
    return True


@fast(ShiftBase)
def shift(op: ShiftBase, binder: Binder, *inputs: Array) -> bool:
    return False  # each run examines the shifts
