"""Commands that are asked to end: the processes that they have started end, too, and no temporary file remains."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from support.builder import Net
from support.processes import PATIENCE, has_ended, started, wait_for

import ovir
from ovir.cli.terminal.signals import Requests, Terminated
from ovir.system.interrupts import temporary_folder, uninterrupted
from ovir.system.processes import ChildProcess

pytestmark = pytest.mark.skipif(os.name != "posix", reason="other systems do not deliver these signals to Python")
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def net(tmp_path: Path) -> Path:
    net = Net()
    net.result(net.op("Tanh", net.parameter("x", "2,3"), name="tanh"), "out")
    return net.write(tmp_path)


def _children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def _start(folder: Path, *arguments: object, path: str = str(ROOT)) -> AbstractContextManager[ChildProcess]:
    """Start a command with a folder of its own for temporary files."""
    (folder / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "PYTHONPATH": path, "OVIR_TEST_FAULT": "hang:Tanh"}
    command = [sys.executable, "-m", "ovir", *map(str, arguments)]
    return started(
        command,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # which `nohup pytest` would leave ignored
    )


@pytest.mark.slow
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
        wait_for((tmp_path / "started").exists)
        done.send_signal(number)
        assert done.communicate(timeout=PATIENCE)[1].endswith("terminated\n")
    assert done.returncode == 128 + number
    wait_for(lambda: has_ended(int((tmp_path / "started").read_text())))
    assert list((tmp_path / "tmp").iterdir()) == []
    assert [layer.type for layer in ovir.read_model(tmp_path / "small.xml").layers] == ["Parameter", "Tanh", "Result"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_bisect_kills_its_device(net: Path, tmp_path: Path) -> None:
    stand_in = ROOT / "tests" / "debugging" / "engines" / "stand_in"
    with _start(tmp_path, "bisect", net, "--against", "openvino:CPU", path=f"{stand_in}:{ROOT}") as done:
        wait_for(lambda: any((tmp_path / "tmp").rglob("model.bin")))  # which the device reads, and then hangs
        (worker,) = _children(done.pid)
        done.send_signal(signal.SIGTERM)
        done.communicate(timeout=PATIENCE)
    assert done.returncode == 143
    wait_for(lambda: has_ended(worker))
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.fixture
def requests() -> Iterator[Requests]:
    """Handle the signals of this process as while a command runs."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    hook = sys.unraisablehook
    made = Requests()
    made.handle_signals()
    made.are_raised = True
    yield made
    sys.unraisablehook = hook
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_second_request_does_not_interrupt_the_cleanup(requests: Requests) -> None:
    cleaned = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGINT)
            cleaned.append("all")

    with pytest.raises(Terminated) as ended:
        work()
    assert cleaned == ["all"]
    assert ended.value.status == 143
    assert requests.received is ended.value


def test_a_request_counts_again_where_the_first_was_lost(requests: Requests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ovir.cli.terminal.signals.PATIENCE", 0.0)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_ignored_signals_remain_ignored(requests: Requests) -> None:
    signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_a_request_waits_for_the_end_of_a_section(requests: Requests) -> None:
    done = []

    def work() -> None:
        with uninterrupted():
            with uninterrupted():
                signal.raise_signal(signal.SIGINT)
            done.append("all")
        done.append("too much")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all"]


def test_a_request_waits_until_a_folder_is_removed(requests: Requests, monkeypatch: pytest.MonkeyPatch) -> None:
    remove = shutil.rmtree

    def interrupted(*arguments: Any, **options: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        remove(*arguments, **options)

    monkeypatch.setattr("tempfile._shutil.rmtree", interrupted)
    made = []

    def work() -> None:
        with temporary_folder() as folder:
            made.append(folder)
            (folder / "file").touch()

    with pytest.raises(KeyboardInterrupt):
        work()
    assert not made[0].exists()


LOST = """
import signal, time
from ovir.cli.terminal.signals import requests

class Lost:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
requests.handle_signals()
requests.are_raised = True
try:
    Lost()
    time.sleep(60)
except KeyboardInterrupt:
    print("raised")
"""


def test_a_request_that_python_drops_is_repeated() -> None:
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("raised\n", "")


FAILING = """
import signal, sys
from ovir.cli.options.model import ModelOptions
from ovir.cli.main import main
from ovir.cli.terminal.signals import requests

def fail(*_):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("half of a module")  # as C code does that calls Python

signal.signal(signal.SIGINT, signal.default_int_handler)
requests.handle_signals()
ModelOptions.recover = fail
sys.exit(main(["show", "model.xml"]))
"""


@pytest.mark.slow
def test_an_exception_that_follows_from_a_request_is_not_reported() -> None:
    done = subprocess.run([sys.executable, "-c", FAILING], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
