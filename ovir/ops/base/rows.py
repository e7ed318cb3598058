"""Tensors that are produced row by row and never as a whole. A row is a slice along the first axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType


class Rows(Protocol):
    """A tensor of at least one axis whose rows are produced on request."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def element_type(self) -> ElementType: ...

    @property
    def all(self) -> slice:
        """Return the range of all rows."""

    def slices(self, which: slice | Array) -> Array:
        """Return rows: a range with start and stop, or one row for each index of a 1-D array."""

    def blocks(self, which: slice, elements: int) -> Iterator[slice]:
        """Split a range of rows into parts of about ``elements`` elements."""

    def whole(self) -> Array:
        """Return all rows as one array."""
