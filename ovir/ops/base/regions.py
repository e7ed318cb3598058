"""The base class of operations on regions of interest."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.precision import to_integers
from ovir.kernels.roi import SampledRegions, Turn
from ovir.ops.base.operator import Operator

# If the number of samples follows the region's size, a huge region would take unlimited memory.
_MAX_SAMPLES = 1 << 24


class RegionBase(Operator):
    """Base of operations on regions, given as rows of numbers, of feature maps [images, channels, rows, columns]."""

    copies = 14

    bounded = False

    def reads(self, inputs: Sequence[TensorType], output: PartialShape) -> float:
        """Count the four pixels around each position of a bin, which cover a plane if their number is not known."""
        if (positions := self.positions()) is not None:
            return 4.0 * positions
        planes = [tensor.shape.slice(2).size().upper for tensor in inputs if tensor.shape.rank == 4]
        bins = max(output.slice(2).size().lower, 1) if output.rank == 4 else 1
        return inf if None in planes else 4.0 * max((size or 0 for size in planes), default=0) / bins

    def positions(self) -> int | None:
        """Return the number of positions that a bin is combined of, or None if it follows the region's size."""
        return None

    def images(self, numbers: Array, count: int) -> Array:
        """Return the image of each region up to the first -1, with which Proposal marks the end of its list."""
        numbers = to_integers(numbers, np.dtype(np.int64))
        if not numbers.size or (numbers.min() >= 0 and numbers.max() < count):
            return numbers
        ends = np.flatnonzero(numbers == -1)
        numbers = numbers[: ends[0]] if ends.size else numbers
        outside = np.flatnonzero((numbers < 0) | (numbers >= count))
        if outside.size:
            first = int(outside[0])
            self.fail("region {} refers to image {}, outside [0, {}]", first, int(numbers[first]), count - 1)
        return numbers

    def sampled(
        self, images: Array, start: Array, size: Array, bins: tuple[int, int], ratio: int, turn: Turn | None = None
    ) -> SampledRegions:
        """Return regions with ``ratio`` samples per bin on each axis; 0 means the length of the bin, rounded up."""
        if ratio and ratio * ratio * bins[0] * bins[1] <= _MAX_SAMPLES:
            return SampledRegions(images, start, size, np.full(size.shape, ratio, np.intp), bins, turn)
        lengths = np.full(size.shape, ratio, np.float64) if ratio else np.ceil(size / np.array(bins, size.dtype))
        lengths = np.where((lengths > 0).all(axis=1, keepdims=True), lengths, 0)
        counts = lengths.astype(np.float64).prod(axis=1) * bins[0] * bins[1]
        excess = np.flatnonzero(counts > _MAX_SAMPLES)
        if excess.size:
            first = int(excess[0])
            message = "region {} of size {} needs {:.3g} samples, but at most {} are allowed"
            self.fail(message.format(first, size[first].tolist(), counts[first], _MAX_SAMPLES))
        samples = lengths.astype(np.intp)
        return SampledRegions(images, start, size, samples, bins, turn)
