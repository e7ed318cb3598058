"""GroupedMatMul: one matrix product per group of rows, as for the experts of a mixture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import Dimension
from ovir.core.element_types import dynamic, f32
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.kernel_warnings import report
from ovir.ops.base.domains import Length, by_input
from ovir.ops.base.operator import Kernel, Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.rows import Rows
from ovir.ops.matmul import matrix_product


@operator("GroupedMatMul", opset=17)
class GroupedMatMul(Operator):
    """The rows of ``a`` times the transposed matrix of their group; ``b`` is [groups, columns, length].

    If ``a`` is [rows, length], group i consists of the rows from ``offsets[i - 1]`` (0 for the first) to
    ``offsets[i]``, and the result is [rows, columns]. The last offset should equal the number of rows; rows behind it
    give 0 and are reported. If ``a`` is [groups, rows, length], there are no ``offsets`` (or they are empty), and the
    result is [groups, rows, columns].

    f16 and bf16 are summed in f32. The order of b's dimensions and the refusal of a 2-D ``b`` follow OpenVINO.

    Source: GroupedMatMul-17
    """

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

    def run(self, a: Array, b: Array, offsets: Array | None = None, *, out: Array | None = None) -> Array:
        return self.run_by_group(a, b.shape, b.__getitem__, offsets, out)

    def run_by_group(
        self,
        a: Array,
        b_shape: tuple[int, ...],
        matrix: Callable[[int], Array],
        offsets: Array | None,
        out: Array | None,
    ) -> Array:
        """Run with a function for ``b``, which is called for each group that has rows."""
        shapes = (a.shape, b_shape) if offsets is None else (a.shape, b_shape, offsets.shape)
        self.infer(*(TensorType(dynamic, PartialShape(shape)) for shape in shapes))  # which checks the shapes
        groups, columns, _ = b_shape
        if out is None:
            out = np.empty((*a.shape[:-1], columns), a.dtype)
        if a.ndim == 3:
            for group in range(groups):
                _multiply(a[group], matrix(group), out[group])
            return out
        assert offsets is not None
        ends = [0, *offsets.tolist()]
        in_order = all(start <= end for start, end in pairwise(ends)) and ends[-1] <= len(a)
        self.require(in_order, "offsets must ascend from 0 to the number of rows, {}, got {}", len(a), ends[1:])
        if ends[-1] < len(a):
            report(
                f"the last offset is {ends[-1]}, but a has {len(a)} rows; the rows behind it are in no group and give 0"
            )
        for group, (start, end) in enumerate(pairwise(ends)):
            if end > start:
                _multiply(a[start:end], matrix(group), out[start:end])
        out[ends[-1] :] = 0
        return out

    def prepare_by_rows(self, position: int, rows: Rows, constants: Sequence[Array | None]) -> Kernel | None:
        if position != 1 or len(rows.shape) != 3 or rows.element_type != f32:
            return None

        def matrix(group: int) -> Array:
            return rows.slices(slice(group, group + 1)).reshape(rows.shape[1:])

        def run(a: Array, offsets: Array | None = None, *, out: Array | None = None) -> Array:
            return self.run_by_group(a, rows.shape, matrix, offsets, out)

        return run


def _multiply(a: Array, b: Array, out: Array) -> None:
    product = matrix_product(a, b.T, out)
    if product is not out:
        np.copyto(out, product)
