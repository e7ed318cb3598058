"""When a tensor counts as equal to its reference: by a tolerance for each element, or by a limit for one metric."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.debugging.tensor_comparison import EXACT, TensorComparison, Tolerance, compare_tensors, default_tolerance
from ovir.diagnostics.errors import InputError

LIMITS = {
    "max_abs": "most",
    "max_rel": "most",
    "mean_abs": "most",
    "rmse": "most",
    "cosine": "least",
    "sqnr_db": "least",
}
"""The metrics that a criterion can limit, and whether their limit is the most or the least that is allowed."""


@dataclass(frozen=True)
class Criterion:
    """What decides whether tensors agree.

    Without ``rtol`` and ``atol``, the tolerance follows from element type, reduction length and number of layers. With
    one of them, the other is 0. Integers, booleans and strings must be equal, except that ``atol`` applies to integers,
    too. A metric with its limit takes the place of the tolerance.
    """

    rtol: float | None = None
    atol: float | None = None
    metric: str | None = None
    limit: float = 0.0

    @classmethod
    def of(cls, rtol: float | None, atol: float | None, metric: str | None) -> Criterion:
        """Return the criterion for the options of a comparison; ``metric`` is a text such as ``cosine=0.999``.

        Raises InputError for invalid ones.
        """
        for name, value in (("rtol", rtol), ("atol", atol)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, Real) or not value >= 0):
                raise InputError.usage(f"{name} must be a number that is not negative, got {value!r}")
        if metric is None:
            return cls(rtol, atol)
        if rtol is not None or atol is not None:
            raise InputError.usage("a metric takes the place of rtol and atol: give one or the other")
        name, _, text = str(metric).partition("=")
        try:
            limit = float(text)
        except ValueError:
            limit = math.nan
        if name not in LIMITS or math.isnan(limit):
            raise InputError.usage(f"metric must be NAME=LIMIT with one of {', '.join(LIMITS)}, got {metric!r}")
        if (name == "cosine" and not -1 <= limit <= 1) or (LIMITS[name] == "most" and limit < 0):
            raise InputError.usage(
                f"metric {name} is never {'above 1 or below -1' if name == 'cosine' else 'negative'}, got {metric!r}"
            )
        return cls(metric=name, limit=limit)

    def between(
        self, element_type: ElementType, actual: Array, precision: str | None, terms: float, steps: float
    ) -> Tolerance:
        """Return the tolerance for a tensor of ``element_type`` that another side has computed.

        Of the element types of both sides, the coarser one counts, and so does ``precision``, in which the other side
        computes real numbers, if it says so.
        """
        kinds = [element_type, ElementType.from_dtype(actual.dtype)]
        if element_type.is_real and precision is not None:
            kinds.append(ElementType.parse(precision))
        return max((self.tolerance(kind, terms, steps) for kind in kinds), key=lambda item: item.rtol)

    def tolerance(self, element_type: ElementType, terms: float, steps: float) -> Tolerance:
        """Return the tolerance for a tensor; see ``default_tolerance``."""
        if self.metric is not None:
            return EXACT
        if self.rtol is None and self.atol is None:
            return default_tolerance(element_type, terms, steps)
        rtol, atol = self.rtol or 0.0, self.atol or 0.0
        return Tolerance(rtol if element_type.is_real else 0.0, atol)

    def compare(
        self, actual: Array, reference: Array, tolerance: Tolerance, *, counts_errors: bool = False
    ) -> TensorComparison:
        """Compare a tensor with its reference by a tolerance that this criterion has returned."""
        found = compare_tensors(actual, reference, tolerance, counts_errors=counts_errors)
        if self.metric is None or found.problem is not None:
            return found
        value = getattr(found, self.metric)
        if value is None:  # nothing is finite, or the elements are no numbers
            return found
        agrees = value <= self.limit if LIMITS[self.metric] == "most" else value >= self.limit
        return replace(found, within=agrees and not found.lone)

    def to_dict(self) -> dict[str, Any]:
        """Return what was chosen, for JSON."""
        if self.metric is not None:
            return {"metric": self.metric, "limit": self.limit}
        return {"rtol": self.rtol, "atol": self.atol}
