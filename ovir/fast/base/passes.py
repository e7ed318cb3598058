"""Passes over arrays (see ``ovir.core.fast_calls``) in blocks that stay in a cache, which threads share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import dropwhile, islice
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.fast_calls import Call, Passes
from ovir.core.parallel import threads
from ovir.fast.base.binder_protocol import HEAVY, LIGHT, Binder, bind_elementwise, call_shares, is_native, parts_of
from ovir.fast.base.coalesce import coalesced, memory_order
from ovir.ops.base.elementwise import HELD_IN_BYTES

_BLOCK_ELEMENTS = 1 << 18
"""Parts of this many elements stay in a cache from pass to pass."""


def bind_passes(binder: Binder, passes: Passes, data: Array, *others: Array, heavy: bool = True) -> None:
    """Bind passes to output 0, which has the shape, the type and the memory order of ``data``, the input 0.

    Data that nothing else reads afterwards is overwritten, unless a pass reads it after another one has written. With
    an output elsewhere, PReLU of 64 channels of 112 x 112 takes 1.35 times as long.
    """
    if binder.may_overwrite(0) and _reads_first(passes, data, others):
        out = binder.overwrite(0)
    else:
        out = binder.output(order=memory_order(data))
    call_passes(binder, passes, data, *others, out, heavy=heavy)


def _reads_first(passes: Passes, data: Array, others: Sequence[Array]) -> bool:
    """Return whether passes that overwrite the data read it in no pass after the first one that writes to it."""
    x = np.empty_like(data, shape=(1,))
    y = x[:]
    arguments = [arguments for _, arguments in passes(x, *others, y, partial(np.empty_like, x))]
    later = dropwhile(lambda some: not any(array is y for array in some), arguments)
    return not any(array is x for some in islice(later, 1, None) for array in some)


def call_passes(binder: Binder, passes: Passes, *arrays: Array, heavy: bool = True) -> None:
    """Add the calls of passes; the last array is the output, to which the others are broadcast.

    Large arrays are cut into parts that stay in a cache, and threads share these parts.
    """
    views = coalesced(*arrays)
    out = views[-1]
    if not out.size:
        return
    workers = max(min(out.size // (HEAVY if heavy else LIGHT), threads()), 1)
    rounds = max(2 if workers > 1 else 1, -(-out.size // (_BLOCK_ELEMENTS * workers)))
    parts = parts_of(views, rounds * workers)  # as many for each thread
    largest = max(parts[0][-1].size, 1)
    shares: list[list[Call]] = []
    for first in range(min(workers, len(parts))):
        memory: list[Array] = []
        share = []
        for part in parts[first :: min(workers, len(parts))]:
            share += passes(*part, _Spare(binder, memory, part[-1], largest))
        shares.append(share)
    call_shares(binder, shares)


class _Spare:
    """Workspace for one part after the other."""

    def __init__(self, binder: Binder, memory: list[Array], like: Array, largest: int) -> None:
        self._binder, self._memory, self._like, self._largest = binder, memory, like, largest
        self._used = 0

    def __call__(self, dtype: Any = None) -> Array:
        if self._used == len(self._memory):
            self._memory.append(self._binder.scratch((self._largest,), dtype or self._like.dtype))
        self._used += 1
        return self._memory[self._used - 1][: self._like.size].reshape(self._like.shape)


def bind_function(op: Any, binder: Binder, x: Array) -> bool:
    """Bind ``op.function(x, out)``; return False for types that NumPy does not compute in."""
    if not is_native(x) or any(element_type in HELD_IN_BYTES for element_type in op.input_types):
        return False
    bind_elementwise(binder, op.function, x)
    return True
