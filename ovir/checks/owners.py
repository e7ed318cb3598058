"""Who decides the sizes of a run of an untrusted file: the file, the caller, or the run itself.

The model is inferred for the sizes that its caller chooses. What is not known then has an owner. The file owns what is
computed from constants and chosen sizes alone: it counts with its exact value or its proven upper bound. The caller
owns what depends on the values of inputs: without a bound it counts as its lower bound, or 1. The run owns random
numbers. A size of the file or of the run that nothing bounds is reported, not guessed.

Bounds are intervals without NaN; the bodies of loops are inferred once for each iteration, as long as that is
affordable, so that what grows from one iteration to the next has the size of the last one.

Strings have a length as well: at most the longest one of the constants that they come from, or the bytes that they are
made of. Strings of inputs are short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import zip_longest
from math import inf
from typing import TypeVar

import numpy as np

from ovir.checks.conditions import Bound, Ending, bound_of_layer, ending, is_followed, wraps
from ovir.core.arrays import Array, join_strings
from ovir.core.element_types import boolean, plain_numbers, string, u8
from ovir.core.encoding import longest_string
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value, bounds_dtype, from_moved, is_small, limits
from ovir.diagnostics.errors import Diagnostics, OperatorError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import UNKNOWN_TENSOR, Layer, Port, sources_of
from ovir.inference.engines import BodyInference, Engine, Types, set_outputs
from ovir.inference.known_values import inferred
from ovir.ops.base.bodies import BackEdge
from ovir.ops.control_flow import IterationBase, Loop, known_truth
from ovir.ops.infrastructure import Const, Parameter
from ovir.ops.state import ReadValueBase

T = TypeVar("T")


class Owner(IntEnum):
    """What decides a value or a size.

    Of several owners, the greatest one counts: a size in which the caller takes part is the caller's, unless nothing
    bounds it because of the file.
    """

    FILE = 0
    RUN = 1
    CALLER = 2
    LOOP = 3
    """A loop of the file, whose iterations were too many to follow."""
    LARGE = 4
    """Large numbers of the file, in a computation that no interval follows."""


@dataclass(frozen=True)
class Owned:
    """The bounds of the elements of a tensor, and who decides them."""

    bound: Bound
    owner: Owner

    @property
    def is_open(self) -> bool:
        """Return whether nothing bounds the elements from above."""
        return self.bound.high >= _UNBOUNDED

    @property
    def is_large(self) -> bool:
        """Return whether the elements may be large, by numbers of the file that do not stand for an open end."""
        ends = (self.bound.low, self.bound.high)
        return any(_LARGE <= end < inf and not means_open(int(end)) for end in ends)

    @property
    def varies(self) -> bool:
        """Return whether the elements may have several values."""
        return self.bound.low < self.bound.high


_UNBOUNDED = 2.0**62
"""A bound from which on an integer of 64 bits counts as unbounded."""
_LARGE = 2.0**16
"""Numbers from this one on are large for a size."""
_MOST_INFERRED = 5_000
"""The layers that are inferred once more for iterations of loops."""
_MOST_TIME = 1e9
"""The nanoseconds, as ``kernel_time`` estimates them, for computing what the file alone decides."""
_MOST_BYTES = 1 << 28
"""The bytes of one tensor that is computed because the file alone decides it."""
_CALL = 20_000.0
"""The nanoseconds that each call of a kernel takes."""
_STRING = 32
"""The bytes that a string takes besides its text."""


class OwningEngine(Engine):
    """Infers a model for the sizes that its caller chooses, and finds out who decides all others.

    A layer that cannot be inferred for these sizes keeps its type.
    """

    def __init__(self) -> None:
        super().__init__(Diagnostics())
        self.endings: dict[Layer, Ending] = {}
        """The iterations of the layers with bodies, the most of several iterations around."""
        self._fed: dict[Port, Owner] = {}
        """The owners of the parameters of bodies, and of the outputs of layers with bodies."""
        self._deciding: dict[Layer, dict[int, Owned]] = {}
        """For each layer, what is known of the inputs whose values decide sizes and are not constants."""
        self._owned: dict[Port, Owned] = {}
        self._owners: dict[Port, Owner] = {}
        self._arrays: dict[Port, Array | None] = {}
        """What the file alone decides; None for other tensors, and for those that take too long."""
        self._lengths: dict[Port, int] = {}
        """The bytes of the longest string of a tensor, at most."""
        self._around: dict[Port, Layer] = {}
        """The layers with the bodies that parameters belong to."""
        self._lost: set[Layer] = set()
        """Loops whose sizes change in more iterations than were followed."""
        self._inferred = 0
        self._time = 0.0

    # ----- inference

    def infer(self, model: LayerGraph, given: Sequence[TensorType] | None = None) -> list[TensorType]:
        """Infer the layers in order and return the types of the results."""
        if given is not None:
            self._inferred += len(model.layers)
            for port in model.inputs:
                self._forget(port.layer)
        return super().infer(model, given)

    def infer_layer(self, layer: Layer, *, is_body: bool) -> None:
        """Set the types of the outputs of a layer."""
        self._deciding.pop(layer, None)
        self._forget(layer)
        outputs, _ = self.attempt(layer, [self._read(layer, index) for index in range(len(layer.inputs))])
        if outputs is None:
            return
        if not is_body:  # the sizes of a body may differ each time
            before = [port.type.shape for port in layer.outputs]
            merged = [new.shape.merged_with(old) for new, old in zip(outputs, before, strict=False)]
            known = zip(outputs, merged, strict=False)
            outputs = tuple([new if shape is None else new.refined(new.element_type, shape) for new, shape in known])
        if not layer.bodies and any(o.owner is Owner.CALLER for o in self._deciding.get(layer, {}).values()):
            outputs = tuple([tensor.refined(tensor.element_type, _opened(tensor.shape)) for tensor in outputs])
        set_outputs(layer, outputs)
        for port in layer.outputs:
            if not port.type.shape.is_static and (array := self.computed(port)) is not None:
                port.inferred = TensorType(port.element_type, PartialShape(array.shape), Value(array))

    def _forget(self, layer: Layer) -> None:
        for port in layer.outputs:
            for known in (self._owned, self._owners, self._arrays, self._lengths):
                known.pop(port, None)

    def _read(self, layer: Layer, index: int) -> TensorType:
        """Return the type of an input, with what is known of its values if they decide sizes."""
        source, op = layer.inputs[index].source, layer.operator
        if source is None:
            return UNKNOWN_TENSOR
        tensor = source.type
        if op is None or not op.reads_value(index) or tensor.element_type == string:
            return tensor
        if tensor.shape.is_static and (not is_small(tensor.shape) or tensor.constant is not None):
            return tensor
        if (array := self.computed(source)) is not None:
            return TensorType(tensor.element_type, PartialShape(array.shape), Value(array))
        owned = self._deciding.setdefault(layer, {})[index] = self.owned(source)
        return _within(tensor, owned.bound)

    # ----- bodies

    def _infer_layer(self, layer: Layer, inputs: Sequence[TensorType]) -> Types:
        op = layer.operator
        if op is None or not layer.bodies or not all(name in op.wiring for name in layer.bodies):
            return super()._infer_layer(layer, inputs)
        for name, body in layer.bodies.items():
            for item in op.wiring[name].inputs:
                source = layer.inputs[item.external].source if item.external >= 0 else None
                parameter = _parameter(body, item.parameter)
                self._fed[parameter] = Owner.FILE if source is None else self.owner(source)
                self._around[parameter] = layer
        outputs = super()._infer_layer(layer, inputs)
        end = ending(layer, inputs)
        if layer not in self.endings or end.count > self.endings[layer].count:
            self.endings[layer] = end
        if isinstance(op, IterationBase) and op.wiring["body"].back_edges:
            outputs = self._iterated(layer, op, inputs, max(end.count, 1), outputs)
        ends = [(body, item) for name, body in layer.bodies.items() for item in op.wiring[name].outputs]
        for index, port in enumerate(layer.outputs):
            results = [_result(body, item.result) for body, item in ends if item.external == index]
            deciders = [self._decider(result) for result in results if result is not None]
            self._fed[port] = max(deciders, default=Owner.FILE)
        return outputs

    def _iterated(
        self, layer: Layer, op: IterationBase, inputs: Sequence[TensorType], count: int, widest: Types
    ) -> Types:
        """Return the outputs of a loop of at most ``count`` iterations, or ``widest`` if these are too many to
        follow."""
        body, wiring = layer.bodies["body"], op.wiring["body"]
        infer_body = BodyInference(body, self)
        given = op.first_types(infer_body, inputs)
        for item in wiring.inputs:
            if item.purpose == "current_iteration":
                given[item.parameter] = _within(given[item.parameter], Bound(0.0, count - 1.0))
        carried = [(_parameter(body, edge.parameter), edge) for edge in wiring.back_edges]
        covering = list(given)
        first: list[TensorType] = []
        seen: list[TensorType] = []
        for _ in range(count):
            if self._inferred > _MOST_INFERRED:
                self._fed.update({port: Owner.LOOP for port, _ in carried})
                op.infer_body(infer_body, inputs)
                self._note_growth(layer, carried, first)
                return widest
            results = infer_body(given)
            sources = [_result(body, index) for index in range(len(results))]
            for index, source in enumerate(sources):
                if source is not None:
                    results[index] = _within(results[index], self.owned(source).bound)
            first = first or results
            seen = [a if b is None else _hull(a, b) for a, b in zip_longest(results, seen)]
            following = list(given)
            for port, edge in carried:
                following[edge.parameter] = results[edge.result]
                if (source := sources[edge.result]) is not None:
                    self._fed[port] = max(self._fed[port], self._decider(source))
            if all(_is_same(*pair) for pair in zip(given, following, strict=True)):
                break
            given = following
            covering = [_hull(*pair) for pair in zip(covering, given, strict=True)]
            if isinstance(op, Loop) and known_truth(results[op.condition().result]) is False:
                break
        infer_body(covering)  # the ports of the body keep types that hold in every iteration
        self._note_growth(layer, carried, first)
        outputs = list(op.infer_outputs(Dimension(0, count), inputs, seen))
        for last in wiring.outputs:
            if last.axis is None and 0 <= last.external < len(outputs):
                tensor = outputs[last.external]
                outputs[last.external] = seen[last.result].refined(tensor.element_type, tensor.shape)
        return tuple(outputs)

    def _note_growth(self, layer: Layer, carried: Sequence[tuple[Port, BackEdge]], first: Sequence[TensorType]) -> None:
        """Note a loop that makes sizes grow without a bound that were bounded after the first iteration."""
        for port, edge in carried:
            if not first or (_is_bounded(first[edge.result].shape) and not _is_bounded(port.type.shape)):
                self._lost.add(layer)

    # ----- owners

    def owner(self, port: Port) -> Owner:
        """Return who decides the elements of an output, whatever their bounds are."""
        return self._cached_walk(port, self._owners, self._sources, self._owner_of)

    def _sources(self, port: Port) -> list[Port]:
        layer, op = port.layer, port.layer.operator
        if op is None or layer.bodies:
            return []
        return [item.source for item in op.with_elements_read(layer.inputs) if item.source is not None]

    def _owner_of(self, port: Port, sources: Sequence[Port]) -> Owner:
        op = port.layer.operator
        if isinstance(op, Parameter) or op is None or port.layer.bodies:
            return self._fed.get(port, Owner.CALLER)
        owners = [self._owners[source] for source in sources]
        if any(not port.layer.inputs[index].type.shape.is_static for index in op.shape_inputs):
            owners.append(Owner.CALLER)  # or the size is reported
        return max(owners, default=Owner.FILE) if op.pure or isinstance(op, ReadValueBase) else Owner.RUN

    def owned(self, port: Port) -> Owned:
        """Return the bounds of the elements of an output, and who decides them."""
        return self._cached_walk(port, self._owned, self._bounds_needed, self._owned_of)

    def _decider(self, port: Port) -> Owner:
        """Return who decides the elements of an output; if nothing bounds them, who is to blame."""
        owned = self.owned(port)
        return max(self.owner(port), owned.owner) if owned.is_open else self.owner(port)

    def _bounds_needed(self, port: Port) -> list[Port]:
        op = port.layer.operator
        return [] if op is None or max(map(abs, op.within)) < inf else self._sources(port)

    def _owned_of(self, port: Port, sources: Sequence[Port]) -> Owned:
        layer, op, tensor = port.layer, port.layer.operator, port.type
        low, high = (0.0, 1.0) if tensor.element_type == boolean else limits(tensor.element_type)
        owner = self.owner(port)
        value = tensor.value if is_small(tensor.shape) else None
        if value is not None and value.size and (value.constant is None or value.constant.dtype.kind in "biuf"):
            low, high = max(low, float(value.lower.min())), min(high, float(value.upper.max()))
        is_short = isinstance(op, Const) or is_small(tensor.shape)
        if value is not None and value.constant is not None:
            owner = Owner.FILE
        elif owner is Owner.FILE and is_short and (array := self.computed(port)) is not None:
            low, high = _ends(array, low, high)
        elif op is not None and (owned := [self._owned[source] for source in sources]):
            bound = bound_of_layer(layer, [item.bound for item in owned], {})
            if op.converts and bound == Bound() and owned[0].is_open:
                bound = owned[0].bound  # numbers that wrap around are not what a caller chooses
            varying = [item.owner for item in owned if item.varies]  # a fixed number decides nothing
            owner = max(varying, default=Owner.FILE if is_followed(layer) else owner)
            owner = owner if op.pure else max(owner, Owner.RUN)
            if not (is_beyond := wraps(tensor.element_type, bound)):
                low, high = max(low, bound.low), min(high, bound.high)
            if is_beyond or (high >= _UNBOUNDED and any(item.is_large for item in owned)):
                owner = Owner.LARGE
        elif op is not None and max(map(abs, op.within)) < inf:
            low, high = max(low, op.within[0]), min(high, op.within[1])
        return Owned(Bound(low, high), owner)

    def _cached_walk(
        self,
        port: Port,
        known: dict[Port, T],
        sources: Callable[[Port], list[Port]],
        of_port: Callable[[Port, Sequence[Port]], T],
    ) -> T:
        """Return what is known of a port, computed from what is known of others; chains of layers are long, so the way
        back through them is a list."""
        waiting = [port]
        while waiting:
            latest = waiting[-1]
            needed = [] if latest in known else sources(latest)
            missing = [source for source in needed if source not in known]
            if missing:
                waiting.extend(missing)
                continue
            if latest not in known:
                known[latest] = of_port(latest, needed)
            waiting.pop()
        return known[port]

    def computed(self, port: Port) -> Array | None:
        """Return the elements of an output that the file alone decides, if they can be computed in a short time."""

        def sources(port: Port) -> list[Port]:
            return self._sources(port) if self._is_of_file(port) else []

        return self._cached_walk(port, self._arrays, sources, self._array_of)

    def _is_of_file(self, port: Port) -> bool:
        """Return whether a kernel computes an output from constants."""
        op = port.layer.operator
        if op is None or not op.pure or op.wiring or op.shape_inputs or not port.layer.inputs:
            return False
        return self.owner(port) is Owner.FILE and all(item.source is not None for item in port.layer.inputs)

    def _array_of(self, port: Port, sources: Sequence[Port]) -> Array | None:
        layer, op = port.layer, port.layer.operator
        if isinstance(op, Const) or (is_small(port.type.shape) and port.type.constant is not None):
            return port.type.constant
        if op is None or not self._is_of_file(port):
            return None
        inputs = []
        for source in sources:
            if (array := self._arrays[source]) is None:
                return None
            inputs.append(TensorType(source.element_type, PartialShape(array.shape), Value(array)))
        try:
            outputs = inferred(op.infer(*inputs)).outputs
            time = op.kernel_time(inputs, outputs)
            if time == inf and op.bounded:  # the sizes of the outputs depend on the elements
                time = 100.0 * sum(item.shape.least_size for item in inputs)
            self._time += time + _CALL
            if self._time > _MOST_TIME:
                return None
            if self._bytes_made(layer, outputs) > _MOST_BYTES:
                return None
            with np.errstate(all="ignore"), reporting_to(lambda code, message, effect: None):
                arrays = op.applied(inputs, outputs).run(*[self._arrays[source] for source in sources])
        except OperatorError:
            return None
        results = arrays if isinstance(arrays, tuple) else (arrays,)
        for output, array in zip(layer.outputs, results, strict=False):
            self._arrays[output] = array
        return results[port.index]

    # ----- bytes

    def bytes_of(self, port: Port) -> int:
        """Return the bytes of an output; sizes that are not known count as their upper bounds."""
        tensor, op = port.type, port.layer.operator
        if tensor.element_type != string:
            return size_of(tensor)
        text = op.stored() if isinstance(op, Const) else None
        if text is not None:
            return tensor.shape.least_size * _STRING + text.size
        return counted_sizes(tensor.shape).least_size * (_STRING + self.longest(port))

    def _bytes_made(self, layer: Layer, outputs: Sequence[TensorType]) -> int:
        """Return the bytes of outputs that a kernel is about to compute, at most; its time limits strings that it makes
        longer than those of its inputs."""
        lengths = [self.longest(port.source) for port in layer.inputs if port.source and port.element_type == string]
        string_bytes = _STRING + max(lengths, default=0)
        return sum(
            counted_sizes(tensor.shape).least_size * string_bytes if tensor.element_type == string else size_of(tensor)
            for tensor in outputs
        )

    def longest(self, port: Port) -> int:
        """Return the bytes of the longest string of an output, at most; strings of inputs count as empty."""
        return self._cached_walk(port, self._lengths, self._strings_read, self._length_of)

    def _strings_read(self, port: Port) -> list[Port]:
        layer = self._around.get(port, port.layer)
        read = sources_of(layer)
        made = [output for body in layer.bodies.values() for output in _made_strings(body)]
        return [source for source in (*read, *made) if source.element_type == string]

    def _length_of(self, port: Port, sources: Sequence[Port]) -> int:
        layer, op = port.layer, port.layer.operator
        if isinstance(op, Const):
            text = op.stored()
            return longest_string(text) if text is not None else _longest(op.data)
        if op is None or sources or layer.bodies or isinstance(op, Parameter):
            return max((self._lengths[source] for source in sources), default=0)
        if (array := self.computed(port)) is not None:
            return _longest(array)
        return sum(_BYTES_OF_ONE * size_of(item.type) for item in layer.inputs if item.element_type == u8)

    # ----- what nothing bounds

    def unbounded(self, layer: Layer) -> str | None:
        """Return why nothing bounds the sizes of a layer's outputs, or the iterations of its body, although the caller
        does not decide them; None if something does."""
        if layer in self._lost:
            return f"it changes sizes in each of {self.endings[layer].count:,} iterations, too many to follow"
        deciding, is_bounded = self._deciding.get(layer, {}), _is_bounded(*(port.type.shape for port in layer.outputs))
        for index, owned in deciding.items():
            if owned.is_open and owned.owner is not Owner.CALLER and (layer.bodies or not is_bounded):
                return f"{_OWNERS[owned.owner]} decides input {index}, {layer.inputs[index].type}"
        if is_bounded or layer.type in ("Parameter", "Result") or layer.bodies:
            return None
        if any(not port.type.shape.is_static for port in layer.inputs) or deciding:
            return None
        owner = max(map(self.owner, self._sources(layer.outputs[0])), default=Owner.FILE)
        return f"{_OWNERS[owner]} decides it" if owner is not Owner.CALLER else None


_OWNERS = {
    Owner.FILE: "the file",
    Owner.RUN: "a random number",
    Owner.LOOP: "a loop of the file, of more iterations than can be followed,",
    Owner.LARGE: "a computation with large numbers of the file, which no interval follows,",
}


def _ends(array: Array, low: float, high: float) -> tuple[float, float]:
    """Return the least and the greatest of real numbers; the given bounds in place of NaN, and for anything else."""
    if not array.size or array.dtype.kind in "OSTU":
        return low, high
    numbers = plain_numbers(array)
    least, most = float(numbers.min()), float(numbers.max())
    return (least if least == least else low), (most if most == most else high)


def _is_bounded(*shapes: PartialShape) -> bool:
    return all(shape.rank is not None and None not in [dim.upper for dim in shape] for shape in shapes)


def _opened(shape: PartialShape) -> PartialShape:
    """Return the shape without the bounds that mean that there is none."""
    if shape.rank is None or not any(dim.upper is not None and means_open(dim.upper) for dim in shape):
        return shape
    return PartialShape([Dimension(d.lower, None) if d.upper is not None and means_open(d.upper) else d for d in shape])


def means_open(bound: int) -> bool:
    """Return whether a bound means that there is none: exporters write the largest integer, of 32 or 64 bits."""
    return bound >= 1 << 62 or any(abs(bound - (1 << bits)) <= 1 for bits in (31, 32))


def counted_sizes(shape: PartialShape, *, is_declared: bool = False) -> PartialShape:
    """Return the upper bounds of the sizes, in place of open ones 1 or their lower bounds; an unknown rank stays so.

    A size that is ``is_declared`` for an input is open as well if its bound is too large for a tensor.
    """
    if shape.rank is None or shape.is_static:
        return shape
    limit = _NO_SIZE if is_declared else inf
    sizes = [max(dim.lower, 1) if dim.upper is None or dim.upper >= limit else dim.upper for dim in shape]
    return PartialShape([Dimension(size, size) for size in sizes])


_NO_SIZE = 1 << 30
"""A declared bound from which on a size counts as open: exporters write the largest integer, of 32 or 64 bits."""


def size_of(tensor: TensorType) -> int:
    """Return the bytes of a tensor of numbers; sizes that are not known count as their upper bounds."""
    return -(-counted_sizes(tensor.shape).least_size * max(tensor.element_type.bits, 1) // 8)


def _made_strings(body: LayerGraph) -> Iterator[Port]:
    """Yield the outputs of strings in a body, and in bodies within it, that are not made of other strings."""
    for graph in body.graphs():
        for layer in graph.layers:
            if not any(port.source is not None and port.element_type == string for port in layer.inputs):
                yield from (port for port in layer.outputs if layer.type != "Parameter")


def _longest(strings: Array) -> int:
    return int(np.diff(join_strings(strings)[1], prepend=0).max(initial=0))


_BYTES_OF_ONE = 3
"""The bytes of U+FFFD, which stands for one byte that is not UTF-8."""


def _parameter(body: LayerGraph, index: int) -> Port:
    """Return the output of a parameter of a body."""
    return body.inputs[index].layer.outputs[0]


def _result(body: LayerGraph, index: int) -> Port | None:
    """Return the output that a result of a body returns."""
    return body.outputs[index].layer.inputs[0].source


def _within(tensor: TensorType, bound: Bound) -> TensorType:
    """Return a small tensor with the elements in an interval; any other one as it is."""
    if not is_small(tensor.shape) or not tensor.shape.is_static or tensor.element_type == string:
        return tensor
    least, most = limits(tensor.element_type)
    value = tensor.value
    if value is not None and value.constant is not None:
        return tensor
    if (bound.low <= least and bound.high >= most) or bound.low > bound.high:
        return tensor
    dtype, shape = bounds_dtype(tensor.element_type), tensor.shape.to_tuple()
    lower, upper = np.full(shape, bound.low, dtype), np.full(shape, bound.high, dtype)
    if value is None:
        return tensor.with_value(from_moved(tensor.element_type, lower, upper))
    lower, upper = np.maximum(lower, value.lower), np.minimum(upper, value.upper)
    return tensor.with_value(from_moved(tensor.element_type, lower, upper, value.marks))


def _hull(a: TensorType, b: TensorType) -> TensorType:
    """Return the type of a tensor that is of either type."""
    if a is b:
        return a
    shape = a.shape.union(b.shape)
    if shape.is_static and is_small(shape) and a.element_type != string:
        one, other = a.value, b.value
        if one is not None and other is not None and (one.constant is None or one.constant.dtype.kind in "biuf"):
            lower, upper = np.minimum(one.lower, other.lower), np.maximum(one.upper, other.upper)
            return TensorType(a.element_type, shape, from_moved(a.element_type, lower, upper))
    return TensorType(a.element_type, shape)


def _is_same(a: TensorType, b: TensorType) -> bool:
    """Return whether as much is known of two tensors."""
    if a != b or (a.value is None) is not (b.value is None):
        return False
    one, other = a.value, b.value
    if one is None or other is None:
        return True
    if one.constant is not None or other.constant is not None:
        return one.identity == other.identity
    return np.array_equal(one.lower, other.lower) and np.array_equal(one.upper, other.upper)
