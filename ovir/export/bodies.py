"""Bodies of Loop, If and TensorIterator, as the exporters of these operations see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from ovir.core.tensor_types import TensorType
from ovir.export.graph import Graph
from ovir.export.tensors import Tensor
from ovir.model import Model


@dataclass
class Body:
    """An exported body: its graph, to which nodes can be added, and the tensors of its parameters and results."""

    graph: Graph
    inputs: list[Tensor]
    """The parameters that no tensor around the body was given for."""
    outputs: list[Tensor]
    name: str

    def attribute(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> ir.Graph:
        """Return the graph with these inputs and outputs; outputs that no node of it makes are copied."""
        own = {value for node in self.graph.nodes for value in node.outputs}
        seen: set[ir.Value] = set()
        results = []
        for tensor in outputs:
            result = tensor if tensor.value in own - seen else self.graph.Identity(tensor)
            seen.add(result.value)
            results.append(result)
        return self.graph.body(inputs, results, self.name)


@dataclass
class ExportableBody:
    """A body that is exported with ``export``."""

    model: Model
    export: Callable[[Sequence[Tensor | None]], Body]
    """Export the body. A parameter for which a tensor is given reads it; the others become inputs of the graph."""

    @property
    def parameters(self) -> list[TensorType]:
        """Return the types of the parameters."""
        return [port.type for port in self.model.inputs]

    @property
    def results(self) -> list[TensorType]:
        """Return the types of the results."""
        return [port.type for port in self.model.outputs]
