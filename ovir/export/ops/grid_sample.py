"""GridSample."""

from __future__ import annotations

from ovir.core.element_types import f32, f64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.grid_sample import GridSample

_OLD_MODES = {"bilinear": "bilinear", "nearest": "nearest", "bicubic": "bicubic"}
_MODES = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}


@exports(GridSample, to="GridSample", limits="integers of more than 53 bits are rounded")
def grid_sample(graph: Graph, op: GridSample, data: Tensor, grid: Tensor) -> Tensor:
    """Export as GridSample; integers are sampled as real numbers and rounded, or truncated from 16 bits on."""
    own = data.element_type
    graph.require(own.is_integral or own.is_real, "element type {} cannot be sampled", own)
    modes = _MODES if graph.opset >= 20 else _OLD_MODES
    is_wide = own.bits >= 32 if own.is_integral else own == f64
    held = graph.cast(data, f64 if is_wide else f32)
    where = graph.cast(grid, f64 if grid.element_type == f64 or (is_wide and graph.opset >= 20) else f32)
    made = graph.GridSample(
        held,
        where,
        mode=modes[op.mode],
        padding_mode=op.padding_mode,
        align_corners=int(op.align_corners),
    )
    if not own.is_integral:
        return made
    if own.bits <= 8:
        made = graph.Round(made)
    return graph.saturated(made, own)
