"""LogicalNot and BitwiseNot, each as one call."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder, bind_elementwise, is_native
from ovir.fast.registry import fast
from ovir.ops.base.elementwise import HELD_IN_BYTES
from ovir.ops.logic import BitwiseNot, LogicalNot


@fast(LogicalNot)
def logical_not(op: LogicalNot, binder: Binder, *inputs: Array) -> bool:
    bind_elementwise(binder, np.logical_not, *inputs)
    return True


@fast(BitwiseNot)
def bitwise_not(op: BitwiseNot, binder: Binder, *inputs: Array) -> bool:
    if op.output_types[0] in HELD_IN_BYTES or not is_native(inputs[0]):
        return False
    bind_elementwise(binder, np.invert, *inputs)
    return True
