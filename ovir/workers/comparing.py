"""Comparisons of a model with another side for many sets of inputs, which workers divide among themselves."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from ovir.debugging.compare import Comparison, Findings, Session, finish
from ovir.debugging.comparison_setup import ComparisonOptions, InputSet, Progress, as_model, input_sets
from ovir.debugging.sides import LayerMode
from ovir.io.input_files import InputFile
from ovir.model import Model
from ovir.workers.executors import Workers
from ovir.workers.tasks import Tasks

_MOST = 50
"""The most sets of inputs of one task; each task opens the other side."""


@dataclass(frozen=True)
class _Part:
    """Sets of inputs that follow each other."""

    first: int
    files: Sequence[InputFile] | None
    """None for random inputs."""
    count: int


@dataclass(frozen=True)
class _Work:
    """What is done with a part. It is pickled with the model."""

    model: Model
    options: ComparisonOptions
    mode: LayerMode | None = None
    """How layers are compared, after the outputs."""
    runs_whole: bool = True

    def __call__(self, part: _Part) -> Findings:
        """Return the findings of a comparison for a part; raise OvirError."""
        model = as_model(self.model)
        sets = self._sets(model, part)
        with self.options.open_side(model) as side:
            session = Session(model, side, self.options.criterion, None)
            session.compare(sets, self.mode, part.first, runs_whole=self.runs_whole)
            return session.found

    def _sets(self, model: Model, part: _Part) -> list[InputSet]:
        if part.files is not None:
            return input_sets(model, part.files, None, 0)
        return input_sets(model, None, part.count, self.options.seed + part.first)


def compare_by_workers(
    model: Model,
    options: ComparisonOptions,
    files: Sequence[InputFile] | None,
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
    names = [item.name for item in input_sets(model, files, options.samples, options.seed)]
    work = _Work(model, replace(options, inputs=None))
    parts = _parts(files, len(names), Workers(executor, workers).size)
    found = _run(work, parts, executor, workers, progress)

    def compare_layers(mode: LayerMode) -> None:
        layers = replace(work, mode=mode, runs_whole=not found.failed)
        found.add(_run(layers, parts, executor, workers, progress))

    return finish(found, model, options.criterion, names, options.mode, compare_layers)


def _parts(files: Sequence[InputFile] | None, total: int, workers: int) -> list[_Part]:
    """Return sets of inputs in parts, one for each worker unless they are many."""
    size = min(_MOST, -(-total // workers))
    firsts = range(0, total, size)
    return [
        _Part(first, None if files is None else files[first : first + size], min(size, total - first))
        for first in firsts
    ]


def _run(
    work: _Work, parts: Sequence[_Part], executor: Executor | None, workers: int | None, progress: Progress | None
) -> Findings:
    """Return the findings of all parts together; raise the first error."""
    found = Findings()
    total = sum(part.count for part in parts)
    done = 0
    with Tasks(work, parts, executor, workers=workers, name=_name_of) as outcomes:
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
            found.add(outcome.result)
            done += outcome.item.count
            if progress is not None:
                progress(done, total, "")
    return found


def _name_of(part: _Part) -> str:
    return f"sets {part.first} to {part.first + part.count - 1}"
