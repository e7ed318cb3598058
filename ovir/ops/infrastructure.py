"""Parameter, Const and Result: where data enters and leaves a model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ovir.arrays import Array
from ovir.element_types import ElementType, dynamic
from ovir.ops.attributes import attribute
from ovir.ops.operator import Operator, operator
from ovir.types import PartialShape
from ovir.values import MAX_ELEMENTS, TensorType, Value


@operator("Parameter", opset=1)
class Parameter(Operator):
    """An input of the model. ``shape`` may hold unknown sizes, intervals, or be of unknown rank."""

    element_type: ElementType = attribute(default=dynamic)
    shape: PartialShape = attribute()
    pure = False

    def infer(self) -> TensorType:
        return TensorType(self.element_type, self.shape)


@operator("Const", opset=1)
class Const(Operator):
    """Data from the weights: ``size`` bytes at ``offset`` of the .bin."""

    element_type: ElementType = attribute()
    shape: tuple[int, ...] = attribute(minimum=0)
    offset: int = attribute(default=0, minimum=0)
    size: int = attribute(default=0, minimum=0)
    value: str = attribute(default="")
    """Text that some tools put in place of weights; OpenVINO takes its bytes as the data."""

    _load: Callable[[], Array] | None = None
    _data: Array | None = None

    def set_loader(self, load: Callable[[], Array]) -> None:
        """Where the data comes from when it is first asked for."""
        self._load = load

    @property
    def data(self) -> Array:
        """The decoded, read-only array; for types that a .bin holds as they are, a view of it."""
        if self._data is None:
            self.require(self._load is not None, "this constant has no data")
            assert self._load is not None
            self._data = self._load()
        return self._data

    def infer(self) -> TensorType:
        packed = self.element_type.bits < 8  # decoding takes time and memory: only when small
        known = not packed or int(np.prod(self.shape)) <= MAX_ELEMENTS
        return TensorType(self.element_type, PartialShape(self.shape), Value(self.data) if known else None)

    def run(self) -> Array:
        return self.data


@operator("Result", opset=1)
class Result(Operator):
    """An output of the model; it hands its input on and has no output port of its own."""

    def infer(self, data: TensorType) -> tuple[TensorType, ...]:
        return ()

    def run(self, data: Array) -> tuple[Array, ...]:
        return ()
