"""GatherND and GatherTree."""

from __future__ import annotations

from ovir.core.element_types import i64
from ovir.core.shapes import Dimension, PartialShape
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.sizes import LAST, positions_below, reshaped, size_of, sizes_of, vector
from ovir.ops.gather_nd import GatherND5, GatherND8, GatherTree


@exports(GatherND5, GatherND8, to="GatherND")
def gather_nd(graph: Graph, op: GatherND8, data: Tensor, indices: Tensor) -> Tensor:
    """Export as GatherND."""
    batch = op.batch_dims
    if indices.shape[-1] == Dimension(0, 0):
        found = _whole_slices(graph, data, indices, batch)
    else:
        found = graph.GatherND(data, indices, batch_dims=batch)
    if isinstance(op, GatherND5) and batch > 1:
        shape = graph.Shape(found)
        batches = graph.ReduceProd(graph.Slice(shape, [0], [batch]), keepdims=1)
        return graph.Reshape(found, graph.Concat(batches, graph.Slice(shape, [batch], [LAST]), axis=0), allowzero=1)
    return found


def _whole_slices(graph: Graph, data: Tensor, indices: Tensor, batch: int) -> Tensor:
    """Return all of data for each tuple without indices."""
    sizes, counts = sizes_of(graph, data), sizes_of(graph, indices, "indices")[batch:-1]
    slices = reshaped(graph, data, [*sizes[:batch], *[1] * len(counts), *sizes[batch:]])
    return graph.Expand(slices, vector(graph, [*sizes[:batch], *counts, *sizes[batch:]]))


@exports(GatherTree, to="Scan")
def gather_tree(
    graph: Graph, op: GatherTree, step_ids: Tensor, parent_ids: Tensor, max_seq_len: Tensor, end_token: Tensor
) -> Tensor:
    """Export as a Scan over the steps from the last one, which follows the parents of each beam."""
    times = positions_below(graph, size_of(graph, step_ids, 0))
    lengths = graph.Unsqueeze(graph.cast(max_seq_len, i64), [1])
    beams = positions_below(graph, size_of(graph, step_ids, 2))
    first = graph.Expand(beams, graph.Shape(step_ids, start=1, end=3))
    slice_shape = PartialShape(step_ids.shape.dims[1:]) if step_ids.rank else step_ids.shape

    child = graph.child()
    beam = child.input(i64, slice_shape)
    # OpenVINO cannot read a Scan whose body uses tensors around it, so these are states as well.
    limits = child.input(i64)
    end = child.input(end_token.element_type, PartialShape([]))
    ids = child.input(step_ids.element_type, slice_shape)
    parents = child.input(step_ids.element_type, slice_shape)
    time = child.input(i64, PartialShape([]))
    running = child.Less(time, limits)
    found = child.Where(running, child.GatherElements(ids, beam, axis=1), end)
    parent = child.cast(child.GatherElements(parents, beam, axis=1), i64)
    states = [child.Where(running, parent, beam), child.Identity(limits), child.Identity(end)]
    body = child.body([beam, limits, end, ids, parents, time], [*states, found], "step")

    *_, tokens = graph.node(
        "Scan",
        first,
        lengths,
        end_token,
        step_ids,
        parent_ids,
        times,
        outputs=4,
        element_type=[i64, i64, end_token.element_type, step_ids.element_type],
        body=body,
        num_scan_inputs=3,
        scan_input_directions=[1, 1, 1],
        scan_output_directions=[1],
    )
    ended = graph.CumSum(graph.cast(graph.Equal(tokens, end_token), i64), 0)
    return graph.Where(graph.Greater(ended, 0), end_token, tokens)
