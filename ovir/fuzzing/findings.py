"""Findings: faults of one signature, reduced to a small model, and saved as folders that show them without ovir."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from time import monotonic
from typing import Any

from ovir.core.arrays import Array
from ovir.debugging.candidates import Candidate
from ovir.debugging.engines.process import EngineMissingError
from ovir.debugging.layerwise_run import ENDS
from ovir.debugging.reduce import ReductionSearch
from ovir.diagnostics.errors import OvirError
from ovir.diagnostics.wording import plural
from ovir.fuzzing.device_map import version_of
from ovir.fuzzing.judging import Fault, Judge
from ovir.model import Model

_WORDED = ("refusal", "ovir")
"""The kinds of faults whose messages name a cause."""
_SECONDS = 15.0
"""The time to reduce a model."""
_MOST_RUNS = 150
"""The most candidates that are tried."""


@dataclass
class Finding:
    """Faults of one signature."""

    signature: str
    """The kind of fault, the operations, and the message without numbers."""
    kind: str
    """``crash``, ``hang``, ``refusal``, ``shape``, ``type``, ``values``, ``second run``, or ``ovir``."""
    operations: list[str]
    """The operation versions of the reduced model."""
    message: str
    """The fault of the reduced model."""
    number: int
    """The number of the first model, which ``--seed`` makes again."""
    layers: int
    """The number of layers of the reduced model, without Parameters, Results and Consts."""
    count: int = 1
    """The number of models that have shown it."""
    seen: int = 1
    """The number of runs of the reduced model that have shown it: in one request, in new ones, and newly compiled."""
    runs: int = 1
    """The number of these runs."""
    unsteady: bool = False
    """Whether some of these runs have not shown it."""
    folder: str | None = None
    """The name of its folder."""
    report: str = ""
    """The text of its report, in Markdown."""

    @property
    def steadiness(self) -> str:
        """Return in how many runs it was seen, in words."""
        return f"{'unsteady: ' if self.unsteady else ''}in {self.seen} of {plural(self.runs, 'run')}"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Reduced:
    """The smallest model with a fault."""

    model: Model
    inputs: Sequence[Array]
    fault: Fault
    seen: int = 1
    runs: int = 1


def pattern(message: str) -> str:
    """Return a message without numbers, names and bracketed parts."""
    text = re.sub(r"'[^']*'|\[[^\]]*\]|\([^)]*\)", "", message)
    return re.sub(r"(?<![A-Za-z0-9])-?[0-9][0-9.e+-]*|\b(?:nan|inf|-inf|True|False)\b", "#", text)


def operations_of(model: Model) -> list[str]:
    """Return the operation versions of a model."""
    return sorted({version_of(layer) for layer in model.walk() if layer.type not in ENDS})


def signature_of(model: Model, fault: Fault) -> str:
    """Return the signature that faults with one cause share."""
    what = pattern(fault.message)[:200] if fault.kind in _WORDED else ""
    return " ".join(f"{fault.kind}: {' '.join(operations_of(model))}: {what}".split()).rstrip(": ")


def alike(one: Fault, other: Fault) -> bool:
    """Return whether faults are of the same kind, and have the same message where messages name a cause."""
    return one.kind == other.kind and (one.kind not in _WORDED or pattern(one.message) == pattern(other.message))


def reduce_fault(model: Model, inputs: Sequence[Array], fault: Fault, judge: Judge) -> Reduced:
    """Return the smallest model that has a fault of the same kind."""
    best, end, runs = Reduced(model, inputs, fault), monotonic() + _SECONDS, 0

    def attempt(candidate: Candidate, _: str) -> bool:
        nonlocal best, runs
        runs += 1
        if monotonic() > end or runs > _MOST_RUNS:
            raise _EnoughError
        try:
            arrays = candidate.feeds
            found = judge.fault(candidate.model, arrays, anew=fault.in_later_run)
        except EngineMissingError:
            raise
        except OvirError:
            return False
        if found is None or not alike(found, fault) or (found.known is not None and fault.known is None):
            return False
        best = Reduced(candidate.model, arrays, found)
        return True

    with suppress(_EnoughError):
        ReductionSearch(Candidate(model.clone(), given=dict(enumerate(inputs))), attempt).run()
    return best


class _EnoughError(Exception):
    """Reducing has taken long enough."""
