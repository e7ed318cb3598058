"""Models of one operation each, with special values among the inputs and parameters, and with special sizes."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, f8e8m0, f32, nf4
from ovir.fuzzing import cases
from ovir.fuzzing.cases import Case
from ovir.fuzzing.making import VERSIONS, Input, Make, random_array
from ovir.ops import find
from support.special_values import special_values, spread

STYLES = ("usual", "computed", "parameters", "small", "empty", "scalar")
"""What is special about a model: nothing but what is fed to it, that no input is a constant, its constants and
attributes, or its sizes."""
_SIZES = {"small": (1, 1, 2), "empty": (0, 1, 2)}


class _Special(Make):
    """Draws inputs of moderate numbers and small sizes, and records the inputs that may have any values."""

    def __init__(self, kind: str, rng: random.Random, opset: int, style: str) -> None:
        super().__init__(kind, rng, opset)
        self.style = style
        self.free: set[int] = set()
        self.is_special = style in ("usual", "computed")
        """Whether the style has changed something."""

    def size(self) -> int:
        self.is_special |= self.style in _SIZES
        return self.rng.choice(_SIZES.get(self.style, (2, 3, 4)))

    def any_shape(self, least: int = 0, most: int = 4) -> tuple[int, ...]:
        self.is_special |= self.style == "scalar"
        return super().any_shape(least, least if self.style == "scalar" else most)

    def fill(self, position: int, given: Input, values: np.random.Generator) -> None:
        self.free.add(position)
        element_type = ElementType.parse(given.element_type)
        dtype = element_type.to_dtype()
        if element_type.kind in ("string", "boolean") or element_type in (nf4, f8e8m0):
            given.values = random_array(values, element_type, given.shape)
        elif element_type.is_real:
            given.values = np.asarray(values.integers(-16, 17, given.shape) / 4).astype(dtype)
        else:
            given.values = np.asarray(values.integers(0, 2 if element_type.bits < 4 else 8, given.shape)).astype(dtype)


@dataclass
class SpecialCase:
    """A model with the types of its inputs, and those that may have any values."""

    case: Case
    types: list[ElementType]
    free: set[int]
    style: str

    def feeds(self, inputs: Sequence[str], rng: np.random.Generator) -> Iterator[tuple[str, list[Array]]]:
        """Yield arrays for inputs of these names, each time with special values in one of them, with a title."""
        yield "usual numbers", self.case.feeds
        if self.style == "computed":
            return
        for place, name in enumerate(inputs):
            index = int(name.removeprefix("x"))
            if index in self.free:
                for title, changed in spread(
                    self.case.feeds[place], self.types[index], rng, each=self.style == "usual"
                ):
                    yield f"{title} in {name}", [*self.case.feeds[:place], changed, *self.case.feeds[place + 1 :]]


def special_case(index: int, style: str) -> SpecialCase | None:
    """Return a model of an operation version, None where nothing about it can be special in this way."""
    kind, opset = VERSIONS[index]
    rng = random.Random(f"{kind}-{opset}, {style}")
    values = np.random.default_rng(rng.getrandbits(64))
    cls = find(kind, opset)
    assert cls is not None
    for _ in range(4):
        made = _Special(kind, rng, opset, style)
        if cases.draw(made, cls, values):
            break
    types = [ElementType.parse(given.element_type) for given in made.inputs]
    if style == "parameters":
        for position in made.free - {0}:
            found, given = special_values(types[position]), made.inputs[position]
            drawn = found[values.integers(0, len(found), given.shape)]
            given.values, given.is_constant = np.asarray(drawn), True
            made.is_special = True
        numbers = [attribute.name for attribute in cls.attributes.values() if attribute.type is float]
        if numbers:
            made.attributes[rng.choice(numbers)] = repr(float(rng.choice(list(special_values(f32)))))
            made.is_special = True
    if style == "computed":
        for given in made.inputs:
            given.is_constant = False
    return SpecialCase(cases.written(made), types, made.free, style) if made.is_special else None
