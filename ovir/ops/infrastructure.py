"""Parameter, Const and Result: where data enters and leaves a model."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from math import prod
from typing import Protocol, Self

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, dynamic, string
from ovir.core.shapes import PartialShape, static_shape
from ovir.core.tensor_types import TensorType
from ovir.core.values import MAX_ELEMENTS, Value
from ovir.ops.base.attributes import attribute
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator


@operator("Parameter", opset=1, until=17)
class Parameter(Operator):
    """An input of the model.

    ``shape`` may hold unknown sizes or intervals, or be of unknown rank.

    >>> ops.parameter([-1, 3], "f32", name="x").outputs[0]
    <output 0 of 'x': f32[?,3]>
    """

    recipe = "anything any"
    shape: PartialShape = attribute()
    element_type: ElementType = attribute(default=dynamic)
    pure = False

    def infer(self) -> TensorType:
        return TensorType(self.element_type, self.shape)


class Blob(Protocol):
    """The bytes of a constant, with the methods that decode them."""

    def array(self) -> Array:
        """Return all of the data, read-only."""

    def slices(self, which: slice | Array) -> Array:
        """Return some slices along the first axis, each of a multiple of 8 elements."""

    def elements(self, start: int, stop: int) -> Array:
        """Return a range of the flat array; ``start`` is a multiple of 8."""

    def stored(self) -> Array:
        """Return the bytes as they are in the .bin, read-only."""


@operator("Const", opset=1, function_name="constant")
class Const(Operator):
    """Data from the weights: ``size`` bytes at ``offset`` of the .bin.

    >>> ops.constant([[1.0, 2.0]])
    [[1. 2.]]

    Source: Constant-1
    """

    element_type: ElementType = attribute(is_strict=True)
    shape: tuple[int, ...] = attribute(minimum=0)
    offset: int = attribute(default=0, minimum=0, is_strict=True)
    size: int = attribute(default=0, minimum=0, is_strict=True)
    value: str = attribute(default="")
    """Text that some tools write in place of weights; OpenVINO uses its bytes as the data."""

    constant_data: Blob | None = None
    """The source of the data when it is first asked for."""
    _data: Array | None = None

    def __getstate__(self) -> dict[str, object]:
        state = vars(self).copy()
        if self.constant_data is not None:
            state.pop("_data", None)  # it can be decoded again
        return state

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return copy(self)  # shares the data, which is read-only and possibly large

    @classmethod
    def of(cls, array: Array, element_type: ElementType | None = None, *, copy: bool = True) -> Const:
        """Return a constant that holds a copy of an array, or the array itself, for a layer that is built by hand.

        ``element_type`` is needed for types that share their NumPy dtype with another one, such as u1 and nf4.
        """
        const = cls(element_type=element_type or ElementType.from_dtype(array.dtype), shape=array.shape)
        const._data = array.copy() if copy else array.view()
        const._data.flags.writeable = False
        return const

    @property
    def has_data(self) -> bool:
        """Return whether there is data: an array, or a place to read one from."""
        return self._data is not None or self.constant_data is not None

    @property
    def data(self) -> Array:
        """Return the decoded, read-only array; a view of the .bin for types that it stores unpacked."""
        if self._data is None:
            self._data = self.decoded()
        return self._data

    def decoded(self) -> Array:
        """Return ``data`` without caching the data decoded for this call."""
        if self._data is not None:
            return self._data
        return self.require_known(self.constant_data, "this constant has no data").array()

    @property
    def has_slices(self) -> bool:
        """Return whether slices along the first axis can be decoded on their own: they begin with whole bytes."""
        if not self.is_packed or self._data is not None:
            return bool(self.shape)
        return bool(self.shape) and self.constant_data is not None and prod(self.shape[1:]) % 8 == 0

    def slices(self, which: slice | Array) -> Array:
        """Return slices along the first axis: a range of them, or one for each index."""
        if self._data is None and self.is_packed and self.constant_data is not None:
            return self.constant_data.slices(which)
        return np.asarray(self.data[which])

    def elements(self, start: int, stop: int) -> Array:
        """Return a range of the flat array, decoded without the rest; ``start`` is a multiple of 8."""
        if self._data is None and self.constant_data is not None:
            return self.constant_data.elements(start, stop)
        return self.data.ravel()[start:stop]

    def stored(self) -> Array | None:
        """Return the bytes of the .bin, read-only; None if the constant holds an array instead."""
        return None if self._data is not None or self.constant_data is None else self.constant_data.stored()

    @property
    def is_packed(self) -> bool:
        """Return whether several elements share a byte in the .bin, so that reading them requires decoding."""
        return 0 < self.element_type.bits < 8

    def infer(self) -> TensorType:
        return TensorType(self.element_type, static_shape(self.shape), self._known_value())

    def _known_value(self) -> Value | None:
        """Return the data, which is decoded when it is looked at; None where it is missing, or much to decode."""
        if not self.has_data:
            return None
        if self.element_type == string:  # whose data may turn out to be none
            return Value(self.data) if prod(self.shape) <= MAX_ELEMENTS else None
        if self.is_packed and prod(self.shape) > MAX_ELEMENTS:
            return None
        return Value(self.run)

    def applied(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> Self:
        """Return the constant itself, so that its data is decoded once."""
        return self

    def run(self) -> Array:
        return self.data


@operator("Result", opset=1)
class Result(Operator):
    """An output of the model; it passes its input on and has no output port.

    >>> ovir.compile_model(ovir.Model([ops.result([1.0, 2.0])], []))({})[0]
    [1. 2.]
    """

    recipe = "anything any"

    def infer(self, data: TensorType) -> tuple[TensorType, ...]:
        return ()

    def run(self, data: Array) -> tuple[Array, ...]:
        return ()
