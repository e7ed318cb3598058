"""DeformableConvolution."""

from __future__ import annotations

from ovir.graph.layers import Layer, Port
from ovir.lowering.registry import lowers, refuse
from ovir.lowering.sizes import older
from ovir.ops.convolution import DeformableConvolution8


@lowers("DeformableConvolution", 8)
def deformable_convolution_8(op: DeformableConvolution8, *inputs: Port) -> Layer:
    if len(inputs) > 3:
        refuse("DeformableConvolution-1 has no mask")
    if op.bilinear_interpolation_pad:
        refuse("DeformableConvolution-1 does not interpolate beyond the border (bilinear_interpolation_pad)")
    return older(op, 1, *inputs)
