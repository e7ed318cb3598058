"""Segments of rows: SegmentMax, bags of rows of an embedding table, and SparseFillEmptyRows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import UNKNOWN, Dimension, sized
from ovir.core.tensor_types import Outputs, TensorType
from ovir.diagnostics.kernel_warnings import report
from ovir.kernels.precision import lowest_finite, native_dtype
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Below, Between, Index, Length, by_input
from ovir.ops.base.indexing import checked_indices
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


@operator("SegmentMax", opset=16)
class SegmentMax(Operator):
    """out[s] = the largest of data[j] over all j with segment_ids[j] = s, element by element.

    There are ``num_segments`` segments, or by default one more than the last id. An empty segment is 0, or with
    ``fill_mode`` lowest the lowest finite number of the type; the specification first called that attribute
    empty_segment_value, which OpenVINO ignores. NaN counts only if a segment has nothing else. Ids must be sorted and
    not negative; ids from ``num_segments`` on, which the specification excludes, are ignored and reported.

    >>> ops.segment_max([1, 5, 3, 2], [0, 0, 1, 1])
    [5 3]
    """

    takes = "data T[N, Row...]; segment_ids index[N]; ?num_segments index[]; T numeric"
    gives = "T[Segments, Row...]"
    recipe = "num_segments = 0..12"
    domains = by_input(segment_ids=Below("num_segments", unknown=3, order="sorted"), num_segments=Between(3, 3))
    fill_mode: str = attribute(default="zero", choices=("zero", "lowest"), specified=True)

    value_inputs = (1, 2)

    def infer(self, data: TensorType, segment_ids: TensorType, num_segments: TensorType | None = None) -> Outputs:
        found = self.solved(data, segment_ids, num_segments)
        if segment_ids.constant is not None:
            self._check_sorted(segment_ids.constant)
        if num_segments is not None:
            found.sizes["Segments"] = self.count_of("num_segments", num_segments)
        elif segment_ids.constant is not None:
            found.sizes["Segments"] = sized(_needed(segment_ids.constant))
        return found.outputs()

    def run(self, data: Array, segment_ids: Array, num_segments: Array | None = None) -> Array:
        self._check_sorted(segment_ids)
        segments = _needed(segment_ids)
        if num_segments is not None:
            needed, segments = segments, int(num_segments.item())
            if needed > segments:
                message = f"segment_ids go up to {needed - 1}, but num_segments is {segments}"
                report(message, "rows of the other ids are ignored")
        fill = 0 if self.fill_mode == "zero" else lowest_finite(data.dtype)
        result = np.full((segments, *data.shape[1:]), fill, data.dtype)
        limits = np.searchsorted(segment_ids, np.arange(segments + 1)).tolist()
        for segment, (start, stop) in enumerate(pairwise(limits)):
            if start < stop:
                rows = data[start:stop].astype(native_dtype(data.dtype), copy=False)
                result[segment] = np.fmax.reduce(rows, axis=0)
        return result

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


# --------------------------------------------------------------------------- bags


class EmbeddingBagBase(Operator):
    """Base of sums over bags: ``indices`` pick rows of a table [num_emb, ...], which are summed bag by bag.

    f16 and bf16 are summed in f32 and rounded once; integers wrap around. An index outside [0, num_emb-1] is an error.
    """

    gives = "T[Bags, Row...]"
    recipe = "T narrow, num_segments = 2..5, default_index = -1..0; Rows=1|3|7 reduction=sum|mean"
    reduction: str = "sum"

    def infer(self, *inputs: TensorType) -> Outputs:
        is_weighted = self.named(inputs).get("per_sample_weights") is not None
        allowed = self.reduction == "sum" or not is_weighted
        self.require(allowed, "reduction {} does not allow per_sample_weights", self.reduction)
        return super().infer(*inputs)

    def bags(self, table: Array, rows: Array, starts: Array, counts: Array, default_index: int | None) -> Array:
        """Return one bag after another: ``counts[i]`` rows from ``starts[i]`` on; an empty bag is row ``default_index``
        of the table."""
        empty = np.zeros((), rows.dtype) if default_index is None else table[default_index]
        result = np.empty((len(counts), *table.shape[1:]), rows.dtype)
        for i, (start, count) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True)):
            result[i] = self.reduced(rows[start : start + count], 0) if count else empty
        return result.astype(table.dtype, copy=False)

    def work(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float:
        """Count the rows of all indices."""
        counts = [inputs[1].shape.size().upper, inputs[0].shape.slice(1).size().upper]
        return inf if None in counts else super().work(inputs, outputs) + 4.0 * prod(count or 0 for count in counts)

    def temporary_bytes(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> float:
        """Count the rows of all indices, twice, because they are weighted."""
        table, indices = inputs[0], inputs[1]
        row = table.shape.slice(1).size().lower * max(table.element_type.bits // 8, 4)
        return indices.shape.least_size * (2 * row + 16) + super().temporary_bytes(inputs, outputs)

    def rows(self, table: Array, indices: Array, weights: Array | None) -> Array:
        """Return the weighted rows of the table at some indices, in the type that they are summed in."""
        indices = checked_indices(self, indices, len(table), negative=False)
        rows = table[indices].astype(native_dtype(table.dtype), copy=False)
        if weights is None:
            return rows
        factors = weights.astype(rows.dtype).reshape(*weights.shape, *[1] * (table.ndim - 1))
        return np.asarray(rows * factors)

    def reduced(self, rows: Array, axis: int) -> Array:
        """Return the sum or the mean of rows along an axis; means of integers are rounded towards zero."""
        total = np.add.reduce(rows, axis, rows.dtype)
        if self.reduction == "sum":
            return np.asarray(total)
        count = max(rows.shape[axis], 1)
        if rows.dtype.kind == "f":
            return np.asarray(total / count)
        wide = total.astype(np.uint64 if rows.dtype.kind == "u" else np.int64)
        return np.asarray(np.sign(wide) * (np.abs(wide) // wide.dtype.type(count))).astype(rows.dtype)

    def default(self, default_index: Array | None, size: int) -> int | None:
        """Return the row of empty bags, or None if it is missing."""
        if default_index is None:
            return None
        return int(checked_indices(self, default_index, size, negative=False, name="default_index").item())


class EmbeddingBagOffsetsBase(EmbeddingBagBase):
    """Base of operations whose ``offsets`` say where in the indices each bag begins."""

    takes = (
        "emb_table T[Rows, Row...]; indices I[N]; offsets I[Bags]; ?default_index I[]; ?per_sample_weights T[N]; "
        "T numeric; I index"
    )
    domains = by_input(
        indices=Index("emb_table"),
        offsets=Length("indices", axis=0, low=0, order="offsets"),
        default_index=Index("emb_table", absent=-1),
    )
    fillers = (("default_index", -1, "indices"),)

    def run(
        self,
        emb_table: Array,
        indices: Array,
        offsets: Array,
        default_index: Array | None = None,
        weights: Array | None = None,
    ) -> Array:
        starts = checked_indices(self, offsets, len(indices) + 1, negative=False, name="offsets")
        counts = np.diff(starts, append=len(indices)) if starts.size else starts
        if (counts < 0).any():
            bag = int((counts < 0).argmax())
            self.fail("offsets must not decrease, got {} and then {}", starts[bag], starts[bag + 1])
        is_left_out = default_index is None or default_index.item() == -1
        default = self.default(None if is_left_out else default_index, len(emb_table))
        return self.bags(emb_table, self.rows(emb_table, indices, weights), starts, counts, default)


@operator("EmbeddingBagOffsetsSum", opset=3)
class EmbeddingBagOffsetsSum(EmbeddingBagOffsetsBase):
    """out[i] = the sum of emb_table[indices[j]] for j from offsets[i] to offsets[i + 1] or the end.

    Each row is multiplied by ``per_sample_weights[j]``. An empty bag is the row ``default_index``, or 0 if that is -1
    or missing. Offsets must not decrease; indices before the first offset belong to no bag.

    >>> ops.embedding_bag_offsets_sum([[1.0], [10.0], [100.0]], [0, 2, 1], [0, 2])
    [[101.] [ 10.]]
    """


@operator("EmbeddingBagOffsets", opset=15)
class EmbeddingBagOffsets(EmbeddingBagOffsetsBase):
    """out[i] = the sum or the mean of emb_table[indices[j]] for j from offsets[i] to offsets[i + 1] or the end.

    Otherwise as EmbeddingBagOffsetsSum-3; only the rows of a sum can be weighted.

    >>> ops.embedding_bag_offsets([[1.0], [10.0], [100.0]], [0, 2, 1], [0, 2])
    [[101.] [ 10.]]
    """

    reduction: str = attribute(default="sum", choices=("sum", "mean"))


class EmbeddingBagPackedBase(EmbeddingBagBase):
    """Base of operations whose bags have equally many indices, one bag per row."""

    takes = "emb_table T[Rows, Row...]; indices I[Bags, N]; ?per_sample_weights T[Bags, N]; T numeric; I index"
    domains = by_input(indices=Index("emb_table"))

    def run(self, emb_table: Array, indices: Array, per_sample_weights: Array | None = None) -> Array:
        sums = self.reduced(self.rows(emb_table, indices, per_sample_weights), 1)
        return sums.astype(emb_table.dtype, copy=False)


@operator("EmbeddingBagPackedSum", opset=3)
class EmbeddingBagPackedSum(EmbeddingBagPackedBase):
    """out[i] = the sum of emb_table[indices[i, j]] * per_sample_weights[i, j] over j.

    >>> ops.embedding_bag_packed_sum([[1.0], [10.0], [100.0]], [[0, 2], [1, 1]])
    [[101.] [ 20.]]
    """


@operator("EmbeddingBagPacked", opset=15)
class EmbeddingBagPacked(EmbeddingBagPackedBase):
    """out[i] = the sum or the mean of emb_table[indices[i, j]] over j.

    The rows of a sum can be weighted by ``per_sample_weights[i, j]``.

    >>> ops.embedding_bag_packed([[1.0], [10.0], [100.0]], [[0, 2], [1, 1]])
    [[101.] [ 20.]]
    """

    reduction: str = attribute(default="sum", choices=("sum", "mean"))


@operator("EmbeddingSegmentsSum", opset=3)
class EmbeddingSegmentsSum(EmbeddingBagBase):
    """out[s] = the sum of emb_table[indices[j]] * per_sample_weights[j] over all j with segment_ids[j] = s.

    There are ``num_segments`` segments; an empty one is the row ``default_index``, or 0 without it. The specification
    requires sorted ids below ``num_segments``: other ids are reported, and ids outside the range are ignored.

    >>> ops.embedding_segments_sum([[1.0], [10.0], [100.0]], [0, 2, 1], [0, 0, 1], 2)
    [[101.] [ 10.]]
    """

    takes = (
        "emb_table T[Rows, Row...]; indices I[N]; segment_ids I[N]; num_segments I[]; ?default_index I[]; "
        "?per_sample_weights T[N]; T numeric; I index"
    )
    arguments = "emb_table indices segment_ids num_segments= default_index= per_sample_weights="
    domains = by_input(
        indices=Index("emb_table"),
        segment_ids=Below("num_segments", order="sorted"),
        num_segments=Between(2, 4),
        default_index=Index("emb_table"),
    )
    value_inputs = (3,)

    def infer(self, *inputs: TensorType) -> Outputs:
        found = self.solved(*inputs)
        found.sizes["Bags"] = self.count_of("num_segments", inputs[3])
        return found.outputs()

    def run(
        self,
        table: Array,
        indices: Array,
        segment_ids: Array,
        num_segments: Array,
        default_index: Array | None = None,
        weights: Array | None = None,
    ) -> Array:
        segments = int(num_segments.item())
        inside = (segment_ids >= 0) & (segment_ids < segments)
        if not inside.all():
            first = int(inside.argmin())
            place = f"segment_ids[{first}] = {segment_ids[first]} is outside [0, {segments - 1}]"
            report(place, "it is ignored")
        if (segment_ids[1:] < segment_ids[:-1]).any():
            report("segment_ids are not sorted", "each index is added to its segment nevertheless")
        order = np.argsort(segment_ids, kind="stable")
        order = order[inside[order]]
        counts = np.bincount(segment_ids[order], minlength=segments)
        starts = counts.cumsum() - counts
        rows = self.rows(table, indices[order], None if weights is None else weights[order])
        return self.bags(table, rows, starts, counts, self.default(default_index, len(table)))


# --------------------------------------------------------------------------- sparse matrices


@operator("SparseFillEmptyRows", opset=16)
class SparseFillEmptyRows(Operator):
    """The entries of a sparse matrix, row by row, with ``default_value`` added at [row, 0] of each empty row.

    The matrix of shape ``dense_shape`` has ``values[i]`` at ``indices[i]`` = [row, column]. An index outside the matrix
    is an error; entries at the same position keep their order. The outputs are the indices, the values, and for each
    row whether it was empty. The specification calls the operation FillEmptyRows.

    >>> ops.sparse_fill_empty_rows([5.0, 7.0], [3, 4], [[0, 1], [2, 3]], 0.0)
    [[0 1] [1 0] [2 3]]
    [5. 0. 7.]
    [False True False]

    Source: FillEmptyRows-16
    """

    copies = 3

    takes = "values T[N]; dense_shape I[2]; indices I[N, 2]; default_value T[]; T numeric; I index"
    gives = "indices I[Entries, 2]; values T[Entries]; is_empty boolean[Rows]"
    domains = by_input(dense_shape=Between(8, 8), indices=Between(0, 7, "counting"))
    bounded = False
    value_inputs = (1, 2)

    def infer(self, *inputs: TensorType) -> Outputs:
        solution = self.solved(*inputs)
        entries, dense_shape, indices = solution["N"], inputs[1], inputs[2]
        rows = self._rows(dense_shape)
        if dense_shape.constant is not None and indices.constant is not None:
            self._check_indices(dense_shape.constant, indices.constant)
            entries += int(dense_shape.constant[0]) - np.unique(indices.constant[:, 0]).size
        else:  # afterwards each row has at least one entry
            most = None if entries.upper is None or rows.upper is None else entries.upper + rows.upper
            entries = Dimension(max(entries.lower, rows.lower), most)
        solution.sizes.update(Entries=entries, Rows=rows)
        return solution.outputs()

    def run(
        self, values: Array, dense_shape: Array, indices: Array, default_value: Array
    ) -> tuple[Array, Array, Array]:
        self._check_indices(dense_shape, indices)
        empty = np.ones(int(dense_shape[0]), np.bool_)
        empty[indices[:, 0]] = False
        added = np.flatnonzero(empty)
        new = np.zeros((added.size, 2), indices.dtype)
        new[:, 0] = added
        places = np.concatenate([indices, new])
        all_values = np.concatenate([values, np.full(added.size, default_value, values.dtype)])
        order = np.lexsort((places[:, 1], places[:, 0]))
        return places[order], all_values[order], empty

    def _rows(self, dense_shape: TensorType) -> Dimension:
        known = dense_shape.bounds_or_unknown()
        return UNKNOWN if known is None else self.sizes_in("dense_shape", known)[0]

    def _check_indices(self, dense_shape: Array, indices: Array) -> None:
        """Raise for an index outside the matrix."""
        for axis, name in enumerate(("row", "column")):
            size, places = int(dense_shape[axis]), indices[:, axis]
            self.check_count(f"dense_shape[{axis}]", size)
            outside = (places < 0) | (places >= size)
            if outside.any():
                i = int(outside.argmax())
                self.fail("indices[{}] has the {} {}, which is outside [0, {}]", i, name, places[i], size - 1)
