"""ConvertPromoteTypes."""

from __future__ import annotations

from ovir import opset7 as ops
from ovir.graph.layers import Port
from ovir.lowering.registry import Tensors, lowers, refuse
from ovir.ops.convert import ConvertPromoteTypes


@lowers("ConvertPromoteTypes", 14)
def convert_promote_types(op: ConvertPromoteTypes, a: Port, b: Port) -> Tensors:
    common = op.output_types[0]
    if common.is_dynamic:
        refuse("the element types of its inputs are unknown")
    return [ops.convert(a, common), ops.convert(b, common)]
