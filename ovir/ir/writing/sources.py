"""The bytes of constants, produced piece by piece."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ovir.diagnostics.codes import NO_WEIGHTS, PAST_END
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import ModelError, ReadError
from ovir.graph.layers import Layer
from ovir.ir.packing import encode
from ovir.ir.weights import Constant
from ovir.ops.infrastructure import Const

Bytes = NDArray[Any]

CHUNK = 1 << 22
"""Bytes that are read, converted and written at a time."""


class Source(Protocol):
    """The bytes of one constant."""

    @property
    def size(self) -> int:
        """Return the number of bytes."""

    def piece(self, start: int, stop: int) -> Bytes:
        """Return the bytes [start, stop); both are multiples of 8, or the end."""

    def release(self, start: int, stop: int) -> None:
        """Let the system take back the memory of these bytes, if they come from a file."""


@dataclass(eq=False)
class RawSource:
    """Bytes that are written as they are."""

    data: Bytes

    @property
    def size(self) -> int:
        return int(self.data.size)

    def piece(self, start: int, stop: int) -> Bytes:
        return self.data[start:stop]

    def release(self, start: int, stop: int) -> None:
        _release_pages(self.data[start:stop])


def source_of(layer: Layer, op: Const, whole: set[int]) -> Source:
    """Return the bytes of a constant, as its file has them if it has a file.

    ``whole`` has the ids of the arrays of files that have been checked, and gets the id of this one.
    """
    data: Any = op.constant_data
    if isinstance(data, Constant):
        if id(data.data) not in whole:
            _require_whole(data.data, layer)
            whole.add(id(data.data))
        return RawSource(data.data[data.offset : data.offset + data.size])
    if hasattr(data, "piece"):
        found: Source = data
        return found
    if not op.has_data:
        raise ModelError(diagnose(NO_WEIGHTS, "the constant has no data", layer.data_place))
    return RawSource(encode(op.data, op.element_type))


def _require_whole(data: Bytes, layer: Layer) -> None:
    """Raise ReadError if the memory-mapped file of ``data`` is shorter than when it was opened.

    Access to the bytes that it has lost would end the process.
    """
    mapped = _mapping_of(data)
    if mapped is not None and mapped.size() < len(mapped):
        message = f"the file of the weights has shrunk from {len(mapped)} to {mapped.size()} bytes since it was opened"
        raise ReadError(diagnose(PAST_END, message, layer.data_place))


def _mapping_of(data: Bytes) -> mmap.mmap | None:
    """Return the memory-mapped file that an array is part of; None if it is in memory."""
    base: Any = data
    while isinstance(base, np.ndarray):
        base = base.base
    mapped = base.obj if isinstance(base, memoryview) else base
    return mapped if isinstance(mapped, mmap.mmap) else None


def _release_pages(data: Bytes) -> None:
    """Drop the pages of a memory-mapped file from the memory of this process, if ``data`` is part of one.

    The system reads them again on the next access. Otherwise the whole file would be in memory after it is copied. A
    mapping that can be written to is left as it is, because it may hold data that is in no file.
    """
    mapped = _mapping_of(data)
    if mapped is not None and _is_read_only(mapped) and data.size and hasattr(mapped, "madvise"):
        whole = np.frombuffer(mapped, np.uint8)
        start = data.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        first = start // mmap.PAGESIZE * mmap.PAGESIZE
        mapped.madvise(mmap.MADV_DONTNEED, first, start + data.size - first)


def _is_read_only(mapped: mmap.mmap) -> bool:
    with memoryview(mapped) as view:
        return view.readonly
