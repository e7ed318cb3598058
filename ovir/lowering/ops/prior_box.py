"""PriorBox."""

from __future__ import annotations

from ovir.graph.layers import Layer, Port
from ovir.lowering.registry import lowers, refuse
from ovir.lowering.sizes import older
from ovir.ops.prior_box import PriorBox8


@lowers("PriorBox", 8)
def prior_box_8(op: PriorBox8, output_size: Port, image_size: Port) -> Layer:
    if not op.min_max_aspect_ratios_order:
        refuse("PriorBox-1 has only one order of boxes", "--fold-constants makes the boxes of exact sizes a constant")
    return older(op, 1, output_size, image_size)
