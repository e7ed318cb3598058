"""The number of threads of BLAS."""

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
