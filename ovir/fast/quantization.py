"""FakeQuantize in passes over the output, and FakeConvert with a table of the result for each f16."""

from __future__ import annotations

from typing import Any

import numpy as np

from ovir.core import float16
from ovir.core.arrays import Array
from ovir.core.fast_calls import Call, number
from ovir.fast.base.binder_protocol import Binder, is_real, tiled
from ovir.fast.base.coalesce import memory_order
from ovir.fast.base.passes import call_passes
from ovir.fast.base.recorded import recorded
from ovir.fast.base.sums import same_order
from ovir.fast.registry import fast
from ovir.ops.quantization import RANGES, FakeConvert, FakeQuantize


@fast(FakeQuantize, in_f32=True, by_element=True)
def fake_quantize(op: FakeQuantize, binder: Binder, *inputs: Array) -> bool:
    x, *given = inputs
    if not is_real(x) or not x.size or not all(map(binder.is_constant, range(1, 5))):
        return False
    low, high, first, last = (op.aligned_range(x, r, name) for r, name in zip(given, RANGES, strict=True))
    width, height, steps = high - low, last - first, number(op.levels - 1, x)
    # The last of the steps must neither underflow nor be rounded to infinity.
    is_ordinary = (np.abs(height) < np.finfo(x.dtype).max / 2) & (np.abs(height / steps) > np.finfo(x.dtype).tiny)
    if not np.all((low < high) & np.isfinite(width) & is_ordinary):
        return False
    out, ranges = same_order(binder, x), (low, width, first, height / steps)
    from_zero, to_zero = not low.any(), not first.any()

    def formula(x: Array, low: Array, width: Array, first: Array, step: Array) -> Array:
        # Numbers to round are computed as the operation says, because numbers near a tie would go the other way.
        place = np.rint((x if from_zero else x - low) / width * steps)
        y: Array = np.clip(place, 0, steps) * step  # step is the difference of neighboring outputs
        return y if to_zero else y + first

    call_passes(binder, recorded(formula), x, *(tiled(array, x) for array in ranges), out)
    return True


@fast(FakeConvert, by_element=True)
def fake_convert(op: FakeConvert, binder: Binder, *inputs: Array) -> bool:
    data, scale, *shifts = inputs
    if not data.size:
        return False

    def table() -> Array:
        with np.errstate(invalid="ignore"):
            return op.converted(np.arange(1 << 16, dtype=np.uint16).view(np.float16)).astype(data.dtype)

    look_up = binder.prepared("table of f16", table).take

    def passes(x: Array, scale: Array, *rest: Any) -> list[Call]:
        *shift, y, spare = rest
        narrow = spare(np.float16)
        return [
            (np.multiply, (x, scale, y)),
            *((np.subtract, (y, s, y)) for s in shift),
            (float16.copy, (y, narrow)),
            (look_up, (narrow.view(np.uint16), None, y, "wrap")),
            *((np.add, (y, s, y)) for s in shift),
            (np.divide, (y, scale, y)),
        ]

    call_passes(binder, passes, data, scale, *shifts, binder.output(order=memory_order(data)))
    return True
