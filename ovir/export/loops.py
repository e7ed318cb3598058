"""Bodies: those of Loop, If and TensorIterator, and loops that exporters build themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ovir.core.element_types import ElementType, boolean, i64
from ovir.core.shapes import PartialShape
from ovir.export.onnx_graph import Graph, Tensor
from ovir.model import Model


@dataclass
class ExportableBody:
    """A body that is exported with ``export``."""

    model: Model
    export: Callable[[Graph, Sequence[Tensor | None]], list[Tensor]]
    """Add the body to a graph, whose parameters are given, except those that nothing reads; return its results."""


@dataclass(frozen=True)
class LoopStep:
    """The results of a step of a loop: the next states, tensors that are stacked over all steps, and whether the loop
    goes on, by default always."""

    states: Sequence[Tensor]
    stacked: Sequence[Tensor] = ()
    goes_on: Tensor | None = None


Step = Callable[[Graph, Tensor, Sequence[Tensor]], LoopStep]
"""Gets the graph of the body, the number of the step and the states."""


def loop(graph: Graph, steps: Tensor, states: Sequence[Tensor], step: Step) -> list[Tensor]:
    """Run a loop that an operation becomes, as ``iterate`` does. The engine leaves such operations to NumPy."""
    if graph.needs_kernels:
        graph.fail("the engine leaves it to NumPy, because onnxruntime would run a loop of many small operators")
    return iterate(graph, steps, states, step, graph.constant(True))


def iterate(graph: Graph, steps: Tensor, states: Sequence[Tensor], step: Step, condition: Tensor) -> list[Tensor]:
    """Run at most ``steps`` steps; return the last states, and then the tensors stacked along a new first dimension.

    The shapes of ``states`` hold in all steps. Nothing runs unless ``condition`` is true.
    """
    body = graph.child()
    scalar = PartialShape([])
    number, go = body.input(i64, scalar), body.input(boolean, scalar)
    inputs = [body.input(state.element_type, state.shape) for state in states]
    made = step(body, number, inputs)
    outputs = [made.goes_on or go, *made.states, *made.stacked]
    types: list[ElementType] = [tensor.element_type for tensor in outputs[1:]]
    return graph.node(
        "Loop",
        graph.as_scalar(steps),
        condition,
        *states,
        body=body.body([number, go, *inputs], outputs, "step"),
        outputs=len(types),
        element_type=types,
    )
