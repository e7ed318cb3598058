"""Tasks: a function applied to many items by the workers of an executor, a few at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Generic, Self, TypeVar

from ovir.diagnostics.codes import ENGINE, WORKER_DIED
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import InputError, OvirError, RunError
from ovir.diagnostics.wording import plural
from ovir.workers.executors import Crew, is_cancelled, is_death, lanes, refuse_start_in_child
from ovir.workers.worker import Answer, SendsContent, SetUpError

Item = TypeVar("Item")

_PER_WORKER = 3
"""The number of tasks that each worker has or waits for, so that it need not wait for the next one."""
_LONG = 5.0
"""Seconds without any result, after which it is worth a look whether there are workers at all."""
_MOST_RUNS = 3
"""How many times a task runs whose worker dies each time."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Item]):
    """The result of one item, or the error that it failed with."""

    index: int
    """The position among the items, from 0."""
    item: Item
    name: str
    result: Any = None
    error: OvirError | None = None
    seconds: float = 0.0
    """How long the work on it took."""


@dataclass(frozen=True, slots=True)
class _Task(Generic[Item]):
    """Items that one call of the executor works on."""

    first: int
    items: list[Item]
    lane: int = 0
    key: Hashable = None
    deaths: int = 0
    """How many times its result was lost, because its worker died."""
    has_content: bool = False


def map_tasks(
    function: Callable[[Item], Any],
    items: Iterable[Item],
    executor: Executor | None = None,
    *,
    workers: int | None = None,
    ordered: bool = True,
    chunk: int = 1,
    name: Callable[[Item], str] = str,
    session: Callable[[Item], Hashable] | None = None,
) -> Tasks[Item]:
    """Return an iterator over the outcome of ``function(item)`` for each item.

    ``function`` is sent to the workers, so it can be pickled. ``executor`` is None for a pool of ``workers`` processes
    on this machine. Items are taken as results are fetched, a few per worker, and handed over in tasks of ``chunk``
    items. Outcomes come in the order of the items, or as they are ready. An item that raises has the error as its
    outcome; an exception of the iterable is raised after the outcomes of the items before it. When a worker dies, the
    items that it may have died of run again, alone and at most twice.

    Items of one ``session`` run on the same worker, in order. If that worker dies, the session cannot go on: its
    further items fail.

    Raise InputError for wrong arguments, and RunError if no item can be worked on at all.
    """
    refuse_start_in_child()
    crews = [Crew(executor, workers)] if session is None else lanes(executor, workers)
    return Tasks(function, items, crews, ordered=ordered, chunk=chunk, name=name, session=session)


class Tasks(Iterator[Outcome[Item]]):
    """The outcomes of tasks. ``close``, or the end of a ``with`` block, ends the work early."""

    def __init__(
        self,
        function: Callable[[Item], Any],
        items: Iterable[Item],
        crews: Sequence[Crew],
        *,
        ordered: bool,
        chunk: int,
        name: Callable[[Item], str],
        session: Callable[[Item], Hashable] | None,
    ) -> None:
        self._function = function
        self._with_content: Callable[[Item], Any] | None = None
        self._source = iter(items)
        self._source_error: Exception | None = None
        self._crews = crews
        self._ordered = ordered
        self._chunk = chunk
        self._name = name
        self._session = session
        self._lanes: dict[Hashable, int] = {}
        self._begun: set[Hashable] = set()
        """The sessions that have a state."""
        self._lost: set[Hashable] = set()
        self._waiting: deque[_Task[Item]] = deque()
        self._suspects: deque[_Task[Item]] = deque()
        """Tasks whose worker has died; each runs while no other does, so that the one to blame is known."""
        self._running: dict[Future[list[Answer] | None], _Task[Item]] = {}
        self._ready: dict[int, Outcome[Item]] = {}
        self._next = 0
        """The position of the outcome that comes next, if they are ordered."""
        self._taken = 0
        self._deaths_before_work = 0
        self._has_worked = False

    # ----- iteration

    def __next__(self) -> Outcome[Item]:
        try:
            while (outcome := self._take()) is None:
                self._submit_more()
                if self._running:
                    self._collect()
                elif not (self._ready or self._waiting or self._suspects):
                    self.close()
                    error, self._source_error = self._source_error, None
                    raise error or StopIteration
            return outcome
        except (KeyboardInterrupt, SystemExit):
            self.close()
            raise

    def close(self) -> None:
        """Stop the work; what has not been fetched is lost."""
        for future in self._running:
            future.cancel()
        self._running.clear()
        self._waiting.clear()
        self._suspects.clear()
        self._ready.clear()
        self._source = iter(())
        for crew in self._crews:
            crew.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_has_worked"):  # else it was not made
            self.close()

    def _take(self) -> Outcome[Item] | None:
        """Return the outcome that comes next, if it is there."""
        if self._ordered:
            outcome = self._ready.pop(self._next, None)
        else:
            outcome = self._ready.pop(next(iter(self._ready))) if self._ready else None
        if outcome is not None:
            self._next += 1
        return outcome

    # ----- tasks that begin

    def _submit_more(self) -> None:
        """Submit tasks until each worker has enough to do."""
        if self._suspects:
            if not self._running:
                self._submit(self._suspects.popleft())
            return
        size = sum(crew.size for crew in self._crews)
        most = _PER_WORKER * size * (2 if self._ordered else 1)  # a slow item must not keep the others waiting
        while len(self._running) < _PER_WORKER * size:
            task = self._next_task(most * self._chunk)
            if task is None or not self._submit(task):
                return

    def _next_task(self, most: int) -> _Task[Item] | None:
        """Return a task that can run now, if there is one; at most ``most`` items are taken ahead."""
        busy = {task.key for task in self._running.values()} if self._session is not None else set()
        for position, task in enumerate(self._waiting):
            if task.key not in busy:
                del self._waiting[position]
                return task
        while self._taken - self._next < most and (new := self._new_task()) is not None:
            if new.key not in busy:
                return new
            self._waiting.append(new)  # executors need not keep the order of the inputs of a session
        return None

    def _new_task(self) -> _Task[Item] | None:
        """Return a task of the next items, None if there are no more."""
        first, items = self._taken, list[Item]()
        try:
            items += islice(self._source, self._chunk)
        except Exception as error:  # the outcomes of earlier items come first
            self._source, self._source_error = iter(()), error
        self._taken += len(items)
        if not items:
            return None
        if self._session is None:
            return _Task(first, items)
        key = self._session(items[0])
        return _Task(first, items, self._lanes.setdefault(key, len(self._lanes) % len(self._crews)), key)

    def _submit(self, task: _Task[Item]) -> bool:
        """Submit a task; return whether the executor has taken it."""
        if task.key in self._lost:
            message = f"the state of session {task.key!r} is lost, because the worker that had it ended"
            self._fail(task, RunError(diagnose(WORKER_DIED, message)))
            return True
        crew = self._crews[task.lane]
        function = self._with_content if task.has_content and self._with_content is not None else self._function
        try:
            future = crew.submit(function, task.items)
        except BrokenExecutor:  # a worker died while it had nothing to do, or futures that tell so are running
            self._waiting.appendleft(task)
            if not self._running:
                self._count_death()
                crew.replace()
            return False
        except RuntimeError as error:
            self.close()
            raise InputError.usage(f"the executor takes no tasks: {error}") from None
        except Exception as error:
            if crew.is_own:
                self.close()
                hint = "a ThreadPoolExecutor needs no processes"
                raise RunError(diagnose(ENGINE, f"no worker can be started: {error}", hint=hint)) from None
            self._fail(task, _not_sent(error))  # dask pickles at once
            return True
        self._running[future] = task
        return True

    # ----- tasks that end

    def _collect(self) -> None:
        """Record the outcomes of tasks that end; return after a while if none does."""
        done, _ = wait(self._running, _LONG, FIRST_COMPLETED)
        if not done:
            for crew in self._crews:
                crew.require_workers()
        died: list[_Task[Item]] = []
        for future in done:
            self._end(future, died)
        for lane in {task.lane for task in died}:
            crew = self._crews[lane]
            if not crew.retries_itself:
                others = [future for future, task in self._running.items() if task.lane == lane]
                wait(others)
                for future in others:
                    self._end(future, died)
                self._count_death()
                crew.replace()
        for task in sorted(died, key=lambda task: task.first):
            self._suspect(task)

    def _end(self, future: Future[list[Answer] | None], died: list[_Task[Item]]) -> None:
        """Record how a task has ended; add it to ``died`` if its worker has."""
        task = self._running.pop(future)
        try:
            answers = future.result()
        except SetUpError as error:
            self.close()
            raise error.error from None
        except BaseException as error:
            if is_death(error):
                died.append(task)
            elif is_cancelled(error):
                self.close()
                raise RunError(diagnose(ENGINE, "the executor has cancelled a task, or has been shut down")) from None
            elif not isinstance(error, Exception):
                raise
            elif self._crews[task.lane].retries_itself and task.deaths < _MOST_RUNS - 1:
                # dask raises a ValueError where a worker dies whose result is being fetched.
                self._waiting.append(replace(task, deaths=task.deaths + 1))
            else:
                self._fail(task, _not_sent(error))
            return
        self._has_worked = True
        if answers is None:
            self._send_content(task)
            return
        self._begun.add(task.key)
        for position, (item, answer) in enumerate(zip(task.items, answers, strict=True)):
            self._record(task.first + position, item, answer)

    def _send_content(self, task: _Task[Item]) -> None:
        """Run a task again with the content of the files that its worker cannot reach."""
        function = self._function
        if task.has_content or not isinstance(function, SendsContent):
            message = "a worker cannot reach the files of the task"
            self._fail(task, RunError(diagnose(ENGINE, message, hint="use a file system that all workers share")))
            return
        if self._with_content is None:
            self._with_content = function.with_content()
        for position, item in enumerate(task.items):
            try:
                items = [function.item_with_content(item)]
            except OvirError as error:
                self._record(task.first + position, item, Answer(None, error))
            else:
                self._waiting.append(replace(task, first=task.first + position, items=items, has_content=True))

    def _suspect(self, task: _Task[Item]) -> None:
        """Run the items of a task again whose worker has died, or give up."""
        deaths = task.deaths + 1
        if task.key in self._begun and self._session is not None:
            self._lost.add(task.key)
            message = f"its worker ended, and the state of session {task.key!r} is lost with it"
            self._fail(task, RunError(diagnose(WORKER_DIED, message)))
        elif len(task.items) > 1:
            for position, item in enumerate(task.items):
                self._suspects.append(replace(task, first=task.first + position, items=[item], deaths=deaths))
        elif deaths < _MOST_RUNS:
            self._suspects.append(replace(task, deaths=deaths))
        else:
            message = f"the worker ended whenever it ran this input, {plural(deaths, 'time')}"
            hint = "it may need more memory than there is, or crash the process"
            self._fail(task, RunError(diagnose(WORKER_DIED, message, hint=hint)))

    def _count_death(self) -> None:
        """Raise RunError if workers die before any of them has done anything."""
        if self._has_worked:
            return
        self._deaths_before_work += 1
        if self._deaths_before_work >= _MOST_RUNS:
            self.close()
            hint = "a script that starts processes needs `if __name__ == '__main__':` around what it runs"
            raise RunError(diagnose(WORKER_DIED, "workers end before they have done any work", hint=hint))

    def _fail(self, task: _Task[Item], error: OvirError) -> None:
        for position, item in enumerate(task.items):
            self._record(task.first + position, item, Answer(None, error))

    def _record(self, index: int, item: Item, answer: Answer) -> None:
        self._ready[index] = Outcome(index, item, self._name(item), answer.result, answer.error, answer.seconds)


def _not_sent(error: Exception) -> RunError:
    """Return the error of a task that the executor could not pass on, as of an item that cannot be pickled."""
    message = f"the executor cannot pass on the task or its result: {type(error).__name__}: {error}"
    return RunError(diagnose(ENGINE, message))
