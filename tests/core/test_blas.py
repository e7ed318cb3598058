"""The number of threads of BLAS."""

import threading
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
import threadpoolctl

from ovir.core import blas


def test_all_libraries_use_one_thread_while_anyone_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {"one": 4, "other": 7}
    libraries = [(lambda name=name: counts[name], lambda n, name=name: counts.update({name: n})) for name in counts]
    monkeypatch.setattr(blas, "_libraries", lambda: libraries)
    single_thread = blas._SingleThread()
    for _ in range(2):
        with single_thread:
            for _ in range(2):
                with single_thread:
                    assert set(counts.values()) == {1}
                assert set(counts.values()) == {1}
        assert counts == {"one": 4, "other": 7}


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_fork_forgets_the_threads_that_it_ends(is_inside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [4]
    monkeypatch.setattr(blas, "_libraries", lambda: [(lambda: counts[-1], counts.append)])
    single_thread = blas._SingleThread()
    other = threading.Thread(target=single_thread.__enter__)
    other.start()
    other.join()
    with ExitStack() as stack:
        if is_inside:
            stack.enter_context(single_thread)
        single_thread._lock.acquire()  # as another thread would that enters the context during the fork
        single_thread.forget_other_threads()
        assert counts[-1] == (1 if is_inside else 4)
        with single_thread:
            assert counts[-1] == 1
    assert counts[-1] == 4
    counts.append(3)  # a number that the user has set since
    single_thread.forget_other_threads()
    assert counts[-1] == 3


@pytest.mark.parametrize(
    ("libraries", "expected"),
    [
        ([], False),
        ([{"architecture": "Haswell"}, {"internal_api": "mkl"}], False),
        ([{"internal_api": "mkl"}, {"architecture": "SkylakeX"}], True),
    ],
)
def test_processors_with_small_products(libraries: list[Any], expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    selected: list[str] = []
    found = SimpleNamespace(info=lambda: libraries)
    controller = SimpleNamespace(select=lambda user_api: selected.append(user_api) or found)
    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", lambda: controller)
    monkeypatch.setattr(blas, "_loaded", blas._loaded.__wrapped__)
    assert blas.has_small_products.__wrapped__() == expected
    assert selected == ["blas"]
