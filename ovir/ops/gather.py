"""Gather, GatherElements, GatherND and GatherTree: slices or elements of a tensor, picked by their positions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape, product
from ovir.core.tensor_types import TensorType, array_text
from ovir.diagnostics.kernel_warnings import report
from ovir.kernels.precision import to_integers
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Axis, Coordinates, Index, Length, by_input
from ovir.ops.base.indexing import flat_positions
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


class GatherBase(Operator):
    """Base of the versions of Gather: out[b, o, i, k] = data[b, o, indices[b, i], k].

    b runs over the first ``batch_dims`` dimensions, which data and indices share, and o over the other dimensions
    before ``axis``. ``axis`` is an input of one element in [-rank, rank-1]. The output has the dimensions of ``data``
    with dimension ``axis`` replaced by the dimensions of ``indices`` after the batch dimensions. An index outside
    [-size, size-1] gives zero (False, an empty string) and a negative one counts from the end, as in every version of
    OpenVINO's reference. Indices that the version's specification excludes are reported, because devices treat them
    differently.
    """

    takes = "data T[D...]; indices integer[...]; axis integer[]|[1]; T any"
    domains = by_input(indices=Index("data", axis="axis", negative="unspecified"), axis=Axis("data"))
    moves_elements = (0,)
    guards_sizes = True
    value_inputs = (2,)
    batch_dims: int = 0
    wraps: ClassVar[bool] = False
    """Whether the specification allows negative indices."""

    def infer(self, data: TensorType, indices: TensorType, axis: TensorType) -> TensorType:
        self.solved(data, indices, axis)
        self.require_rank_at_least("data", data.shape, 1)
        where = self._known_axis(data.shape, axis.constant)
        batch_dims = self._known_batch_dims(data.shape.rank, indices.shape.rank)
        self._check_order(where, batch_dims)
        return TensorType(data.element_type, self._shape(data.shape, indices.shape, where, batch_dims))

    def _known_axis(self, data: PartialShape, axis: Array | None) -> int | None:
        """Return the axis counted from the front, or None if it is unknown."""
        if axis is None or (data.rank is None and int(axis.item()) < 0):
            return None
        return self.normalize_axis(axis, data.rank, of=data)

    def _known_batch_dims(self, data_rank: int | None, rank: int | None) -> int | None:
        """Return ``batch_dims`` counted from the front, or None if it is unknown."""
        declared = self.batch_dims
        if rank is None:
            return declared if declared >= 0 else None
        message = "batch_dims {} is outside [{}, {}], the rank of indices"
        self.require(-rank <= declared <= rank, message, declared, -rank, rank)
        batch_dims = declared + rank if declared < 0 else declared
        fits = data_rank is None or batch_dims < data_rank
        self.require(fits, "batch_dims {} must be below the rank of data, {}", batch_dims, data_rank)
        return batch_dims

    def _check_order(self, axis: int | None, batch_dims: int | None) -> None:
        fits = axis is None or batch_dims is None or batch_dims <= axis
        self.require(fits, "batch_dims {} must not exceed axis {}", batch_dims, axis)

    def _shape(
        self, data: PartialShape, indices: PartialShape, axis: int | None, batch_dims: int | None
    ) -> PartialShape:
        if data.rank is None or indices.rank is None or batch_dims is None:
            return PartialShape(None)
        batch = data.slice(0, batch_dims).merged_with(indices.slice(0, batch_dims))
        batch = self.require_known(batch, _BATCHES_DIFFER, data, indices, batch_dims)
        if axis is None:
            return batch + PartialShape([UNKNOWN] * (data.rank + indices.rank - 1 - 2 * batch_dims))
        return batch + data.slice(batch_dims, axis) + indices.slice(batch_dims) + data.slice(axis + 1)

    def run(self, data: Array, indices: Array, axis: Array) -> Array:
        where, batch_dims = self.resolved(data, indices, axis)
        self._report_unspecified(data, indices, where)
        size, batch = data.shape[where], data.shape[:batch_dims]
        before = (slice(None),) * (where - batch_dims)
        outside = is_outside(indices, size)
        positions = np.where(outside, 0, indices).astype(np.intp)
        shape = data.shape[:where] + indices.shape[batch_dims:] + data.shape[where + 1 :]
        result = np.zeros(shape, data.dtype)
        for b in np.ndindex(batch if size else (0,)):
            result[b] = data[b].take(positions[b], where - batch_dims, mode="wrap")
            result[(*b, *before, outside[b])] = np.zeros((), data.dtype)
        return result

    def resolved(self, data: Array, indices: Array, axis: Array) -> tuple[int, int]:
        """Return ``axis`` and ``batch_dims`` counted from the front, after checks that inference could not do."""
        if indices.dtype.kind not in "iu":
            self.fail("indices must be of an integer type, got {}", indices.dtype)
        self.require_rank_at_least("data", data.shape, 1)
        where = self.normalize_axis(axis, data.ndim, of=data.shape)
        batch_dims = 0
        if self.batch_dims:
            batch_dims = self._known_batch_dims(data.ndim, indices.ndim) or 0
            self._check_order(where, batch_dims)
            if data.shape[:batch_dims] != indices.shape[:batch_dims]:
                self.fail(_BATCHES_DIFFER, data.shape, indices.shape, batch_dims)
        return where, batch_dims

    def _report_unspecified(self, data: Array, indices: Array, axis: int) -> None:
        """Report the first index that the specification excludes."""
        size, lowest = data.shape[axis], -data.shape[axis] if self.wraps else 0
        unspecified = is_outside(indices, size, lowest)
        if unspecified.any():
            value = int(indices.ravel()[unspecified.argmax()])
            meaning = "it counts from the end" if -size <= value < 0 else "it gives zero"
            report(_place(indices, unspecified, lowest, data, axis), meaning)


def is_outside(indices: Array, size: int, lowest: int | None = None) -> Array:
    """Return the mask of the indices outside [lowest, size-1]; ``lowest`` is -size by default."""
    above = np.asarray(indices >= size)
    if indices.dtype.kind == "u":  # NumPy 2.1 crashes if it compares these with a negative number
        return above
    return above | (indices < (-size if lowest is None else lowest))


_REST_DIFFERS = "data {} and indices {} must have equal dimensions except axis {}"
_BATCHES_DIFFER = "data {} and indices {} must be equal in the first {:dimension} (batch_dims)"


def _place(indices: Array, outside: Array, lowest: int, data: Array, axis: int) -> str:
    """Describe the first of the indices that are outside."""
    place = np.unravel_index(int(outside.argmax()), outside.shape)
    found = f"indices[{','.join(str(int(i)) for i in place)}] = {indices[place]}"
    return f"{found} is outside [{lowest}, {data.shape[axis] - 1}] along axis {axis} of data {array_text(data)}"


@operator("Gather", opset=1)
class Gather1(GatherBase):
    """Slices of ``data`` along ``axis``, picked by ``indices`` in [0, size-1]. The specification restricts no types."""

    takes = "data T[D...]; indices any[...]; axis any[]|[1]; T any"


@operator("Gather", opset=7)
class Gather7(GatherBase):
    """Slices of ``data`` along ``axis``, picked by ``indices`` in [0, size-1], for each of ``batch_dims`` batches."""

    batch_dims: int = attribute(default=0)


@operator("Gather", opset=8)
class Gather8(GatherBase):
    """Slices of ``data`` along ``axis``, picked by ``indices`` for each of ``batch_dims`` batches.

    An index in [-size, -1] counts from the end; an index outside [-size, size-1] gives 0.

    >>> ops.gather([10, 20, 30, 40], [3, 0], 0)
    [40 10]
    """

    domains = by_input(indices=Index("data", axis="axis", negative="from the end"), axis=Axis("data"))
    batch_dims: int = attribute(default=0)
    wraps = True


@operator("GatherElements", opset=6)
class GatherElements(Operator):
    """out[i, j, k] = data[indices[i, j, k], j, k] for axis 0, and likewise for other axes.

    Data and indices have equal dimensions except along ``axis``. A negative index counts from the end; an index outside
    [-size, size-1] is an error.

    >>> ops.gather_elements([[1, 2], [3, 4]], [[0, 0], [1, 0]], 1)
    [[1 1] [4 3]]
    """

    domains = by_input(indices=Index("data", axis="axis", negative="from the end"))
    axis: int = attribute(default=0, specified=True)
    moves_elements = (0,)

    def infer(self, data: TensorType, indices: TensorType) -> TensorType:
        self.require_index_type("indices", indices)
        axis = self.normalize_axis(self.axis, data.shape.rank, of=data.shape)
        for name, tensor in (("data", data), ("indices", indices)):
            self.require_rank_at_least(name, tensor.shape, 1)
        return TensorType(data.element_type, self._shape(data.shape, indices.shape, axis))

    def _shape(self, data: PartialShape, indices: PartialShape, axis: int) -> PartialShape:
        if data.rank is None:
            if indices.rank is not None:
                self.normalize_axis(self.axis, indices.rank, of=indices)
            return indices
        if indices.rank is None:
            return data.with_dim(axis, UNKNOWN)
        message = "data {} and indices {} must have the same rank"
        self.require(data.rank == indices.rank, message, data, indices)
        merged = self.require_known(data.merged_with(indices, except_axis=axis), _REST_DIFFERS, data, indices, axis)
        return merged.with_dim(axis, indices[axis])

    def run(self, data: Array, indices: Array) -> Array:
        axis = self.checked_axis(data, indices)
        outside = is_outside(indices, data.shape[axis])
        if outside.any():
            self.fail("{}", _place(indices, outside, -data.shape[axis], data, axis))
        return np.take_along_axis(data, indices.astype(np.intp), axis)

    def checked_axis(self, data: Array, indices: Array) -> int:
        """Return the axis counted from the front, after checks that inference could not do."""
        self.require_rank_at_least("data", data.shape, 1)
        axis = self.normalize_axis(self.axis, data.ndim, of=data.shape)
        before, after = data.shape[:axis], data.shape[axis + 1 :]
        if indices.shape[:axis] != before or indices.shape[axis + 1 :] != after or indices.ndim != data.ndim:
            self.fail(_REST_DIFFERS, data.shape, indices.shape, axis)
        return axis


@operator("GatherND", opset=8)
class GatherND8(Operator):
    """out[b, i] = data[b, *indices[b, i]], with b over the ``batch_dims`` dimensions that data and indices share.

    indices[b, i] is a tuple of k indices along the last dimension of indices. If k is less than the number of other
    dimensions of data, tuples pick slices: the shape is indices.shape[:-1] + data.shape[batch_dims + k:]. Negative
    indices count from the end.

    >>> ops.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]])
    [2 3]
    """

    domains = by_input(indices=Coordinates("data"))
    moves_elements = (0,)

    batch_dims: int = attribute(default=0, minimum=0)

    def infer(self, data: TensorType, indices: TensorType) -> TensorType:
        self.require_integers("indices", indices)
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
        batches = self.require_known(batches, _BATCHES_DIFFER, data.shape, indices.shape, batch)
        picked = indices.shape.slice(batch, -1) + data.shape.slice(batch + k)
        return TensorType(data.element_type, self.batched(batches) + picked)

    def batched(self, batches: PartialShape) -> PartialShape:
        """Return the dimensions of the output that come from the batch."""
        return batches

    def run(self, data: Array, indices: Array) -> Array:
        batch, k = self.batch_dims, indices.shape[-1]
        batches, sizes, slices = data.shape[:batch], data.shape[batch : batch + k], data.shape[batch + k :]
        positions = flat_positions(self, indices, sizes).reshape(prod(batches), prod(indices.shape[batch:-1]))
        positions += (np.arange(prod(batches)) * prod(sizes))[:, np.newaxis]
        shape = (*batches, *indices.shape[batch:-1], *slices)
        rows = data.reshape(prod(batches) * prod(sizes), prod(slices))
        return rows[positions.ravel()].reshape(self.run_shape(shape))

    def run_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape


@operator("GatherND", opset=5)
class GatherND5(GatherND8):
    """GatherND-8 with all batch dimensions of the output merged into one, and without negative indices."""

    domains = by_input(indices=Coordinates("data", negative="unspecified"))

    def batched(self, batches: PartialShape) -> PartialShape:
        return PartialShape([product(batches)]) if self.batch_dims > 1 else batches

    def run(self, data: Array, indices: Array) -> Array:
        if indices.size and indices.min() < 0:
            report("GatherND-5 does not allow negative indices", "they are counted from the end")
        return super().run(data, indices)

    def run_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        batch = self.batch_dims
        return (prod(shape[:batch]), *shape[batch:]) if batch > 1 else shape


@operator("GatherTree", opset=1)
class GatherTree(Operator):
    """The beams of a search, each followed back from its last step through its parents.

    out[t, b, i] is step_ids[t, b, p[t]]. At the last of the max_seq_len[b] steps of a batch, p[t] is i; before it,
    p[t] is parent_ids[t + 1, b, p[t + 1]]. Parents of step 0 are not read. After the first end_token of a beam, and
    after the last step, the output is end_token.

    >>> steps = np.float32([[[1, 2]], [[3, 4]]])
    >>> parents = np.float32([[[0, 0]], [[1, 0]]])
    >>> ops.gather_tree(steps, parents, np.float32([2]), np.float32(9))
    [[[2. 1.]] [[3. 4.]]]
    """

    takes = "step_ids T[Time, N, Beam]; parent_ids T[Time, N, Beam]; max_seq_len T[N]; end_token T[]; T numeric"
    gives = "T[Time, N, Beam]"
    recipe = "T i32|f32"
    arguments = "step_ids parent_idx:parent_ids max_seq_len end_token"
    bounded = False
    copies = 4  # the parents of a step are i64
    domains = by_input(parent_ids=Index("step_ids", axis=-1, checked=False), max_seq_len=Length("step_ids", axis=0))

    def python_steps(self, inputs: Sequence[TensorType]) -> Dimension:
        return inputs[0].shape.slice(0, 1).size()

    def run(self, step_ids: Array, parent_ids: Array, max_seq_len: Array, end_token: Array) -> Array:
        times, _, beams = step_ids.shape
        out = np.full(step_ids.shape, end_token)
        lengths = np.minimum(to_integers(max_seq_len, np.dtype(np.int64)), times)[:, np.newaxis]
        beam = np.broadcast_to(np.arange(beams), step_ids.shape[1:])
        for time in reversed(range(times)):
            running = time < lengths
            np.copyto(out[time], np.take_along_axis(step_ids[time], beam, 1), where=running)
            parents = to_integers(np.take_along_axis(parent_ids[time], beam, 1), np.dtype(np.int64))
            if time:
                wrong = running & ((parents < 0) | (parents >= beams))
                if wrong.any():
                    self.fail("parent {} of step {} is not a beam: there are {} beams", parents[wrong][0], time, beams)
            beam = np.where(running, parents, beam)
        ended = np.logical_or.accumulate(out == end_token, axis=0)
        np.copyto(out, end_token, where=ended)
        return out
