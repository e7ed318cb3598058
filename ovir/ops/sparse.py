"""SparseFillEmptyRows: add an entry to every empty row of a sparse matrix."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import boolean
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.ops.base.domains import Between, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


@operator("SparseFillEmptyRows", opset=16)
class SparseFillEmptyRows(Operator):
    """The entries of a sparse matrix, row by row, with ``default_value`` added at [row, 0] of each empty row.

    The matrix of shape ``dense_shape`` has ``values[i]`` at ``indices[i]`` = [row, column]. An index outside the matrix
    is an error; entries at the same position keep their order. The outputs are the indices, the values, and for each
    row whether it was empty. The specification calls the operation FillEmptyRows.

    Source: FillEmptyRows-16
    """

    domains = by_input(dense_shape=Between(8, 8), indices=Between(0, 7, "counting"))
    bounded = False
    value_inputs = (1, 2)

    def infer(
        self, values: TensorType, dense_shape: TensorType, indices: TensorType, default_value: TensorType
    ) -> tuple[TensorType, ...]:
        self.require_index_type("dense_shape", dense_shape.element_type)
        self.require_index_type("indices", indices.element_type)
        index_type = self.merge_types(dense_shape.element_type, indices.element_type, names=("dense_shape", "indices"))
        types = values.element_type, default_value.element_type
        element_type = self.merge_types(*types, names=("values", "default_value"))
        self.require_numeric("values", element_type)
        for name, tensor, rank in (("values", values, 1), ("indices", indices, 2), ("default_value", default_value, 0)):
            self.require_rank(name, tensor.shape, rank)
        pair = dense_shape.shape.compatible(PartialShape([2]))
        self.require(
            pair, "dense_shape must have shape [2], because only matrices are supported, got {}", dense_shape.shape
        )
        pairs = indices.shape[1].contains(2)
        self.require(pairs, "indices must hold a pair for each value, got shape {}", indices.shape)
        entries = self.merge_dims("entries", values=(values.shape, 0), indices=(indices.shape, 0))
        rows = self._rows(dense_shape)
        if dense_shape.constant is not None and indices.constant is not None:
            self._check_indices(dense_shape.constant, indices.constant)
            entries += int(dense_shape.constant[0]) - np.unique(indices.constant[:, 0]).size
        else:  # afterwards each row has at least one entry
            most = None if entries.upper is None or rows.upper is None else entries.upper + rows.upper
            entries = Dimension(max(entries.lower, rows.lower), most)
        return (
            TensorType(index_type, PartialShape([entries, 2])),
            TensorType(element_type, PartialShape([entries])),
            TensorType(boolean, PartialShape([rows])),
        )

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
        if known is None:
            return UNKNOWN
        for i, size in enumerate(known.upper):
            self.check_count(f"dense_shape[{i}]", float(size))
        return known.dimensions()[0]

    def _check_indices(self, dense_shape: Array, indices: Array) -> None:
        """Raise for an index outside the matrix."""
        for axis, name in enumerate(("row", "column")):
            size, places = int(dense_shape[axis]), indices[:, axis]
            self.check_count(f"dense_shape[{axis}]", size)
            outside = (places < 0) | (places >= size)
            if outside.any():
                i = int(outside.argmax())
                self.fail("indices[{}] has the {} {}, which is outside [0, {}]", i, name, places[i], size - 1)
