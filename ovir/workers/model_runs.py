"""Runs of one model in workers: each worker opens the model once, and keeps it."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from time import perf_counter
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ovir.core.arrays import Array
from ovir.diagnostics.codes import BAD_INPUT, USAGE
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import InputError, OvirError, ReadError
from ovir.io.tensor_files import load_npz, load_tensor
from ovir.model import Model
from ovir.runtime.compiled import CompiledModel, InferRequest
from ovir.runtime.pickling import PickledModel, is_in_use, open_compiled
from ovir.runtime.weight_files import require_unchanged
from ovir.workers.batches import Batched, differs, join_batch
from ovir.workers.worker import Answer, SetUpError, UnreachableError, answer_of


@runtime_checkable
class Loads(Protocol):
    """An input that a worker loads. ``str`` of it is its name in results and errors."""

    def load(self, model: Model) -> Any:
        """Return the inputs of the model, as a run takes them; raise OvirError."""


class Input(NamedTuple):
    """One input of ``ovir.map``, with its name and its session."""

    value: Any
    name: str
    session: Hashable = None
    state: Mapping[str, Array] | None = None
    """The values of variables that the run before it in its session has left."""

    def after(self, result: RunResult) -> Input:
        """Return the input with the state that an earlier run of its session has left."""
        return self._replace(state=result.state)


@dataclass(frozen=True)
class PickledInput:
    """An input with a method ``load``, pickled. A worker could not report an input that it fails to unpickle."""

    data: bytes

    @classmethod
    def of(cls, value: Loads) -> PickledInput | Loads:
        """Return a pickled input; the input itself if it cannot be pickled, which the executor then reports."""
        try:
            if type(value).__module__ == "__main__" and find_spec("cloudpickle") is not None:
                import cloudpickle

                return cls(cloudpickle.dumps(value))
            return cls(pickle.dumps(value))
        except Exception:
            return value

    def load(self, model: Model) -> Any:
        """Return the result of the input's ``load``; raise InputError if the input cannot be restored."""
        try:
            value = pickle.loads(self.data)
        except Exception as error:
            message = f"a worker cannot restore the input: {type(error).__name__}: {error}"
            hint = "define its class in a module that workers can import"
            raise InputError(diagnose(BAD_INPUT, message, hint=hint)) from None
        return _loaded_by(value, model)


class RunResult(NamedTuple):
    """The arrays of one run, without the model, which the caller has."""

    arrays: list[Array]
    taps: dict[str, list[Array]]
    diagnostics: list[Diagnostic]
    state: dict[str, Array] | None = None
    """The values of variables after a run that belongs to a session."""


@dataclass(frozen=True)
class ModelRuns:
    """Run a model on one input after the other; it is sent to the workers with each task, so it names the model."""

    token: str
    """Names the model, and with it the requests that workers keep."""
    path: str
    """The file with the recipe."""
    taps: tuple[str, ...] = ()
    recipe: PickledModel | None = None
    """The recipe itself, for a machine that has no access to files."""
    make_recipe: Callable[[], PickledModel] | None = None
    """A function of the caller that returns a recipe with everything."""
    batched: Batched | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "make_recipe": None}

    def __call__(self, item: Input) -> RunResult:
        """Run the model on an input; raise OvirError."""
        compiled = self._compiled()
        feeds = load(item.value, compiled.model)
        request = _request(self.token, compiled)
        done = self._run(request, feeds, item.state)
        if item.session is None:
            return done
        return done._replace(state={v.name: value for v in request.query_state() if (value := v.value) is not None})

    def on_all(self, items: Sequence[Input]) -> list[Answer]:
        """Run the model once on a batch of all items. If that fails, run it on each of them, to find the one at
        fault."""
        if self.batched is not None:
            start = perf_counter()
            compiled = self._compiled()
            try:
                feeds = [load(item.value, compiled.model) for item in items]
                batch, sizes = join_batch(compiled.model, feeds, self.batched)
                done = self._run(_request(self.token, compiled), batch)
                parts = self.batched.split(done.arrays, sizes)
                self._verify_once(compiled, feeds[0], parts[0])
            except OvirError:
                pass  # one by one, each input has its own error
            else:
                seconds = (perf_counter() - start) / len(items)
                return [Answer(RunResult(arrays, {}, done.diagnostics), None, seconds) for arrays in parts]
        return [answer_of(self, item) for item in items]

    def _verify_once(self, compiled: CompiledModel, feeds: Any, batched: Sequence[Array]) -> None:
        """Compare the result of an input in the first batch of this process with a run of its own; raise SetUpError if
        they differ, because the model mixes inputs."""
        if self.token in _verified:
            return
        alone = self._run(_request(self.token, compiled), feeds).arrays
        if differs(alone, batched):
            message = "an input has another result in a batch than alone: layers mix the inputs"
            diagnostic = diagnose(USAGE, message, Place(compiled.model.path), hint="run the inputs one by one")
            raise SetUpError(InputError(diagnostic))
        _verified.add(self.token)

    def _run(self, request: InferRequest, feeds: Any, state: Mapping[str, Array] | None = None) -> RunResult:
        request.reset_state()
        if state:
            for variable in request.query_state():
                variable.value = state.get(variable.name)
        files = request.compiled.weight_files
        require_unchanged(files, "the input did not run")  # which might end the process if the file is shorter now
        results = request.infer(feeds, taps=self.taps)
        require_unchanged(files, "the result of the input may be of both, and is dropped")
        return RunResult(list(results.values()), results.taps, results.diagnostics)

    def _compiled(self) -> CompiledModel:
        try:
            compiled = open_compiled(self.token, self._find)
        except UnreachableError:
            raise
        except ReadError as error:
            if self.recipe is None and self.path:
                raise UnreachableError from None
            raise SetUpError(error) from None
        except OvirError as error:
            raise SetUpError(error) from None
        assert isinstance(compiled, CompiledModel)
        return compiled

    def _find(self) -> PickledModel:
        if self.recipe is not None:
            return self.recipe
        try:
            recipe = PickledModel.read(self.path)
        except (OSError, ValueError):
            raise UnreachableError from None
        if recipe.token != self.token:  # another machine has another file under this name
            raise UnreachableError
        return recipe

    # ----- for machines that share no files with the caller

    def with_content(self) -> ModelRuns:
        """Return the same runs with everything that is needed to open the model."""
        assert self.make_recipe is not None
        return replace(self, recipe=self.make_recipe())

    def item_with_content(self, item: Input) -> Input:
        """Return an input with its arrays instead of the name of its file."""
        if isinstance(item.value, (str, os.PathLike)):
            return item._replace(value=_load_file(item.value))
        return item


def load(value: Any, model: Model) -> Any:
    """Return the arrays of an input; raise OvirError, or UnreachableError for a file that is missing here."""
    if isinstance(value, (str, os.PathLike)):
        if not os.path.exists(value):
            raise UnreachableError
        return _load_file(value)
    if isinstance(value, PickledInput):
        return value.load(model)
    return _loaded_by(value, model) if isinstance(value, Loads) else value


def _loaded_by(value: Loads, model: Model) -> Any:
    """Return the result of the user's method ``load``; raise InputError if it fails."""
    try:
        return value.load(model)
    except OvirError:
        raise
    except Exception as error:
        message = f"its method load failed: {type(error).__name__}: {error}"
        raise InputError(diagnose(BAD_INPUT, message)) from error


def _load_file(path: str | os.PathLike[str]) -> Mapping[str, Array] | Array:
    return load_npz(path) if os.fspath(path).lower().endswith(".npz") else load_tensor(path)


_verified: set[str] = set()
"""The models of which a batch has been compared with single runs."""
_requests: dict[tuple[str, int], InferRequest] = {}


def _request(token: str, compiled: CompiledModel) -> InferRequest:
    """Return the request that this thread uses for a model."""
    key = token, threading.get_ident()
    request = _requests.get(key)
    if request is None or request.compiled is not compiled:
        for other in [other for other in _requests if not is_in_use(other[0])]:
            _requests.pop(other, None)
        request = _requests[key] = compiled.create_infer_request()
    return request
