"""The arrays that hold the numbers of tensors, and string tensors as bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ovir.core.element_types import ElementType, not_a_value, string, value_range
from ovir.diagnostics.errors import OperatorError

Array = NDArray[Any]

_ESCAPE = re.compile("[\udc80-\udcff]")
"""The surrogate escape of a byte that is not UTF-8."""


def listed_array(value: Any, element_type: ElementType | None = None) -> Array:
    """Return a number or a list as an array; large integers, which NumPy makes real numbers or objects, stay exact.

    Raise ValueError if lists have different lengths, or if there is no array for the integers, or none of
    ``element_type``.
    """
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError("expected a number, or lists of equal lengths") from None
    if array.dtype not in (np.float64, object) or not array.size:
        return array
    if array.dtype == np.float64 and not np.abs(array).max() >= 2.0**63:
        return array
    items = list(np.asarray(value, object).flat)
    if not all(isinstance(item, Real) for item in items):
        return array
    if not all(isinstance(item, Integral) for item in items) or (element_type is not None and element_type.is_real):
        try:
            return np.array([float(item) for item in items]).reshape(array.shape)
        except OverflowError:
            raise ValueError("an integer is beyond the numbers of f64") from None
    integers = [int(item) for item in items]
    _require_range(integers, element_type)
    return np.array(integers, np.uint64).reshape(array.shape)


def _require_range(items: Sequence[int], element_type: ElementType | None) -> None:
    """Raise ValueError unless a type of integers, or else u64, has all items, some of which exceed i64."""
    if element_type is not None and element_type.is_integral:
        low, high = value_range(element_type)
        if (outside := next((item for item in items if not low <= item <= high), None)) is not None:
            raise ValueError(not_a_value(integer_text(outside), element_type))
        return
    least, largest = min(items), max(items)
    if largest >= 1 << 64 or least < -(1 << 63):
        raise ValueError(f"{integer_text(largest if largest >= 1 << 64 else least)} exceeds the 64 bits of integers")
    if least < 0:
        raise ValueError(f"no integer type has both {least} and {largest}")


def integer_text(item: int) -> str:
    """Return an integer for a message. Python writes no text of more than some thousand digits."""
    bits = item.bit_length()
    return str(item) if bits <= 256 else f"{'-' if item < 0 else ''}2^{bits - 1} or more"


def join_strings(strings: Array) -> tuple[Array, Array]:
    """Return all strings, in row-major order, as one u8 tensor, and the end of each in it (int64, 1-D).

    A string that stands for other bytes than UTF-8 has surrogate escapes for them, as ``decoded_strings`` makes it.
    """
    encoded = [str(item).encode(errors="surrogateescape") for item in strings.flat]
    ends = np.cumsum([len(item) for item in encoded], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8), ends


def decoded_strings(strings: Array) -> Array:
    """Return bytes as strings. Strings among them stay.

    Bytes that are not UTF-8 become surrogate escapes, which only an array of objects can hold.
    """
    items = [item.decode(errors="surrogateescape") if isinstance(item, bytes) else item for item in strings.flat]
    array = np.array(items, object).reshape(strings.shape)
    is_utf8 = not any(map(_ESCAPE.search, items))
    return array.astype(string.to_dtype()) if is_utf8 else array


def split_strings(text: Array, begins: Array, ends: Array, *, strict: bool = True) -> Array:
    """Return the strings ``text[begin:end]``, in the shape of ``begins``.

    Raise OperatorError if a range lies outside the text, or, if ``strict``, if its bytes are not UTF-8. Otherwise
    U+FFFD stands for such bytes.
    """
    wrong = (begins < 0) | (ends < begins) | (ends > text.size)
    if wrong.any():
        first = int(wrong.reshape(-1).argmax())
        begin, end = int(begins.reshape(-1)[first]), int(ends.reshape(-1)[first])
        raise OperatorError(f"string {first} has bytes [{begin}, {end}), outside the text of {text.size} bytes")
    whole = text.tobytes()
    items = []
    for number, (begin, end) in enumerate(zip(begins.flat, ends.flat, strict=True)):
        try:
            items.append(whole[begin:end].decode(errors="strict" if strict else "replace"))
        except UnicodeDecodeError as error:
            raise OperatorError(f"string {number} is not UTF-8: {error}") from None
    return np.array(items, dtype=string.to_dtype()).reshape(begins.shape)


def read_only(array: Any) -> Any:
    """Return a view of an array that cannot be written to; an object that is no array is returned as it is."""
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view
