"""Partial shapes: what is known of the sizes of a tensor.

A ``PartialShape`` is immutable. Its text follows OpenVINO's notation: ``[1,?,2..5]``, ``[...]``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Self, SupportsIndex, overload

from ovir.core.dimensions import UNKNOWN, Dimension, DimensionLike, as_dimension, product

MAX_RANK = 64
"""The largest number of dimensions; NumPy's arrays have no more."""


class RankError(ValueError):
    """A shape with too many dimensions."""


def _require_rank(rank: int) -> None:
    if rank > MAX_RANK:
        raise RankError(f"a shape has at most {MAX_RANK} dimensions, got {rank}")


class PartialShape:
    """A shape whose rank and sizes may be partly unknown.

    ``PartialShape([1, -1, "2..5"])``; ``PartialShape(None)`` has an unknown rank. Every dimension of a shape of unknown
    rank reads as unknown, so that most inference needs no special case. Sizes count elements.

    Raises ValueError for what is no list of dimensions, and for more than 64 of them.
    """

    __slots__ = ("_dims", "_has_symbols", "_identity", "_is_static", "_least_size")

    def __init__(self, dims: Iterable[DimensionLike] | None = None) -> None:
        # These are read often, so they are computed once.
        self._identity: object = None
        self._is_static: bool | None = None
        self._has_symbols: bool | None = None
        self._least_size: int | None = None
        self._dims: tuple[Dimension, ...] | None = None
        if isinstance(dims, str):
            self._dims = PartialShape.parse(dims)._dims
        elif isinstance(dims, Iterable):
            self._dims = tuple([d if type(d) is Dimension else as_dimension(d) for d in dims])
            _require_rank(len(self._dims))
        elif dims is not None:
            raise ValueError(f"{dims!r} is not a shape: {_EXPECTED}")

    @property
    def rank(self) -> int | None:
        """Return the number of dimensions, None if it is unknown."""
        return None if self._dims is None else len(self._dims)

    @property
    def dims(self) -> tuple[Dimension, ...]:
        """Return the dimensions; raise ValueError for an unknown rank."""
        if self._dims is None:
            raise ValueError("a shape of unknown rank has no list of dimensions")
        return self._dims

    @property
    def is_static(self) -> bool:
        """Return whether the rank and all sizes are known."""
        if self._is_static is None:
            self._is_static = self._dims is not None and all(d.lower == d.upper for d in self._dims)
        return self._is_static

    @property
    def is_dynamic(self) -> bool:
        """Return whether the rank or a size is not known."""
        return not self.is_static

    @property
    def least_size(self) -> int:
        """Return the smallest number of elements; 0 if the rank is unknown."""
        if self._least_size is None:
            self._least_size = 0 if self._dims is None else prod([d.lower for d in self._dims])
        return self._least_size

    @property
    def least_extent(self) -> int:
        """Return the product of the smallest sizes, with 1 in place of 0. NumPy counts so even if an array is empty."""
        return self.least_size or (1 if self._dims is None else prod([d.lower or 1 for d in self._dims]))

    def to_tuple(self) -> tuple[int, ...]:
        """Return the sizes of a static shape; raise ValueError for any other."""
        return tuple(d.length for d in self.dims)

    @property
    def has_symbols(self) -> bool:
        """Return whether the rank is known and each size is known or has a symbol."""
        if self._has_symbols is None:
            self._has_symbols = self._dims is None or all(d.symbol or d.is_static for d in self._dims)
        return self._has_symbols

    @property
    def identity(self) -> object:
        """Return a hashable object that is equal for shapes of equal dimensions and symbols."""
        if self._identity is None:
            dims = None if self._dims is None else tuple([(d.lower, d.upper, d.symbol) for d in self._dims])
            self._identity = (dims,)
        return self._identity

    def __len__(self) -> int:
        return len(self.dims)

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self.dims)

    @overload
    def __getitem__(self, axis: SupportsIndex) -> Dimension: ...
    @overload
    def __getitem__(self, axis: slice) -> PartialShape: ...
    def __getitem__(self, axis: SupportsIndex | slice) -> Dimension | PartialShape:
        """Return one dimension, or a shape of some of them; both are unknown if the rank is unknown."""
        if isinstance(axis, slice):
            return self if self._dims is None else PartialShape(self._dims[axis])
        return UNKNOWN if self._dims is None else self._dims[axis]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (list, tuple)):
            try:
                other = PartialShape(other)
            except ValueError:
                return False
        return isinstance(other, PartialShape) and self._dims == other._dims

    def __hash__(self) -> int:
        return hash(self._dims)

    def __str__(self) -> str:
        return "[...]" if self._dims is None else "[" + ",".join(map(str, self._dims)) + "]"

    def __repr__(self) -> str:
        return f"PartialShape({self})"

    # ----- derived shapes

    def with_dim(self, axis: int, dim: Dimension | int) -> PartialShape:
        """Return the shape with one dimension replaced; an unknown rank stays unknown."""
        if self._dims is None:
            return self
        dims = list(self._dims)
        dims[axis] = as_dimension(dim)
        return PartialShape(dims)

    def slice(self, start: int | None = None, stop: int | None = None) -> PartialShape:
        """Return the dimensions [start:stop]; an unknown rank stays unknown."""
        return self if self._dims is None else PartialShape(self._dims[start:stop])

    def __add__(self, other: PartialShape) -> PartialShape:
        if self._dims is None or other._dims is None:
            return PartialShape(None)
        return PartialShape(self._dims + other._dims)

    def merged_with(self, other: PartialShape, except_axis: int | None = None) -> PartialShape | None:
        """Return what both shapes allow, None if they contradict each other.

        On ``except_axis`` (normalised) this shape's dimension is kept.
        """
        if self._dims is None:
            return other
        if other._dims is None:
            return self
        if len(self._dims) != len(other._dims):
            return None
        dims = []
        for axis, (a, b) in enumerate(zip(self._dims, other._dims, strict=True)):
            merged = a if axis == except_axis else a.merged_with(b)
            if merged is None:
                return None
            dims.append(merged)
        return PartialShape(dims)

    def broadcast_with(self, other: PartialShape) -> PartialShape | None:
        """Return the shape of NumPy broadcasting, None if the shapes do not broadcast."""
        if self._dims is None or other._dims is None:
            return PartialShape(None)
        dims: list[Dimension] = []
        one = Dimension(1, 1)
        for a, b in itertools.zip_longest(reversed(self._dims), reversed(other._dims), fillvalue=one):
            dim = a.broadcast_with(b)
            if dim is None:
                return None
            dims.append(dim)
        return PartialShape(reversed(dims))

    def compatible(self, other: PartialShape) -> bool:
        """Return whether a static shape exists that matches both."""
        mine, theirs = self._dims, other._dims
        if mine is None or theirs is None or mine is theirs:
            return True
        return len(mine) == len(theirs) and (
            mine == theirs or all(a.compatible(b) for a, b in zip(mine, theirs, strict=True))
        )

    def union(self, other: PartialShape) -> PartialShape:
        """Return the tightest shape that contains both."""
        if self._dims is None or other._dims is None or len(self._dims) != len(other._dims):
            return PartialShape(None)
        return PartialShape(a.union(b) for a, b in zip(self._dims, other._dims, strict=True))

    def contains(self, shape: Sequence[int]) -> bool:
        """Return whether a static shape is one of those that this shape allows."""
        if self._dims is None:
            return True
        return len(shape) == len(self._dims) and all(d.contains(s) for d, s in zip(self._dims, shape, strict=True))

    def size(self) -> Dimension:
        """Return the number of elements."""
        return product(self._dims) if self._dims is not None else UNKNOWN

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``[1,?,2..5]`` or ``1,?,2..5``; ``...`` is an unknown rank, an empty text a scalar."""
        text = text.strip()
        if text[:1] + text[-1:] in ("[]", "{}", "()"):
            text = text[1:-1].strip()
        if text == "...":
            return cls(None)
        _require_rank(text.count(",") + 1)  # before a long text is split and parsed
        return cls(Dimension.parse(part) for part in text.split(",")) if text else cls([])


_EXPECTED = "expected a list of dimensions or a text such as [1,?,2..5] or [...]"


@lru_cache(4096)
def static_shape(sizes: tuple[int, ...]) -> PartialShape:
    """Return the shape of these sizes; equal ones are one object, as models repeat few shapes many times."""
    return PartialShape(sizes)


ShapeLike = PartialShape | Sequence[DimensionLike] | str
"""A shape, a list such as ``[1, -1, "2..5"]``, or a text such as ``"1,?,2..5"``."""


def as_shape(value: ShapeLike) -> PartialShape:
    """Return the shape of a list of dimensions or of a text, or a PartialShape as given; raise ValueError for anything
    else."""
    if isinstance(value, PartialShape):
        return value
    if not isinstance(value, (str, Iterable)):
        raise ValueError(f"{value!r} is not a shape: {_EXPECTED}")
    return PartialShape.parse(value) if isinstance(value, str) else PartialShape(value)
