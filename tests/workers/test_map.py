"""``ovir.map`` runs a model on many inputs, with any executor."""

import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net
from support.worker_inputs import (
    DIGITS,
    EXAMPLES,
    ONES,
    CannotBeRestored,
    Killer,
    Slow,
    TellsProcess,
    assert_all,
    counter,
    digits,
)

import ovir
from ovir.system.interrupts import is_deferred
from ovir.workers import executors
from ovir.workers.tasks import Tasks

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    """Return the result for each digit."""
    images = np.load(EXAMPLES / "digits_input.npz")["image"]
    return ovir.compile_model(DIGITS)([images])[0]


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    """Start two processes, for all tests that do not end them."""
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as made:
        yield made


@pytest.fixture(params=["own pool", "threads", "processes"])
def executor(request: pytest.FixtureRequest, pool: Executor) -> Iterator[Executor | None]:
    with ThreadPoolExecutor(2) as threads:
        yield {"own pool": None, "threads": threads, "processes": pool}[request.param]


@pytest.mark.parametrize("ordered", [True, False])
def test_every_input_has_one_result(executor: Executor | None, ordered: bool, expected: np.ndarray) -> None:
    assert_all(ovir.map(DIGITS, digits(30), executor, ordered=ordered), expected, 30)


def test_inputs_can_be_sent_together(expected: np.ndarray, pool: Executor) -> None:
    assert_all(ovir.map(DIGITS, digits(23), pool, chunksize=5), expected, 23)


@dataclass
class Waits:
    """An input of threads that waits until something has happened, or lets it happen."""

    digit: int
    happened: threading.Event
    lets_happen: bool = False

    def load(self, model: Any) -> Any:
        if self.lets_happen:
            self.happened.set()
        assert self.happened.wait(60)
        return digits(10)[self.digit]


def test_results_come_in_the_order_of_the_inputs() -> None:
    happened = threading.Event()
    inputs = [Waits(0, happened), *digits(9)[1:], Waits(9, happened, lets_happen=True)]
    with ThreadPoolExecutor(3) as pool, ovir.map(DIGITS, inputs, pool) as results:
        assert [result.index for result in results] == list(range(10))


def test_unordered_results_come_when_they_are_ready() -> None:
    happened = threading.Event()
    inputs = [Waits(0, happened), *digits(6)[1:]]
    with ThreadPoolExecutor(2) as pool, ovir.map(DIGITS, inputs, pool, ordered=False) as results:
        assert {next(results).index for _ in range(5)} == {1, 2, 3, 4, 5}
        happened.set()
        assert next(results).index == 0


def test_files_are_loaded_by_the_workers(tmp_path: Path, expected: np.ndarray, pool: Executor) -> None:
    paths = []
    for index, inputs in enumerate(digits(4)):
        paths.append(tmp_path / f"{index}.{'npz' if index % 2 else 'npy'}")
        if index % 2:
            np.savez(paths[-1], **inputs)
        else:
            np.save(paths[-1], inputs["image"])
    results = list(ovir.map(DIGITS, paths, pool))
    assert [result.name for result in results] == [str(path) for path in paths]
    assert_all(iter(results), expected, 4)


def test_taps_are_returned(pool: Executor) -> None:
    (result,) = ovir.map(DIGITS, digits(1), taps=["relu1"], executor=pool)
    expected = ovir.compile_model(DIGITS)(digits(1)[0], taps=["relu1"])
    np.testing.assert_allclose(result.taps["relu1"][0], expected.taps["relu1"][0], atol=1e-5)


def test_a_failing_input_is_named_and_the_others_are_not_lost(expected: np.ndarray, pool: Executor) -> None:
    inputs: list[Any] = digits(5)
    inputs[1] = {"image": np.zeros((1, 2), np.float32)}
    inputs[3] = "missing.npz"
    returned = list(ovir.map(DIGITS, inputs, pool, on_error="return"))
    for index in (1, 3):
        assert isinstance(returned[index], ovir.MapError)
        assert returned[index].index == index
    assert "input 1: input 'image' takes shape [?,1,8,8], got [1,2]" in str(returned[1])
    assert str(returned[3]).count("missing.npz") == 1
    results = ovir.map(DIGITS, inputs, pool)
    seen = []
    while True:
        try:
            seen.append(next(results).index)
        except StopIteration:
            break
        except ovir.MapError as error:
            seen.append(-error.index)
    assert seen == [0, -1, 2, -3, 4]


def test_a_map_error_can_be_pickled(pool: Executor) -> None:
    (error,) = ovir.map(DIGITS, [{}], pool, on_error="return")
    again = pickle.loads(pickle.dumps(error))
    assert (again.index, again.name, str(again)) == (0, "input 0", str(error))


@pytest.mark.parametrize("chunksize", [1, 4])
def test_an_exception_of_the_iterable_loses_no_input(chunksize: int, pool: Executor) -> None:
    def broken() -> Iterator[Any]:
        yield from digits(6)
        raise ValueError("no more digits")

    results = ovir.map(DIGITS, broken(), pool, chunksize=chunksize)
    assert [next(results).index for _ in range(6)] == list(range(6))
    with pytest.raises(ValueError, match="no more digits"):
        next(results)
    assert list(results) == []


def test_a_script_on_standard_input_can_start_workers() -> None:
    script = f"""
import numpy as np
import ovir

images = np.load({str(EXAMPLES / "digits_input.npz")!r})["image"]
print([int(result[0].argmax()) for result in ovir.map({str(DIGITS)!r}, [images[:1], images[1:2]], workers=1)])
"""
    done = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, check=False)
    assert done.stdout == "[0, 1]\n", done.stderr


def test_the_memory_of_the_caller_stays_the_same(pool: Executor) -> None:
    inputs = digits(10)
    with ovir.map(DIGITS, (inputs[i % 10] for i in range(1000)), pool, ordered=False) as results:
        sizes = []
        tracemalloc.start()
        for count, _ in enumerate(results):
            if count in (200, 900):
                sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    assert sizes[1] < sizes[0] + 200_000


def test_an_input_that_kills_its_worker_once_is_run_again(tmp_path: Path, expected: np.ndarray) -> None:
    inputs: list[Any] = digits(20)
    inputs[7] = Killer(str(tmp_path), 1, 7)
    assert_all(ovir.map(DIGITS, inputs, workers=2), expected, 20)


def test_an_input_that_always_kills_its_worker_is_named(tmp_path: Path) -> None:
    inputs: list[Any] = digits(20)
    inputs[7] = Killer(str(tmp_path), 99)
    results = list(ovir.map(DIGITS, inputs, workers=2, on_error="return"))
    assert [isinstance(result, ovir.MapError) for result in results] == [i == 7 for i in range(20)]
    assert "OVIR807" in str(results[7])
    assert "the killer: the worker died every time it ran this input" in str(results[7])
    assert len(os.listdir(tmp_path)) == 2


@pytest.mark.parametrize("ordered", [True, False])
def test_workers_killed_in_the_middle_lose_nothing(ordered: bool, expected: np.ndarray) -> None:
    others = set(multiprocessing.active_children())
    own = ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))
    found = []
    for result in ovir.map(DIGITS, digits(300), own, ordered=ordered):
        found.append(result)
        if len(found) in (50, 150):
            min({*multiprocessing.active_children()} - others, key=lambda process: process.pid or 0).kill()
    assert_all(iter(found), expected, 300)


def test_inputs_that_all_kill_their_workers_are_all_named(tmp_path: Path) -> None:
    inputs = [Killer(str(tmp_path), 99) for _ in range(2)]
    results = list(ovir.map(DIGITS, inputs, workers=1, on_error="return"))
    assert ["OVIR807" in str(result) for result in results] == [True] * 2


def test_a_model_that_cannot_run_is_one_error(pool: Executor) -> None:
    model = ovir.read_model(EXAMPLES / "swirl.xml")
    with pytest.raises(ovir.OvirError, match="Swirl"):
        list(ovir.map(model, [{}, {}, {}], pool, on_error="return"))


def test_closing_ends_the_processes_and_removes_the_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    net = Net()
    net.result(net.parameter("x", "1", "i64"))
    results = ovir.map(net.compiled(), [TellsProcess() for _ in range(10)], workers=1)
    process = int(next(results)[0][0])
    assert process != os.getpid()
    results.close()
    assert list(results) == []
    assert not os.listdir(tmp_path)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_closing_prints_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread of a pool may see that its processes have ended before it sees that the pool is shut down."""
    monkeypatch.setattr(ProcessPoolExecutor, "shutdown", lambda *_, **__: None)
    monkeypatch.setattr("ovir.workers.tasks._PER_WORKER", 9)  # more than a pool passes on to its process at one time
    results = ovir.map(DIGITS, [*digits(1), *[Slow(1, 60)] * 8], workers=1)
    next(results)
    thread = results._tasks._workers._pool._executor_manager_thread
    results.close()
    thread.join()  # pytest fails a test in which a thread fails


# --------------------------------------------------------------------------- state


def test_state_starts_anew_for_each_input(pool: Executor) -> None:
    assert [result[0][0] for result in ovir.map(counter(), [ONES] * 4, pool)] == [1, 1, 1, 1]


def test_inputs_of_a_session_share_their_state(executor: Executor | None) -> None:
    results = ovir.map(counter(), [ONES] * 6, executor, session=[0, 1, 0, 2, 0, 1])
    assert [result[0][0] for result in results] == [1, 1, 2, 1, 3, 2]


def test_a_function_gives_the_session(pool: Executor) -> None:
    inputs = [[np.full(2, value, np.float32)] for value in (1, 5, 2, 6)]
    results = ovir.map(counter(), inputs, session=lambda value: value[0][0] < 4, executor=pool)
    assert [result[0][0] for result in results] == [1, 5, 3, 11]


def test_a_session_outlives_its_worker(tmp_path: Path) -> None:
    inputs: list[Any] = [ONES] * 6
    inputs[2] = Killer(str(tmp_path), 99)
    results = list(ovir.map(counter(), inputs, session=[0, 1, 0, 1, 0, 1], workers=2, on_error="return"))
    assert [isinstance(result, ovir.MapError) for result in results] == [False, False, True, False, False, False]
    assert "OVIR807" in str(results[2])
    assert [results[i][0][0] for i in (0, 4, 1, 3, 5)] == [1, 2, 1, 2, 3]


# --------------------------------------------------------------------------- batches


def test_batches_give_the_results_of_each_input(expected: np.ndarray, pool: Executor) -> None:
    assert_all(ovir.map(DIGITS, digits(23), batch=8, executor=pool), expected, 23)


# --------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("model.npz",), {}, "inputs must be an iterable of inputs, got one str"),
        ((np.zeros((2, 1, 8, 8)),), {}, "inputs must be an iterable of inputs, got one ndarray"),
        (([],), {"batch": 0}, "batch must be an integer of at least 1, got 0"),
        (([],), {"on_error": "ignore"}, "on_error must be 'raise' or 'return', got 'ignore'"),
        (([],), {"workers": 0}, "workers must be an integer of at least 1, got 0"),
        (([],), {"batch": 2, "taps": ["relu1"]}, "batch and taps exclude each other"),
        (([],), {"chunksize": 2.5}, "chunksize must be an integer of at least 1, got 2.5"),
        (([],), {"chunksize": 2, "session": [0]}, "chunksize and session exclude each other"),
        (([],), {"taps": ["relu9"]}, "relu9"),
        (([],), {"taps": 5}, "taps must be the names of layers, got 5"),
        (([],), {"session": 5}, "session must be a function or an iterable with a key for each input, got 5"),
        (([],), {"session": "ab"}, "session must be a function or an iterable with a key for each input, got 'ab'"),
        (([], 7), {}, "executor must be a concurrent.futures.Executor, got int"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ovir.InputError) as caught:
        ovir.map(DIGITS, *arguments, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("session", "message"),
    [
        ([1], "session has 1 keys, but there are more inputs"),
        ([1, []], "the session of input 1 must be hashable, got []"),
    ],
)
def test_wrong_keys_of_sessions_are_refused(session: Any, message: str, pool: Executor) -> None:
    with pytest.raises(ovir.InputError) as caught:
        list(ovir.map(counter(), [ONES, ONES], session=session, executor=pool))
    assert message in str(caught.value)


def test_refused_arguments_leave_no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ovir.InputError, match="workers is for a pool of ovir"), ThreadPoolExecutor(2) as pool:
        ovir.map(counter(), [ONES], pool, workers=2)
    assert not os.listdir(tmp_path)


def test_an_input_that_cannot_be_restored_is_named(pool: Executor) -> None:
    found = list(ovir.map(DIGITS, [digits(1)[0], CannotBeRestored()], pool, on_error="return"))
    assert isinstance(found[0], ovir.MappedResults)
    assert "input 1: a worker cannot restore the input: ImportError: no such thing" in str(found[1])


GUARDLESS = f"""
import ovir
list(ovir.map({str(DIGITS)!r}, [{{}}], workers=1))
"""


def test_a_script_without_a_guard_gets_one_message(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(GUARDLESS)
    command = [sys.executable, str(tmp_path / "script.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.count("Traceback") == 1
    assert "hint: a script that starts processes needs `if __name__ == '__main__':`" in done.stderr


GUARDED = f"""
import os
import ovir

class TellsPath:
    def load(self, model):
        raise KeyError(os.environ.get("PYTHONSAFEPATH"))

if __name__ == "__main__":
    print(*ovir.map({str(DIGITS)!r}, [TellsPath()], workers=1, on_error="return"))
"""


@pytest.mark.parametrize("safe", [None, "yes"])
def test_workers_start_beside_files_with_names_of_python_s_own_modules(safe: str | None, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(GUARDED)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "types.py").write_text("raise ImportError('of the current folder')")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    if safe is not None:
        environment["PYTHONSAFEPATH"] = safe
    command = [sys.executable, str(tmp_path / "script.py")]
    text = {"capture_output": True, "text": True, "check": False}
    done = subprocess.run(command, cwd=tmp_path / "here", env=environment, **text)  # type: ignore[call-overload]
    assert (done.stderr, f"KeyError: {safe!r}" in done.stdout) == ("", True), done.stdout


def _map_in_daemon() -> str:
    try:
        return str(list(ovir.map(DIGITS, digits(1), workers=1)))
    except ovir.RunError as error:
        return str(error)


def test_a_process_that_may_not_start_others_says_so() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert "no worker can be started: daemonic processes" in pool.apply(_map_in_daemon)


def test_tasks_of_several_items(pool: Executor) -> None:
    outcomes = list(Tasks(abs, range(-10, 10), pool, chunk=3))
    assert [outcome.result for outcome in outcomes] == [abs(i) for i in range(-10, 10)]
    assert [outcome.name for outcome in outcomes[:2]] == ["-10", "-9"]


def test_an_item_that_cannot_be_sent_is_an_error(pool: Executor) -> None:
    outcomes = list(Tasks(str, [1, lambda: 2, 3], pool))
    assert [outcome.error is None for outcome in outcomes] == [True, False, True]
    assert "cannot pass on the task" in str(outcomes[1].error)


def test_an_interrupt_waits_until_the_semaphores_of_a_pool_can_be_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []

    def new_pool(size: int) -> Executor:
        waited.append(is_deferred(lambda: None))
        return ThreadPoolExecutor(size)

    monkeypatch.setattr(executors, "_new_pool", new_pool)
    workers = executors.Workers(workers=1)
    assert workers.submit(len, []).result() == []
    assert waited == [True]
