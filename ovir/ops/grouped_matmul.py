"""GroupedMatMul: one matrix product per group of rows, as for the experts of a mixture."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import dynamic
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.kernel_warnings import report
from ovir.ops.base.domains import Length, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.matmul import matrix_product


@operator("GroupedMatMul", opset=17, function_name="grouped_matmul")
class GroupedMatMul(Operator):
    """The rows of ``a`` times the transposed matrix of their group; ``b`` is [groups, columns, length].

    If ``a`` is [rows, length], group i consists of the rows from ``offsets[i - 1]`` (0 for the first) to
    ``offsets[i]``, and the result is [rows, columns]. The last offset should equal the number of rows; rows behind it
    give 0 and are reported. If ``a`` is [groups, rows, length], there are no ``offsets`` (or they are empty), and the
    result is [groups, rows, columns].

    f16 and bf16 are summed in f32. The order of b's dimensions and the refusal of a 2-D ``b`` follow OpenVINO.

    Source: GroupedMatMul-17
    """

    arguments = "mat_a:a mat_b:b offsets="
    domains = by_input(offsets=Length("a", axis=0, full=True))
    multiplied = ("a", "b")

    def multiply_accumulates(self, inputs: Mapping[str, PartialShape], output: PartialShape) -> Dimension:
        return output.size() * inputs["a"][-1]

    def infer(self, a: TensorType, b: TensorType, offsets: TensorType | None = None) -> TensorType:
        element_type = self.merge_types(a.element_type, b.element_type, names=("a", "b"))
        self.require_numeric("a", element_type)
        self.require_rank("a", a.shape, 2, 3)
        self.require_rank("b", b.shape, 3)
        if offsets is not None:
            self.require_index_type("offsets", offsets.element_type)
            self.require_rank("offsets", offsets.shape, 1)
        if a.shape.rank is None:
            return TensorType(element_type, PartialShape(None))
        self.merge_dims("elements in a row", a=(a.shape, -1), b=(b.shape, 2))
        shape = a.shape.with_dim(-1, b.shape[1])
        if a.shape.rank == 2:
            message = "offsets are missing: a of shape {} needs the ends of its groups"
            ends = self.require_known(offsets, message, a.shape)
            self.merge_dims("groups", offsets=(ends.shape, 0), b=(b.shape, 0))
            return TensorType(element_type, shape)
        unused = offsets is None or offsets.shape[0].contains(0)
        self.require(unused, "offsets are not allowed: a of shape {} is already divided into groups", a.shape)
        groups = self.merge_dims("groups", a=(a.shape, 0), b=(b.shape, 0))
        return TensorType(element_type, shape.with_dim(0, groups))

    def run(self, a: Array, b: Array, offsets: Array | None = None) -> Array:
        shapes = (a.shape, b.shape) if offsets is None else (a.shape, b.shape, offsets.shape)
        self.infer(*(TensorType(dynamic, PartialShape(shape)) for shape in shapes))  # which checks the shapes
        result = np.zeros((*a.shape[:-1], b.shape[1]), a.dtype)
        if a.ndim == 3:
            for group, rows in enumerate(a):
                result[group] = matrix_product(rows, b[group].T)
            return result
        assert offsets is not None
        ends = [0, *offsets.tolist()]
        in_order = all(start <= end for start, end in pairwise(ends)) and ends[-1] <= len(a)
        self.require(in_order, "offsets must ascend from 0 to the number of rows, {}, got {}", len(a), ends[1:])
        if ends[-1] < len(a):
            report(f"the last offset is {ends[-1]}, but a has {len(a)} rows: rows after it are in no group and give 0")
        result = np.zeros((len(a), b.shape[1]), a.dtype)
        for group, (start, end) in enumerate(pairwise(ends)):
            if end > start:
                result[start:end] = matrix_product(a[start:end], b[group].T)
        return result
