"""Compressed weights: constants of few bits, with the arithmetic in f16 or bf16 that restores them.

A file says (codes - zero_point) * scale in f16 and converts the result to f32. Devices that compute in f32 do the
arithmetic in f32 as well; so does the plan, which thus neither rounds on the way nor keeps what stands between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ovir.model import Layer, Model, Port
from ovir.ops.convert import Convert
from ovir.ops.infrastructure import Const
from ovir.types import ElementType, bf16, f16, f32

Array = NDArray[Any]

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
        if _is_end(layer) and not kept(layer):
            source = layer.inputs[0].source
            assert source is not None
            chain: set[Layer] = set()
            if _collect(source, chain) and any(part.type in _ARITHMETIC for part in chain):
                found.ends.add(layer)
                chains |= chain
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


def _collect(port: Port, chain: set[Layer]) -> bool:
    """Whether a port's content is restored from constants; the layers that do so are added to ``chain``."""
    layer = port.layer
    sources = [p.source for p in layer.inputs if p.source is not None]
    if isinstance(layer.operator, Const):
        return True
    if port.element_type not in _NARROW or layer.operator is None:
        return False
    if layer.type == "Convert":
        restored = isinstance(sources[0].layer.operator, Const)
    elif layer.type in _ARITHMETIC:
        restored = all(_collect(source, chain) for source in sources)
    elif layer.type in _MOVEMENT:
        restored = _collect(sources[0], chain) and all(source.type.constant is not None for source in sources[1:])
    else:
        restored = False
    if restored:
        chain.add(layer)
    return restored


def decompress(end: Layer) -> Array:
    """What comes out of one of the ``ends``, in f32."""
    source = end.inputs[0].source
    assert source is not None
    return _restored(source)


def _restored(port: Port) -> Array:
    op = port.layer.operator
    assert op is not None
    sources = [p.source for p in port.layer.inputs if p.source is not None]
    if isinstance(op, Const):
        return _as_f32(op.data, port.element_type)
    if port.layer.type == "Convert":
        return _restored(sources[0])
    if port.layer.type in _MOVEMENT:
        result = op.run(_restored(sources[0]), *(source.type.constant for source in sources[1:]))
    else:
        result = op.run(*(_restored(source) for source in sources))
    assert isinstance(result, np.ndarray)
    return result


def _as_f32(array: Array, element_type: ElementType) -> Array:
    return Convert(destination_type=f32).converted(array, element_type, f32, None)
