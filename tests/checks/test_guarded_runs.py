"""Untrusted models run in processes with limited time, memory and files."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from support.oversized import loop, of_input

import ovir
from ovir import opset13 as ops
from ovir.checks.untrusted import guarded_command
from ovir.checks.untrusted.budget import Budget
from ovir.checks.untrusted.guard import SIGXCPU
from ovir.cli.main import main
from ovir.diagnostics.codes import OUT_OF_MEMORY

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guarded")
    models = {
        "small": lambda x: ops.add(x, x),
        "large": lambda x: ops.reduce_sum(ops.broadcast(x, [1 << 26]), [0]),
        "long": lambda x: loop(900_000, lambda v: [ops.cos(v)], x).outputs[0],
    }
    for name, build in models.items():
        ovir.save_model(of_input(build), folder / f"{name}.xml")
    return folder


@pytest.mark.slow
def test_outputs_are_shown_and_saved(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.npz"
    command = ["run", "--untrusted", str(folder / "small.xml"), "--timeout", "60", "--input", "x=[2.0]"]
    assert main([*command, "--output", str(target), "--memory=500"]) == 0
    assert "f32   [1]" in capfd.readouterr().out
    with np.load(target) as saved:
        assert [saved[name].tolist() for name in saved] == [[4.0]]
    assert main([*command, "--input", "y=[2.0]"]) == 2
    assert "no input 'y'" in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("large", ["--memory", "100"], "error[OVIR001] the run takes more than 100.0 MB of memory"),
        ("long", ["--timeout", "1"], "error[OVIR001] the run takes more than 1 s"),
        ("small", ["--output", "no/such/folder/out.npz"], "no/such/folder"),
    ],
)
def test_a_run_over_its_budget_is_an_error(
    name: str, options: list[str], message: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--untrusted", str(folder / f"{name}.xml"), *options]) in (1, 2)
    assert message in capfd.readouterr().err


def test_a_limited_process_keeps_no_bytecode(tmp_path: Path) -> None:
    """The limit of files would cut it, and no later process could import the module."""
    (tmp_path / "long_module.py").write_text("values = " + repr([str(number) for number in range(1000)]))
    program = """if True:
        from ovir.checks.untrusted.child import limit
        limit({"seconds": 5, "memory": 1 << 30, "file": 100})
        import long_module
    """
    paths = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", program], env={**environment, "PYTHONPATH": paths}, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["long_module.py"]


@pytest.mark.slow
def test_files_without_errors_are_also_run(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files = [str(folder / f"{name}.xml") for name in ("large", "small")]
    assert main(["check", "--untrusted", "--run", "--memory=100", *files]) == 1
    found = [line.rpartition("/")[2] for line in capfd.readouterr().out.splitlines() if "error" in line]
    assert found == ["large.xml: error[OVIR001] the run takes more than 100.0 MB of memory"]
    assert ovir.check(folder / "small.xml", untrusted=ovir.Budget(run=True)) == []


class Ended:
    """A process that has ended with a status and messages, after its time if it is late."""

    def __init__(self, status: int, errors: str, *, late: bool) -> None:
        self.returncode, self.errors, self.late = status, errors, late

    @contextmanager
    def killed_after(self, seconds: float) -> Iterator[threading.Event]:
        event = threading.Event()
        if self.late:
            event.set()
        yield event

    def communicate(self) -> tuple[None, bytes]:
        return None, self.errors.encode()

    def end(self) -> None:
        self.ended = True


@pytest.mark.parametrize(
    ("status", "errors", "late", "expected"),
    [
        (0, "", False, (0, "")),
        (3, "error[OVIR801] no", False, (3, "error[OVIR801] no")),
        (0, "", True, "the run takes more than 7.5 s"),
        (-SIGXCPU, "", False, "the run takes more than 7.5 s"),
        (-9, "", False, "the process of the run ended with signal SIGKILL, perhaps for lack of memory: it had 1.1 GB"),
        (1, f"error[{OUT_OF_MEMORY.id}] no", False, "the run takes more than 1.1 GB of memory"),
        (1, "MemoryError: out of memory", False, "the run takes more than 1.1 GB of memory"),
    ],
)  # fmt: skip
def test_how_a_run_ended(
    status: int, errors: str, late: bool, expected: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Ended(status, errors, late=late)
    monkeypatch.setattr(guarded_command, "ChildProcess", lambda *arguments, **options: process)
    found = guarded_command.run_guarded(["run"], "m.xml", None, Budget(seconds=7.5))
    assert process.ended
    if isinstance(found, tuple):
        assert found == expected
    else:
        assert (found.code, str(found.severity), found.message, found.file) == ("OVIR001", "error", expected, "m.xml")


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ("note\nerror[OVIR801] first\nerror[OVIR802] second", "error[OVIR801] first"),
        ("note", "it ends with status 3"),
        ("", "it ends with status 3"),
    ],
)
def test_why_a_trial_run_failed(messages: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_command, "run_guarded", lambda *given, **options: (3, messages))
    (found,) = guarded_command.trial_run("m.xml", None, Budget())
    assert (found.code, str(found.severity)) == ("OVIR001", "warning")
    assert found.message == f"a run on random inputs fails: {expected}"
    monkeypatch.setattr(guarded_command, "run_guarded", lambda *given, **options: (0, messages))
    assert list(guarded_command.trial_run("m.xml", None, Budget())) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["run", "--memory", "5"], "--memory belongs to --untrusted"),
        (["run", "--timeout", "1"], "--timeout belongs to --untrusted"),
        (["check", "--run"], "--run belongs to --untrusted"),
        (["run", "--untrusted", "--workers", "2"], "--workers and --untrusted exclude each other"),
    ],
)
def test_options_that_do_not_go_together(
    options: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*options, str(folder / "small.xml")]) == 2
    assert message in capsys.readouterr().err
