"""Which functions of which opsets create the layers of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ovir.build.opset import functions
from ovir.graph.layers import Layer
from ovir.ops.base.opsets import NEWEST_OPSET, OPERATIONS, Version


def version_of(layer: Layer) -> Version | None:
    """Return the version of a layer's operation; None if no opset has it."""
    op = layer.operator
    return OPERATIONS[op.type][op.opset] if op is not None and op.opset else None


class Functions:
    """The functions for the operation versions of a model.

    Most are from one opset, the oldest of those that have the most of them; the others are from the oldest opset that
    has them.
    """

    def __init__(self, layers: Iterable[Layer]) -> None:
        counts = Counter(version for layer in layers if (version := version_of(layer)) is not None)
        held = {opset: set(functions(opset).values()) for opset in range(1, NEWEST_OPSET + 1)}
        self.main = max(held, key=lambda opset: (sum(n for v, n in counts.items() if v in held[opset]), -opset))
        self._main = held[self.main]
        self.others = sorted({version.opset for version in counts if version not in self._main})

    def name(self, version: Version) -> str:
        """Return the function for an operation version, with its module."""
        module = "ops" if version in self._main else f"opset{version.opset}"
        return f"{module}.{version.functions[0]}"

    @property
    def imports(self) -> list[str]:
        """Return the lines that import the modules."""
        others = f"from ovir import {', '.join(f'opset{opset}' for opset in self.others)}" if self.others else ""
        return [*([others] if others else []), f"from ovir import opset{self.main} as ops"]
