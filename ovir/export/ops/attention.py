"""ScaledDotProductAttention."""

from __future__ import annotations

from ovir.core.element_types import boolean, f32, f64
from ovir.core.shapes import Dimension
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.ops.attention import ScaledDotProductAttention

_ABSORBED = 1e3
"""The number below which adding it to the scores does not change their differences much."""


@exports(
    ScaledDotProductAttention,
    to="Attention from opset 23 on; for other types, ranks and inputs MatMul, Add or Where, Softmax and MatMul",
    limits="where Attention computes them, rows that attend to nothing are 0, and masked scores of +inf count",
)
def attention(
    graph: Graph,
    op: ScaledDotProductAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    scale: Tensor | None = None,
    sink: Tensor | None = None,
) -> Tensor | None:
    """Export as Attention where it takes such inputs."""
    if query.element_type == f64 or sink is not None:
        return None
    if op.causal or (mask is not None and _is_neutral(mask)):
        mask = None
    element_type = query.element_type
    query, key, value = (graph.shaped(graph.cast(t, f32), t.shape) for t in (query, key, value))
    if mask is not None and mask.element_type != boolean:
        mask = graph.shaped(graph.cast(mask, f32), mask.shape)
    factor = None if scale is None else scale.number
    has_scale = scale is None or factor is not None
    if not (graph.has("Attention") and has_scale and _alike(query, key, value)) or not _may_fit(query, key, mask):
        return None
    mask = None if mask is None else _expanded(graph, query, key, mask)
    causal = 1 if op.causal else None
    return graph.cast(graph.Attention(query, key, value, mask, is_causal=causal, scale=factor), element_type)


def _is_neutral(mask: Tensor) -> bool:
    """Return whether a mask changes no weight.

    It is 0 or true, or adds the same number to all scores; a large number would round the scores away.
    """
    number = mask.number
    if number is None or mask.element_type == boolean:
        return number == 1
    return abs(number) < _ABSORBED


# ----- Attention


def _alike(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Return whether batches and heads are known to be equal, as Attention needs them."""
    if any(tensor.rank != 4 for tensor in (query, key, value)):
        return False
    return all(_same(tensor.shape[axis], query.shape[axis]) for tensor in (key, value) for axis in (0, 1))


def _same(a: Dimension, b: Dimension) -> bool:
    return a.length == b.length if a.is_static and b.is_static else a.symbol != 0 and a.symbol == b.symbol


def _may_fit(query: Tensor, key: Tensor, mask: Tensor | None) -> bool:
    """Return whether Attention takes a mask once it is expanded to all queries and keys."""
    if mask is None:
        return True
    if mask.rank is None or not 2 <= mask.rank <= 4:
        return False
    targets = [*query.shape.slice(0, 3), key.shape[2]][4 - mask.rank :]
    lead = zip(mask.shape, targets[:-2], strict=False)
    rows, expected = mask.shape[-2], query.shape[2]
    is_wider = expected.contains(1) and expected.is_static and not (rows.is_static and rows.length == 1)
    return not is_wider and all(_same(d, t) or (d.is_static and d.length == 1) for d, t in lead)


def _expanded(graph: Graph, query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
    """Return the mask with a row for each query and a column for each key."""
    if _same(mask.shape[-2], query.shape[2]) and _same(mask.shape[-1], key.shape[2]):
        return mask
    return graph.Expand(mask, graph.vector([graph.size_of(query, 2), graph.size_of(key, 2)]))
