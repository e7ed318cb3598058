"""Requests to end wait until locks are free."""

from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from ovir.system import interrupts
from ovir.system.interrupts import is_deferred, result_of, uninterrupted, wait_for


def test_results_and_errors_of_futures() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert result_of(pool.submit(int, "3")) == 3
        with pytest.raises(ValueError, match="invalid literal"):
            result_of(pool.submit(int, "three"))


def test_waiting_ends_without_results() -> None:
    future: Future[int] = Future()
    assert wait_for((future,)) == set()
    future.set_result(1)
    assert wait_for((future,)) == {future}


def test_a_request_waits_until_no_lock_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that arrives while a future is waited for is raised soon after, though the future is not done."""
    arrived = Event()

    def ask() -> None:
        arrived.set()
        raise KeyboardInterrupt

    def wait(*_: Any) -> set[Any]:
        assert is_deferred(ask), "the section around the lock is open"
        return set()

    monkeypatch.setattr(interrupts, "wait_for", wait)
    with pytest.raises(KeyboardInterrupt):
        result_of(Future())
    assert arrived.is_set()


def test_sections_within_sections_end_together() -> None:
    asked: list[int] = []
    with uninterrupted():
        with uninterrupted():
            assert is_deferred(lambda: asked.append(1))
        assert not asked
    assert asked == [1]
    assert not is_deferred(lambda: asked.append(2))
