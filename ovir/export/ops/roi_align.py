"""ROIAlign."""

from __future__ import annotations

from math import isnan

import numpy as np

from ovir.core.element_types import i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.pixels import Pixels, columns, listed, sampled, zero_unless
from ovir.ops.roi_align import ROIAlign3, ROIAlign9

_MODES = {"asymmetric": "output_half_pixel", "half_pixel_for_nn": "half_pixel", "half_pixel": "half_pixel"}


@exports(
    ROIAlign3,
    ROIAlign9,
    to="RoiAlign; gathered pixels for mode max and from opset 22 on",
    limits="before opset 22, batch_indices may not hold -1 in mode avg",
)
def roi_align(graph: Graph, op: ROIAlign3, data: Tensor, rois: Tensor, batch_indices: Tensor) -> Tensor:
    """Export as RoiAlign; as gathered samples for mode max, which ONNX defines otherwise, and for later opsets, in
    which onnxruntime has no kernel."""
    if op.mode == "max" or graph.opset >= 22 or isnan(op.spatial_scale):
        return _pooled(graph, op, data, rois, batch_indices)
    if op.aligned_mode == "half_pixel":
        rois = graph.Add(rois, 0.5)
    return graph.RoiAlign(
        data,
        rois,
        graph.cast(batch_indices, i64),
        mode="avg",
        output_height=op.pooled_h,
        output_width=op.pooled_w,
        sampling_ratio=op.sampling_ratio,
        spatial_scale=op.spatial_scale,
        coordinate_transformation_mode=_MODES[op.aligned_mode],
    )


def _pooled(graph: Graph, op: ROIAlign3, data: Tensor, rois: Tensor, batch_indices: Tensor) -> Tensor:
    held = data.real_type
    pixels, regions = Pixels(graph, graph.cast(data, held)), graph.cast(rois, held)
    scale = pixels.number(float(np.float32(op.spatial_scale)))
    before = pixels.number(0.5 if op.aligned_mode == "half_pixel" else 0)
    after = pixels.number(0 if op.aligned_mode == "asymmetric" else 0.5)
    ends = graph.Sub(graph.Mul(graph.Add(regions, before), scale), after)
    left, top, right, bottom = columns(graph, ends, range(4), 5)
    size = [graph.Sub(bottom, top), graph.Sub(right, left)]
    if op.aligned_mode == "asymmetric":
        size = [graph.Max(side, pixels.number(1)) for side in size]
    images, exists = listed(graph, batch_indices)
    bins = op.pooled_h, op.pooled_w
    made = sampled(pixels, images, [top, left], size, bins, op.sampling_ratio, largest=op.mode == "max")
    return zero_unless(graph, made, exists)
