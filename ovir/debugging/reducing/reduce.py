"""``ovir.reduce``: the smallest model for which a program fails as it does for the whole model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ovir.core.arrays import Array
from ovir.core.interrupts import temporary_folder
from ovir.debugging.reducing.candidates import count
from ovir.debugging.reducing.checks import Answers, Check, Command, status_text
from ovir.debugging.reducing.search import Search
from ovir.debugging.reducing.stage import Stage
from ovir.diagnostics.errors import InputError
from ovir.model import Model, read_model, save_model


@dataclass(frozen=True)
class ReductionStep:
    """A step of the search that has made the model smaller."""

    name: str
    """What the step tries, such as ``cut the end``."""
    runs: int
    """The number of runs of the check so far, at the end of the step."""
    layers: int
    """The number of layers at the end of the step, without Parameters, Results, Consts and Assigns."""


@dataclass
class Reduction:
    """The smallest model that was found."""

    model: Model
    """The model, inferred."""
    status: int
    """The status of the check for this model and for the whole one."""
    layers_before: int
    """The number of layers of the whole model, without Parameters, Results, Consts and Assigns."""
    layers: int
    """The number of layers of the smallest model, counted in the same way."""
    runs: int
    """How often the check has run."""
    steps: list[ReductionStep] = field(default_factory=list)
    """The steps that have made the model smaller, in order."""
    complete: bool = True
    """Whether nothing smaller was left to try when the search ended; False after ``max_runs`` runs."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON, without the model."""
        return {
            "status": self.status,
            "layers_before": self.layers_before,
            "layers": self.layers,
            "runs": self.runs,
            "complete": self.complete,
            "remaining": [
                {"id": layer.id, "name": layer.key, "type": layer.type, "version": layer.version}
                for layer in self.model.walk()
            ],
            "steps": [{"name": step.name, "runs": step.runs, "layers": step.layers} for step in self.steps],
        }


Progress = Callable[[Reduction, str], None]
"""Called after each run with the best result so far and the name of the present step."""


def reduce(
    model: Model | str | os.PathLike[str],
    check: str | Check,
    *,
    output: str | os.PathLike[str] | None = None,
    status: int | None = None,
    timeout: float | None = None,
    work: str | os.PathLike[str] | None = None,
    inputs: Mapping[Any, Array] | None = None,
    seed: int = 0,
    max_runs: int | None = None,
    progress: Progress | None = None,
) -> Reduction:
    """Return the smallest model that is found for which a check has the same status as for the whole model.

    ``check`` is a command in which ``{}`` stands for the path of a candidate, or a function that is called with this
    path and returns a number. The status of a command is its exit status, the negative number of the signal that ended
    it, or 124 if it took more than ``timeout`` seconds. ``status`` is the status to look for; by default it is the
    one of the whole model, which must not be 0 then.

    Every candidate passes inference. Tensors of layers that are removed become inputs, or constants with the values
    that ovir computes for ``inputs`` (by name or position; random ones of ``seed`` by default). The folder ``work``
    keeps the answers of the check, so that the same call continues where an earlier one was interrupted, and the best
    model so far in ``best.xml``. The result is saved as ``output``, even if the search is interrupted. After
    ``max_runs`` runs of the check the best model so far is the result.

    Raises InputError if the check cannot be used: if it cannot be started, passes for the whole model, does not give
    the same status twice, or has the same status for a model without layers. This takes 3 runs.
    """
    if max_runs is not None and max_runs < _FIRST_RUNS:
        raise InputError.usage(
            f"max_runs must be at least {_FIRST_RUNS}, which are needed to test the check, got {max_runs}"
        )
    whole = model if isinstance(model, Model) else read_model(model)
    given = {whole.input_index(key): array for key, array in (inputs or {}).items()}
    function = Command(check, timeout) if isinstance(check, str) else check
    name = check if isinstance(check, str) else getattr(check, "__qualname__", type(check).__name__)
    with _folder(work) as folder:
        runs = _Runs(function, Answers(f"{timeout} {name}", None if work is None else folder), folder, max_runs)
        found = Reduction(whole, runs.status_of_whole(whole, status), count(whole), count(whole), runs.count)
        runs.require_attention(whole, found.status)
        found.runs = runs.count
        reducer = _Reducer(found, runs, progress)
        search = Search(Stage(whole.clone(), given=given, seed=seed), reducer.attempt)
        try:
            search.run()
        except _OutOfRunsError:
            found.complete = False
        finally:
            if output is not None:
                save_model(found.model, output)
    return found


_FIRST_RUNS = 3
"""The runs that show whether the check can be used."""


@contextmanager
def _folder(work: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Create the folder for candidates, which is a temporary one by default."""
    if work is not None:
        Path(work).mkdir(parents=True, exist_ok=True)
        yield Path(work).resolve()
        return
    with temporary_folder("ovir-reduce-") as folder:
        yield folder


class _OutOfRunsError(Exception):
    """All runs that are allowed have been used."""


class _Runs:
    """Runs the check on models, and keeps its answers."""

    def __init__(self, check: Check, answers: Answers, folder: Path, most: int | None) -> None:
        self.count = 0
        self.candidate = folder / "candidate.xml"
        self.best = folder / "best.xml"
        self._check = check
        self._answers = answers
        self._most = most
        self._key = self._best_key = ""

    def status_of_whole(self, model: Model, wanted: int | None) -> int:
        """Return the status to look for; raise InputError if the check cannot be used."""
        save_model(model, self.candidate)
        first, second = self._run(), self._run()
        if first != second:
            both = f"{status_text(first)}, then {status_text(second)}"
            raise InputError.usage(
                f"the check is flaky: for the whole model it gives {both}",
                hint="a reduction needs a check that always gives the same status for the same model",
            )
        if isinstance(self._check, Command):
            self._check.require_started(first)
        printed = self._printed()
        if wanted is not None and first != wanted:
            raise InputError.usage(f"the check gives {status_text(first)} for the whole model, not {wanted}{printed}")
        if wanted is None and first == 0:
            hint = "reduce a model for which the check fails, or give status 0 to find the smallest one that passes"
            raise InputError.usage(
                f"the check gives status 0 for the whole model: there is no failure to look for{printed}", hint=hint
            )
        self._best_key = self._answers.key(self.candidate)
        return first

    def require_attention(self, model: Model, wanted: int) -> None:
        """Raise InputError if the check has the wanted status for a model that returns its inputs, too."""
        if not model.inputs or not count(model):
            return
        save_model(model.extract(inputs=list(model.inputs), outputs=list(model.inputs)), self.candidate)
        if self._run() == wanted:
            raise InputError.usage(
                f"the check gives {status_text(wanted)} even for a model without layers, so it does not look at what "
                f"the model computes{self._printed()}",
                hint="a check needs one status for the failure and another one for all else, such as wrong usage",
            )

    def _printed(self) -> str:
        line = self._check.last_line if isinstance(self._check, Command) else ""
        return f"; it prints: {line}" if line else ""

    def status(self, model: Model) -> int | None:
        """Return the status of a candidate, which is run unless the answer is known; None for the best model again."""
        save_model(model, self.candidate)
        self._key = self._answers.key(self.candidate)
        if self._key == self._best_key:
            return None
        known = self._answers.get(self._key)
        if known is None:
            known = self._run()
            self._answers.set(self._key, known)
        return known

    def keep(self) -> None:
        """Keep the files of the last candidate as the best model so far."""
        self._best_key = self._key
        for suffix in (".xml", ".bin"):
            self.candidate.with_suffix(suffix).replace(self.best.with_suffix(suffix))

    def _run(self) -> int:
        if self._most is not None and self.count >= self._most:
            raise _OutOfRunsError
        self.count += 1
        status = self._check(os.fspath(self.candidate))
        if isinstance(status, bool) or not isinstance(status, int):
            raise InputError.usage(f"the check must return an integer, got {status!r}")
        return status


class _Reducer:
    """Updates the result while candidates are tried."""

    def __init__(self, found: Reduction, runs: _Runs, progress: Progress | None) -> None:
        self._found = found
        self._runs = runs
        self._progress = progress

    def attempt(self, candidate: Stage, step: str) -> bool:
        """Check a candidate; return whether it has the wanted status, and is the best one so far then."""
        found = self._found
        is_as_good = self._runs.status(candidate.model) == found.status
        found.runs = self._runs.count
        if is_as_good:
            self._runs.keep()
            found.model, found.layers = candidate.model, count(candidate.model)
            if found.steps and found.steps[-1].name == step:
                found.steps.pop()
            found.steps.append(ReductionStep(step, found.runs, found.layers))
        if self._progress is not None:
            self._progress(found, step)
        return is_as_good
