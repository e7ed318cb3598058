"""What layers and models need to create layers; ``ovir.build`` does it and is imported on the first use.

``ovir.build`` works on layers, so this module cannot import it as others do. It registers itself here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ovir.graph.layers import Layer


class Builder(Protocol):
    """What ``ovir.build`` provides."""

    def apply(self, type_name: str, *operands: Any) -> Layer:
        """Return a new layer that applies an operation to layers, ports, arrays or numbers."""

    def assemble(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Sequence[Layer], str]:
        """Return the layers for the arguments of ``Model``, joined and numbered, and the name of the model."""

    def release(self, layers: Sequence[Layer]) -> None:
        """Make the layers of a model that could not be made free again."""


_provided: list[Builder] = []


def provide_builder(builder: Builder) -> None:
    """Set what creates layers; ``ovir.build`` calls this when it is imported."""
    _provided[:] = [builder]


def builder() -> Builder:
    """Return what creates layers."""
    if not _provided:
        import_module("ovir.build.assembly")
    return _provided[0]


class Arithmetic:
    """The arithmetic of layers and of output ports: ``a + b`` is a new layer that adds them.

    The other operand is a layer, a port, an array or a number; a number takes the element type of this operand.
    """

    __slots__ = ()
    __array_ufunc__ = None  # so that ``array + layer`` is left to the layer

    def __add__(self, other: Any) -> Layer:
        return builder().apply("Add", self, other)

    def __radd__(self, other: Any) -> Layer:
        return builder().apply("Add", other, self)

    def __sub__(self, other: Any) -> Layer:
        return builder().apply("Subtract", self, other)

    def __rsub__(self, other: Any) -> Layer:
        return builder().apply("Subtract", other, self)

    def __mul__(self, other: Any) -> Layer:
        return builder().apply("Multiply", self, other)

    def __rmul__(self, other: Any) -> Layer:
        return builder().apply("Multiply", other, self)

    def __truediv__(self, other: Any) -> Layer:
        return builder().apply("Divide", self, other)

    def __rtruediv__(self, other: Any) -> Layer:
        return builder().apply("Divide", other, self)

    def __mod__(self, other: Any) -> Layer:
        return builder().apply("FloorMod", self, other)

    def __rmod__(self, other: Any) -> Layer:
        return builder().apply("FloorMod", other, self)

    def __pow__(self, other: Any) -> Layer:
        return builder().apply("Power", self, other)

    def __rpow__(self, other: Any) -> Layer:
        return builder().apply("Power", other, self)

    def __matmul__(self, other: Any) -> Layer:
        return builder().apply("MatMul", self, other)

    def __rmatmul__(self, other: Any) -> Layer:
        return builder().apply("MatMul", other, self)

    def __neg__(self) -> Layer:
        return builder().apply("Negative", self)

    def __abs__(self) -> Layer:
        return builder().apply("Abs", self)
