"""Reduce a model to the smallest one that still fails a check."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ovir.core.arrays import Array
from ovir.core.html import html_table
from ovir.core.json_fields import json_fields
from ovir.debugging import candidates
from ovir.debugging.candidates import Candidate, Fill, counted_layers
from ovir.debugging.failure_checks import Answers, Check, Command, status_text
from ovir.debugging.searches import Item, least, needed
from ovir.diagnostics.errors import InputError, OvirError, require_seconds
from ovir.diagnostics.wording import plural
from ovir.model import Model, opened, save_model
from ovir.system.interrupts import temporary_folder


@dataclass(frozen=True)
class ReductionStep:
    """A step of the search that has made the model smaller."""

    name: str
    """The action of the step, such as ``cut the end``."""
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
    """The number of runs of the check."""
    steps: list[ReductionStep] = field(default_factory=list)
    """The steps that have made the model smaller, in order."""
    complete: bool = True
    """Whether nothing smaller was left to try when the search ended; False after ``max_runs`` runs."""

    def _repr_html_(self) -> str:
        title = f"{self.layers_before} layers reduced to {self.layers} in {plural(self.runs, 'run')} of the check"
        return html_table(title, ("id", "operation", "name"), [(x.id, x.type, x.key) for x in self.model.walk()])

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON, without the model."""
        layers = [json_fields(layer, "id", "name=key", "type", "version") for layer in self.model.walk()]
        head = json_fields(self, "status", "layers_before", "layers", "runs", "complete")
        return {**head, "remaining": layers, "steps": [vars(step).copy() for step in self.steps]}


ReductionProgress = Callable[[Reduction, str], None]
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
    progress: ReductionProgress | None = None,
) -> Reduction:
    """Return the smallest model that is found for which a check has the same status as for the whole model.

    Every candidate passes inference. Tensors of layers that are removed become inputs, or constants with the values
    that ovir computes. The result is saved even if the search is interrupted.

    Args:
        model: The model, or the path of an .xml.
        check: A command in which ``{}`` stands for the path of a candidate, or a function that is called with this path
            and returns a number. The status of a command is its exit status, the negative number of the signal that
            ended it, or 124 if it took more than ``timeout`` seconds.
        output: The path of an .xml, to which the result is saved.
        status: The status to look for; by default the one of the whole model, which must not be 0 then.
        timeout: The seconds that a command may take.
        work: The folder that keeps the answers of the check, so that the same call continues where an earlier one was
            interrupted, and the best model so far in ``best.xml``.
        inputs: The inputs, by name or position, whose values decide what constants hold; by default random ones.
        seed: The seed of random inputs.
        max_runs: The number of runs of the check, after which the best model so far is the result.
        progress: Called after each run of the check with the best result so far and the name of the present step.

    Raises InputError if the check cannot be used: if it cannot be started, passes for the whole model, does not give
    the same status twice, or has the same status for a model without layers. This takes 3 runs.
    """
    if max_runs is not None and max_runs < _FIRST_RUNS:
        reason = f"must be at least {_FIRST_RUNS}, which are needed to test the check, got {max_runs}"
        raise InputError.usage(reason, option="max_runs")
    require_seconds(timeout=timeout)
    whole = opened(model)
    given = {whole.input_index(key): array for key, array in (inputs or {}).items()}
    function = Command(check, timeout) if isinstance(check, str) else check
    name = check if isinstance(check, str) else getattr(check, "__qualname__", type(check).__name__)
    if work is not None:
        Path(work).mkdir(parents=True, exist_ok=True)
    with temporary_folder("ovir-reduce-") if work is None else nullcontext(Path(work).resolve()) as folder:
        size = len(counted_layers(whole))
        found = Reduction(whole, 0, size, size, 0)
        answers = Answers(f"{timeout} {name}", None if work is None else folder)
        reducer = _Reducer(found, function, answers, folder, max_runs, progress)
        reducer.begin(status)
        search = ReductionSearch(Candidate(whole.clone(), given=given, seed=seed), reducer.attempt)
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


# --------------------------------------------------------------------------- the check


class _OutOfRunsError(Exception):
    """All runs that are allowed have been used."""


class _Reducer:
    """Runs the check on models, keeps its answers, and updates the result."""

    def __init__(
        self,
        found: Reduction,
        check: Check,
        answers: Answers,
        folder: Path,
        most: int | None,
        progress: ReductionProgress | None,
    ) -> None:
        self._found = found
        self._check = check
        self._answers = answers
        self._candidate, self._best = folder / "candidate.xml", folder / "best.xml"
        self._most = most
        self._progress = progress
        self._best_key = ""

    def begin(self, wanted: int | None) -> None:
        """Find the status to look for; raise InputError if the check cannot be used."""
        whole = self._found.model
        save_model(whole, self._candidate)
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
        self._found.status = first
        self._best_key = self._answers.key(self._candidate)
        if not whole.inputs or not self._found.layers:
            return
        save_model(whole.extract(inputs=list(whole.inputs), outputs=list(whole.inputs)), self._candidate)
        if self._run() == first:
            raise InputError.usage(
                f"the check gives {status_text(first)} even for a model without layers, so it does not look at what "
                f"the model computes{self._printed()}",
                hint="a check needs one status for the failure and another one for all else, such as wrong usage",
            )

    def _printed(self) -> str:
        line = self._check.last_line if isinstance(self._check, Command) else ""
        return f"; it prints: {line}" if line else ""

    def attempt(self, candidate: Candidate, step: str) -> bool:
        """Check a candidate; return whether it has the wanted status, and is the best one so far then."""
        found = self._found
        save_model(candidate.model, self._candidate)
        key = self._answers.key(self._candidate)
        is_as_good = key != self._best_key and self._answers.of(key, self._run) == found.status
        if is_as_good:
            self._best_key = key
            for suffix in (".xml", ".bin"):
                self._candidate.with_suffix(suffix).replace(self._best.with_suffix(suffix))
            found.model, found.layers = candidate.model, len(counted_layers(candidate.model))
            if found.steps and found.steps[-1].name == step:
                found.steps.pop()
            found.steps.append(ReductionStep(step, found.runs, found.layers))
        if self._progress is not None:
            self._progress(found, step)
        return is_as_good

    def _run(self) -> int:
        if self._most is not None and self._found.runs >= self._most:
            raise _OutOfRunsError
        self._found.runs += 1
        status = self._check(os.fspath(self._candidate))
        if isinstance(status, bool) or not isinstance(status, int):
            raise InputError.usage(f"the check must return an integer, got {status!r}")
        return status


# --------------------------------------------------------------------------- the search

Make = Callable[[Candidate], Candidate | None]
Try = Callable[[Candidate, str], bool]
"""Checks a candidate of a step; returns whether it fails as the whole model does."""

_MOST_FAILURES = 3
"""After this many sizes of chunks without success a step ends, because whatever it leaves is probably needed."""


class ReductionSearch:
    """The smallest model so far, and the steps that look for a smaller one."""

    def __init__(self, whole: Candidate, attempt: Try) -> None:
        self.best = whole
        self.accepted = 0
        self._attempt = attempt
        self._step = ""

    def run(self) -> None:
        """Take all steps until none of them finds a smaller model."""
        while self._progress(self._reduce_structure) or self._progress(self._shrink):
            pass
        self._step = "strip rt_info"
        if candidates.has_rt_info(self.best):
            self._try(candidates.stripped)

    def remove_context(self) -> None:
        """Remove layers from the beginning and in between, and outputs, as long as that makes the model smaller."""
        while self._progress(self._remove_context):
            pass

    def _remove_context(self) -> None:
        self._remove_layers(Fill.PARAMETERS)
        self._drop_outputs()

    def _progress(self, steps: Callable[[], None]) -> bool:
        before = self.accepted
        steps()
        return self.accepted > before

    def _try(self, make: Make) -> bool:
        """Check the candidate that a function makes of the smallest model, and keep it if it is as good."""
        try:
            candidate = make(self.best)
        except OvirError:  # inference refuses it, or ovir cannot compute what it needs
            return False
        if candidate is None or not self._attempt(candidate, self._step):
            return False
        self.best = candidate
        self.accepted += 1
        return True

    # ----- structure

    def _reduce_structure(self) -> None:
        self._cut("cut the end", candidates.layers_of(self.best), Fill.PARAMETERS)
        self._remove_layers(Fill.PARAMETERS)
        for shortest in (True, False):
            make = partial(candidates.past, shortest=shortest)
            self._minimize("bypass layers", candidates.paths(self.best), make)
        for fill in (Fill.MIXED, Fill.CONSTANTS):
            self._remove_layers(fill)
        self._step = "enter a body"
        for body in candidates.bodies(self.best):
            if self._try(partial(_given, body)):
                break
        self._drop_outputs()
        unread = [port.layer.id for port in self.best.model.inputs if not port.readers]
        self._minimize("drop inputs", unread, candidates.without_inputs)
        constant = candidates.layers_of(self.best, are_constant=True)
        self._minimize("fold constants", constant, candidates.without)

    def _drop_outputs(self) -> None:
        outputs = [port.layer.id for port in self.best.model.outputs]
        self._minimize("drop outputs", outputs, candidates.with_outputs)

    def _remove_layers(self, fill: Fill) -> None:
        self._cut(f"cut the beginning ({fill})", candidates.layers_of(self.best)[::-1], fill)
        self._step = f"remove layers ({fill})"
        make = partial(candidates.without, fill=fill)
        if between := candidates.layers_of(self.best)[1:-1]:  # both ends are known to be needed, if the cuts worked
            self._try(partial(make, removed=between))
        self._minimize(self._step, candidates.layers_of(self.best), make)

    def _cut(self, step: str, layers: Sequence[int], fill: Fill) -> None:
        """Remove as many of these layers as possible, from the last one on."""
        self._step = step

        def suffices(length: int) -> bool:
            return self._try(partial(candidates.without, removed=layers[length:], fill=fill))

        # what a longer search would gain is less than what other steps gain with the same runs
        least(0, len(layers), suffices, least_gain=max(len(layers) // 16, 1))

    def _minimize(
        self, step: str, items: Sequence[Item], make: Callable[[Candidate, Collection[Item]], Candidate | None]
    ) -> None:
        """Remove chunks of items, of half of them at first, and of one item in the end."""

        def can_remove(chunk: Sequence[Item], _: Sequence[Item]) -> bool:
            return self._try(lambda best: make(best, chunk))

        self._step = step
        if items and not can_remove(items, ()):
            needed(items, can_remove, most_failures=_MOST_FAILURES)

    # ----- sizes and values

    def _shrink(self) -> None:
        self._step = "shrink dimensions"
        self._try(candidates.static)
        for size in candidates.sizes(self.best):
            self._shrink_size(size)
        varied = candidates.varied_constants(self.best)
        self._minimize("simplify constants", varied, candidates.with_equal_elements)

    def _shrink_size(self, size: int) -> None:
        """Find the least size that all dimensions of one size can have instead."""
        present = size

        def suffices(wanted: int) -> bool:
            nonlocal present
            if not any(self._try(make) for make in candidates.resized(self.best, present, wanted)):
                return False
            present = wanted
            return True

        if not suffices(1):
            least(1, size, suffices)


def _given(candidate: Candidate, _: Candidate) -> Candidate:
    return candidate
