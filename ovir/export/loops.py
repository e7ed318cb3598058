"""Bodies: those of Loop, If and TensorIterator, and loops that exporters build themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from ovir.core.element_types import ElementType, boolean, i64
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.export.onnx_graph import Graph, Tensor
from ovir.model import Model

SLOW_LOOP = "onnxruntime would run a loop of many small operators"


@dataclass
class ExportedBody:
    """An exported body: its graph, to which nodes can be added, and the tensors of its parameters and results."""

    graph: Graph
    inputs: list[Tensor]
    """The parameters for which no tensor around the body was given."""
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
    export: Callable[[Sequence[Tensor | None]], ExportedBody]
    """Export the body. A parameter for which a tensor is given reads it; the others become inputs of the graph."""

    @property
    def parameters(self) -> list[TensorType]:
        """Return the types of the parameters."""
        return [port.type for port in self.model.inputs]


@dataclass(frozen=True)
class LoopStep:
    """The results of a step of a loop: the next states, tensors that are stacked over all steps, and whether the loop
    goes on, by default always."""

    states: Sequence[Tensor]
    stacked: Sequence[Tensor] = ()
    goes_on: Tensor | None = None


def loop(
    graph: Graph, steps: Tensor, states: Sequence[Tensor], step: Callable[[Graph, Tensor, Sequence[Tensor]], LoopStep]
) -> list[Tensor]:
    """Run at most ``steps`` steps; return the last states, and then the tensors stacked along a new first dimension.

    ``step`` gets the graph of the body, the number of the step and the states. The engine leaves such operations to
    NumPy.
    """
    graph.leave_to_numpy(SLOW_LOOP)
    body = graph.child()
    scalar = PartialShape([])
    number, go = body.input(i64, scalar), body.input(boolean, scalar)
    inputs = [body.input(state.element_type, state.shape) for state in states]
    made = step(body, number, inputs)
    outputs = [body.Identity(go) if made.goes_on is None else made.goes_on, *made.states, *made.stacked]
    types: list[ElementType] = [tensor.element_type for tensor in outputs[1:]]
    attribute = body.body([number, go, *inputs], outputs, "step")
    return graph.node(
        "Loop",
        graph.as_scalar(steps),
        graph.constant(True),
        *states,
        body=attribute,
        outputs=len(types),
        element_type=types,
    )
