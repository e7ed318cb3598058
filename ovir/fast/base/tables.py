"""Elementwise functions of numbers of 8 and 16 bits, looked up in a table of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.fast.base.binder_protocol import Binder, call_elementwise, others_are_constant, output_like_largest


def bind_table(op: Any, binder: Binder, inputs: tuple[Array, ...]) -> bool:
    """Bind a function of the elements of input 0; return False unless all else that it reads is constant.

    A number of 16 bits is looked up in 0.45 ns, while its conversion to f32 and back takes 1 ns without any function
    between. There is no table for few elements.
    """
    data, *others = inputs
    codes = 1 << 8 * data.itemsize
    if data.itemsize > 2 or data.size < codes or not others_are_constant(binder):
        return False
    is_whole = op.input_types[0].bits == 8 * data.itemsize and data.dtype != np.bool_
    if not is_whole or any(array.size != 1 for array in others):
        return False

    def table() -> Array:
        numbers = np.arange(codes, dtype=f"u{data.itemsize}").view(data.dtype)
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(op.run(numbers, *(array.reshape(1) for array in others)))

    results = binder.prepared("table", table)
    bits = np.dtype(f"u{results.itemsize}")
    out = output_like_largest(binder, data)
    look_up = results.view(bits).take
    call_elementwise(
        binder,
        lambda x, y: look_up(x, 0, y, "wrap"),  # faster than "clip", and "raise" would copy
        data.view(f"u{data.itemsize}"),
        out.view(bits),
        heavy=True,
    )
    return True
