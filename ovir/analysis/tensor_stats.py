"""A summary of a tensor in one line: its range, its mean and its non-finite values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType


@dataclass(frozen=True)
class Stats:
    """Statistics of the finite values; None if there are none, or if they are not numbers."""

    minimum: float | int | None = None
    maximum: float | int | None = None
    mean: float | None = None
    nonfinite: int = 0
    """How many values are NaN or infinite."""


def stats(array: Array) -> Stats:
    """Return the statistics of an array of any element type; strings have none."""
    if array.dtype.kind in "TUSO" or array.size == 0:
        return Stats()
    values = as_numbers(array)
    nonfinite = 0
    if values.dtype.kind == "f":
        finite = np.isfinite(values)
        nonfinite = values.size - int(np.count_nonzero(finite))
        if nonfinite:
            values = values[finite]
    if not values.size:
        return Stats(nonfinite=nonfinite)
    return Stats(values.min().item(), values.max().item(), float(values.mean(dtype=np.float64)), nonfinite)


def as_numbers(array: Array) -> Array:
    """Return the array in a type that NumPy computes with: small types of ml_dtypes are widened, booleans become 0
    and 1."""
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    if array.dtype.kind == "V" or array.dtype.type.__module__ != "numpy":
        integral = array.dtype.name.startswith(("int", "uint"))
        return array.astype(np.int32 if integral else np.float32)
    return array


def type_name(array: Array) -> str:
    """Return the name of an array's element type, NumPy's name if OpenVINO has none."""
    try:
        return str(ElementType.from_dtype(array.dtype))
    except ValueError:
        return str(array.dtype)


def likely_classes(array: Array) -> list[tuple[int, float]] | None:
    """Return the most probable class of each row of probabilities; None for any other tensor."""
    if array.ndim != 2 or array.shape[1] < 2 or not array.size or array.dtype.kind not in "fV":
        return None
    values = as_numbers(array)
    if values.dtype.kind != "f" or not (values.min() >= 0 and np.allclose(values.sum(axis=1), 1, atol=1e-2)):
        return None
    best = values.argmax(axis=1)
    return [(int(c), float(values[row, c])) for row, c in enumerate(best)]
