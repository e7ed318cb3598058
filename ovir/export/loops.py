"""Loops that exporters build themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ovir.core.element_types import ElementType, boolean, i64
from ovir.core.shapes import PartialShape
from ovir.export.graph import Graph
from ovir.export.sizes import Size, vector
from ovir.export.tensors import Tensor


@dataclass(frozen=True)
class Step:
    """The results of a step of a loop: the next states, tensors that are stacked over all steps, and whether the loop
    goes on, by default always."""

    states: Sequence[Tensor]
    stacked: Sequence[Tensor] = ()
    goes_on: Tensor | None = None


def loop(
    graph: Graph, steps: Size, states: Sequence[Tensor], step: Callable[[Graph, Tensor, Sequence[Tensor]], Step]
) -> list[Tensor]:
    """Run at most ``steps`` steps; return the last states, and then what was stacked along a new first dimension.

    ``step`` gets the graph of the body, the number of the step and the states.
    """
    body = graph.child()
    scalar = PartialShape([])
    number, go = body.input(i64, scalar), body.input(boolean, scalar)
    inputs = [body.input(state.element_type, state.shape) for state in states]
    made = step(body, number, inputs)
    outputs = [body.Identity(go) if made.goes_on is None else made.goes_on, *made.states, *made.stacked]
    types: list[ElementType] = [tensor.element_type for tensor in outputs[1:]]
    attribute = body.body([number, go, *inputs], outputs, "step")
    trips = graph.Squeeze(vector(graph, [steps]))
    return graph.node(
        "Loop", trips, graph.constant(True), *states, body=attribute, outputs=len(types), element_type=types
    )
