"""ExtractImagePatches and Col2Im."""

from __future__ import annotations

import numpy as np

from ovir.core.element_types import bf16, f16, f32
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sliding_windows import padded, same_pads
from ovir.kernels.windows import extent
from ovir.ops.patches import Col2Im, ExtractImagePatches


@exports(ExtractImagePatches, to="Pad, Gather of rows and of columns, Transpose, Reshape")
def extract_image_patches(graph: Graph, op: ExtractImagePatches, data: Tensor) -> Tensor:
    """Export as Gather of the rows, then of the columns, at every position of every patch."""
    images, channels = (graph.size_of(data, axis) for axis in (0, 1))
    size, strides = graph.shape_of(data, 2), list(op.strides)
    covered = [extent(taps, rate) for taps, rate in zip(op.sizes, op.rates, strict=True)]
    if op.auto_pad == "valid":
        least = covered
    else:
        least = [1, 1]
        data = padded(graph, data, same_pads(graph, op.auto_pad, size, covered, strides))
    number = graph.Max(graph.Div(graph.Add(graph.Sub(size, least), strides), strides), 0)
    counts = graph.items(number, "data", 2)
    rows, columns = (  # the position in the padded image of each position of a patch [kernel, window]
        graph.Add(graph.Mul(graph.positions_below(count), stride), np.arange(taps)[:, np.newaxis] * rate)
        for count, stride, taps, rate in zip(counts, strides, op.sizes, op.rates, strict=True)
    )
    taken = graph.Gather(graph.Gather(data, rows, axis=2), columns, axis=4)
    moved = graph.Transpose(taken, perm=[0, 2, 4, 1, 3, 5])
    depth = graph.Mul(channels, op.sizes[0] * op.sizes[1])
    return graph.reshaped(moved, [images, depth, *counts])


# --------------------------------------------------------------------------- Col2Im


@exports(
    Col2Im,
    to="Col2Im; ConvTranspose before opset 18; ScatterElements for other types than f32, f16 and bf16",
    limits="ConvTranspose and ScatterElements need constant sizes",
)
def col_to_image(graph: Graph, op: Col2Im, data: Tensor, image_size: Tensor, kernel_size: Tensor) -> Tensor | None:
    """Export as Col2Im; return None where ONNX lacks it, so that the decomposition is exported."""
    is_batched = graph.rank(data) == 3
    if graph.opset < 18 or data.element_type not in (f32, f16, bf16):
        return None
    made = graph.Col2Im(
        data if is_batched else graph.Unsqueeze(data, [0]),
        graph.as_list(image_size),
        graph.as_list(kernel_size),
        dilations=list(op.dilations),
        pads=[*op.pads_begin, *op.pads_end],
        strides=list(op.strides),
    )
    return made if is_batched else graph.Squeeze(made, [0])
