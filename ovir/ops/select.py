"""Select: elements of one of two tensors, chosen by a third."""

from __future__ import annotations

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import boolean
from ovir.core.tensor_types import TensorType
from ovir.core.values import SIZE, Value, from_moved
from ovir.ops.base.elementwise import ElementwiseBase
from ovir.ops.base.registry import operator


@operator("Select", opset=1)
class Select(ElementwiseBase):
    """The element of ``then`` where ``cond`` is true, else the element of ``other``.

    ``then`` and ``other`` have one type and are broadcast to each other, and ``cond`` to both (OpenVINO also broadcasts
    them to ``cond``). In mode pdpd ``other`` and ``cond`` are broadcast to ``then``.

    >>> ops.select([True, False], [1, 2], [10, 20])
    [ 1 20]
    """

    arguments = "cond then_node:then else_node:other auto_broadcast="
    forwards_values = (1, 2)
    same_types = (1, 2)
    inplace = (1, 2)

    def infer(self, cond: TensorType, then: TensorType, other: TensorType) -> TensorType:
        self.require_type("cond", cond, lambda t: t == boolean, "boolean")
        element_type = self.merge_types(then.element_type, other.element_type, names=("then", "else"))
        shape = self.broadcast_shapes(then.shape, other.shape, ("then", "else"))
        shape = self.broadcast_shapes(shape, cond.shape, ("then and else", "cond"))
        return TensorType(element_type, shape)

    def run(self, cond: Array, then: Array, other: Array) -> Array:
        return np.where(self.aligned(then, cond), then, self.aligned(then, other))

    def infer_value(self, *inputs: TensorType) -> Value | None:
        cond, then, other = (tensor.bounds_or_unknown() for tensor in inputs)
        if cond is None or then is None or other is None:
            return None
        sure, never = (self.aligned(then.lower, c) for c in (cond.lower > 0, cond.upper <= 0))
        low, high, marks = (self.aligned(then.lower, x) for x in (other.lower, other.upper, other.marks))
        sizes = np.where(then.is_size & self.aligned(then.lower, other.is_size), SIZE, 0)

        def merged(a: Array, b: Array, both: Array) -> Array:
            return np.where(sure, a, np.where(never, b, both))

        return from_moved(
            self.output_types[0],
            merged(then.lower, low, np.minimum(then.lower, low)),
            merged(then.upper, high, np.maximum(then.upper, high)),
            merged(then.marks, marks, np.where((then.marks == marks) & (marks > 0), marks, sizes)),
        )
