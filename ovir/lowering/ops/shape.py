"""Squeeze."""

from __future__ import annotations

from ovir.graph.layers import LayerOrPort, Port
from ovir.lowering.registry import lowers, refuse
from ovir.lowering.sizes import constant, older
from ovir.ops.shape import Squeeze15


@lowers("Squeeze", 15)
def squeeze_15(op: Squeeze15, data: Port, axes: Port | None = None) -> LayerOrPort:
    """Name only axes that may have the size 1, because older releases refuse others."""
    shape, given = data.shape, None if axes is None else constant(axes)
    if op.allow_axis_skip and shape.is_dynamic and axes is not None:
        is_known = (
            shape.rank is not None and given is not None and all(shape[int(axis)].is_static for axis in given.flat)
        )
        if not is_known:
            refuse(f"which axes of {shape} have the size 1 is unknown", "--shape gives inputs exact sizes")
    if shape.rank is None or (axes is not None and given is None):
        return older(op, 1, data, *([] if axes is None else [axes]))
    named = [] if given is None else [int(axis) % shape.rank for axis in given.flat]
    if not named and shape.is_dynamic:
        return older(op, 1, data)
    chosen = set(named) or range(shape.rank)
    found = [axis for axis in chosen if shape[axis].contains(1)]
    return older(op, 1, data, found) if found else data
