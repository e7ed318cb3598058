"""If, Loop and TensorIterator: how a body is fed and iterated, and which shapes hold in every iteration.

``wiring`` describes how a body is joined to the layer; the bodies themselves are passed in as callables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from ovir.core.arrays import Array
from ovir.core.shapes import UNKNOWN, Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import BODY
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.kernel_warnings import report
from ovir.ops.base.bodies import Connection, InferBody, InputMap, OutputMap, RunBody
from ovir.ops.base.domains import SMALL, Between, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.traits import ALL

T = TypeVar("T")

CONDITIONS = {"If": 1, "Loop": 2}
"""The number of leading inputs that decide which body runs, or how often: the condition, and the trip count before it.
"""

NOT_FED = np.empty(0)
"""Stands for a parameter of a body that nothing feeds. The reader accepts it only if nothing uses the parameter."""


@contextmanager
def at(part: Connection) -> Iterator[None]:
    """Give errors raised within the block the line of this part of the wiring."""
    try:
        yield
    except OperatorError as error:
        error.line = error.line or part.line
        raise


class BodyOperatorBase(Operator):
    """Base of operations with bodies."""

    value_inputs = ALL

    def require_condition(self, name: str, tensor: TensorType) -> None:
        """Raise unless the tensor can be a single truth value."""
        self.require_type(name, tensor, lambda t: t.kind == "boolean" or t.is_integral, "boolean or of an integer type")
        self.require_one_known(name, tensor)

    def require_one_known(self, name: str, tensor: TensorType) -> None:
        """Raise unless the tensor can have one element; unknown sizes are checked when the operation runs."""
        self.require_rank(name, tensor.shape, 0, 1)
        fits = tensor.shape.rank != 1 or tensor.shape[0].contains(1)
        self.require(fits, "{} must have one element, got shape {}", name, tensor.shape)

    def fed_type(self, item: InputMap, tensor: TensorType, declared: TensorType) -> TensorType:
        """Return the type that a parameter of the body gets; its declared element type must match the input's."""
        message = "{} is {}, but {}, which it feeds, is declared as {}"
        element_type = tensor.element_type.merged_with(declared.element_type)
        element_type = self.require_known(
            element_type, message, item.source, tensor.element_type, item.target, declared.element_type, code=BODY
        )
        return tensor.refined(element_type, tensor.shape)

    def checked(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Return the arrays after checking that they have the shapes that later layers rely on."""
        for index, (array, expected) in enumerate(zip(arrays, self.output_shapes, strict=False)):
            fits = expected.contains(array.shape)
            self.require(fits, "output {} has shape {}, but the inferred shape is {}", index, array.shape, expected)
        return tuple(arrays)


def known_truth(tensor: TensorType) -> bool | None:
    """Return the truth value of a condition, or None if it is unknown before a run."""
    known = tensor.constant
    return is_true(known) if known is not None and known.size == 1 else None


def is_true(array: Array) -> bool:
    """Return the truth value of a condition of one element."""
    return bool(array.item(0))


def by_output(outputs: Sequence[OutputMap]) -> list[OutputMap]:
    return sorted((item for item in outputs if item.external >= 0), key=lambda item: item.external)


class IterationBase(BodyOperatorBase):
    """Base of Loop and TensorIterator.

    An input with an axis is sliced: each iteration gets the next part. An input with a back edge is the value for the
    first iteration; further iterations get a result of the iteration before. All other inputs are the same in each
    iteration. An output with an axis is the concatenation of the results of all iterations, in reverse order if its
    stride is negative; an output without one is the result of the last iteration. If no iteration runs, a concatenation
    is empty, and a result with a back edge is the value for the first iteration.
    """

    def iterations(self, inputs: Sequence[TensorType], results: Sequence[TensorType]) -> Dimension:
        """Return the iterations of the body, as far as the types of the inputs and of the body's results show them."""
        raise NotImplementedError

    def first_types(self, body: InferBody, inputs: Sequence[TensorType]) -> list[TensorType]:
        """Return the types of the body's parameters in the first iteration."""
        parameters = body.parameters
        for item in self.wiring["body"].inputs:
            with at(item):
                if item.purpose == "current_iteration":
                    parameters[item.parameter] = self._infer_counter(parameters[item.parameter])
                if item.external >= 0:
                    fed = self.fed_type(item, inputs[item.external], parameters[item.parameter])
                    parameters[item.parameter] = fed if item.axis is None else self._part_type(item, fed)
        return parameters

    def sliced(self) -> list[InputMap]:
        return [item for item in self.wiring["body"].inputs if item.axis is not None and item.external >= 0]

    def infer_body(self, body: InferBody, inputs: Sequence[TensorType]) -> list[TensorType]:
        """Return types of the results that hold in every iteration."""
        wiring = self.wiring["body"]
        parameters = self.first_types(body, inputs)
        while True:
            results = body(parameters)
            before = list(parameters)
            for edge in wiring.back_edges:
                parameter, result = parameters[edge.parameter], results[edge.result]
                if parameter.element_type.merged_with(result.element_type) is None:
                    message = (
                        "a back edge connects {1} of type {0} to {2} of type {3}: their element types must be equal"
                    )
                    values = result.element_type, edge.source, edge.target, parameter.element_type
                    with at(edge):
                        self.fail(message, *values, code=BODY)
                parameters[edge.parameter] = _widened(parameter, result)
            if all(a is b for a, b in zip(parameters, before, strict=True)):
                return results

    def _infer_counter(self, declared: TensorType) -> TensorType:
        self.require_integers("the current iteration", declared)
        self.require_one_known("the current iteration", declared)
        return TensorType(declared.element_type, PartialShape([] if declared.shape.rank == 0 else [1]))

    def _part_type(self, item: InputMap, tensor: TensorType) -> TensorType:
        name, shape = item.source, tensor.shape
        self.require(shape.rank != 0, "{} is a scalar: it cannot be sliced", name)
        axis = self.normalize_axis(item.axis or 0, shape.rank, f"{name}: axis", shape)
        self.require(item.stride != 0, "the stride of {} must not be 0", name, code=BODY)
        self.require(
            item.part_size > 0, "the part_size of {} must be positive, got {}", name, item.part_size, code=BODY
        )
        if shape[axis].is_static and 0 < shape[axis].length < item.part_size:
            message = "the part_size {} of {} is larger than axis {} of its shape {}"
            self.fail(message, item.part_size, name, axis, shape, code=BODY)
        return TensorType(tensor.element_type, shape.with_dim(axis, item.part_size))

    def infer_outputs(
        self, iterations: Dimension, inputs: Sequence[TensorType], results: Sequence[TensorType]
    ) -> tuple[TensorType, ...]:
        """Return the types of the layer's outputs."""
        initial = self.initial(inputs)
        outputs = []
        for item in by_output(self.wiring["body"].outputs):
            result = results[item.result]
            shape = result.shape
            if item.axis is not None:
                with at(item):
                    shape = self._concatenated(item, shape, iterations)
            elif iterations.lower == 0 and item.result in initial:
                first = initial[item.result].shape
                shape = shape.union(first) if iterations.upper != 0 else first
            outputs.append(TensorType(result.element_type, shape))
        return tuple(outputs)

    def initial(self, inputs: Sequence[T]) -> dict[int, T]:
        """Return the inputs that stand for results with a back edge if no iteration runs, by result."""
        fed = {item.parameter: inputs[item.external] for item in self.wiring["body"].inputs if item.external >= 0}
        edges = self.wiring["body"].back_edges
        return {edge.result: fed[edge.parameter] for edge in edges if edge.parameter in fed}

    def _concatenated(self, item: OutputMap, part: PartialShape, iterations: Dimension) -> PartialShape:
        name = item.target
        self.require(item.stride != 0, "the stride of {} must not be 0", name, code=BODY)
        axis = self.normalize_axis(item.axis or 0, part.rank, f"{name}: axis", part)
        if part.rank == 0:
            part = PartialShape([1])
        return part.with_dim(axis, self.part_length(item, part[axis]) * iterations)

    def part_length(self, item: OutputMap, length: Dimension) -> Dimension:
        """Return the length that each iteration adds to a concatenated output."""
        return length

    def iterate(
        self, inputs: Sequence[Array], body: RunBody, limit: int | None, condition: int | None = None
    ) -> tuple[Array, ...]:
        """Run the body ``limit`` times (None: no limit), or until its result ``condition`` is false."""
        wiring, sliced = self.wiring["body"], self.sliced()
        parameters = [NOT_FED] * wiring.parameter_count
        for item in wiring.inputs:
            if item.external >= 0:
                parameters[item.parameter] = inputs[item.external]
        carried = [(edge.parameter, edge.result) for edge in wiring.back_edges]
        counters = [item.parameter for item in wiring.inputs if item.purpose == "current_iteration"]
        counters_later = set(counters).difference(parameter for parameter, _ in carried)
        outputs = by_output(wiring.outputs)
        parts: dict[int, list[Array]] = {item.external: [] for item in outputs if item.axis is not None}
        joined = [(item.result, parts[item.external]) for item in outputs if item.axis is not None]
        results: list[Array] = []
        done = 0
        while limit is None or done < limit:
            for item in sliced:
                parameters[item.parameter] = self._part(item, inputs[item.external], done)
            for parameter in counters_later if done else counters:
                parameters[parameter] = _count(body.parameters[parameter], done)
            results = body(parameters)
            done += 1
            for result, its_parts in joined:
                its_parts.append(results[result].copy())
            for parameter, result in carried:
                parameters[parameter] = results[result]
            if condition is not None and not is_true(results[condition]):
                break
        if not done:
            return self.checked(self._without_iterations(inputs, body))
        arrays = []
        for item_out in outputs:
            if item_out.external in parts:
                arrays.append(self._joined(item_out, parts[item_out.external]))
            else:
                arrays.append(results[item_out.result])
        return self.checked(arrays)

    def _without_iterations(self, inputs: Sequence[Array], body: RunBody) -> list[Array]:
        """Return the outputs if the body runs zero times."""
        initial = self.initial(inputs)
        arrays = []
        for item in by_output(self.wiring["body"].outputs):
            if item.axis is None and item.result in initial:
                arrays.append(initial[item.result].copy())
                continue
            if item.axis is None:
                report(f"{item.target} is set to 0: the body ran zero times and no back edge supplies a value")
            sizes = self._sizes_without_iterations(item, inputs, body)
            arrays.append(np.zeros(sizes, self.output_types[item.external].to_dtype()))
        return arrays

    def _sizes_without_iterations(self, item: OutputMap, inputs: Sequence[Array], body: RunBody) -> list[int]:
        """Return the sizes of an output if the body runs zero times: those that one iteration would give, but 0 along
        the axis of a concatenation.

        They do not depend on how much inference knew of the shapes before the run. Sizes that even a run of the body
        would have to show are as small as allowed.
        """
        shape = self._emptied(item, self.output_shapes[item.external])
        if not shape.is_static:
            shape = self._emptied(item, body.result_shapes(self._first_shapes(inputs, body))[item.result])
        if shape.rank is None:
            return [] if item.axis is None else [0]
        return [dim.lower for dim in shape]

    def _emptied(self, item: OutputMap, shape: PartialShape) -> PartialShape:
        """Return the shape of an output that no part is joined to."""
        if item.axis is None:
            return shape
        if shape.rank == 0:
            return PartialShape([0])
        return shape.with_dim(self.normalize_axis(item.axis, shape.rank, f"{item.target}: axis"), 0)

    def _first_shapes(self, inputs: Sequence[Array], body: RunBody) -> list[PartialShape]:
        """Return the shapes of the parameters in the first iteration."""
        shapes = [tensor.shape for tensor in body.parameters]
        for item in self.wiring["body"].inputs:
            if item.external >= 0:
                shape = PartialShape(inputs[item.external].shape)
                axis = None if item.axis is None else self.normalize_axis(item.axis, shape.rank)
                shapes[item.parameter] = shape if axis is None else shape.with_dim(axis, item.part_size)
        return shapes

    def _part(self, item: InputMap, array: Array, iteration: int) -> Array:
        axis = self.normalize_axis(item.axis or 0, array.ndim, f"{item.source}: axis")
        length = array.shape[axis]
        first = from_front(item.start, length) + iteration * item.stride
        if item.stride < 0:
            first -= item.part_size - 1
        if not 0 <= first <= length - item.part_size:
            message = "iteration {} reads [{}, {}) of axis {} of {}, outside of its shape {}"
            self.fail(message, iteration, first, first + item.part_size, axis, item.source, array.shape)
        return array[(slice(None),) * axis + (slice(first, first + item.part_size),)]

    def _joined(self, item: OutputMap, parts: list[Array]) -> Array:
        axis = self.normalize_axis(item.axis or 0, parts[0].ndim, f"{item.target}: axis")
        first = parts[0].shape
        for iteration, part in enumerate(parts):
            if part.shape != first:
                same = part.shape[:axis] == first[:axis] and part.shape[axis + 1 :] == first[axis + 1 :]
                message = "{} cannot be concatenated along axis {}: iteration {} gives shape {}, but the first gave {}"
                self.require(same, message, item.target, axis, iteration, part.shape, list(first))
        if item.stride < 0:
            parts = parts[::-1]
        return np.concatenate([part if part.ndim else part.reshape(1) for part in parts], axis)


def _count(parameter: TensorType, done: int) -> Array:
    """Return the number of the iteration as an array of the parameter's type."""
    return np.full(parameter.shape.to_tuple(), done, parameter.element_type.to_dtype())


def from_front(position: int, length: int) -> int:
    return position + length if position < 0 else position


def _widened(first: TensorType, result: TensorType) -> TensorType:
    """Return a type that holds for a carried tensor in the first iteration and after it; ``first`` itself if it does.

    A bound that a result exceeds is dropped, not moved, so that a few steps reach the fixed point.
    """
    shape = _widened_shape(first.shape, result.shape)
    known, again = first.constant, result.constant
    value = first.value if known is not None and again is not None and np.array_equal(known, again) else None
    if shape is first.shape and value is first.value:
        return first
    return TensorType(first.element_type, shape, value)


def _widened_shape(first: PartialShape, result: PartialShape) -> PartialShape:
    if first.rank is None:
        return first
    if first.rank != result.rank:
        return PartialShape(None)
    dims = [_widened_dimension(a, b) for a, b in zip(first, result, strict=True)]
    return first if all(a is b for a, b in zip(first, dims, strict=True)) else PartialShape(dims)


def _widened_dimension(first: Dimension, result: Dimension) -> Dimension:
    both = first.union(result)
    if (both.lower, both.upper, both.symbol) == (first.lower, first.upper, first.symbol):
        return first
    lower = first.lower if both.lower == first.lower else 0
    return Dimension(lower, first.upper if both.upper == first.upper else None, both.symbol)


# --------------------------------------------------------------------------- the operations


@operator("If", opset=8, function_name="if_op")
class If(BodyOperatorBase):
    """The results of the body `then` if `cond` is true, otherwise of the body `else`.

    The shape of an output covers the shapes of both branches; if `cond` is a constant, it is the shape of one branch. A
    scalar counts as [1] if the other branch gives a tensor of rank 1.

    >>> x = ops.parameter([2], "f32")
    >>> doubled = ovir.Model([ops.result(ops.add(x, x))], [x])
    >>> y = ops.parameter([2], "f32")
    >>> same = ovir.Model([ops.result(y)], [y])
    >>> layer = ops.if_op(True)
    >>> layer.set_then_body(doubled)
    >>> layer.set_else_body(same)
    >>> layer.set_input(np.float32([1, 2]), x, y)
    >>> layer.set_output(doubled.results[0], same.results[0])
    >>> layer
    [2. 4.]
    """

    arguments = "execution_condition:cond"
    unmatched = "choose between bodies"

    def infer(self, cond: TensorType, *inputs: TensorType, bodies: Mapping[str, InferBody]) -> tuple[TensorType, ...]:
        self.require_condition("cond", cond)
        branches = {key: self._infer_branch(key, body, (cond, *inputs)) for key, body in bodies.items()}
        if (truth := known_truth(cond)) is not None:
            return tuple(branches["then" if truth else "else"])
        pairs = zip(branches["then"], branches["else"], strict=True)
        return tuple(self._either(index, *pair) for index, pair in enumerate(pairs))

    def _infer_branch(self, key: str, body: InferBody, inputs: Sequence[TensorType]) -> list[TensorType]:
        parameters = body.parameters
        for item in self.wiring[key].inputs:
            if item.external >= 0:
                with at(item):
                    parameters[item.parameter] = self.fed_type(item, inputs[item.external], parameters[item.parameter])
        results = body(parameters)
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
        parameters = [NOT_FED] * wiring.parameter_count
        for item in wiring.inputs:
            if item.external >= 0:
                parameters[item.parameter] = (cond, *inputs)[item.external]
        results = bodies[key](parameters)
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

    >>> x = ops.parameter([1], "f32")
    >>> doubled = ops.result(ops.add(x, x))
    >>> go_on = ops.result(ops.constant(True))
    >>> layer = ops.loop(3, True)
    >>> layer.set_function(ovir.Model([doubled, go_on], [x]))
    >>> layer.set_special_body_ports([-1, 1])
    >>> layer.set_merged_input(x, np.float32([1]), doubled)
    >>> layer.get_iter_value(doubled, -1)
    >>> layer
    [8.]
    """

    arguments = "trip_count execution_condition:condition"
    domains = by_input(trip_count=SMALL, condition=Between(1, 1))

    def infer(
        self, trip_count: TensorType, condition: TensorType, *inputs: TensorType, bodies: Mapping[str, InferBody]
    ) -> tuple[TensorType, ...]:
        self.require_integers("trip_count", trip_count)
        self.require_one_known("trip_count", trip_count)
        self.require_condition("condition", condition)
        item = self.condition()
        results = self.infer_body(bodies["body"], (trip_count, condition, *inputs))
        with at(item):
            self.require_condition("the execution_condition of the body", results[item.result])
        all_inputs = (trip_count, condition, *inputs)
        return self.infer_outputs(self.iterations(all_inputs, results), all_inputs, results)

    def fed_type(self, item: InputMap, tensor: TensorType, declared: TensorType) -> TensorType:
        """Return the type that a parameter gets: the body takes its inputs as they are, whatever its parameters
        declare."""
        return tensor if not tensor.element_type.is_dynamic else super().fed_type(item, tensor, declared)

    def condition(self) -> OutputMap:
        """Return the entry of the body's result that asks for another iteration."""
        entries = [item for item in self.wiring["body"].outputs if item.purpose == "execution_condition"]
        if len(entries) != 1:
            message = 'a Loop needs exactly one output with purpose="execution_condition" in its port map, got {}'
            hint = "mark the Result that decides whether another iteration follows"
            self.fail(message, len(entries), code=BODY, hint=hint)
        return entries[0]

    def iterations(self, inputs: Sequence[TensorType], results: Sequence[TensorType]) -> Dimension:
        trip_count, condition, again = inputs[0], inputs[1], results[self.condition().result]
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
        count = int(trip_count.ravel()[0])
        limit = None if count < 0 else count
        if not is_true(condition):
            limit = 0
        return self.iterate((trip_count, condition, *inputs), bodies["body"], limit, self.condition().result)


@operator("TensorIterator", opset=1)
class TensorIterator(IterationBase):
    """The results of a body that runs once for each part of its sliced inputs.

    Parts begin at `start` and proceed by `stride` up to and including `end` (both count from the end if negative); each
    is `part_size` long. All sliced inputs must have the same number of parts.

    >>> part = ops.parameter([1], "f32")
    >>> total = ops.parameter([1], "f32")
    >>> added = ops.result(ops.add(part, total))
    >>> layer = ops.tensor_iterator()
    >>> layer.set_body(ovir.Model([added], [part, total]))
    >>> layer.set_sliced_input(part, np.float32([1, 2, 3]), start=0, stride=1, part_size=1, end=-1, axis=0)
    >>> layer.set_merged_input(total, np.float32([0]), added)
    >>> layer.get_concatenated_slices(added, start=0, stride=1, part_size=1, end=-1, axis=0)
    >>> layer
    [1. 3. 6.]
    """

    def infer(self, *inputs: TensorType, bodies: Mapping[str, InferBody]) -> tuple[TensorType, ...]:
        results = self.infer_body(bodies["body"], inputs)
        return self.infer_outputs(self.iterations(inputs, results), inputs, results)

    def iterations(self, inputs: Sequence[TensorType], results: Sequence[TensorType]) -> Dimension:
        iterations = None
        for item in self.sliced():
            shape = inputs[item.external].shape
            axis = self.normalize_axis(item.axis or 0, shape.rank)
            with at(item):
                count = self._parts(item, shape[axis])
                message = "{} has {} parts to iterate over, but another sliced input has {}"
                both = count if iterations is None else iterations.merged_with(count)
                iterations = self.require_known(both, message, item.source, count, iterations, code=BODY)
        return Dimension(self._unsliced(), self._unsliced()) if iterations is None else iterations

    def part_length(self, item: OutputMap, length: Dimension) -> Dimension:
        message = "{} concatenates parts of part_size {} along axis {}, but the body's result has length {} there"
        size = item.part_size
        part = length.merged_with(Dimension(size, size)) if size >= 0 else None
        return self.require_known(part, message, item.target, size, item.axis, length, code=BODY)

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
        for item in self.sliced():
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
