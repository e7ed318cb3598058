"""Metrics of outputs against labels: one number for each sample, be it right or wrong or an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ovir.analysis.tensor_stats import as_numbers
from ovir.core.arrays import Array
from ovir.diagnostics.codes import BAD_INPUT
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import plural, shown


class MetricBase:
    """A metric: scores each sample of an output."""

    name: str
    is_share: bool
    """Whether scores are 1 for right and 0 for wrong, so that their mean is a share."""
    higher_is_better: bool

    def scores(self, output: Array, label: Array) -> Array:
        """Return the score of each sample as f64; raise InputError if the label does not match the output."""
        raise NotImplementedError


@dataclass(frozen=True)
class Top(MetricBase):
    """Whether the class of the label is among the ``count`` highest scores of a row.

    Among equal scores the first comes first, and NaN comes last; a label whose score is NaN is not among them.
    """

    count: int
    is_share = True
    higher_is_better = True

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"top{self.count}"

    def scores(self, output: Array, label: Array) -> Array:
        rows = score_rows(output)
        if self.count >= rows.shape[1]:
            refuse(f"{self.name} is always 100%: the output has {rows.shape[1]} classes", "give a smaller number")
        classes = _classes(label, rows)
        own = np.take_along_axis(rows, classes[:, np.newaxis], 1)
        before = np.arange(rows.shape[1]) < classes[:, np.newaxis]
        rank = ((rows > own) | ((rows == own) & before)).sum(1)
        right: Array = ((rank < self.count) & ~np.isnan(own[:, 0])).astype(np.float64)
        return right

    def predictions(self, output: Array) -> Array:
        """Return the class with the highest score of each row."""
        rows = score_rows(output)
        found: Array = np.where(np.isnan(rows), -np.inf, rows).argmax(1)
        return found


@dataclass(frozen=True)
class ErrorMetric(MetricBase):
    """A number that a function computes from an output and a label of the same shape."""

    name: str
    function: Callable[[Array, Array, float], float]
    """Called with an output, a label and the peak, which is the largest value that a signal can have."""
    higher_is_better: bool
    peak: float | None = None
    """None: 255 for labels of the type u8, otherwise 1."""
    is_share = False

    def scores(self, output: Array, label: Array) -> Array:
        values = [numbers_of("output", output), numbers_of("label", label)]
        if [size for size in output.shape if size != 1] != [size for size in label.shape if size != 1]:
            refuse(f"the label has the shape {shown(label.shape)}, and the output {shown(output.shape)}")
        peak = self.peak if self.peak is not None else 255.0 if label.dtype == np.uint8 else 1.0
        with np.errstate(all="ignore"):
            return np.array([self.function(values[0].ravel(), values[1].ravel(), peak)], np.float64)


@dataclass(frozen=True)
class FunctionMetric(MetricBase):
    """A number that a function of the user computes from an output and a label.

    A label that is one text is given as a string. The function may have the attributes ``higher_is_better`` (True) and
    ``is_share`` (False), which says that each number is 1 for right or 0 for wrong.
    """

    name: str
    function: Callable[[Array, Any], Any]

    @property
    def higher_is_better(self) -> bool:  # type: ignore[override]
        return bool(getattr(self.function, "higher_is_better", True))

    @property
    def is_share(self) -> bool:  # type: ignore[override]
        return bool(getattr(self.function, "is_share", False))

    def scores(self, output: Array, label: Array) -> Array:
        given = label.item() if label.dtype.kind in "OUT" and label.size == 1 else label
        try:
            score = self.function(output, given)
        except Exception as error:
            from traceback import extract_tb  # only needed here

            *_, caller, frame = [None, *extract_tb(error.__traceback__)]
            place = f"fails in {frame.filename}:{frame.lineno}" if caller else "cannot be called with (output, label)"
            refuse(f"the metric '{self.name}' {place}: {type(error).__name__}: {error}")
        try:
            numbers = np.asarray(math.nan if score is None else score, np.float64).ravel()
        except (ValueError, TypeError):
            numbers = np.array([math.nan])
        if np.isnan(numbers).any():
            refuse(f"the metric '{self.name}' must return a number, or one for each sample, got {score!r}")
        if self.is_share and not np.isin(numbers, (0, 1)).all():
            refuse(f"the metric '{self.name}' is a share, so that it must return 0 or 1, got {score!r}")
        return numbers


def _psnr(output: Array, label: Array, peak: float) -> float:
    """Return the peak signal-to-noise ratio in dB, which is infinite for equal arrays."""
    return float(10 * np.log10(np.divide(peak * peak, np.mean(np.square(output - label)))))


def _cosine(output: Array, label: Array, peak: float) -> float:
    """Return the cosine similarity: 1 for two zero vectors, and 0 if only one of them is zero."""
    norms = [float(np.linalg.norm(array)) for array in (output, label)]
    if not all(norms):
        return float(not any(norms))
    return float(np.clip(np.dot(output / norms[0], label / norms[1]), -1, 1))


ERRORS: dict[str, tuple[Callable[[Array, Array, float], float], bool]] = {
    "mse": (lambda output, label, _: float(np.mean(np.square(output - label))), False),
    "mae": (lambda output, label, _: float(np.mean(np.abs(output - label))), False),
    "psnr": (_psnr, True),
    "cosine": (_cosine, True),
}
"""The function of each metric, and whether higher is better."""


# --------------------------------------------------------------------------- rows of scores


def score_rows(output: Array) -> Array:
    """Return the rows of scores of an output as f64 [rows, classes]; axes of size 1 at the end are left out.

    Raise InputError for an output that has none.
    """
    classes = _row_length(output)
    if classes is None:
        refuse(f"the output of shape {shown(output.shape)} has no rows of scores by class")
    return numbers_of("output", output).reshape(-1, classes)


def _row_length(array: Array) -> int | None:
    """Return the length of the last axis, without axes of size 1 at the end; None if it is not a row of scores."""
    length = next((size for size in reversed(array.shape) if size != 1), 1)
    return length if length > 1 and array.size else None


def _classes(label: Array, rows: Array) -> Array:
    """Return the class of each row; raise InputError for labels that are not classes of these rows."""
    if label.dtype.kind not in "iu":
        refuse(f"the label is {label.dtype}, not a class", "classes are numbered from 0, in the order of the output")
    if label.size != len(rows):
        refuse(f"the label has {plural(label.size, 'class')}, and the output {plural(len(rows), 'row')} of scores")
    wrong = label[(label < 0) | (label >= rows.shape[1])]
    if wrong.size:
        message = f"the label {wrong.flat[0]} is not a class: the output has the classes 0 to {rows.shape[1] - 1}"
        refuse(message)
    return label.ravel().astype(np.intp)


def numbers_of(what: str, array: Array) -> Array:
    """Return an array as f64; raise InputError if it has no numbers."""
    if array.dtype.kind in "TUSO" or array.dtype.kind == "c":
        refuse(f"the {what} is {array.dtype}, and has no numbers to compare")
    return as_numbers(array).astype(np.float64)


def refuse(message: str, hint: str | None = None) -> NoReturn:
    """Raise InputError for an output or a label that does not suit the metric."""
    raise InputError(diagnose(BAD_INPUT, message, hint=hint))


class Score(NamedTuple):
    """A class, which is a position on the last axis, and its value."""

    number: int
    value: float
    label: str | None = None


def top_scores(array: Array, count: int, labels: Sequence[str] = ()) -> list[list[Score]] | None:
    """Return the ``count`` highest values of each row; None for a tensor that is not a row or table of scores.

    ``labels`` are the names of classes; a row of another length has no names.

    Axes of size 1 at the end are left out, and the axes before the last are taken as one. Among equal values the first
    comes first; NaN comes last.
    """
    if array.dtype.kind in "TUSOb":
        return None
    length = _row_length(array)
    if length is None:
        return None
    rows = as_numbers(array).reshape(-1, length)
    if rows.dtype.kind not in "fiu":
        return None
    keys = -rows if rows.dtype.kind == "f" else np.invert(rows)  # -rows of integers may overflow
    best = np.argsort(keys, axis=1, kind="stable")[:, :count]
    named = labels if len(labels) == length else [None] * length
    return [[Score(int(c), rows[i, c].item(), named[c]) for c in classes] for i, classes in enumerate(best)]
