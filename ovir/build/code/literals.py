"""Values as Python code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, boolean, f32, i64, string
from ovir.core.shapes import Dimension, PartialShape

INLINE = 16
"""The number of elements up to which a constant is written into the code."""
_LONGEST = 100
"""The number of characters up to which it is."""


def literal(value: Any) -> str:
    """Return the code for the value of an attribute."""
    if isinstance(value, ElementType):
        return quoted(str(value))
    if isinstance(value, PartialShape):
        return quoted("...") if value.rank is None else literal([_dimension(dim) for dim in value])
    if isinstance(value, Dimension):
        return literal(_dimension(value))
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(map(literal, sorted(value)))}}}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{literal(key)}: {literal(item)}' for key, item in value.items())}}}"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _dimension(dim: Dimension) -> int | str:
    if dim.is_static:
        return dim.length
    return -1 if (dim.lower, dim.upper) == (0, None) else str(Dimension(dim.lower, dim.upper))


def quoted(text: str) -> str:
    """Return a text in double quotes where Python would choose single ones."""
    plain = repr(text)
    return f'"{plain[1:-1]}"' if plain[0] == "'" and '"' not in plain else plain


def constant_arguments(array: Array, element_type: ElementType) -> list[str] | None:
    """Return the first arguments of ``constant`` for small or uniform data, None for data that is kept in a file."""
    dtype = quoted(str(element_type))
    if array.size > INLINE or (array.size == 0 and array.ndim > 1):
        if array.size and (element_type == string or not _is_uniform(array)):
            return None
        shape = repr(array.shape)
        first = _elements(array.reshape(-1)[0], element_type) if array.size else "0"
        filled = f"np.zeros({shape})" if first in ("0", "0.0", "False") else f"np.full({shape}, {first})"
        return [filled, dtype]
    code = literal(array.tolist()) if element_type == string else _elements(array, element_type)
    if len(code) > _LONGEST and element_type != string:
        return None
    is_own = element_type == f32 or (element_type in (boolean, i64, string) and array.size > 0)
    return [code, *([] if is_own else [dtype])]


def _is_uniform(array: Array) -> bool:
    data = np.ascontiguousarray(array).reshape(-1)
    bits = data.view(np.dtype((np.void, data.dtype.itemsize)))
    return bool((bits == bits[0]).all())


def _elements(array: Any, element_type: ElementType) -> str:
    """Return the code for the elements of an array; floats as short as their type allows."""
    if isinstance(array, np.ndarray) and array.ndim:
        return f"[{', '.join(_elements(item, element_type) for item in array)}]"
    if element_type == string:
        return literal(array)
    if not element_type.is_real or element_type.dtype == np.uint8:
        return repr(array.item() if element_type == boolean else int(array))
    value = float(array)
    if math.isfinite(value) and element_type.dtype in (np.dtype(np.float32), np.dtype(np.float16)):
        return repr(float(str(element_type.to_dtype().type(value))))
    return literal(value)


def as_stored(array: Array, element_type: ElementType) -> Array:
    """Return an array in a type that a .npz can hold, which ``constant`` converts back exactly."""
    if element_type == string:
        return np.asarray([str(item) for item in array.flat]).reshape(array.shape)
    if array.dtype.kind in "biufc" and array.dtype.isbuiltin == 1:
        return array
    if element_type.is_real:
        return array.astype(np.float32)
    return array.astype(np.int8 if element_type.kind == "signed" else np.uint8)
