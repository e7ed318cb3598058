"""Compares the data of two constants block by block, so that no large array is decoded or converted as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from math import prod
from typing import Any

import numpy as np

from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, nf4, string
from ovir.diagnostics.errors import OperatorError
from ovir.graph.layers import Port
from ovir.ops.convert import in_f32
from ovir.ops.infrastructure import Const
from ovir.runtime.decompression import CompressedWeights

BLOCK = 1 << 20
"""The number of elements that are compared together."""


@dataclass(frozen=True)
class Tolerance:
    """Numbers a and b count as equal if ``|a - b| <= absolute + relative * |b|``; NaN equals NaN."""

    relative: float = 0.0
    absolute: float = 0.0


EXACT = Tolerance()


@dataclass(frozen=True)
class DataDifference:
    """How the elements of two constants of one shape differ."""

    elements: int
    """The number of elements of each of them."""
    different: int
    """The number of elements that differ by more than the tolerance."""
    largest: float | None
    """The largest absolute difference of these; None for strings, infinite beside a NaN."""

    def __str__(self) -> str:
        extent = "" if self.largest is None else f", by at most {self.largest:.6g}"
        return f"{self.different:,} of {self.elements:,} values differ{extent}"


# --------------------------------------------------------------------------- for matching


def digest(const: Const) -> bytes:
    """Return the data of a small constant, or a digest of parts of a large one.

    Constants of equal type, shape and data have equal digests. The reverse is not certain for large constants.
    """
    count = prod(const.shape)
    if not const.has_data:
        return b""
    try:
        if count <= _READ_IN_FULL:
            data = _bytes(const.elements(0, count))
            return data if len(data) <= _SMALL else blake2b(data, digest_size=16).digest()
        state = blake2b(digest_size=16)
        step = (count - _SAMPLE) // (_SAMPLES - 1) // 8 * 8
        for start in (*range(0, step * (_SAMPLES - 1), step), (count - _SAMPLE) // 8 * 8):
            state.update(_bytes(const.elements(start, start + _SAMPLE)))
    except OperatorError:
        return b""  # the data is no valid string tensor
    return state.digest()


_SMALL = 32
_SAMPLE, _SAMPLES = 1024, 16
_READ_IN_FULL = _SAMPLE * _SAMPLES


def _bytes(array: Array) -> bytes:
    if array.dtype.kind in "TO":
        return "\0".join(map(str, array)).encode("utf-8", "surrogatepass")
    return array.tobytes()


# --------------------------------------------------------------------------- the comparison


def constants_differ(a: Const, b: Const, tolerance: Tolerance) -> DataDifference | None:
    """Return how the elements of two constants of one shape differ, None if they do not."""
    if a.constant_data is b.constant_data and a._data is b._data:
        return None
    count = prod(a.shape)
    same_type = a.element_type == b.element_type
    total = _Total(count, tolerance)
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        first, second = a.elements(start, stop), b.elements(start, stop)
        if not (same_type and _are_identical(first, second)):
            total.add(_numbers(first, a.element_type), _numbers(second, b.element_type))
    return total.result


def weights_differ(a: Port, b: Port, tolerance: Tolerance) -> DataDifference | None:
    """Return how two constants of one shape differ that may be compressed; they are decompressed to f32."""
    total = _Total(prod(a.shape.to_tuple()), tolerance)
    for first, second in _decompressed(a, b):
        total.add(as_numbers(first).reshape(-1), as_numbers(second).reshape(-1))
    return total.result


def _decompressed(a: Port, b: Port) -> Iterator[tuple[Array, Array]]:
    first, second = CompressedWeights(a), CompressedWeights(b)
    if not (first.has_slices and second.has_slices):
        yield first.whole(), second.whole()
        return
    for part in first.blocks(first.all, BLOCK):
        yield first.slices(part), second.slices(part)


def _numbers(array: Array, element_type: ElementType) -> Array:
    if element_type == string:
        return array
    return in_f32(array, nf4) if element_type == nf4 else as_numbers(array)


def _are_identical(a: Array, b: Array) -> bool:
    if a.dtype != b.dtype or a.dtype.kind in "TO":
        return False
    if not (a.flags.c_contiguous and b.flags.c_contiguous):
        return False
    return np.array_equal(a.view(np.uint8), b.view(np.uint8))


class _Total:
    """Differences summed up over blocks."""

    def __init__(self, elements: int, tolerance: Tolerance) -> None:
        self.elements = elements
        self.tolerance = tolerance
        self.different = 0
        self.largest: float | None = None

    def add(self, a: Array, b: Array) -> None:
        """Compare two flat arrays of equal length."""
        unequal = a != b
        if a.dtype.kind in "TO" or b.dtype.kind in "TO":
            self.different += int(np.count_nonzero(unequal))
            return
        unequal &= (a == a) | (b == b)  # NaN equals NaN
        a, b = a[unequal], b[unequal]
        if not a.size:
            return
        distance = _distance(a, b)
        if self.tolerance != EXACT:
            with np.errstate(invalid="ignore"):
                allowed = self.tolerance.absolute + self.tolerance.relative * np.abs(b.astype(np.float64))
            distance = distance[~(distance <= allowed)]
        if distance.size:
            self.different += distance.size
            self.largest = max(self.largest or 0.0, float(distance.max()))

    @property
    def result(self) -> DataDifference | None:
        return DataDifference(self.elements, self.different, self.largest) if self.different else None


def _distance(a: Array, b: Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the absolute differences, infinite for NaN."""
    if a.dtype == b.dtype and a.dtype.kind in "iu" and a.dtype.itemsize == 8:
        lower, upper = np.minimum(a, b), np.maximum(a, b)
        return (upper.view(np.uint64) - lower.view(np.uint64)).astype(np.float64)  # exact, unlike differences of floats
    with np.errstate(invalid="ignore"):
        distance = np.abs(a.astype(np.float64) - b.astype(np.float64))
    distance[np.isnan(distance)] = np.inf
    return distance
