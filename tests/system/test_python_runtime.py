"""The memory that a process may still take, and its garbage collector."""

import gc

import pytest

from ovir.system import python_runtime
from ovir.system.python_runtime import free_memory, without_garbage_collection

MEMINFO = "MemTotal: 9000 kB\nMemAvailable:    4000 kB\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/proc/meminfo": MEMINFO}, 4000 << 10),
        ({"memory.max": "max\n", "memory.current": "5", "memory.stat": "", "/proc/meminfo": MEMINFO}, 4000 << 10),
        ({"memory.max": "900", "memory.current": "500", "memory.stat": "anon 1\ninactive_file 30"}, 430),
        ({"memory.max": "900", "memory.current": "950", "memory.stat": ""}, 0),
        (
            {
                "memory/memory.limit_in_bytes": "700\n",
                "memory/memory.usage_in_bytes": "600\n",
                "memory/memory.stat": "inactive_file 1\ntotal_inactive_file 50\n",
                "/proc/meminfo": MEMINFO,
            },
            150,
        ),
        ({}, python_runtime.physical_memory()),
    ],
)
def test_the_least_of_what_the_system_and_a_container_leave(
    files: dict[str, str], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_runtime, "_text", lambda path: files.get(path.removeprefix("/sys/fs/cgroup/"), ""))
    assert free_memory() == expected


def test_there_is_memory_here() -> None:
    assert free_memory()


def test_the_garbage_collector_stays_on_if_another_thread_has_just_switched_it_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert gc.isenabled()
    with monkeypatch.context() as patch:
        patch.setattr(gc, "isenabled", lambda: False)  # as it was a moment before
        with without_garbage_collection():
            pass
    assert gc.isenabled()
    with without_garbage_collection():
        assert not gc.isenabled()
        with without_garbage_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
