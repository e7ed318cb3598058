"""The table of decompositions: the function for each operation version that older ones can express."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeAlias, TypeVar

from ovir.graph.layers import Layer, Port
from ovir.ops import find
from ovir.ops.base.operator import Operator
from ovir.ops.base.opsets import OPERATIONS

Tensors: TypeAlias = Layer | Port | Sequence[Layer | Port | Callable[[], Layer | Port]]
"""The tensors that take the place of a layer's outputs, in order. A layer in place of a list stands for all of its
outputs; a function in the list is called only if something reads the output."""
Decomposition: TypeAlias = Callable[..., Tensors]
D = TypeVar("D", bound=Decomposition)

LOWERED_FROM = "ovir.lowered_from"
"""The name of the runtime information that says which operation version a layer was decomposed from."""

_decompositions: dict[tuple[str, int], Decomposition] = {}
_exported_parts: dict[tuple[str, int], tuple[str, str]] = {}


class NotLowered(Exception):  # noqa: N818  (it describes a layer, not a fault)
    """A layer that older operation versions cannot express, with the reason."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        """A remedy besides a newer release."""


def refuse(reason: str, hint: str = "") -> NoReturn:
    """Refuse to decompose a layer, in words that follow its title, such as ``reads a tensor of unknown rank``."""
    raise NotLowered(reason, hint)


def lowers(type_name: str, *opsets: int, onnx: str = "its decomposition", limits: str = "") -> Callable[[D], D]:
    """Register a function as the decomposition of an operation's versions, given by the opsets that introduced them.

    The function is called as ``function(op, *inputs)``: the operation as it is applied (``Operator.applied``), and the
    output port that each input reads. It returns the tensors that take the place of the outputs, as layers made with
    the functions of an opset; they must be older than the layer, and may be decomposed further. It calls ``refuse`` for
    what older versions do not express.

    Where the parts are exported to ONNX, docs/onnx.md says that they become the operators ``onnx``, and which cases
    differ (``limits``).
    """

    def add(function: D) -> D:
        for opset in opsets:
            assert opset in OPERATIONS[type_name], f"there is no {type_name}-{opset}"
            if (type_name, opset) in _decompositions:
                raise ValueError(f"{type_name}-{opset} has two decompositions")
            _decompositions[type_name, opset] = function
            _exported_parts[type_name, opset] = onnx, limits
        return function

    return add


def why_without(operation: type[Operator]) -> str:
    """Return the reason why an operation version has no decomposition."""
    return f"older operations do not {operation.unmatched or 'compute the same'}"


def decomposition_of(operation: type[Operator]) -> Decomposition | None:
    """Return the decomposition of an operation version, None if there is none."""
    version = OPERATIONS.get(operation.type, {}).get(operation.opset)
    if version is None or find(operation.type, operation.opset) is not operation:
        return None
    name = f"ovir.lowering.ops.{version.module.rpartition('.')[2]}"
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
    return _decompositions.get((operation.type, operation.opset))


def exported_parts(operation: type[Operator]) -> tuple[str, str] | None:
    """Return the operators of ONNX that a decomposition is exported as, and its limits; None if there is none."""
    return _exported_parts[operation.type, operation.opset] if decomposition_of(operation) is not None else None
