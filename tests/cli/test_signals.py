"""Commands that are asked to end: the processes that they have started end, too, and no temporary file remains."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from builder import Net

import ovir
from ovir.cli.signals import Terminated, raising_terminated

pytestmark = pytest.mark.skipif(os.name != "posix", reason="other systems do not deliver these signals to Python")
ROOT = Path(__file__).parent.parent.parent
PATIENCE = 60
"""The seconds after which a test gives up; none of them waits for this long otherwise."""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    net = Net()
    net.result(net.op("Tanh", net.parameter("x", "2,3"), name="tanh"), "out")
    return net.write(tmp_path)


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def _has_ended(process: int) -> bool:
    """Return whether a process has ended, also if nobody has asked for its status yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def _children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def _start(folder: Path, *arguments: object, path: str = str(ROOT)) -> subprocess.Popen[str]:
    """Start a command with a folder of its own for temporary files."""
    (folder / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "PYTHONPATH": path, "OVIR_TEST_FAULT": "hang:Tanh"}
    command = [sys.executable, "-m", "ovir", *map(str, arguments)]
    return subprocess.Popen(
        command,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # which `nohup pytest` would leave ignored
    )


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_reduce_kills_its_check(
    net: Path, tmp_path: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check fails twice, and then starts a process in a shell, which is what it waits for."""
    script = tmp_path / "check.sh"
    script.write_text(
        "mktemp >> names\n"
        "[ $(wc -l < names) -lt 4 ] && { grep -q Tanh $1; exit $((1 - $?)); }\n"
        "sleep 1000 & echo $! > started.new; mv started.new started; wait\n"
    )
    monkeypatch.chdir(tmp_path)
    with _start(tmp_path, "reduce", net, "--check", f"sh {script} {{}}", "-o", tmp_path / "small.xml") as done:
        _wait_for((tmp_path / "started").exists)
        done.send_signal(number)
        assert done.communicate(timeout=PATIENCE)[1].endswith("terminated\n")
    assert done.returncode == 128 + number
    _wait_for(lambda: _has_ended(int((tmp_path / "started").read_text())))
    assert list((tmp_path / "tmp").iterdir()) == []
    assert [layer.type for layer in ovir.read_model(tmp_path / "small.xml").layers] == ["Parameter", "Tanh", "Result"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_bisect_kills_its_device(net: Path, tmp_path: Path) -> None:
    stand_in = ROOT / "tests" / "engines" / "stand_in"
    with _start(tmp_path, "bisect", net, "--against", "openvino:CPU", path=f"{stand_in}:{ROOT}") as done:
        _wait_for(lambda: any((tmp_path / "tmp").rglob("part.bin")))  # which the device reads, and then hangs
        (worker,) = _children(done.pid)
        done.send_signal(signal.SIGTERM)
        done.communicate(timeout=PATIENCE)
    assert done.returncode == 143
    _wait_for(lambda: _has_ended(worker))
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_second_request_does_not_interrupt_the_cleanup() -> None:
    before = signal.getsignal(signal.SIGTERM)
    cleaned = []

    def work() -> None:
        with raising_terminated():
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                signal.raise_signal(signal.SIGHUP)
                cleaned.append("all")

    with pytest.raises(Terminated) as ended:
        work()
    assert cleaned == ["all"]
    assert ended.value.status == 143
    assert signal.getsignal(signal.SIGTERM) == before


def test_ignored_signals_remain_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with raising_terminated():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
