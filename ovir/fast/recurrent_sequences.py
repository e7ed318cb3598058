"""Sequences of recurrent cells."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binding import Binder
from ovir.fast.base.recurrent_calls import bind_steps
from ovir.fast.registry import fast
from ovir.ops.recurrent_sequences import SequenceBase


@fast(SequenceBase)
def sequence(op: SequenceBase, binder: Binder, *inputs: Array) -> bool:
    x, *states, lengths, w, r, b = inputs
    constant = range(len(inputs) - 4, len(inputs))
    if x.dtype not in (np.float32, np.float64) or not all(map(binder.is_constant, constant)):
        return False
    steps = int(lengths.max(initial=0))
    is_even = 0 < steps <= x.shape[1] and bool((lengths == steps).all())
    if not is_even or not all(a.size for a in (x, *states)):
        return False
    results = [binder.output(index) for index in range(1 + len(states))]
    forward = range(steps)
    times = {"forward": [forward], "reverse": [forward[::-1]], "bidirectional": [forward, forward[::-1]]}
    last = bind_steps(op, binder, x, states, (w, r, b), times[op.direction], (results[0], *results[2:]))
    binder.call(np.copyto, results[1].swapaxes(0, 1), last)
    if steps < x.shape[1]:
        binder.call(np.copyto, results[0][:, :, steps:], np.zeros((), x.dtype))
    return True
