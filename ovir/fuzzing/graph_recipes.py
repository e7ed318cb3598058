"""Recipes that add one random layer to a random graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.fuzzing.net import Net, output
from ovir.ops import find
from ovir.ops.activation import ActivationBase
from ovir.ops.base.operator import Operator
from ovir.ops.base.opsets import OPERATIONS
from ovir.ops.base.registry import LAST_COMPLETE_OPSET
from ovir.ops.base.traits import method_signature
from ovir.ops.comparison import FloatTestBase
from ovir.ops.unary import UnaryBase

FLOATS = ("f32", "f16")
INTEGERS = ("i32", "i64", "u8", "i8")
PickledModel = Callable[["Graph"], None]


@dataclass(frozen=True)
class Tensor:
    """An output in the graph, with the shape that it has in the run."""

    end: tuple[int, int]
    shape: tuple[int, ...]
    type: str

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True)
class Made:
    """A layer in the graph."""

    kind: str
    inputs: tuple[Tensor, ...]
    """The inputs that are not constants."""
    attributes: dict[str, Any]


class Unfit(Exception):  # noqa: N818 - this is not an error: another recipe is tried
    """Raised by a recipe that finds no suitable tensor."""


@dataclass
class Graph:
    """A graph under construction."""

    rng: np.random.Generator
    net: Net = field(default_factory=Net)
    tensors: list[Tensor] = field(default_factory=list)
    feeds: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    layers: list[Made] = field(default_factory=list)
    """The layers by id."""

    def edges(self) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """Return the ends of all edges: layer and port where each begins, then where it leads."""
        numbers = [[int(number) for number in re.findall(r'"(\d+)"', edge)] for edge in self.net.edges]
        return [((a, b), (c, d)) for a, b, c, d in numbers]

    def sources(self) -> dict[int, list[tuple[int, int]]]:
        """Return the sources of each layer's inputs."""
        found: dict[int, list[tuple[int, int]]] = {}
        for source, (target, _) in self.edges():
            found.setdefault(target, []).append(source)
        return found

    # ----- chance

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def choose(self, *items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def axis(self, rank: int) -> int:
        return self.integer(-rank, rank - 1)

    def axes(self, rank: int, least: int = 0) -> list[int]:
        """Return distinct axes, some of them counted from the end."""
        chosen = self.rng.permutation(rank)[: self.integer(least, rank)]
        return [int(axis) - rank if self.chance(0.3) else int(axis) for axis in chosen]

    # ----- tensors

    def parameter(self, shape: Sequence[int], element_type: str) -> Tensor:
        name = f"p{len(self.feeds)}"
        dtype = ElementType.parse(element_type).to_dtype()
        values: Array
        if element_type in FLOATS:
            values = self.rng.integers(-24, 25, shape) / 8 + self.rng.integers(-8, 9, shape) / 64
        elif element_type == "boolean":
            values = self.rng.integers(0, 2, shape)
        else:
            values = self.rng.integers(0 if element_type.startswith("u") else -9, 10, shape)
        self.feeds[name] = np.asarray(values).astype(dtype)
        end = self.net.parameter(name, ",".join(map(str, shape)), element_type)
        self.layers.append(Made("Parameter", (), {}))
        tensor = Tensor(end, tuple(shape), element_type)
        self.tensors.append(tensor)
        return tensor

    def pick(
        self, *types: str, rank: int | tuple[int, int] = (0, 5), where: Callable[[Tensor], bool] | None = None
    ) -> Tensor:
        """Return a tensor of one of these types and a suitable rank, most often a late one; add an input if there is
        none."""
        low, high = (rank, rank) if isinstance(rank, int) else rank
        fitting = [t for t in self.tensors if t.type in types and low <= t.rank <= high and (where is None or where(t))]
        if fitting and self.chance(0.93):
            return fitting[-1 - int(len(fitting) * self.rng.random() ** 2)]
        if len(self.feeds) >= 4:
            raise Unfit
        shape = [self.choose(1, 2, 3, 4, 5, 8) for _ in range(self.integer(max(low, 0), min(high, 4)))]
        tensor = self.parameter(shape, self.choose(*types))
        if where is not None and not where(tensor):
            raise Unfit
        return tensor

    def floats(self, **keywords: Any) -> Tensor:
        return self.pick(*FLOATS, **keywords)

    def numbers(self, **keywords: Any) -> Tensor:
        return self.pick(*FLOATS, *INTEGERS, **keywords)

    def anything(self, **keywords: Any) -> Tensor:
        return self.pick(*FLOATS, *INTEGERS, "boolean", **keywords)

    def constant(self, values: Any, element_type: str = "i64") -> tuple[int, int]:
        end = self.net.const(np.asarray(values), element_type)
        self.layers.append(Made("Const", (), {}))
        return end

    def weights(self, shape: Sequence[int], element_type: str) -> tuple[int, int]:
        return self.constant(self.rng.integers(-8, 9, shape) / 8, element_type)

    def partner(self, tensor: Tensor) -> tuple[int, int]:
        """Return a tensor or constant that broadcasts with a tensor of this type."""
        alike = [
            t for t in self.tensors if t.type == tensor.type and t is not tensor and _broadcasts(t.shape, tensor.shape)
        ]
        if alike and self.chance(0.6):
            end: tuple[int, int] = self.choose(*alike).end
            return end
        shape = tuple(1 if self.chance(0.3) else size for size in tensor.shape[self.integer(0, tensor.rank) :])
        if tensor.type == "boolean":
            return self.constant(self.rng.integers(0, 2, shape), "boolean")
        if tensor.type in FLOATS:
            return self.weights(shape, tensor.type)
        return self.constant(self.rng.integers(0 if tensor.type == "u8" else -5, 6, shape), tensor.type)

    def add(
        self, kind: str, *inputs: Tensor | tuple[int, int], opset: int = 1, outputs: int = 1, **attributes: Any
    ) -> None:
        """Add a layer; the caller of the recipe finds out what its outputs are."""
        ends = [item.end if isinstance(item, Tensor) else item for item in inputs]
        tensors = tuple(item for item in inputs if isinstance(item, Tensor))
        texts = {name.replace("__", "."): _text(value) for name, value in attributes.items()}
        first = self.net.op(kind, *ends, opset=opset, outputs=outputs, **texts)
        self.layers.append(Made(kind, tensors, attributes))
        for index in range(outputs):
            self.tensors.append(Tensor(output(first, index), (), ""))


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _broadcasts(one: Sequence[int], other: Sequence[int]) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(one), reversed(other), strict=False))


# --------------------------------------------------------------------------- element by element


def _is_unary(cls: type[Operator] | None) -> bool:
    if cls is None or not issubclass(cls, (UnaryBase, ActivationBase, FloatTestBase)):
        return False
    must_be_given = any(a.required or a.specified for a in cls.attributes.values())
    return method_signature(cls.infer).required == 1 and not must_be_given


UNARY = [
    (version.type, version.opset)
    for versions in OPERATIONS.values()
    for version in versions.values()
    if version.opset <= LAST_COMPLETE_OPSET and _is_unary(find(version.type, version.opset))
]
"""The elementwise operations of one input, without attributes that must be given."""
BINARY = [
    "Add",
    "Subtract",
    "Multiply",
    "Divide",
    "Maximum",
    "Minimum",
    "Power",
    "SquaredDifference",
    "FloorMod",
    "Mod",
]
COMPARE = ["Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"]


def unary(g: Graph) -> None:
    kind, opset = g.choose(*UNARY)
    g.add(kind, g.floats(), opset=opset)


def unary_integer(g: Graph) -> None:
    g.add(g.choose("Abs", "Negative", "Sign", "ReLU"), g.pick("i32", "i64", "i8"))


def unary_with_attributes(g: Graph) -> None:
    x = g.floats()
    choice = g.integer(0, 6)
    if choice == 0:
        g.add("Elu", x, alpha=g.choose(0.5, 1.0, 2.0))
    elif choice == 1:
        g.add("Clamp", g.numbers(), min=g.choose(-2, 0), max=g.choose(1, 6))
    elif choice == 2:
        g.add("Gelu", x, opset=7, approximation_mode=g.choose("TANH", "ERF"))
    elif choice == 3:
        g.add("Round", x, opset=5, mode=g.choose("half_to_even", "half_away_from_zero"))
    elif choice == 4:
        g.add("HardSigmoid", x, g.constant(0.2, x.type), g.constant(0.5, x.type))
    elif choice == 5:
        g.add("Selu", x, g.constant(1.5, x.type), g.constant(1.1, x.type))
    else:
        x = g.floats(rank=(2, 4))
        g.add("PReLU", x, g.weights([x.shape[1]], x.type))


def binary(g: Graph) -> None:
    x = g.numbers()
    kind = g.choose(*BINARY)
    attributes = {"m_pythondiv": g.choose(True, False)} if kind == "Divide" else {}
    inputs: list[Tensor | tuple[int, int]] = [x, g.partner(x)]
    if g.chance(0.3):
        inputs.reverse()
    if kind in ("Divide", "FloorMod", "Mod") and x.type in INTEGERS:  # a division by 0 is undefined
        inputs = [x, g.constant(g.choose(*([1, 2, 3] if x.type == "u8" else [-3, -2, 1, 2, 3])), x.type)]
    if kind == "Power" and x.type in INTEGERS:
        inputs = [x, g.constant(g.integer(0, 3), x.type)]
    g.add(kind, *inputs, **attributes)


def compare(g: Graph) -> None:
    x = g.numbers()
    g.add(g.choose(*COMPARE), x, g.partner(x))


def logical(g: Graph) -> None:
    x = g.pick("boolean")
    if g.chance(0.25):
        g.add("LogicalNot", x)
    else:
        g.add(g.choose("LogicalAnd", "LogicalOr", "LogicalXor"), x, g.partner(x))


def bitwise(g: Graph) -> None:
    x = g.pick("i32", "u8", "i8", "i64", "boolean")
    if g.chance(0.25):
        g.add("BitwiseNot", x, opset=13)
    else:
        g.add(g.choose("BitwiseAnd", "BitwiseOr", "BitwiseXor"), x, g.partner(x), opset=13)


def select(g: Graph) -> None:
    x = g.anything()
    g.add("Select", g.partner(Tensor((0, 0), x.shape, "boolean")), x, g.partner(x))


def convert(g: Graph) -> None:
    g.add("Convert", g.anything(), destination_type=g.choose("f32", "f32", "f16", "i32", "i64", "u8", "i8", "boolean"))


def fake_quantize(g: Graph) -> None:
    x = g.pick("f32")
    ends = [g.constant(value, x.type) for value in (-2.0, 2.0, -2.0, 1.0)]
    g.add("FakeQuantize", x, *ends, levels=g.choose(2, 16, 256))


# --------------------------------------------------------------------------- reductions, normalization


def reduce(g: Graph) -> None:
    if g.chance(0.15):
        x, kind = g.pick("boolean", rank=(1, 5)), g.choose("ReduceLogicalAnd", "ReduceLogicalOr")
    else:
        x = g.numbers(rank=(1, 5))
        kind = g.choose(*(f"Reduce{name}" for name in ("Sum", "Mean", "Max", "Min", "Prod")))
        if x.type in FLOATS and g.chance(0.3):
            kind = g.choose("ReduceL1", "ReduceL2")
    opset = 4 if kind in ("ReduceL1", "ReduceL2") else 1
    g.add(kind, x, g.constant(g.axes(x.rank, 1)), opset=opset, keep_dims=g.choose(True, False))


def softmax(g: Graph) -> None:
    x = g.floats(rank=(1, 4))
    g.add(
        *g.choose(("SoftMax", x), ("LogSoftmax", x)),
        opset=g.choose(
            8,
        ),
        axis=g.axis(x.rank),
    )


def normalize(g: Graph) -> None:
    x = g.floats(rank=(2, 4))
    choice = g.integer(0, 4)
    if choice == 0:
        eps = g.choose("inside_sqrt", "outside_sqrt")
        variance = g.choose(True, False)
        axes = g.constant(sorted({axis % x.rank for axis in g.axes(x.rank, 1)}))
        g.add("MVN", x, axes, opset=6, eps=0.01, eps_mode=eps.upper(), normalize_variance=variance)
    elif choice == 1:
        axes = g.constant(sorted({axis % x.rank for axis in g.axes(x.rank, 1)}))
        g.add("NormalizeL2", x, axes, eps=0.01, eps_mode=g.choose("add", "max"))
    elif choice == 2:
        size = x.shape[1]
        parts = [g.weights([size], x.type) for _ in range(3)]
        g.add("BatchNormInference", x, *parts, g.constant(np.full(size, 1.5), x.type), opset=5, epsilon=0.001)
    elif choice == 3:
        x = g.floats(rank=4)
        g.add("LRN", x, g.constant([1]), alpha=0.5, beta=0.75, bias=1.0, size=3)
    else:
        groups = g.choose(*(n for n in (1, 2, 4) if x.shape[1] % n == 0))
        parts = [g.weights([x.shape[1]], x.type) for _ in range(2)]
        g.add("GroupNormalization", x, *parts, opset=12, num_groups=groups, epsilon=0.01)


def cumsum(g: Graph) -> None:
    x = g.pick("f32", "i32", "i64", rank=(1, 4))
    flags = {"exclusive": g.choose(True, False), "reverse": g.choose(True, False)}
    g.add("CumSum", x, g.constant(g.axis(x.rank)), opset=3, **flags)


def top_k(g: Graph) -> None:
    x = g.pick("f32", "i32", rank=(1, 4))
    axis = g.axis(x.rank)
    k = g.constant(g.integer(1, x.shape[axis]))
    modes = {"mode": g.choose("max", "min"), "sort": g.choose("value", "index"), "index_element_type": "i32"}
    g.add("TopK", x, k, opset=11, outputs=2, axis=axis, stable=True, **modes)


# --------------------------------------------------------------------------- movement


def reshape(g: Graph) -> None:
    x = g.anything(rank=(0, 5))
    size = int(np.prod(x.shape, dtype=int))
    divisors = [d for d in range(1, size + 1) if size % d == 0]
    first = g.choose(*divisors)
    target = g.choose([-1], [size], [first, size // first], [first, -1], [1, first, size // first], [-1, 1, first])
    if x.rank and g.chance(0.2):
        target = [0, -1]
    g.add("Reshape", x, g.constant(target), special_zero=True)


def transpose(g: Graph) -> None:
    x = g.anything(rank=(2, 5))
    g.add("Transpose", x, g.constant(g.rng.permutation(x.rank)))


def squeeze(g: Graph) -> None:
    if g.chance(0.5):
        x = g.anything(rank=(0, 4))
        g.add("Unsqueeze", x, g.constant([g.axis(x.rank + 1)]))
    else:
        x = g.anything(where=lambda t: 1 in t.shape)
        g.add("Squeeze", x, g.constant([x.shape.index(1)]))


def broadcast(g: Graph) -> None:
    x = g.anything(rank=(0, 4))
    target = [g.choose(2, 3) if size == 1 else size for size in x.shape]
    if g.chance(0.3) and x.rank < 4:
        target = [2, *target]
    g.add("Broadcast", x, g.constant(np.array(target, np.int64)), opset=3, mode=g.choose("numpy", "bidirectional"))
    g.layers[-1].attributes["target"] = target  # for the list of known divergences


def tile(g: Graph) -> None:
    x = g.anything(rank=(1, 4))
    g.add("Tile", x, g.constant([g.choose(1, 1, 2) for _ in x.shape]))


def pad(g: Graph) -> None:
    x = g.pick("f32", "i32", "f16", rank=(1, 4))
    mode = g.choose("constant", "edge", "reflect", "symmetric")
    most = [min(2, size - 1) for size in x.shape]
    begin, end = ([g.integer(0, high) for high in most] for _ in range(2))
    extra = [g.constant(g.integer(-2, 2), x.type)] if mode == "constant" else []
    g.add("Pad", x, g.constant(begin), g.constant(end), *extra, pad_mode=mode)


def slices(g: Graph) -> None:
    x = g.anything(rank=(1, 4))
    begin = [g.integer(-size, size - 1) for size in x.shape]
    step = [g.choose(1, 1, 2, -1) for _ in x.shape]
    end = [n + g.choose(1, 2, 9) if s > 0 else -99 for n, s in zip(begin, step, strict=True)]
    end = [99 if b < 0 and e >= 0 and s > 0 else e for b, e, s in zip(begin, end, step, strict=True)]
    if g.chance(0.5):
        g.add("Slice", x, g.constant(begin), g.constant(end), g.constant(step), opset=8)
    else:
        masks: dict[str, Any] = {name: [g.choose(0, 0, 1) for _ in x.shape] for name in ("begin_mask", "end_mask")}
        g.add("StridedSlice", x, g.constant(begin), g.constant(end), g.constant(step), opset=1, outputs=1, **masks)


def concat(g: Graph) -> None:
    x = g.anything(rank=(1, 4))
    axis = g.axis(x.rank)
    parts = [t for t in g.tensors if t.type == x.type and t.rank == x.rank and _same_but(t.shape, x.shape, axis)]
    g.add("Concat", *(g.choose(*parts) for _ in range(g.integer(1, 3))), x, axis=axis)


def _same_but(one: Sequence[int], other: Sequence[int], axis: int) -> bool:
    return all(a == b or i == axis % len(one) for i, (a, b) in enumerate(zip(one, other, strict=True)))


def split(g: Graph) -> None:
    x = g.anything(rank=(1, 4), where=lambda t: max(t.shape) > 1)
    axis = g.choose(*(i for i, size in enumerate(x.shape) if size > 1))
    size = x.shape[axis]
    if g.chance(0.5):
        count = g.choose(*(n for n in range(2, size + 1) if size % n == 0))
        g.add("Split", x, g.constant(axis), outputs=count, num_splits=count)
    else:
        first = g.integer(1, size - 1)
        g.add("VariadicSplit", x, g.constant(axis - x.rank), g.constant([first, g.choose(-1, size - first)]), outputs=2)


def depth_space(g: Graph) -> None:
    x = g.pick("f32", "i32", rank=4)
    if g.chance(0.5):
        x = g.pick("f32", rank=4, where=lambda t: t.shape[1] % 4 == 0)
        g.add("DepthToSpace", x, mode=g.choose("blocks_first", "depth_first"), block_size=2)
    else:
        x = g.pick("f32", rank=4, where=lambda t: t.shape[2] % 2 == t.shape[3] % 2 == 0)
        g.add("SpaceToDepth", x, mode=g.choose("blocks_first", "depth_first"), block_size=2)


def roll(g: Graph) -> None:
    x = g.pick("f32", "i32", rank=(1, 4))
    axes = g.axes(x.rank, 1)
    g.add("Roll", x, g.constant([g.integer(-3, 3) for _ in axes]), g.constant(axes), opset=7)


def shuffle(g: Graph) -> None:
    x = g.pick("f32", rank=4)
    group = g.choose(*(n for n in range(1, x.shape[1] + 1) if x.shape[1] % n == 0))
    g.add("ShuffleChannels", x, axis=1, group=group)


def shape_of(g: Graph) -> None:
    g.add("ShapeOf", g.anything(rank=(1, 5)), opset=3, output_type=g.choose("i64", "i32"))


def reverse_sequence(g: Graph) -> None:
    x = g.pick("f32", rank=(2, 4))
    lengths = g.constant([g.integer(1, x.shape[1]) for _ in range(x.shape[0])], "i32")
    g.add("ReverseSequence", x, lengths, batch_axis=0, seq_axis=1)


# --------------------------------------------------------------------------- gather and scatter


def gather(g: Graph) -> None:
    x = g.anything(rank=(1, 4))
    axis = g.axis(x.rank)
    shape = [g.choose(1, 2, 3) for _ in range(g.integer(0, 2))]
    indices = g.constant(g.rng.integers(-x.shape[axis], x.shape[axis], shape), g.choose("i32", "i64"))
    g.add("Gather", x, indices, g.constant(axis), opset=8, batch_dims=0)


def gather_elements(g: Graph) -> None:
    x = g.numbers(rank=(1, 4))
    axis = g.axis(x.rank)
    shape = list(x.shape)
    shape[axis] = g.choose(1, 2, 5)
    g.add("GatherElements", x, g.constant(g.rng.integers(0, x.shape[axis], shape), "i32"), opset=6, axis=axis)


def gather_nd(g: Graph) -> None:
    x = g.numbers(rank=(1, 4))
    depth = g.integer(1, x.rank)
    indices = np.stack([g.rng.integers(0, size, 3) for size in x.shape[:depth]], -1)
    g.add("GatherND", x, g.constant(indices), opset=8, batch_dims=0)


def scatter(g: Graph) -> None:
    x = g.pick("f32", "i32", rank=(1, 4))
    axis = g.integer(0, x.rank - 1)
    kind = g.integer(0, 2)
    if kind == 0:
        places = g.rng.permutation(x.shape[axis])[: g.integer(1, x.shape[axis])]
        shape = [*x.shape[:axis], len(places), *x.shape[axis + 1 :]]
        updates = g.constant(g.rng.integers(-9, 9, shape), x.type)
        g.add("ScatterUpdate", x, g.constant(places), updates, g.constant(axis), opset=3)
    elif kind == 1:
        shape = [g.integer(1, size) for size in x.shape]
        indices = g.constant(g.rng.permuted(np.broadcast_to(_column(shape, axis), shape), axis=axis), "i32")
        updates = g.constant(g.rng.integers(-9, 9, shape), x.type)
        reduction = g.choose("none", "sum", "max", "min", "prod")
        attributes = {"reduction": reduction, "use_init_val": g.choose(True, False)}
        g.add("ScatterElementsUpdate", x, indices, updates, g.constant(axis), opset=12, **attributes)
    else:
        rows = g.rng.permutation(x.shape[0])[: g.integer(1, x.shape[0])]
        updates = g.constant(g.rng.integers(-9, 9, [len(rows), *x.shape[1:]]), x.type)
        g.add("ScatterNDUpdate", x, g.constant(rows[:, None]), updates, opset=3)


def _column(shape: Sequence[int], axis: int) -> np.ndarray[Any, Any]:
    return np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])


def one_hot(g: Graph) -> None:
    x = g.pick("i32", "i64", rank=(1, 3))
    values = [g.constant(value, "f32") for value in (1.0, 0.0)]
    g.add("OneHot", x, g.constant(g.integer(1, 6)), *values, axis=g.axis(x.rank + 1))


def non_zero(g: Graph) -> None:
    g.add("NonZero", g.pick("f32", "i32", "boolean", rank=(1, 4)), opset=3, output_type="i64")


# --------------------------------------------------------------------------- products, windows, resizing


def matmul(g: Graph) -> None:
    x = g.floats(rank=(1, 4))
    columns = g.choose(1, 2, 5)
    transposed = g.choose(True, False)
    shape = [columns, x.shape[-1]] if transposed else [x.shape[-1], columns]
    g.add("MatMul", x, g.weights(shape, x.type), transpose_a=False, transpose_b=transposed)


def convolution(g: Graph) -> None:
    x = g.floats(rank=(3, 5), where=lambda t: min(t.shape[2:]) > 1)
    spatial = x.rank - 2
    kernel = [g.integer(1, min(3, size)) for size in x.shape[2:]]
    common: dict[str, Any] = {name: [g.choose(1, 1, 2) for _ in kernel] for name in ("strides",)}
    common["dilations"] = [1] * spatial
    common |= {name: [g.choose(0, 1) for _ in kernel] for name in ("pads_begin", "pads_end")}
    common["auto_pad"] = g.choose("explicit", "explicit", "same_upper", "same_lower", "valid")
    channels = x.shape[1]
    if g.chance(0.5):
        g.add("Convolution", x, g.weights([g.choose(1, 2, 4), channels, *kernel], x.type), **common)
    elif g.chance(0.5):
        weights = g.weights([channels, g.choose(1, 2), 1, *kernel], x.type)
        g.add("GroupConvolution", x, weights, **common)
    else:
        common["output_padding"] = [0] * spatial
        g.add("ConvolutionBackpropData", x, g.weights([channels, g.choose(1, 3), *kernel], x.type), **common)


def pooling(g: Graph) -> None:
    x = g.floats(rank=(3, 5), where=lambda t: min(t.shape[2:]) > 1)
    kernel = [g.integer(1, min(3, size)) for size in x.shape[2:]]
    pads = {name: [g.integer(0, size // 2) for size in kernel] for name in ("pads_begin", "pads_end")}
    common = {
        "kernel": kernel,
        "strides": [g.choose(1, 2) for _ in kernel],
        "rounding_type": g.choose("floor", "ceil"),
        "auto_pad": g.choose("explicit", "explicit", "same_upper", "same_lower", "valid"),
        **pads,
    }
    if g.chance(0.5):
        dilations = [1] * len(kernel)
        g.add("MaxPool", x, opset=8, outputs=2, dilations=dilations, index_element_type="i64", axis=0, **common)
    else:
        g.add("AvgPool", x, **common, **{"exclude-pad": g.choose(True, False)})


def adaptive_pooling(g: Graph) -> None:
    x = g.pick("f32", rank=(3, 5))
    g.add("AdaptiveAvgPool", x, g.constant([g.integer(1, 4) for _ in x.shape[2:]]), opset=8)


def interpolate(g: Graph) -> None:
    x = g.floats(rank=4)
    sizes = [g.choose(1, 2, 3, 5, 7) for _ in range(2)]
    scales = [size / old for size, old in zip(sizes, x.shape[2:], strict=True)]
    attributes = {
        "mode": g.choose("nearest", "linear_onnx", "cubic", "linear"),
        "shape_calculation_mode": "sizes",
        "coordinate_transformation_mode": g.choose("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"),
        "nearest_mode": g.choose("round_prefer_floor", "floor", "ceil", "simple", "round_prefer_ceil"),
        "antialias": False,
        "pads_begin": [0, 0, 0, 0],
        "pads_end": [0, 0, 0, 0],
        "cube_coeff": -0.75,
    }
    g.add("Interpolate", x, g.constant(sizes), g.constant(scales, "f32"), g.constant([2, 3]), opset=4, **attributes)


RECIPES: tuple[tuple[PickledModel, int], ...] = (
    (unary, 8), (unary_integer, 1), (unary_with_attributes, 3), (binary, 7), (compare, 2), (logical, 2), (bitwise, 1),
    (select, 2), (convert, 4), (fake_quantize, 1), (reduce, 5), (softmax, 2), (normalize, 3), (cumsum, 1), (top_k, 1),
    (reshape, 3), (transpose, 3), (squeeze, 2), (broadcast, 2), (tile, 1), (pad, 2), (slices, 3), (concat, 3),
    (split, 2), (depth_space, 1), (roll, 1), (shuffle, 1), (shape_of, 1), (reverse_sequence, 1), (gather, 3),
    (gather_elements, 1), (gather_nd, 1), (scatter, 2), (one_hot, 1), (non_zero, 1), (matmul, 3), (convolution, 4),
    (pooling, 3), (adaptive_pooling, 1), (interpolate, 2),
)  # fmt: skip
"""The recipes, each with its weight."""
