"""Read arrays that are written out as text, as on a command line: ``1,2,3``, ``[[1,2],[3,4]]``, ``some words``."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.core.shapes import PartialShape

MAX_DEPTH = 32
"""So deep lists may be nested; NumPy's arrays have at most 64 dimensions."""

_TOKEN = re.compile(r"""\s*(?:([\[\],])|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([^\s\[\],"'][^\[\],"']*))\s*""")
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def parse_literal(text: str, element_type: ElementType, shape: PartialShape) -> Array:
    """Return the array that a text stands for, for an input of this type and shape.

    Numbers are separated by commas; brackets make lists of lists, one pair for each axis. Values without brackets are
    one row: axes of size 1 are put before it until it has the rank of the input. A text for an input of strings is one
    string, unless it begins with a bracket. ValueError says what is wrong.
    """
    is_text = element_type.kind == "string"
    values: Any = text if is_text and not text.lstrip().startswith("[") else _Parser(text, element_type).value()
    array = _array(values, element_type)
    if not text.lstrip().startswith("["):
        if array.ndim and array.size == 1 and shape.rank == 0:
            return array.reshape(())
        missing = (shape.rank or 0) - array.ndim
        array = array.reshape((1,) * max(missing, 0) + array.shape)
    return array


def _array(values: Any, element_type: ElementType) -> Array:
    if element_type.kind == "string":
        return np.array(values, dtype=element_type.to_dtype())
    try:
        array = np.array(values)
    except ValueError:
        raise ValueError("the lists have different lengths") from None
    except OverflowError:
        raise ValueError("a value is beyond the 64-bit integers") from None
    if array.dtype == object:
        raise ValueError("a value is beyond the 64-bit integers")
    return array.astype(np.float32) if array.dtype == np.float64 and element_type.is_dynamic else array


class _Parser:
    """Reads lists of values from left to right."""

    def __init__(self, text: str, element_type: ElementType) -> None:
        self._element_type = element_type
        self._tokens = list(_tokens(text))
        self._at = 0

    def value(self) -> Any:
        """Return everything: a list in brackets, one value, or a list of values without brackets."""
        values = [self._item(0)]
        while self._take(","):
            values.append(self._item(0))
        if self._at < len(self._tokens):
            raise ValueError(f"'{self._tokens[self._at]}' is unexpected")
        return values[0] if len(values) == 1 else values

    def _item(self, depth: int) -> Any:
        if not self._take("["):
            return self._scalar()
        if depth == MAX_DEPTH:
            raise ValueError(f"lists are nested more than {MAX_DEPTH} deep")
        if self._take("]"):
            return []
        items = [self._item(depth + 1)]
        while self._take(","):
            items.append(self._item(depth + 1))
        if not self._take("]"):
            raise ValueError("a ']' is missing")
        return items

    def _take(self, token: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == token:
            self._at += 1
            return True
        return False

    def _scalar(self) -> Any:
        if self._at == len(self._tokens) or self._tokens[self._at] in ("[", "]", ","):
            raise ValueError("a value is missing")
        self._at += 1
        return _scalar(self._tokens[self._at - 1], self._element_type)


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.end() == at:
            if not text[at:].strip():
                break
            raise ValueError(f"cannot read {text[at:].strip()!r}")
        found.append(match[1] or match[2] or match[3].rstrip())
        at = match.end()
    return found


def _scalar(token: str, element_type: ElementType) -> Any:
    if element_type.kind == "string":
        return _unquoted(token)
    if element_type.kind == "boolean":
        if token.lower() not in _BOOLEANS:
            raise ValueError(f"'{token}' is not a boolean: write true or false")
        return _BOOLEANS[token.lower()]
    try:
        return int(token, 0) if not token.lstrip("+-").startswith("0") or "x" in token.lower() else int(token)
    except ValueError:
        pass
    try:
        number = float(token)
    except ValueError:
        raise ValueError(f"'{token}' is not a number") from None
    if element_type.is_integral:
        raise ValueError(f"'{token}' is not an integer")
    return number


def _unquoted(token: str) -> str:
    if token[0] not in "\"'":
        return token
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), token[1:-1])


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
