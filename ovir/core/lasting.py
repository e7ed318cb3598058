"""Memory of arrays that last as long as a model."""

from __future__ import annotations

import threading
from math import prod
from typing import Any
from weakref import ref

import numpy as np

from ovir.core.arrays import Array

_LEAST, _MOST = 1 << 20, 1 << 23
"""The bytes of an array that lies in a chunk with others: fewer cost little, and more are granted alone."""
_CHUNK = 1 << 25
"""The bytes of a chunk. NumPy asks the system for huge pages for arrays of 4 MB and more, of which only the pages that
are wholly within an array are huge. Others are granted and cleared in 4 kB at a time: five times as slow."""

_lock = threading.Lock()
_used = 0
"""The bytes of the latest chunk that arrays have taken."""


def _no_chunk() -> Array | None:
    return None


_latest: ref[Array] | Any = _no_chunk


def empty_for_long(shape: tuple[int, ...], dtype: np.dtype[Any] | type[np.generic]) -> Array:
    """Return a new array whose memory is granted in large pages; neighbors in a chunk live until the last of them."""
    global _latest, _used
    size = prod(shape) * np.dtype(dtype).itemsize
    if not _LEAST <= size <= _MOST:
        return np.empty(shape, dtype)
    with _lock:
        chunk = _latest()
        if chunk is None or chunk.size - _used < size:
            chunk = np.empty(_CHUNK, np.uint8)
            _latest, _used = ref(chunk), -chunk.ctypes.data % 64
        start, _used = _used, _used + -(-size // 64) * 64
    return chunk[start : start + size].view(dtype).reshape(shape)
