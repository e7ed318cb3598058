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

    def passes(*arguments: Any) -> list[Call]:
        *arrays, y, spare = arguments
        tape: list[_Term] = []
        result = formula(*(_Term(tape, array.dtype, array) for array in arrays))
        if not tape or result is not tape[-1] or result.dtype != y.dtype:
            raise TypeError(f"a formula must end with a function of NumPy that gives {y.dtype}")
        return _calls(tape, y, spare)

    return passes


class _Term(NDArrayOperatorsMixin):
    """An array that a formula reads, or the result of one of its functions."""

    def __init__(self, tape: list[_Term], dtype: Any, memory: Array | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self.memory = memory
        self.function: Callable[..., object]
        self.operands: Sequence[Any] = ()
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
        term.function, term.operands = function, operands
        self._tape.append(term)
        return term


def _calls(tape: Sequence[_Term], y: Array, spare: Spare) -> list[Call]:
    """Return the calls that compute all terms. The last term, and the chain of operands that leads to it, use ``y``."""
    last_uses = {id(operand): place for place, term in enumerate(tape) for operand in term.operands}

    def ending(place: int) -> list[_Term]:
        """Return the computed operands of a term that no later term has."""
        own = {id(op): op for op in tape[place].operands if isinstance(op, _Term) and op.operands}
        return [op for key, op in own.items() if last_uses[key] == place]

    places = {id(term): place for place, term in enumerate(tape)}
    term: _Term | None = tape[-1]
    while term is not None and term.dtype == y.dtype:
        term.memory = y
        term = next(iter(ending(places[id(term)])), None)
    free: list[Array] = []
    calls: list[Call] = []
    for place, term in enumerate(tape):
        arguments = [op.memory if isinstance(op, _Term) else np.array(op, term.dtype) for op in term.operands]
        free += [op.memory for op in ending(place) if op.memory is not None and op.memory is not y]
        if term.memory is None:
            fitting = [array for array in free if array.dtype == term.dtype]
            term.memory = fitting[0] if fitting else spare(term.dtype)
            free = [array for array in free if array is not term.memory]
        calls.append((term.function, (*arguments, term.memory)))
    return calls
