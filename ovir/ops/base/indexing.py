"""Indices from a tensor: check them, count them from the front, and turn them into positions in flat data."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.ops.base.operator import Operator


def checked_indices(op: Operator, indices: Array, size: int, *, negative: bool = True, name: str = "indices") -> Array:
    """Return the indices as int64 in [0, size). With ``negative``, indices from -size on count from the end."""
    lowest = -size if negative else 0
    if indices.size == 0:
        return indices.astype(np.int64)
    smallest = indices.min()
    if smallest < lowest or indices.max() >= size:
        first = int(((indices < lowest) | (indices >= size)).argmax())
        place = ",".join(str(i) for i in np.unravel_index(first, indices.shape))
        shown = f"{name}[{place}]" if indices.ndim else name
        op.fail("{} = {} is outside [{}, {}]", shown, indices.flat[first], lowest, size - 1)
    indices = indices.astype(np.int64)
    if smallest < 0:
        np.add(indices, size, out=indices, where=indices < 0)
    return indices


def flat_positions(op: Operator, indices: Array, sizes: Sequence[int]) -> Array:
    """Return row-major positions, in data of these sizes, of index tuples along the last axis; 0 for empty tuples."""
    positions = np.zeros(indices.shape[:-1], np.int64)
    for i, size in enumerate(sizes):
        component = checked_indices(op, indices[..., i], size, name=f"indices[...,{i}]")
        positions += component * prod(sizes[i + 1 :])
    return positions
