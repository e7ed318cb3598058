"""Run a model in ovir and on the other side, and describe the fault of the other side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np

from ovir.analysis.tensor_comparison import Criterion, TensorComparison, Tolerance, root_mean_square
from ovir.core.arrays import Array
from ovir.debugging.divergences import reason_of_failure, reason_of_value
from ovir.debugging.engines import process
from ovir.debugging.layerwise_run import element_type_of
from ovir.diagnostics.errors import OvirError
from ovir.fuzzing.left_open import REASON, decided, depends_on_open
from ovir.fuzzing.reference import Reference
from ovir.fuzzing.targets import Target
from ovir.model import Model

_MARGIN = 4.0
"""How many times larger the errors of another engine may be than the rounding errors that are tried here."""
_TIMES = 3
"""The runs in one request, in new requests, and after new compilations by which a model is repeated."""
_LATER = "second run"


@dataclass(frozen=True)
class Fault:
    """A fault of the other side, or of ovir itself, on one model."""

    kind: str
    """``crash``, ``hang``, ``refusal``, ``shape``, ``type``, ``values``, ``second run``, or ``ovir`` for a fault of
    ovir itself."""
    message: str
    expected: Sequence[Array] = ()
    """The outputs in ovir."""
    actual: Sequence[Array] = ()
    """The outputs of the other side, in the run that differs."""
    tolerances: Sequence[Tolerance] = ()
    known: str | None = None
    """The known divergence that it is put down to."""

    @property
    def in_later_run(self) -> bool:
        """Return whether the first run has not shown it."""
        return self.kind == _LATER


@dataclass
class Judge:
    """Compares models with one target."""

    target: Target
    device: str
    """The device of OpenVINO with its release, whose known divergences count; empty if none do."""
    excuses_rounding: bool = True
    """Whether rounding errors that grow are not faults, which takes several runs to find out."""
    criterion: Criterion = field(default_factory=Criterion)
    seconds: dict[str, float] = field(default_factory=lambda: {"ovir": 0.0, "target": 0.0})
    """The time that each side took."""

    def fault(self, model: Model, inputs: Sequence[Array], *, anew: bool = False) -> Fault | None:
        """Return the fault in two runs, with ``anew`` also in new requests and after new compilations; None if there is
        none.

        Raises OvirError for a model that ovir does not run, UnsupportedError for one that the target does not claim to.
        """
        start = perf_counter()
        try:
            reference = Reference.of(model, inputs)
        except OvirError as error:
            if error.diagnostic.code == _INTERNAL:
                return Fault("ovir", error.diagnostic.message)
            raise
        finally:
            self.seconds["ovir"] += perf_counter() - start
        start = perf_counter()
        try:
            runs = self._runs(reference, anew=anew)
        except (process.EngineMissingError, process.UnsupportedError):
            raise
        except process.EngineError as error:
            return self._failed(reference, error)
        finally:
            self.seconds["target"] += perf_counter() - start
        start = perf_counter()
        try:
            return self._compared(reference, runs)
        finally:
            self.seconds["ovir"] += perf_counter() - start

    def appearances(self, model: Model, inputs: Sequence[Array], fault: Fault) -> tuple[int, int]:
        """Return in how many runs a fault shows after the target has begun anew, and the number of runs."""
        self.target.close()
        try:
            if fault.kind in _WITHOUT_RESULTS:
                found = [self.fault(model, inputs, anew=True) for _ in range(_TIMES)]
            else:
                reference = Reference.of(model, inputs)
                found = [self._compared(reference, [run]) for run in self._runs(reference, anew=True)]
        except process.EngineMissingError:
            raise
        except process.EngineError:  # it fails in another way
            return 0, 1
        return sum(one is not None and (one.kind == fault.kind or fault.in_later_run) for one in found), len(found)

    def _runs(self, reference: Reference, *, anew: bool) -> list[list[Array]]:
        """Return the outputs of the other side in several runs; only in one if ovir has no fixed results."""
        if not reference.is_repeatable:
            return self.target.run(reference.model, reference.inputs, 1)
        return self.target.run(reference.model, reference.inputs, _TIMES if anew else 2, anew=anew)

    def _failed(self, reference: Reference, error: process.EngineError) -> Fault:
        diagnostic = error.diagnostic
        message = diagnostic.message + (f" ({diagnostic.hint})" if diagnostic.hint else "")
        kind, known = "refusal", None
        if isinstance(error, process.EngineDiedError):
            kind = "hang" if isinstance(error, process.EngineHungError) else "crash"
        if self.device:
            text = message if kind == "refusal" else None
            row = reason_of_failure(reference.model, text, reference.arrays, self.device)
            known = self._warned(reference) or (None if row is None else row.case)
        return Fault(kind, message, reference.outputs, (), self._tolerances(reference), known)

    def _compared(self, reference: Reference, runs: Sequence[Sequence[Array]]) -> Fault | None:
        for number, results in enumerate(runs):
            fault = self._compared_run(reference, results)
            if fault is not None:
                return replace(fault, kind=_LATER, message=f"in a later run, {fault.message}") if number else fault
        return None

    def _compared_run(self, reference: Reference, results: Sequence[Array]) -> Fault | None:
        """Return the fault of one run; None if there is none."""
        if len(results) != len(reference.outputs):
            return self._fault(reference, "shape", f"{len(results)} outputs, not {len(reference.outputs)}", 0)
        for index, (one, other) in enumerate(zip(reference.outputs, results, strict=True)):
            fault = self._difference(reference, index, one, other)
            if fault is not None:
                return replace(fault, actual=results)
        return None

    def _difference(self, reference: Reference, index: int, one: Array, other: Array) -> Fault | None:
        """Return the difference of an output; None if it agrees."""
        if one.shape != other.shape:
            message = f"output {index} has shape {list(other.shape)}, not {list(one.shape)}"
            return self._fault(reference, "shape", message, index)
        if one.dtype != other.dtype:
            return self._fault(reference, "type", f"output {index} is of {other.dtype}, not {one.dtype}", index)
        tolerance = self._tolerance(reference, index, other)
        found = self.criterion.compare(decided(reference, index, other), decided(reference, index, one), tolerance)
        if found.within:
            return None
        if self.excuses_rounding and _is_sensitive(reference, index, other, tolerance):
            return None
        kind = element_type_of(reference.model.outputs[index], one)
        return self._fault(reference, "values", f"output {index} of {kind} differs: {_described(found)}", index)

    def _tolerance(self, reference: Reference, index: int, other: Array) -> Tolerance:
        port = reference.model.outputs[index]
        kind = element_type_of(port, reference.outputs[index])
        depth = reference.depths.of_port(port.source)
        found = self.criterion.between(kind, other, self.target.precision, depth)
        return replace(found, atol=_TINY) if kind.is_real else found

    def _tolerances(self, reference: Reference) -> list[Tolerance]:
        return [self._tolerance(reference, index, array) for index, array in enumerate(reference.outputs)]

    def _fault(self, reference: Reference, kind: str, message: str, index: int) -> Fault:
        known = REASON if depends_on_open(reference, index) else None
        if self.device and known is None:
            row = reason_of_value(reference.model, index, reference.arrays, self.device)
            known = self._warned(reference) or (None if row is None else row.case)
        return Fault(kind, message, reference.outputs, (), self._tolerances(reference), known)

    def _warned(self, reference: Reference) -> str | None:
        return "values on which devices may differ" if reference.has_warnings else None


_INTERNAL = "OVIR999"
_WITHOUT_RESULTS = ("crash", "hang", "refusal", "ovir")
_TINY = 2.0**-126
"""Devices may take smaller numbers, which are denormal in f32, for 0."""


def _described(comparison: TensorComparison) -> str:
    place = "" if comparison.position is None else f", at [{','.join(map(str, comparison.position))}] "
    values = "" if comparison.position is None else f"{comparison.actual} in place of {comparison.reference}"
    return f"{comparison.beyond} of {comparison.size} elements{place}{values}"


# --------------------------------------------------------------------------- rounding errors that grow


def _is_sensitive(reference: Reference, index: int, actual: Array, tolerance: Tolerance) -> bool:
    """Return whether a rounding error in each tensor explains how an output differs."""
    expected = reference.outputs[index]
    if expected.dtype.kind not in "fiub" and expected.dtype.kind != "V":
        return False
    others = [run[index] for run in reference.with_rounding_errors()]
    if any(other.shape != expected.shape for other in others):
        return True
    if not others:
        return False
    one, other = expected.astype(np.float64), actual.astype(np.float64)
    runs = [run.astype(np.float64) for run in others]
    with np.errstate(all="ignore"):
        stable = np.all([np.isfinite(run) == np.isfinite(one) for run in runs], axis=0)
        spread = np.max([np.nan_to_num(np.abs(run - one)) for run in runs], axis=0)
        allowed = _MARGIN * spread + tolerance.rtol * (np.abs(one) + root_mean_square(expected)) + tolerance.atol
        same = (one == other) | (np.isnan(one) & np.isnan(other)) | (np.abs(one - other) <= allowed)
    return not bool((stable & ~same).any())
