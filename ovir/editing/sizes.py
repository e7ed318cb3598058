"""Sizes that follow from sizes of tensors, and how the axes of a tensor are made of the axes before a Reshape.

A size is a pair of numbers: for the old sizes of the inputs, and for trial sizes, which occur nowhere else. So sizes
that are equal in both follow the inputs in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import gcd, prod
from typing import Any

import numpy as np

from ovir.building.creation import create_layer
from ovir.graph.layers import Layer, Port

MOST_WAYS = 64
"""The most ways to make axes of factors that are looked at."""


@dataclass(frozen=True)
class Size:
    """A size that is computed: (product + offset) // divisor * factor, where the product is that of sizes of tensors.

    With ``modulus``, what the product lacks to the next multiple of this number stands in its place.
    """

    places: tuple[tuple[Port, int], ...]
    """Tensors, each with an axis."""
    factor: int = 1
    divisor: int = 1
    offset: int = 0
    modulus: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether this is the size of a tensor itself."""
        return self == Size(self.places[:1])

    def times(self, other: Size) -> Size:
        """Return the product of two sizes without offsets."""
        return Size((*self.places, *other.places), self.factor * other.factor, self.divisor * other.divisor)

    def layer(self) -> Layer:
        """Return the layer that computes the size, as a list of one number."""
        found: Layer | None = None
        for port, axis in self.places:
            shape = create_layer("ShapeOf", [port], version="opset3")
            size = create_layer("Gather", [shape, np.array([axis]), np.array(0)], version="opset8")
            found = size if found is None else create_layer("Multiply", [found, size], version="opset1")
        assert found is not None
        common = gcd(self.factor, self.divisor)
        steps = [("Multiply", -1), ("FloorMod", self.modulus)] if self.modulus else []
        steps += [("Add", self.offset), ("Divide", self.divisor // common), ("Multiply", self.factor // common)]
        for kind, number in steps:
            if number != (0 if kind == "Add" else 1):
                found = create_layer(kind, [found, np.array([number])], version="opset1")
        return found


def with_sizes(numbers: Any, port: Port | None, sizes: Mapping[int, Size]) -> Layer:
    """Return the layer that puts sizes in place of some numbers of a list, or of a number; ``port`` has their type."""
    layers = [size.layer() for size in sizes.values()]
    joined = layers[0] if len(layers) == 1 else create_layer("Concat", layers, {"axis": 0}, version="opset1")
    if port is not None and str(port.element_type) != "i64":
        joined = create_layer("Convert", [joined], {"destination_type": port.element_type}, version="opset1")
    if port is not None and port.shape.rank == 0:
        return create_layer("Squeeze", [joined, np.array([0])], version="opset1")
    return create_layer("ScatterUpdate", [numbers, np.array(list(sizes)), joined, np.array(0)], version="opset3")


# --------------------------------------------------------------------------- what an axis is made of


@dataclass(frozen=True)
class Factor:
    """One of the factors of a size."""

    old: int
    new: int
    parts: tuple[Factors, ...] = ()
    """What the parts are made of, if tensors were joined along the axis."""

    @property
    def varies(self) -> bool:
        return self.old != self.new


Factors = tuple[Factor, ...]
"""Factors in the order in which they lie in memory, the outermost first."""


def new_size(factors: Factors) -> int:
    """Return the trial size of an axis that is made of these factors."""
    return prod(factor.new for factor in factors)


def ways(factors: Factors, sizes: Sequence[int]) -> list[list[Factors]]:
    """Return the ways to make axes of these old sizes of factors that keep their order; the likely ones first.

    Where a factor is divided between two axes, it is likely that the outer part varies, and the inner one does not.
    """
    return list(islice(_ways(factors, sizes), MOST_WAYS))


def _ways(factors: Factors, sizes: Sequence[int]) -> Iterator[list[Factors]]:
    if not sizes:
        if not factors:
            yield []
        return
    for own, rest in _heads(factors, sizes[0]):
        for others in _ways(rest, sizes[1:]):
            yield [own, *others]


def mixed_ways(factors: Factors, sizes: Sequence[int]) -> list[list[Factors]]:
    """Return the ways to make axes of these old sizes of whole factors in another order than that in memory."""
    return list(islice(_mixed_ways(tuple(factor for factor in factors if factor.old > 1), sizes), MOST_WAYS))


def _mixed_ways(factors: Factors, sizes: Sequence[int]) -> Iterator[list[Factors]]:
    if not sizes and not factors:
        yield []
    for number in range(len(factors) + 1 if sizes else 0):
        for places in combinations(range(len(factors)), number):
            own = tuple(factors[place] for place in places)
            if prod(factor.old for factor in own) == sizes[0]:
                rest = tuple(factor for place, factor in enumerate(factors) if place not in places)
                yield from ([own, *others] for others in _mixed_ways(rest, sizes[1:]))


def _heads(factors: Factors, size: int) -> Iterator[tuple[Factors, Factors]]:
    """Yield the factors that make an axis of this size, and those that are left."""
    if size == 1:
        yield (), factors
    if not factors or (size == 1 and factors[0].old != 1):
        return
    head, rest = factors[0], factors[1:]
    common = gcd(head.old, size)
    divided = [(head, None)] if common == head.old else _divided(head, common) if common > 1 and head.old else []
    for outer, inner in divided:
        for own, left in _heads(rest if inner is None else (inner, *rest), size // common if common else 1):
            yield (outer, *own), left


def _divided(factor: Factor, outer: int) -> list[tuple[Factor, Factor | None]]:
    """Return the ways to divide a factor into an outer and an inner one."""
    inner = factor.old // outer
    found: list[tuple[Factor, Factor | None]] = []
    if factor.new % inner == 0:
        found.append((Factor(outer, factor.new // inner), Factor(inner, inner)))
    if factor.varies and factor.new % outer == 0:
        found.append((Factor(outer, outer), Factor(inner, factor.new // outer)))
    return found
