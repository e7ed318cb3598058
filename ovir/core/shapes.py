"""Dimensions, which may be unknown or an interval, and shapes made of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from types import EllipsisType
from typing import Any, Self, SupportsIndex, overload

import numpy as np

from ovir.diagnostics.wording import shortened

INT64 = range(-(2**63), 2**63)
UINT64 = range(2**64)
MAX_SIZE = INT64[-1]
"""The largest size of a dimension."""
_ALL_LARGER = 1 << 128
"""Stands for all larger sizes, none of which can exist: numbers that double in each layer would outgrow any memory."""

SPACE = " \t\r\n"
"""The white space of XML; OpenVINO does not take that of other scripts for any."""
_DIGITS = re.compile(r"([+-]?)0*([0-9]+)", re.ASCII)
_LONGEST = 20  # the most digits of a 64-bit number


class OutOfRangeError(ValueError):
    """An integer that its type cannot hold."""


def parse_integer(text: str, allowed: range = INT64) -> int:
    """Parse an integer; raise ValueError, or OutOfRangeError if it does not lie in ``allowed``.

    White space and a sign may precede the digits, but nothing may follow them: so OpenVINO reads ids and positions.
    """
    if text.isdecimal() and text.isascii() and len(text) < _LONGEST and (plain := int(text)) in allowed:
        return plain  # the usual case
    match = _DIGITS.fullmatch(text.lstrip(SPACE))
    if match is None:
        raise ValueError(f"'{shortened(text)}' is not an integer")
    sign, digits = match.groups()
    if len(digits) <= _LONGEST and (value := int(sign + digits)) in allowed:
        return value
    kind = "signed" if allowed[0] < 0 else "unsigned"
    bounds = f"{allowed[0]} to {allowed[-1]}"
    raise OutOfRangeError(f"{shortened(text)} is outside the range of {kind} 64-bit integers, {bounds}")


def parse_value(text: str) -> int:
    """Parse an integer among the values of an operation or a shape, where white space may surround it, but a ``+`` is
    no sign: so OpenVINO reads attributes of operations."""
    text = text.strip(SPACE)
    if text.startswith("+"):
        raise ValueError(f"'{shortened(text)}' is not an integer: OpenVINO does not read the '+'")
    return parse_integer(text)


_symbol_ids = itertools.count(1)


def new_symbol() -> int:
    """Return a new symbol, which identifies one unknown size wherever it occurs."""
    return next(_symbol_ids)


_OFFSET_BITS, _OFFSETS = 40, 1 << 20
"""A symbol holds the number that is added to an unknown size above these bits, if it is less than so large."""


def symbol_of_sum(symbol: int, number: int) -> int:
    """Return the symbol of an unknown size plus a number, the same for equal sums; 0 for none."""
    offset = (symbol >> _OFFSET_BITS) + number
    return symbol + (number << _OFFSET_BITS) if symbol > 0 and 0 <= offset < _OFFSETS else 0


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Dimension:
    """A size known to lie in ``[lower, upper]``; ``upper`` is None if there is no bound.

    ``Dimension(5)`` is the size 5, ``Dimension(2, 5)`` a size from 2 to 5, ``Dimension(2, -1)`` a size of 2 or more,
    ``Dimension()`` any size; a text such as ``"2..5"`` is parsed.

    Sizes count elements. A dimension equals another one of the same bounds, and the integer of its size; one of any
    size equals -1. ``symbol`` identifies an unknown size, so that two dynamic dimensions can be known to be equal;
    comparison ignores it.
    """

    lower: int
    """The smallest size."""
    upper: int | None
    """The largest size; None if there is no bound."""
    symbol: int
    """The number that dimensions share if they are known to be equal; 0 for none."""

    def __init__(self, lower: int | str | None = None, upper: int | EllipsisType | None = ..., symbol: int = 0) -> None:
        """Create a dimension; without ``upper``, one of the single size ``lower``.

        A bound of None or -1 for ``upper``, or alone for ``lower``, means that the size is unbounded. Raises ValueError
        for bounds that are not integers, negative or in the wrong order.
        """
        if type(lower) is not int or lower < 0 or (upper is not None and (type(upper) is not int or lower > upper)):
            lower, upper = _bounds(lower, upper)
        if lower > _ALL_LARGER or (upper is not None and upper > _ALL_LARGER):
            lower, upper = min(lower, _ALL_LARGER), _ALL_LARGER if lower == upper else None
        _set_lower(self, lower)
        _set_upper(self, upper)
        _set_symbol(self, symbol)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dimension):
            return self.lower == other.lower and self.upper == other.upper
        if isinstance(other, (int, np.integer)) and not isinstance(other, bool):
            return self.lower == self.upper == other or (other == -1 and self.lower == 0 and self.upper is None)
        return NotImplemented

    def __hash__(self) -> int:
        if self.lower == self.upper:
            return hash(self.lower)
        return hash((self.lower, self.upper)) if self.lower or self.upper is not None else hash(-1)

    def __index__(self) -> int:
        """Return the size of a static dimension, so that static shapes can be given to NumPy."""
        return self.length

    @property
    def is_static(self) -> bool:
        """Return whether the size is known."""
        return self.lower == self.upper

    @property
    def is_dynamic(self) -> bool:
        """Return whether the size is not known."""
        return self.lower != self.upper

    @property
    def min_length(self) -> int:
        """Return the smallest size, as ``lower``."""
        return self.lower

    @property
    def max_length(self) -> int:
        """Return the largest size, -1 if there is no bound; ``upper`` is None then."""
        return -1 if self.upper is None else self.upper

    @property
    def length(self) -> int:
        """Return the size of a static dimension; raise ValueError for any other."""
        if self.lower != self.upper:
            raise ValueError(f"dimension {self} is not static: it has no length")
        return self.lower

    def get_length(self) -> int:
        """Return ``length``, under its name in openvino."""
        return self.length

    def compatible(self, other: Dimension) -> bool:
        """Return whether the two intervals have a size in common."""
        return (other.upper is None or self.lower <= other.upper) and (self.upper is None or other.lower <= self.upper)

    def merged_with(self, other: Dimension) -> Dimension | None:
        """Return the sizes that both allow (with this one's symbol if it has one), or None if there are none."""
        if self is other or (self.lower == self.upper == other.lower == other.upper):
            return self
        lower = max(self.lower, other.lower)
        uppers = [u for u in (self.upper, other.upper) if u is not None]
        upper = min(uppers) if uppers else None
        if upper is not None and lower > upper:
            return None
        return Dimension(lower, upper, self.symbol or other.symbol)

    def broadcast_with(self, other: Dimension) -> Dimension | None:
        """Return the size of NumPy broadcasting (1 gives way), or None if the two sizes differ."""
        if self.is_static and self.lower == 1:
            return other
        if other.is_static and other.lower == 1:
            return self
        if self.symbol and self.symbol == other.symbol:
            return self.merged_with(other)
        if self.contains(1) and other.contains(1):
            return self.union(other)
        if self.contains(1):
            return other
        return self if other.contains(1) else self.merged_with(other)

    def contains(self, size: int) -> bool:
        """Return whether the dimension may have this size."""
        return self.lower <= size and (self.upper is None or size <= self.upper)

    def union(self, other: Dimension) -> Dimension:
        """Return the smallest interval that contains both."""
        symbol = self.symbol if self.symbol == other.symbol else 0
        return Dimension(min(self.lower, other.lower), _bound(self.upper, other.upper, max), symbol)

    def map(self, function: Callable[[int], int]) -> Dimension:
        """Apply ``function``, which must not decrease, to both bounds; results below 0 count as 0."""
        upper = None if self.upper is None else max(function(self.upper), 0)
        return Dimension(max(function(self.lower), 0), upper)

    def __add__(self, other: Dimension | int) -> Dimension:
        other = _operand(other)
        if other.lower == other.upper == 0:
            return self
        if self.lower == self.upper == 0:
            return other
        symbol = 0
        if other.lower == other.upper:
            symbol = symbol_of_sum(self.symbol, other.lower)
        elif self.lower == self.upper:
            symbol = symbol_of_sum(other.symbol, self.lower)
        return Dimension(self.lower + other.lower, _bound(self.upper, other.upper, lambda a, b: a + b), symbol)

    def __mul__(self, other: Dimension | int) -> Dimension:
        other = _operand(other)
        if other.lower == other.upper == 1:
            return self
        if self.lower == self.upper == 1:
            return other
        if 0 in (self.upper, other.upper):
            return Dimension(0, 0)
        return Dimension(self.lower * other.lower, _bound(self.upper, other.upper, lambda a, b: a * b))

    def __floordiv__(self, divisor: int) -> Dimension:
        """Return the sizes divided by ``divisor``, which must be positive, rounded down."""
        return self if divisor == 1 else self.map(lambda size: size // divisor)

    def ceil_div(self, divisor: int) -> Dimension:
        """Return the sizes divided by ``divisor``, which must be positive, rounded up."""
        return self if divisor == 1 else self.map(lambda size: -(-size // divisor))

    def exact_div(self, divisor: int) -> Dimension | None:
        """Return the sizes whose product with ``divisor`` lies in this dimension; None if there are none."""
        if divisor == 1:
            return self
        lower, upper = -(-self.lower // divisor), None if self.upper is None else self.upper // divisor
        if lower == upper:
            return sized(lower)
        return None if upper is not None and lower > upper else Dimension(lower, upper)

    def __str__(self) -> str:
        if self.is_static:
            return str(self.lower)
        if self.upper is None:
            return f"{self.lower}.." if self.lower else "?"
        return f"{self.lower or ''}..{self.upper}"

    __repr__ = __str__

    @classmethod
    def parse(cls, text: str) -> Dimension:
        """Parse ``?``, ``-1``, ``7``, ``2..5``, ``2..`` or ``..5``; raise ValueError for any other text."""
        if text.isdecimal() and text.isascii() and len(text) < _LONGEST - 1:
            return sized(int(text))  # the usual case
        text = text.strip(SPACE)
        if text in ("?", "-1"):
            return cls()
        low, dots, high = text.partition("..")
        try:
            lower = parse_value(low) if low.strip(SPACE) or not dots else 0
            upper = lower if not dots else parse_value(high) if high.strip(SPACE) else None
        except OutOfRangeError:
            raise ValueError(f"'{shortened(text)}' is not a dimension: the largest size is {MAX_SIZE}") from None
        except ValueError:
            raise ValueError(f"'{shortened(text)}' is not a dimension: expected 7, ?, -1 or 2..5") from None
        return _interval(lower, upper, shortened(text))


_set_lower, _set_upper, _set_symbol = (vars(Dimension)[name].__set__ for name in ("lower", "upper", "symbol"))
"""The setters of the fields, which a frozen dataclass cannot assign."""


def _bounds(lower: Any, upper: Any) -> tuple[int, int | None]:
    """Return the bounds that arguments of ``Dimension`` mean; raise ValueError if they mean none."""
    if lower is None and upper is ...:
        return 0, None
    dim = as_dimension(lower if upper is ... else (lower, -1 if upper is None else upper))
    return dim.lower, dim.upper


def _operand(value: Dimension | int) -> Dimension:
    """Return an operand of arithmetic as a dimension; it may be larger than the largest size."""
    return sized(value) if type(value) is int and value > MAX_SIZE else as_dimension(value)


def _bound(a: int | None, b: int | None, function: Callable[[int, int], int]) -> int | None:
    return None if a is None or b is None else function(a, b)


def _interval(lower: int, upper: int | None, text: object) -> Dimension:
    """Return the dimension of bounds that a user or a file gives; messages quote ``text``."""
    if lower < 0 and lower == upper:
        raise ValueError(f"'{text}' is not a dimension: expected a size of at least 0, or -1 for an unknown one")
    if lower < 0 or (upper is not None and upper < lower):
        raise ValueError(f"'{text}' is not a dimension: expected bounds with 0 <= lower <= upper")
    if max(lower, upper or 0) > MAX_SIZE:
        raise ValueError(f"'{text}' is not a dimension: the largest size is {MAX_SIZE}")
    return sized(lower) if lower == upper else Dimension(lower, upper)


@lru_cache(1024)
def sized(size: int) -> Dimension:
    """Return the static dimension of a size, which must not be negative; common ones are cached."""
    return Dimension(size, size)


def min_dimension(a: Dimension, b: Dimension) -> Dimension:
    """Return the smaller of two sizes."""
    uppers = [d.upper for d in (a, b) if d.upper is not None]
    return Dimension(min(a.lower, b.lower), min(uppers, default=None))


def as_dimension(value: DimensionLike) -> Dimension:
    """Return the dimension of a size (-1: unknown), of bounds (an upper bound of -1: none), or of a text such as
    ``2..5``.

    A Dimension is returned as given. Raise ValueError for anything else.
    """
    if isinstance(value, Dimension):
        return value
    if isinstance(value, str):
        return Dimension.parse(value)
    if isinstance(value, tuple) and len(value) == 2:
        lower, upper = (_size(bound, value) for bound in value)
        return _interval(lower, None if upper == -1 else upper, value)
    if type(value) is int and 0 <= value <= MAX_SIZE:
        return sized(value)
    if hasattr(value, "get_min_length"):  # a dimension of OpenVINO's API
        return Dimension.parse(str(value))
    size = _size(value, value)
    if size < -1:
        raise ValueError(f"{size} is not a dimension: expected a size, or -1 for an unknown one")
    return UNKNOWN if size == -1 else _interval(size, size, size)


def _size(value: Any, given: object) -> int:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    raise ValueError(f"{given!r} is not a dimension: expected an integer, -1 for an unknown size, (2, 5) or '2..5'")


UNKNOWN = Dimension()
DimensionLike = Dimension | int | str | tuple[int, int]


def product(dims: Iterable[Dimension]) -> Dimension:
    """Return the product of dimensions; it is 1 if there are none."""
    result = Dimension(1, 1)
    for dim in dims:
        result = result * dim
    return result


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

    Raises ValueError for what is not a list of dimensions, and for more than 64 of them.
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
        elif isinstance(dims, (list, tuple, Iterable)):  # the classes are quicker than the protocol
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
            self._is_static = self._dims is not None and False not in [d.lower == d.upper for d in self._dims]
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
            self._has_symbols = self._dims is None or self.is_static or all(d.symbol or d.is_static for d in self._dims)
        return self._has_symbols

    @property
    def identity(self) -> object:
        """Return a hashable object that is equal for shapes of equal sizes, unknown ones with equal symbols."""
        if self._identity is None:
            if self._dims is None or not self.is_static:
                dims = None if self._dims is None else tuple([(d.lower, d.upper, d.symbol) for d in self._dims])
                self._identity = (dims,)
            else:
                self._identity = tuple([d.lower for d in self._dims])
        return self._identity

    def is_sure_to_equal(self, other: PartialShape) -> bool:
        """Return whether both are the same shape in every run: equal sizes, or unknown ones with the same symbol."""
        return self.rank is not None and self.has_symbols and self.identity == other.identity

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
        """Return the intersection of both shapes, or None if they contradict each other.

        On ``except_axis`` (normalized) this shape's dimension is kept.
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
        if len(shape) != len(self._dims):
            return False
        for dim, size in zip(self._dims, shape):  # noqa: B905, SIM110 - strict and all() take twice the time
            if not dim.contains(size):
                return False
        return True

    def size(self) -> Dimension:
        """Return the number of elements."""
        if self.is_static:
            return sized(self.least_size)
        return product(self._dims) if self._dims is not None else UNKNOWN

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``[1,?,2..5]`` or ``1,?,2..5``; ``...`` is an unknown rank, an empty text a scalar."""
        text = text.strip(SPACE)
        if text[:1] + text[-1:] in ("[]", "{}", "()"):
            text = text[1:-1].strip()
        if text == "...":
            return cls(None)
        _require_rank(text.count(",") + 1)  # before a long text is split and parsed
        return cls(Dimension.parse(part) for part in text.split(",")) if text else cls([])


_EXPECTED = "expected a list of dimensions or a text such as [1,?,2..5] or [...]"


def unknown_sizes(rank: int | None) -> PartialShape:
    """Return the shape of a rank, None if it is unknown, of which no size is known."""
    return PartialShape(None if rank is None else [UNKNOWN] * rank)


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
    if hasattr(value, "get_min_shape"):  # a shape of OpenVINO's API
        value = str(value)
    if not isinstance(value, (str, Iterable)):
        raise ValueError(f"{value!r} is not a shape: {_EXPECTED}")
    return PartialShape.parse(value) if isinstance(value, str) else PartialShape(value)
