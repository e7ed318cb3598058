"""The choices of the fuzzer's recipes: sizes, shapes, element types and attribute values."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import OperatorError
from ovir.ops import find
from ovir.ops.base.layouts import declarations_of
from ovir.ops.base.opsets import OPERATIONS

REALS = ("f32", "f32", "f32", "f16", "bf16", "f64")
INTEGERS = ("i32", "i64", "i64", "u8", "i8", "i16", "u16", "u32", "u64")
INDICES = ("i32", "i64")
NARROW = ("i4", "u4", "u1", "u2", "u3", "u6", "nf4", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "string")

_KINDS = {"integer": "index", "numeric": "number", "any": "anything"}
"""The sets of types that are drawn for classes of types of another name."""

VERSIONS: list[tuple[str, int]] = sorted((kind, opset) for kind, versions in OPERATIONS.items() for opset in versions)
"""Type and opset of each operation version.

The remainder of a seed chooses one of them, and the quotient its model, which is the same whatever other versions there
are.
"""


@dataclass
class Input:
    """One input of the operation. Without values they are drawn from the domain of the input."""

    shape: tuple[int, ...]
    element_type: str
    values: Array | None = None
    is_constant: bool | None = None
    """Whether the input must be a constant or a parameter; None leaves it to chance."""


@dataclass
class Make:
    """Draws the inputs and attributes of one operation. A letter in a shape is one size throughout the operation."""

    kind: str
    """The type of the operation."""
    rng: random.Random
    opset: int = 1
    inputs: list[Input] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    outputs: int = 1
    """The number of outputs, which inference knows when all inputs are drawn."""
    is_small: bool = False
    """Whether most sizes are 0 or 1."""
    bodies: str = ""
    """The text of bodies and port maps for operations that have them."""
    results: Sequence[TensorType] = ()
    """The outputs, as far as inference knows them without a model."""
    refusal: OperatorError | None = None
    """The error of inference, if it does not accept what is drawn."""
    _types: dict[str, str] = field(default_factory=dict)

    # ----- chance

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pick(self, *choices: Any) -> Any:
        return self.rng.choice(choices)

    def ints(self, count: int, low: int, high: int) -> list[int]:
        return [self.rng.randint(low, high) for _ in range(count)]

    def axis(self, rank: int) -> int:
        return self.rng.randrange(-rank, rank) if rank else 0

    def axes(self, rank: int, most: int | None = None) -> list[int]:
        """Return distinct axes, some of them counted from the end."""
        count = self.rng.randint(0, rank if most is None else min(most, rank))
        return [axis - rank if self.chance(0.3) else axis for axis in self.rng.sample(range(rank), count)]

    def size(self) -> int:
        if self.is_small:
            return self.rng.choices((0, 1, 2, 3), (1, 4, 2, 1))[0]
        return self.rng.choices((0, 1, 2, 3, 4, 5, 7, 11, 17), (3, 14, 20, 18, 12, 10, 8, 4, 2))[0]

    def set(self, **sizes: int) -> None:
        """Give letters their sizes."""
        self.sizes.update(sizes)

    def shape(self, text: str) -> tuple[int, ...]:
        """Return the shape of a text such as ``N C 4*H+1``; ``...`` stands for up to two more dimensions."""
        found: list[int] = []
        for word in text.split():
            if word == "...":
                count = self.sizes.setdefault("...", self.rng.choice((0, 0, 1, 2)))
                found += [self._letter(f"...{i}") for i in range(count)]
            else:
                products = (map(self._letter, product.split("*")) for product in word.split("+"))
                found.append(sum(map(prod, products)))
        return tuple(found)

    def _letter(self, name: str) -> int:
        """Return the size of a letter, or a number."""
        return int(name) if name.isdigit() else self.sizes.setdefault(name, self.size())

    def existing(self, least: int, most: int) -> tuple[int, ...] | None:
        """Return a shape of such a rank that something has that the operation may read; None if nothing has."""
        return None

    def any_shape(self, least: int = 0, most: int = 4) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(self.rng.randint(least, most)))

    def type(self, name: str, *choices: str) -> str:
        """Return the element type that ``name`` stands for throughout the operation."""
        return self._types.setdefault(name, self.rng.choice(choices or REALS))

    @property
    def real(self) -> str:
        return self.type("real", *REALS)

    @property
    def narrow(self) -> str:
        return self.type("real", "f32", "f32", "f16", "bf16")

    @property
    def half(self) -> str:
        return self.type("real", "f32", "f32", "f16")

    @property
    def number(self) -> str:
        return self.type("number", *REALS, *INTEGERS)

    @property
    def mostly_real(self) -> str:
        return self.real if self.chance(0.85) else self.number

    @property
    def index(self) -> str:
        return self.type("index", *INDICES)

    @property
    def bits(self) -> str:
        return self.type("bits", *INTEGERS, *(() if self.kind.endswith("Shift") else ("boolean", "boolean")))

    @property
    def anything(self) -> str:
        return self.type("anything", *REALS, *INTEGERS, "boolean", *(NARROW if self.chance(0.2) else ()))

    # ----- inputs and attributes

    def add(
        self, shape: str | Sequence[int], element_type: str, values: Any = None, constant: bool | None = None
    ) -> None:
        """Append an input."""
        sizes = self.shape(shape) if isinstance(shape, str) else tuple(shape)
        array = None if values is None else np.asarray(values)
        self.inputs.append(Input(sizes if array is None else array.shape, element_type, array, constant))

    def data(self, kind: str, least: int = 0, most: int = 4) -> tuple[int, ...]:
        """Append an input of any shape, and return it; ``kind`` names a set of types."""
        shape = self.any_shape(least, most)
        self.add(shape, getattr(self, kind))
        return shape

    def given(self, values: Any, element_type: str | None = None, constant: bool | None = None) -> None:
        """Append an input of these values, by default integers."""
        self.add((), element_type or self.index, values, True if constant is None and self.chance(0.8) else constant)

    def take(self, inputs: str) -> None:
        """Append the inputs of a text such as ``real N C ..., index N C | C, ?f32 2 = 0..9``, which
        docs/operation-classes.md explains."""
        for text in inputs.split(", "):
            if text.startswith("?") and not self.flag():
                return
            head, _, values = text.removeprefix("?").partition(" = ")
            kinds, _, shapes = head.partition(" ")
            kind = self.pick(*kinds.split("|")) if "|" in kinds else kinds
            element_type = str(getattr(self, kind, kind))
            shape = self.pick(*shapes.split(" | ")) if "|" in shapes else shapes
            sizes = self.any_shape(int(shape[3:] or 0)) if shape.startswith("any") else self.shape(shape)
            if values in ("image", "rois"):
                self.add(sizes, element_type, _image(sizes) if values == "image" else self._rois(sizes[0]))
            elif values:
                self.given(self._values(values, sizes), element_type)
            else:
                self.add(sizes, element_type)

    def take_declared(self, given: str = "") -> None:
        """Append the inputs that an operation takes; a text such as ``T narrow, im_info = image, slope T C | 1`` has
        types for letters and inputs, where not all types of the declaration are to be drawn, and values and shapes of
        inputs."""
        cls = find(self.kind, self.opset)
        assert cls is not None
        known = {name: a.parse(text) for name, a in cls.attributes.items() if (text := self.attributes.get(name))}
        op = cls.from_parsed({cls.attributes[name].field: value for name, value in known.items()})
        declared = self.pick(*declarations_of(op))
        parts = [part.partition(" = ") for part in given.split(", ")]
        values = {head: values for head, _, values in parts if values}
        heads = [head.split(" ", 2) for head, _, values in parts if head and not values]
        shapes = {name: shape for name, _, *more in heads for shape in more}
        kinds = declared.types | {name: kind for name, kind, *_ in heads}
        kinds = {name: self.pick(*text.split("|")) for name, text in kinds.items()}
        for name, size in declared.sizes.items():
            if size.number is not None:
                self.set(**{name: size.number.length})
        for tensor in declared.inputs:
            if tensor.is_optional and not self.flag():
                return
            kind = kinds.get(tensor.name, tensor.element_type)
            kind = kinds.get(kind, kind)
            for _ in range(self.pick(1, 2, 3) if tensor.is_repeated else 1):
                declared_shape = " ".join(self._axis(axis) for axis in self.pick(*tensor.layouts).texts)
                shape = shapes.get(tensor.name, declared_shape)
                value = f" = {values[tensor.name]}" if tensor.name in values else ""
                self.take(f"{_KINDS.get(kind, kind)} {shape}{value}")

    def _axis(self, text: str) -> str:
        """Return a dimension of a layout in the form of ``shape``."""
        if text.endswith("..."):
            return "..."
        if text == "?":
            return str(self.size())
        return str(self.pick(*text.split("|")))

    def _values(self, text: str, shape: tuple[int, ...]) -> Any:
        if text in ("axis", "axes"):
            rank = len(self.inputs[0].shape)
            return self.axis(rank) if text == "axis" else self.axes(rank)
        low, dots, high = text.partition("..")
        if dots:
            return np.reshape(self.ints(prod(shape), int(low), int(high)), shape)
        return float(text) if "." in text else self.shape(text)[0]

    def _rois(self, count: int) -> Array:
        """Return boxes of the first image, [count, 5]."""
        corners = np.sort(np.reshape(self.ints(4 * count, 0, 9), (count, 4)), axis=1)[:, [0, 2, 1, 3]]
        return np.insert(corners, 0, 0, axis=1).astype(np.float32)

    def settle(self, settings: str) -> None:
        """Set attributes and sizes by a text such as ``eps=0.1|1 num_classes=C axis=axis N=1|2``."""
        for name, _, choices in (setting.partition("=") for setting in settings.split()):
            value: Any = self.rng.choice(choices.split("|"))
            if name[0].isupper():
                self.set(**{name: int(value)})
                continue
            if value in ("axis", "axes") or value in self.sizes:
                value = self._values(value, ())
            self.has(**{name: value or None if isinstance(value, str) else value})

    def fill(self, position: int, given: Input, values: np.random.Generator) -> None:
        """Give an input any values."""
        given.values = random_array(values, ElementType.parse(given.element_type), given.shape)

    def has(self, **attributes: Any) -> None:
        """Set attributes; ``None`` leaves one out."""
        for name, value in attributes.items():
            self.attributes[name.replace("__", ".")] = None if value is None else text_of(value)

    def maybe(self, **attributes: Any) -> None:
        """Set each of the attributes with a chance of one half."""
        self.has(**{name: value for name, value in attributes.items() if self.chance(0.5)})

    def flag(self) -> bool:
        return self.chance(0.5)

    def broadcast(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape that broadcasts with another one."""
        cut = shape[self.rng.randint(0, len(shape)) :] if self.chance(0.4) else shape
        return tuple(1 if self.chance(0.25) else size for size in cut)


def _image(shape: tuple[int, ...]) -> Array:
    """Return the heights, widths and scales of images."""
    return np.broadcast_to(np.array([32, 32, 1, 1], np.float32)[: shape[-1]], shape)


def text_of(value: Any) -> str:
    """Return an attribute value as files spell it."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(text_of, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def random_array(rng: np.random.Generator, element_type: ElementType, shape: tuple[int, ...]) -> Array:
    """Return values of a type, with a few of its odd ones among them."""
    if element_type.kind == "string":
        words = np.array(["", "a", "text", "öä", "x" * 20])
        return np.asarray(words[rng.integers(0, len(words), shape)]).astype(element_type.to_dtype())
    if element_type.kind == "boolean":
        return np.asarray(rng.random(shape) < 0.5)
    if element_type.name == "nf4" or not element_type.is_real:
        bits = min(element_type.bits, 62)
        high = 1 << (bits - (element_type.kind == "signed"))
        small = rng.integers(0, min(high, 10), shape, np.int64)
        if rng.random() < 0.2:
            small = rng.integers(-high if element_type.kind == "signed" else 0, high, shape, np.int64)
        return np.asarray(small).astype(element_type.to_dtype())
    values = rng.standard_normal(shape)
    if rng.random() < 0.15:
        odd = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e30, -1e-30, 1e-40])
        values = np.where(rng.random(shape) < 0.2, odd[rng.integers(0, len(odd), shape)], values)
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(element_type.to_dtype())
