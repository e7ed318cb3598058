"""Conversion of a user's values into arrays that match the model's inputs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ovir.core import element_types as t
from ovir.core.arrays import Array, decoded_strings, listed_array
from ovir.core.parallel import contiguous_copy
from ovir.core.tensor_types import TensorType, type_name
from ovir.diagnostics.codes import BAD_INPUT
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import plural
from ovir.graph.given_arrays import require_shape
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.runtime.failures import memory_errors_named

Feeds = Mapping[Any, Any] | Sequence[Any] | Array | None


class InputCollector:
    """Collects the arrays of a model's inputs, quickly for keys that it has seen before and arrays that stay as they
    are."""

    def __init__(self, model: LayerGraph, index_of: Callable[[Any], int]) -> None:
        """Prepare for a model; ``index_of`` returns the position that the key of a mapping means, or raises
        InputError."""
        self._model = model
        self._index_of = index_of
        types = [port.element_type for port in model.inputs]
        # The values of types that share their dtype with another one are checked in every call.
        self._dtypes = [None if kind.is_dynamic or t.shares_dtype(kind) else kind.to_dtype() for kind in types]
        self._allowed = [port.shape for port in model.inputs]
        self._shapes: list[set[tuple[int, ...]]] = [set() for _ in model.inputs]
        """The shapes that arrays had; to find one takes a fifth of the time of the comparison with those allowed."""
        self._positions: dict[Any, int] = {}

    def __call__(self, feeds: Feeds) -> list[Array]:
        """Return one array for each input, in order; raise InputError if one does not match."""
        arrays = self._known(feeds)
        if arrays is not None:
            return arrays
        arrays = collect_inputs(self._model, feeds, self._index_of)
        if isinstance(feeds, Mapping):
            self._positions.update((key, self._index_of(key)) for key in feeds)
        return arrays

    def _known(self, feeds: Feeds) -> list[Array] | None:
        """Return the arrays if nothing needs to be checked or converted, else None."""
        arrays: list[Any]
        if type(feeds) is dict:
            arrays = [None] * len(self._dtypes)
            for key, value in feeds.items():
                position = self._positions.get(key)
                if position is None or arrays[position] is not None:
                    return None
                arrays[position] = value
        elif type(feeds) is list and len(feeds) == len(self._dtypes):
            arrays = feeds.copy()
        elif type(feeds) is np.ndarray and len(self._dtypes) == 1:
            arrays = [feeds]
        else:
            return None
        for array, dtype, shapes, allowed in zip(arrays, self._dtypes, self._shapes, self._allowed, strict=True):
            if type(array) is not np.ndarray or array.dtype != dtype:
                return None
            flags = array.flags
            if not (flags.c_contiguous and flags.aligned):
                return None
            if array.shape not in shapes:
                if not allowed.contains(array.shape):
                    return None
                if len(shapes) >= _MOST_SHAPES:
                    shapes.clear()
                shapes.add(array.shape)
        return arrays


_MOST_SHAPES = 1000  # the largest number of shapes that are cached


def collect_inputs(model: LayerGraph, feeds: Feeds, index_of: Callable[[Any], int]) -> list[Array]:
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
    return [fitted(f"input '{port.any_name}'", given[index], port.type, port.layer) for index, port in enumerate(ports)]


def _listed(ports: Sequence[Port]) -> str:
    return ", ".join(f"'{port.any_name}' {port.type}" for port in ports) or "none"


def _refuse(model: LayerGraph, message: str) -> NoReturn:
    raise InputError(diagnose(BAD_INPUT, message, Place(model.path)))


def fitted(what: str, value: Any, tensor: TensorType, layer: Layer) -> Array:
    """Return the value as an array of a tensor's type; raise InputError if it has another shape, or values that the
    element type cannot hold.

    Messages call the tensor ``what`` and name its layer.
    """
    with memory_errors_named(layer):
        array = _as_type(what, _as_array(what, value, tensor.element_type, layer), tensor.element_type, layer)
    require_shape(what, array.shape, tensor, layer)
    return array


def _fail(message: str, layer: Layer, hint: str | None) -> NoReturn:
    raise InputError(diagnose(BAD_INPUT, message, layer.place, hint=hint))


def _as_array(what: str, value: Any, element_type: t.ElementType, layer: Layer) -> Array:
    """Return the value as a plain array in C order, aligned and in the byte order of this machine.

    Sums of products depend on the layout of memory in their last digits; with one layout results do not.
    """
    # Masked arrays exist only after numpy.ma, which takes long to import, has been imported.
    if (masked := sys.modules.get("numpy.ma")) is not None and masked.is_masked(value):
        _fail(f"{what}: values of the array are masked", layer, "put values in their place, as with array.filled(0)")
    try:
        array: Array = np.asarray(value) if hasattr(value, "__array__") else listed_array(value, element_type)
    except ValueError as error:
        _fail(f"{what}: {error}", layer, None)
    if not isinstance(value, np.ndarray):
        if array.dtype == object:
            _fail(f"{what}: a {type(value).__name__} is not an array of numbers or strings", layer, None)
        if array.size == 0 and not element_type.is_dynamic:  # an empty list has no type of its own
            return array.astype(element_type.to_dtype())
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else contiguous_copy(array)


def _as_type(what: str, array: Array, element_type: t.ElementType, layer: Layer) -> Array:
    """Convert the array to the model's type if the type can hold every value, else raise InputError.

    A float is rounded, but a finite one must stay finite, and must not be clipped.
    """
    if element_type.is_dynamic:
        return array
    dtype = element_type.to_dtype()
    if array.dtype == dtype:
        if t.shares_dtype(element_type) and (lost := t.integers_outside(array, element_type)).any():
            _refuse_lost(what, array, lost, element_type, layer)
        return array
    if element_type.kind == "string":
        if array.dtype.kind in "UT":
            return array.astype(dtype)
        if array.dtype.kind == "S" or (array.dtype == object and all(isinstance(x, (str, bytes)) for x in array.flat)):
            return decoded_strings(array)
    elif element_type != t.nf4:  # held as codes, not as numbers
        source = _kind(array.dtype)
        integers = source in ("signed", "unsigned", "boolean")
        if (integers and element_type.is_integral) or (element_type.is_real and (integers or source == "float")):
            converted, lost = t.converted_values(array, element_type)
            if not lost.any():
                return converted
            _refuse_lost(what, array, lost, element_type, layer)
    hint = f"convert it first, as with array.astype('{dtype.name}')" if element_type.kind != "string" else None
    held = "Python objects" if array.dtype == object else type_name(array.dtype)
    _fail(f"{what} takes {element_type}, got an array of {held}", layer, hint)


def _refuse_lost(what: str, array: Array, lost: Array, element_type: t.ElementType, layer: Layer) -> NoReturn:
    count, value = int(np.count_nonzero(lost)), array[lost].ravel()[0]
    verb = "does" if count == 1 else "do"
    share = f"it {verb}" if array.size == 1 else f"{count:,} of the {array.size:,} values {verb}"
    message = (
        f"{what} is {element_type}, which cannot hold the value {value} of the array of {type_name(array.dtype)}: "
        f"{share} not fit into {t.range_text(element_type)}"
    )
    _fail(message, layer, "scale or clip the array first, if another value is meant")


def _kind(dtype: np.dtype[Any]) -> str:
    try:
        return t.ElementType.from_dtype(dtype).kind
    except ValueError:
        return "unknown"
