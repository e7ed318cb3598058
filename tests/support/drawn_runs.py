"""Runs of an operation on arrays that a test has drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import ovir
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import OperatorError
from ovir.inference.known_values import as_tuple
from ovir.ops.base.operator import Operator


def results_of(op: Operator, exact: Sequence[TensorType], drawn: Sequence[Any], most: int) -> tuple[Any, ...] | None:
    """Return the outputs for arrays of exact types; None if the operation refuses them, or an output has more than
    ``most`` elements."""
    try:
        with np.errstate(all="ignore"):
            inferred = as_tuple(op.infer(*exact))
            if any(tensor.shape.size().lower > most for tensor in inferred):
                return None
            results = op.applied(exact, inferred).run(*drawn)
    except (ovir.OvirError, OperatorError):
        return None
    return results if isinstance(results, tuple) else (results,)
