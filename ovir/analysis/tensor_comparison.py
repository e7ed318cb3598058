"""The differences between two tensors, and whether these are within tolerance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array
from ovir.core.blas import single_thread
from ovir.core.element_types import ElementType, bf16, f16
from ovir.diagnostics.errors import InputError

_BLOCK = 1 << 16  # elements that are compared at a time: the workspace stays in a cache
_SQUARED = 1e150  # a number whose square f64 holds, and the sum of a block of such squares
_MANTISSA, _EXPONENTS, _BIAS = 52, 1 << 11, 1023  # of f64, without the sign: errors are not negative


@dataclass(frozen=True)
class Tolerance:
    """The allowed error of a value: ``atol + rtol * (|reference| + typical)``.

    ``typical`` is the root mean square of the reference tensor, because the rounding error of a sum depends on the size
    of its terms and not on the size of the sum. If both numbers are 0, elements must be equal.
    """

    rtol: float = 0.0
    atol: float = 0.0
    rounded_to: str | None = None
    """The element type whose tolerance this is if values were rounded to it on their way to the tensor."""
    weights_in: str | None = None
    """The element type of weights on one side, f16 or bf16, if this is the tolerance for their rounding."""


EXACT = Tolerance()


class Depth(NamedTuple):
    """The sums, layers and roundings between the inputs of a model and a tensor."""

    terms: float = 0.0
    """The number of products that each element is the sum of."""
    steps: float = 0.0
    """The number of layers."""
    rounded_to: ElementType | None = None
    """The coarser of f16 and bf16 to which a layer rounds its results; None if none does. Devices that compute in f32
    leave this rounding out."""
    weights: float = 0.0
    """The sum of the squares of the typical relative errors of constants that one side alone has rounded."""
    weights_in: ElementType | None = None
    """The element type of these constants, f16 or bf16."""

    def with_weights(self, kind: ElementType) -> Depth:
        """Return the depth after a layer whose weights one side has in a narrower type.

        Each product has a relative error of its own. The root mean square of these is half of the largest, and so is
        the error of their sum in relation to the sum, unless terms cancel each other.
        """
        return self._replace(weights=self.weights + (_ROUNDING[str(kind)] / 2) ** 2, weights_in=kind)

    def through(self, results: Iterable[ElementType]) -> Depth:
        """Return the depth after a layer with results of these element types."""
        kinds = [*(kind for kind in results if kind in (f16, bf16)), *([self.rounded_to] if self.rounded_to else [])]
        return self._replace(rounded_to=max(kinds, key=lambda kind: _ROUNDING[str(kind)], default=None))


def default_tolerance(element_type: ElementType, terms: float = 1, steps: float = 1) -> Tolerance:
    """Return the tolerance for two correct engines that compute a tensor of ``element_type``.

    ``terms`` is the number of products that each element is the sum of; the error of a sum in f32, in any order, grows
    with its square root. ``steps`` is the number of layers that the tensor has gone through; each rounds its result and
    approximates functions, and independent errors grow with the square root of their number, too.
    """
    if str(element_type) not in _ROUNDING:
        return EXACT
    rounding, summing = _ROUNDING[str(element_type)], _ROUNDING["f32"] * math.sqrt(max(terms, 1))
    one_layer = max(_LEAST, _ROOM * rounding) * math.sqrt(max(steps, 1))
    return Tolerance(rtol=max(one_layer, _ROOM * summing))


_ROUNDING = {"f64": 2.0**-24, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "f8e4m3": 2.0**-4, "f8e5m2": 2.0**-3}
"""Relative rounding error; f64 as f32, in which devices compute it."""
_LEAST = 2e-5  # relative error of the approximations of Exp, Erf, Tanh and the like in OpenVINO's CPU plugin
_ROOM = 8  # the largest error of many elements, in units of the typical one


SIDES = ("in the other model", "in the first")
"""The sources of the compared values and of their references if these are two models."""


@dataclass(frozen=True)
class TensorComparison:
    """The differences between a tensor and its reference; numbers are None where no position can be compared."""

    size: int
    """Number of elements."""
    within: bool
    """Whether shapes are equal and every element is within the tolerance."""
    beyond: int = 0
    """Number of elements beyond the tolerance; those with NaN or an infinity on one side only are among them."""
    max_abs: float | None = None
    """Largest absolute error."""
    max_rel: float | None = None
    """Largest absolute error relative to the reference, over positions where the reference is not 0."""
    mean_abs: float | None = None
    """Mean absolute error."""
    rmse: float | None = None
    """Root mean square of the error."""
    cosine: float | None = None
    """Cosine of the angle between both tensors as vectors."""
    sqnr_db: float | None = None
    """Signal to noise ratio, ``10 log10(sum reference² / sum error²)``, in dB; infinite for equal tensors."""
    position: tuple[int, ...] | None = None
    """Index of the element with the largest excess over its tolerance."""
    actual: float | int | str | None = None
    """The value there."""
    reference: float | int | str | None = None
    """The value that was expected there."""
    nan: tuple[int, int] = (0, 0)
    """Number of NaN in the reference and in the tensor."""
    inf: tuple[int, int] = (0, 0)
    """Number of infinite elements in the reference and in the tensor."""
    lone: int = 0
    """Number of positions at which NaN or an infinity has no equal on the other side."""
    problem: str | None = None
    """The reason why elements cannot be compared, such as different shapes."""
    errors: dict[int, int] | None = None
    """Number of elements with absolute errors from ``2**power`` to ``2**(power + 1)``, by power; None unless they were
    to be counted. Elements without an error are not among them."""

    @property
    def is_equal(self) -> bool:
        """Return whether nothing differs at all."""
        return self.problem is None and not (self.beyond or self.lone or self.max_abs)

    @property
    def lone_text(self) -> str:
        """Return the number of elements that are NaN or infinite on one side only, or with another sign; "-" if there
        are none. No other number of a table shows these elements."""
        return f"{self.lone:,} NaN or Inf" if self.lone else "-"


def compare_tensors(
    actual: Array, reference: Array, tolerance: Tolerance, *, counts_errors: bool = False
) -> TensorComparison:
    """Compare a tensor with its reference, and count errors by size where ``counts_errors`` asks for it.

    Equal infinities, and NaN in both tensors, count as equal.
    """
    if actual.shape != reference.shape:
        shapes = [",".join(map(str, array.shape)) for array in (actual, reference)]
        problem = f"has shape [{shapes[0]}], but [{shapes[1]}] was expected"
        return TensorComparison(reference.size, within=False, beyond=reference.size, problem=problem)
    if actual.dtype.kind in "TUSO" or reference.dtype.kind in "TUSO":
        return _compare_texts(actual, reference)
    with single_thread, np.errstate(over="ignore"):  # sums of squares may be infinite
        sums = _Sums(tolerance, 0.0 if tolerance.rtol == 0 else root_mean_square(reference), counts_errors)
        for start, one, other in _blocks(actual, reference):
            sums.add(start, one, other)
    return sums.result(actual, reference)


def root_mean_square(array: Array) -> float:
    """Return the root mean square of the finite elements; 0 if there are none."""
    total, count = 0.0, 0
    for _, values, _ in _blocks(array, array):
        numbers = values.astype(np.float64)
        with np.errstate(over="ignore"):
            squares = float(numbers @ numbers)
        if not math.isfinite(squares):
            numbers = numbers[np.isfinite(numbers)].clip(-_SQUARED, _SQUARED)
            squares = float(numbers @ numbers)
        total += squares
        count += numbers.size
    return math.sqrt(total / count) if count else 0.0


def _compare_texts(actual: Array, reference: Array) -> TensorComparison:
    pairs = list(zip(actual.ravel().tolist(), reference.ravel().tolist(), strict=True))
    wrong = [i for i, (one, other) in enumerate(pairs) if _text(one) != _text(other)]
    if not wrong:
        return TensorComparison(reference.size, within=True)
    position = _position(wrong[0], reference.shape)
    one, other = (_text(value) for value in pairs[wrong[0]])
    count = len(wrong)
    return TensorComparison(reference.size, within=False, beyond=count, position=position, actual=one, reference=other)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _position(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(index, shape))


def _blocks(actual: Array, reference: Array) -> Iterator[tuple[int, Array, Array]]:
    """Return pairs of corresponding blocks, each with the position of its first element."""
    one, other = actual.ravel(), reference.ravel()
    for start in range(0, one.size, _BLOCK):
        yield start, as_numbers(one[start : start + _BLOCK]), as_numbers(other[start : start + _BLOCK])


class _Sums:
    """Sums over the blocks of two tensors."""

    def __init__(self, tolerance: Tolerance, typical: float, counts_errors: bool) -> None:
        self.tolerance = tolerance
        self.typical = typical
        self.compared = self.beyond = 0
        self.nan = [0, 0]
        self.inf = [0, 0]
        self.lone = 0
        self.error = self.error_squared = self.product = 0.0
        self.squared = [0.0, 0.0]
        self.max_abs = 0.0
        self.max_rel: float | None = None
        self.exponents = np.zeros(_EXPONENTS, np.int64) if counts_errors else None
        """The number of errors by their biased exponent, as f64 stores it."""
        self.worst = (-math.inf, 0)
        """The largest excess over the tolerance, and its position."""

    def add(self, start: int, actual: Array, reference: Array) -> None:
        """Add a block; ``start`` is the position of its first element."""
        one, other = actual.astype(np.float64), reference.astype(np.float64)
        error = distances(actual, reference, one, other)
        if math.isfinite(float(error.sum())):
            excess = self._add_finite(one, other, error)
        else:
            excess = self._add_any(one, other, error)
        self.beyond += int(np.count_nonzero(excess > 0))
        worst = int(excess.argmax())
        if excess[worst] > self.worst[0]:
            self.worst = float(excess[worst]), start + worst

    def _add_any(self, actual: Array, reference: Array, error: Array) -> Array:
        """Add a block in which some numbers are not finite; return by how much each error exceeds its tolerance."""
        same = (actual == reference) | (np.isnan(actual) & np.isnan(reference))
        for side, values in enumerate((reference, actual)):
            self.nan[side] += int(np.count_nonzero(np.isnan(values)))
            self.inf[side] += int(np.count_nonzero(np.isinf(values)))
        both = np.isfinite(actual) & np.isfinite(reference)
        self.lone += int(np.count_nonzero(~same & ~both))
        excess = np.where(same, -np.inf, np.inf)
        excess[both] = self._add_finite(actual[both], reference[both], error[both])
        return excess

    def _add_finite(self, actual: Array, reference: Array, error: Array) -> Array:
        """Add pairs of finite numbers; return by how much each error exceeds its tolerance."""
        if not actual.size:
            return actual
        size = np.abs(reference)
        self.compared += error.size
        self.error += float(error.sum())
        self.error_squared += float(error @ error)
        self.product += float(actual @ reference)
        self.squared[0] += float(actual @ actual)
        self.squared[1] += float(reference @ reference)
        self.max_abs = max(self.max_abs, float(error.max()))
        if self.exponents is not None:
            self.exponents += np.bincount(error.view(np.int64) >> _MANTISSA, minlength=_EXPONENTS)
        if (nonzero := size > 0).any():
            relative = np.divide(error, size, out=np.zeros_like(error), where=nonzero)
            self.max_rel = max(self.max_rel or 0.0, float(relative.max()))
        size += self.typical
        size *= self.tolerance.rtol
        size += self.tolerance.atol
        excess: Array = np.subtract(error, size, out=size)
        return excess

    def result(self, actual: Array, reference: Array) -> TensorComparison:
        """Return the metrics."""
        size, beyond = reference.size, self.beyond
        if not size:
            return TensorComparison(0, within=True)
        position = _position(self.worst[1], reference.shape)
        comparison = TensorComparison(
            *(size, beyond == 0, beyond),
            position=position,
            actual=as_numbers(actual[position]).item(),
            reference=as_numbers(reference[position]).item(),
            nan=(self.nan[0], self.nan[1]),
            inf=(self.inf[0], self.inf[1]),
            lone=self.lone,
        )
        if not self.compared:
            return comparison
        errors = None
        if self.exponents is not None:  # 0 is the exponent of 0, which is no error
            errors = {int(e) - _BIAS: int(self.exponents[e]) for e in np.flatnonzero(self.exponents) if e}
        return replace(
            comparison,
            max_abs=self.max_abs,
            max_rel=self.max_rel,
            mean_abs=self.error / self.compared,
            rmse=math.sqrt(self.error_squared / self.compared),
            cosine=None if self.lone else self._cosine(),  # the other elements would look better than the tensor is
            sqnr_db=_decibels(self.squared[1], self.error_squared),
            errors=errors,
        )

    def _cosine(self) -> float:
        norm = math.sqrt(self.squared[0]) * math.sqrt(self.squared[1])
        return min(max(self.product / norm, -1.0), 1.0) if norm else float(self.squared[0] == self.squared[1])


def nonfinite_text(nan: Sequence[int], inf: Sequence[int], sides: tuple[str, str]) -> str:
    """Return the numbers of NaN and infinities in the reference and in the tensor, with the ``sides`` that have them;
    an empty text if there are none."""
    kinds = ("NaN", nan), ("Inf", inf)
    counts = ((count[i], name, sides[1 - i]) for i in (1, 0) for name, count in kinds)
    return ", ".join(f"{count:,} {name} {side}" for count, name, side in counts if count)


def distances(actual: Array, reference: Array, one: Array, other: Array) -> Array:
    """Return the absolute differences in f64, exactly also for integers whose digits f64 cannot all hold."""
    if actual.dtype != reference.dtype or actual.dtype.kind not in "iu" or actual.dtype.itemsize < 8:
        with np.errstate(invalid="ignore"):  # infinity - infinity
            error: Array = np.subtract(one, other)
        return np.abs(error, out=error)
    unsigned = actual.dtype.str.replace("i", "u")
    larger, smaller = np.maximum(actual, reference).view(unsigned), np.minimum(actual, reference).view(unsigned)
    exact: Array = np.subtract(larger, smaller).astype(np.float64)
    return exact


def _decibels(signal: float, noise: float) -> float:
    """Return the ratio of two sums of squares in dB."""
    if not noise:
        return math.inf
    ratio = signal / noise
    return 10 * math.log10(ratio) if ratio > 0 else -math.inf


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
    """The rule by which tensors agree or differ.

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
        """Return the criterion for the options of a comparison; ``metric`` is a string such as ``cosine=0.999``.

        Raises InputError for invalid ones.
        """
        for name, value in (("rtol", rtol), ("atol", atol)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, Real) or not value >= 0):
                raise InputError.usage(f"must be a number that is not negative, got {value!r}", option=name)
        if metric is None:
            return cls(rtol, atol)
        if rtol is not None or atol is not None:
            raise InputError.usage("takes the place of tolerances: give one or the other", option="metric")
        name, _, text = str(metric).partition("=")
        try:
            limit = float(text)
        except ValueError:
            limit = math.nan
        if name not in LIMITS or math.isnan(limit):
            message = f"must be NAME=LIMIT with one of {', '.join(LIMITS)}, got {metric!r}"
            raise InputError.usage(message, option="metric")
        if (name == "cosine" and not -1 <= limit <= 1) or (LIMITS[name] == "most" and limit < 0):
            raise InputError.usage(
                f"metric {name} is never {'above 1 or below -1' if name == 'cosine' else 'negative'}, got {metric!r}"
            )
        return cls(metric=name, limit=limit)

    def between(self, element_type: ElementType, actual: Array, precision: str | None, depth: Depth) -> Tolerance:
        """Return the tolerance for a tensor of ``element_type`` that another side has computed.

        Of the element types of both sides, the coarser one counts, and so does ``precision``, in which the other side
        computes real numbers, if it says so.
        """
        kinds = [element_type, ElementType.from_dtype(actual.dtype)]
        if element_type.is_real and precision is not None:
            kinds.append(ElementType.parse(precision))
        return max((self.tolerance(kind, depth) for kind in kinds), key=lambda item: item.rtol)

    def tolerance(self, element_type: ElementType, depth: Depth) -> Tolerance:
        """Return the tolerance for a tensor; see ``default_tolerance``."""
        if self.metric is not None:
            return EXACT
        if self.rtol is None and self.atol is None:
            tolerance = default_tolerance(element_type, depth.terms, depth.steps)
            if depth.rounded_to is not None and element_type.is_real:
                rounded = default_tolerance(depth.rounded_to, depth.terms, depth.steps)
                if rounded.rtol > tolerance.rtol:
                    tolerance = replace(rounded, rounded_to=str(depth.rounded_to))
            of_weights = _ROOM * math.sqrt(depth.weights)
            if of_weights > tolerance.rtol and element_type.is_real:
                tolerance = Tolerance(rtol=of_weights, weights_in=str(depth.weights_in))
            return tolerance
        rtol, atol = self.rtol or 0.0, self.atol or 0.0
        return Tolerance(rtol if element_type.is_real else 0.0, atol)

    def compare(
        self, actual: Array, reference: Array, tolerance: Tolerance, *, counts_errors: bool = False
    ) -> TensorComparison:
        """Compare a tensor with its reference by a tolerance that this criterion has returned."""
        comparison = compare_tensors(actual, reference, tolerance, counts_errors=counts_errors)
        if self.metric is None or comparison.problem is not None:
            return comparison
        value = getattr(comparison, self.metric)
        if value is None:  # nothing is finite, or the elements are not numbers
            return comparison
        agrees = value <= self.limit if LIMITS[self.metric] == "most" else value >= self.limit
        return replace(comparison, within=agrees and not comparison.lone)

    def to_dict(self) -> dict[str, Any]:
        """Return the criterion for JSON."""
        if self.metric is not None:
            return {"metric": self.metric, "limit": self.limit}
        return {"rtol": self.rtol, "atol": self.atol}


def noise(comparison: TensorComparison) -> float:
    """Return the root mean square of the errors, relative to the reference; infinite where there is no number."""
    if comparison.problem is not None or comparison.lone:
        return math.inf
    if comparison.sqnr_db is None:  # strings, or nothing but NaN and infinities
        return math.inf if comparison.beyond else 0.0
    return 10.0 ** (-comparison.sqnr_db / 20) if comparison.sqnr_db > -6000 else math.inf


def severity(comparison: TensorComparison) -> tuple[bool, float, float]:
    """Return a sort key for comparisons of a tensor: the larger, the worse."""
    return not comparison.within, noise(comparison), comparison.max_abs or 0.0


def output_error(outputs: Sequence[Array], reference: Sequence[Array]) -> float:
    """Return the largest error of an output."""
    return max((tensor_error(one, other) for one, other in zip(outputs, reference, strict=True)), default=0.0)


def tensor_error(array: Array, reference: Array) -> float:
    """Return the error of a tensor as a share of the reference.

    For real numbers it is ``noise``; for other types it is the share of elements that differ. Tensors of different
    shapes have an infinite error.
    """
    comparison = compare_tensors(array, reference, EXACT)
    if comparison.problem is None and array.dtype.kind in "TUSObiu":
        return comparison.beyond / max(comparison.size, 1)
    return noise(comparison)
