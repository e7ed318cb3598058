"""Which values an input may take: found by following it to the ports where not every number will do.

An index must lie inside the data, a TopK's k may not exceed its axis, a pattern of Reshape must fit.
``input_domains`` walks from each Parameter forward through the layers that only move elements, and
through the bodies of If, Loop and TensorIterator, to such ports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ovir.core.dimensions import Dimension
from ovir.graph.layers import Layer, Port
from ovir.graph.model import Model
from ovir.ops.base.operator import ALL

Order = Literal["any", "sorted", "offsets", "counting", "whole"]


@dataclass(frozen=True)
class Domain:
    """Integers in ``[low, high]``; None is no bound.

    ``order`` says how the elements stand together: ``sorted`` along the last axis, as ``offsets``
    (sorted, from 0), ``counting`` up from ``low``, or as a ``whole``: the first is -1, which stands for what is left,
    the others are 1. ``why`` names the layer that asks for it.
    """

    low: float | None = None
    high: float | None = None
    order: Order = "any"
    why: str = ""

    def meet(self, other: Domain) -> Domain:
        """What both allow; where nothing is, this one's lower end."""
        lows = [x for x in (self.low, other.low) if x is not None]
        highs = [x for x in (self.high, other.high) if x is not None]
        low, high = max(lows, default=None), min(highs, default=None)
        if low is not None and high is not None and high < low:
            low = high = self.low if self.low is not None else low
        order = self.order if self.order != "any" else other.order
        return Domain(low, high, order, self.why or other.why)

    def __str__(self) -> str:
        low, high = ("" if x is None else f"{x:g}" for x in (self.low, self.high))
        return low if low == high else f"{low}..{high}"


Rule = Callable[[Layer], Domain]
Rules = dict[int, Rule]
"""By position of the input."""


def input_domains(model: Model) -> dict[Port, Domain]:
    """The domain of every input that ends up where not every value will do."""
    walk = _Walk(model)
    found: dict[Port, Domain] = {}
    for port in model.inputs:
        for domain in walk.from_port(port):
            found[port] = found[port].meet(domain) if port in found else domain
    return found


# --------------------------------------------------------------------------- what an input may be, by port


def _length(layer: Layer, data: int, axis: int) -> int:
    """A size that the axis certainly has: where it is not known, the least that it can be."""
    shape = layer.inputs[data].shape
    if shape.rank is None or not -shape.rank <= axis < shape.rank:
        return 1
    return max(shape[axis].lower, 1)


def _shortest(layer: Layer, data: int, start: int = 0, stop: int | None = None) -> int:
    return max(min((d.lower for d in _dims(layer, data)[start:stop]), default=1), 1)


def _dims(layer: Layer, data: int) -> tuple[Dimension, ...]:
    shape = layer.inputs[data].shape
    return () if shape.rank is None else shape.dims


def _constant(layer: Layer, position: int) -> Any:
    return layer.inputs[position].type.constant if position < len(layer.inputs) else None


def _attribute(layer: Layer, name: str, default: int) -> int:
    return int(getattr(layer.operator, name, layer.attributes.get(name, default)))


def between(low: float, high: float, order: Order = "any") -> Rule:
    return lambda layer: Domain(low, high, order)


def below_dim(data: int, axis: int, order: Order = "any") -> Rule:
    """An index along a fixed axis of an input."""
    return lambda layer: Domain(0, _length(layer, data, axis) - 1, order)


def up_to_dim(data: int, axis: int | str) -> Rule:
    """A length along an axis, which may be given by an attribute."""

    def rule(layer: Layer) -> Domain:
        place = _attribute(layer, axis, 0) if isinstance(axis, str) else axis
        return Domain(1, _length(layer, data, place))

    return rule


def along_axis(data: int = 0, *, axis_input: int) -> Rule:
    """An index along the axis that another input names."""

    def rule(layer: Layer) -> Domain:
        axis = _constant(layer, axis_input)
        size = _shortest(layer, data) if axis is None or axis.size != 1 else _length(layer, data, int(axis.item()))
        return Domain(0, size - 1)

    return rule


def along_attribute(data: int = 0) -> Rule:
    return lambda layer: Domain(0, _length(layer, data, _attribute(layer, "axis", 0)) - 1)


def tuples(data: int = 0) -> Rule:
    """Each row of the indices is a position in the data; all columns are kept below the shortest axis."""

    def rule(layer: Layer) -> Domain:
        batch = _attribute(layer, "batch_dims", 0)
        shape = layer.inputs[1].shape
        width = shape[-1].lower if shape.rank else 1
        return Domain(0, _shortest(layer, data, batch, batch + width) - 1)

    return rule


def axes_of(data: int = 0) -> Rule:
    return lambda layer: Domain(0, max(len(_dims(layer, data)) - 1, 0), "counting")


def below_value(position: int, missing: int = 2, order: Order = "any") -> Rule:
    """An index below a number that another input holds."""

    def rule(layer: Layer) -> Domain:
        value = _constant(layer, position)
        return Domain(0, (missing if value is None or value.size != 1 else max(int(value.item()), 1)) - 1, order)

    return rule


def top_k(layer: Layer) -> Domain:
    return Domain(1, _length(layer, 0, _attribute(layer, "axis", -1)))


_ONE = between(1, 1)
_ZERO = between(0, 0)
_SMALL = between(1, 4)
_CLASSES = below_dim(0, -1)
_BAG: Rules = {1: below_dim(0, 0), 2: below_dim(1, 0, "offsets"), 3: below_dim(0, 0)}
_SEQUENCE = up_to_dim(0, 1)
_SCATTER: Rules = {1: along_axis(axis_input=3), 3: axes_of()}
_AXES: Rules = {1: axes_of()}
_INTERPOLATE: Rules = {1: _SMALL, 2: _SMALL, 3: axes_of()}
_SHIFT: Rules = {1: between(0, 3)}
_DIVISOR: Rules = {1: between(1, 9)}
_BOXES: Rules = {2: _SMALL}

RULES: dict[str, Rules] = {
    # indices
    "Gather": {1: along_axis(axis_input=2), 2: axes_of()},
    "GatherElements": {1: along_attribute()},
    "GatherND": {1: tuples()},
    "GatherTree": {1: below_dim(0, -1), 2: up_to_dim(0, 0)},
    "ScatterUpdate": _SCATTER,
    "ScatterElementsUpdate": _SCATTER,
    "ScatterNDUpdate": {1: tuples()},
    "OneHot": {0: below_value(1), 1: between(2, 8)},
    "EmbeddingBagOffsets": _BAG,
    "EmbeddingBagOffsetsSum": _BAG,
    "EmbeddingBagPacked": {1: below_dim(0, 0)},
    "EmbeddingBagPackedSum": {1: below_dim(0, 0)},
    "EmbeddingSegmentsSum": {1: below_dim(0, 0), 2: below_value(3, 2, "sorted"), 3: between(2, 4), 4: below_dim(0, 0)},
    "SegmentMax": {1: below_value(2, 3, "sorted"), 2: between(3, 3)},
    "ROIAlign": {2: below_dim(0, 0)},
    "SparseFillEmptyRows": {1: between(8, 8), 2: between(0, 7, "counting")},
    # lengths and counts
    "ReverseSequence": {1: up_to_dim(0, "seq_axis")},
    "LSTMSequence": {3: _SEQUENCE},
    "GRUSequence": {2: _SEQUENCE},
    "RNNSequence": {2: _SEQUENCE},
    "CTCLoss": {
        1: lambda layer: Domain(_length(layer, 0, 1), _length(layer, 0, 1)),
        2: lambda layer: Domain(0, max(_length(layer, 0, -1) - 2, 0)),  # the last class is the blank
        3: up_to_dim(2, 1),
        4: lambda layer: Domain(_length(layer, 0, -1) - 1, _length(layer, 0, -1) - 1),
    },
    "CTCGreedyDecoder": {1: _ONE},
    "CTCGreedyDecoderSeqLen": {1: _SEQUENCE, 2: _CLASSES},
    "TopK": {1: top_k},
    "Loop": {0: _SMALL, 1: _ONE},
    "Range": {0: _ZERO, 1: between(1, 8), 2: _ONE},
    "Multinomial": {1: _SMALL},
    "NonMaxSuppression": _BOXES,
    "NMSRotated": _BOXES,
    "Eye": {0: _SMALL, 1: _SMALL, 2: _ZERO, 3: _SMALL},
    "RandomUniform": {0: _SMALL, 1: _ZERO, 2: _ONE},
    # shapes, axes and bounds
    "Reshape": {1: between(-1, 1, "whole")},
    "Broadcast": {1: lambda layer: Domain(_longest(layer), _longest(layer))},
    "Tile": {1: between(1, 2)},
    "Pad": {1: between(0, 1), 2: between(0, 1)},
    "Transpose": _AXES,
    "Unsqueeze": _AXES,
    "Squeeze": {1: lambda layer: Domain(_unit_axis(layer), None, "counting")},
    "Split": _AXES,
    "VariadicSplit": {1: axes_of(), 2: between(-1, 1, "whole")},
    "Slice": {1: _ZERO, 2: lambda layer: Domain(1, _shortest(layer, 0)), 3: _ONE, 4: axes_of()},
    "SliceScatter": {2: _ZERO, 3: lambda layer: Domain(1, _shortest(layer, 0)), 4: _ONE, 5: axes_of()},
    "StridedSlice": {1: _ZERO, 2: lambda layer: Domain(1, _shortest(layer, 0)), 3: _ONE},
    "Roll": {2: axes_of()},
    "CumSum": _AXES,
    "NormalizeL2": _AXES,
    "MVN": _AXES,
    "DFT": _AXES,
    "IDFT": _AXES,
    "RDFT": _AXES,
    "IRDFT": _AXES,
    "Reverse": _AXES,
    "Interpolate": _INTERPOLATE,
    "AdaptiveAvgPool": {1: _SMALL},
    "AdaptiveMaxPool": {1: _SMALL},
    "BatchToSpace": {1: _ONE, 2: _ZERO, 3: _ZERO},
    "SpaceToBatch": {1: _ONE, 2: _ZERO, 3: _ZERO},
    # values
    "ScaledDotProductAttention": {3: _ONE},
    "Bucketize": {1: between(0, 9, "sorted")},
    "SearchSorted": {0: between(0, 9, "sorted")},
    "BitwiseLeftShift": _SHIFT,
    "BitwiseRightShift": _SHIFT,
    "Mod": _DIVISOR,
    "FloorMod": _DIVISOR,
    "StringTensorPack": {0: _ZERO, 1: below_dim(2, 0), 2: between(97, 122)},
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"), _AXES),
    **dict.fromkeys(("ReduceLogicalAnd", "ReduceLogicalOr"), _AXES),
}


def _longest(layer: Layer) -> int:
    """A size to which every axis of the first input can be broadcast, if one can."""
    if getattr(layer.operator, "mode", "numpy") == "bidirectional":
        return 1
    return max((d.lower for d in _dims(layer, 0)), default=1)


def _unit_axis(layer: Layer) -> int:
    return next((axis for axis, d in enumerate(_dims(layer, 0)) if d.is_static and d.lower == 1), 0)


# --------------------------------------------------------------------------- the walk

MOVES: dict[str, tuple[int, ...]] = {
    "Convert": (0,), "ConvertLike": (0,), "Broadcast": (0,), "Tile": (0,), "Pad": (0, 3), "Select": (1, 2),
    "ReadValue": (0,), "Reverse": (0,), "ReverseSequence": (0,), "TopK": (0,), "Unique": (0,), "Roll": (0,),
    "Reshape": (0,), "Squeeze": (0,), "Unsqueeze": (0,), "Transpose": (0,), "Concat": ALL, "Slice": (0,),
    "StridedSlice": (0,), "Split": (0,), "VariadicSplit": (0,), "Gather": (0,), "GatherElements": (0,),
    "GatherND": (0,), "ScatterUpdate": (0, 2), "ScatterElementsUpdate": (0, 2), "ScatterNDUpdate": (0, 2),
    "Identity": (0,), "ReduceMax": (0,), "ReduceMin": (0,), "MaxPool": (0,), "ShuffleChannels": (0,),
}  # fmt: skip
"""The inputs whose values come out as they went in, elsewhere."""


class _Walk:
    def __init__(self, model: Model) -> None:
        self.consumers: dict[Port, list[tuple[Layer, int]]] = {}
        self._index(model)
        self.known: dict[Port, list[Domain]] = {}
        self._visit(model)

    def _index(self, model: Model) -> None:
        for layer in model.layers:
            for port in layer.inputs:
                if port.source is not None:
                    self.consumers.setdefault(port.source, []).append((layer, port.index))
            for body in layer.bodies.values():
                self._index(body)

    def _visit(self, model: Model) -> None:
        """Follow every port, readers first: a walk that starts at an input would go as deep as the graph is long."""
        for layer in reversed(model.layers):
            for port in layer.outputs:
                self.from_port(port)
            for body in layer.bodies.values():
                self._visit(body)

    def from_port(self, port: Port) -> list[Domain]:
        """What is asked of the values at an output port."""
        if port not in self.known:
            self.known[port] = []  # the answer where a back edge of a loop leads here again
            found = (domain for consumer in self.consumers.get(port, ()) for domain in self._at(*consumer))
            self.known[port] = list(dict.fromkeys(found))
        return self.known[port]

    def _at(self, layer: Layer, position: int) -> Iterator[Domain]:
        rule = RULES.get(layer.type, {}).get(position)
        if rule is not None:
            domain = rule(layer)
            yield Domain(domain.low, domain.high, domain.order, f"{layer.type} '{layer.name}'")
        moved = MOVES.get(layer.type) or (layer.operator.carries if layer.operator else ())
        if moved == ALL or position in moved:
            for output in layer.outputs:
                yield from self.from_port(output)
        elif layer.type in _ARITHMETIC and layer.outputs:
            yield from self._through_arithmetic(layer, position)
        elif layer.bodies:
            yield from self._into_bodies(layer, position)

    def _through_arithmetic(self, layer: Layer, position: int) -> Iterator[Domain]:
        """``x + c``, ``x - c``, ``c - x`` or ``x * c``: the domain of the result, taken back to x."""
        other = _constant(layer, 1 - position)
        for wanted in self.from_port(layer.outputs[0]):
            if other is None:  # two unknowns share the room there is
                half = None if wanted.high is None or layer.type != "Add" else wanted.high // 2
                yield Domain(0, half if half is not None else 0, why=wanted.why)
            elif other.dtype.kind in "iuf" and other.size:
                smallest, largest = float(np.min(other)), float(np.max(other))
                yield _ARITHMETIC[layer.type](wanted, position, smallest, largest)

    def _into_bodies(self, layer: Layer, position: int) -> Iterator[Domain]:
        wiring = layer.operator.wiring if layer.operator else {}
        for key, body in layer.bodies.items():
            if key not in wiring:
                continue
            for item in wiring[key].inputs:
                if item.external == position:
                    yield from self._in_body(layer, key, body.inputs[item.parameter])

    def _in_body(self, layer: Layer, key: str, parameter: Port) -> Iterator[Domain]:
        yield from self.from_port(parameter)
        # What the body hands out again unchanged, goes on outside.
        assert layer.operator is not None
        for item in layer.operator.wiring[key].outputs:
            source = layer.bodies[key].outputs[item.result].source
            if source is parameter and 0 <= item.external < len(layer.outputs):
                yield from self.from_port(layer.outputs[item.external])


def _back_from_add(wanted: Domain, position: int, smallest: float, largest: float) -> Domain:
    return _shifted(wanted, -smallest, -largest)


def _back_from_subtract(wanted: Domain, position: int, smallest: float, largest: float) -> Domain:
    if position == 0:
        return _shifted(wanted, largest, smallest)
    low = None if wanted.high is None else largest - wanted.high
    high = None if wanted.low is None else smallest - wanted.low
    return _ordered(low, high, wanted.why)


def _back_from_multiply(wanted: Domain, position: int, smallest: float, largest: float) -> Domain:
    if smallest <= 0:
        return Domain(0, 0, why=wanted.why)
    low = None if wanted.low is None else float(np.ceil(wanted.low / (smallest if wanted.low > 0 else largest)))
    high = None if wanted.high is None else float(wanted.high // largest)
    return _ordered(low, high, wanted.why)


def _shifted(wanted: Domain, low_by: float, high_by: float) -> Domain:
    low = None if wanted.low is None else wanted.low + low_by
    high = None if wanted.high is None else wanted.high + high_by
    return _ordered(low, high, wanted.why)


def _ordered(low: float | None, high: float | None, why: str) -> Domain:
    if low is not None and high is not None and high < low:
        high = low
    return Domain(low, high, why=why)


_ARITHMETIC: dict[str, Callable[[Domain, int, float, float], Domain]] = {
    "Add": _back_from_add,
    "Subtract": _back_from_subtract,
    "Multiply": _back_from_multiply,
}
