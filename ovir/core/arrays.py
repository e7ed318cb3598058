"""The arrays that hold the numbers of tensors, and string tensors as bytes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ovir.core.element_types import string
from ovir.diagnostics.errors import OperatorError

Array = NDArray[Any]

_ESCAPE = re.compile("[\udc80-\udcff]")
"""The surrogate escape of a byte that is not UTF-8."""


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
