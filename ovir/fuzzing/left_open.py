"""What the specification leaves open: devices that decide it in different ways are all right."""

from __future__ import annotations

from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.fuzzing.reference import Reference
from ovir.graph.layers import Layer
from ovir.graph.order import trace_back

REASON = "left open by the specification: the order of the elements that TopK selects"


def decided(reference: Reference, index: int, array: Array) -> Array:
    """Return an output of ovir or of a device without what the specification leaves open.

    Where TopK may choose among equal elements, its indices are replaced by the elements. Where it may put elements in
    any order, they are sorted.
    """
    port = reference.model.outputs[index].source
    if port is None or not _is_open(port.layer, reference):
        return array
    op: Any = port.layer.operator
    if port is port.layer.outputs[1]:
        data = _data(port.layer, reference)
        if array.size and not 0 <= array.min() <= array.max() < data.shape[op.axis]:
            return array
        array = np.take_along_axis(data, array.astype(np.int64), op.axis)
    return array if op.sort == "value" else np.sort(array, op.axis)


def depends_on_open(reference: Reference, index: int) -> bool:
    """Return whether an output is computed from what the specification leaves open."""
    result = reference.model.outputs[index]
    above, _ = trace_back([result.layer], lambda port: True)
    last = None if result.source is None else result.source.layer
    return any(_is_open(layer, reference) for layer in above if layer is not last)


def _is_open(layer: Layer, reference: Reference) -> bool:
    """Return whether a layer is a TopK whose order the specification does not define for its data."""
    if layer.type != "TopK":
        return False
    op: Any = layer.operator
    ordered = np.sort(np.moveaxis(_data(layer, reference), op.axis, -1).astype(np.float64))
    has_equal = bool((ordered[..., 1:] == ordered[..., :-1]).any())
    return op.sort == "none" or (has_equal and not getattr(op, "stable", False))


def _data(layer: Layer, reference: Reference) -> Array:
    source = layer.inputs[0].source
    assert source is not None
    return reference.arrays[source]
