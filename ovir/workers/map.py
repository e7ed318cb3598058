"""``ovir.map``: one model on many inputs."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import InputError, OvirError, WriteError, require_counts
from ovir.diagnostics.wording import reason_of
from ovir.graph.layers import Port
from ovir.model import Model, read_model
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.listeners import Tap
from ovir.runtime.pickling import PickledModel
from ovir.runtime.results import Results, output_keys
from ovir.system.interrupts import temporary_folder
from ovir.workers.batches import find_batch_axis
from ovir.workers.model_runs import Input, Loads, ModelRuns, PickledInput, RunResult

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from ovir.workers.tasks import Outcome

Sessions = Callable[[Any], Hashable] | Iterable[Hashable]


class MappedResults(Results):
    """The outputs of one input of ``ovir.map``."""

    index: int
    """The position of the input, from 0."""
    name: str
    """The path of the input, or ``input 17``."""
    seconds: float
    """The time that a worker took for it; inputs of a batch share its time."""

    def __repr__(self) -> str:
        return f"<{self.name}: {super().__repr__()[1:]}"


class MapError(OvirError):
    """An input on which ``ovir.map`` failed."""

    def __init__(self, *diagnostics: Diagnostic, index: int = 0, name: str = "") -> None:
        super().__init__(*diagnostics)
        self.index = index
        """The position of the input, from 0."""
        self.name = name
        """The path of the input, or ``input 17``."""

    def __reduce__(self) -> Any:
        return partial(MapError, index=self.index, name=self.name), self.diagnostics


def map(
    model: CompiledModel | Model | str | os.PathLike[str],
    inputs: Iterable[Any],
    executor: Executor | None = None,
    *,
    taps: Sequence[str] = (),
    batch: int | None = None,
    chunksize: int = 1,
    ordered: bool = True,
    on_error: Literal["raise", "return"] = "raise",
    session: Sessions | None = None,
    workers: int | None = None,
) -> Mapped:
    """Run a model on many inputs, on several processes or machines; return an iterator over the results.

    Inputs are taken from the iterable as results are fetched, a few per worker, so it may be endless. Each worker opens
    the model once; weights in files are mapped and shared by the processes of a machine. A worker uses one thread,
    unless the model was compiled with ``threads``. If a worker dies, its inputs run once more, each alone.

    Each result is a ``Results`` with ``index``, ``name`` and ``seconds``.

    Args:
        model: A compiled model, a model, or the path of an .xml.
        inputs: Inputs of runs (mappings, lists, arrays), paths of .npz or .npy, or objects with a method
            ``load(model)`` that returns one of these; workers load files.
        executor: Any ``concurrent.futures.Executor``: of the standard library, loky, mpi4py, or
            ``Client.get_executor()`` of dask. Without one, a pool of processes on this machine works until the iterator
            ends or is closed.
        taps: Names of layers as in a call of the model.
        batch: Number of inputs to stack along the first axis that all inputs leave open, to run together. Inference
            checks that all outputs have this axis, and the first batch is compared with single runs.
        chunksize: Number of inputs for a worker at a time; more save time if runs are short or the executor is slow
            to hand out tasks.
        ordered: Whether results come in the order of the inputs, or else as they are ready.
        on_error: ``"raise"``: an input that fails raises MapError, after which the iteration can go on; ``"return"``:
            it has the MapError as its result.
        session: A key for each input or a function that returns it: the inputs with the same key run in order, and each
            starts with the variables that the one before it has left. Without it, variables start anew for each input.
        workers: The number of processes in place of an executor; by default one for each core.

    Raises InputError for wrong arguments, ReadError or ModelError if the model cannot be opened, WriteError if there is
    no space for temporary files, and RunError if workers cannot work at all.
    """
    from ovir.workers.tasks import Tasks  # its imports take time, which `import ovir` need not spend

    _require_arguments(inputs, taps, batch, chunksize, on_error, session)
    compiled, opened = _opened(model, executor)
    Tap([taps] if isinstance(taps, str) else taps, opened)  # raises for names that the model does not have
    runs = ModelRuns("", "", (taps,) if isinstance(taps, str) else tuple(taps))
    if batch is not None:
        runs = replace(runs, batched=find_batch_axis(opened))
    with ExitStack() as files:  # which an error removes
        tasks = Tasks(
            _published(files, compiled, opened, runs),
            _named(inputs, session, here=_is_thread_pool(executor)),
            executor,
            workers=workers,
            ordered=ordered,
            chunk=batch or chunksize,
            name=attrgetter("name"),
            session=None if session is None else attrgetter("session"),
            after=Input.after,
        )
        return Mapped(opened, compiled, tasks, files.pop_all(), raises=on_error == "raise")


def _require_arguments(
    inputs: object, taps: object, batch: object, chunksize: object, on_error: object, session: object
) -> None:
    """Raise InputError for arguments that ``map`` does not take, or not together."""
    if on_error not in ("raise", "return"):
        raise InputError.usage(f"on_error must be 'raise' or 'return', got {on_error!r}")
    if isinstance(inputs, (str, bytes, os.PathLike, Mapping, np.ndarray)) or not isinstance(inputs, Iterable):
        message = f"inputs must be an iterable of inputs, got one {type(inputs).__name__}"
        raise InputError.usage(message, hint="put a single input into a list")
    require_counts(batch=batch, chunksize=chunksize)
    if not isinstance(taps, Sequence):
        raise InputError.usage(f"taps must be the names of layers, got {taps!r}")
    keyed = callable(session) or (isinstance(session, Iterable) and not isinstance(session, str))
    if session is not None and not keyed:
        message = f"session must be a function or an iterable with a key for each input, got {session!r}"
        raise InputError.usage(message)
    for one, other in (("batch", "taps"), ("batch", "session"), ("batch", "chunksize"), ("chunksize", "session")):
        given = {"batch": batch is not None, "chunksize": chunksize != 1, "session": session is not None, "taps": taps}
        if given[one] and given[other]:
            raise InputError.usage(f"{one} and {other} exclude each other")


class Mapped(Iterator[MappedResults], AbstractContextManager["Mapped"]):
    """The results of ``ovir.map``; with ``on_error="return"``, some of them are MapErrors.

    ``close``, or the end of a ``with`` block, ends the work early.
    """

    def __init__(
        self, model: Model, compiled: CompiledModel | None, tasks: Any, files: ExitStack, *, raises: bool
    ) -> None:
        self._ports: list[Port] = model.outputs
        self._keys = output_keys(model.outputs)
        self._compiled = compiled  # what threads of this process run
        self._tasks = tasks
        self._raises = raises
        self._remove = weakref.finalize(self, files.close)

    def __next__(self) -> MappedResults:
        try:
            outcome: Outcome[Input] = next(self._tasks)
        except BaseException:
            self.close()
            raise
        if outcome.error is not None:
            parts = (
                d if d.file == outcome.name else replace(d, message=f"{outcome.name}: {d.message}")
                for d in outcome.error.diagnostics
            )
            error = MapError(*parts, index=outcome.index, name=outcome.name)
            if self._raises:
                raise error from outcome.error
            return cast("MappedResults", error)
        done: RunResult = outcome.result
        result = MappedResults(self._ports, self._keys, done.arrays, done.taps, done.diagnostics)
        result.index, result.name, result.seconds = outcome.index, outcome.name, outcome.seconds
        return result

    def close(self) -> None:
        """Stop the work, and the processes unless the caller started them."""
        self._tasks.close()
        self._remove()

    def __exit__(self, *_: object) -> None:
        self.close()


def error_text(error: OvirError, name: str) -> str:
    """Return the diagnostics of an error of an input, without the place in the model's file, and the input's name."""
    lines = (str(replace(diagnostic, file=None, line=None, column=None)) for diagnostic in error.diagnostics)
    return "\n".join(line.replace(f"{name}: ", "", 1) for line in lines)


def _opened(
    model: CompiledModel | Model | str | os.PathLike[str], executor: Executor | None
) -> tuple[CompiledModel | None, Model]:
    """Return the compiled model, if there is one, and the model. Threads of this process share a compiled model."""
    if not isinstance(model, (CompiledModel, Model)):
        model = read_model(model)
    if _is_thread_pool(executor):
        compiled = CompiledModel(model) if isinstance(model, Model) else model
        model = compiled.with_own_state(threads=compiled.threads or 1)
    return (None, model) if isinstance(model, Model) else (model, model.model)


def _is_thread_pool(executor: Executor | None) -> bool:
    """Return whether the workers are threads of this process."""
    from concurrent.futures import ThreadPoolExecutor

    return isinstance(executor, ThreadPoolExecutor)


def _published(files: ExitStack, compiled: CompiledModel | None, model: Model, runs: ModelRuns) -> ModelRuns:
    """Write the recipe of the model to a temporary folder, and return runs that name it."""
    kind, options = (CompiledModel, {}) if compiled is None else (type(compiled), compiled.options)
    recipe = PickledModel.of(kind, model, {}) if compiled is None else compiled.recipe()

    def embedded() -> PickledModel:
        return PickledModel.of(kind, model, options, embedded=True, token=recipe.token)

    folder = None
    try:
        folder = os.fspath(files.enter_context(temporary_folder()))
        path = os.path.join(folder, "model.recipe")
        recipe.write(path)
    except OSError as error:
        message = f"cannot write the model for the workers: {reason_of(error)}"
        raise WriteError.of_file(folder, message) from None
    return replace(runs, token=recipe.token, path=path, make_recipe=embedded)


# --------------------------------------------------------------------------- inputs


def _named(inputs: Iterable[Any], session: Sessions | None, *, here: bool) -> Iterator[Input]:
    """Yield the inputs with their names and sessions; workers of this process need no pickles."""
    keys: Iterator[Hashable] | None = None if session is None or callable(session) else iter(session)
    for index, value in enumerate(inputs):
        name = f"input {index}"
        if isinstance(value, (str, os.PathLike)):
            name = value = os.path.abspath(value)
        elif isinstance(value, Loads) and _has_text(value):
            name = str(value)
        key = _key(session, keys, index, value)
        if isinstance(value, Loads) and not here:
            value = PickledInput.of(value)
        yield Input(value, name, key)


def _key(session: Sessions | None, keys: Iterator[Hashable] | None, index: int, value: Any) -> Hashable:
    if session is None:
        return None
    if keys is None:
        assert callable(session)
        key = session(value)
    else:
        key = next(keys, _NO_KEY)
    if key is _NO_KEY:
        raise InputError.usage(f"session has {index} keys, but there are more inputs")
    if not isinstance(key, Hashable):
        raise InputError.usage(f"the session of input {index} must be hashable, got {key!r}")
    return key


_NO_KEY = object()


def _has_text(value: object) -> bool:
    """Return whether the text of an object says more than where it is in memory."""
    return type(value).__str__ is not object.__str__ or type(value).__repr__ is not object.__repr__
