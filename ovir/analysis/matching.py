"""Match the layers of two models: find the counterpart of each layer.

Layers of equal meaning have equal signatures, and layers of equal surroundings equal colors.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ovir.core.arrays import Array
from ovir.diagnostics.errors import OperatorError
from ovir.graph.layers import Layer
from ovir.model import Model
from ovir.ops.infrastructure import Const, Parameter

NONE = -1
"""The number in place of a layer that there is not."""
Sources = list[tuple[int, int]]
"""For each input of a layer the number of the layer that feeds it and the index of the output; ``NONE`` for none."""
Readers = list[tuple[int, int, int]]
"""The number of each layer that reads this one, the index of its input, and the index of the output that it reads."""


class Interner(dict[Hashable, int]):
    """Numbers for values: equal values have the same number."""

    def __missing__(self, value: Hashable) -> int:
        number = self[value] = len(self)
        return number


class GraphSignatures:
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
                    sources.append((NONE, NONE))
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
        self.bodies: list[dict[str, GraphSignatures]] = [
            {key: GraphSignatures(body, interner, _roles(layer, key, body)) for key, body in layer.bodies.items()}
            for layer in self.layers
        ]
        roles = roles or {}
        self._settings_of: dict[int, int] = {}
        self.exact = [interner[self._exact(i, roles)] for i in range(len(self.layers))]
        self.rough = [
            interner[("constant", str(layer.outputs[0].shape)) if weight else layer.type]
            for layer, weight in zip(self.layers, self.is_weight, strict=True)
        ]

    def _is_constant(self, i: int) -> bool:
        """Return whether a layer is a constant or decompresses constants.

        Other layers computed from constants are compared one by one.
        """
        op, sources = self.layers[i].operator, self.sources[i]
        if isinstance(op, Const):
            return True
        if op is None or not sources or not (op.converts or op.decompresses):
            return False
        return all(source != NONE and self.is_constant[source] for source, _ in sources)

    def _exact(self, i: int, roles: Mapping[Layer, Hashable]) -> Hashable:
        layer = self.layers[i]
        if isinstance(layer.operator, Const):
            return "Const", layer.operator.element_type, layer.operator.shape, constant_digest(layer.operator)
        bodies = tuple((key, side.digest()) for key, side in self.bodies[i].items())
        return operation_of(layer), self._settings(layer), len(layer.outputs), bodies, roles.get(layer)

    def _settings(self, layer: Layer) -> int:
        """Return the number of a layer's settings; layers with equal ones often share their operator."""
        found = self._settings_of.get(id(layer.operator))
        if found is None:
            values = [(name, _hashable(value)) for name, value in sorted(settings_of(layer).items())]
            found = self.interner["settings", tuple(values)]
            if layer.operator is not None:
                self._settings_of[id(layer.operator)] = found
        return found

    def digest(self) -> Hashable:
        """Return a value that is equal for bodies in which the same is computed."""
        up, down = self.own_colors()
        return tuple(sorted(zip(up, down, strict=True)))

    def own_colors(self) -> tuple[list[int], list[int]]:
        """Return the colors of the layers without any anchor."""
        return self.colors(self.exact, [NONE] * len(self.layers), rough=False)

    def colors(self, signatures: Sequence[int], anchors: Sequence[int], *, rough: bool) -> tuple[list[int], list[int]]:
        """Return for each layer a number for all that it is computed from, and one for all that is computed from it.

        The first depends on the layers before a layer, the second on those after it, both in full depth. A layer with
        an anchor other than ``NONE`` is known by that; nothing beyond it counts. If ``rough``, nothing before weights
        counts.
        """
        count = len(self.layers)
        numbers = self.interner
        fixed = [a if a == NONE else numbers["anchor", a] for a in anchors]
        up, down = fixed.copy(), fixed.copy()
        for i in range(count):
            if fixed[i] == NONE:
                sources = () if rough and self.is_weight[i] else self.sources[i]
                before = tuple([(up[source], port) if source != NONE else (NONE, NONE) for source, port in sources])
                up[i] = numbers["up", signatures[i], before]
        for i in reversed(range(count)):
            if fixed[i] == NONE:
                after = sorted([(down[reader], k, port) for reader, k, port in self.readers[i]])
                down[i] = numbers["down", signatures[i], tuple(after)]
        return up, down

    def neighborhoods(self, anchors: Sequence[int], radius: int) -> list[int]:
        """Return for each layer a number for the layers around it, up to ``radius`` connections away."""
        numbers = self.interner
        colors = [
            numbers["anchor", anchor] if anchor != NONE else exact
            for anchor, exact in zip(anchors, self.exact, strict=True)
        ]
        for _ in range(radius):
            colors = [
                numbers[
                    "around",
                    colors[i],
                    tuple([(colors[source] if source != NONE else NONE, port) for source, port in self.sources[i]]),
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
    """Return the attributes that affect the outputs of a layer, with defaults for those that the file leaves out.

    Unknown attributes of known operations do not count, because readers ignore them; nor do pads where ``auto_pad``
    replaces them, and the place of a constant in the weights. A Parameter in a body has the shape that it is fed.
    """
    op = layer.operator
    if op is None:
        return dict(layer.attributes)
    if isinstance(op, Const):
        return {}
    values = {name: getattr(op, spec.field) for name, spec in op.attributes.items()}
    if values.get("auto_pad") in _COMPUTED_PADS:
        values = {name: value for name, value in values.items() if name not in _PADS}
    if isinstance(op, Parameter) and layer.scope:
        values["shape"] = layer.outputs[0].shape
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
    found: Hashable = value
    return found


def _roles(layer: Layer, key: str, body: Model) -> dict[Layer, Hashable]:
    """Return the connections of each parameter and result of a body with the layer around it."""
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
    """Return the purpose of an entry of a port map and, if it has an axis, its slicing or concatenation."""
    if entry.axis is None:
        return (entry.purpose,)
    return entry.purpose, entry.axis, entry.start, entry.end, entry.stride, entry.part_size


def constant_digest(const: Const) -> bytes:
    """Return the data of a small constant, or a digest of parts of a large one.

    Constants of equal type, shape and data have equal digests. The reverse is not certain for large constants.
    """
    count = prod(const.shape)
    if not const.has_data:
        return b""
    try:
        if count <= _READ_IN_FULL:
            data = _bytes(const.elements(0, count))
            return data if len(data) <= _SMALL else blake2b(data, digest_size=16).digest()
        state = blake2b(digest_size=16)
        step = (count - _SAMPLE) // (_SAMPLES - 1) // 8 * 8
        for start in (*range(0, step * (_SAMPLES - 1), step), (count - _SAMPLE) // 8 * 8):
            state.update(_bytes(const.elements(start, start + _SAMPLE)))
    except OperatorError:
        return b""  # the data is not a valid string tensor
    return state.digest()


_SMALL = 32
_SAMPLE, _SAMPLES = 1024, 16
_READ_IN_FULL = _SAMPLE * _SAMPLES


def _bytes(array: Array) -> bytes:
    if array.dtype.kind in "TO":
        return "\0".join(map(str, array)).encode("utf-8", "surrogatepass")
    return array.tobytes()


_ROUNDS = 8
"""The number of comparisons of the remaining layers, whose surroundings become known by matches in between."""
_RADII = (4, 2, 1)
_EXACT, _ROUGH, _UNSURE = 2, 3, 2
"""Ranks of candidates of different names: equal meaning, equal type; the addition if others are like them."""
_TRUSTED = 0.9
"""The share of names that agree with the structure from which on they are trusted."""


class Matching:
    """Pairs of layers of two models, by their numbers in each ``GraphSignatures``.

    Names count first if few of them contradict the structure, and last if many do.
    """

    def __init__(self, a: GraphSignatures, b: GraphSignatures) -> None:
        """Match the layers of two models."""
        self.a, self.b = a, b
        self.to_b = [NONE] * len(a.layers)
        self.to_a = [NONE] * len(b.layers)
        self._queue: list[tuple[int, int, int]] = []
        self._worst = _EXACT
        self._agree: Callable[[int, int], bool] | None = None
        self._deferred: list[tuple[int, int, int]] = []
        self._by_name = _unique_names(a, b)
        self._colors = _Colors(*a.own_colors(), *b.own_colors())
        self._run(trusts_names=self._share_of_agreeing() >= _TRUSTED)

    def pairs(self) -> list[tuple[int, int]]:
        """Return the matched layers, in the order of the first model."""
        return [(i, j) for i, j in enumerate(self.to_b) if j != NONE]

    # ----- the steps

    def _share_of_agreeing(self) -> float:
        """Return the share of names that agree with the structure, among those which agree with it or contradict it.

        A name contradicts the structure if another layer of the second model stands where its layer stood before.
        """
        up_a, down_a, up_b, down_b = self._colors
        counts = [(colors, Counter(colors), Counter(others)) for colors, others in ((up_a, up_b), (down_a, down_b))]
        agreeing = contradicting = 0
        for i, j in self._by_name.items():
            if self._are_alike(i, j):
                agreeing += 1
            elif self.a.sources[i]:
                contradicting += any(in_a[colors[i]] == in_b[colors[i]] == 1 for colors, in_a, in_b in counts)
        return agreeing / (agreeing + contradicting) if agreeing + contradicting else 1.0

    def _are_alike(self, i: int, j: int) -> bool:
        """Return whether two layers have the same layers before or after them.

        Nothing is before a constant, so that equal constants are not alike for this.
        """
        colors = self._colors
        return colors.down_a[i] == colors.down_b[j] or (bool(self.a.sources[i]) and colors.up_a[i] == colors.up_b[j])

    def _run(self, *, trusts_names: bool) -> None:
        if trusts_names:
            self._match_names(self._are_alike)
            self._match_names(lambda i, j: self.a.exact[i] == self.b.exact[j])
            self._match_names(self._is_plausible)
        self._match_contexts()
        self._grow()
        self._match_rest(rough=False)
        self._match_ends(lambda i, j: self.a.exact[i] == self.b.exact[j])
        for radius in _RADII:
            if not self._is_done():
                around_a = self.a.neighborhoods(self._anchors(), radius)
                around_b = self.b.neighborhoods(self.to_a, radius)
                self._match_unique(around_a, around_b)
        self._match_unique(*(_large_constants(side) for side in (self.a, self.b)))
        self._worst = _ROUGH + _UNSURE
        self._grow()
        self._match_ends(lambda i, j: True)
        self._match_rest(rough=True)
        if not trusts_names:
            self._match_names(self._is_plausible)
            self._grow()

    def _is_done(self) -> bool:
        """Return whether one of the models has no layer left."""
        return NONE not in self.to_b or NONE not in self.to_a

    def _anchors(self) -> list[int]:
        """Return a number for each matched layer of the first model; ``to_a`` has it for the partner."""
        return [i if partner != NONE else NONE for i, partner in enumerate(self.to_b)]

    def _match_contexts(self) -> None:
        """Match layers that have the same layers before and after them.

        If there are several, match layers of one name.
        """
        colors, classes = self._colors, self._classes()
        for first, second in classes:
            if len(first) == 1:
                self._match(first[0], second[0])
            else:
                members = set(second)
                for i in first:
                    if self._by_name.get(i, NONE) in members:
                        self._match(i, self._by_name[i])
        self._agree = lambda i, j: colors.up_a[i] == colors.up_b[j] and colors.down_a[i] == colors.down_b[j]
        self._grow()
        for first, second in classes:  # any choice is right, but neighbors must follow it
            rest = iter(second)
            for i in first:
                if self.to_b[i] == NONE:
                    j = next(j for j in rest if self.to_a[j] == NONE)
                    self._match(i, j)
                    self._grow()
        self._agree = None
        for candidate in self._deferred:
            heappush(self._queue, candidate)
        self._deferred.clear()

    def _classes(self) -> list[tuple[list[int], list[int]]]:
        """Return the unmatched layers of equal colors, where both models have as many of them.

        Equal inputs or outputs of a model are distinguished by their order; they come first.
        """
        classes: dict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for position, side in enumerate((self.a, self.b)):
            ends = list(chain(*side.ends))
            up, down = self._colors[2 * position :][:2]
            for i in dict.fromkeys(chain(ends, range(len(up)))):
                if (self.to_a if position else self.to_b)[i] == NONE:
                    classes[up[i], down[i]][position].append(i)
        return [(first, second) for first, second in classes.values() if len(first) == len(second)]

    def _is_plausible(self, i: int, j: int) -> bool:
        """Return whether two layers of one name may be one layer that has changed: they have the same type, or both are
        the constant as the model reads it. The stored numbers of a compressed constant are not the constant."""
        if self.a.is_constant[i] and self.b.is_constant[j] and self.a.is_weight[i] != self.b.is_weight[j]:
            return False
        same_type = self.a.layers[i].type == self.b.layers[j].type
        return same_type or (self.a.is_weight[i] and self.b.is_weight[j])

    def _match_ends(self, agree: Callable[[int, int], bool]) -> None:
        """Match the inputs and outputs of the models that have the same position."""
        for first, second in zip(self.a.ends, self.b.ends, strict=True):
            if len(first) == len(second):
                for i, j in zip(first, second, strict=True):
                    if self.to_b[i] == NONE and self.to_a[j] == NONE and agree(i, j):
                        self._match(i, j)
        self._grow()

    def _match_names(self, agree: Callable[[int, int], bool]) -> None:
        for i, j in self._by_name.items():
            if self.to_b[i] == NONE and self.to_a[j] == NONE and agree(i, j):
                self._match(i, j)

    def _match_rest(self, *, rough: bool) -> None:
        """Match layers that have the same layers before or after them up to matched ones, as long as there are any."""
        of_a, of_b = (self.a.rough, self.b.rough) if rough else (self.a.exact, self.b.exact)
        for _ in range(_ROUNDS):
            before = self.to_b.count(NONE)
            if self._is_done():
                return
            up_a, down_a = self.a.colors(of_a, self._anchors(), rough=rough)
            up_b, down_b = self.b.colors(of_b, self.to_a, rough=rough)
            self._match_unique(list(zip(up_a, down_a, strict=True)), list(zip(up_b, down_b, strict=True)))
            self._match_unique(_informed(up_a, self.a.sources), _informed(up_b, self.b.sources))
            self._match_unique(_informed(down_a, self.a.readers), _informed(down_b, self.b.readers))
            if self.to_b.count(NONE) == before:
                return

    def _match_unique(self, of_a: Sequence[Hashable], of_b: Sequence[Hashable]) -> None:
        """Match unmatched layers whose color no other unmatched layer of their model has; None is not a color."""
        open_a = dict(_unique(of_a, self.to_b))
        for color, j in _unique(of_b, self.to_a):
            i = open_a.get(color, NONE)
            if i != NONE and self.to_b[i] == NONE and self.to_a[j] == NONE:
                self._match(i, j)
                self._grow()

    # ----- growing along connections

    def _match(self, i: int, j: int) -> None:
        """Match two layers, and note the candidates that this makes of their neighbors."""
        self.to_b[i], self.to_a[j] = j, i
        if not (self.a.is_weight[i] and self.b.is_weight[j] and self.a.layers[i].type != self.b.layers[j].type):
            for (s, p), (t, q) in zip(self.a.sources[i], self.b.sources[j], strict=False):
                if p == q and NONE not in (s, t):
                    self._suggest(s, t)
        first = _open_readers(self.a, i, self.to_b)
        second = _open_readers(self.b, j, self.to_a) if first else {}
        for place in first.keys() & second.keys():
            self._suggest_readers(first[place], second[place])

    def _suggest_readers(self, first: list[int], second: list[int]) -> None:
        """Suggest readers that stand at the same input: readers of one name, of one meaning, of one type."""
        if len(first) == len(second) == 1:
            self._suggest(first[0], second[0])
            return
        names = {self.b.layers[j].name: j for j in second}
        for i in first:
            if (j := names.get(self.a.layers[i].name, NONE)) != NONE:
                self._suggest(i, j)
        for of_a, of_b in ((self.a.exact, self.b.exact), (self.a.rough, self.b.rough)):
            groups: dict[int, list[int]] = defaultdict(list)
            for j in reversed(second):
                groups[of_b[j]].append(j)
            alone = Counter(of_a[i] for i in first)
            for i in first:
                if group := groups.get(of_a[i]):
                    is_sure = len(group) == 1 and alone[of_a[i]] == 1
                    self._suggest(i, group[-1] if is_sure else group.pop(), certain=is_sure)

    def _suggest(self, i: int, j: int, *, certain: bool = True) -> None:
        """Record two neighbors of matched layers as candidates, with how certain they are."""
        if self.to_b[i] != NONE or self.to_a[j] != NONE:
            return
        same_name = self.a.layers[i].name == self.b.layers[j].name
        exact, rough = self.a.exact[i] == self.b.exact[j], self.a.rough[i] == self.b.rough[j]
        if not (exact or rough or (same_name and self.a.layers[i].type == self.b.layers[j].type)):
            return
        rank = 0 if exact and same_name else 1 if same_name else _EXACT if exact else _ROUGH
        heappush(self._queue, (rank if certain or same_name else rank + _UNSURE, i, j))

    def _grow(self) -> None:
        """Match the candidates, the most certain ones first, and the neighbors that they lead to.

        Candidates that are alike only in type and place wait until all that is more certain has been matched.
        """
        while self._queue and self._queue[0][0] <= self._worst:
            rank, i, j = heappop(self._queue)
            if self.to_b[i] == NONE and self.to_a[j] == NONE:
                if self._agree is None or self._agree(i, j):
                    self._match(i, j)
                else:
                    self._deferred.append((rank, i, j))


class _Colors(NamedTuple):
    """The surroundings before and after each layer of both models, as numbers."""

    up_a: list[int]
    down_a: list[int]
    up_b: list[int]
    down_b: list[int]


def _informed(colors: Sequence[int], around: Sequence[Sequence[object]]) -> list[Hashable]:
    """Return the colors of the layers that have others around them, sources or readers; None for other layers."""
    return [color if near else None for color, near in zip(colors, around, strict=True)]


def _unique_names(a: GraphSignatures, b: GraphSignatures) -> dict[int, int]:
    """Return the layers that have the same name, which no other layer of their model has."""
    names_a, names_b = (Counter(layer.name for layer in side.layers) for side in (a, b))
    of_b = {layer.name: j for j, layer in enumerate(b.layers) if names_b[layer.name] == 1}
    return {
        i: of_b[layer.name]
        for i, layer in enumerate(a.layers)
        if names_a[layer.name] == 1 and layer.name and layer.name in of_b
    }


def _unique(colors: Sequence[Hashable], partners: Sequence[int]) -> list[tuple[Hashable, int]]:
    counts = Counter(color for color, partner in zip(colors, partners, strict=True) if partner == NONE)
    return [
        (color, i)
        for i, (color, partner) in enumerate(zip(colors, partners, strict=True))
        if partner == NONE and color is not None and counts[color] == 1
    ]


def _open_readers(side: GraphSignatures, i: int, partners: Sequence[int]) -> dict[tuple[int, int], list[int]]:
    """Return the unmatched readers of a layer, by their input and its output."""
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for reader, k, port in side.readers[i]:
        if partners[reader] == NONE:
            found[k, port].append(reader)
    return found


def _large_constants(side: GraphSignatures) -> list[Hashable]:
    """Return the meaning of constants that are hardly equal by chance, None for all other layers."""
    return [
        exact if layer.type == "Const" and layer.outputs[0].shape.size().lower >= _TELLING else None
        for exact, layer in zip(side.exact, side.layers, strict=True)
    ]


_TELLING = 16  # elements
