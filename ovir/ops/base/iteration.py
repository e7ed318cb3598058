"""Base classes of operations with bodies: how a body is fed and iterated, and which shapes hold in every iteration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import Dimension
from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import BODY
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.kernel_warnings import report
from ovir.ops.base.bodies import Connection, InferBody, InputMap, OutputMap, RunBody
from ovir.ops.base.operator import Operator
from ovir.ops.base.traits import ALL

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
        self.require_type(name, tensor.element_type, _can_be_true, "boolean or of an integer type")
        self.require_one_known(name, tensor)

    def require_one_known(self, name: str, tensor: TensorType) -> None:
        """Raise for a constant of several elements; the size of other tensors is checked when the operation runs."""
        self.require_rank(name, tensor.shape, 0, 1)
        several = tensor.value is not None and tensor.value.size > 1
        self.require(not several, "{} must have one element, got shape {}", name, tensor.shape)

    def fed_type(self, item: InputMap, tensor: TensorType, declared: TensorType) -> TensorType:
        """Return the type that a parameter of the body gets; its declared element type must match the input's."""
        element_type = tensor.element_type.merged_with(declared.element_type)
        if element_type is None:
            message = "{} is {}, but {}, which it feeds, is declared as {}"
            self.fail(message, item.source, tensor.element_type, item.target, declared.element_type, code=BODY)
        return tensor.refined(element_type, tensor.shape)

    def checked(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Return the arrays after checking that they have the shapes that later layers rely on."""
        for index, (array, expected) in enumerate(zip(arrays, self.output_shapes, strict=False)):
            fits = expected.contains(array.shape)
            self.require(fits, "output {} has shape {}, but the inferred shape is {}", index, array.shape, expected)
        return tuple(arrays)


def _can_be_true(element_type: ElementType) -> bool:
    return element_type.kind == "boolean" or element_type.is_integral


def known_truth(tensor: TensorType) -> bool | None:
    """Return the truth value of a condition, or None if it is unknown before a run."""
    known = tensor.constant
    return is_true(known) if known is not None and known.size == 1 else None


def is_true(array: Array) -> bool:
    """Return the truth value of a condition of one element."""
    return bool(array.reshape(-1)[0])


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

    def infer_body(self, body: InferBody, inputs: Sequence[TensorType]) -> tuple[list[TensorType], list[TensorType]]:
        """Return types of the parameters and results that hold in every iteration."""
        wiring = self.wiring["body"]
        given = body.parameters
        for item in wiring.inputs:
            with at(item):
                if item.purpose == "current_iteration":
                    given[item.parameter] = self._infer_counter(given[item.parameter])
                if item.external >= 0:
                    fed = self.fed_type(item, inputs[item.external], given[item.parameter])
                    given[item.parameter] = fed if item.axis is None else self._part_type(item, fed)
        while True:
            results = body(given)
            before = list(given)
            for edge in wiring.back_edges:
                parameter, result = given[edge.parameter], results[edge.result]
                if parameter.element_type.merged_with(result.element_type) is None:
                    message = (
                        "a back edge connects {1} of type {0} to {2} of type {3}: their element types must be equal"
                    )
                    values = result.element_type, edge.source, edge.target, parameter.element_type
                    with at(edge):
                        self.fail(message, *values, code=BODY)
                given[edge.parameter] = _widened(parameter, result)
            if all(a is b for a, b in zip(given, before, strict=True)):
                return given, results

    def _infer_counter(self, declared: TensorType) -> TensorType:
        self.require_integers("the current iteration", declared.element_type)
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
        if shape.rank is not None and shape[axis].is_static and 0 < shape[axis].length < item.part_size:
            message = "the part_size {} of {} is larger than axis {} of its shape {}"
            self.fail(message, item.part_size, name, axis, shape, code=BODY)
        return TensorType(tensor.element_type, shape.with_dim(axis, item.part_size))

    def infer_outputs(
        self, iterations: Dimension, given: Sequence[TensorType], results: Sequence[TensorType]
    ) -> tuple[TensorType, ...]:
        """Return the types of the layer's outputs."""
        outputs = []
        for item in by_output(self.wiring["body"].outputs):
            result = results[item.result]
            if item.axis is not None:
                with at(item):
                    shape = self._concatenated(item, result.shape, iterations)
            else:
                initial = [given[e.parameter].shape for e in self.wiring["body"].back_edges if e.result == item.result]
                shape = _last_shape(result.shape, initial[0] if initial else None, iterations)
            outputs.append(TensorType(result.element_type, shape))
        return tuple(outputs)

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
        wiring = self.wiring["body"]
        sliced = [item for item in wiring.inputs if item.axis is not None and item.external >= 0]
        given = [NOT_FED] * wiring.parameter_count
        for item in wiring.inputs:
            if item.external >= 0:
                given[item.parameter] = inputs[item.external]
        carried = {edge.parameter for edge in wiring.back_edges}
        counters = {i.parameter for i in wiring.inputs if i.purpose == "current_iteration"}
        initial = {edge.result: given[edge.parameter] for edge in wiring.back_edges}
        outputs = by_output(wiring.outputs)
        parts: dict[int, list[Array]] = {item.external: [] for item in outputs if item.axis is not None}
        results: list[Array] = []
        done = 0
        while limit is None or done < limit:
            for item in sliced:
                given[item.parameter] = self._part(item, inputs[item.external], done)
            for parameter in counters - carried if done else counters:
                given[parameter] = _count(body.parameters[parameter], done)
            results = body(given)
            done += 1
            for item_out in outputs:
                if item_out.external in parts:
                    parts[item_out.external].append(results[item_out.result].copy())
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
            elif item_out.result in initial:
                arrays.append(initial[item_out.result].copy())
            else:
                report(f"{item_out.target} is set to 0: the body ran zero times and no back edge supplies a value")
                arrays.append(self._zeros(item_out.external))
        return self.checked(arrays)

    def _zeros(self, output: int) -> Array:
        """Return zeros of an inferred type, with unknown sizes as small as allowed."""
        shape = self.output_shapes[output]
        sizes = [] if shape.rank is None else [dim.lower for dim in shape]
        return np.zeros(sizes, self.output_types[output].to_dtype())

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
        if not parts:
            expected = self.output_shapes[item.external]
            sizes = [0] if expected.rank is None else [dim.lower for dim in expected]
            message = "{} must be empty, since the body ran zero times; its inferred shape is {}"
            self.require(0 in sizes, message, item.target, expected)
            return np.empty(sizes, self.output_types[item.external].to_dtype())
        axis = self.normalize_axis(item.axis or 0, parts[0].ndim, f"{item.target}: axis")
        sizes = list(parts[0].shape)
        for iteration, part in enumerate(parts):
            same = part.shape[:axis] == parts[0].shape[:axis] and part.shape[axis + 1 :] == parts[0].shape[axis + 1 :]
            message = "{} cannot be concatenated along axis {}: iteration {} gives shape {}, but the first gave {}"
            self.require(same, message, item.target, axis, iteration, part.shape, sizes)
        if item.stride < 0:
            parts = parts[::-1]
        return np.concatenate([np.atleast_1d(part) for part in parts], axis)


def _count(parameter: TensorType, done: int) -> Array:
    """Return the number of the iteration as an array of the parameter's type."""
    return np.full(parameter.shape.to_tuple(), done, parameter.element_type.to_dtype())


def from_front(position: int, length: int) -> int:
    return position + length if position < 0 else position


def _widened(given: TensorType, result: TensorType) -> TensorType:
    """Return a type that holds for a carried tensor in the first iteration and after it; ``given`` itself if it does.

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


def _last_shape(result: PartialShape, initial: PartialShape | None, iterations: Dimension) -> PartialShape:
    """Return the shape of an output that is the last result, or the initial value if no iteration may run."""
    if initial is None or iterations.lower > 0:
        return result
    if iterations.upper == 0:
        return initial
    if result.rank is None or result.rank != initial.rank:
        return result
    # As in OpenVINO, rely on the result's shape. Yet two unknown sizes are known to be equal only if they are carried.
    return PartialShape(
        r if r.symbol == i.symbol else Dimension(r.lower, r.upper) for r, i in zip(result, initial, strict=True)
    )
