"""Select: elements of one of two tensors, chosen by a third."""

from __future__ import annotations

from math import prod

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import boolean
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value, from_moved
from ovir.fast.base.binding import Binder, call_elementwise
from ovir.kernels.blocked import apply
from ovir.kernels.coalesce import memory_order
from ovir.ops.base.elementwise import ElementwiseBase
from ovir.ops.base.registry import operator


@operator("Select", opset=1)
class Select(ElementwiseBase):
    """The element of ``then`` where ``cond`` is true, else the element of ``other``.

    ``then`` and ``other`` have one type and are broadcast to each other, and ``cond`` to both (OpenVINO also broadcasts
    them to ``cond``). In mode pdpd ``other`` and ``cond`` are broadcast to ``then``.

    Source: Select-1
    """

    passes = (1, 2)
    same_types = (1, 2)
    inplace = (1, 2)

    def infer(self, cond: TensorType, then: TensorType, other: TensorType) -> TensorType:
        self.require_type("cond", cond.element_type, lambda t: t == boolean, "boolean")
        element_type = self.merge_types(then.element_type, other.element_type, names=("then", "else"))
        shape = self.broadcast_shapes(then.shape, other.shape, ("then", "else"))
        shape = self.broadcast_shapes(shape, cond.shape, ("then and else", "cond"))
        return TensorType(element_type, shape)

    def run(self, cond: Array, then: Array, other: Array, *, out: Array | None = None) -> Array:
        other, cond = self.aligned(then, other), self.aligned(then, cond)
        if then.dtype.kind == "T":  # strings
            return np.where(cond, then, other)
        # The bits are selected, because NumPy's masked copies take ten times as long if the mask is irregular.
        bits = np.dtype(f"i{then.dtype.itemsize}")
        if 2 * cond.size <= then.size:  # each number of a repeated condition is made once
            cond = -cond.astype(bits)
        target = None if out is None else out.view(bits)
        return apply(_choose, (then.view(bits), other.view(bits), cond), target).view(then.dtype)

    def bind(self, binder: Binder, *inputs: Array) -> bool:
        cond, then, other = inputs
        other, cond = self.aligned(then, other), self.aligned(then, cond)
        shape = binder.output_shape()
        if cond.size > 1 and prod(shape) > _FEW:
            return self._bind_bits(binder, cond, then, other)
        if other.shape == shape and binder.may_overwrite(2):
            out = binder.overwrite(2)
        else:
            largest = max(then, other, key=lambda array: array.size)
            out = binder.output(order=memory_order(largest) if largest.shape == shape else None)
        if cond.size == 1:
            binder.call(_copy_one, cond.reshape(()), then, other, out)
            return True
        if out is not other:
            binder.call(np.copyto, out, other)
        binder.call(np.copyto, out, then, "no", cond)
        return True

    def _bind_bits(self, binder: Binder, cond: Array, then: Array, other: Array) -> bool:
        """Bind the selection of bits, as ``run`` makes it."""
        shape, bits = binder.output_shape(), np.dtype(f"i{then.dtype.itemsize}")
        largest = max((then, other, cond), key=lambda array: array.size)
        out = binder.output(order=memory_order(largest) if largest.shape == shape else None)
        mask = binder.scratch(cond.shape, bits)
        binder.call(np.copyto, mask, cond)
        binder.call(np.negative, mask, mask)
        x, y, z = then.view(bits), other.view(bits), out.view(bits)
        both = np.broadcast_shapes(then.shape, other.shape)
        changed = z if both == shape else binder.scratch(both, bits)
        call_elementwise(binder, np.bitwise_xor, x, y, changed)
        call_elementwise(binder, np.bitwise_and, changed, mask, z)
        call_elementwise(binder, np.bitwise_xor, z, y, z)
        return True

    def infer_value(self, *inputs: TensorType) -> Value | None:
        cond, then, other = (tensor.bounds_or_unknown() for tensor in inputs)
        if cond is None or then is None or other is None:
            return None
        sure, never = (self.aligned(then.lower, c) for c in (cond.lower > 0, cond.upper <= 0))
        low, high, symbols = (self.aligned(then.lower, x) for x in (other.lower, other.upper, other.symbols))

        def merged(a: Array, b: Array, both: Array) -> Array:
            return np.where(sure, a, np.where(never, b, both))

        return from_moved(
            self.output_types[0],
            merged(then.lower, low, np.minimum(then.lower, low)),
            merged(then.upper, high, np.maximum(then.upper, high)),
            merged(then.symbols, symbols, np.where(then.symbols == symbols, symbols, 0)),
        )


_FEW = 1 << 12
"""Elements up to which a masked copy is fast, however irregular the mask."""


def _copy_one(cond: Array, then: Array, other: Array, out: Array) -> None:
    np.copyto(out, then if cond else other)


def _choose(then: Array, other: Array, cond: Array, *, out: Array) -> object:
    changed = np.bitwise_xor(then, other, out=None if np.may_share_memory(other, out) else out)
    into = changed if changed.shape == out.shape else None
    pick = np.multiply if cond.dtype == np.bool_ else np.bitwise_and
    return np.bitwise_xor(pick(changed, cond, out=into), other, out=out)
