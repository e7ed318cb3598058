"""The values that an input may take: indices, axes, lengths, patterns.

An operation declares them by the input's name::

    domains = by_input(indices=Index("data", axis="axis"), axis=Axis("data"))

Random inputs keep to these domains, and ``ovir check`` checks constant indices against them. A rule is called with the
operation and with what is known of its inputs, by name; any function of these two is a rule, if the classes of this
module do not suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from ovir.core.arrays import Array
from ovir.core.shapes import Dimension
from ovir.core.tensor_types import TensorType

Order = Literal["any", "sorted", "offsets", "counting", "whole"]
Negative = Literal["from the end", "forbidden", "unspecified"]
"""The meaning of a negative index; ``unspecified``: the specification gives none, and devices count it from the end."""

Inputs = Mapping[str, TensorType]
"""The known types of the inputs, by name; missing optional inputs are not included."""


@dataclass(frozen=True)
class Domain:
    """Integers in ``[low, high]``; None means no bound.

    ``order`` relates the elements to each other: ``sorted`` along the last axis, ``offsets`` (sorted, from 0),
    ``counting`` up from ``low``, or ``whole`` (the first is -1, which stands for the rest, and the others are 1).
    ``why`` names the layer that requires the domain.
    """

    low: float | None = None
    high: float | None = None
    order: Order = "any"
    why: str = ""

    def meet(self, other: Domain) -> Domain:
        """Return the intersection of both domains, or the lower end of this one if it is empty."""
        lows = [x for x in (self.low, other.low) if x is not None]
        highs = [x for x in (self.high, other.high) if x is not None]
        low, high = max(lows, default=None), min(highs, default=None)
        if low is not None and high is not None and high < low:
            low = high = self.low if self.low is not None else low
        order = self.order if self.order != "any" else other.order
        return Domain(low, high, order, self.why or other.why)

    def __str__(self) -> str:
        low, high = ("" if x is None else f"{x:zg}" for x in (self.low, self.high))
        return low if low == high else f"{low}..{high}"


DomainRule = Callable[[Any, Inputs], Domain | None]
"""Returns the domain of an input for an operation and its inputs, or None if the input is not restricted."""


def by_input(**rules: DomainRule) -> Mapping[str, DomainRule]:
    """Return the rules of an operation's inputs, for its ``domains``."""
    return MappingProxyType(rules)


def dims_of(inputs: Inputs, name: str) -> tuple[Dimension, ...]:
    """Return the dimensions of an input; an empty sequence if the rank is unknown."""
    tensor = inputs.get(name)
    return () if tensor is None or tensor.shape.rank is None else tensor.shape.dims


def axis_of(op: Any, inputs: Inputs, axis: int | str) -> int | None:
    """Return an axis given as a number or as the name of an attribute or an input; None if it is unknown."""
    if isinstance(axis, int):
        return axis
    if axis in op.fields:
        return int(getattr(op, axis))
    value = inputs[axis].constant if axis in inputs and inputs[axis].element_type.is_integral else None
    return int(value.item()) if value is not None and value.size == 1 else None


def size_of(op: Any, inputs: Inputs, of: str, axis: int | str | None) -> int:
    """Return a size, at least 1, that the axis is certain to have; for an unknown axis, the size of the shortest
    one."""
    dims = dims_of(inputs, of)
    place = None if axis is None else axis_of(op, inputs, axis)
    if place is None:
        return max(min((dim.lower for dim in dims), default=1), 1)
    return max(dims[place].lower, 1) if -len(dims) <= place < len(dims) else 1


# --------------------------------------------------------------------------- indices


@dataclass(frozen=True)
class Index:
    """Indices into the input ``into`` along ``axis``: a number, or the name of an attribute or an input.

    ``absent`` is a value that means "no index". ``checked`` is False if the operation checks only some of the indices,
    so that the others may have any value.
    """

    into: str
    axis: int | str = 0
    negative: Negative = "forbidden"
    absent: int | None = None
    checked: bool = True

    def __call__(self, op: Any, inputs: Inputs) -> Domain:
        return Domain(0, size_of(op, inputs, self.into, self.axis) - 1)

    def parts(self, op: Any, inputs: Inputs, values: Array) -> Iterator[tuple[Array, int]]:
        """Yield indices from ``values`` together with the size of the axis that they index, if it is known."""
        axis, dims = axis_of(op, inputs, self.axis), dims_of(inputs, self.into)
        if self.checked and axis is not None and -len(dims) <= axis < len(dims) and dims[axis].is_static:
            yield values if self.absent is None else values[values != self.absent], dims[axis].length


@dataclass(frozen=True)
class Coordinates:
    """Positions in the input ``into``: element k of the last axis is an index along axis ``batch_dims + k``."""

    into: str
    negative: Negative = "from the end"

    def __call__(self, op: Any, inputs: Inputs) -> Domain:
        batch, own = self._batch(op), next(name for name, rule in op.domains.items() if rule is self)
        width = dims_of(inputs, own)[-1].lower if dims_of(inputs, own) else 1
        sizes = [dim.lower for dim in dims_of(inputs, self.into)[batch : batch + width]]
        return Domain(0, max(min(sizes, default=1), 1) - 1)

    def parts(self, op: Any, inputs: Inputs, values: Array) -> Iterator[tuple[Array, int]]:
        """Yield indices from ``values`` together with the size of the axis that they index, if it is known."""
        if values.ndim:
            dims = dims_of(inputs, self.into)[self._batch(op) :]
            for column, dim in enumerate(dims[: values.shape[-1]]):
                if dim.is_static:
                    yield values[..., column], dim.length

    @staticmethod
    def _batch(op: Any) -> int:
        return int(getattr(op, "batch_dims", 0))


IndexRule = Index | Coordinates


# --------------------------------------------------------------------------- axes, lengths, numbers


@dataclass(frozen=True)
class Axis:
    """Distinct axes of the input ``of``."""

    of: str

    def __call__(self, op: Any, inputs: Inputs) -> Domain:
        return Domain(0, max(len(dims_of(inputs, self.of)) - 1, 0), "counting")


@dataclass(frozen=True)
class Length:
    """A length of at least ``low`` that does not exceed ``axis`` of the input ``of`` (None: any of its axes).

    With ``full`` it is the length of the axis.
    """

    of: str
    axis: int | str | None
    low: int = 1
    full: bool = False
    order: Order = "any"

    def __call__(self, op: Any, inputs: Inputs) -> Domain:
        size = size_of(op, inputs, self.of, self.axis)
        return Domain(size if self.full else self.low, size, self.order)


@dataclass(frozen=True)
class Below:
    """Numbers from 0 to below a count that another input holds, or below ``unknown`` if the count is unknown."""

    count: str
    unknown: int = 2
    order: Order = "any"

    def __call__(self, op: Any, inputs: Inputs) -> Domain:
        value = inputs[self.count].constant if self.count in inputs else None
        known = value is not None and value.size == 1
        return Domain(0, (max(int(value.item()), 1) if known and value is not None else self.unknown) - 1, self.order)


@dataclass(frozen=True)
class Between:
    """Numbers in ``[low, high]``."""

    low: float
    high: float
    order: Order = "any"

    def __call__(self, op: Any, inputs: Inputs) -> Domain:
        return Domain(self.low, self.high, self.order)


@dataclass(frozen=True)
class Divisor:
    """Integers by which the input ``of`` is divided, which must not be 0. Real numbers are not restricted."""

    of: str

    def __call__(self, op: Any, inputs: Inputs) -> Domain | None:
        return Domain(1, 9) if inputs[self.of].element_type.is_integral else None


@dataclass(frozen=True)
class Checked:
    """Values of which the kernel accepts only some, in a way that no interval tells."""

    def __call__(self, op: Any, inputs: Inputs) -> None:
        return None


ZERO, ONE, SMALL = Between(0, 0), Between(1, 1), Between(1, 4)
"""A single number or a small range, for inputs that would otherwise make tensors too large or sizes inconsistent."""
SORTED = Between(0, 9, "sorted")
"""Numbers in ascending order along the last axis."""
PATTERN = Between(-1, 1, "whole")
"""Sizes that make up a whole: the first is -1, which stands for the rest."""


# --------------------------------------------------------------------------- from a result back to an input


def shifted(wanted: Domain, low_by: float, high_by: float) -> Domain:
    """Return the domain with its bounds moved."""
    low = None if wanted.low is None else wanted.low + low_by
    high = None if wanted.high is None else wanted.high + high_by
    return ordered(low, high, wanted.why)


def ordered(low: float | None, high: float | None, why: str) -> Domain:
    """Return ``[low, high]``, or ``[low, low]`` if the bounds are in the wrong order."""
    if low is not None and high is not None and high < low:
        high = low
    return Domain(low, high, why=why)
