"""What another export of a model, for other sizes, tells: the shapes and the integers of its layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.tensor_types import TensorType
from ovir.graph.constant_layers import constant_layers
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer


def counterparts(model: LayerGraph, like: LayerGraph) -> dict[Layer, Layer]:
    """Return the layers of a model that correspond to those of another export: by their order if their types are equal,
    otherwise those of outputs, and those of equal names. Those that are computed from constants alone are left out."""
    own, others = ([layer for layer in one.walk() if constant_layers(layer) is None] for one in (model, like))
    if [layer.type for layer in own] == [layer.type for layer in others]:
        return dict(zip(own, others, strict=True))
    keys = {layer.key: layer for layer in others}
    found = {layer: keys[layer.key] for layer in own if layer.key in keys}
    return found | {one.layer: other.layer for one, other in zip(model.outputs, like.outputs, strict=False)}


def is_like(inputs: Sequence[TensorType], outputs: Sequence[TensorType], other: Layer) -> bool:
    """Return whether a layer has the shapes of a layer of another export, and the same integers, such as sizes.

    A negative number is counted from an end, or open, so that it may stand for another one.
    """
    pairs = [*zip(inputs, other.inputs, strict=False), *zip(outputs, other.outputs, strict=False)]
    if not all(one.shape.compatible(port.shape) for one, port in pairs):
        return False
    known = [(one.constant, port.type.constant) for one, port in pairs if other.type != "Reshape"]
    return all(
        one is None
        or two is None
        or one.dtype.kind not in "iu"
        or (np.append(one, two) < 0).any()
        or np.array_equal(one, two)
        for one, two in known
    )
