"""The exporters of operations by class."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ovir.export.graph import Tensor
from ovir.ops.base.operator import Operator

Export = Callable[..., "Tensor | Sequence[Tensor]"]
E = TypeVar("E", bound=Export)


@dataclass(frozen=True)
class Exporter:
    """How an operation version is exported, or why it is not."""

    export: Export | None
    target: str
    """The operators of ONNX, for the table in docs/onnx.md."""
    limits: str = ""
    """Cases that are not exported, or the reason why the operation is not exported at all."""


_exporters: dict[type[Operator], Exporter] = {}


def exports(*operations: type[Operator], to: str, limits: str = "") -> Callable[[E], E]:
    """Register a function as the exporter of operation versions.

    The function is called as ``function(graph, op, *inputs)``: a ``Graph``, the operation as it is applied
    (``Operator.applied``), and a ``Tensor`` for each input, None for an optional input that is left out. It returns the
    tensors of the outputs. A keyword ``bodies`` in its signature asks for the bodies of the layer. It raises
    ``NotExportable`` (``graph.require``, ``graph.fail``) for what cannot be exported. ``to`` and ``limits`` are written
    to docs/onnx.md.
    """

    def add(function: E) -> E:
        for operation in operations:
            _add(operation, Exporter(function, to, limits))
        return function

    return add


def not_exported(*operations: type[Operator], reason: str) -> None:
    """Register the reason why operation versions are not exported."""
    for operation in operations:
        _add(operation, Exporter(None, "", reason))


def exporter_of(operation: type[Operator]) -> Exporter | None:
    """Return the exporter of an operation, None if there is none.

    It is in the module of ``ovir.export.ops`` that has the name of the operation's module, which is imported.
    """
    if operation not in _exporters and operation.__module__.startswith(_OPERATIONS):
        name = "ovir.export.ops." + operation.__module__.removeprefix(_OPERATIONS)
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
    return _exporters.get(operation)


_OPERATIONS = "ovir.ops."


def _add(operation: type[Operator], exporter: Exporter) -> None:
    if operation in _exporters:
        raise ValueError(f"{operation.type}-{operation.opset} has two exporters")
    _exporters[operation] = exporter
