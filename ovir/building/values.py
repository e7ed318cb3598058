"""The types of arguments, and the conversion of arguments to arrays and to the values of attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from ovir.core.arrays import Array, listed_array
from ovir.core.element_types import ElementType, converted_values, f32, not_a_value, require_held, shares_dtype, string
from ovir.core.shapes import Dimension, PartialShape, ShapeLike, as_dimension, as_shape
from ovir.graph.layers import Layer, Port
from ovir.ops.base.attributes import Attribute

Tensor = Layer | Port | Array | np.generic | float | str | Sequence[Any]
"""An input: the output of another layer, or an array, number or list, which becomes a constant."""
Type = ElementType | str | type | np.dtype[Any]
"""An element type: ``f32``, ``np.float32``, or an ``ElementType``."""
Shape = ShapeLike
"""A shape that may have unknown sizes: ``[1, 3, -1, 224]``, ``"1,3,?,200..300"``."""
TensorNames = str | Iterable[str | Iterable[str] | None]
"""Names of the output tensors: a string or a set of strings for the first one, or a list with an entry for each."""
Info = Mapping[str, str | Mapping[str, str]]
"""Runtime information: a value for each name, or a dictionary of the attributes in XML."""


def as_element_type(value: Any) -> ElementType:
    """Return the element type of a name such as ``f32``, of a NumPy dtype, of a Python type or of an OpenVINO type;
    ValueError for others.

    As in OpenVINO, ``int`` is i32 and ``float`` is f32.
    """
    if isinstance(value, ElementType):
        return value
    if isinstance(value, str):
        return ElementType.parse(value)
    if hasattr(value, "get_type_name"):  # a type of OpenVINO's API
        return ElementType.parse(value.get_type_name())
    if value is int or value is float:  # a dtype of NumPy is equal to the type of Python
        return ElementType.parse("i32" if value is int else "f32")
    try:
        return ElementType.from_dtype(value)
    except TypeError:
        raise ValueError(f"{value!r} is not an element type; expected one such as 'f32', 'i64' or np.float32") from None


def is_plain(value: Any) -> bool:
    """Return whether a value is a number, a string or a list without a NumPy dtype of its own."""
    return not hasattr(value, "__array__")


def as_array(value: Any, element_type: ElementType | None = None) -> tuple[Array, ElementType]:
    """Return an array for a constant, and its element type; raise ValueError if the value does not fit.

    Without ``element_type``, arrays keep their dtype; Python's integers are i64, its other numbers f32.
    """
    if element_type is not None and element_type.is_dynamic:
        raise ValueError("a constant must have an element type, not dynamic")
    array = listed_array(value, element_type) if is_plain(value) else np.asarray(value)
    if array.dtype == object and any(not isinstance(item, str) for item in array.flat):
        raise ValueError(f"{value!r} is neither numbers nor strings")
    if element_type is None:
        if not is_plain(value) or array.dtype != np.float64:
            own = ElementType.from_dtype(array.dtype)
            return array.astype(own.to_dtype(), copy=False), own
        element_type = f32
    if array.dtype == element_type.to_dtype() and not shares_dtype(element_type):
        return array, element_type
    return _converted(array, element_type), element_type


def _converted(array: Array, element_type: ElementType) -> Array:
    """Return the array in another element type; ValueError for a value that it does not have."""
    is_text = array.dtype.kind in "USOT"
    if element_type == string and is_text:
        return array.astype(string.to_dtype())
    if element_type == string:
        raise ValueError(f"{array.dtype} cannot be converted to {element_type}")
    if is_text or array.dtype.kind == "c":
        first = array.flat[0] if array.size else array.dtype
        raise ValueError(not_a_value(repr(str(first)) if is_text else first, element_type))
    converted, lost = converted_values(array, element_type)
    require_held(array, lost, element_type)
    return converted


def as_attribute(spec: Attribute, value: Any) -> Any:
    """Return the value of an attribute in the type that its class declares; ValueError if it is of another kind."""
    return spec.check(as_type(spec.type, value))


def as_type(kind: Any, value: Any) -> Any:
    """Return a value as the type of an attribute, such as ``int`` or ``tuple[int, ...]``; ValueError if it has none."""
    if kind is ElementType:
        return as_element_type(value)
    if kind is PartialShape:
        return as_shape(value)
    if kind is Dimension:
        return as_dimension(value)
    if kind is str:
        return _expect(isinstance(value, str), value, value, "a text")
    if kind is bool:
        known = isinstance(value, (bool, np.bool_)) or (isinstance(value, Integral) and value in (0, 1))
        return _expect(known, value, bool(value) if known else value, "True or False")
    if kind is int:
        return _integer(value, "an integer")
    if kind is float:
        return _number(value, "a number")
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(f"expected {_LISTS[kind]}, got {value!r}")
    items = list(value)
    if kind == tuple[int, ...]:
        return tuple(_integer(item, _LISTS[kind]) for item in items)
    if kind == tuple[float, ...]:
        return tuple(_number(item, _LISTS[kind]) for item in items)
    return tuple(_expect(isinstance(item, str), item, item, _LISTS[kind]) for item in items)


_LISTS = {
    tuple[int, ...]: "a list of integers",
    tuple[float, ...]: "a list of numbers",
    tuple[str, ...]: "a list of texts",
}


def _integer(value: Any, expected: str) -> int:
    is_integer = isinstance(value, Integral) or (
        isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind in "iu"
    )
    return int(_expect(is_integer, value, value, expected))


def _number(value: Any, expected: str) -> float:
    is_number = isinstance(value, Real) or (
        isinstance(value, (np.generic, np.ndarray)) and value.shape == () and value.dtype.kind in "biufV"
    )
    try:
        return float(_expect(is_number, value, value, expected))
    except OverflowError:
        raise ValueError("an integer is beyond the numbers of f64") from None


def _expect(holds: bool, given: Any, result: Any, expected: str) -> Any:
    if not holds:
        raise ValueError(f"expected {expected}, got {given!r}")
    return result
