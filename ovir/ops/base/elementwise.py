"""Base classes of elementwise operations of two or more inputs: broadcasting rules and bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, u1, u3, u6
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import Mask, Value, from_bounds
from ovir.diagnostics.codes import NOT_SUPPORTED
from ovir.kernels.precision import as_native, stored
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator


class ElementwiseBase(Operator):
    """Base of operations whose inputs ``a`` and ``b`` are broadcast according to a mode.

    "none": both shapes must be equal. "numpy": the last dimensions are aligned, and a size of 1 is repeated. "pdpd":
    ``b`` is aligned with a part of ``a`` that begins at dimension ``axis`` (-1: ends at the last dimension); a size of
    1 in ``b`` is repeated, and trailing sizes of 1 may exceed the rank of ``a``. Source: "Broadcast rules for
    elementwise operations".
    """

    guards_sizes = True
    same_types: ClassVar[tuple[int, ...]] = (0, 1)

    auto_broadcast: str = attribute(default="numpy", choices=("none", "explicit", "numpy", "pdpd"))
    axis: int = attribute(default=-1, name="auto_broadcast.auto_broadcast_axis", minimum=-1, misread="0")

    def broadcast_shapes(self, a: PartialShape, b: PartialShape, names: tuple[str, str] = ("a", "b")) -> PartialShape:
        """Return the shape of the result; an error names both inputs."""
        if self.auto_broadcast == "numpy":
            shape = a.broadcast_with(b)
        elif self.auto_broadcast == "pdpd":
            shape = self._broadcast_pdpd(a, b)
        else:
            shape = a.merged_with(b)
        if shape is None:
            where = f" at axis {self.axis}" if self.auto_broadcast == "pdpd" else ""
            message = "{} of shape {} and {} of shape {} cannot be broadcast together in mode {}{}"
            self.fail(message, names[0], a, names[1], b, self.auto_broadcast, where)
        return shape

    def rows_from(self, inputs: Sequence[TensorType], output: PartialShape) -> tuple[int, ...] | None:
        if self.auto_broadcast != "numpy" or not output.rank:
            return None
        return tuple(int(t.shape.rank == output.rank and t.shape[0] == output[0]) for t in inputs)

    def _broadcast_pdpd(self, a: PartialShape, b: PartialShape) -> PartialShape | None:
        if a.rank is None or b.rank is None:
            return PartialShape(None)
        start = a.rank - b.rank if self.axis == -1 else self.axis
        if start < 0 or b.rank > a.rank:
            return None
        dims = list(a)
        for i, size in enumerate(b, start):
            if i >= a.rank:
                if not size.contains(1):
                    return None
            elif not size.contains(1):
                merged = dims[i].merged_with(size)
                if merged is None:
                    return None
                dims[i] = merged
        return PartialShape(dims)

    def aligned(self, a: Array, b: Array) -> Array:
        """Return ``b`` in a shape that NumPy broadcasts to the shape of ``a``."""
        if self.auto_broadcast == "numpy":
            return b
        # NumPy would broadcast more than the other modes allow.
        self.broadcast_shapes(PartialShape(a.shape), PartialShape(b.shape))
        if self.auto_broadcast != "pdpd" or self.axis == -1:
            return b
        shape = b.shape[: max(a.ndim - self.axis, 0)]
        return b.reshape(shape + (1,) * (a.ndim - self.axis - len(shape)))


HELD_IN_BYTES = (u1, u3, u6)
"""Element types of which a byte holds one element in its low bits."""


def require_plain(op: Operator) -> None:
    """Raise for inputs of u1, u3 or u6: the bytes that hold their elements would not wrap around as these types do."""
    for element_type in op.input_types:
        if element_type in HELD_IN_BYTES:
            op.fail("execution of {} on {} is not supported", op.type, element_type, code=NOT_SUPPORTED)


class BinaryBase(ElementwiseBase):
    """Base of elementwise operations of two inputs ``a`` and ``b`` of one type."""

    arguments = "left_node:a right_node:b auto_broadcast="
    neutral: float | None = None
    """The ``b`` that leaves every ``a`` unchanged; if ``commutes``, also the ``a`` that leaves every ``b``
    unchanged."""
    commutes = False
    function: ClassVar[Callable[..., Array]]
    """The NumPy function of the operation, if it is one.

    ``run`` calls it through ``compute``; the fast form and the fast kernel of this class call it directly. So a class
    that overrides ``compute`` either declares no ``function`` or has its own form and kernel, unless both give the same
    results.
    """

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        element_type = self.shared_type(a=a, b=b)
        return TensorType(self.result_type(element_type), self.broadcast_shapes(a.shape, b.shape))

    def result_type(self, element_type: ElementType) -> ElementType:
        """Return the output's type for inputs of the given type; raise if the inputs must not have that type."""
        raise NotImplementedError

    def run(self, a: Array, b: Array) -> Array:
        require_plain(self)
        return stored(np.asarray(self.compute(as_native(a), as_native(self.aligned(a, b)))), a.dtype)

    def compute(self, a: Array, b: Array) -> Array:
        """Return the result for arrays of a type that NumPy computes in."""
        return type(self).function(a, b)

    def infer_value(self, *inputs: TensorType) -> Value | None:
        a, b = (tensor.bounds_or_unknown() for tensor in inputs)
        if a is None or b is None:
            return None
        lower, upper = self.bounds(a, b)
        if self.input_types[0].is_real:  # an unknown number can be NaN or infinite
            unknown = a.is_unknown | self.aligned(a.lower, b.is_unknown)
            lower, upper = np.where(unknown, np.nan, lower), np.where(unknown, np.nan, upper)
        symbols, sizes, may_wrap = self.symbols(a, b), self.sizes(a, b), self.may_wrap(a, b)
        return from_bounds(self.output_types[0], lower, upper, symbols, sizes=sizes, may_wrap=may_wrap)

    def bounds(self, a: Value, b: Value) -> tuple[Array, Array]:
        """Return the least and the greatest result, NaN if unknown: at the ends of the bounds of both inputs if the
        operation is ``monotone`` in both."""
        lower, upper = hull(self.at_corners(a, b))
        known = (self.monotone == (0, 1)) | (a.lower == a.upper) & self.aligned(a.lower, b.lower == b.upper)
        return np.where(known, lower, np.nan), np.where(known, upper, np.nan)

    def at_corners(self, a: Value, b: Value) -> list[Array]:
        """Return the results for each choice of the lower and upper bounds."""
        return [np.asarray(self.run(x, y)) for x, y in product((a.lower, a.upper), (b.lower, b.upper))]

    def symbols(self, a: Value, b: Value) -> Array | None:
        """Return the symbols of elements that are unchanged in the result."""
        if self.neutral is None:
            return None
        a_kept, b_kept = self._kept(a, b)
        return np.where(a_kept, a.symbols, np.where(b_kept, self.aligned(a.lower, b.symbols), 0))

    def sizes(self, a: Value, b: Value) -> Mask:
        """Return the mask of the elements of the result that are computed from sizes only."""
        return a.is_size & self.aligned(a.lower, b.is_size)

    def may_wrap(self, a: Value, b: Value) -> Mask:
        """Return the mask of the elements of the result that may not fit an integer type; see ``from_bounds``."""
        return True

    def unchanged(self, a: Value, b: Value) -> NDArray[np.bool_]:
        """Return the mask of the elements of the result that are certainly an element of ``a`` or ``b``."""
        a_kept, b_kept = self._kept(a, b)
        return a_kept | b_kept

    def _kept(self, a: Value, b: Value) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return two masks: where ``b`` is neutral, and where ``a`` is."""
        a_kept = self.aligned(a.lower, (b.lower == self.neutral) & (b.upper == self.neutral))
        return a_kept, self.commutes & (a.lower == self.neutral) & (a.upper == self.neutral)


def hull(corners: list[Array]) -> tuple[Array, Array]:
    """Return the least and the greatest of all corners; NaN where a corner is NaN."""
    return np.min(corners, axis=0), np.max(corners, axis=0)
