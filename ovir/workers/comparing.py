"""Comparisons of a model with another side for many sets of inputs, which workers divide among themselves."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

from ovir.debugging.compare import explained
from ovir.debugging.comparison import Comparison
from ovir.debugging.comparison_session import Findings, Session, finish
from ovir.debugging.comparison_setup import ComparisonOptions, Progress, as_model, input_sets
from ovir.debugging.sides import LayerMode
from ovir.model import Model
from ovir.workers.executors import Workers
from ovir.workers.tasks import Tasks

_MOST = 50
"""The most sets of inputs of one task; each task opens the other side."""


@dataclass(frozen=True)
class _Work:
    """The work on sets of inputs that follow each other. It is pickled with the model."""

    model: Model
    options: ComparisonOptions
    mode: LayerMode | None
    """The mode of comparing layers, after the outputs."""
    runs_whole: bool

    def __call__(self, numbers: range) -> Findings:
        """Return the findings of a comparison for the sets of these numbers; raise OvirError."""
        model = as_model(self.model)
        with self.options.open_side(model) as side:
            session = Session(model, side, self.options.criterion, None)
            sets = self.options.sets(model, side)[numbers.start : numbers.stop]
            session.compare(sets, self.mode, numbers.start, runs_whole=self.runs_whole)
            return session.findings


def compare_by_workers(
    model: Model,
    options: ComparisonOptions,
    progress: Progress | None = None,
    *,
    executor: Executor | None = None,
    workers: int | None = None,
) -> Comparison:
    """Return the result of ``ovir.compare`` for files or random samples, computed by the workers of an executor.

    Each worker has its own other side. ``progress`` is called with the number of sets of inputs that are done, and
    their total. Raise the errors of ``ovir.compare``, and RunError if a worker dies again and again.
    """
    model = as_model(model)
    total = len(input_sets(model, options.inputs, options.samples, options.seed))
    size = min(_MOST, -(-total // Workers(executor, workers).size))
    parts = [range(first, min(first + size, total)) for first in range(0, total, size)]
    findings = Findings()

    def compare(mode: LayerMode | None = None) -> None:
        """Add the findings of all parts; raise the first error."""
        work, done = _Work(model, options, mode, not findings.failed), 0
        with Tasks(work, parts, executor, workers=workers, name=_name_of) as outcomes:
            for outcome in outcomes:
                if outcome.error is not None:
                    raise outcome.error
                findings.add(outcome.result)
                done += len(outcome.item)
                if progress is not None:
                    progress(done, total, "")

    compare()
    comparison = finish(findings, model, options.criterion, total, options.mode, compare)
    return explained(
        *(comparison, options),
        lambda again: compare_by_workers(model, again, progress, executor=executor, workers=workers),
    )


def _name_of(numbers: range) -> str:
    return f"sets {numbers.start} to {numbers.stop - 1}"
