"""Sums and means of bags of rows of an embedding table, as EmbeddingBag of torch and segment_sum of TensorFlow."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import Dimension
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.kernel_warnings import report
from ovir.kernels import half
from ovir.kernels.blocked import native_dtype
from ovir.kernels.segments import reduce_segments
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Below, Between, Index, Length, by_input
from ovir.ops.base.indexing import checked_indices
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


class EmbeddingBagBase(Operator):
    """Base of sums over bags: ``indices`` pick rows of a table [num_emb, ...], which are summed bag by bag.

    f16 and bf16 are summed in f32 and rounded once; integers wrap around. An index outside [0, num_emb-1] is an error.
    """

    reduction: str = "sum"

    def check(
        self, table: TensorType, indices: TensorType, rank: int, weights: TensorType | None, **others: TensorType | None
    ) -> list[Dimension]:
        """Check types and ranks and return the dimensions of ``indices``; ``others`` must have the type of the
        indices."""
        self.require_numeric("emb_table", table.element_type)
        self.require_rank_at_least("emb_table", table.shape, 1)
        integers = {"indices": indices, **{name: other for name, other in others.items() if other is not None}}
        for name, tensor in integers.items():
            self.require_index_type(name, tensor.element_type)
        self.merge_types(*(tensor.element_type for tensor in integers.values()), names=list(integers))
        alike = {"indices": indices.shape}
        if weights is not None:
            self.require(self.reduction == "sum", "reduction {} does not allow per_sample_weights", self.reduction)
            self.merge_types(table.element_type, weights.element_type, names=("emb_table", "per_sample_weights"))
            alike["per_sample_weights"] = weights.shape
        for name, shape in alike.items():
            self.require_rank(name, shape, rank)
        return [self.merge_dims("elements", **{n: (s, axis) for n, s in alike.items()}) for axis in range(rank)]

    def bags(
        self,
        table: Array,
        indices: Array,
        starts: Array,
        counts: Array,
        default_index: int | None,
        weights: Array | None,
        out: Array | None,
    ) -> Array:
        """Compute one bag after another: ``counts[i]`` indices from ``starts[i]`` on; an empty bag is row
        ``default_index``."""
        indices = checked_indices(self, indices, len(table), negative=False)
        shape = (len(counts), *table.shape[1:])
        if out is None:
            out = np.empty(shape, table.dtype)
        if not out.size:
            return out
        rows, computed = table.reshape(len(table), prod(table.shape[1:])), native_dtype(table.dtype)
        factors = None if weights is None else weights.astype(computed)

        def fetch(places: Array) -> Array:
            picked = half.converted(rows.take(indices[places], axis=0), computed)
            if factors is not None:
                picked *= factors[places, np.newaxis]
            return picked

        flat = out.reshape(len(counts), -1)
        sums = flat if computed == table.dtype else np.empty(flat.shape, computed)
        sums[counts == 0] = 0 if default_index is None else rows[default_index].astype(computed)
        reduce_segments(np.add, fetch, starts, counts, sums)
        if self.reduction == "mean":
            _divide(sums, np.maximum(counts, 1)[:, np.newaxis])
        if sums is not flat:
            half.copy(sums, flat)
        return out

    def default(self, default_index: Array | None, size: int) -> int | None:
        """Return the row of empty bags, or None if it is missing."""
        if default_index is None:
            return None
        return int(checked_indices(self, default_index, size, negative=False, name="default_index").item())


def _divide(sums: Array, counts: Array) -> None:
    """Divide in place; integers round towards zero."""
    if sums.dtype.kind == "f":
        sums /= counts.astype(sums.dtype)
    elif sums.dtype.kind == "u":
        sums[...] = sums // counts.astype(np.uint64)
    else:
        sums[...] = np.sign(sums) * (np.abs(sums) // counts)


class EmbeddingBagOffsetsBase(EmbeddingBagBase):
    """Base of operations whose ``offsets`` say where in the indices each bag begins."""

    domains = by_input(
        indices=Index("emb_table"),
        offsets=Length("indices", axis=0, low=0, order="offsets"),
        default_index=Index("emb_table", absent=-1),
    )

    def infer(
        self,
        emb_table: TensorType,
        indices: TensorType,
        offsets: TensorType,
        default_index: TensorType | None = None,
        per_sample_weights: TensorType | None = None,
    ) -> TensorType:
        self.check(emb_table, indices, 1, per_sample_weights, offsets=offsets, default_index=default_index)
        self.require_rank("offsets", offsets.shape, 1)
        if default_index is not None:
            self.require_rank("default_index", default_index.shape, 0)
        return TensorType(emb_table.element_type, emb_table.shape.with_dim(0, offsets.shape[0]))

    def run(
        self,
        emb_table: Array,
        indices: Array,
        offsets: Array,
        default_index: Array | None = None,
        per_sample_weights: Array | None = None,
        *,
        out: Array | None = None,
    ) -> Array:
        starts = checked_indices(self, offsets, len(indices) + 1, negative=False, name="offsets")
        counts = np.diff(starts, append=len(indices)) if starts.size else starts
        if (counts < 0).any():
            bag = int((counts < 0).argmax())
            self.fail("offsets must not decrease, got {} and then {}", starts[bag], starts[bag + 1])
        is_left_out = default_index is None or default_index.item() == -1
        default = self.default(None if is_left_out else default_index, len(emb_table))
        return self.bags(emb_table, indices, starts, counts, default, per_sample_weights, out)


@operator("EmbeddingBagOffsetsSum", opset=3)
class EmbeddingBagOffsetsSum(EmbeddingBagOffsetsBase):
    """out[i] = the sum of emb_table[indices[j]] for j from offsets[i] to offsets[i + 1] or the end.

    Each row is multiplied by ``per_sample_weights[j]``. An empty bag is the row ``default_index``, or 0 if that is -1
    or missing. Offsets must not decrease; indices before the first offset belong to no bag.

    Source: EmbeddingBagOffsetsSum-3
    """


@operator("EmbeddingBagOffsets", opset=15)
class EmbeddingBagOffsets(EmbeddingBagOffsetsBase):
    """out[i] = the sum or the mean of emb_table[indices[j]] for j from offsets[i] to offsets[i + 1] or the end.

    Otherwise as EmbeddingBagOffsetsSum-3; only the rows of a sum can be weighted.

    Source: EmbeddingBagOffsets-15
    """

    reduction: str = attribute(default="sum", choices=("sum", "mean"))


class EmbeddingBagPackedBase(EmbeddingBagBase):
    """Base of operations whose bags have equally many indices, one bag per row."""

    domains = by_input(indices=Index("emb_table"))

    def infer(
        self, emb_table: TensorType, indices: TensorType, per_sample_weights: TensorType | None = None
    ) -> TensorType:
        bags, _ = self.check(emb_table, indices, 2, per_sample_weights)
        return TensorType(emb_table.element_type, emb_table.shape.with_dim(0, bags))

    def run(
        self, emb_table: Array, indices: Array, per_sample_weights: Array | None = None, *, out: Array | None = None
    ) -> Array:
        bags, length = indices.shape
        starts, counts = np.arange(bags) * length, np.full(bags, length)
        weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
        return self.bags(emb_table, indices.reshape(-1), starts, counts, None, weights, out)


@operator("EmbeddingBagPackedSum", opset=3)
class EmbeddingBagPackedSum(EmbeddingBagPackedBase):
    """out[i] = the sum of emb_table[indices[i, j]] * per_sample_weights[i, j] over j.

    Source: EmbeddingBagPackedSum-3
    """


@operator("EmbeddingBagPacked", opset=15)
class EmbeddingBagPacked(EmbeddingBagPackedBase):
    """out[i] = the sum or the mean of emb_table[indices[i, j]] over j.

    The rows of a sum can be weighted by ``per_sample_weights[i, j]``.

    Source: EmbeddingBagPacked-15
    """

    reduction: str = attribute(default="sum", choices=("sum", "mean"))


@operator("EmbeddingSegmentsSum", opset=3)
class EmbeddingSegmentsSum(EmbeddingBagBase):
    """out[s] = the sum of emb_table[indices[j]] * per_sample_weights[j] over all j with segment_ids[j] = s.

    There are ``num_segments`` segments; an empty one is the row ``default_index``, or 0 without it. The specification
    requires sorted ids below ``num_segments``: other ids are reported, and ids outside the range are ignored.

    Source: EmbeddingSegmentsSum-3
    """

    domains = by_input(
        indices=Index("emb_table"),
        segment_ids=Below("num_segments", order="sorted"),
        num_segments=Between(2, 4),
        default_index=Index("emb_table"),
    )
    value_inputs = (3,)

    def infer(
        self,
        emb_table: TensorType,
        indices: TensorType,
        segment_ids: TensorType,
        num_segments: TensorType,
        default_index: TensorType | None = None,
        per_sample_weights: TensorType | None = None,
    ) -> TensorType:
        others = {"segment_ids": segment_ids, "num_segments": num_segments, "default_index": default_index}
        self.check(emb_table, indices, 1, per_sample_weights, **others)
        self.require_rank("segment_ids", segment_ids.shape, 1)
        self.merge_dims("elements", indices=(indices.shape, 0), segment_ids=(segment_ids.shape, 0))
        for name, tensor in (("num_segments", num_segments), ("default_index", default_index)):
            if tensor is not None:
                self.require_rank(name, tensor.shape, 0)
        segments = self.count_of("num_segments", num_segments)
        return TensorType(emb_table.element_type, emb_table.shape.with_dim(0, segments))

    def run(
        self,
        emb_table: Array,
        indices: Array,
        segment_ids: Array,
        num_segments: Array,
        default_index: Array | None = None,
        per_sample_weights: Array | None = None,
        *,
        out: Array | None = None,
    ) -> Array:
        segments = int(num_segments.item())
        self.check_count("num_segments", segments)
        inside = (segment_ids >= 0) & (segment_ids < segments)
        if not inside.all():
            first = int(inside.argmin())
            place = f"segment_ids[{first}] = {segment_ids[first]} is outside [0, {segments - 1}]"
            report(f"{place}; it is ignored")
        if (segment_ids[1:] < segment_ids[:-1]).any():
            report("segment_ids are not sorted; each index is added to its segment nevertheless")
        order = np.argsort(segment_ids, kind="stable")
        order = order[inside[order]]
        counts = np.bincount(segment_ids[order], minlength=segments)
        starts = counts.cumsum() - counts
        weights = None if per_sample_weights is None else per_sample_weights[order]
        default = self.default(default_index, len(emb_table))
        return self.bags(emb_table, indices[order], starts, counts, default, weights, out)
