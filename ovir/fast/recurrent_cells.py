"""Cells of recurrent networks."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder
from ovir.fast.base.recurrent_calls import bind_steps
from ovir.fast.registry import fast
from ovir.ops.recurrent_cells import CellBase, LSTMCell1


@fast(CellBase)
def cell(op: CellBase, binder: Binder, *inputs: Array) -> bool:
    count = len(op.output_types)
    x, states, weights = inputs[0], inputs[1 : 1 + count], inputs[1 + count : 4 + count]
    is_constant = all(map(binder.is_constant, range(1 + count, len(inputs))))
    if x.dtype not in (np.float32, np.float64) or not is_constant or not all(a.size for a in (x, *states)):
        return False
    results = [binder.output(index)[:, np.newaxis] for index in range(count)]
    results[0] = results[0][:, np.newaxis]  # [batch, directions, time, hidden]
    of_sequence = [w[np.newaxis] for w in weights]
    bind_steps(op, binder, x[:, np.newaxis], [s[:, np.newaxis] for s in states], of_sequence, [[0]], results)
    return True


@fast(LSTMCell1)
def lstm_cell(op: LSTMCell1, binder: Binder, *inputs: Array) -> bool:
    if op.weights_format != "fico" or op.input_forget:
        return False
    if len(inputs) > 6 and (not binder.is_constant(6) or inputs[6].any()):
        return False
    return cell(op, binder, *inputs)
