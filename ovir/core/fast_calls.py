"""NumPy functions in the form that costs least to call, and short lists of such calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ovir.core.arrays import Array

Call = tuple[Callable[..., object], tuple[Any, ...]]
"""A function and its arguments, which are all positional."""


def _clip(x: Array, low: Array, high: Array, out: Array) -> object:
    return np.clip(x, low, high, out=out)


def _einsum(subscripts: str, *arrays: Array, out: Array) -> object:
    return np.einsum(subscripts, *arrays, out=out)


clip: Callable[[Array, Array, Array, Array], object]
"""``clip(x, low, high, out)`` with bounds that are 0-d arrays; NaN stays NaN. It is several times faster than
``np.maximum`` of an array and a number."""
try:
    from numpy._core.umath import clip  # type: ignore[no-redef, attr-defined]
except ImportError:
    clip = _clip

einsum: Callable[..., object]
"""``einsum(subscripts, *arrays, out=out)``, without a search for a better order of the sums."""
try:
    from numpy._core.multiarray import c_einsum as einsum
except ImportError:
    einsum = _einsum

settings: Any
"""The context variable of the handling of errors and the size of buffers; None if NumPy has no such one."""
try:
    from numpy._core._ufunc_config import _extobj_contextvar as settings  # type: ignore[no-redef, attr-defined]
except ImportError:
    settings = None


def maximum(a: Array, b: Array, out: Array) -> object:
    """Compute ``np.maximum``, which takes ``out`` only as a keyword."""
    return np.maximum(a, b, out=out)


def minimum(a: Array, b: Array, out: Array) -> object:
    """Compute ``np.minimum``, which takes ``out`` only as a keyword."""
    return np.minimum(a, b, out=out)


Spare = Callable[..., Array]
"""Returns one more array like the output, or of a given type, for results between the passes."""
Passes = Callable[..., list[Call]]
"""``passes(x, *others, y, spare)`` returns the calls that fill ``y`` from the other arrays."""


def number(value: float, like: Array) -> Array:
    """Return a constant of the type of an array. NumPy takes it faster than a Python number."""
    return np.array(value, like.dtype)
