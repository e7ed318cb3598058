"""LogicalNot, as one call."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder, bind_elementwise
from ovir.fast.registry import fast
from ovir.ops.logic import LogicalNot


@fast(LogicalNot)
def logical_not(op: LogicalNot, binder: Binder, *inputs: Array) -> bool:
    bind_elementwise(binder, np.logical_not, *inputs)
    return True
