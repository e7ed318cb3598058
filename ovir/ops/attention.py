"""ScaledDotProductAttention: softmax(query x key^T) x value, computed block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod, sqrt
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.dimensions import UNKNOWN, Dimension
from ovir.core.element_types import ElementType, boolean
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.fast.base.binding import Binder, Call, call_elementwise, call_shares
from ovir.fast.base.packed import SHARED
from ovir.fast.base.passes import number
from ovir.fast.base.products import readable
from ovir.fast.base.sums import scratch_like
from ovir.kernels.blocked import compute_dtype
from ovir.kernels.coalesce import coalesced, memory_order
from ovir.kernels.parallel import run_blocks, threads
from ovir.ops.base.attributes import attribute
from ovir.ops.base.domains import ONE, by_input
from ovir.ops.base.operator import Operator
from ovir.ops.base.registry import operator
from ovir.ops.base.traits import InnerStep
from ovir.ops.softmax import exponentials, redo_if_lost

_BLOCK = 1 << 20
"""The number of scores held at a time: a block of heads, or of rows of one head if a head is larger."""
_PER_THREAD = 1 << 16
# Scores for which blocks do not pay.
_AT_ONCE = 1 << 14
# The same for bound calls, whose scores stay in a core's cache from pass to pass, and the least number of rows.
_BOUND_BLOCK = 1 << 17
_LEAST_ROWS = 16
# Rows of a block of causal attention: fewer rows skip more keys that none of them sees.
_CAUSAL_ROWS = 128


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
        if sink is not None:
            per_row = batch + PartialShape([rows, 1])
            both = per_row.broadcast_with(sink.shape)
            fits = both is not None and both.compatible(per_row)
            self.require(fits, "sink of shape {} cannot be broadcast to {}, one number per row", sink.shape, per_row)
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
        # Products over no features are 0, whatever the factor.
        factor = 1 / sqrt(max(query.shape[-1], 1)) if scale is None else float(scale.item())
        is_small = prod(query.shape[:-1]) * key.shape[-2] <= _AT_ONCE
        if is_small and not self.causal and sink is None and computed == query.dtype:
            return _attention(query * computed.type(factor), key, value, bias, out)
        batch = np.broadcast_shapes(
            query.shape[:-2], key.shape[:-2], value.shape[:-2], () if bias is None else bias.shape[:-2]
        )
        keys = key.shape[-2]
        rows = query.shape[-2] if bias is None else max(query.shape[-2], bias.shape[-2])
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

    has_steps = True

    def run_in_steps(self, step: InnerStep, *inputs: Array) -> Array:
        query, key, value = inputs[:3]
        mask, scale, sink = (*inputs[3:], None, None, None)[:3]
        computed = compute_dtype(query.dtype)
        bias = None if self.causal or mask is None else _bias(mask, computed)
        factor = computed.type(1 / sqrt(max(query.shape[-1], 1)) if scale is None else scale.item())
        batch = np.broadcast_shapes(*(x.shape[:-2] for x in (query, key, value, bias) if x is not None))
        rows = query.shape[-2] if bias is None else max(query.shape[-2], bias.shape[-2])
        keys = key.shape[-2]
        q, k, v = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (query, key, value))
        biases = None if bias is None else np.broadcast_to(bias, (*batch, rows, keys))
        sinks = None if sink is None else np.broadcast_to(sink.astype(computed), (*batch, rows, 1))
        out = np.empty((*batch, rows, value.shape[-1]), query.dtype)
        for head in np.ndindex(batch):
            product = np.matmul(q[head].astype(computed) * factor, k[head].T.astype(computed))
            scores = step("scores", head, np.array(np.broadcast_to(product, (rows, keys))))
            if biases is not None:
                scores = step("masked scores", head, scores + biases[head])
            elif self.causal:
                scores += np.triu(np.full(scores.shape, -np.inf, computed), 1)
            total = _exponentials(scores[None], None if sinks is None else sinks[head][None])[0]
            out[head] = np.matmul(step("weights", head, scores / total), v[head].astype(computed))
        return out

    def bind(self, binder: Binder, *inputs: Array) -> bool:
        query, key, value = inputs[:3]
        mask, scale, sink = (inputs[i] if i < len(inputs) else None for i in (3, 4, 5))
        if (
            query.dtype not in (np.float32, np.float64)
            or sink is not None
            or 0 in (*query.shape, *binder.output_shape())
        ):
            return False
        if (scale is not None and not binder.is_constant(4)) or not key.size:
            return False
        factor = 1 / sqrt(query.shape[-1]) if scale is None else float(scale.item())
        rows, keys = binder.output_shape()[-2], key.shape[-2]
        out = binder.output(order=memory_order(query) if query.ndim == len(binder.output_shape()) else None)
        batch = out.shape[:-2]
        scaled = query if factor == 1 else scratch_like(binder, query)
        if scaled is not query:
            call_elementwise(binder, np.multiply, query, number(factor, query), scaled)
        q = np.broadcast_to(readable(binder, scaled), (*batch, rows, query.shape[-1]))
        k, v = readable(binder, key.swapaxes(-1, -2)), readable(binder, value)
        totals = binder.scratch((*batch, rows, 1), query.dtype)
        lead = next((axis for axis, size in enumerate(batch) if size > 1), len(batch) - 1)
        start = (0,) * lead
        heads = _Heads(
            q[start],
            np.broadcast_to(k, (*batch, *k.shape[-2:]))[start],
            np.broadcast_to(v, (*batch, *v.shape[-2:]))[start],
            totals[start],
            out[start],
            np.ones((keys, 1), query.dtype),
        )
        bias, weights = (
            None if m is None else np.broadcast_to(m, (*batch, rows, keys))[start]
            for m in self._bound_mask(binder, mask, query.dtype)
        )
        heads.bind(binder, bias, weights, causal=self.causal)
        call_elementwise(binder, np.divide, out, totals, out)
        binder.call(redo_if_lost, totals.reshape(-1), self.run, inputs, out)
        return True

    def _bound_mask(
        self, binder: Binder, mask: Array | None, dtype: np.dtype[Any]
    ) -> tuple[Array | None, Array | None]:
        """Return what is added to the scores, and what their exponentials are multiplied with."""
        if mask is None or self.causal:
            return None, None
        if mask.dtype != np.bool_:
            is_none = mask.size == 1 and binder.is_constant(3) and not mask.any()
            return None if is_none else mask, None
        if binder.is_constant(3):
            return None, binder.prepared("mask", lambda: mask.astype(dtype))
        weights = binder.scratch(mask.shape, dtype)
        binder.call(np.copyto, weights, mask)
        return None, weights


@dataclass(frozen=True)
class _Heads:
    """The arrays of bound attention, whose first axis is the longest part of the batch: queries [heads, ..., rows,
    features], keys with the last two axes swapped, values, sums of exponentials and results."""

    queries: Array
    keys: Array
    values: Array
    totals: Array
    out: Array
    ones: Array
    """As many rows of a single 1 as there are keys."""

    def bind(self, binder: Binder, bias: Array | None, weights: Array | None, *, causal: bool) -> None:
        """Bind the products, the exponentials of the scores and their sums, block by block; threads share blocks."""
        *heads, rows, _ = self.queries.shape
        keys = self.keys.shape[-1]
        height = min(rows, _CAUSAL_ROWS) if causal else rows
        each = prod(heads[1:]) * keys
        height = min(height, max(_BOUND_BLOCK // each, _LEAST_ROWS))
        count = min(max(_BOUND_BLOCK // (each * height), 1), heads[0])
        work = self.out.size * keys * 2
        workers = max(min(work // SHARED, threads()), 1)
        count = min(count, -(-heads[0] // workers))
        places = [
            (slice(head, min(head + count, heads[0])), slice(row, min(row + height, rows)))
            for head in range(0, heads[0], count)
            for row in range(0, rows, height)
        ]
        workers = min(workers, len(places))
        shares: list[list[Call]] = []
        for first in range(workers):
            memory = binder.scratch((count * each * height,), self.out.dtype)
            share = [
                call for h, r in places[first::workers] for call in self._block(h, r, memory, bias, weights, causal)
            ]
            shares.append(share)
        call_shares(binder, shares)

    def _block(
        self, h: slice, r: slice, memory: Array, bias: Array | None, weights: Array | None, causal: bool
    ) -> list[Call]:
        """Return the calls for some heads and some rows."""
        # Keys behind the last of these queries are masked for all of them.
        seen = min(r.stop, self.keys.shape[-1]) if causal else self.keys.shape[-1]
        queries, out = self.queries[h][..., r, :], self.out[h][..., r, :]
        shape = (*queries.shape[:-1], seen)
        scores = memory[: prod(shape)].reshape(shape)
        calls: list[Call] = [(np.matmul, (queries, self.keys[h][..., :seen], scores))]
        if bias is not None:
            b, s = coalesced(bias[h][..., r, :], scores)
            calls.append((np.add, (s, b, s)))
        calls.append((exponentials, (scores, scores, -1)))
        if weights is not None:
            w, s = coalesced(weights[h][..., r, :], scores)
            calls.append((np.multiply, (s, w, s)))
        if causal and r.start < seen:
            past = _past(r.stop - r.start, seen - r.start, scores.dtype)
            calls.append((np.multiply, (scores[..., r.start :], past, scores[..., r.start :])))
        totals, flat = self.totals[h][..., r, :], scores
        if totals.flags.c_contiguous:
            totals, flat = totals.reshape(-1, 1), scores.reshape(-1, seen)
        calls.append((np.matmul, (flat, self.ones[:seen], totals)))
        calls.append((np.matmul, (scores, self.values[h][..., :seen, :], out)))
        return calls


@lru_cache(maxsize=16)
def _past(rows: int, keys: int, dtype: np.dtype[Any]) -> Array:
    """Return 1 for each key that a query may attend to, else 0; many blocks share it."""
    past = np.tri(rows, keys, dtype=dtype)
    past.setflags(write=False)
    return past


def _attention(query: Array, key: Array, value: Array, bias: Array | None, out: Array | None) -> Array:
    """Return softmax(query x key^T + bias) x value, all at once."""
    with np.errstate(all="ignore"):  # sums of masked rows
        scores = np.matmul(query, key.swapaxes(-1, -2))
        if bias is not None:
            scores = scores + bias
        np.subtract(scores, np.maximum.reduce(scores, -1, keepdims=True, initial=-np.inf), out=scores)
        np.exp(scores, out=scores)
        total = np.add.reduce(scores, -1, keepdims=True)
        return np.divide(np.matmul(scores, value), total, out=out)


def _exponentials(scores: Array, logits: Array | None) -> Array:
    """Turn scores [heads, rows, keys] into e^(score - maximum of the row) in place, and return the sums of the rows."""
    heads, rows, keys = scores.shape
    total = np.empty((heads, rows, 1), scores.dtype)
    flat, sums = scores.reshape(heads * rows, keys), total.reshape(-1, 1)
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
    heads = 1 if same else prod(batch)
    return np.broadcast_to(x, (1,) * (max(x.ndim - 2, 0)) + shape if same else batch + shape).reshape(heads, *shape)


def _part(x: Array, heads: slice) -> Array:
    return x if len(x) == 1 else x[heads]
