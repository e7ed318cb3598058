"""The number of threads of BLAS."""

import pytest

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
