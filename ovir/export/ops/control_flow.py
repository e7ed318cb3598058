"""If, Loop and TensorIterator: operations with bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ovir.core.element_types import boolean, i64
from ovir.core.shapes import PartialShape
from ovir.export.exporters import exports
from ovir.export.loops import ExportableBody, ExportedBody
from ovir.export.onnx_graph import FIRST, Graph, Tensor
from ovir.ops.base.bodies import BodyMap, InputMap, OutputMap
from ovir.ops.control_flow import If, IterationBase, Loop, TensorIterator, by_output

_UNLIMITED = 2**63 - 1
"""The largest number of iterations."""
_SCALAR = PartialShape([])


@exports(If, to="If")
def if_(graph: Graph, op: If, cond: Tensor, *inputs: Tensor, bodies: Mapping[str, ExportableBody]) -> list[Tensor]:
    """Export as If; the branches read the inputs from the graph around them."""
    branches = {f"{key}_branch": _branch(op, key, (cond, *inputs), body) for key, body in bodies.items()}
    return graph.node(
        "If",
        graph.cast(graph.as_scalar(cond), boolean),
        outputs=len(op.output_types),
        element_type=op.output_types,
        **branches,
    )


def _branch(op: If, key: str, inputs: Sequence[Tensor], exportable: ExportableBody) -> object:
    wiring = op.wiring[key]
    given: list[Tensor | None] = [None] * wiring.parameter_count
    for item in wiring.inputs:
        if item.external >= 0:
            given[item.parameter] = inputs[item.external]
    body = exportable.export(given)
    results = [body.outputs[item.result] for item in by_output(wiring.outputs)]
    for index, (result, expected) in enumerate(zip(results, op.output_shapes, strict=True)):
        if expected.rank == 1 and result.rank == 0:
            results[index] = body.graph.Reshape(result, [1])
    return body.attribute([], results)


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
    iteration = _Iteration(graph, op, (trip_count, condition, *inputs), bodies["body"], again)
    return iteration.export(count, graph.cast(graph.as_scalar(condition), boolean))


@exports(TensorIterator, to="Loop")
def tensor_iterator(
    graph: Graph, op: TensorIterator, *inputs: Tensor, bodies: Mapping[str, ExportableBody]
) -> list[Tensor]:
    """Export as Loop, which slices the inputs in its body."""
    sliced = [item for item in op.wiring["body"].inputs if item.axis is not None and item.external >= 0]
    count = _count_parts(graph, sliced[0], inputs[sliced[0].external]) if sliced else _unsliced(op.wiring["body"])
    return _Iteration(graph, op, inputs, bodies["body"], None).export(count, graph.constant(True))


def _unsliced(wiring: BodyMap) -> int:
    """Return the number of iterations of a TensorIterator that slices no input."""
    joined = [item for item in wiring.outputs if item.axis is not None]
    return abs(joined[0].end - joined[0].start) // max(joined[0].part_size, 1) if joined else 1


@dataclass
class _Iteration:
    """The export of a Loop or TensorIterator.

    The Loop of ONNX carries the tensors with back edges, and the results of the last iteration that are outputs. It
    stacks the parts of the other outputs along a new first axis.
    """

    graph: Graph
    op: IterationBase
    inputs: Sequence[Tensor]
    exportable: ExportableBody
    condition: int | None
    """The result of the body that asks for another iteration."""
    initial: list[Tensor] = field(default_factory=list)
    """The first values of the carried tensors."""

    def export(self, count: Tensor | int, condition: Tensor) -> list[Tensor]:
        wiring = self.op.wiring["body"]
        outer = self.graph.child()  # holds the nodes that prepare the parameters
        iteration = outer.input(i64, _SCALAR)
        given, carried = self._parameters(outer, iteration)
        body = self.exportable.export(given)
        body.graph.nodes[:0] = outer.nodes
        again = None
        if self.condition is not None:
            again = body.graph.cast(body.graph.as_scalar(body.outputs[self.condition]), boolean)
        results = [body.outputs[edge.result] for edge in wiring.back_edges]
        outputs = by_output(wiring.outputs)
        positions: dict[int, int] = {}
        for item in outputs:
            if item.axis is None:
                positions[item.external] = self._last(item, body, results)
        stacked = [item for item in outputs if item.axis is not None]
        parts = [body.outputs[item.result] for item in stacked]
        parts = [body.graph.Reshape(part, [1]) if part.rank == 0 else part for part in parts]
        unread = [outer.input(tensor.element_type) for tensor in self.initial[len(carried) :]]
        attribute = body.attribute(
            [iteration, outer.input(boolean, _SCALAR), *carried, *unread],
            [again or body.graph.constant(True), *results, *parts],
        )
        types = [t.element_type for t in (*results, *parts)]
        found = self.graph.node(
            "Loop", count, condition, *self.initial, outputs=len(types), element_type=types, body=attribute
        )
        arrays = {item.external: found[positions[item.external]] for item in outputs if item.axis is None}
        for item, tensor in zip(stacked, found[len(results) :], strict=True):
            arrays[item.external] = self._joined(item, tensor, body.outputs[item.result].shape)
        return [arrays[item.external] for item in outputs]

    def _parameters(self, outer: Graph, iteration: Tensor) -> tuple[list[Tensor | None], list[Tensor]]:
        """Return the source of each parameter of the body, and the parameters that are carried."""
        wiring, types = self.op.wiring["body"], self.exportable.parameters
        given: list[Tensor | None] = [None] * wiring.parameter_count
        for item in wiring.inputs:
            if item.purpose == "current_iteration":
                shape = [1] * (types[item.parameter].shape.rank or 0)
                given[item.parameter] = outer.cast(
                    outer.Reshape(iteration, shape) if shape else iteration, types[item.parameter].element_type
                )
            if item.external >= 0:
                tensor = self.inputs[item.external]
                given[item.parameter] = tensor if item.axis is None else _part(outer, item, tensor, iteration)
        carried = []
        for edge in wiring.back_edges:
            start = given[edge.parameter]
            counts = any(i.purpose == "current_iteration" and i.parameter == edge.parameter for i in wiring.inputs)
            parameter = types[edge.parameter]
            if counts or start is None:
                start = self.graph.constant(0, parameter.element_type)
            self.initial.append(start)
            given[edge.parameter] = outer.input(parameter.element_type, parameter.shape)
            carried.append(given[edge.parameter])
        return given, [tensor for tensor in carried if tensor is not None]

    def _last(self, item: OutputMap, body: ExportedBody, results: list[Tensor]) -> int:
        """Return the position of a carried tensor that is an output, which is added if no back edge carries it."""
        for position, edge in enumerate(self.op.wiring["body"].back_edges):
            if edge.result == item.result:
                return position
        shape, element_type = self.op.output_shapes[item.external], self.op.output_types[item.external]
        sizes = [] if shape.rank is None else [dim.lower for dim in shape]
        zeros = self.graph.Expand(
            self.graph.cast(self.graph.constant(0), element_type), self.graph.constant(sizes, i64)
        )
        self.initial.append(zeros)
        results.append(body.outputs[item.result])
        return len(results) - 1

    def _joined(self, item: OutputMap, stacked: Tensor, part: PartialShape) -> Tensor:
        """Return the parts, which are stacked along a new first axis, concatenated along the axis of the output."""
        graph, expected = self.graph, self.op.output_shapes[item.external]
        if item.stride < 0:
            stacked = graph.Slice(stacked, [-1], [FIRST], [0], [-1])
        if part.rank is None:
            graph.fail("the rank of {} is unknown", item.target)
        rank = max(part.rank, 1)
        axis = self.op.normalize_axis(item.axis or 0, rank)
        moved = graph.Transpose(stacked, perm=[*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]) if axis else stacked
        if expected.is_static:
            return graph.Reshape(moved, graph.constant(expected.to_tuple(), i64), allowzero=1)
        before, merged, after = graph.node("Split", graph.Shape(moved), [axis, 2, rank - axis - 1], outputs=3)
        sizes = graph.Concat(before, graph.reduced("ReduceProd", merged, [0]), after, axis=0)
        return graph.Reshape(moved, sizes, allowzero=1)


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
