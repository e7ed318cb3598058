"""Tensors that are had row by row, and never whole: slices along their first axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType


class Rows(Protocol):
    """A tensor of at least one axis whose rows are made when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def element_type(self) -> ElementType: ...

    @property
    def all(self) -> slice:
        """The range of all rows."""

    def slices(self, which: slice | Array) -> Array:
        """Return rows: a range (start and stop given), or one for each index of a 1-D array."""

    def blocks(self, which: slice, elements: int) -> Iterator[slice]:
        """Yield a range of rows in parts of about so many elements."""

    def whole(self) -> Array:
        """Return all rows as one array."""
