"""SparseFillEmptyRows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir.core.element_types import i64
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sizes import as_list
from ovir.ops.sparse import SparseFillEmptyRows


@exports(SparseFillEmptyRows, to="ScatterElements, NonZero, TopK, Gather")
def sparse_fill_empty_rows(
    graph: Graph, op: SparseFillEmptyRows, values: Tensor, dense_shape: Tensor, indices: Tensor, default_value: Tensor
) -> Sequence[Tensor]:
    """Export as a search for rows without an index; their entries are sorted into the others by TopK."""
    sizes, places = as_list(graph, dense_shape), graph.cast(indices, i64)
    height, width = (graph.Slice(sizes, [i], [i + 1]) for i in range(2))
    rows = graph.Gather(places, 0, axis=1)
    none = graph.Expand(np.array(False), graph.Shape(rows))
    is_empty = graph.ScatterElements(graph.Expand(np.array(True), height), rows, none)
    added = graph.Reshape(graph.NonZero(is_empty), [-1])
    count = graph.Shape(added)
    all_rows = graph.Concat(rows, added, axis=0)
    all_columns = graph.Concat(graph.Gather(places, 1, axis=1), graph.Expand(np.array(0), count), axis=0)
    all_values = graph.Concat(values, graph.Expand(default_value, count), axis=0)
    keys = graph.Add(graph.Mul(all_rows, width), all_columns)  # TopK keeps the order of equal keys
    _, order = graph.node("TopK", keys, graph.Shape(keys), outputs=2, axis=0, largest=0, sorted=1)
    pairs = graph.Concat(*(graph.Unsqueeze(part, [1]) for part in (all_rows, all_columns)), axis=1)
    sorted_pairs = graph.cast(graph.Gather(pairs, order), indices.element_type)
    return sorted_pairs, graph.Gather(all_values, order), is_empty
