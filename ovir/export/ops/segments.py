"""SegmentMax."""

from __future__ import annotations

import numpy as np

from ovir.core.element_types import ElementType, i64
from ovir.export.graph import Graph
from ovir.export.parts import reduced
from ovir.export.registry import exports
from ovir.export.segments import by_run, runs_of_ids
from ovir.export.sizes import as_list, as_scalar
from ovir.export.tensors import Tensor
from ovir.kernels.blocked import lowest_finite
from ovir.ops.segments import SegmentMax


@exports(SegmentMax, to="Gather of segments padded to the longest one, ReduceMax", limits="NaN prevails")
def segment_max(
    graph: Graph, op: SegmentMax, data: Tensor, segment_ids: Tensor, num_segments: Tensor | None = None
) -> Tensor:
    """Export as ReduceMax over the rows of each segment, padded with a row of the least number."""
    rank, ids = graph.rank(data), as_list(graph, segment_ids)
    if num_segments is not None:
        count = graph.cast(as_scalar(graph, num_segments), i64)
    else:
        count = graph.Add(graph.ReduceMax(graph.Concat(ids, np.array([-1]), axis=0), keepdims=0), 1)
    runs = runs_of_ids(graph, graph.shaped(ids, segment_ids.shape), count)
    places, exist = runs.places(graph, least=1)
    row = graph.Concat(np.array([1]), graph.Shape(data, start=1), axis=0)
    padded = graph.Concat(data, graph.Expand(_least(graph, data.element_type), row), axis=0)
    rows = graph.Gather(padded, graph.Where(exist, places, graph.Shape(ids)))
    largest = reduced(graph, "ReduceMax", rows, [1], keep=False)
    dtype = data.element_type.to_dtype()
    fill = 0 if op.fill_mode == "zero" else lowest_finite(dtype)
    is_empty = by_run(graph, graph.Equal(runs.counts, 0), rank)
    return graph.Where(is_empty, graph.constant(np.array(fill, dtype), data.element_type), largest)


def _least(graph: Graph, element_type: ElementType) -> Tensor:
    return graph.number(-np.inf if element_type.is_real else lowest_finite(element_type.to_dtype()), element_type)
