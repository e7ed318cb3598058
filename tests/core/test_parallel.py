"""Blocks on several threads: all of the range, once, without deadlock, after fork and at exit too."""

import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from itertools import permutations
from queue import SimpleQueue
from types import SimpleNamespace

import numpy as np
import pytest

from ovir.core import parallel
from ovir.core.parallel import contiguous_copy, limit, run_blocks, threads


@pytest.fixture
def without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin as a new process does."""
    monkeypatch.setattr(parallel, "_started", [])
    monkeypatch.setattr(parallel, "_calls", SimpleQueue())


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("items", [0, 1, 2, 5, 100, 1001])
@pytest.mark.parametrize("least", [0, 1, 30, 10_000])
def test_blocks_cover_the_range_once(items, least, count):
    covered = []
    with limit(count):
        run_blocks(lambda start, stop: covered.extend(range(start, stop)), items, least)
    assert sorted(covered) == list(range(items))


def test_little_work_stays_in_the_calling_thread():
    names, calls = set(), []
    with limit(4):
        run_blocks(lambda *block: (names.add(threading.get_ident()), calls.append(block)), 19, 10)
    assert names == {threading.get_ident()}
    assert calls == [(0, 19)]


@pytest.mark.parametrize(
    ("items", "least", "lengths"),
    [(19, 10, [19]), (20, 10, [3] * 6 + [2]), (120, 1, [10] * 12), (29, 10, [4] * 7 + [1]), (30, 10, [3] * 10)],
)
def test_a_thread_has_enough_work_and_takes_it_in_four_blocks(items, least, lengths):
    blocks = []
    with limit(3):
        run_blocks(lambda start, stop: blocks.append((start, stop - start)), items, least)
    assert [length for _, length in sorted(blocks)] == lengths


@pytest.mark.parametrize(
    ("shape", "size", "sizes"),
    [
        ((7,), 3, [3, 3, 1]),
        ((2, 3, 4), 3, [3, 1] * 6),
        ((2, 3, 4), 4, [4] * 6),
        ((2, 3, 4), 5, [8, 4] * 2),
        ((2, 3, 4), 12, [12] * 2),
        ((2, 3, 4), 13, [24]),
        ((0, 3), 5, []),
    ],
)
def test_blocks_of_about_a_number_of_elements(shape, size, sizes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parallel, "_LINE", 1)
    counts = np.zeros(shape, int)
    places = parallel._places(shape, size)
    assert [counts[place].size for place in places] == sizes
    for place in places:
        counts[place] += 1
    assert (counts == 1).all()


def test_blocks_have_a_multiple_of_a_number_of_rows() -> None:
    places = parallel._places((40, 10), 170)
    assert [(place[0].start, place[0].stop) for place in places] == [(0, 32), (32, 64)]


def test_work_is_shared():
    names = set()

    def block(start, stop):
        names.add(threading.get_ident())
        time.sleep(0.01)

    with limit(3):
        run_blocks(block, 30)
    assert 2 <= len(names) <= 3


def test_limit_belongs_to_the_context():
    everything = threads()
    seen = []
    with limit(5):
        assert threads() == 5
        with limit(None):
            assert threads() == everything
        thread = threading.Thread(target=lambda: seen.append(threads()))
        thread.start()
        thread.join()
    assert threads() == everything
    assert seen == [everything]
    with pytest.raises(ValueError, match="a thread limit must be at least 1, got 0"), limit(0):
        pass


def test_a_process_that_may_use_few_threads(monkeypatch):
    monkeypatch.setattr(parallel, "_restriction", None)
    parallel.restrict(1)
    assert (parallel.restriction(), threads()) == (1, 1)
    with limit(5):
        assert threads() == 5
    parallel.restrict(None)
    assert threads() == parallel.available()


def test_first_exception_is_raised_when_no_block_runs():
    running = []

    def block(start, stop):
        running.append(start)
        try:
            time.sleep(0.002)
            if start >= 10:
                raise LookupError(start)
        finally:
            running.remove(start)

    with limit(3), pytest.raises(LookupError):
        run_blocks(block, 100)
    assert running == []
    with limit(3):  # and the pool still works
        run_blocks(lambda start, stop: None, 100)


def test_blocks_within_blocks_run_inline():
    inner_threads = []

    def outer(start, stop):
        run_blocks(lambda a, b: inner_threads.append((threads(), threading.get_ident())), 8)
        time.sleep(0.001)

    with limit(2):
        for _ in range(20):
            run_blocks(outer, 8)
    me = threading.get_ident()
    assert {count for count, ident in inner_threads if ident != me} == {1}


def call_from_threads(call: Callable[[], None], count: int) -> None:
    callers = [threading.Thread(target=call) for _ in range(count)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)


def test_many_callers_at_once():
    totals = []

    def call():
        parts = []
        with limit(3):
            run_blocks(lambda start, stop: parts.append(stop - start), 97)
        totals.append(sum(parts))

    def call_often():
        for _ in range(50):
            call()

    call_from_threads(call_often, 6)
    assert totals == [97] * 300


@pytest.mark.usefixtures("without_threads")
def test_callers_that_begin_at_once_share_their_threads() -> None:
    begin = threading.Barrier(8)

    def call() -> None:
        begin.wait(10)
        with limit(5):
            run_blocks(lambda start, stop: time.sleep(0.0001), 100)

    before = set(threading.enumerate())
    call_from_threads(call, 8)
    new = {thread for thread in threading.enumerate() if thread.name.startswith("ovir-kernel")} - before
    assert new == set(parallel._started)
    assert len(new) == 4


def run_script(text):
    script = "from ovir.core.parallel import limit, run_blocks, threads\nimport os, time\n" + text
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.skipif(not hasattr(parallel.os, "fork"), reason="this system does not fork")
def test_pool_after_fork():
    output = run_script(
        "def work():\n"
        "    parts = []\n"
        "    with limit(3): run_blocks(lambda a, b: (time.sleep(0.001), parts.append(b - a)), 50)\n"
        "    return sum(parts)\n"
        "assert work() == 50\n"
        "child = os.fork()\n"
        "assert work() == 50\n"
        "if child: assert os.waitpid(child, 0)[1] == 0; print('done')\n"
    )
    assert output == "done\n"


def test_no_hang_at_exit_and_no_failure_in_exit_handlers():
    output = run_script(
        "import atexit\n"
        "def work():\n"
        "    parts = []\n"
        "    with limit(3): run_blocks(lambda a, b: parts.append(b - a), 50)\n"
        "    print(sum(parts))\n"
        "atexit.register(work)\n"
        "work()\n"
    )
    assert output == "50\n50\n"


@pytest.mark.usefixtures("without_threads")
def test_no_more_threads_than_blocks_start() -> None:
    with limit(50):
        run_blocks(lambda start, stop: None, 3)
    assert len(parallel._started) == 2


@pytest.mark.usefixtures("without_threads")
def test_a_system_without_further_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        if thread.name == "ovir-kernel_1":
            raise RuntimeError("can't start new thread")
        started(thread)

    started = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    covered: list[int] = []
    with limit(3):
        for _ in range(3):
            run_blocks(lambda *block: covered.extend(range(*block)), 100)
    assert len(parallel._started) == 1
    assert parallel._calls.qsize() <= 3  # nobody waits for a call that no thread will make
    assert sorted(covered) == sorted([*range(100)] * 3)


def test_an_interrupt_while_threads_start_leaves_no_block_running(monkeypatch: pytest.MonkeyPatch) -> None:
    has_begun, ended = threading.Event(), []

    def block(start: int, stop: int) -> None:
        has_begun.set()
        time.sleep(0.01)
        ended.append(start)

    def put(call: Callable[[], object]) -> None:
        threading.Thread(target=call).start()
        assert has_begun.wait(10)
        raise KeyboardInterrupt

    monkeypatch.setattr(parallel, "_calls", SimpleNamespace(put=put))
    monkeypatch.setattr(parallel, "_started_threads", lambda wanted: wanted)
    with limit(3), pytest.raises(KeyboardInterrupt):
        run_blocks(block, 12)
    assert sorted(ended) == list(range(12))


@pytest.mark.usefixtures("without_threads")
def test_helpers_that_were_not_needed_keep_nothing_alive():
    class Block:
        def __call__(self, start, stop):
            pass

    done = threading.Event()
    assert parallel._started_threads(1) == 1
    parallel._calls.put(lambda: done.wait(10))  # so that the helper of the next call waits in the queue
    block = Block()
    known = weakref.ref(block)
    with limit(2):
        run_blocks(block, 8)
    del block
    assert known() is None
    done.set()


@pytest.mark.parametrize(("shared", "least"), [(100, 2), (101, 3), (40, 1)])
def test_a_further_thread_copies_enough(shared, least, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(parallel, "_COPIED", 50)
    monkeypatch.setattr(parallel, "_LINE", 1)
    monkeypatch.setattr(parallel, "SHARED_COPY", shared)
    monkeypatch.setattr(parallel, "run_blocks", lambda function, *numbers: calls.append(numbers))
    contiguous_copy(np.zeros((40, 10)).T)
    assert calls == [(8, least)]


@pytest.mark.parametrize("line", [1, 16])
def test_copies_in_another_order(line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_COPIED", 50)
    monkeypatch.setattr(parallel, "_LINE", line)
    monkeypatch.setattr(parallel, "SHARED_COPY", 100)
    data = np.arange(5 * 6 * 7 * 8).reshape(5, 6, 7, 8)
    for order in permutations(range(4)):
        for source in (data.transpose(order), data[::-1, :, 1:, ::3].transpose(order), data[:, :1].transpose(order)):
            copy = contiguous_copy(source)
            assert copy.flags.c_contiguous
            assert not np.shares_memory(copy, data)
            np.testing.assert_array_equal(copy, source)
    repeated = np.broadcast_to(np.arange(20)[:, np.newaxis], (20, 30))
    np.testing.assert_array_equal(contiguous_copy(repeated), repeated)
    assert contiguous_copy(np.array(3)).shape == ()
    assert contiguous_copy(np.empty((0, 3))).shape == (0, 3)
