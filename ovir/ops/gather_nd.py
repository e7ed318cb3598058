"""GatherND and GatherTree: pick parts of ``data`` by tuples of indices, and beams by their parents."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import PartialShape, product
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.kernel_warnings import report
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Coordinates, Index, Length, by_input
from ovir.ops.base.indexing import flat_positions
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


@operator("GatherND", opset=8)
class GatherND8(Operator):
    """out[b, i] = data[b, *indices[b, i]], with b over the ``batch_dims`` dimensions that data and indices share.

    indices[b, i] is a tuple of k indices along the last dimension of indices. If k is less than the number of other
    dimensions of data, tuples pick slices: the shape is indices.shape[:-1] + data.shape[batch_dims + k:]. Negative
    indices count from the end.

    Source: GatherND-8
    """

    domains = by_input(indices=Coordinates("data"))
    carries = (0,)
    picks = (0, 1)

    batch_dims: int = attribute(default=0, minimum=0)

    def infer(self, data: TensorType, indices: TensorType) -> TensorType:
        self.require_integers("indices", indices.element_type)
        batch = self.batch_dims
        for name, tensor in (("data", data), ("indices", indices)):
            self.require_rank_at_least(name, tensor.shape, batch + 1)
        if data.shape.rank is None or indices.shape.rank is None or not indices.shape[-1].is_static:
            return TensorType(data.element_type, PartialShape(None))
        k = indices.shape[-1].length
        message = "indices {} holds tuples of {:index}, but data {} has only {:dimension} after {:batch dimension}"
        left = data.shape.rank - batch
        self.require(k <= left, message, indices.shape, k, data.shape, left, batch)
        batches = data.shape.slice(0, batch).merged_with(indices.shape.slice(0, batch))
        if batches is None:
            self.fail(
                "data {} and indices {} must be equal in the first {:dimension} (batch_dims)",
                data.shape,
                indices.shape,
                batch,
            )
        picked = indices.shape.slice(batch, -1) + data.shape.slice(batch + k)
        return TensorType(data.element_type, self.batched(batches) + picked)

    def batched(self, batches: PartialShape) -> PartialShape:
        """Return the dimensions of the output that come from the batch."""
        return batches

    def run(self, data: Array, indices: Array) -> Array:
        batch, k = self.batch_dims, indices.shape[-1]
        batches, sizes, slices = data.shape[:batch], data.shape[batch : batch + k], data.shape[batch + k :]
        message = "data {} and indices {} must be equal in the first {:dimension} (batch_dims)"
        self.require(indices.shape[:batch] == batches, message, data.shape, indices.shape, batch)
        positions = flat_positions(self, indices, sizes).reshape(prod(batches), prod(indices.shape[batch:-1]))
        positions += (np.arange(prod(batches)) * prod(sizes))[:, np.newaxis]
        shape = (*batches, *indices.shape[batch:-1], *slices)
        rows = data.reshape(prod(batches) * prod(sizes), prod(slices))
        return rows[positions.reshape(-1)].reshape(self.run_shape(shape))

    def run_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape


@operator("GatherND", opset=5)
class GatherND5(GatherND8):
    """GatherND-8 with all batch dimensions of the output merged into one, and without negative indices.

    Source: GatherND-5
    """

    domains = by_input(indices=Coordinates("data", negative="unspecified"))

    def batched(self, batches: PartialShape) -> PartialShape:
        return PartialShape([product(batches)]) if self.batch_dims > 1 else batches

    def run(self, data: Array, indices: Array) -> Array:
        if indices.size and indices.min() < 0:
            report("GatherND-5 does not allow negative indices; they are counted from the end")
        return super().run(data, indices)

    def run_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        batch = self.batch_dims
        return (prod(shape[:batch]), *shape[batch:]) if batch > 1 else shape


@operator("GatherTree", opset=1)
class GatherTree(Operator):
    """The beams of a search, each followed back from its last step through its parents.

    step_ids and parent_ids are [time, batch, beam]. out[t, b, i] is step_ids[t, b, p], where p is i at the last of the
    max_seq_len[b] steps of a batch, and at earlier steps the parent of step t + 1's p. After the first end_token of a
    beam, and after the last step, the output is end_token.

    Source: GatherTree-1
    """

    arguments = "step_ids parent_idx:parent_ids max_seq_len end_token"
    bounded = False  # it takes a step in Python for each time
    domains = by_input(parent_ids=Index("step_ids", axis=-1, checked=False), max_seq_len=Length("step_ids", axis=0))

    def infer(
        self, step_ids: TensorType, parent_ids: TensorType, max_seq_len: TensorType, end_token: TensorType
    ) -> TensorType:
        inputs = step_ids, parent_ids, max_seq_len, end_token
        names = "step_ids", "parent_ids", "max_seq_len", "end_token"
        element_type = self.merge_types(*(t.element_type for t in inputs), names=names)
        self.require_numeric("step_ids", element_type)
        for name, tensor, rank in zip(names, inputs, (3, 3, 1, 0), strict=True):
            self.require_rank(name, tensor.shape, rank)
        shape = step_ids.shape.merged_with(parent_ids.shape)
        if shape is None:
            self.fail("step_ids {} and parent_ids {} must have the same shape", step_ids.shape, parent_ids.shape)
        batch = self.merge_dims("batches", step_ids=(shape, 1), max_seq_len=(max_seq_len.shape, 0))
        return TensorType(element_type, PartialShape([shape[0], batch, shape[2]]))

    def run(self, step_ids: Array, parent_ids: Array, max_seq_len: Array, end_token: Array) -> Array:
        times, _, beams = step_ids.shape
        out = np.full(step_ids.shape, end_token)
        lengths = np.minimum(max_seq_len.astype(np.int64), times)[:, np.newaxis]
        beam = np.broadcast_to(np.arange(beams), step_ids.shape[1:])
        for time in reversed(range(times)):
            running = time < lengths
            np.copyto(out[time], np.take_along_axis(step_ids[time], beam, 1), where=running)
            parents = np.take_along_axis(parent_ids[time], beam, 1).astype(np.int64)
            if time:
                wrong = running & ((parents < 0) | (parents >= beams))
                if wrong.any():
                    self.fail("parent {} of step {} is not a beam: there are {} beams", parents[wrong][0], time, beams)
            beam = np.where(running, parents, beam)
        ended = np.logical_or.accumulate(out == end_token, axis=0)
        np.copyto(out, end_token, where=ended)
        return out
