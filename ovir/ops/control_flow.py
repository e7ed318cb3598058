"""If, Loop and TensorIterator: operations that run bodies.

How a body is joined to the layer stands in ``wiring``; the bodies themselves are handed in as callables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ovir.diagnostics import BODY
from ovir.ops.body import InferBody, InputMap, OutputMap, RunBody
from ovir.ops.operator import Array, Operator, operator
from ovir.types import UNKNOWN, Dimension, ElementType, PartialShape
from ovir.values import TensorType

ONE = Dimension(1, 1)
NONE = Dimension(0, 0)
NOT_FED = np.empty(0)
"""Stands for a parameter of a body that nothing feeds; the reader lets it pass only where nothing uses it."""


class _WithBodies(Operator):
    _outputs: tuple[TensorType, ...] = ()
    """What inference found, against which a run is checked."""

    def require_condition(self, name: str, tensor: TensorType) -> None:
        """Raise unless the tensor can be one truth value."""
        self.require_type(name, tensor.element_type, _can_be_true, "boolean or of an integer type")
        self.require_one_element(name, tensor)

    def require_one_element(self, name: str, tensor: TensorType) -> None:
        self.require_rank(name, tensor.shape, 0, 1)
        one = tensor.shape.rank != 1 or tensor.shape[0].contains(1)
        self.require(one, "{} must have one element, got shape {}", name, tensor.shape)

    def fed_type(self, item: InputMap, tensor: TensorType, declared: TensorType) -> TensorType:
        """What a parameter of the body gets; its declared element type must be that of the input."""
        element_type = tensor.element_type.merged_with(declared.element_type)
        if element_type is None:
            message = "input {} is {}, and parameter {} of the body, which it feeds, is declared as {}"
            self.fail(message, item.external, tensor.element_type, item.parameter, declared.element_type)
        return TensorType(element_type, tensor.shape, tensor.value)

    def checked(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """The arrays, if they have the shapes that later layers count on."""
        for index, (array, expected) in enumerate(zip(arrays, self._outputs, strict=True)):
            fits = expected.shape.contains(array.shape)
            self.require(fits, "output {} has shape {}, inferred was {}", index, list(array.shape), expected.shape)
        return tuple(arrays)


def _can_be_true(element_type: ElementType) -> bool:
    return element_type.kind == "boolean" or element_type.is_integral


def is_true(array: Array) -> bool:
    """The truth value that a condition of one element holds."""
    return bool(array.reshape(-1)[0])


@operator("If", opset=8)
class If(_WithBodies):
    """Runs its `then` body where `cond` is true, else its `else` body; their results are the outputs.

    An output's shape holds those of both branches, or is that of one of them where `cond` is a constant.
    A scalar counts as [1] where the other branch gives a tensor of rank 1. Source: If-8
    """

    def infer(self, cond: TensorType, *inputs: TensorType, bodies: Mapping[str, InferBody]) -> tuple[TensorType, ...]:
        self.require_condition("cond", cond)
        branches = {key: self._infer_branch(key, body, (cond, *inputs)) for key, body in bodies.items()}
        if cond.constant is not None:
            self._outputs = tuple(branches["then" if is_true(cond.constant) else "else"])
        else:
            self._outputs = tuple(
                self._either(index, *pair)
                for index, pair in enumerate(zip(branches["then"], branches["else"], strict=True))
            )
        return self._outputs

    def _infer_branch(self, key: str, body: InferBody, inputs: Sequence[TensorType]) -> list[TensorType]:
        given = body.parameters
        for item in self.wiring[key].inputs:
            if item.external >= 0:
                given[item.parameter] = self.fed_type(item, inputs[item.external], given[item.parameter])
        results = body(given)
        return [results[item.result] for item in _by_output(self.wiring[key].outputs)]

    def _either(self, index: int, then: TensorType, other: TensorType) -> TensorType:
        names = (f"output {index} of the then branch", "that of the else branch")
        element_type = self.merge_types(then.element_type, other.element_type, names=names)
        first, second = then.shape, other.shape
        if {first.rank, second.rank} == {0, 1}:
            first, second = (PartialShape([1]) if shape.rank == 0 else shape for shape in (first, second))
        return TensorType(element_type, first.union(second))

    def run(self, cond: Array, *inputs: Array, bodies: Mapping[str, RunBody]) -> tuple[Array, ...]:
        self.require(cond.size == 1, "cond must have one element, got shape {}", list(cond.shape))
        key = "then" if is_true(cond) else "else"
        wiring = self.wiring[key]
        given = [NOT_FED] * wiring.parameter_count
        for item in wiring.inputs:
            if item.external >= 0:
                given[item.parameter] = (cond, *inputs)[item.external]
        results = bodies[key](given)
        arrays = [results[item.result] for item in _by_output(wiring.outputs)]
        for index, expected in enumerate(self._outputs):
            if expected.shape.rank == 1 and arrays[index].ndim == 0:
                arrays[index] = arrays[index].reshape(1)
        return self.checked(arrays)


def _by_output(outputs: Sequence[OutputMap]) -> list[OutputMap]:
    return sorted((item for item in outputs if item.external >= 0), key=lambda item: item.external)


# --------------------------------------------------------------------------- iteration


class _Iteration(_WithBodies):
    """What Loop and TensorIterator share.

    An input with an axis is sliced: each iteration gets the next part. One with a back edge is the value of the
    first iteration; the others get a result of the iteration before. All other inputs are the same in each.
    An output with an axis is the concatenation of all iterations' results, in reverse order where its stride is
    negative; one without is the result of the last. Without any iteration a concatenation is empty, and a
    result that a back edge carries is the value that would have gone into the first.
    """

    _counter: TensorType | None = None
    """The type of the parameter that holds the number of the iteration."""

    def infer_body(self, body: InferBody, inputs: Sequence[TensorType]) -> tuple[list[TensorType], list[TensorType]]:
        """The types of parameters and results that hold in every iteration."""
        wiring = self.wiring["body"]
        given = body.parameters
        for item in wiring.inputs:
            if item.purpose == "current_iteration":
                given[item.parameter] = self._counter = self._infer_counter(given[item.parameter])
            if item.external >= 0:
                fed = self.fed_type(item, inputs[item.external], given[item.parameter])
                given[item.parameter] = fed if item.axis is None else self._part_type(item, fed)
        while True:
            results = body(given)
            before = list(given)
            for edge in wiring.back_edges:
                parameter, result = given[edge.parameter], results[edge.result]
                if parameter.element_type.merged_with(result.element_type) is None:
                    message = "a back edge carries {} of result {} into parameter {}, which is {}"
                    values = result.element_type, edge.result, edge.parameter, parameter.element_type
                    self.fail(message, *values, code=BODY)
                given[edge.parameter] = _widened(parameter, result)
            if all(a is b for a, b in zip(given, before, strict=True)):
                return given, results

    def _infer_counter(self, declared: TensorType) -> TensorType:
        self.require_integers("the current iteration", declared.element_type)
        self.require_one_element("the current iteration", declared)
        return TensorType(declared.element_type, PartialShape([] if declared.shape.rank == 0 else [1]))

    def _part_type(self, item: InputMap, tensor: TensorType) -> TensorType:
        name = f"input {item.external}"
        self.require(tensor.shape.rank != 0, "{} is a scalar: it cannot be sliced", name)
        axis = self.normalize_axis(item.axis or 0, tensor.shape.rank, f"axis of {name}", tensor.shape)
        self.require(item.stride != 0, "the stride of {} is 0: iteration would not proceed", name)
        self.require(item.part_size > 0, "the part_size of {} must be positive, got {}", name, item.part_size)
        return TensorType(tensor.element_type, tensor.shape.with_dim(axis, item.part_size))

    def infer_outputs(
        self, iterations: Dimension, given: Sequence[TensorType], results: Sequence[TensorType]
    ) -> tuple[TensorType, ...]:
        """The types of the layer's outputs."""
        outputs = []
        for item in _by_output(self.wiring["body"].outputs):
            result = results[item.result]
            if item.axis is not None:
                shape = self._concatenated(item, result.shape, iterations)
            else:
                initial = [given[e.parameter].shape for e in self.wiring["body"].back_edges if e.result == item.result]
                shape = _of_last(result.shape, initial[0] if initial else None, iterations)
            outputs.append(TensorType(result.element_type, shape))
        self._outputs = tuple(outputs)
        return self._outputs

    def _concatenated(self, item: OutputMap, part: PartialShape, iterations: Dimension) -> PartialShape:
        name = f"output {item.external}"
        self.require(item.stride != 0, "the stride of {} is 0", name)
        axis = self.normalize_axis(item.axis or 0, part.rank, f"axis of {name}", part)
        if part.rank == 0:
            part = PartialShape([1])
        return part.with_dim(axis, self.part_length(item, part[axis]) * iterations)

    def part_length(self, item: OutputMap, length: Dimension) -> Dimension:
        """What each iteration adds to a concatenated output."""
        return length

    def iterate(
        self, inputs: Sequence[Array], body: RunBody, limit: int | None, condition: int | None = None
    ) -> tuple[Array, ...]:
        """Run the body ``limit`` times (None: no limit), or until its result ``condition`` is false."""
        wiring = self.wiring["body"]
        sliced = [item for item in wiring.inputs if item.axis is not None and item.external >= 0]
        given = [NOT_FED] * wiring.parameter_count
        for item in wiring.inputs:
            if item.external >= 0:
                given[item.parameter] = inputs[item.external]
        carried = {edge.parameter for edge in wiring.back_edges}
        counters = {i.parameter for i in wiring.inputs if i.purpose == "current_iteration"}
        initial = {edge.result: given[edge.parameter] for edge in wiring.back_edges}
        outputs = _by_output(wiring.outputs)
        parts: dict[int, list[Array]] = {item.external: [] for item in outputs if item.axis is not None}
        results: list[Array] = []
        done = 0
        while limit is None or done < limit:
            for item in sliced:
                given[item.parameter] = self._part(item, inputs[item.external], done)
            for parameter in counters - carried if done else counters:
                given[parameter] = self._count(done)
            results = body(given)
            done += 1
            for item_out in outputs:
                if item_out.external in parts:
                    parts[item_out.external].append(results[item_out.result])
            for edge in wiring.back_edges:
                given[edge.parameter] = results[edge.result]
            if condition is not None and not is_true(results[condition]):
                break
        arrays = []
        for item_out in outputs:
            if item_out.external in parts:
                arrays.append(self._joined(item_out, parts[item_out.external]))
            elif done:
                arrays.append(results[item_out.result])
            else:
                message = "there is no iteration, so output {}, which no back edge feeds, has no value"
                self.require(item_out.result in initial, message, item_out.external)
                arrays.append(initial[item_out.result].copy())
        return self.checked(arrays)

    def _count(self, done: int) -> Array:
        assert self._counter is not None
        return np.full(self._counter.shape.to_tuple(), done, self._counter.element_type.to_dtype())

    def _part(self, item: InputMap, array: Array, iteration: int) -> Array:
        axis = self.normalize_axis(item.axis or 0, array.ndim, f"axis of input {item.external}")
        length = array.shape[axis]
        first = _from_front(item.start, length) + iteration * item.stride
        if item.stride < 0:
            first -= item.part_size - 1
        if not 0 <= first <= length - item.part_size:
            message = "iteration {} takes [{}, {}) of axis {} of input {}, which has shape {}"
            self.fail(message, iteration, first, first + item.part_size, axis, item.external, list(array.shape))
        return array[(slice(None),) * axis + (slice(first, first + item.part_size),)]

    def _joined(self, item: OutputMap, parts: list[Array]) -> Array:
        if not parts:
            expected = self._outputs[item.external]
            sizes = [0] if expected.shape.rank is None else [dim.lower for dim in expected.shape]
            message = "there is no iteration, so output {} is empty, inferred was {}"
            self.require(0 in sizes, message, item.external, expected.shape)
            return np.empty(sizes, expected.element_type.to_dtype())
        axis = self.normalize_axis(item.axis or 0, parts[0].ndim, f"axis of output {item.external}")
        sizes = list(parts[0].shape)
        for iteration, part in enumerate(parts):
            same = part.shape[:axis] == parts[0].shape[:axis] and part.shape[axis + 1 :] == parts[0].shape[axis + 1 :]
            message = "output {} cannot be joined along axis {}: iteration {} gives shape {}, the first gave {}"
            self.require(same, message, item.external, axis, iteration, list(part.shape), sizes)
        if item.stride < 0:
            parts = parts[::-1]
        return np.concatenate([np.atleast_1d(part) for part in parts], axis)


def _from_front(position: int, length: int) -> int:
    return position + length if position < 0 else position


def _widened(given: TensorType, result: TensorType) -> TensorType:
    """What holds for a carried tensor in the first iteration and after it; ``given`` itself when it does.

    A bound that a result exceeds is dropped, not moved, so that a few steps reach the fixed point.
    """
    shape = _widened_shape(given.shape, result.shape)
    known, again = given.constant, result.constant
    value = given.value if known is not None and again is not None and np.array_equal(known, again) else None
    if shape is given.shape and value is given.value:
        return given
    return TensorType(given.element_type, shape, value)


def _widened_shape(given: PartialShape, result: PartialShape) -> PartialShape:
    if given.rank is None:
        return given
    if given.rank != result.rank:
        return PartialShape(None)
    dims = [_widened_dimension(a, b) for a, b in zip(given, result, strict=True)]
    return given if all(a is b for a, b in zip(given, dims, strict=True)) else PartialShape(dims)


def _widened_dimension(given: Dimension, result: Dimension) -> Dimension:
    both = given.union(result)
    if (both.lower, both.upper, both.symbol) == (given.lower, given.upper, given.symbol):
        return given
    lower = given.lower if both.lower == given.lower else 0
    return Dimension(lower, given.upper if both.upper == given.upper else None, both.symbol)


def _of_last(result: PartialShape, initial: PartialShape | None, iterations: Dimension) -> PartialShape:
    """The shape of an output that is the last result, or, where there may be no iteration, what it begins with."""
    if initial is None or iterations.lower > 0:
        return result
    if iterations.upper == 0:
        return initial
    if result.rank is None or result.rank != initial.rank:
        return result
    # As OpenVINO, count on the result's shape; but whether two unknown sizes are equal is known only if carried.
    return PartialShape(
        r if r.symbol == i.symbol else Dimension(r.lower, r.upper) for r, i in zip(result, initial, strict=True)
    )


@operator("Loop", opset=5)
class Loop(_Iteration):
    """Runs its body `trip_count` times (negative: no limit), as long as `condition` is true.

    `condition` decides on the first iteration, the body's result that is marked ``execution_condition`` on each
    further one. A parameter marked ``current_iteration`` holds the iteration's number, from 0.
    Source: Loop-5
    """

    def infer(
        self,
        trip_count: TensorType,
        condition: TensorType,
        *inputs: TensorType,
        bodies: Mapping[str, InferBody],
    ) -> tuple[TensorType, ...]:
        self.require_integers("trip_count", trip_count.element_type)
        self.require_one_element("trip_count", trip_count)
        self.require_condition("condition", condition)
        position = self._condition()
        given, results = self.infer_body(bodies["body"], (trip_count, condition, *inputs))
        self.require_condition("the execution_condition of the body", results[position])
        iterations = self._iterations(trip_count, condition, results[position])
        outputs = self.infer_outputs(iterations, given, results)
        if iterations.upper == 0 and condition.constant is not None and not is_true(condition.constant):
            # Where it is known that nothing runs, OpenVINO does not look at the shape of what would be joined.
            empty = {item.external for item in self.wiring["body"].outputs if item.axis is not None}
            outputs = tuple(
                TensorType(o.element_type, PartialShape([0])) if i in empty else o for i, o in enumerate(outputs)
            )
            self._outputs = outputs
        return outputs

    def fed_type(self, item: InputMap, tensor: TensorType, declared: TensorType) -> TensorType:
        """A Loop's body takes its inputs as they come, whatever types its parameters declare."""
        return tensor if not tensor.element_type.is_dynamic else super().fed_type(item, tensor, declared)

    def _condition(self) -> int:
        """The position of the body's result that asks for another iteration."""
        found = [item.result for item in self.wiring["body"].outputs if item.purpose == "execution_condition"]
        if len(found) != 1:
            message = "{} outputs of the port map have purpose=\"execution_condition\"; a Loop needs one"
            hint = "mark the Result that says whether another iteration follows"
            self.fail(message, len(found), code=BODY, hint=hint)
        return found[0]

    @staticmethod
    def _iterations(trip_count: TensorType, condition: TensorType, again: TensorType) -> Dimension:
        limit = UNKNOWN
        if trip_count.value is not None and trip_count.value.lower.min() >= 0:
            limit = trip_count.value.dimensions()[0]
        elif trip_count.value is not None and trip_count.value.upper.max() < 0:
            limit = Dimension(1, None)
        if condition.constant is not None and not is_true(condition.constant):
            return NONE
        if again.constant is None:
            starts = condition.constant is not None and limit.lower > 0
            return Dimension(int(starts), limit.upper)
        if is_true(again.constant):
            # OpenVINO takes for granted here that the first condition is true, also where it is not known.
            return limit
        return NONE if limit.upper == 0 else ONE

    def run(
        self, trip_count: Array, condition: Array, *inputs: Array, bodies: Mapping[str, RunBody]
    ) -> tuple[Array, ...]:
        for name, array in (("trip_count", trip_count), ("condition", condition)):
            self.require(array.size == 1, "{} must have one element, got shape {}", name, list(array.shape))
        count = int(trip_count.reshape(-1)[0])
        limit = None if count < 0 else count
        if not is_true(condition):
            limit = 0
        return self.iterate((trip_count, condition, *inputs), bodies["body"], limit, self._condition())


@operator("TensorIterator", opset=1)
class TensorIterator(_Iteration):
    """Runs its body once for each part of its sliced inputs.

    Parts begin at `start` and proceed by `stride` up to and with `end` (both count from the end where negative),
    each `part_size` long. All sliced inputs must have the same number of parts. Source: TensorIterator-1
    """

    def infer(self, *inputs: TensorType, bodies: Mapping[str, InferBody]) -> tuple[TensorType, ...]:
        given, results = self.infer_body(bodies["body"], inputs)
        iterations = None
        for item in self._sliced():
            shape = inputs[item.external].shape
            axis = self.normalize_axis(item.axis or 0, shape.rank)
            count = self._parts(item, shape[axis])
            both = count if iterations is None else iterations.merged_with(count)
            if both is None:
                message = "input {} has {} parts to iterate over, another one has {}"
                self.fail(message, item.external, count, iterations, code=BODY)
            iterations = both
        if iterations is None:
            iterations = Dimension(self._unsliced(), self._unsliced())
        return self.infer_outputs(iterations, given, results)

    def part_length(self, item: OutputMap, length: Dimension) -> Dimension:
        part = length.merged_with(Dimension(item.part_size, item.part_size))
        if part is None:
            message = "output {} joins parts of part_size {} along axis {}, and the body gives {} there"
            self.fail(message, item.external, item.part_size, item.axis, length, code=BODY)
        return part

    def _sliced(self) -> list[InputMap]:
        return [item for item in self.wiring["body"].inputs if item.axis is not None and item.external >= 0]

    def _unsliced(self) -> int:
        """How often the body runs when no input is sliced: as often as the first concatenated output has room."""
        for item in self.wiring["body"].outputs:
            if item.axis is not None:
                return abs(item.end - item.start) // max(item.part_size, 1)
        return 1

    def _parts(self, item: InputMap, length: Dimension) -> Dimension:
        if length.is_static:
            count = self._count_parts(item, length.length)
            return Dimension(count, count)
        first, last = (item.start, item.end) if item.stride > 0 else (item.end, item.start)
        if first < 0 <= last:
            return UNKNOWN  # the longer the axis, the fewer parts
        if (first, last, abs(item.stride), item.part_size) == (0, -1, 1, 1):
            return length
        return length.map(lambda size: _count_parts(item, size))

    def _count_parts(self, item: InputMap, length: int) -> int:
        for name, position in (("start", item.start), ("end", item.end)):
            if length and not -length <= position < length:
                message = "{} {} of input {} is outside [{}, {}]"
                self.fail(message, name, position, item.external, -length, length - 1, code=BODY)
        first, last = _from_front(item.start, length), _from_front(item.end, length)
        if length and (last - first) * item.stride < 0:
            message = "input {} is to be sliced from {} to {}, and its stride {} leads the other way"
            self.fail(message, item.external, item.start, item.end, item.stride, code=BODY)
        return _count_parts(item, length)

    def run(self, *inputs: Array, bodies: Mapping[str, RunBody]) -> tuple[Array, ...]:
        counts = {}
        for item in self._sliced():
            array = inputs[item.external]
            axis = self.normalize_axis(item.axis or 0, array.ndim, f"axis of input {item.external}")
            counts[item.external] = self._count_parts(item, array.shape[axis])
        if len(set(counts.values())) > 1:
            self.fail("the sliced inputs differ in their number of parts: {} (by input)", counts)
        limit = next(iter(counts.values())) if counts else self._unsliced()
        return self.iterate(inputs, bodies["body"], limit)


def _count_parts(item: InputMap, length: int) -> int:
    """How many whole parts fit between start and end."""
    first, last = _from_front(item.start, length), _from_front(item.end, length)
    span = (last - first if item.stride > 0 else first - last) + 1
    return max((span - item.part_size) // abs(item.stride) + 1, 0)
