"""SegmentMax: the largest element of each run of rows."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import UNKNOWN, Dimension
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.kernel_warnings import report
from ovir.kernels import half
from ovir.kernels.blocked import lowest_finite, native_dtype
from ovir.kernels.segments import reduce_segments
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Below, Between, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


@operator("SegmentMax", opset=16)
class SegmentMax(Operator):
    """out[s] = the largest of data[j] over all j with segment_ids[j] = s, element by element.

    There are ``num_segments`` segments, or by default one more than the last id. An empty segment is 0, or with
    ``fill_mode`` lowest the lowest finite number of the type; the specification calls that attribute
    empty_segment_value. NaN counts only if a segment has nothing else. Ids must be sorted and not negative; ids from
    ``num_segments`` on, which the specification excludes, are ignored and reported.

    Source: SegmentMax-16
    """

    domains = by_input(segment_ids=Below("num_segments", unknown=3, order="sorted"), num_segments=Between(3, 3))
    fill_mode: str = attribute(default="zero", choices=("zero", "lowest"), specified=True)

    value_inputs = (1, 2)

    def infer(self, data: TensorType, segment_ids: TensorType, num_segments: TensorType | None = None) -> TensorType:
        self.require_numeric("data", data.element_type)
        self.require_rank_at_least("data", data.shape, 1)
        self.require_index_type("segment_ids", segment_ids.element_type)
        self.require_rank("segment_ids", segment_ids.shape, 1)
        self.merge_dims("rows", data=(data.shape, 0), segment_ids=(segment_ids.shape, 0))
        if segment_ids.constant is not None:
            self._check_sorted(segment_ids.constant)
        segments = UNKNOWN
        if num_segments is not None:
            self.require_index_type("num_segments", num_segments.element_type)
            self.require_rank("num_segments", num_segments.shape, 0)
            segments = self.count_of("num_segments", num_segments)
        elif segment_ids.constant is not None:
            needed = _needed(segment_ids.constant)
            segments = Dimension(needed, needed)
        return TensorType(data.element_type, data.shape.with_dim(0, segments))

    def run(
        self, data: Array, segment_ids: Array, num_segments: Array | None = None, *, out: Array | None = None
    ) -> Array:
        self._check_sorted(segment_ids)
        segments = _needed(segment_ids)
        if num_segments is not None:
            needed, segments = segments, int(num_segments.item())
            self.check_count("num_segments", segments)
            if needed > segments:
                report(
                    f"segment_ids go up to {needed - 1}, but num_segments is {segments}; rows of "
                    f"the other ids are ignored"
                )
        if out is None:
            out = np.empty((segments, *data.shape[1:]), data.dtype)
        if not out.size:
            return out
        limits = np.searchsorted(segment_ids, np.arange(segments + 1))
        rows, computed = data.reshape(len(data), prod(data.shape[1:])), native_dtype(data.dtype)
        flat = out.reshape(segments, -1)
        largest = flat if computed == data.dtype else np.empty(flat.shape, computed)
        largest[...] = 0 if self.fill_mode == "zero" else lowest_finite(data.dtype)
        reduce_segments(
            np.fmax if computed.kind == "f" else np.maximum,
            lambda places: half.converted(rows.take(places, axis=0), computed),
            *(limits[:-1], np.diff(limits), largest),
        )
        if largest is not flat:
            half.copy(largest, flat)
        return out

    def _check_sorted(self, ids: Array) -> None:
        if ids.size:
            self.require(ids[0] >= 0, "segment_ids[0] = {} must not be negative", ids[0])
        falls = ids[1:] < ids[:-1]
        if falls.any():
            i = int(falls.argmax())
            self.fail("segment_ids must be sorted, got {} at {} and then {}", ids[i], i, ids[i + 1])


def _needed(ids: Array) -> int:
    """Return the number of segments that sorted ids reach."""
    return int(ids[-1]) + 1 if ids.size else 0
