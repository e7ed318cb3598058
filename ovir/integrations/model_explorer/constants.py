"""What the viewer shows of a constant: its first values and statistics."""

from __future__ import annotations

import numpy as np

from ovir.analysis.tensor_stats import as_numbers, stats
from ovir.core.arrays import Array
from ovir.diagnostics.errors import OperatorError, OvirError
from ovir.diagnostics.wording import readable
from ovir.ops.infrastructure import Const

MOST = 2**20
"""The number of elements that statistics cover; larger constants would take long to read."""


def describe_constant(constant: Const, limit: int) -> dict[str, str]:
    """Return the first ``limit`` values of a constant, its minimum, maximum and mean, and how many values are not
    finite.

    For a constant of more than ``MOST`` elements, statistics cover the first ones, which their names say.
    """
    if not constant.has_data:
        return {"values": "none: the file with the weights is missing"}
    size = int(np.prod(constant.shape, dtype=np.int64))
    try:
        array = constant.elements(0, min(size, MOST))
    except (OperatorError, OvirError) as error:
        return {"values": f"none: {error}"}
    found = stats(array)
    covered = "" if size <= MOST else f" of the first {MOST:,} values"
    lines = {"values": _first_values(array, size, limit)}
    numbers = {"minimum": found.minimum, "maximum": found.maximum, "mean": found.mean}
    if size > 1:
        lines |= {name + covered: f"{value:.6g}" for name, value in numbers.items() if value is not None}
    if found.nonfinite:
        lines[f"NaN and infinities{covered}"] = f"{found.nonfinite:,}"
    return lines


def _first_values(array: Array, size: int, limit: int) -> str:
    """Return the first values, separated by commas."""
    first = array.reshape(-1)[:limit]
    is_text = first.dtype.kind in "TUSO"
    texts = [readable(repr(item)) for item in first.tolist()] if is_text else map(_text, as_numbers(first).tolist())
    more = f", … ({size:,} values)" if size > len(first) else ""
    return ", ".join(texts) + more if size else "none: it is empty"


def _text(value: float | int) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
