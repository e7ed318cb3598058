"""Attention by blocks of heads and rows, whose scores stay in a cache."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod, sqrt
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.fast_calls import Call, number
from ovir.core.parallel import threads
from ovir.fast.base.binder_protocol import Binder, call_elementwise, call_shares, is_real
from ovir.fast.base.coalesce import coalesced, memory_order
from ovir.fast.base.products import SHARED, readable
from ovir.fast.base.sums import scratch_like
from ovir.fast.normalization import exponentials, redo_if_lost
from ovir.fast.registry import fast, fast_kernel, run_with
from ovir.ops.attention import GroupedAttention, ScaledDotProductAttention, attention_bias

_BLOCK_SCORES = 1 << 17
"""The number of scores of a block, which stay in a core's cache from pass to pass."""
_LEAST_ROWS = 16
"""The number of rows that a block has at least."""
_FEW_SCORES = 1 << 18
"""The number of scores that are computed at once for all heads."""
_F32 = np.dtype(np.float32)


@fast_kernel(ScaledDotProductAttention)
def few_scores(op: ScaledDotProductAttention) -> Callable[..., Array]:
    return partial(_attend, op)


@fast_kernel(GroupedAttention)
def few_grouped_scores(op: GroupedAttention) -> Callable[..., Array]:
    attention = copy(op.replaced)
    vars(attention)["run"] = few_scores(op.replaced)
    return run_with(op, replaced=attention)  # type: ignore[return-value]  # it has one output


def _attend(op: ScaledDotProductAttention, *inputs: Array) -> Array:
    """Compute what ``run`` does, by the same functions. If the scores are few, it broadcasts nothing and has no loop,
    which took most of the time for one query and the keys of a cache."""
    query, key, value = inputs[:3]
    mask, scale = (inputs[i] if i < len(inputs) else None for i in (3, 4))
    keys = key.shape[-2]
    is_simple = not op.causal and len(inputs) < 6 and query.dtype == key.dtype == value.dtype == _F32
    fits = mask is None or not mask.ndim or mask.shape[-1] == keys
    if not (is_simple and fits and query.size and 0 < query.size // query.shape[-1] * keys <= _FEW_SCORES):
        return op.run(*inputs)
    scores = np.matmul(query * np.float32(1 / sqrt(query.shape[-1]) if scale is None else scale.item()), key.mT)
    if mask is not None:
        scores = scores + attention_bias(mask, scores.dtype)
    weights = np.exp(scores - np.maximum.reduce(scores, -1, keepdims=True))
    result: Array = np.matmul(weights / np.add.reduce(weights, -1, keepdims=True), value)
    return result


@fast(ScaledDotProductAttention, GroupedAttention, in_f32=True)
def attention(op: ScaledDotProductAttention | GroupedAttention, binder: Binder, *inputs: Array) -> bool:
    if isinstance(op, GroupedAttention):
        inputs = op.grouped(*inputs)
    query, key, value = inputs[:3]
    mask, scale, sink = (inputs[i] if i < len(inputs) else None for i in (3, 4, 5))
    if not is_real(query) or sink is not None or 0 in (*query.shape, *binder.output_shape()):
        return False
    if (scale is not None and not binder.is_constant(4)) or not key.size:
        return False
    factor = 1 / sqrt(query.shape[-1]) if scale is None else float(scale.item())
    given, shape = binder.inputs[0], binder.output_shape()
    whole = binder.output(order=memory_order(given) if given.ndim == len(shape) else None)
    out = whole
    if isinstance(op, GroupedAttention):
        rows_of_head = whole.shape[2:3] if query.ndim == 5 else ()
        out = whole.reshape(len(whole), *query.shape[1:3], *rows_of_head, whole.shape[-1])
    rows, keys = out.shape[-2], key.shape[-2]
    batch = out.shape[:-2]
    scaled = query if factor == 1 else scratch_like(binder, query)
    if scaled is not query:
        call_elementwise(binder, np.multiply, query, number(factor, query), scaled)
    q = np.broadcast_to(readable(binder, scaled), (*batch, rows, query.shape[-1]))
    k, v = readable(binder, key.swapaxes(-1, -2)), readable(binder, value)
    totals = binder.scratch((*batch, rows, 1), query.dtype)
    lead = next((axis for axis, size in enumerate(batch) if size > 1), 0)
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
        for m in _bound_mask(op, binder, mask, query.dtype)
    )
    if heads.bind(binder, bias, weights, causal=op.causal) < keys:
        binder.call(lose_if_unmasked, query, key, value, factor, totals)
    call_elementwise(binder, np.divide, out, totals, out)
    binder.call(lose_if_overflown, whole.transpose(memory_order(whole)), totals)
    binder.call(redo_if_lost, totals.reshape(-1), op.run, binder.inputs, whole)
    return True


def _bound_mask(
    op: ScaledDotProductAttention | GroupedAttention, binder: Binder, mask: Array | None, dtype: np.dtype[Any]
) -> tuple[Array | None, Array | None]:
    """Return the array to add to the scores, and the array to multiply their exponentials with; None for no array."""
    if mask is None or op.causal:
        return None, None
    if mask.dtype != np.bool_:
        is_none = mask.size == 1 and binder.is_constant(3) and not mask.any()
        return None if is_none else mask, None
    if binder.is_constant(3):
        return None, binder.prepared(f"mask {mask.shape}", lambda: mask.astype(dtype))
    weights = binder.scratch(mask.shape, dtype)
    binder.call(np.copyto, weights, mask)
    return None, weights


def lose_if_unmasked(query: Array, key: Array, value: Array, factor: float, totals: Array) -> None:
    """Mark the results as lost if a key that blocks pass over may count although it is masked.

    A masked score is -inf and its weight 0, unless the score is NaN or too large a number, or the value is not finite.
    """
    lengths = _length(query) * _length(key) * max(abs(factor), 1)  # no product of two rows is larger
    if not (lengths < np.finfo(totals.dtype).max and _length(value) < np.inf):
        totals[...] = np.nan


def lose_if_overflown(out: Array, totals: Array) -> None:
    """Mark the results as lost if one is not finite: large values, times exponentials that are not divided by their
    sum yet, may have been too large."""
    flat = out.reshape(-1)
    if not np.dot(flat, flat) < np.inf:
        totals[...] = np.nan


def _length(array: Array) -> float:
    """Return the length of all elements as a vector, which is not finite if one of them is not."""
    flat = array.transpose(memory_order(array)).reshape(-1)
    return sqrt(np.dot(flat, flat))


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

    def bind(self, binder: Binder, bias: Array | None, weights: Array | None, *, causal: bool) -> int:
        """Bind the products, the exponentials of the scores and their sums, block by block; threads share blocks.

        Return the number of keys that all blocks read.
        """
        *heads, rows, _ = self.queries.shape
        keys = self.keys.shape[-1]
        each = prod(heads[1:]) * keys
        height = min(rows, max(_BLOCK_SCORES // each, _LEAST_ROWS))
        count = min(max(_BLOCK_SCORES // (each * height), 1), heads[0])
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
        return self._seen(places[0][1].stop, causal=causal)

    def _seen(self, end: int, *, causal: bool) -> int:
        """Return the number of keys that a block of rows up to ``end`` reads: later ones are masked for all of them."""
        count: int = self.keys.shape[-1]
        return min(end, count) if causal else count

    def _block(
        self, h: slice, r: slice, memory: Array, bias: Array | None, weights: Array | None, causal: bool
    ) -> list[Call]:
        """Return the calls for some heads and some rows."""
        seen = self._seen(r.stop, causal=causal)
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
