"""ScatterUpdate, ScatterElementsUpdate and ScatterNDUpdate: a copy of ``data`` with ``updates`` written into it.

The specification leaves open which of several updates of one element counts; here the last one wins.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, boolean, string
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value, from_bounds
from ovir.diagnostics.codes import ELEMENT_TYPE
from ovir.diagnostics.kernel_warnings import report
from ovir.kernels.precision import native_dtype
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import Axis, Coordinates, Index, by_input
from ovir.ops.base.indexing import checked_indices, flat_positions
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


class ScatterBase(Operator):
    """Base of the scatter operations."""

    moves_elements = (0, 2)
    same_types = (0, 2)
    inplace = (0,)

    reduction: str = "none"

    def _require_no_strings(self, element_type: ElementType) -> None:
        """Raise if strings are to be reduced."""
        allowed = self.reduction == "none" or element_type != string
        self.require(allowed, "reduction {} cannot be applied to strings", self.reduction, code=ELEMENT_TYPE)

    def infer_value(self, *inputs: TensorType) -> Value | tuple[Value | None, ...] | None:
        if self.reduction == "none":
            return super().infer_value(*inputs)
        data, indices, updates, *axis = (t.bounds_or_unknown() for t in inputs)
        where = [v.constant for v in (indices, *axis) if v is not None and v.constant is not None]
        known = len(where) == 1 + len(axis) and data is not None and updates is not None
        if not known or self.reduction not in ("sum", "min", "max"):
            return None
        assert data is not None
        assert updates is not None
        # The results of these do not decrease when data or an update increases.
        element_type = self.output_types[0]
        # NaN in data stays, in an update it is ignored.
        ends = zip(data.known_ends(element_type), (updates.lower, updates.upper), strict=True)
        lower, upper = (np.asarray(self.run(end, where[0], other, *where[1:])) for end, other in ends)
        sizes = bool(data.is_size.all() and updates.is_size.all())
        return from_bounds(element_type, lower, upper, sizes=sizes, may_wrap=self.reduction == "sum")

    def require_axis(self, axis: TensorType, data: PartialShape) -> int | None:
        """Return the axis counted from the front, if it is known."""
        self.require_integers("axis", axis)
        self.require_one_element("axis", axis.shape)
        if axis.constant is None or data.rank is None:
            return None
        return self.normalize_axis(axis.constant, data.rank, of=data)

    def run(self, data: Array, *inputs: Array) -> Array:
        out = np.array(data, order="C")
        self.write(out, *inputs)
        return out

    def write(self, out: Array, *inputs: Array) -> None:
        """Write the updates into a C-contiguous array; the inputs are those after data."""
        raise NotImplementedError


# --------------------------------------------------------------------------- ScatterUpdate


@operator("ScatterUpdate", opset=3)
class ScatterUpdate(ScatterBase):
    """out[o, indices[i], k] = updates[o, i, k], with o over the dimensions before ``axis``; the rest is data.

    updates has the shape of data with dimension ``axis`` replaced by the dimensions of indices. A negative index is an
    error.

    >>> ops.scatter_update([[1, 2], [3, 4]], [1], [[30, 40]], 0)
    [[ 1 2] [30 40]]
    """

    domains = by_input(indices=Index("data", axis="axis"), axis=Axis("data"))
    value_inputs = (3,)

    def infer(self, data: TensorType, indices: TensorType, updates: TensorType, axis: TensorType) -> TensorType:
        self.require_integers("indices", indices)
        element_type = self.shared_type(data=data, updates=updates)
        known = self.require_axis(axis, data.shape)
        ranks = data.shape.rank, indices.shape.rank, updates.shape.rank
        if None not in ranks:
            message = "the rank of updates {} must be the rank of data {} plus the rank of indices {} minus 1"
            fits = ranks[2] == (ranks[0] or 0) + (ranks[1] or 0) - 1
            self.require(fits, message, updates.shape, data.shape, indices.shape)
        if known is not None:
            expected = data.shape.slice(0, known) + indices.shape + data.shape.slice(known + 1)
            message = (
                "updates {} must have shape {}: the shape of data {} with the shape of indices {} in place of axis {}"
            )
            fits = expected.compatible(updates.shape)
            self.require(fits, message, updates.shape, expected, data.shape, indices.shape, known)
        return TensorType(element_type, data.shape)

    def write(self, out: Array, *inputs: Array) -> None:
        indices, updates, axis = inputs
        at = self.normalize_axis(axis, out.ndim)
        places = checked_indices(self, indices, out.shape[at], negative=False)
        expected = (*out.shape[:at], *indices.shape, *out.shape[at + 1 :])
        self.require(updates.shape == expected, "updates {} must have shape {}", updates.shape, expected)
        before: tuple[Any, ...] = (slice(None),) * at
        # Of several updates of one element the last counts, and NumPy follows the order in memory.
        out[(*before, np.asarray(places, order="C"))] = np.asarray(updates, order="C")


# --------------------------------------------------------------------------- ScatterElementsUpdate


@operator("ScatterElementsUpdate", opset=3)
class ScatterElementsUpdate3(ScatterBase):
    """out[indices[i, j, k], j, k] = updates[i, j, k] for axis 0, and likewise for other axes; the rest is data.

    indices and updates have one shape, not larger than data's except along ``axis``. The specification forbids
    negative indices; devices count them from the end.
    """

    copies = 4

    domains = by_input(indices=Index("data", axis="axis", negative="unspecified"), axis=Axis("data"))
    use_init_val: bool = True

    value_inputs = (3,)

    def infer(self, data: TensorType, indices: TensorType, updates: TensorType, axis: TensorType) -> TensorType:
        self.require_integers("indices", indices)
        element_type = self.shared_type(data=data, updates=updates)
        message = "indices {} must have the rank of data {}"
        fits = data.shape.rank is None or indices.shape.rank in (None, data.shape.rank)
        self.require(fits, message, indices.shape, data.shape)
        message = "indices {} and updates {} must have the same shape"
        self.require(indices.shape.compatible(updates.shape), message, indices.shape, updates.shape)
        self.require_axis(axis, data.shape)
        return TensorType(element_type, data.shape)

    def write(self, out: Array, *inputs: Array) -> None:
        indices, updates, axis = inputs
        at = self.normalize_axis(axis, out.ndim)
        message = "indices {} must have the shape of updates {}, and must not exceed data {} except on axis {}"
        fits = indices.shape == updates.shape and all(
            i == at or size <= out.shape[i] for i, size in enumerate(indices.shape)
        )
        self.require(fits, message, indices.shape, updates.shape, out.shape, at)
        if self.opset == 3 and indices.size and indices.min() < 0:
            report("ScatterElementsUpdate-3 does not allow negative indices", "they are counted from the end")
        positions = checked_indices(self, indices, out.shape[at] if out.ndim else 1)
        positions *= prod(out.shape[at + 1 :])
        for i, size in enumerate(indices.shape):
            if i != at:
                positions += np.arange(size).reshape(-1, *[1] * (out.ndim - i - 1)) * prod(out.shape[i + 1 :])
        put(out.reshape(-1, 1), positions.ravel(), updates.reshape(-1, 1), self.reduction, self.use_init_val)


@operator("ScatterElementsUpdate", opset=12)
class ScatterElementsUpdate12(ScatterElementsUpdate3):
    """ScatterElementsUpdate-3 with negative indices and a reduction.

    Each indexed element becomes the reduction of its updates and, with ``use_init_val``, of the element of data. The
    mean of integers is rounded down. For booleans sum and max are "or", prod and min are "and".

    >>> ops.scatter_elements_update([1, 2, 3, 4], [3, 0], [40, 10], 0)
    [10 2 3 40]
    """

    domains = by_input(indices=Index("data", axis="axis", negative="from the end"), axis=Axis("data"))
    reduction: str = attribute(default="none", choices=("none", "sum", "prod", "min", "max", "mean"))
    use_init_val: bool = attribute(default=True)

    def infer(self, data: TensorType, indices: TensorType, updates: TensorType, axis: TensorType) -> TensorType:
        result = super().infer(data, indices, updates, axis)
        self.require(
            result.element_type != boolean or self.reduction != "mean", "reduction mean is not defined for type boolean"
        )
        self._require_no_strings(result.element_type)
        return result


# --------------------------------------------------------------------------- ScatterNDUpdate


@operator("ScatterNDUpdate", opset=4)
class ScatterNDUpdate4(ScatterBase):
    """out[indices[i]] = updates[i], where indices[i] is a tuple of ``k`` indices, the last dimension of indices; the
    rest is data.

    If k is less than the rank of data, tuples select slices: updates has shape indices.shape[:-1] + data.shape[k:].
    Negative indices count from the end. The specification describes version 3, which no opset contains.

    Source: ScatterNDUpdate-3
    """

    domains = by_input(indices=Coordinates("data"))

    def infer(self, data: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
        self.require_index_type("indices", indices)
        element_type = self.shared_type(data=data, updates=updates)
        for name, tensor in (("data", data), ("indices", indices)):
            self.require_rank_at_least(name, tensor.shape, 1)
        if data.shape.rank is not None and indices.shape.rank is not None and indices.shape[-1].is_static:
            k = indices.shape[-1].length
            message = "indices {} holds tuples of {:index}, more than the rank of data {}"
            self.require(k <= data.shape.rank, message, indices.shape, k, data.shape)
            expected = indices.shape.slice(0, -1) + data.shape.slice(k)
            message = "updates {} must have shape {} for indices {} and data {}"
            fits = expected.compatible(updates.shape) or (expected.rank == 0 and updates.shape.size().contains(1))
            self.require(fits, message, updates.shape, expected, indices.shape, data.shape)
        return TensorType(element_type, data.shape)

    def write(self, out: Array, *inputs: Array) -> None:
        indices, updates = inputs
        k = indices.shape[-1]
        positions = flat_positions(self, indices, out.shape[:k])
        rows, length = prod(out.shape[:k]), prod(out.shape[k:])
        put(out.reshape(rows, length), positions.ravel(), updates.reshape(positions.size, length), self.reduction)


@operator("ScatterNDUpdate", opset=15)
class ScatterNDUpdate15(ScatterNDUpdate4):
    """ScatterNDUpdate-4 with a reduction of the element of data and all its updates.

    For booleans sum and max are "or", sub is "exclusive or", prod and min are "and".

    >>> ops.scatter_nd_update([[1, 2], [3, 4]], [[0, 1]], [20])
    [[ 1 20] [ 3 4]]
    """

    reduction: str = attribute(default="none", choices=("none", "sum", "sub", "prod", "min", "max"))

    def infer(self, data: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
        output = super().infer(data, indices, updates)
        self._require_no_strings(output.element_type)
        return output


# --------------------------------------------------------------------------- reductions

_NUMERIC = {
    "sum": np.add, "mean": np.add, "sub": np.subtract, "prod": np.multiply,
    # NaN in an update is ignored, NaN in data stays.
    "min": np.fmin, "max": np.fmax,
}  # fmt: skip
_LOGICAL = {
    "sum": np.logical_or, "sub": np.logical_xor, "prod": np.logical_and, "min": np.logical_and, "max": np.logical_or
}  # fmt: skip


def put(rows: Array, positions: Array, updates: Array, reduction: str, use_init_val: bool = True) -> None:
    """Reduce each rows[positions[i]] with its updates; without ``use_init_val`` reduce the updates alone."""
    if reduction == "none":
        if rows.shape[1] == 1:  # NumPy has a separate loop for rows of one number
            rows, updates = rows.ravel(), updates.ravel()
        rows[positions] = updates
        return
    computed = _computed_in(rows.dtype, reduction)
    updates = updates.astype(computed, copy=False)
    if computed == rows.dtype and reduction != "mean":
        _combine_at(rows, positions, updates, reduction, use_init_val)
        return
    targets, which, counts = np.unique(positions, return_inverse=True, return_counts=True)
    held = rows[targets].astype(computed)
    _combine_at(held, which, updates, reduction, use_init_val)
    if reduction == "mean":
        divisor = (counts + use_init_val)[:, np.newaxis]
        held = held // divisor if computed.kind in "iu" else held / divisor.astype(computed)
    rows[targets] = held.astype(rows.dtype)


def _combine_at(rows: Array, positions: Array, updates: Array, reduction: str, use_init_val: bool) -> None:
    """Combine each rows[positions[i]] with updates[i], one after the other."""
    length = rows.shape[1]
    elements = positions
    if length != 1:
        elements = (positions[:, np.newaxis] * length + np.arange(length)).ravel()
    flat = rows.reshape(-1)
    if not use_init_val:
        flat[elements] = _neutral(rows.dtype, reduction)
    keeps_apart = reduction in ("min", "max") and rows.dtype.kind == "f"  # the NaN of data and of updates
    has_nan = keeps_apart and np.isnan(flat.min(initial=0))
    nan = elements[np.isnan(flat[elements])] if has_nan else elements[:0]
    combine = (_LOGICAL if rows.dtype.kind == "b" else _NUMERIC)[reduction]
    if keeps_apart and not np.isnan(updates.min(initial=0)):  # these then do the same faster
        combine = np.minimum if reduction == "min" else np.maximum
    combine.at(flat, elements, updates.ravel())
    if nan.size:
        flat[nan] = np.nan


def _computed_in(dtype: np.dtype[Any], reduction: str) -> np.dtype[Any]:
    """Return the type for the reduction: narrow floating-point numbers are reduced in f32 and rounded once."""
    native = native_dtype(dtype)
    if native.kind in "iu" and reduction == "mean":
        return np.dtype(np.uint64 if dtype == np.uint64 else np.int64)
    return native


def _neutral(dtype: np.dtype[Any], reduction: str) -> Any:
    """Return the initial value of an accumulator that does not include data."""
    if reduction not in ("min", "max"):
        return reduction == "prod"
    if dtype.kind in "bf":
        return np.inf if reduction == "min" else 0 if dtype.kind == "b" else -np.inf
    info = np.iinfo(dtype)
    return info.max if reduction == "min" else info.min
