"""Tasks: a function applied to many items by the workers of an executor, a few at a time.

Scheduling is left to the executor. Added here: items are taken as results are fetched, in order or not; a task
that is lost with its worker runs once more, alone; and items of a session wait for each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import islice
from time import monotonic
from typing import Any, Generic, TypeVar

from ovir.diagnostics.codes import ENGINE, WORKER_DIED
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import InputError, OvirError, RunError
from ovir.system.interrupts import result_of, uninterrupted, wait_for
from ovir.workers.executors import Workers, is_cancelled, is_death, refuse_start_in_child
from ovir.workers.worker import Answer, SetUpError, TaskFunction

Item = TypeVar("Item")

_PER_WORKER = 3
"""The number of tasks that each worker has or waits for, so that it need not wait for the next one."""
_LONG = 5.0
"""Seconds without any result, after which it is worth a look whether there are workers at all."""


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
    """The time of the work on it."""


@dataclass(frozen=True, slots=True)
class _Task(Generic[Item]):
    """Items that one call of the executor works on."""

    first: int
    items: list[Item]
    session: Hashable = None
    is_again: bool = False
    """Whether it was lost with its worker before."""
    has_content: bool = False

    def parts(self) -> Iterator[_Task[Item]]:
        """Yield a task for each item."""
        return (replace(self, first=self.first + i, items=[item]) for i, item in enumerate(self.items))


class Tasks(Iterator[Outcome[Item]], AbstractContextManager["Tasks[Item]"]):
    """The outcomes of ``function(item)`` for each item. ``close``, or the end of a ``with`` block, ends the work early.

    ``function`` is sent to the workers, so it can be pickled. ``executor`` is None for a pool of ``workers`` processes
    on this machine. Items are taken as results are fetched, a few per worker, and handed over in tasks of ``chunk``
    items. Outcomes come in the order of the items, or as they are ready. An item that raises has the error as its
    outcome; an exception of the iterable is raised after the outcomes of the items before it. When a worker dies, the
    items that it may have died of run once more, each alone.

    Items of one ``session`` run one after the other: ``after`` makes of an item, and the result of the last one in its
    session that has succeeded, the item that runs.
    """

    def __init__(
        self,
        function: Callable[[Item], Any],
        items: Iterable[Item],
        executor: Executor | None = None,
        *,
        workers: int | None = None,
        ordered: bool = True,
        chunk: int = 1,
        name: Callable[[Item], str] = str,
        session: Callable[[Item], Hashable] | None = None,
        after: Callable[[Item, Any], Item] | None = None,
    ) -> None:
        """Begin. Raise InputError for wrong arguments, and RunError if no item can be worked on at all."""
        refuse_start_in_child()
        self._function = function
        self._with_content: Callable[[Item], Any] | None = None
        self._source = iter(items)
        self._source_error: Exception | None = None
        self._workers = Workers(executor, workers)
        self._ordered = ordered
        self._chunk = chunk
        self._name = name
        self._session = session
        self._after = after
        self._last: dict[Hashable, Any] = {}
        """The last result of each session."""
        self._waiting: deque[_Task[Item]] = deque()
        self._lost: deque[_Task[Item]] = deque()
        """Tasks whose worker has died. They run once more, each alone, so that the one to blame is known."""
        self._running: dict[Future[list[Answer] | None], _Task[Item]] = {}
        self._ready: dict[int, Outcome[Item]] = {}
        self._next = 0
        """The position of the outcome that comes next, if they are ordered."""
        self._taken = 0
        self._has_worked = False

    # ----- iteration

    def __next__(self) -> Outcome[Item]:
        try:
            while (outcome := self._take()) is None:
                self._submit_more()
                if self._running:
                    self._collect()
                elif not (self._ready or self._waiting or self._lost):
                    self.close()
                    error, self._source_error = self._source_error, None
                    raise error or StopIteration
            return outcome
        except (KeyboardInterrupt, SystemExit):
            self.close()
            raise

    def close(self) -> None:
        """Stop the work; results that were not fetched are lost."""
        with uninterrupted():
            if not self._workers.is_own:  # the thread of our pool, which is killed, would fail at cancelled ones
                for future in self._running:
                    future.cancel()
        self._running.clear()
        self._waiting.clear()
        self._ready.clear()
        self._source = iter(())
        self._workers.close()

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
        """Submit tasks until each worker has enough to do; a lost one alone."""
        if self._lost:
            if not self._running:
                self._submit(self._lost.popleft())
            return
        most = _PER_WORKER * self._workers.size
        ahead = most * self._chunk * (2 if self._ordered else 1)  # a slow item must not keep the others waiting
        while len(self._running) < most and (task := self._next_task(ahead)) is not None:
            if not self._submit(task):
                return

    def _next_task(self, ahead: int) -> _Task[Item] | None:
        """Return a task that can run now, if there is one; at most ``ahead`` items are taken ahead."""
        busy = {task.session for task in self._running.values()} if self._session is not None else set()
        for position, task in enumerate(self._waiting):
            if task.session not in busy:
                del self._waiting[position]
                return task
        while self._taken - self._next < ahead and (new := self._new_task()) is not None:
            if new.session not in busy:
                return new
            self._waiting.append(new)
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
        return _Task(first, items, None if self._session is None else self._session(items[0]))

    def _submit(self, task: _Task[Item]) -> bool:
        """Submit a task; return whether the executor has taken it."""
        try:
            self._running[self._workers.submit(*self._work_of(task))] = task
        except BrokenExecutor:  # a worker died while it had nothing to do, or its tasks are about to fail
            (self._lost if task.is_again else self._waiting).appendleft(task)
            if not self._running:
                self._replace_workers()
            return False
        except RuntimeError as error:
            self.close()
            raise InputError.usage(f"the executor rejected the task: {error}") from None
        except Exception as error:
            if self._workers.is_own:
                self.close()
                hint = "a ThreadPoolExecutor needs no processes"
                raise RunError(diagnose(ENGINE, f"no worker can be started: {error}", hint=hint)) from None
            self._fail(task, _not_sent(error))  # dask pickles at once
        return True

    def _work_of(self, task: _Task[Item]) -> tuple[Callable[[Item], Any], list[Item]]:
        function = self._with_content if task.has_content and self._with_content is not None else self._function
        items = task.items
        if self._after is not None and task.session in self._last:
            items = [self._after(items[0], self._last[task.session])]
        return function, items

    # ----- tasks that end

    def _collect(self) -> None:
        """Record the outcomes of tasks that end; return after a while if none does."""
        end = monotonic() + _LONG
        while not (done := wait_for(self._running)) and monotonic() < end:
            pass
        for future in done:
            self._end(future, self._running.pop(future))
        if not done and self._workers.have_forgotten_tasks():
            for task in self._running.values():
                if task.is_again:
                    message = "the cluster has run this input twice and sent no result"
                    self._fail(task, RunError(diagnose(ENGINE, message)))
                else:
                    self._lose(task)
            self._running.clear()

    def _end(self, future: Future[list[Answer] | None], task: _Task[Item]) -> None:
        """Record how a task has ended."""
        try:
            answers = result_of(future)
        except SetUpError as error:
            self.close()
            raise error.error from None
        except BaseException as error:
            if is_cancelled(error):
                self.close()
                raise RunError(diagnose(ENGINE, "the executor has cancelled a task, or has been shut down")) from None
            if not isinstance(error, Exception):
                raise
            if not task.is_again and (is_death(error) or self._workers.are_of_dask):
                # dask blames all tasks that wait for a worker, and raises a ValueError if a worker dies whose result
                # is being fetched.
                self._lose(task)
            elif is_death(error):
                hint = "it may need more memory than there is, or crash the process"
                message = "the worker died every time it ran this input"
                self._fail(task, RunError(diagnose(WORKER_DIED, message, hint=hint)))
            else:
                self._fail(task, _not_sent(error))
            return
        self._has_worked = True
        if answers is None:
            self._send_content(task)
            return
        for part, answer in zip(task.parts(), answers, strict=True):
            self._record(part.first, part.items[0], answer)
            if self._session is not None and answer.error is None:
                self._last[task.session] = answer.result

    def _send_content(self, task: _Task[Item]) -> None:
        """Run a task again with the content of the files that its worker cannot reach."""
        function = self._function
        if task.has_content or not isinstance(function, TaskFunction):
            message = "a worker cannot reach the files of the task"
            self._fail(task, RunError(diagnose(ENGINE, message, hint="use a file system that all workers share")))
            return
        if self._with_content is None:
            self._with_content = function.with_content()
        for part in task.parts():
            try:
                items = [function.item_with_content(part.items[0])]
            except OvirError as error:
                self._fail(part, error)
            else:
                self._waiting.append(replace(part, items=items, has_content=True))

    # ----- workers that die

    def _replace_workers(self) -> None:
        """Replace workers that have died; raise RunError if new ones die before they have done anything."""
        self._workers.replace()
        if self._has_worked:
            return
        try:
            result_of(self._workers.submit(self._function, []))
        except BrokenExecutor:
            self.close()
            hint = "a script that starts processes needs `if __name__ == '__main__':` around the code that it runs"
            message = "workers end before they have done any work"
            raise RunError(diagnose(WORKER_DIED, message, hint=hint)) from None

    def _lose(self, task: _Task[Item]) -> None:
        """Let the items of a task run once more."""
        self._lost = deque(sorted([*self._lost, *replace(task, is_again=True).parts()], key=lambda task: task.first))

    def _fail(self, task: _Task[Item], error: OvirError) -> None:
        for part in task.parts():
            self._record(part.first, part.items[0], Answer(None, error))

    def _record(self, index: int, item: Item, answer: Answer) -> None:
        self._ready[index] = Outcome(index, item, self._name(item), answer.result, answer.error, answer.seconds)


def _not_sent(error: Exception) -> RunError:
    """Return the error of a task that the executor could not pass on, as of an item that cannot be pickled."""
    message = f"the executor cannot pass on the task or its result: {type(error).__name__}: {error}"
    return RunError(diagnose(ENGINE, message))
