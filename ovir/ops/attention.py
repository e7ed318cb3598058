"""ScaledDotProductAttention: softmax(query x key^T) x value, computed block by block."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod, sqrt
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import UNKNOWN, Dimension
from ovir.core.element_types import ElementType, boolean
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.kernels.blocked import compute_dtype
from ovir.kernels.parallel import run_blocks
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import ONE, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator

_BLOCK = 1 << 20
"""The number of scores held at a time: a block of heads, or of rows of one head if a head is larger."""
_PER_THREAD = 1 << 16


@operator("ScaledDotProductAttention", opset=13)
class ScaledDotProductAttention(Operator):
    """softmax(query x key^T * scale + bias) x value; query [N, ..., L, E], key [N, ..., S, E], value [N, ..., S, Ev].

    The batch dimensions are broadcast. ``scale`` defaults to 1 / sqrt(E). With ``causal``, query i attends to keys 0 to
    i, and the mask is ignored. Otherwise a boolean mask selects what is attended to, and a numeric mask is added. Rows
    that attend to nothing are NaN. A sixth input, which OpenVINO has but the specification lacks, holds the logit of a
    sink per row: it enters the sum of the softmax and contributes no value.

    Source: ScaledDotProductAttention-13
    """

    domains = by_input(attention_mask=ONE)
    causal: bool = attribute(default=False, specified=True)

    def multiply_accumulates(self, inputs: Mapping[str, PartialShape], output: PartialShape) -> Dimension:
        """Count the products of queries and keys, and of weights and values."""
        query, key, value = (inputs[name] for name in ("query", "key", "value"))
        if query.rank is None or value.rank is None or key.rank is None or min(query.rank, key.rank) < 2:
            return UNKNOWN
        return query.slice(None, -1).size() * key[-2] * (query[-1] + value[-1])

    def infer(
        self,
        query: TensorType,
        key: TensorType,
        value: TensorType,
        attention_mask: TensorType | None = None,
        scale: TensorType | None = None,
        sink: TensorType | None = None,
    ) -> TensorType:
        element_type = self._types(query, key, value, attention_mask, scale, sink)
        tensors = {"query": query.shape, "key": key.shape, "value": value.shape}
        for name, shape in tensors.items():
            self.require_rank_at_least(name, shape, 3)
        self.merge_dims("features", query=(query.shape, -1), key=(key.shape, -1))
        keys = self.merge_dims("keys", key=(key.shape, -2), value=(value.shape, -2))
        batch, rows = query.shape.slice(stop=-2), query.shape[-2]
        for name in ("key", "value"):
            if tensors[name].rank is not None:
                batch = self._broadcast(batch, tensors[name].slice(stop=-2), name)
        mask = PartialShape([]) if attention_mask is None or self.causal else attention_mask.shape
        if mask.rank:
            self.require(mask.rank >= 2, "attention_mask must have rank 2 or more, or be a scalar, got shape {}", mask)
            target = PartialShape([rows, keys])
            both = target.broadcast_with(mask.slice(start=-2))
            if both is None or not both[1].compatible(keys):
                self.fail("attention_mask of shape {} cannot be broadcast to {} queries by {} keys", mask, *target)
            rows = both[0]
            batch = self._broadcast(batch, mask.slice(stop=-2), "attention_mask")
        if scale is not None:
            self.require_one_element("scale", scale.shape)
        return TensorType(element_type, batch + PartialShape([rows, value.shape[-1]]))

    def _types(
        self, query: TensorType, key: TensorType, value: TensorType, mask: TensorType | None, *rest: TensorType | None
    ) -> ElementType:
        types = {"query": query.element_type, "key": key.element_type, "value": value.element_type}
        if mask is not None and mask.element_type != boolean:
            types["attention_mask"] = mask.element_type
        types |= {name: t.element_type for name, t in zip(("scale", "sink"), rest, strict=True) if t is not None}
        merged = self.merge_types(*types.values(), names=list(types))
        self.require_real("query", merged)
        return merged

    def _broadcast(self, batch: PartialShape, other: PartialShape, name: str) -> PartialShape:
        both = batch.broadcast_with(other)
        if both is None:
            self.fail(
                "the batch dimensions {} of {} cannot be broadcast with {} of the other inputs", other, name, batch
            )
        return both

    def run(
        self,
        query: Array,
        key: Array,
        value: Array,
        attention_mask: Array | None = None,
        scale: Array | None = None,
        sink: Array | None = None,
        *,
        out: Array | None = None,
    ) -> Array:
        computed = compute_dtype(query.dtype)
        bias = None if self.causal or attention_mask is None else _bias(attention_mask, computed)
        batch = np.broadcast_shapes(
            query.shape[:-2], key.shape[:-2], value.shape[:-2], () if bias is None else bias.shape[:-2]
        )
        keys = key.shape[-2]
        rows = query.shape[-2] if bias is None else max(query.shape[-2], bias.shape[-2])
        # Products over no features are 0, whatever the factor.
        factor = 1 / sqrt(max(query.shape[-1], 1)) if scale is None else float(scale.item())
        if out is None:
            out = np.empty((*batch, rows, value.shape[-1]), query.dtype)
        if not out.size:
            return out
        q, k, v = (_heads(x.astype(computed, copy=False), batch, x.shape[-2:]) for x in (query, key, value))
        if q.shape[1] != rows:
            q = np.broadcast_to(q, (len(q), rows, q.shape[2]))
        k = k.swapaxes(1, 2)
        bias = None if bias is None else _heads(bias, batch, (rows, keys))
        sinks = None if sink is None else _heads(sink.astype(computed, copy=False), batch, (rows, 1))
        result = out.reshape(-1, *out.shape[-2:])
        heads = len(result)
        # As many heads as fit, or as many rows of one head.
        count = min(max(_BLOCK // max(rows * keys, 1), 1), heads)
        height = min(max(_BLOCK // max(keys, 1), 32), rows)
        buffer = np.empty(count * height * keys, computed)

        def block(h: slice, r: slice) -> None:
            # Keys behind the last of these queries are masked for all of them.
            seen = slice(min(r.stop, keys)) if self.causal else slice(keys)
            shape = (len(result[h]), r.stop - r.start, seen.stop)
            scores = buffer[: prod(shape)].reshape(shape)
            np.matmul(_part(q, h)[:, r] * factor, _part(k, h)[:, :, seen], out=scores)
            if bias is not None:
                scores += _part(bias, h)[:, r]
            elif self.causal:
                scores += np.triu(np.full(scores.shape[1:], -np.inf, computed), r.start + 1)
            logits = None if sinks is None else np.broadcast_to(_part(sinks, h)[:, r], (*scores.shape[:2], 1))
            total = _exponentials(scores, logits)
            product = np.matmul(scores, _part(v, h)[:, seen])
            np.divide(product, total, out=product)
            result[h, r] = product

        with np.errstate(all="ignore"):  # sums of masked rows
            for head in range(0, heads, count):
                for row in range(0, rows, height):
                    block(slice(head, min(head + count, heads)), slice(row, min(row + height, rows)))
        return out


def _exponentials(scores: Array, logits: Array | None) -> Array:
    """Turn scores [heads, rows, keys] into e^(score - maximum of the row) in place, and return the sums of the rows."""
    keys = scores.shape[2]
    total = np.empty((*scores.shape[:2], 1), scores.dtype)
    flat, sums = scores.reshape(-1, keys), total.reshape(-1, 1)
    sinks = None if logits is None else logits.reshape(-1, 1)

    def work(start: int, stop: int) -> None:
        part = flat[start:stop]
        with np.errstate(all="ignore"):
            top = part.max(1, keepdims=True, initial=-np.inf)
            if sinks is not None:
                np.maximum(top, sinks[start:stop], out=top)
            np.subtract(part, top, out=part)
            np.exp(part, out=part)
            np.sum(part, 1, keepdims=True, out=sums[start:stop])
            if sinks is not None:
                sums[start:stop] += np.exp(sinks[start:stop] - top)

    # BLAS has its own threads, so only the work between the products is divided here.
    run_blocks(work, len(flat), max(_PER_THREAD // max(keys, 1), 1))
    return total


def _bias(mask: Array, dtype: np.dtype[Any]) -> Array | None:
    """Return the term added to the scores, or None."""
    if mask.dtype == np.bool_:
        return np.where(mask, 0, -np.inf).astype(dtype)
    if mask.size == 1 and not mask.any():
        return None
    return np.atleast_2d(mask.astype(dtype, copy=False))


def _heads(x: Array, batch: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """Return x broadcast to one matrix per head, or to a single matrix for all heads."""
    same = prod(x.shape[:-2]) == 1
    return np.broadcast_to(x, (1,) * (max(x.ndim - 2, 0)) + shape if same else batch + shape).reshape(-1, *shape)


def _part(x: Array, heads: slice) -> Array:
    return x if len(x) == 1 else x[heads]
