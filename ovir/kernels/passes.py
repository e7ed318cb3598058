"""Functions of whole arrays as short lists of passes, each of which is one call of a NumPy function.

A kernel makes the list for a block, a fast form once for arrays that stay.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ovir.core.arrays import Array
from ovir.kernels.fast_calls import Call

Spare = Callable[[], Array]
"""Returns one more array like the output, for what lies between the passes."""
Passes = Callable[..., list[Call]]
"""``passes(x, *others, y, spare)`` returns the calls that fill ``y`` from the other arrays."""


def number(value: float, like: Array) -> Array:
    """Return a constant of the type of an array. NumPy takes it faster than a Python number."""
    return np.array(value, like.dtype)


def run_passes(passes: Passes, x: Array, *others: Array) -> None:
    """Make the passes once; the last array is the output."""
    for function, arguments in passes(x, *others, partial(np.empty_like, x)):
        function(*arguments)
