"""Random graphs of 3 to 12 layers, which ovir can run: recipes make the layers, which read tensors of each other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.diagnostics.errors import OvirError
from ovir.fuzzing.cases import draw, write
from ovir.fuzzing.making import VERSIONS, Input, Make
from ovir.fuzzing.net import End, Net
from ovir.fuzzing.reference import Reference
from ovir.ops import find

MOST_ELEMENTS = 5000
_MOST_INPUTS = 4
_NOT_INSIDE = ("Const", "Parameter", "Result", "Assign", "ReadValue", "RandomUniform", "Multinomial")
"""Operations that no layer of a graph has: ends, and those that give other results in the next run."""


@dataclass(frozen=True)
class Tensor:
    """A tensor of a graph, with the values that it has in the run."""

    end: End
    values: Array
    type: str


@dataclass
class Layer(Make):
    """Draws a layer that reads tensors of a graph where their shapes and types suit."""

    tensors: Sequence[Tensor] = ()
    read: dict[int, End] = field(default_factory=dict)
    """The tensors that the layer reads, by the position of the input."""
    _near: Tensor | None = None
    """The tensor whose shape was taken last."""

    def _take(self, fits: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...] | None:
        """Return the shape of a tensor that fits, most often a late one."""
        fitting = [tensor for tensor in self.tensors if fits(tensor.values.shape)]
        if not fitting:
            return None
        self._near = fitting[-1 - int(len(fitting) * self.rng.random() ** 2)]
        return self._near.values.shape

    def existing(self, least: int, most: int) -> tuple[int, ...] | None:
        return self._take(lambda shape: least <= len(shape) <= most)

    def size(self) -> int:
        sizes: tuple[int, ...] = self._near.values.shape if self._near is not None else ()
        return self.rng.choice((super().size(), *sizes))

    def axes(self, rank: int, most: int | None = None) -> list[int]:
        return super().axes(rank, most) or [0][:rank]  # OpenVINO refuses reductions along no axis inside of a graph

    def any_shape(self, least: int = 0, most: int = 4) -> tuple[int, ...]:
        return self.existing(least, most) or super().any_shape(least, most)

    def shape(self, text: str) -> tuple[int, ...]:
        found = self._take(lambda shape: self._letters(text, shape) is not None)
        self.sizes.update({} if found is None else self._letters(text, found) or {})
        return super().shape(text)

    def _letters(self, text: str, shape: tuple[int, ...]) -> dict[str, int] | None:
        """Return the sizes of the letters in a text for which it stands for a shape; None if it does not."""
        words, more = text.split(), len(shape) - len(text.split()) + 1
        sizes = dict(self.sizes)
        if "..." in words:
            if sizes.setdefault("...", more) != more or more < 0:
                return None
            place = words.index("...")
            words[place : place + 1] = [f"...{i}" for i in range(more)]
        if len(words) != len(shape):
            return None
        for word, size in zip(words, shape, strict=True):
            if (int(word) if word.isdigit() else sizes.setdefault(word, size)) != size:
                return None
        return None if any({"*", "+"} & {*word} for word in words) else sizes

    def type(self, name: str, *choices: str) -> str:
        if self._near is not None and self._near.type in choices:
            self._types.setdefault(name, self._near.type)
        return super().type(name, *choices)

    def fill(self, position: int, given: Input, values: np.random.Generator) -> None:
        """Let an input read a tensor of its shape and type, or give it small numbers, whose sums are exact."""
        kind = ElementType.parse(given.element_type)
        alike = [x for x in self.tensors if x.type == given.element_type and x.values.shape == given.shape]
        if alike and self.chance(0.8):
            tensor = alike[-1 - int(len(alike) * self.rng.random() ** 2)]
            given.values, self.read[position] = tensor.values, tensor.end
        elif kind.kind in ("string", "boolean") or kind.bits < 8:
            super().fill(position, given, values)
        else:
            numbers = values.integers(-9 if kind.kind != "unsigned" else 0, 10, given.shape)
            given.values = np.asarray(numbers / (8 if kind.is_real else 1)).astype(kind.to_dtype())


class Graph:
    """A graph under construction."""

    def __init__(self, seed: int) -> None:
        self.net = Net(blob=bytearray(b"\1"))  # the condition of loops
        self.feeds: dict[str, Array] = {}
        self.tensors: list[Tensor] = []
        self._rng = random.Random(seed)
        self._values = np.random.default_rng(seed)

    def add_input(self, shape: Sequence[int], element_type: str, values: Array) -> End:
        """Add an input, of which some sizes are declared as unknown."""
        name = f"p{len(self.feeds)}"
        self.feeds[name] = values
        sizes = ("?" if self._rng.random() < 0.15 else str(size) for size in shape)
        end = self.net.parameter(name, ",".join(sizes), element_type)
        self.tensors.append(Tensor(end, values, element_type))
        return end

    def add_layer(self) -> bool:
        """Draw a layer; return whether it is in the graph. It is not if ovir does not run it, or makes large tensors or
        numbers that are not finite, which hide what comes after them."""
        kind, opset = self._rng.choice(VERSIONS)
        cls = find(kind, opset)
        if cls is None or kind in _NOT_INSIDE:
            return False
        made = Layer(kind, self._rng, opset, tensors=self.tensors)
        if not draw(made, cls, self._values):
            return False
        free = [i for i, given in enumerate(made.inputs) if i not in made.read and given.is_constant is None]
        if not made.read and (not free or len(self.feeds) >= _MOST_INPUTS or self._rng.random() > 0.2):
            return False
        alone = Net(blob=bytearray(b"\1"))
        fed = {i: alone.parameter(f"x{i}", *_declared(made.inputs[i])) for i in made.read or free[:1]}
        ends = _write(alone, made, fed)
        for end in ends:
            alone.result(end)
        try:
            model = alone.model()
            results = Reference.of(model, [array for i in fed if (array := made.inputs[i].values) is not None]).outputs
        except OvirError:
            return False
        if not all(0 < array.size <= MOST_ELEMENTS and _is_finite(array) for array in results):
            return False
        if not made.read:
            given = made.inputs[free[0]]
            assert given.values is not None
            made.read[free[0]] = self.add_input(given.shape, given.element_type, given.values)
        pairs = zip(_write(self.net, made, made.read), results, model.outputs, strict=True)
        self.tensors += [Tensor(end, array, str(port.element_type)) for end, array, port in pairs]
        return True

    def add_results(self) -> None:
        """Add Results for all tensors that no layer reads, and for some of the others."""
        read = set(self.net.sources)
        for tensor in self.tensors:
            if tensor.end not in read or self._rng.random() < 0.15:
                self.net.result(tensor.end)


def _declared(given: Input) -> tuple[str, str]:
    return ",".join(map(str, given.shape)), given.element_type


def _write(net: Net, made: Layer, fed: dict[int, End]) -> list[End]:
    """Write a layer, whose inputs that are not ``fed`` are constants; return its outputs."""
    ends = [fed[i] if i in fed else net.const(given.values, given.element_type) for i, given in enumerate(made.inputs)]
    return write(net, made, ends)


def _is_finite(array: Array) -> bool:
    return array.dtype.kind not in "fV" or bool(np.isfinite(array.astype(np.float64)).all())


def make_graph(seed: int) -> Graph:
    """Return a random graph that ovir can run, with Results for all ends and some tensors between."""
    graph, rng = Graph(seed), random.Random(f"graph {seed}")
    kind = rng.choice(("f32", "f32", "f32", "f16", "i32"))
    shape = [rng.choice((1, 2, 3, 4, 6)) for _ in range(rng.randint(1, 5))]
    numbers = np.random.default_rng(seed).integers(-24, 25, shape) / (1 if kind == "i32" else 8)
    graph.add_input(shape, kind, numbers.astype(ElementType.parse(kind).to_dtype()))
    wanted = rng.randint(3, 12)
    for _ in range(_MOST_TRIALS):
        wanted -= graph.add_layer()
        if not wanted:
            break
    graph.add_results()
    return graph


_MOST_TRIALS = 400
