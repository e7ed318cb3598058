"""The constants that are at fault if a layer fails, for hints."""

from __future__ import annotations

import re
from collections.abc import Callable

from ovir.diagnostics.diagnostic import Diagnostic
from ovir.graph.constant_layers import constant_layers
from ovir.graph.layers import Layer, Port
from ovir.model import Model
from ovir.ops.base.traits import input_names
from ovir.ops.infrastructure import Const

_MOST_LAYERS = 100
_LISTED = 3


def constants_at_fault(model: Model, error: Diagnostic) -> str | None:
    """Return the constants that hold the values which an error is about; None if it is about other values.

    These are the constants of the input with whose name the message begins, or of all inputs if it names none.
    """
    layer = _layer_of(model, error)
    if layer is None or layer.operator is None:
        return None
    named = re.match(r"\w+", error.message)
    names = input_names(type(layer.operator))
    if named is not None and named[0] in names[: len(layer.inputs)]:
        return _constants(layer.inputs[names.index(named[0]) :][:1], all)
    return _constants(layer.inputs, all)


def constants_of_sizes(model: Model, error: Diagnostic) -> str | None:
    """Return the constants from which the layer of an error takes sizes or axes; None if there are none."""
    layer = _layer_of(model, error)
    if layer is None or layer.operator is None:
        return None
    return _constants([port for port in layer.inputs if type(layer.operator).reads_value(port.index)], any)


def _layer_of(model: Model, error: Diagnostic) -> Layer | None:
    return next((layer for layer in model.walk() if layer.title == error.layer), None)


def _constants(ports: list[Port], quantity: Callable[[list[bool]], bool]) -> str | None:
    """Return the constants that ports are computed from; None unless all, or any, are computed from constants."""
    chains = [constant_layers(port.source.layer, _MOST_LAYERS) if port.source is not None else None for port in ports]
    if not ports or not quantity([chain is not None for chain in chains]):
        return None
    found = dict.fromkeys(layer.title for chain in chains for layer in chain or () if isinstance(layer.operator, Const))
    listed = ", ".join(list(found)[:_LISTED])
    return f"{listed}, ..." if len(found) > _LISTED else listed
