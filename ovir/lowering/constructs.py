"""What a release reads but does not run, or runs wrongly, and what says the same in a way that it runs.

All of it was measured with the published packages, on their CPU devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np

from ovir import opset8 as ops
from ovir.core.element_types import boolean
from ovir.graph.layers import Layer, Port
from ovir.lowering.parts import constant, scalar
from ovir.lowering.releases import Release

Changes: TypeAlias = Mapping[Port, Layer]
"""New layers by the port whose tensor they take the place of: an input of the layer, or one of its outputs."""


@dataclass(frozen=True)
class Construct:
    """A construct that releases from ``first`` to ``last`` fail at."""

    types: frozenset[str]
    first: Release
    last: Release
    reason: str
    rewrite: Callable[[Layer], Changes]
    """Returns what to change at a layer of these types; nothing if it is not the construct."""


CONSTRUCTS: list[Construct] = []


def changes_for(layer: Layer, release: Release) -> Changes:
    """Return what to change at a layer for a release that fails at it; nothing for most layers."""
    for construct in CONSTRUCTS:
        concerns = layer.type in construct.types and construct.first <= release <= construct.last
        if concerns and (changes := construct.rewrite(layer)):
            return changes
    return {}


Rewrite: TypeAlias = Callable[[Layer], Changes]


def fails_at(*types: str, first: Release, last: Release, reason: str) -> Callable[[Rewrite], Rewrite]:
    """Register how to rewrite a construct that releases fail at for a reason."""

    def add(rewrite: Rewrite) -> Rewrite:
        CONSTRUCTS.append(Construct(frozenset(types), first, last, reason, rewrite))
        return rewrite

    return add


@fails_at(
    "ScaledDotProductAttention",
    first=(2023, 3),
    last=(2025, 2),
    reason="boolean masks that are computed become u8, which attention refuses, or adds to the scores as numbers",
)
def boolean_mask(layer: Layer) -> Changes:
    """Add the mask as numbers: 0 for keys that are attended to, -inf for others."""
    mask = layer.inputs[3].source if len(layer.inputs) > 3 else None
    if mask is None or mask.element_type != boolean:
        return {}
    kind = layer.outputs[0].element_type
    return {layer.inputs[3]: ops.select(mask, scalar(0, kind), scalar(-np.inf, kind))}


@fails_at(
    "Split",
    "VariadicSplit",
    first=(2022, 1),
    last=(2022, 3),
    reason='"Cannot get descriptor for edge": parts along the first axis of a tensor of known sizes are views of it, '
    "which elementwise operations of unknown sizes cannot read",
)
def parts_along_the_first_axis(layer: Layer) -> Changes:
    """Gather each part of the tensor."""
    data, axis = layer.inputs[0].source, constant(layer.inputs[1].source) if layer.inputs[1].source else None
    shape = layer.inputs[0].shape
    if data is None or axis is None or shape.is_dynamic or not shape.rank or int(axis.reshape(-1)[0]) % shape.rank:
        return {}
    lengths = [port.shape[0] for port in layer.outputs]
    readers = [reader.layer for port in layer.outputs for reader in port.readers]
    if shape.rank > 1 and not any(port.shape.is_dynamic for reader in readers for port in reader.outputs):
        return {}
    ends = accumulate((length.length for length in lengths), initial=0)
    return {
        port: ops.gather(data, np.arange(start, end), 0)
        for port, (start, end) in zip(layer.outputs, pairwise(ends), strict=True)
        if port.readers
    }


@fails_at(
    "Result",
    first=(2022, 2),
    last=(2023, 2),
    reason='"Cannot find blob with name": outputs lose their names where a loop over a recurrent cell that they '
    "read directly becomes one operation",
)
def output_of_a_loop(layer: Layer) -> Changes:
    """Copy the tensor."""
    source = layer.inputs[0].source
    if source is None or source.layer.type != "TensorIterator":
        return {}
    return {layer.inputs[0]: ops.convert(source, source.element_type)}
