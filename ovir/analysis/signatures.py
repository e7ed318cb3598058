"""The meaning of layers, as numbers that can be compared: the basis on which the layers of two models are matched.

Layers of equal meaning have equal numbers, whatever their names, ids and places in the file are. The numbers come from
an ``Interner`` that both models share, so that they are exact: there are no collisions of hashes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ovir.analysis.constant_differences import digest
from ovir.graph.layers import Layer
from ovir.model import Model
from ovir.ops.base.operator import Operator
from ovir.ops.infrastructure import Const

Sources = list[tuple[int, int]]
"""For each input of a layer the number of the layer that feeds it and the index of the output; -1 for none."""
Readers = list[tuple[int, int, int]]
"""The number of each layer that reads this one, the index of its input, and the index of the output that it reads."""


class Interner(dict[Hashable, int]):
    """Numbers for values: equal values have the same number."""

    def __missing__(self, value: Hashable) -> int:
        number = self[value] = len(self)
        return number


class Side:
    """The layers of one of the two models, by numbers in topological order, without dead layers.

    ``exact`` tells layers apart by operation version, attributes and constant data. ``rough`` tells only what kind of
    layer it is; all constants of one shape have the same number, however they are compressed.
    """

    def __init__(self, model: Model, interner: Interner, roles: Mapping[Layer, Hashable] | None = None) -> None:
        """Read a model; ``roles`` tells how parameters and results of a body are joined to the layer around it."""
        self.model = model
        self.interner = interner
        dead = model.dead_layers
        self.layers = [layer for layer in model.layers if layer not in dead]
        self.number = {layer: i for i, layer in enumerate(self.layers)}
        ends = model.inputs, model.outputs
        self.ends = [[self.number[port.layer] for port in ports] for ports in ends]
        """The Parameters and the Results, in the order of the file."""
        self.sources: list[Sources] = []
        self.readers: list[Readers] = [[] for _ in self.layers]
        for i, layer in enumerate(self.layers):
            sources = []
            for k, port in enumerate(layer.inputs):
                if port.source is None:
                    sources.append((-1, -1))
                    continue
                source = self.number[port.source.layer], port.source.index
                sources.append(source)
                self.readers[source[0]].append((i, k, source[1]))
            self.sources.append(sources)
        self.is_constant: list[bool] = []
        """Whether a layer is a constant or decompresses constants."""
        for i in range(len(self.layers)):
            self.is_constant.append(self._is_constant(i))
        self.is_weight = [
            constant and (not readers or any(not self.is_constant[reader] for reader, *_ in readers))
            for constant, readers in zip(self.is_constant, self.readers, strict=True)
        ]
        """Whether a layer is a constant, or the last layer of its decompression."""
        self.bodies: list[dict[str, Side]] = [
            {key: Side(body, interner, _roles(layer, key, body)) for key, body in layer.bodies.items()}
            for layer in self.layers
        ]
        roles = roles or {}
        self._settings_of: dict[int, int] = {}
        self.exact = [interner[self._exact(i, roles)] for i in range(len(self.layers))]
        self.rough = [interner[self._rough(i)] for i in range(len(self.layers))]

    def _is_constant(self, i: int) -> bool:
        """Return whether a layer is a constant or decompresses constants; what else is computed from constants is
        compared layer by layer."""
        op, sources = self.layers[i].operator, self.sources[i]
        if isinstance(op, Const):
            return True
        if op is None or not sources or not (op.converts or op.decompresses):
            return False
        return all(source >= 0 and self.is_constant[source] for source, _ in sources)

    def _exact(self, i: int, roles: Mapping[Layer, Hashable]) -> Hashable:
        layer = self.layers[i]
        if isinstance(layer.operator, Const):
            return "Const", layer.operator.element_type, layer.operator.shape, digest(layer.operator)
        bodies = tuple((key, side.digest()) for key, side in self.bodies[i].items())
        return operation_of(layer), self._settings(layer), len(layer.outputs), bodies, roles.get(layer)

    def _settings(self, layer: Layer) -> int:
        """Return the number of a layer's settings; layers with equal ones often share their operator."""
        found = self._settings_of.get(id(layer.operator)) if layer.operator is not None else None
        if found is None:
            values = [(name, _hashable(value)) for name, value in sorted(settings_of(layer).items())]
            found = self.interner["settings", tuple(values)]
            if layer.operator is not None:
                self._settings_of[id(layer.operator)] = found
        return found

    def _rough(self, i: int) -> Hashable:
        layer = self.layers[i]
        return ("constant", str(layer.outputs[0].shape)) if self.is_weight[i] else layer.type

    def digest(self) -> Hashable:
        """Return a value that is equal for bodies in which the same is computed."""
        up, down = self.colors(self.exact)
        return tuple(sorted(zip(up, down, strict=True)))

    def colors(
        self, signatures: Sequence[int], anchors: Sequence[int] | None = None, *, rough: bool = False
    ) -> tuple[list[int], list[int]]:
        """Return for each layer a number for all that it is computed from, and one for all that is computed from it.

        The first depends on the layers before a layer, the second on those behind it, both in full depth. A layer with
        an anchor (not -1) is known by that; nothing beyond it counts. If ``rough``, nothing before weights counts.
        """
        count = len(self.layers)
        numbers = self.interner
        fixed = [-1] * count if anchors is None else [-1 if a < 0 else numbers["anchor", a] for a in anchors]
        up, down = fixed.copy(), fixed.copy()
        for i in range(count):
            if fixed[i] < 0:
                sources = () if rough and self.is_weight[i] else self.sources[i]
                before = tuple([(up[source], port) if source >= 0 else (-1, -1) for source, port in sources])
                up[i] = numbers["up", signatures[i], before]
        for i in range(count - 1, -1, -1):
            if fixed[i] < 0:
                behind = sorted([(down[reader], k, port) for reader, k, port in self.readers[i]])
                down[i] = numbers["down", signatures[i], tuple(behind)]
        return up, down

    def neighborhoods(self, anchors: Sequence[int], radius: int) -> list[int]:
        """Return for each layer a number for the layers around it, up to ``radius`` connections away."""
        numbers = self.interner
        colors = [
            numbers["anchor", anchor] if anchor >= 0 else exact
            for anchor, exact in zip(anchors, self.exact, strict=True)
        ]
        for _ in range(radius):
            colors = [
                numbers[
                    "around",
                    colors[i],
                    tuple([(colors[source] if source >= 0 else -1, port) for source, port in self.sources[i]]),
                    tuple(sorted([(colors[reader], k, port) for reader, k, port in self.readers[i]])),
                ]
                for i in range(len(self.layers))
            ]
        return colors


# --------------------------------------------------------------------------- one layer


def operation_of(layer: Layer) -> tuple[str, str]:
    """Return the type and the operation version of a layer.

    Files may name any opset that contains an operation version, so the opset that introduced it counts.
    """
    op = layer.operator
    return layer.type, f"opset{op.opset}" if op is not None and op.opset else layer.version


def settings_of(layer: Layer) -> dict[str, Any]:
    """Return the attributes that matter for what a layer computes, with defaults for those that the file leaves out.

    Unknown attributes of known operations do not count, because readers ignore them; nor do pads where ``auto_pad``
    replaces them, and the place of a constant in the weights.
    """
    return dict(layer.attributes) if layer.operator is None else _settings_of_operator(layer.operator)


def _settings_of_operator(op: Operator) -> dict[str, Any]:
    if isinstance(op, Const):
        return {}
    values = {name: getattr(op, spec.field) for name, spec in op.attributes.items()}
    if values.get("auto_pad") in _COMPUTED_PADS:
        values = {name: value for name, value in values.items() if name not in _PADS}
    return values


_COMPUTED_PADS = ("same_upper", "same_lower", "valid")
_PADS = ("pads_begin", "pads_end")


def as_f32(value: float) -> float:
    """Return a number rounded to f32."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _hashable(value: Any) -> Hashable:
    if isinstance(value, float):
        return "nan" if value != value else as_f32(value)
    if isinstance(value, tuple):
        return tuple(map(_hashable, value))
    return value if isinstance(value, Hashable) else str(value)


def _roles(layer: Layer, key: str, body: Model) -> dict[Layer, Hashable]:
    """Return how each parameter and result of a body is joined to the layer around it."""
    wiring = layer.operator.wiring.get(key) if layer.operator is not None else None
    if wiring is None:
        return {}
    parameters = [port.layer for port in body.inputs]
    results = [port.layer for port in body.outputs]
    roles: dict[Layer, list[Hashable]] = {end: [] for end in (*parameters, *results)}
    for entry in wiring.inputs:
        roles[parameters[entry.parameter]].append(("in", entry.external, *slicing_of(entry)))
    for out in wiring.outputs:
        roles[results[out.result]].append(("out", out.external, *slicing_of(out)))
    for edge in wiring.back_edges:
        roles[parameters[edge.parameter]].append("carried")
        roles[results[edge.result]].append("carried")
    return {end: tuple(sorted(map(str, role))) for end, role in roles.items()}


def slicing_of(entry: Any) -> tuple[Hashable, ...]:
    """Return how an entry of a port map slices or concatenates, without settings that have no effect."""
    if entry.axis is None:
        return (entry.purpose,)
    return entry.purpose, entry.axis, entry.start, entry.end, entry.stride, entry.part_size
