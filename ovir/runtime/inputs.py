"""Conversion of what a user feeds into arrays that match the model's inputs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, nf4
from ovir.core.shapes import PartialShape
from ovir.diagnostics.codes import BAD_INPUT
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.text import plural
from ovir.graph.layers import Port
from ovir.graph.model import Model
from ovir.kernels.blocked import contiguous_copy

Feeds = Mapping[Any, Any] | Sequence[Any] | Array | None


def collect_inputs(model: Model, feeds: Feeds, index_of: Callable[[Any], int]) -> list[Array]:
    """Return one array for each input of the model, in order; raise InputError if one does not match.

    ``index_of`` returns the position that the key of a mapping means, or raises InputError.
    """
    ports = model.inputs
    given: dict[int, Any] = {}
    if feeds is None:
        feeds = {}
    if isinstance(feeds, Mapping):
        for key, value in feeds.items():
            index = index_of(key)
            if index in given:
                _refuse(model, f"input {index} '{ports[index].any_name}' is given twice, once as {key!r}")
            given[index] = value
    elif isinstance(feeds, (list, tuple)):
        if len(feeds) > len(ports):
            _refuse(model, f"{plural(len(feeds), 'value')} given for {plural(len(ports), 'input')}: {_listed(ports)}")
        given = dict(enumerate(feeds))
    elif len(ports) == 1:
        given = {0: feeds}
    else:
        _refuse(model, f"one array given for {plural(len(ports), 'input')}: {_listed(ports)}")
    if len(given) < len(ports):
        missing = [port for index, port in enumerate(ports) if index not in given]
        _refuse(model, f"no value is given for {_listed(missing)}")
    return [_fit(model, port, given[index]) for index, port in enumerate(ports)]


def _listed(ports: Sequence[Port]) -> str:
    return ", ".join(f"'{port.any_name}' {port.type}" for port in ports) or "none"


def _refuse(model: Model, message: str, hint: str | None = None) -> NoReturn:
    raise InputError(diagnose(BAD_INPUT, message, Place(model.path), hint=hint))


def _fit(model: Model, port: Port, value: Any) -> Array:
    element_type = port.element_type
    what = f"input '{port.any_name}'"
    array = _as_type(model, what, _as_array(model, what, value, element_type), element_type)
    if not port.shape.contains(array.shape):
        hint = None
        if port.shape.rank is not None and array.ndim != port.shape.rank:
            hint = f"the input has {plural(port.shape.rank, 'dimension')}, the array {array.ndim}"
        message = f"{what} takes shape {port.shape}, got {PartialShape(array.shape)}"
        raise InputError(diagnose(BAD_INPUT, message, port.layer.place, hint=hint))
    return array


def _as_array(model: Model, what: str, value: Any, element_type: ElementType) -> Array:
    """Return the value as a plain array in C order, aligned and in the byte order of this machine.

    Sums of products depend on the layout of memory in their last digits; with one layout results do not.
    """
    # Masked arrays exist only after numpy.ma, which takes long to import, has been imported.
    if (masked := sys.modules.get("numpy.ma")) is not None and masked.is_masked(value):
        _refuse(model, f"{what}: values of the array are masked", "put values in their place, as with array.filled(0)")
    try:
        array: Array = np.asarray(value)
    except ValueError as error:
        _refuse(model, f"{what}: the value is not an array: {error}")
    if not isinstance(value, np.ndarray):
        if array.dtype == object:
            _refuse(model, f"{what}: a {type(value).__name__} is not an array of numbers or strings")
        if array.size == 0 and not element_type.is_dynamic:  # an empty list has no type of its own
            return array.astype(element_type.to_dtype())
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else contiguous_copy(array)


def _as_type(model: Model, what: str, array: Array, element_type: ElementType) -> Array:
    """Convert the array to the model's type if the type can hold every value, else raise InputError.

    A float is rounded, but a finite one must stay finite.
    """
    if element_type.is_dynamic:
        return array
    dtype = element_type.to_dtype()
    if array.dtype == dtype:
        return array
    if element_type.kind == "string":
        if array.dtype.kind in "UST" or (array.dtype == object and all(isinstance(x, str) for x in array.flat)):
            return np.char.decode(array, "utf-8").astype(dtype) if array.dtype.kind == "S" else array.astype(dtype)
    elif element_type != nf4:  # held as codes, not as numbers
        source = _kind(array.dtype)
        integers = source in ("signed", "unsigned", "boolean")
        if (integers and element_type.is_integral) or (element_type.is_real and (integers or source == "float")):
            if integers and array.dtype.kind == "V":  # ml_dtypes casts its integers of 4 bits or less to few types
                array = array.astype(np.int8)
            with np.errstate(all="ignore"):
                converted = array.astype(dtype)
            lost = _outside(array, element_type) if element_type.is_integral else _overflown(array, converted)
            if lost is None:
                return converted
            _refuse(model, f"{what} is {element_type}, which cannot hold the value {lost} of the {array.dtype} array")
    hint = f"convert it first, as with array.astype('{dtype.name}')" if element_type.kind != "string" else None
    _refuse(model, f"{what} takes {element_type}, got an array of {array.dtype}", hint)


def _outside(array: Array, element_type: ElementType) -> int | None:
    """Return a value of an integer array that the integer type cannot hold, None if there is none."""
    if array.size == 0:
        return None
    highest = 1 << (element_type.bits - (element_type.kind == "signed"))
    lowest = -highest if element_type.kind == "signed" else 0
    return next((value for value in (int(array.min()), int(array.max())) if not lowest <= value < highest), None)


def _overflown(array: Array, converted: Array) -> Any:
    """Return a finite value that the conversion has made infinite or NaN, None if there is none."""
    finite = np.isfinite(converted)
    if finite.all():
        return None
    lost = array[~finite]
    lost = lost[np.isfinite(lost)]
    return lost[0] if lost.size else None


def _kind(dtype: np.dtype[Any]) -> str:
    try:
        return ElementType.from_dtype(dtype).kind
    except ValueError:
        return "unknown"
