"""ScaledDotProductAttention: softmax(query x key^T) x value."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, boolean
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import Outputs, TensorType
from ovir.kernels.precision import compute_dtype
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import ONE, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.replacement import Replacement
from ovir.ops.base.traits import InnerStep


@operator("ScaledDotProductAttention", opset=13)
class ScaledDotProductAttention(Operator):
    """softmax(query x key^T * scale + bias) x value.

    The batch dimensions are broadcast. ``scale`` defaults to 1 / sqrt(E). With ``causal``, query i attends to keys 0 to
    i, and the mask is ignored. Otherwise a boolean mask selects what is attended to, and a numeric mask is added. Rows
    that attend to nothing are NaN. A sixth input, which OpenVINO has but the specification lacks, holds the logit of a
    sink per row: it enters the sum of the softmax and contributes no value.

    >>> query = np.float32([[[1, 0]]])
    >>> key = np.float32([[[1, 0], [0, 1]]])
    >>> ops.scaled_dot_product_attention(query, key, np.float32([[[10], [20]]]))
    [[[13.302385]]]
    """

    takes = (
        "query T[..., ?, L, E]; key T[..., ?, S, E]; value T[..., ?, S, Ev]; ?attention_mask any[...]; ?scale T[]|[1]; "
        "?sink T[...]; T real"
    )
    gives = "T[Batch..., Rows, Ev]"
    recipe = (
        "T narrow, query T N ... L E, key T N ... S E, value T N ... S V, attention_mask T|boolean L S, sink T L 1; "
        "E=1|4|8"
    )
    arguments = "query key value attention_mask= scale= causal="
    fillers = (("attention_mask", 0, "query"),)
    domains = by_input(attention_mask=ONE)
    guards_sizes = True
    causal: bool = attribute(default=False, specified=True)

    def multiply_accumulates(self, inputs: Sequence[TensorType], output: PartialShape) -> Dimension:
        """Count the products of queries and keys, and of weights and values."""
        query, key, value = (tensor.shape for tensor in inputs[:3])
        return query.slice(None, -1).size() * key[-2] * (query[-1] + value[-1])

    def infer(
        self,
        query: TensorType,
        key: TensorType,
        value: TensorType,
        attention_mask: TensorType | None = None,
        scale: TensorType | None = None,
        sink: TensorType | None = None,
    ) -> Outputs:
        found = self.solved(query, key, value, attention_mask, scale, sink)
        if attention_mask is not None and attention_mask.element_type != boolean:
            self.shared_type(query=query, attention_mask=attention_mask)
        keys, rows, batch = found["S"], found["L"], query.shape.slice(stop=-2)
        for name, tensor in (("key", key), ("value", value)):
            if tensor.shape.rank is not None:
                batch = self._broadcast(batch, tensor.shape.slice(stop=-2), name)
        mask = PartialShape([]) if attention_mask is None or self.causal else attention_mask.shape
        if mask.rank:
            self.require(mask.rank >= 2, "attention_mask must have rank 2 or more, or be a scalar, got shape {}", mask)
            target = PartialShape([rows, keys])
            both = target.broadcast_with(mask.slice(start=-2))
            if both is None or not both[1].compatible(keys):
                self.fail("attention_mask of shape {} cannot be broadcast to {} queries by {} keys", mask, *target)
            rows = both[0]
            batch = self._broadcast(batch, mask.slice(stop=-2), "attention_mask")
        if sink is not None:
            per_row = batch + PartialShape([rows, 1])
            both = per_row.broadcast_with(sink.shape)
            fits = both is not None and both.compatible(per_row)
            self.require(fits, "sink of shape {} cannot be broadcast to {}, one number per row", sink.shape, per_row)
        found.sizes["Rows"] = rows
        if batch.rank is not None:
            found.shapes["Batch"] = batch.dims
        return found.outputs()

    def _broadcast(self, batch: PartialShape, other: PartialShape, name: str) -> PartialShape:
        message = "the batch dimensions {} of {} cannot be broadcast with {} of the other inputs"
        return self.require_known(batch.broadcast_with(other), message, other, name, batch)

    def run(self, *inputs: Array) -> Array:
        return self.run_in_steps(lambda name, place, block: block, *inputs)

    has_steps = True

    def run_in_steps(
        self,
        step: InnerStep,
        query: Array,
        key: Array,
        value: Array,
        attention_mask: Array | None = None,
        scale: Array | None = None,
        sink: Array | None = None,
    ) -> Array:
        computed = compute_dtype(query.dtype)
        # Products over no features are 0, whatever the factor.
        factor = computed.type(1 / sqrt(max(query.shape[-1], 1)) if scale is None else scale.item())
        bias = None if self.causal or attention_mask is None else attention_bias(attention_mask, computed)
        batch = np.broadcast_shapes(*(x.shape[:-2] for x in (query, key, value, bias) if x is not None))
        rows = query.shape[-2] if bias is None else max(query.shape[-2], bias.shape[-2])
        keys = key.shape[-2]
        q, k, v = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (query, key, value))
        biases = None if bias is None else np.broadcast_to(bias, (*batch, rows, keys))
        sinks = None if sink is None else np.broadcast_to(sink.astype(computed), (*batch, rows, 1))
        out = np.full((*batch, rows, value.shape[-1]), np.nan, query.dtype)
        looped = next((n for n in range(len(batch)) if prod(batch[n:]) * rows * keys <= _SCORES), len(batch))
        for place in np.ndindex(batch[:looped] if keys else (0,)):
            product = np.matmul(q[place].astype(computed) * factor, k[place].swapaxes(-1, -2).astype(computed))
            scores = step("scores", place, np.array(np.broadcast_to(product, (*batch[looped:], rows, keys))))
            if biases is not None:
                scores = step("masked scores", place, scores + biases[place])
            elif self.causal:
                scores = scores + np.triu(np.full((rows, keys), -np.inf, computed), 1)
            top = scores.max(-1, keepdims=True)
            if sinks is not None:
                top = np.maximum(top, sinks[place])
            weights = np.exp(scores - top)
            total = weights.sum(-1, keepdims=True)
            if sinks is not None:
                total += np.exp(sinks[place] - top)
            out[place] = np.matmul(step("weights", place, weights / total), v[place].astype(computed))
        return out


_SCORES = 1 << 20
"""The most scores that are computed at a time, if one head does not have more."""


def attention_bias(mask: Array, dtype: np.dtype[Any]) -> Array:
    """Return the term added to the scores: a boolean mask selects what is attended to."""
    if mask.dtype == np.bool_:
        mask = np.where(mask, np.array(0, dtype), np.array(-np.inf, dtype))
    return np.atleast_2d(mask).astype(dtype, copy=False)


class GroupedAttention(Replacement[ScaledDotProductAttention]):
    """A ScaledDotProductAttention of queries [N, heads, L, E] that share keys and values.

    It reads these before they are repeated for the heads of a group: [N, groups, 1, S, E].

    No file has this operation. A plan puts it in place of one that reads repeated keys and values.
    """

    def __init__(self, op: ScaledDotProductAttention) -> None:
        """Take the place of ``op``, which has no sink."""
        super().__init__(op)
        self.causal = op.causal

    def infer(self, query: TensorType, key: TensorType, value: TensorType, *rest: TensorType) -> Any:
        heads = query.shape[1]
        repeated = (TensorType(x.element_type, PartialShape([x.shape[0], heads, *x.shape[3:]])) for x in (key, value))
        return self.replaced.infer(query, *repeated, *rest)

    def run(self, *inputs: Array) -> Array:
        try:
            result = self.replaced.run(*self.grouped(*inputs))
            rows = result.shape[-2] if result.ndim == 5 else 1
            return result.reshape(len(result), inputs[0].shape[1], rows, result.shape[-1])
        except ValueError:
            self.infer(*(TensorType(ElementType.from_dtype(x.dtype), PartialShape(x.shape)) for x in inputs))
            raise

    def grouped(self, query: Array, key: Array, value: Array, *rest: Array) -> tuple[Array, ...]:
        """Return the inputs of an attention that computes the same, which are views of these: all heads of a group are
        rows of one head if each has one row, and heads [groups, heads of a group] otherwise."""
        groups, masks, others = key.shape[1], rest[:1], rest[1:]
        is_row = (
            query.shape[-2] == 1 and not self.causal and all(mask.ndim < 2 or mask.shape[-2] == 1 for mask in masks)
        )
        if is_row:
            key, value = key[:, :, 0], value[:, :, 0]
        rest = tuple(_split_heads(mask, groups, is_row=is_row) if mask.ndim > 2 else mask for mask in masks)
        return _split_heads(query, groups, is_row=is_row), key, value, *rest, *others


def _split_heads(array: Array, groups: int, *, is_row: bool) -> Array:
    """Return the view [..., groups, heads of a group, rows, columns] of an array [..., heads, rows, columns], which has
    one head for all if it has one; without the rows if each head is one row."""
    heads = array.shape[-3]
    shape = (groups, heads // groups) if heads > 1 else (1, 1)
    return array.reshape(*array.shape[:-3], *shape, *array.shape[-1 if is_row else -2 :])
