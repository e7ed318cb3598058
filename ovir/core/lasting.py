"""Memory of arrays that last as long as a model."""

from __future__ import annotations

import threading
from math import prod
from typing import Any
from weakref import ref

import numpy as np

from ovir.core.arrays import Array

_CHUNK, _LEAST, _MOST = 1 << 25, 1 << 20, 1 << 23
"""The bytes of a chunk, and of an array that lies in it with others. NumPy asks the system for huge pages for 4 MB and
more, and only those wholly within an array are huge. To get memory in pages of 4 kB takes five times as long."""
_lock = threading.Lock()
_latest, _used = ref(np.empty(0, np.uint8)), 0
"""The latest chunk, as long as an array of it lives, and its bytes that arrays have taken."""


def empty_for_long(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return a new array whose memory is granted in large pages; neighbors in a chunk live until the last of them."""
    global _latest, _used
    size = prod(shape) * dtype.itemsize
    if not _LEAST <= size <= _MOST:
        return np.empty(shape, dtype)
    with _lock:
        chunk = _latest()
        if chunk is None or chunk.size - _used < size:
            chunk = np.empty(_CHUNK, np.uint8)
            _latest, _used = ref(chunk), -chunk.ctypes.data % 64
        start, _used = _used, _used + -(-size // 64) * 64
    return chunk[start : start + size].view(dtype).reshape(shape)
