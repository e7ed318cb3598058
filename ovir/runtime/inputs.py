"""What a user feeds -> arrays that fit the model's inputs, or one clear message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ovir.diagnostics import BAD_INPUT, InputError, Place, diagnostic
from ovir.model import Model, Port
from ovir.types import ElementType

Array = NDArray[Any]
Feeds = Mapping[Any, Any] | Sequence[Any] | Array | None


def collect_inputs(model: Model, feeds: Feeds) -> list[Array]:
    """One array for each input of the model, in order. InputError says what does not fit."""
    ports = model.inputs
    given: dict[int, Any] = {}
    if feeds is None:
        feeds = {}
    if isinstance(feeds, Mapping):
        for key, value in feeds.items():
            index = ports.index(key) if isinstance(key, Port) and key in ports else model.input_index(key)
            if index in given:
                _refuse(model, f"input {index} '{ports[index].any_name}' is given twice, once as {key!r}")
            given[index] = value
    elif isinstance(feeds, (list, tuple)):
        if len(feeds) > len(ports):
            _refuse(model, f"{len(feeds)} inputs are given, the model has {len(ports)}: {_listed(ports)}")
        given = dict(enumerate(feeds))
    elif len(ports) == 1:
        given = {0: feeds}
    else:
        _refuse(model, f"one array is given, the model has {len(ports)} inputs: {_listed(ports)}")
    if len(given) < len(ports):
        missing = [port for index, port in enumerate(ports) if index not in given]
        _refuse(model, f"no value is given for {_listed(missing)}")
    return [_fit(model, port, given[index]) for index, port in enumerate(ports)]


def _listed(ports: Sequence[Port]) -> str:
    return ", ".join(f"'{port.any_name}' {port.type}" for port in ports) or "none"


def _refuse(model: Model, message: str) -> None:
    raise InputError(diagnostic(BAD_INPUT, message, Place(model.path)))


def _fit(model: Model, port: Port, value: Any) -> Array:
    element_type = port.element_type
    what = f"input '{port.any_name}'"
    if not isinstance(value, np.ndarray):
        value = _from_python(model, what, value, element_type)
    array = _as_type(model, what, value, element_type)
    if not port.shape.contains(array.shape):
        shown = f"[{','.join(map(str, array.shape))}]"
        hint = None
        if port.shape.rank is not None and array.ndim != port.shape.rank:
            hint = f"the input has {port.shape.rank} dimensions, the array {array.ndim}"
        found = diagnostic(BAD_INPUT, f"{what} takes shape {port.shape}, got {shown}", port.layer.place, hint=hint)
        raise InputError(found)
    return array


def _from_python(model: Model, what: str, value: Any, element_type: ElementType) -> Array:
    try:
        array = np.asarray(value)
    except ValueError as error:
        _refuse(model, f"{what}: the value is no array: {error}")
        raise
    if array.dtype == object:
        _refuse(model, f"{what}: a {type(value).__name__} is no array of numbers or strings")
    empty_or_floats = array.size == 0 or (array.dtype == np.float64 and element_type.is_real)
    return array.astype(element_type.to_dtype()) if empty_or_floats and not element_type.is_dynamic else array


def _as_type(model: Model, what: str, array: Array, element_type: ElementType) -> Array:
    """The array in the model's type: every value that the type can hold is converted, others are refused."""
    if element_type.is_dynamic:
        return array
    dtype = element_type.to_dtype()
    if array.dtype == dtype:
        return array
    if element_type.kind == "string":
        if array.dtype.kind in "UST" or (array.dtype == object and all(isinstance(x, str) for x in array.flat)):
            return np.char.decode(array, "utf-8").astype(dtype) if array.dtype.kind == "S" else array.astype(dtype)
    else:
        source = _kind(array.dtype)
        target = "unsigned" if element_type.kind == "unsigned" else element_type.kind
        if source == "float" == target or (source in ("signed", "unsigned", "boolean") and target == "float"):
            return array.astype(dtype)
        if source in ("signed", "unsigned", "boolean") and target in ("signed", "unsigned"):
            with np.errstate(all="ignore"):
                converted = array.astype(dtype)
            lost = np.flatnonzero(converted.astype(array.dtype).ravel() != array.ravel())
            if lost.size == 0 and not _sign_lost(array, converted):
                return converted
            at = int(lost[0]) if lost.size else int(np.flatnonzero(array.ravel() < 0)[0])
            _refuse(
                model,
                f"{what} is {element_type}, which cannot hold the value {array.ravel()[at]} of the {array.dtype} array",
            )
    hint = f"convert it first, as with array.astype('{dtype.name}')" if element_type.kind != "string" else None
    message = f"{what} takes {element_type}, got an array of {array.dtype}"
    raise InputError(diagnostic(BAD_INPUT, message, Place(model.path), hint=hint))


def _sign_lost(array: Array, converted: Array) -> bool:
    return bool(array.dtype.kind == "i" and converted.dtype.kind == "u" and array.size and array.min() < 0)


def _kind(dtype: np.dtype[Any]) -> str:
    try:
        return ElementType.from_dtype(dtype).kind
    except ValueError:
        return "unknown"
