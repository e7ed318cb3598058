"""Passes that are recorded from a formula: it is called on terms, which note the functions of NumPy that it applies.

So an operation has one formula. ``run`` computes it with a new array for each function, its fast form in blocks that
stay in a cache, and in memory that is free again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ovir.core.arrays import Array
from ovir.core.fast_calls import Call, Passes, Spare, clip, maximum, minimum
from ovir.fast.base.moves import cast

_WITH_OUT: dict[np.ufunc, Callable[..., object]] = {np.maximum: maximum, np.minimum: minimum}


def recorded(formula: Callable[..., Any]) -> Passes:
    """Return the passes of a formula of arrays that consists of ufuncs, ``np.clip`` and ``astype``."""
    tapes: dict[tuple[np.dtype[Any], ...], tuple[list[_Term], list[_Term]]] = {}

    def passes(*arguments: Any) -> list[Call]:
        *arrays, y, spare = arguments
        dtypes = tuple([array.dtype for array in arrays])
        if dtypes not in tapes:  # the parts of an array share a tape
            tapes[dtypes] = _tape(formula, dtypes)
        inputs, tape = tapes[dtypes]
        if tape[-1].dtype != y.dtype:
            raise TypeError(f"a formula must end with a function of NumPy that gives {y.dtype}")
        for term, array in zip(inputs, arrays, strict=True):
            term.memory = array
        shared = [term for term in inputs if np.may_share_memory(term.memory, y)]
        last_reads = [place for place, term in enumerate(tape) if any(op is x for op in term.operands for x in shared)]
        return _calls(tape, y, spare, max(last_reads, default=0))

    return passes


def _tape(formula: Callable[..., Any], dtypes: Sequence[np.dtype[Any]]) -> tuple[list[_Term], list[_Term]]:
    """Return the terms that a formula reads, and those that it computes, in order."""
    tape: list[_Term] = []
    inputs = [_Term(tape, dtype) for dtype in dtypes]
    result = formula(*inputs)
    if not tape or result is not tape[-1]:
        raise TypeError("a formula must end with a function of NumPy")
    last_uses = {id(operand): place for place, term in enumerate(tape) for operand in term.operands}
    for place, term in enumerate(tape):
        term.place = place
        own = {id(op): op for op in term.operands if isinstance(op, _Term) and op.operands}
        term.ending = [op for key, op in own.items() if last_uses[key] == place]
    return inputs, tape


class _Term(NDArrayOperatorsMixin):
    """An array that a formula reads, or the result of one of its functions."""

    def __init__(self, tape: list[_Term], dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.memory: Array | None = None
        self.function: Callable[..., object]
        self.operands: Sequence[Any] = ()
        self.place: int
        """The place on the tape."""
        self.ending: Sequence[_Term] = ()
        """The computed operands that no later term has."""
        self._tape = tape

    def __array_ufunc__(self, function: np.ufunc, method: str, *operands: Any) -> Any:
        if method != "__call__":
            return NotImplemented  # which makes NumPy raise TypeError
        return self._noted(_WITH_OUT.get(function, function), operands, self.dtype)

    def __bool__(self) -> bool:
        raise TypeError("a formula must not depend on the values of its arrays")

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise TypeError("a formula may use ufuncs, np.clip and astype only")

    def clip(self, low: float, high: float, out: None = None) -> _Term:
        return self._noted(clip, (self, low, high), self.dtype)

    def astype(self, dtype: Any) -> _Term:
        return self if dtype == self.dtype else self._noted(cast, (self,), dtype)

    def _noted(self, function: Callable[..., object], operands: Sequence[Any], dtype: Any) -> _Term:
        term = _Term(self._tape, dtype)
        term.function = function
        term.operands = [op if isinstance(op, _Term) else np.array(op, term.dtype) for op in operands]
        self._tape.append(term)
        return term


def _calls(tape: Sequence[_Term], y: Array, spare: Spare, first: int) -> list[Call]:
    """Return the calls that compute all terms. The last term, and the chain of operands that leads to it, use ``y``,
    but no term before the place ``first`` does."""
    for term in tape:
        term.memory = None
    chain: _Term | None = tape[-1]
    while chain is not None and chain.dtype == y.dtype:
        chain.memory = y
        chain = next((op for op in chain.ending if op.place >= first), None)
    free: list[Array] = []
    calls: list[Call] = []
    for term in tape:
        arguments = [op.memory if isinstance(op, _Term) else op for op in term.operands]
        free += [op.memory for op in term.ending if op.memory is not None and op.memory is not y]
        if term.memory is None:
            fitting = [array for array in free if array.dtype == term.dtype]
            term.memory = fitting[-1] if fitting else spare(term.dtype)
            free = [array for array in free if array is not term.memory]
        calls.append((term.function, (*arguments, term.memory)))
    return calls
