"""Tensors of an ONNX graph under construction."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape

UNKNOWN = PartialShape(None)


@dataclass(frozen=True, eq=False, slots=True)
class Tensor:
    """A tensor of an ONNX graph: an input, an initializer or an output of a node.

    ``shape`` is what inference knows of a tensor of the IR model; for tensors between the nodes of one layer it is
    unknown unless the exporter adds it (``graph.shaped``). ``constant`` is the array if it is the same in every run.
    """

    value: ir.Value
    element_type: ElementType
    shape: PartialShape = UNKNOWN
    constant: Array | None = None

    @property
    def rank(self) -> int | None:
        """Return the number of dimensions, None if it is unknown."""
        return self.shape.rank

    @property
    def name(self) -> str:
        """Return the name in the ONNX graph, which may be given later."""
        return self.value.name or ""
