"""Processes that ovir starts: however one is ended, all that it has started ends with it."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import has_ended, wait_for

from ovir.system.processes import ChildProcess


def expire(process: ChildProcess) -> None:
    assert process.stdout is not None
    with process.killed_after(0.1) as expired:
        process.stdout.read()  # both processes hold the pipe open
    assert expired.is_set()


@pytest.mark.skipif(not Path("/proc").exists(), reason="there is no /proc")
@pytest.mark.parametrize("end", [ChildProcess.kill, ChildProcess.end, expire])
def test_what_a_process_has_started_ends_with_it(end: Callable[[ChildProcess], None]) -> None:
    process = ChildProcess(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    started = int(process.stdout.readline())
    end(process)
    process.end()
    wait_for(lambda: has_ended(started))


def test_there_is_one_way_to_start_a_process_that_is_ended() -> None:
    root = Path(__file__).parents[2]
    files = {path for folder in ("ovir", "tests", "benchmarks") for path in (root / folder).rglob("*.py")}
    starting = [path for path in files - {Path(__file__)} if "subprocess.Popen(" in path.read_text(encoding="utf-8")]
    assert starting == []
