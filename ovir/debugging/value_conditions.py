"""The conditions that a watch looks for, and the elements of a tensor for which they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, bf16, f8e4m3, f8e5m2, f16, f32
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import did_you_mean

KINDS = ("nan", "inf", "overflow", "denormal")
TYPES = {str(t): t for t in (f16, bf16, f32, f8e4m3, f8e5m2)}

_BLOCK = 1 << 16
"""The number of elements that are examined at a time."""


@dataclass(frozen=True)
class Condition:
    """One thing to look for, such as ``overflow:f16``."""

    kind: str
    element_type: ElementType | None = None

    def __str__(self) -> str:
        return self.kind if self.element_type is None else f"{self.kind}:{self.element_type}"

    @property
    def limit(self) -> float:
        """Return the number from which on a value overflows, or below which it is denormal."""
        assert self.element_type is not None
        info = _finfo(self.element_type)
        if self.kind == "denormal":
            return float(info.smallest_normal)
        exponent = np.floor(np.log2(float(info.max)))
        return float(info.max) + float(2.0 ** (exponent - info.nmant - 1))  # smaller ones round to the largest number

    def where(self, values: Array) -> Array:
        """Return for each number whether the condition holds."""
        holds: Array
        limit = np.float64(0 if self.element_type is None else self.limit)  # which the type of the values may not hold
        if self.kind == "nan":
            holds = np.isnan(values)
        elif self.kind == "inf":
            holds = np.isinf(values)
        elif self.kind == "overflow":
            holds = (np.abs(values) >= limit) & np.isfinite(values)
        else:
            holds = (np.abs(values) < limit) & (values != 0)
        return holds

    def may_hold(self, extent: Extent) -> bool:
        """Return whether the condition may hold for numbers in this range."""
        if self.kind == "denormal":
            return True
        if self.kind == "nan":
            return extent.has_nan
        return extent.has_nan or extent.largest >= (np.inf if self.kind == "inf" else self.limit)

    def find(self, array: Array) -> Occurrence | None:
        """Return the first element for which the condition holds and the number of them, None if there is none."""
        first, value, count, start = -1, 0.0, 0, 0
        for block in blocks(array, "C"):
            holds = self.where(block)
            if (number := int(np.count_nonzero(holds))) and first < 0:
                inside = int(holds.argmax())
                first, value = start + inside, float(block[inside])
            count += number
            start += block.size
        if first < 0:
            return None
        return Occurrence(tuple(int(i) for i in np.unravel_index(first, array.shape)), value, count)

    def holds_anywhere(self, array: Array) -> bool:
        """Return whether the condition holds for any element."""
        return any(bool(self.where(block).any()) for block in blocks(array))


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """Return the conditions of a string such as ``nan,inf,overflow:f16``; raise InputError if it names none."""
    return tuple(dict.fromkeys(map(_parse, text.split(","))))


def _parse(text: str) -> Condition:
    kind, colon, type_text = text.strip().lower().partition(":")
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS)
        message = f"cannot look for '{text.strip()}'; expected nan, inf, overflow:TYPE or denormal:TYPE"
        raise InputError.usage(message, hint=hint, option="watch")
    if kind in ("nan", "inf"):
        if colon:
            raise InputError.usage(f"'{text.strip()}': {kind} has no type")
        return Condition(kind)
    if type_text not in TYPES:
        message = f"'{text.strip()}': {kind} needs one of the types {', '.join(TYPES)}, as in {kind}:f16"
        raise InputError.usage(message, hint=did_you_mean(type_text, TYPES))
    return Condition(kind, TYPES[type_text])


def _finfo(element_type: ElementType) -> Any:
    return ml_dtypes.finfo(element_type.to_dtype())  # type: ignore[no-untyped-call]


def largest_of(element_type: ElementType) -> float:
    """Return the largest finite number of a type."""
    return float(_finfo(element_type).max)


@dataclass(frozen=True)
class Extent:
    """The range of a tensor's numbers."""

    largest: float = 0.0
    """The largest absolute value that is not NaN."""
    has_nan: bool = False


def is_real(array: Array | None) -> bool:
    """Return whether an array holds floats of any precision."""
    if not isinstance(array, np.ndarray) or array.dtype.kind in "TUSObiu":
        return False
    return array.dtype.kind == "f" or not array.dtype.name.startswith(("int", "uint"))


def blocks(array: Array, order: str = "K") -> Iterator[Array]:
    """Yield the numbers of a tensor in blocks, by default as they lie in memory, with ``order="C"`` by index."""
    if array.ndim == 0 or not array.size:
        yield as_numbers(array.ravel())
        return
    flags = ["external_loop", "buffered", "zerosize_ok"]
    with np.nditer(array, flags, [["readonly"]], order=order, buffersize=_BLOCK) as iterator:  # type: ignore[call-overload]
        for block in iterator:
            yield as_numbers(block)


def extent_of(array: Array) -> Extent:
    """Return the range of a tensor, in one pass over blocks that stay in the cache."""
    largest, has_nan = 0.0, False
    for block in blocks(array):
        if not block.size:
            continue
        most = max(float(block.max()), -float(block.min()))
        if np.isnan(block.max()):
            has_nan = True
            most = float(np.fmax.reduce(np.abs(block), initial=0.0))
        largest = max(largest, most)
    return Extent(largest, has_nan)


@dataclass(frozen=True)
class Occurrence:
    """The first element for which a condition holds, and the number of them."""

    position: tuple[int, ...]
    """The index of the first such element."""
    value: float
    count: int
