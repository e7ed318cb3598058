"""The iterations of loops: by the trip count, or else by the possible values of the condition in any iteration.

For the condition, the layers of the body are followed in order, with an interval for each output, first for the first
iteration and then for all of them. NaN, which makes nearly every comparison false, is left out: a loop that only a NaN
ends has no end.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite
from types import MappingProxyType

import numpy as np

from ovir.core.element_types import ElementType, boolean, value_range
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import OperatorError
from ovir.graph.layers import Layer, Port
from ovir.model import Model
from ovir.ops.base.bodies import BodyMap
from ovir.ops.base.traits import ALL
from ovir.ops.control_flow import IterationBase, Loop, known_truth


@dataclass(frozen=True)
class Ending:
    """The number of iterations of a body, as far as it is known."""

    count: int
    endless: str = ""
    """The reason why it never ends."""
    is_limited: bool = True


MOST_ITERATIONS = 1_000_000
"""So many iterations are not a fault."""


def ending(layer: Layer, inputs: Sequence[TensorType] | None = None) -> Ending:
    """Return the iterations of a layer's body, 1 if they depend on the inputs of the model.

    ``inputs`` are the types of the layer's inputs, if more is known of them than their sources tell.
    """
    types = [port.type for port in layer.inputs] if inputs is None else inputs
    operator = layer.operator
    body = layer.bodies.get("body")
    if not isinstance(operator, IterationBase) or body is None or "body" not in operator.wiring:
        return Ending(1)
    try:
        iterations = operator.iterations(types, [port.type for port in body.outputs])
    except (OperatorError, IndexError):  # inference has reported it
        return Ending(1)
    if not isinstance(operator, Loop):
        return Ending(iterations.lower if iterations.upper is None else iterations.upper)
    trips = types[0].value
    if iterations.upper is not None and iterations.upper <= MOST_ITERATIONS:
        return Ending(iterations.upper)
    again = body.outputs[operator.condition().result]
    is_unlimited = trips is not None and trips.size == 1 and trips.upper.max() < 0
    if trips is None or (iterations.upper is None and not is_unlimited and trips.lower.max() <= MOST_ITERATIONS):
        return Ending(1)  # the input of the model decides
    if not is_unlimited and known_truth(again.type) is True:
        return Ending(iterations.upper or iterations.lower)
    return _ending_by_condition(layer, body)


def _ending_by_condition(layer: Layer, body: Model) -> Ending:
    """Return the ending of a Loop by its condition."""
    assert isinstance(layer.operator, Loop)
    wiring = layer.operator.wiring["body"]
    bounds = _bounds_of_all_iterations(layer, body, wiring)
    again = bounds[layer.operator.condition().result]
    if again.high <= 0:
        return Ending(1)
    if again.low > 0 or not again.varies:
        why = "always true" if again.low > 0 else "the same in each iteration"
        trips = f"no trip count of at most {MOST_ITERATIONS:,} ends it"
        return Ending(1, f"the loop never ends: its condition is {why}, and {trips}")
    if again.if_true is None:
        return Ending(1, is_limited=False)
    return Ending(int(again.if_true) if isfinite(again.if_true) else 1)


@dataclass(frozen=True)
class Bound:
    """The bounds of the elements of a tensor in every iteration, and how they change."""

    low: float = -inf
    high: float = inf
    key: Hashable = None
    """Equal for tensors of equal elements. The key of a negated boolean is a pair of ``not`` and a key."""
    varies: bool = True
    """Whether it may change from one iteration to the next."""
    counter: tuple[int, float] | None = None
    """The parameter of the body that it is a constant more than, and this constant."""
    if_true: float | None = None
    """The most iterations while this is true; infinity if the inputs of the model decide, None without limit."""
    if_false: float | None = None


@dataclass(frozen=True)
class _Counter:
    """A parameter that changes by the same step in each iteration."""

    step: float
    start: Bound


def _bounds_of_all_iterations(layer: Layer, body: Model, wiring: BodyMap) -> list[Bound]:
    """Return the bounds of the results of a body in every iteration."""
    parameters = [port.layer.outputs[0] for port in body.inputs]
    edges = {edge.parameter: edge.result for edge in wiring.back_edges}
    feeds = {item.parameter: item for item in wiring.inputs}
    first: list[Bound] = []
    counters: dict[int, _Counter] = {}
    for index, parameter in enumerate(parameters):
        item, bound, source = feeds.get(index), bound_of_type(parameter.type), None
        if item is not None and item.purpose == "current_iteration":
            bound = replace(bound, low=0.0)
            counters[index] = _Counter(1.0, Bound(0.0, 0.0))
        elif item is not None and 0 <= item.external < len(layer.inputs):
            bound, source = bound_of_type(layer.inputs[item.external].type), layer.inputs[item.external].source
        is_fixed = index not in counters and index not in edges and (item is None or item.axis is None)
        key: Hashable = ("outside", source) if is_fixed and source is not None else ("parameter", index)
        first.append(replace(bound, varies=not is_fixed, key=key, counter=(index, 0.0)))
    given = list(first)
    for round_ in range(_ROUNDS):
        bounds = _followed(body, given, counters)
        before = list(given)
        for index, result in edges.items():
            new, old = bounds[result], given[index]
            if new.key == old.key:
                given[index] = replace(old, varies=False)
                continue
            if new.counter is not None and new.counter[0] == index and parameters[index].element_type.is_integral:
                counters[index] = _Counter(new.counter[1], first[index])
            everything = bound_of_type(parameters[index].type) if round_ else new
            low = old.low if new.low >= old.low else everything.low
            high = old.high if new.high <= old.high else everything.high
            given[index] = replace(old, low=low, high=high)
        if given == before and round_ > 1:
            break
    return bounds


_ROUNDS = 6
"""From the second one on, values that grow have no bound, so little changes after it."""


def bound_of_type(tensor: TensorType) -> Bound:
    """Return the bounds of a tensor: those that inference knows, within those of its type."""
    low, high = -inf, inf
    if tensor.element_type == boolean:
        low, high = 0.0, 1.0
    elif tensor.element_type.is_integral:
        low, high = map(float, value_range(tensor.element_type))
    value = tensor.value
    if value is not None and value.size and (value.constant is None or value.constant.dtype.kind in "biuf"):
        low, high = max(low, float(np.min(value.lower))), min(high, float(np.max(value.upper)))
    return Bound(_or(low, -inf), _or(high, inf))


def _or(bound: float, other: float) -> float:
    """Return the bound, or another one if it is NaN."""
    return other if bound != bound else bound


def _followed(model: Model, parameters: Sequence[Bound], counters: Mapping[int, _Counter]) -> list[Bound]:
    """Return the bounds of the results of a model for such parameters.

    The model may be at fault: nothing is known of a tensor that no layer in it computes.
    """
    known = bounds_of(model, parameters, counters)
    results = []
    for port in model.outputs:
        source = port.layer.inputs[0].source
        results.append(Bound() if source is None else known.get(source, Bound()))
    return results


def bounds_of(
    model: Model, parameters: Sequence[Bound], counters: Mapping[int, _Counter] = MappingProxyType({})
) -> dict[Port, Bound]:
    """Return the bounds of the outputs of all layers of a model for such parameters."""
    known: dict[Port, Bound] = {}
    for port, bound in zip(model.inputs, parameters, strict=True):
        known[port.layer.outputs[0]] = bound
    for layer in model.layers:
        if layer.type in ("Parameter", "Result"):
            continue
        inputs = [Bound() if port.source is None else known.get(port.source, Bound()) for port in layer.inputs]
        of_if = _of_if(layer, inputs, counters) if layer.type == "If" else None
        for index, port in enumerate(layer.outputs):
            bound = (
                of_if[index] if of_if is not None and index < len(of_if) else bound_of_layer(layer, inputs, counters)
            )
            by_type = bound_of_type(port.type)
            is_beyond = port.element_type.bits < 64 and wraps(port.element_type, bound)  # nobody waits for 2^63 steps
            low, high = (-inf, inf) if is_beyond else (bound.low, bound.high)
            key = _key(layer, index, inputs) if bound.key is None else bound.key
            known[port] = replace(bound, low=max(low, by_type.low), high=min(high, by_type.high), key=key)
    return known


def wraps(element_type: ElementType, bound: Bound) -> bool:
    """Return whether integers of a type cannot hold some bounds."""
    if not element_type.is_integral:
        return False
    least, most = value_range(element_type)
    return most < bound.high < inf or -inf < bound.low < least


def _key(layer: Layer, index: int, inputs: Sequence[Bound]) -> Hashable:
    """Return a key; outputs of layers with equal keys are equal."""
    op, port = layer.operator, layer.outputs[index]
    if op is None or not op.pure or op.wiring:
        return layer, index
    if not inputs:
        data = port.type.constant if port.shape.least_size <= _FEW else None
        return (layer, index) if data is None else (str(port.type), data.tobytes())
    fields = tuple((field, str(getattr(op, field))) for field in sorted(op.fields))
    return type(op), fields, index, tuple([hash(bound.key) for bound in inputs])


_FEW = 64
"""The elements of constants that are compared."""

# --------------------------------------------------------------------------- layers


def is_followed(layer: Layer) -> bool:
    """Return whether the bounds of a layer's outputs follow from those of its inputs."""
    op = layer.operator
    return op is not None and (
        layer.type in (*_COMPARISONS, *_LOGICAL, *_SUMS, *_ARITHMETIC, "Select", "Convert", "Abs")
        or (layer.type not in _FILLING and bool(op.moves_elements or op.forwards_values))
        or op.within != (-inf, inf)
        or (op.monotone == (0,) and len(layer.inputs) == 1)
    )


def bound_of_layer(layer: Layer, inputs: Sequence[Bound], counters: Mapping[int, _Counter]) -> Bound:
    """Return the bounds of the outputs of a layer."""
    op = layer.operator
    varies = op is None or not op.pure or any(bound.varies for bound in inputs)
    bound = replace(_by_kind(layer, inputs, counters), varies=varies)
    element_type = layer.outputs[0].element_type if layer.outputs else None
    if op is None or not inputs or op.within == (-inf, inf) or element_type is None:
        return bound
    if element_type.is_real or element_type not in op.with_elements_read([port.element_type for port in layer.inputs]):
        return replace(bound, low=max(bound.low, float(op.within[0])), high=min(bound.high, float(op.within[1])))
    return bound


def _by_kind(layer: Layer, inputs: Sequence[Bound], counters: Mapping[int, _Counter]) -> Bound:
    """Return the bounds of the outputs of a layer, apart from whether they vary."""
    op, kind = layer.operator, layer.type
    if op is None or not inputs:
        return Bound()
    if kind in _COMPARISONS and len(inputs) == 2:
        return _compared(kind, inputs[0], inputs[1], layer, counters)
    if kind in _LOGICAL:
        return _decided(kind, inputs)
    if kind in _SUMS:
        return _summed(layer, inputs[0])
    if kind in _ARITHMETIC and len(inputs) == 2:
        bound = _computed(kind, *inputs)
        element_type = layer.outputs[0].element_type
        if not element_type.is_real:  # quotients and the like are rounded, up or down
            bound = replace(bound, low=float(np.floor(bound.low)), high=float(np.ceil(bound.high)))
        if kind in _PRODUCTS and element_type.is_integral:
            low, high = map(float, value_range(element_type))
            if bound.low < low or bound.high > high:  # it may wrap around
                return Bound()
        return bound
    if kind == "Select" and len(inputs) == 3:
        return _chosen(*inputs)
    if kind == "Convert":
        return _converted(inputs[0], layer.inputs[0].element_type, layer.outputs[0].element_type)
    if kind == "Abs":
        x = inputs[0]
        low = 0.0 if x.low <= 0 <= x.high else min(abs(x.low), abs(x.high))
        return Bound(low, max(abs(x.low), abs(x.high)))
    moved = ALL if ALL in (op.moves_elements, op.forwards_values) else (*op.moves_elements, *op.forwards_values)
    taken = list(inputs) if moved == ALL else [inputs[i] for i in moved if i < len(inputs)]
    if len(taken) == 1 and kind in _RESHAPING:
        return taken[0]
    if taken and kind not in _FILLING:
        return Bound(min(bound.low for bound in taken), max(bound.high for bound in taken))
    return _at_ends(layer, inputs[0]) if op.monotone == (0,) and len(inputs) == 1 else Bound()


_SUMS = ("ReduceSum", "ReduceMean", "CumSum", "AvgPool")
"""Operations that add up elements of their input."""
_RESHAPING = ("Reshape", "Squeeze", "Unsqueeze", "Identity", "Broadcast", "Tile")
"""Operations that keep what is known of the only element of a tensor."""
_FILLING = ("Pad", "OneHot", "EmbeddingBagOffsetsSum", "Interpolate", "ReverseSequence", "GatherTree")
"""Operations that may add other elements than those that they move."""


def _summed(layer: Layer, x: Bound) -> Bound:
    """Return the results of a sum, a mean or running sums of numbers in an interval."""
    if layer.type == "ReduceMean":
        return Bound(x.low, x.high)
    if layer.type == "AvgPool":  # the padding may count
        return Bound(min(x.low, 0.0), max(x.high, 0.0))
    most, each = (port.type.shape.size().upper for port in (layer.inputs[0], layer.outputs[0]))
    if most is None or not each:
        return Bound(0.0 if x.low >= 0 else -inf, 0.0 if x.high <= 0 else inf)
    if layer.type == "ReduceSum":
        return Bound(_or(x.low * (most // each), -inf), _or(x.high * (most // each), inf))
    return Bound(_or(min(x.low * most, x.low), -inf), _or(max(x.high * most, x.high), inf))


def _at_ends(layer: Layer, x: Bound) -> Bound:
    """Return the results of an operation of one input for the ends of an interval, between which it is monotone."""
    op, source, returned = layer.operator, layer.inputs[0].element_type, layer.outputs[0].element_type
    assert op is not None
    least, greatest = (-inf, inf) if source.is_real else value_range(source)
    if not source.is_real and not op.stays_in_type:
        return Bound()
    scalar = PartialShape([])
    applied = op.applied([TensorType(source, scalar)], [TensorType(returned, scalar)])
    with np.errstate(all="ignore"):
        ends = [
            float(np.asarray(applied.run(np.asarray(end, source.to_dtype()))))
            for end in (least if x.low <= least else x.low, greatest if x.high >= greatest else x.high)
        ]
    low, high = sorted(ends)
    return Bound(low if low > least else -inf, high if high < greatest else inf)  # NaN is no bound either


def _converted(x: Bound, old: ElementType, new: ElementType) -> Bound:
    if new == boolean:
        if old == boolean:
            return x
        always = x.low > 0 or x.high < 0
        return Bound(float(always), float(not x.low == x.high == 0))
    if not new.is_integral:
        return Bound(x.low, x.high)
    least, greatest = value_range(new)
    if not (least <= x.low and x.high <= greatest):
        return Bound()  # it may wrap around
    return replace(x, low=float(np.trunc(x.low)), high=float(np.trunc(x.high)), key=x.key if old.is_integral else None)


def _computed(kind: str, a: Bound, b: Bound) -> Bound:
    """Return the result of arithmetic; integers that would leave their type are cut by the caller."""
    is_same = a.key is not None and a.key == b.key
    with np.errstate(all="ignore"):
        if kind == "Add":
            result = Bound(_or(a.low + b.low, -inf), _or(a.high + b.high, inf), counter=_moved(a, b, 1))
        elif kind == "Subtract":
            result = Bound(_or(a.low - b.high, -inf), _or(a.high - b.low, inf), counter=_moved(a, b, -1))
            result = Bound(0.0, 0.0) if is_same else result
        elif kind == "Multiply":
            corners = [_or(x * y, 0.0) for x in (a.low, a.high) for y in (b.low, b.high)]
            result = Bound(max(min(corners), 0.0) if is_same else min(corners), max(corners))
        elif kind == "SquaredDifference":
            difference = replace(_computed("Subtract", a, b), key="difference")
            result = _computed("Multiply", difference, difference)
        elif kind == "Divide":
            corners = [_or(x / y, 0.0) for x in (a.low, a.high) for y in (b.low, b.high)] if b.low > 0 else [-inf, inf]
            result = Bound(min(corners), max(corners))
        elif kind == "Maximum":
            result = Bound(max(a.low, b.low), max(a.high, b.high))
        elif kind == "Minimum":
            result = Bound(min(a.low, b.low), min(a.high, b.high))
        elif kind == "FloorMod":
            result = Bound(0.0, b.high) if b.low > 0 else Bound()
        elif kind == "Mod":
            result = Bound(0.0 if a.low >= 0 else -b.high, b.high) if b.low > 0 else Bound()
        else:  # Power
            is_even = b.low == b.high and isfinite(b.low) and b.low % 2 == 0
            result = Bound(0.0) if is_even else Bound()
            if a.low >= 0:
                corners = [float(np.power(x, y)) for x in (a.low, a.high) for y in (b.low, b.high)]
                result = Bound(min(corners), max(corners))
    return result


def _moved(a: Bound, b: Bound, sign: int) -> tuple[int, float] | None:
    """Return the counter of a counter and a constant."""
    if a.counter is not None and b.low == b.high:
        return a.counter[0], a.counter[1] + sign * b.low
    if sign > 0 and b.counter is not None and a.low == a.high:
        return b.counter[0], b.counter[1] + a.low
    return None


_ARITHMETIC = (
    *("Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum"),
    *("FloorMod", "Mod", "Power", "SquaredDifference"),
)

_PRODUCTS = ("Multiply", "Power", "SquaredDifference")
"""Operations whose results leave their type after few iterations."""

# --------------------------------------------------------------------------- conditions

_TRUE = Bound(1.0, 1.0, "true", varies=False)
_FALSE = Bound(0.0, 0.0, ("not", "true"), varies=False)


def _compared(kind: str, a: Bound, b: Bound, layer: Layer, counters: Mapping[int, _Counter]) -> Bound:
    """Return the result of a comparison, which is brought to the form a < b or a = b, perhaps negated."""
    is_negated = kind in ("GreaterEqual", "LessEqual", "NotEqual")
    if kind in ("Greater", "LessEqual"):
        a, b = b, a
    is_same = a.key is not None and a.key == b.key
    if kind in ("Equal", "NotEqual"):
        key: Hashable = ("equal", frozenset([hash(a.key), hash(b.key)]))
        sure = is_same or (a.low == a.high == b.low == b.high)
        never = a.high < b.low or b.high < a.low
        result = Bound(float(sure and not never), float(not never), key)
    else:
        key = ("less", hash(a.key), hash(b.key))
        sure, never = a.high < b.low, is_same or a.low >= b.high
        result = Bound(float(sure and not never), float(not never), key)
        read = layer.inputs[0].element_type
        result = replace(result, if_true=_trips(a, b, read, counters, 0), if_false=_trips(b, a, read, counters, 1))
    return _negated(result) if is_negated else result


def _trips(a: Bound, b: Bound, element_type: ElementType, counters: Mapping[int, _Counter], more: int) -> float | None:
    """Return the most iterations while a < b, with ``more`` = 1 while a <= b."""
    if not element_type.is_integral:
        return None  # a counter that is rounded may stand still
    least, greatest = value_range(element_type)
    for counting, fixed, is_up in ((a, b, True), (b, a, False)):
        counter = None if counting.counter is None else counters.get(counting.counter[0])
        if counter is None or fixed.varies or not counter.step:
            continue
        assert counting.counter is not None
        step, offset = abs(counter.step), counting.counter[1]
        end, start = (fixed.high, counter.start.low + offset) if is_up else (-fixed.low, -counter.start.high - offset)
        limit = float(greatest if is_up else -least)
        if (counter.step > 0) != is_up:  # away from the end, until it wraps around
            farthest = counter.start.high + offset if is_up else -counter.start.low - offset
            if farthest >= limit:  # an input of the model decides
                return inf
            count = (farthest - float(least if is_up else -greatest)) // step + 2.0
            return count if count <= MOST_ITERATIONS and end + more - 1 + step <= limit else None
        if end >= limit or start <= -limit:  # an input of the model decides
            return inf
        if end + more - 1 + step > limit:
            return None  # it wraps around before it is there
        return max(ceil((end + more - start) / step), 0) + 1.0
    return None


def _negated(x: Bound) -> Bound:
    key = x.key[1] if isinstance(x.key, tuple) and len(x.key) == 2 and x.key[0] == "not" else ("not", x.key)
    return replace(x, low=1 - x.high, high=1 - x.low, key=key, if_true=x.if_false, if_false=x.if_true)


def _decided(kind: str, inputs: Sequence[Bound]) -> Bound:
    """Return the result of a logical operation."""
    a = inputs[0]
    if kind == "LogicalNot":
        return _negated(a)
    if kind in ("ReduceLogicalAnd", "ReduceLogicalOr"):
        return replace(a, counter=None)
    b = inputs[1]
    if kind == "LogicalAnd":
        return _chosen(a, b, _FALSE)
    if kind == "LogicalOr":
        return _chosen(a, _TRUE, b)
    return _chosen(a, _negated(b), b)  # exclusive


def _chosen(condition: Bound, then: Bound, other: Bound) -> Bound:
    """Return ``then`` where a condition is true, and ``other`` where it is not."""
    if condition.low > 0 or then.key == other.key is not None:
        return then
    if condition.high <= 0:
        return other
    if condition.key is not None:  # within a branch the condition is known
        then = _TRUE if then.key == condition.key else _FALSE if then.key == _negated(condition).key else then
        other = _FALSE if other.key == condition.key else _TRUE if other.key == _negated(condition).key else other
    then, other = _with_limits(then), _with_limits(other)
    if_true = _either(_both(condition.if_true, then.if_true), _both(condition.if_false, other.if_true))
    if_false = _either(_both(condition.if_true, then.if_false), _both(condition.if_false, other.if_false))
    low, high = min(then.low, other.low), max(then.high, other.high)
    return Bound(low, high, if_true=if_true, if_false=if_false)


def _with_limits(x: Bound) -> Bound:
    """Return a condition with limits of 0 for values that it never has."""
    return replace(x, if_true=0.0 if x.high <= 0 else x.if_true, if_false=0.0 if x.low > 0 else x.if_false)


def _both(a: float | None, b: float | None) -> float | None:
    """Return the limit of a loop that goes on while two conditions hold."""
    return b if a is None else a if b is None else min(a, b)


def _either(a: float | None, b: float | None) -> float | None:
    """Return the limit of a loop that goes on while one of two conditions holds."""
    return None if a is None or b is None else max(a, b)


def _of_if(layer: Layer, inputs: Sequence[Bound], counters: Mapping[int, _Counter]) -> list[Bound]:
    """Return the bounds of the outputs of an If; empty if it is at fault."""
    branches = []
    for name in ("then", "else"):
        if layer.operator is None or name not in layer.bodies or name not in layer.operator.wiring:
            return []
        body, wiring = layer.bodies[name], layer.operator.wiring[name]
        feeds = {item.parameter: item.external for item in wiring.inputs if item.external >= 0}
        parameters = [inputs[feeds[i]] if i in feeds else Bound() for i in range(len(body.inputs))]
        results = _followed(body, parameters, counters)
        outputs = {item.external: results[item.result] for item in wiring.outputs}
        branches.append([outputs.get(i, Bound()) for i in range(len(layer.outputs))])
    varies = any(bound.varies for bound in inputs)
    return [replace(_chosen(inputs[0], *pair), varies=varies) for pair in zip(*branches, strict=True)]


_COMPARISONS = ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual")
_LOGICAL = ("LogicalAnd", "LogicalOr", "LogicalXor", "LogicalNot", "ReduceLogicalAnd", "ReduceLogicalOr")
