"""Pad."""

from __future__ import annotations

import numpy as np

from ovir import opset7 as ops
from ovir.graph.layers import Layer, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import constant, older
from ovir.ops.movement import Pad12


@lowers("Pad", 12)
def pad_12(op: Pad12, data: Port, pads_begin: Port, pads_end: Port, pad_value: Port | None = None) -> Layer:
    """Cut off what negative pads remove after padding, so that removed elements can still be mirrored."""
    begin, end = constant(pads_begin), constant(pads_end)
    value = () if pad_value is None else (pad_value,)
    if begin is None or end is None or ((begin >= 0).all() and (end >= 0).all()):
        return older(op, 1, data, pads_begin, pads_end, *value)
    padded = older(op, 1, data, np.maximum(begin, 0), np.maximum(end, 0), *value)
    first, last = np.maximum(-begin, 0).astype(np.int64), np.minimum(end, 0).astype(np.int64)
    return ops.strided_slice(padded, first, last, np.ones_like(first), [0] * len(first), [int(n == 0) for n in last])
