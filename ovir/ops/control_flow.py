"""If, Loop and TensorIterator: operations that run bodies.

``wiring`` describes how a body is joined to the layer; the bodies themselves are passed in as callables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ovir.core.arrays import Array
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import BODY
from ovir.ops.base.bodies import InferBody, InputMap, OutputMap, RunBody
from ovir.ops.base.domains import SMALL, Between, by_input
from ovir.ops.base.iteration import (
    NOT_FED,
    BodyOperatorBase,
    IterationBase,
    at,
    by_output,
    from_front,
    is_true,
    known_truth,
)
from ovir.ops.base.registry import operator


@operator("If", opset=8)
class If(BodyOperatorBase):
    """The results of the body `then` if `cond` is true, otherwise of the body `else`.

    The shape of an output covers the shapes of both branches; if `cond` is a constant, it is the shape of one branch. A
    scalar counts as [1] if the other branch gives a tensor of rank 1.

    Source: If-8
    """

    def infer(self, cond: TensorType, *inputs: TensorType, bodies: Mapping[str, InferBody]) -> tuple[TensorType, ...]:
        self.require_condition("cond", cond)
        branches = {key: self._infer_branch(key, body, (cond, *inputs)) for key, body in bodies.items()}
        if (truth := known_truth(cond)) is not None:
            return tuple(branches["then" if truth else "else"])
        pairs = zip(branches["then"], branches["else"], strict=True)
        return tuple(self._either(index, *pair) for index, pair in enumerate(pairs))

    def _infer_branch(self, key: str, body: InferBody, inputs: Sequence[TensorType]) -> list[TensorType]:
        given = body.parameters
        for item in self.wiring[key].inputs:
            if item.external >= 0:
                with at(item):
                    given[item.parameter] = self.fed_type(item, inputs[item.external], given[item.parameter])
        results = body(given)
        return [results[item.result] for item in by_output(self.wiring[key].outputs)]

    def _either(self, index: int, then: TensorType, other: TensorType) -> TensorType:
        names = (f"output {index} of the then branch", f"output {index} of the else branch")
        element_type = self.merge_types(then.element_type, other.element_type, names=names)
        first, second = then.shape, other.shape
        if {first.rank, second.rank} == {0, 1}:
            first, second = (PartialShape([1]) if shape.rank == 0 else shape for shape in (first, second))
        return TensorType(element_type, first.union(second))

    def run(self, cond: Array, *inputs: Array, bodies: Mapping[str, RunBody]) -> tuple[Array, ...]:
        self.require(cond.size == 1, "cond must have one element, got shape {}", cond.shape)
        key = "then" if is_true(cond) else "else"
        wiring = self.wiring[key]
        given = [NOT_FED] * wiring.parameter_count
        for item in wiring.inputs:
            if item.external >= 0:
                given[item.parameter] = (cond, *inputs)[item.external]
        results = bodies[key](given)
        arrays = [results[item.result] for item in by_output(wiring.outputs)]
        for index, expected in enumerate(self.output_shapes[: len(arrays)]):
            if expected.rank == 1 and arrays[index].ndim == 0:
                arrays[index] = arrays[index].reshape(1)
        return self.checked(arrays)


@operator("Loop", opset=5)
class Loop(IterationBase):
    """The results of a body that runs at most `trip_count` times (negative: no limit), as long as a condition is true.

    `condition` decides on the first iteration; the body's result marked ``execution_condition`` decides on each further
    one. A parameter marked ``current_iteration`` holds the number of the iteration, from 0.

    Source: Loop-5
    """

    domains = by_input(trip_count=SMALL, condition=Between(1, 1))

    def infer(
        self,
        trip_count: TensorType,
        condition: TensorType,
        *inputs: TensorType,
        bodies: Mapping[str, InferBody],
    ) -> tuple[TensorType, ...]:
        self.require_integers("trip_count", trip_count.element_type)
        self.require_one_known("trip_count", trip_count)
        self.require_condition("condition", condition)
        item = self._condition()
        results = self.infer_body(bodies["body"], (trip_count, condition, *inputs))
        with at(item):
            self.require_condition("the execution_condition of the body", results[item.result])
        iterations = self._iterations(trip_count, condition, results[item.result])
        return self.infer_outputs(iterations, (trip_count, condition, *inputs), results)

    def fed_type(self, item: InputMap, tensor: TensorType, declared: TensorType) -> TensorType:
        """Return the type that a parameter gets: the body takes its inputs as they are, whatever its parameters
        declare."""
        return tensor if not tensor.element_type.is_dynamic else super().fed_type(item, tensor, declared)

    def _condition(self) -> OutputMap:
        """Return the entry of the body's result that asks for another iteration."""
        found = [item for item in self.wiring["body"].outputs if item.purpose == "execution_condition"]
        if len(found) != 1:
            message = 'a Loop needs exactly one output with purpose="execution_condition" in its port map, got {}'
            hint = "mark the Result that decides whether another iteration follows"
            self.fail(message, len(found), code=BODY, hint=hint)
        return found[0]

    @staticmethod
    def _iterations(trip_count: TensorType, condition: TensorType, again: TensorType) -> Dimension:
        limit, value = UNKNOWN, trip_count.value
        if value is not None and value.size == 1:
            if value.lower.min() >= 0:
                limit = value.dimensions()[0]
            elif value.upper.max() < 0:
                limit = Dimension(1, None)
        starts, continues = known_truth(condition), known_truth(again)
        if starts is False:
            return Dimension(0)
        if starts and continues:
            return limit
        least = limit.lower if continues else min(limit.lower, 1)
        most = 1 if continues is False and limit.upper != 0 else limit.upper
        return Dimension(least if starts else 0, most)

    def run(
        self, trip_count: Array, condition: Array, *inputs: Array, bodies: Mapping[str, RunBody]
    ) -> tuple[Array, ...]:
        for name, array in (("trip_count", trip_count), ("condition", condition)):
            self.require(array.size == 1, "{} must have one element, got shape {}", name, array.shape)
        count = int(trip_count.reshape(-1)[0])
        limit = None if count < 0 else count
        if not is_true(condition):
            limit = 0
        return self.iterate((trip_count, condition, *inputs), bodies["body"], limit, self._condition().result)


@operator("TensorIterator", opset=1)
class TensorIterator(IterationBase):
    """The results of a body that runs once for each part of its sliced inputs.

    Parts begin at `start` and proceed by `stride` up to and including `end` (both count from the end if negative); each
    is `part_size` long. All sliced inputs must have the same number of parts.

    Source: TensorIterator-1
    """

    def infer(self, *inputs: TensorType, bodies: Mapping[str, InferBody]) -> tuple[TensorType, ...]:
        results = self.infer_body(bodies["body"], inputs)
        iterations = None
        for item in self._sliced():
            shape = inputs[item.external].shape
            axis = self.normalize_axis(item.axis or 0, shape.rank)
            with at(item):
                count = self._parts(item, shape[axis])
                both = count if iterations is None else iterations.merged_with(count)
                if both is None:
                    message = "{} has {} parts to iterate over, but another sliced input has {}"
                    self.fail(message, item.source, count, iterations, code=BODY)
            iterations = both
        if iterations is None:
            iterations = Dimension(self._unsliced(), self._unsliced())
        return self.infer_outputs(iterations, inputs, results)

    def part_length(self, item: OutputMap, length: Dimension) -> Dimension:
        part = length.merged_with(Dimension(item.part_size, item.part_size))
        if part is None:
            message = "{} concatenates parts of part_size {} along axis {}, but the body's result has length {} there"
            self.fail(message, item.target, item.part_size, item.axis, length, code=BODY)
        return part

    def _sliced(self) -> list[InputMap]:
        return [item for item in self.wiring["body"].inputs if item.axis is not None and item.external >= 0]

    def _unsliced(self) -> int:
        """Return the number of iterations if no input is sliced: as many as fill the first concatenated output."""
        for item in self.wiring["body"].outputs:
            if item.axis is not None:
                return abs(item.end - item.start) // max(item.part_size, 1)
        return 1

    def _parts(self, item: InputMap, length: Dimension) -> Dimension:
        if length.is_static:
            count = self._count_parts(item, length.length)
            return Dimension(count, count)
        first, last = (item.start, item.end) if item.stride > 0 else (item.end, item.start)
        if (first < 0) == (last < 0):  # the length does not matter
            count = _count_parts(item, max(abs(first), abs(last)) + 1)
            return Dimension(count, count)
        if first < 0:
            return UNKNOWN  # the longer the axis, the fewer parts
        if (first, last, abs(item.stride), item.part_size) == (0, -1, 1, 1):
            return length
        return length.map(lambda size: _count_parts(item, size))

    def _count_parts(self, item: InputMap, length: int) -> int:
        for name, position in (("start", item.start), ("end", item.end)):
            if length and not -length <= position < length:
                message = "{} {} of {} is outside [{}, {}]"
                self.fail(message, name, position, item.source, -length, length - 1, code=BODY)
        first, last = from_front(item.start, length), from_front(item.end, length)
        if length and (last - first) * item.stride < 0:
            message = "{} is sliced from {} to {}, but its stride {} has the opposite direction"
            self.fail(message, item.source, item.start, item.end, item.stride, code=BODY)
        return _count_parts(item, length)

    def run(self, *inputs: Array, bodies: Mapping[str, RunBody]) -> tuple[Array, ...]:
        counts = {}
        for item in self._sliced():
            array = inputs[item.external]
            axis = self.normalize_axis(item.axis or 0, array.ndim, f"{item.source}: axis")
            counts[item.external] = self._count_parts(item, array.shape[axis])
        if len(set(counts.values())) > 1:
            self.fail("the sliced inputs differ in their number of parts: {} (by input)", counts)
        limit = next(iter(counts.values())) if counts else self._unsliced()
        return self.iterate(inputs, bodies["body"], limit)


def _count_parts(item: InputMap, length: int) -> int:
    """Return the number of whole parts between start and end."""
    first, last = from_front(item.start, length), from_front(item.end, length)
    span = (last - first if item.stride > 0 else first - last) + 1
    return max((span - item.part_size) // abs(item.stride) + 1, 0)
