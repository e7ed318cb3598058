"""The exporters of operations by class, and their table in docs/onnx.md."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from ovir.core.element_types import f64
from ovir.lowering.registry import exported_parts
from ovir.ops import find
from ovir.ops.base.operator import Operator
from ovir.ops.base.opsets import OPERATIONS

if TYPE_CHECKING:  # it needs the package onnx, which a module that registers an exporter does not
    from ovir.export.onnx_graph import Graph, Tensor

Export = Callable[..., "Tensor | Sequence[Tensor] | None"]
E = TypeVar("E", bound=Export)


@dataclass(frozen=True)
class Exporter:
    """The export of an operation version."""

    export: Export | None
    """The function; None if the parts of the operation's decomposition are exported in its place."""
    target: str
    """The operators of ONNX, for the table in docs/onnx.md."""
    limits: str = ""
    """Cases that are not exported, or that differ."""


_exporters: dict[type[Operator], Exporter] = {}
_OPERATIONS = "ovir.ops."


def exports(*operations: type[Operator], to: str = "{}", limits: str = "", of_reals: bool = False) -> Callable[[E], E]:
    """Register a function as the exporter of operation versions.

    The function is called as ``function(graph, op, *inputs)``: a ``Graph``, the operation as it is applied
    (``Operator.applied``), and a ``Tensor`` for each input, None for an optional input that is left out. It returns the
    tensors of the outputs, which are converted to their element types, or None to leave the layer to its decomposition
    (``ovir.lowering``), whose parts are then exported. A keyword ``bodies`` in its signature asks for the bodies of the
    layer. A keyword ``codes`` asks for a call with the ``Codes`` of compressed matrices, which are None among the
    inputs; if it returns None, a call without them follows. It raises ``NotExportable`` (``graph.require``,
    ``graph.fail``) for what cannot be exported. ``to`` and ``limits`` are written to docs/onnx.md; ``{}`` in ``to``
    stands for the type of the operation. With ``of_reals``, the function gets its first input in f32 or f64 only, and
    its result is rounded for an integer type.
    """

    def add(function: E) -> E:
        for operation in operations:
            if operation in _exporters:
                raise ValueError(f"{operation.type}-{operation.opset} has two exporters")
            export = _of_reals(function) if of_reals else function
            _exporters[operation] = Exporter(export, to.replace("{}", operation.type), limits)
        return function

    return add


def _of_reals(function: Callable[..., Any]) -> Export:
    """Return an exporter that computes integers in f64 and rounds them, and narrow real numbers in f32."""

    @wraps(function)
    def export(graph: Graph, op: Operator, data: Tensor, *others: Tensor) -> Any:
        is_real = data.element_type.is_real
        found = function(graph, op, graph.cast(data, data.real_type if is_real else f64), *others)
        return found if is_real or found is None else graph.Round(found)

    return export


def exporter_of(operation: type[Operator]) -> Exporter | None:
    """Return the exporter of an operation, None if there is none.

    It is in the module of ``ovir.export.ops`` that has the name of the operation's module, which is imported. An
    operation without one is exported as the parts of its decomposition (``ovir.lowering``).
    """
    if operation not in _exporters and operation.__module__.startswith(_OPERATIONS):
        name = "ovir.export.ops." + operation.__module__.removeprefix(_OPERATIONS)
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
    if operation not in _exporters and (parts := exported_parts(operation)) is not None:
        return Exporter(None, *parts)
    return _exporters.get(operation)


def why_not_exported(operation: type[Operator]) -> str:
    """Return the reason why an operation without an exporter is not exported."""
    return f"ONNX does not {operation.unmatched}" if operation.unmatched else "there is no exporter for it"


# --------------------------------------------------------------------------- the table of docs/onnx.md

_STRUCTURE = {
    "Parameter": "input",
    "Result": "output",
    "Const": "initializer",
    "ReadValue": "input",
    "Assign": "output",
}
"""The parts of an ONNX graph for the operations that make the structure of a model."""
NOT_EXPORTED = "in parts by NumPy"


def exported_as(operation: type[Operator]) -> tuple[str, str]:
    """Return the operators that an operation version is exported as, and its limits.

    For a version that is not exported, these are ``NOT_EXPORTED`` and the reason. Raises ImportError without onnx.
    """
    exporter = exporter_of(operation)
    if operation.type in _STRUCTURE:
        return _STRUCTURE[operation.type], ""
    if exporter is None:
        return NOT_EXPORTED, why_not_exported(operation)
    return exporter.target, exporter.limits


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield each operation version with ``exported_as``."""
    for name, births in sorted(OPERATIONS.items()):
        for birth in births:
            operation = find(name, birth)
            assert operation is not None
            yield (f"{name}-{birth}", *exported_as(operation))
