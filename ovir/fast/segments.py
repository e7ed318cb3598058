"""Embedding bags whose indices are checked by one reduction."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder, is_real
from ovir.fast.gather import unsigned_view
from ovir.fast.registry import fast
from ovir.ops.segments import EmbeddingBagOffsetsBase


@fast(EmbeddingBagOffsetsBase)
def embedding_bag(op: EmbeddingBagOffsetsBase, binder: Binder, *inputs: Array) -> bool:
    table, indices, offsets, *others = inputs
    is_plain = table.ndim == 2 and table.flags.c_contiguous and is_real(table)
    if not (is_plain and table.size and indices.size and offsets.size and op.reduction == "sum"):
        return False
    out, picked = binder.output(), binder.scratch((indices.size, table.shape[1]), table.dtype)
    unsigned, weights = unsigned_view(indices), others[1].reshape(-1, 1) if len(others) > 1 else None

    def sum_bags() -> None:
        """Sum bags none of which is empty; leave all others, and indices out of range, to the kernel."""
        inside = np.maximum.reduce(unsigned) < len(table) and offsets[0] >= 0 and offsets[-1] < len(indices)
        if not (inside and np.logical_and.reduce(offsets[1:] > offsets[:-1])):
            np.copyto(out, op.run(*inputs))
            return
        table.take(indices, 0, picked, "clip")
        if weights is not None:
            np.multiply(picked, weights, picked)
        if picked.size <= _BLOCK_ELEMENTS:
            np.add.reduceat(picked, offsets, 0, None, out)
            return
        bags = max(_BLOCK_ELEMENTS * len(offsets) // picked.size, 1)
        for first in range(0, len(offsets), bags):
            begins, last = offsets[first : first + bags], first + bags
            rows = picked[begins[0] : offsets[last] if last < len(offsets) else None]
            np.add.reduceat(rows, begins - begins[0], 0, None, out[first:last])

    binder.call(sum_bags)
    return True


_BLOCK_ELEMENTS = 1 << 14
"""Elements that are summed by one call, which goes by columns: 1000 bags of 20 rows of 64 take 1.5 ms, all at once
7.7."""
