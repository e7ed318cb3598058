"""Compressed weights: constants of few bits, with the arithmetic in f16 or bf16 that restores them.

A file says (codes - zero_point) * scale in f16 and converts the result to f32. Devices that compute in f32 do the
arithmetic in f32 as well; so does the plan, which thus neither rounds on the way nor keeps what stands between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ovir.arrays import Array
from ovir.element_types import ElementType, bf16, f16, f32
from ovir.model import Layer, Model, Port
from ovir.ops.convert import Convert
from ovir.ops.infrastructure import Const

_ARITHMETIC = ("Subtract", "Multiply", "Add", "Divide")
_MOVEMENT = ("Reshape", "Transpose", "Squeeze", "Unsqueeze")
_NARROW = (f16, bf16)


@dataclass
class Decompressions:
    """``ends`` are the Converts to f32 at which compressed weights come out; ``absorbed`` the layers before
    them, where nothing else reads their results."""

    ends: set[Layer] = field(default_factory=set)
    absorbed: set[Layer] = field(default_factory=set)


def find_decompressions(model: Model, kept: Callable[[Layer], bool]) -> Decompressions:
    """All that the model holds; layers that are ``kept`` for themselves are not absorbed."""
    found = Decompressions()
    chains: set[Layer] = set()
    for layer in model.layers:
        if _is_end(layer):
            source = layer.inputs[0].source
            assert source is not None
            chain: dict[Layer, bool] = {}
            if _collect(source, chain) and any(part.type in _ARITHMETIC for part in chain):
                found.ends.add(layer)
                chains |= {part for part in chain if not isinstance(part.operator, Const)}
    readers: dict[Layer, set[Layer]] = {}
    for layer in model.layers:
        for port in layer.inputs:
            if port.source is not None:
                readers.setdefault(port.source.layer, set()).add(layer)
    for layer in reversed(model.layers):
        if layer in chains and not kept(layer) and readers[layer] <= found.ends | found.absorbed:
            found.absorbed.add(layer)
    return found


def _is_end(layer: Layer) -> bool:
    if not isinstance(layer.operator, Convert) or not layer.inputs or layer.inputs[0].source is None:
        return False
    return layer.inputs[0].element_type in _NARROW and layer.outputs[0].element_type == f32


def _collect(port: Port, seen: dict[Layer, bool]) -> bool:
    """Whether a port's content is restored from constants; ``seen`` has the answer for each layer on the way."""
    layer = port.layer
    if layer not in seen:
        seen[layer] = False
        seen[layer] = isinstance(layer.operator, Const) or _restores(layer, port, seen)
    return seen[layer]


def _restores(layer: Layer, port: Port, seen: dict[Layer, bool]) -> bool:
    sources = [p.source for p in layer.inputs if p.source is not None]
    if port.element_type not in _NARROW or layer.operator is None:
        return False
    if layer.type == "Convert":
        return isinstance(sources[0].layer.operator, Const)
    if layer.type in _ARITHMETIC:
        return all(_collect(source, seen) for source in sources)
    if layer.type in _MOVEMENT:
        return _collect(sources[0], seen) and all(source.type.constant is not None for source in sources[1:])
    return False


def decompress(end: Layer) -> Array:
    """What comes out of one of the ``ends``, in f32."""
    source = end.inputs[0].source
    assert source is not None
    return _restored(source, {})


def _restored(port: Port, done: dict[Layer, Array]) -> Array:
    if port.layer not in done:
        done[port.layer] = _computed(port, done)
    return done[port.layer]


def _computed(port: Port, done: dict[Layer, Array]) -> Array:
    op = port.layer.operator
    assert op is not None
    sources = [p.source for p in port.layer.inputs if p.source is not None]
    if isinstance(op, Const):
        return _as_f32(op.data, port.element_type)
    if port.layer.type == "Convert":
        return _restored(sources[0], done)
    if port.layer.type in _MOVEMENT:
        result = op.run(_restored(sources[0], done), *(source.type.constant for source in sources[1:]))
    else:
        result = op.run(*(_restored(source, done) for source in sources))
    assert isinstance(result, np.ndarray)
    return result


def _as_f32(array: Array, element_type: ElementType) -> Array:
    return Convert(destination_type=f32).converted(array, element_type, f32, None)
