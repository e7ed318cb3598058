"""If, Loop and TensorIterator: operations with bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ovir.core.element_types import boolean, i64
from ovir.core.shapes import PartialShape
from ovir.export.exporters import exports
from ovir.export.loops import ExportableBody, LoopStep, iterate
from ovir.export.onnx_graph import FIRST, Graph, Tensor
from ovir.ops.base.bodies import InputMap, OutputMap
from ovir.ops.control_flow import If, IterationBase, Loop, TensorIterator, by_output

_UNLIMITED = 2**63 - 1
"""The largest number of iterations."""


@exports(If, to="If")
def if_(graph: Graph, op: If, cond: Tensor, *inputs: Tensor, bodies: Mapping[str, ExportableBody]) -> list[Tensor]:
    """Export as If; the branches read the inputs from the graph around them."""
    branches = {f"{key}_branch": _branch(graph, op, key, (cond, *inputs), body) for key, body in bodies.items()}
    return graph.node(
        "If",
        graph.cast(graph.as_scalar(cond), boolean),
        outputs=len(op.output_types),
        element_type=op.output_types,
        **branches,
    )


def _branch(graph: Graph, op: If, key: str, inputs: Sequence[Tensor], exportable: ExportableBody) -> object:
    wiring = op.wiring[key]
    given: list[Tensor | None] = [None] * wiring.parameter_count
    for item in wiring.inputs:
        if item.external >= 0:
            given[item.parameter] = inputs[item.external]
    body = graph.child()
    found = exportable.export(body, given)
    results = [found[item.result] for item in by_output(wiring.outputs)]
    for index, (result, expected) in enumerate(zip(results, op.output_shapes, strict=True)):
        if expected.rank == 1 and result.rank == 0:
            results[index] = body.Reshape(result, [1])
    return body.body([], results, key)


@exports(Loop, to="Loop")
def loop(
    graph: Graph,
    op: Loop,
    trip_count: Tensor,
    condition: Tensor,
    *inputs: Tensor,
    bodies: Mapping[str, ExportableBody],
) -> list[Tensor]:
    """Export as Loop; a negative trip count becomes the largest one."""
    count = graph.cast(graph.as_scalar(trip_count), i64)
    count = graph.Where(graph.Less(count, 0), _UNLIMITED, count)
    (again,) = [item.result for item in op.wiring["body"].outputs if item.purpose == "execution_condition"]
    go = graph.cast(graph.as_scalar(condition), boolean)
    return _iterated(graph, op, (trip_count, condition, *inputs), bodies["body"], count, go, again)


@exports(TensorIterator, to="Loop")
def tensor_iterator(
    graph: Graph, op: TensorIterator, *inputs: Tensor, bodies: Mapping[str, ExportableBody]
) -> list[Tensor]:
    """Export as Loop, which slices the inputs in its body."""
    wiring = op.wiring["body"]
    sliced = [item for item in wiring.inputs if item.axis is not None and item.external >= 0]
    if sliced:
        count = _count_parts(graph, sliced[0], inputs[sliced[0].external])
    else:
        joined = [item for item in wiring.outputs if item.axis is not None]
        parts = [abs(item.end - item.start) // max(item.part_size, 1) for item in joined]
        count = graph.constant(parts[0] if parts else 1)
    return _iterated(graph, op, inputs, bodies["body"], count, graph.constant(True))


def _iterated(
    graph: Graph,
    op: IterationBase,
    inputs: Sequence[Tensor],
    exportable: ExportableBody,
    count: Tensor,
    condition: Tensor,
    again: int | None = None,
) -> list[Tensor]:
    """Return the outputs of a Loop or TensorIterator; ``again`` is the result that asks for another iteration.

    The Loop of ONNX carries the tensors with back edges, and the results of the last iteration that are outputs. It
    stacks the parts of the other outputs along a new first axis.
    """
    wiring, outputs = op.wiring["body"], by_output(op.wiring["body"].outputs)
    parameters, results = exportable.model.inputs, exportable.model.outputs
    starts = {item.parameter: inputs[item.external] for item in wiring.inputs if item.external >= 0}
    states = []
    for edge in wiring.back_edges:
        parameter = parameters[edge.parameter]
        start = starts.get(edge.parameter) or graph.constant(0, parameter.element_type)
        states.append(graph.shaped(start, parameter.shape))
    carried = [edge.result for edge in wiring.back_edges]
    for item in outputs:
        if item.axis is None and item.result not in carried:
            carried.append(item.result)
            states.append(graph.number(0, op.output_types[item.external]))  # no step reads it
    stacked = [item for item in outputs if item.axis is not None]

    def step(body: Graph, number: Tensor, before: Sequence[Tensor]) -> LoopStep:
        given: list[Tensor | None] = [None] * wiring.parameter_count
        for item in wiring.inputs:
            if item.purpose == "current_iteration":
                port = parameters[item.parameter]
                shape = [1] * (port.shape.rank or 0)
                given[item.parameter] = body.cast(body.Reshape(number, shape) if shape else number, port.element_type)
            if item.external >= 0:
                tensor = inputs[item.external]
                given[item.parameter] = tensor if item.axis is None else _part(body, item, tensor, number)
        for edge, state in zip(wiring.back_edges, before, strict=False):
            given[edge.parameter] = state
        found = exportable.export(body, given)
        parts = [found[item.result] for item in stacked]
        return LoopStep(
            [found[result] for result in carried],
            [body.Reshape(part, [1]) if part.rank == 0 else part for part in parts],
            None if again is None else body.cast(body.as_scalar(found[again]), boolean),
        )

    made = iterate(graph, count, states, step, condition)
    rest = iter(made[len(carried) :])
    return [
        made[carried.index(item.result)]
        if item.axis is None
        else _joined(graph, op, item, next(rest), results[item.result].shape)
        for item in outputs
    ]


def _joined(graph: Graph, op: IterationBase, item: OutputMap, stacked: Tensor, part: PartialShape) -> Tensor:
    """Return the parts, which are stacked along a new first axis, concatenated along the axis of the output."""
    expected = op.output_shapes[item.external]
    if item.stride < 0:
        stacked = graph.Slice(stacked, [-1], [FIRST], [0], [-1])
    if part.rank is None:
        graph.fail("the rank of {} is unknown", item.target)
    rank = max(part.rank, 1)
    axis = op.normalize_axis(item.axis or 0, rank)
    moved = graph.Transpose(stacked, perm=[*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]) if axis else stacked
    if expected.is_static:
        return graph.in_shape(moved, graph.constant(expected.to_tuple(), i64))
    before, merged, after = graph.node("Split", graph.Shape(moved), [axis, 2, rank - axis - 1], outputs=3)
    sizes = graph.Concat(before, graph.reduced("ReduceProd", merged, [0]), after, axis=0)
    return graph.in_shape(moved, sizes)


def _from_front(graph: Graph, position: int, length: Tensor) -> Tensor:
    return graph.constant([position]) if position >= 0 else graph.Add(length, position)


def _count_parts(graph: Graph, item: InputMap, tensor: Tensor) -> Tensor:
    """Return the number of whole parts between start and end, as a scalar."""
    length = graph.size_of(tensor, item.axis or 0)
    first, last = (_from_front(graph, position, length) for position in (item.start, item.end))
    low, high = (first, last) if item.stride > 0 else (last, first)
    step = abs(item.stride)
    rest = graph.Sub(graph.Add(high, 1 - item.part_size + step), low)
    return graph.as_scalar(graph.Div(graph.Max(rest, 0), step))


def _part(graph: Graph, item: InputMap, tensor: Tensor, iteration: Tensor) -> Tensor:
    """Return the part of a sliced input that an iteration reads."""
    axis = item.axis or 0
    back = item.part_size - 1 if item.stride < 0 else 0
    first = _from_front(graph, item.start, graph.size_of(tensor, axis))
    moved = graph.Reshape(graph.Mul(iteration, item.stride) if item.stride != 1 else iteration, [1])
    offset = graph.Sub(first, back) if back else first
    start = moved if offset.number == 0 else graph.Add(moved, offset)
    part = graph.Slice(tensor, start, graph.Add(start, item.part_size), [axis])
    shape = tensor.shape.with_dim(axis % tensor.rank, item.part_size) if tensor.rank else tensor.shape
    return graph.shaped(part, shape)
