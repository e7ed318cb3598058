"""ROIAlign."""

from __future__ import annotations

from ovir import opset7 as ops
from ovir.graph.layers import Layer, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import older, scalar
from ovir.ops.roi_align import ROIAlign9


@lowers("ROIAlign", 9)
def roi_align_9(op: ROIAlign9, data: Port, rois: Port, batch_indices: Port) -> Layer:
    """Move the regions as the aligned modes do.

    The older version enlarges regions that are shorter than a pixel, which no other operation undoes.
    """
    if op.aligned_mode == "asymmetric":
        return older(op, 3, data, rois, batch_indices)
    shift = (0.5 if op.aligned_mode == "half_pixel" else 0) - 0.5 / op.spatial_scale
    return older(op, 3, data, ops.add(rois, scalar(shift, rois.element_type)), batch_indices)
