"""What runs in a worker, and the workers that executors have."""

from concurrent.futures import BrokenExecutor, CancelledError, Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

import ovir
from ovir.core import parallel
from ovir.diagnostics.errors import RunError
from ovir.workers import executors
from ovir.workers.executors import Workers, is_cancelled, is_death
from ovir.workers.tasks import Tasks
from ovir.workers.worker import Answer, SetUpError, UnreachableError, answer_of, run_task, this_process


def raising(error: BaseException) -> Any:
    def fail(item: Any) -> None:
        raise error

    return fail


def test_an_answer_has_the_result_or_the_error() -> None:
    found = answer_of(abs, -3)
    assert (found.result, found.error) == (3, None)
    assert 0 <= found.seconds < 5
    own = ovir.InputError.usage("wrong")
    assert answer_of(raising(own), 0).error is own
    for error, code, message in (
        (MemoryError(), "OVIR804", "there is not enough memory"),
        (MemoryError("3 GB"), "OVIR804", "there is not enough memory: 3 GB"),
        (KeyError("a"), "OVIR999", "KeyError: 'a'"),
    ):
        answer = answer_of(raising(error), 0)
        assert (answer.error.diagnostic.code, answer.error.diagnostic.message) == (code, message)
        assert answer.result is None
    for passed in (UnreachableError(), SetUpError(own)):
        with pytest.raises(type(passed)):
            answer_of(raising(passed), 0)


class Whole:
    """A function of all items together."""

    def __call__(self, item: int) -> int:
        return item

    def on_all(self, items: list[int]) -> list[Answer]:
        return [Answer(sum(items)) for _ in items]

    def with_content(self) -> Any:
        return self

    def item_with_content(self, item: int) -> int:
        return item


def test_items_of_one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    limited: list[bool] = []
    monkeypatch.setattr("ovir.workers.worker._use_one_thread", lambda: limited.append(True))
    here = this_process()
    assert [answer.result for answer in run_task(abs, [-1, 2], here) or ()] == [1, 2]
    assert [answer.result for answer in run_task(Whole(), [1, 2], here) or ()] == [3, 3]
    assert [answer.result for answer in run_task(Whole(), [2], here) or ()] == [2]
    assert run_task(raising(UnreachableError()), [1], here) is None
    assert limited == []
    assert run_task(abs, [], ("elsewhere", here[1])) == []
    assert limited == [True]


class Executor:
    """An executor that runs tasks when it is told to, and records how many it has at a time."""

    def __init__(self, size: int = 2) -> None:
        self._max_workers = size
        self.waiting: list[tuple[Future[Any], Any, Any]] = []
        self.most = 0

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, function, arguments))
        self.most = max(self.most, len(self.waiting))
        return future

    def run(self, place: int = 0) -> None:
        future, function, arguments = self.waiting.pop(place)
        future.set_result(function(*arguments))


@pytest.mark.parametrize(("ordered", "chunk", "ahead"), [(True, 1, 12), (False, 1, 6), (True, 5, 60), (False, 5, 30)])
def test_items_are_taken_a_few_ahead(ordered: bool, chunk: int, ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three tasks for each worker; twice as many items are taken if one of them may keep the others waiting."""
    executor, taken = Executor(), []

    def items() -> Any:
        for item in range(1000):
            taken.append(item)
            yield item

    slow: list[int] = [0] if ordered else []

    def run_all(running: Any) -> Any:
        """Run what waits, the first task last."""
        if executor.waiting:
            executor.run(-1 if slow and len(executor.waiting) > 1 else 0)
        return {future for future in running if future.done()}

    monkeypatch.setattr("ovir.workers.tasks.wait_for", run_all)
    tasks = Tasks(abs, items(), executor, ordered=ordered, chunk=chunk)  # type: ignore[arg-type]
    assert next(tasks).index == 0
    assert executor.most == 6
    assert len(taken) == (ahead if ordered else 6 * chunk)
    tasks.close()


@pytest.mark.parametrize(
    ("executor", "size"),
    [
        (ThreadPoolExecutor(3), 3),
        (SimpleNamespace(submit=abs, num_workers=5), 5),
        (SimpleNamespace(submit=abs, _max_workers=0), parallel.available()),
        (SimpleNamespace(submit=abs, _max_workers="4"), parallel.available()),
        (SimpleNamespace(submit=abs), parallel.available()),
        (None, parallel.available()),
    ],
)
def test_the_number_of_workers(executor: Any, size: int) -> None:
    assert Workers(executor).size == size
    assert Workers(executor).is_own == (executor is None)
    assert not Workers(executor).are_of_dask
    assert not Workers(executor).have_forgotten_tasks()


def test_wrong_workers() -> None:
    assert Workers(workers=2**15).size == 2**15
    for executor, workers, message in (
        (None, 2**15 + 1, "workers must be at most 32,768, got 32,769"),
        (ThreadPoolExecutor(1), 1, "give either workers or an executor"),
        (7, None, "must be a concurrent.futures.Executor, got int"),
        (SimpleNamespace(submit=abs, get_executor=abs), None, "must be a concurrent.futures.Executor"),
        (SimpleNamespace(submit=5), None, "must be a concurrent.futures.Executor"),
    ):
        with pytest.raises(ovir.InputError, match=message):
            Workers(executor, workers)  # type: ignore[arg-type]


def test_how_futures_fail() -> None:
    killed, lost, closed = (
        type(name, (Exception,), {})() for name in ("KilledWorker", "FutureCancelledError", "CommClosedError")
    )
    found = [
        (is_death(error), is_cancelled(error))
        for error in (BrokenExecutor(), killed, CancelledError(), lost, closed, ValueError())
    ]
    assert found == [(True, False), (True, False), (False, True), (False, True), (False, True), (False, False)]


def client_of(work: dict[str, list[str]], threads: dict[str, int]) -> Any:
    """Return an executor of dask whose cluster works on something."""
    client = SimpleNamespace(
        processing=lambda: work,
        nthreads=lambda: threads,
        wait_for_workers=lambda count, timeout: None,
        scheduler=SimpleNamespace(address="tcp://here"),
    )
    kind = type("ClientExecutor", (), {"__module__": "distributed.cfexecutor", "submit": abs})
    executor = kind()
    executor._client = client
    return executor


def test_a_cluster_that_works_on_nothing_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(executors, "monotonic", lambda: now)
    work, threads = {"a": list[str]()}, {"a": 2, "b": 3}
    workers = Workers(client_of(work, threads))
    assert (workers.size, workers.are_of_dask, workers.is_own) == (5, True, False)
    assert not workers.have_forgotten_tasks()
    now += 29.9
    assert not workers.have_forgotten_tasks()
    now += 0.1
    assert workers.have_forgotten_tasks()
    assert not workers.have_forgotten_tasks(), "it begins to count anew"
    now += 20
    work["a"].append("task")
    assert not workers.have_forgotten_tasks()
    work["a"].clear()
    now += 20
    assert not workers.have_forgotten_tasks()
    now += 31
    threads.clear()
    with pytest.raises(RunError, match="the cluster at tcp://here has lost all its workers"):
        workers.have_forgotten_tasks()
