"""ScaledDotProductAttention."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ovir.core.element_types import boolean, f32, f64
from ovir.core.shapes import Dimension
from ovir.export.exporters import exports
from ovir.export.onnx_graph import Graph, Tensor
from ovir.export.parts import scalar, swapped
from ovir.ops.attention import ScaledDotProductAttention

_SMALL = 1 << 16
"""The number of elements up to which a causal mask is stored."""
_ABSORBED = 1e3
"""The number below which adding it to the scores does not change their differences much."""


@exports(
    ScaledDotProductAttention,
    to="Attention from opset 23 on; for other types, ranks and inputs MatMul, Add or Where, Softmax and MatMul",
    limits="rows that attend to nothing are 0 where Attention computes them",
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
) -> Tensor:
    """Export as Attention where it takes such inputs, else as products and a softmax."""
    element_type = query.element_type
    wide = f64 if element_type == f64 else f32
    if op.causal or (mask is not None and _is_neutral(mask, sink)):
        mask = None
    query, key, value = (graph.shaped(graph.cast(t, wide), t.shape) for t in (query, key, value))
    if mask is not None and mask.element_type != boolean:
        mask = graph.shaped(graph.cast(mask, wide), mask.shape)
    factor = None if scale is None else scalar(scale)
    one = graph.has("Attention") and wide == f32 and sink is None and (scale is None or factor is not None)
    if one and _alike(query, key, value) and (mask is None or _fits(query, key, mask)):
        mask = None if mask is None else _expanded(graph, query, key, mask)
        causal = 1 if op.causal else None
        result = graph.Attention(query, key, value, mask, is_causal=causal, scale=factor)
        return graph.cast(result, element_type)
    scores = graph.MatMul(_scaled(graph, query, scale), swapped(graph, key))
    if op.causal:
        scores = graph.Where(_causal(graph, query, key), scores, -np.inf)
    elif mask is not None:
        is_choice = mask.element_type == boolean
        scores = graph.Where(mask, scores, -np.inf) if is_choice else graph.Add(scores, mask)
    weights = graph.Softmax(scores, axis=-1) if sink is None else _beside_sink(graph, scores, graph.cast(sink, wide))
    return graph.cast(graph.MatMul(weights, value), element_type)


def _is_neutral(mask: Tensor, sink: Tensor | None) -> bool:
    """Return whether a mask changes no weight.

    It is 0 or true, or adds the same number to all scores. The latter changes the weight of a sink, and a large number
    would round the scores away.
    """
    number = scalar(mask)
    if number is None or mask.element_type == boolean:
        return number == 1
    return number == 0 or (sink is None and abs(number) < _ABSORBED)


# ----- Attention


def _alike(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Return whether batches and heads are known to be equal, as Attention needs them."""
    if any(tensor.rank != 4 for tensor in (query, key, value)):
        return False
    return all(_same(tensor.shape[axis], query.shape[axis]) for tensor in (key, value) for axis in (0, 1))


def _same(a: Dimension, b: Dimension) -> bool:
    return a.length == b.length if a.is_static and b.is_static else a.symbol != 0 and a.symbol == b.symbol


def _fits(query: Tensor, key: Tensor, mask: Tensor) -> bool:
    """Return whether Attention takes a mask once it is expanded to all queries and keys."""
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
    return graph.Expand(mask, graph.Concat(_size(graph, query, 2), _size(graph, key, 2), axis=0))


def _size(graph: Graph, tensor: Tensor, axis: int) -> Tensor:
    """Return a size as a list of one number; negative axes count from the end."""
    return graph.Shape(tensor, start=axis, end=axis + 1 or None)


# ----- parts


def _scaled(graph: Graph, query: Tensor, scale: Tensor | None) -> Tensor:
    if scale is not None:
        number = scalar(scale)
        if number == 1:
            return query
        return graph.Mul(query, graph.Reshape(graph.cast(scale, query.element_type), []) if number is None else number)
    features = query.shape[-1]
    if features.is_static:
        return graph.Mul(query, 1 / sqrt(max(features.length, 1)))
    return graph.Div(query, graph.Sqrt(graph.cast(_size(graph, query, -1), query.element_type)))


def _causal(graph: Graph, query: Tensor, key: Tensor) -> Tensor:
    """Return the mask of the keys that each query attends to: those up to its own position."""
    rows, keys = query.shape[-2], key.shape[-2]
    if rows.is_static and keys.is_static and rows.length * keys.length <= _SMALL:
        return graph.constant(np.tri(rows.length, keys.length, dtype=np.bool_))
    ends = (graph.Squeeze(_size(graph, tensor, -2), [0]) for tensor in (query, key))
    own, others = (graph.Range(0, end, 1) for end in ends)
    return graph.LessOrEqual(others, graph.Unsqueeze(own, [1]))


def _beside_sink(graph: Graph, scores: Tensor, sink: Tensor) -> Tensor:
    """Return the softmax of scores and a sink, without the weight of the sink."""
    shape = graph.Shape(scores)
    column = graph.Expand(sink, graph.Concat(graph.Slice(shape, [0], [-1]), [1], axis=0))
    weights = graph.Softmax(graph.Concat(scores, column, axis=-1), axis=-1)
    return graph.Slice(weights, [0], [-1], [-1])
