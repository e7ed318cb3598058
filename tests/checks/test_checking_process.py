"""The process that checks untrusted files, asked in the process of the test: its answers, its limits and its ends."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import threading
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from support.builder import add_net

import ovir
from ovir.checks.options import CheckOptions
from ovir.checks.untrusted import check_file, child
from ovir.checks.untrusted.budget import Budget
from ovir.checks.untrusted.guard import SIGXCPU, Guard
from ovir.diagnostics.codes import CODES
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has forks and limits of memory")


def request(path: Path | str, **options: Any) -> dict[str, Any]:
    given = asdict(CheckOptions(**options))
    # The answers go to a file of pytest, whose size the process may not exceed.
    return {"path": str(path), "weights": None, "options": given, "seconds": 5.5, "memory": 1 << 30, "file": 1 << 20}


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Let the process answer requests; return its messages, None for a line without one."""

    def asked(*requests: dict[str, Any]) -> list[Any]:
        lines = "".join(f"{json.dumps(item)}\n" for item in requests)
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(lines.encode())))
        child.main(())
        ready, *answers = (json.loads(line) if line else None for line in capfd.readouterr().out.splitlines())
        assert ready == {"ready": True}
        return answers

    return asked


def test_each_file_is_checked_in_a_fork(ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, missing = add_net().write(tmp_path), str(tmp_path / "no.xml")
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))  # as a pipe that is nearly full
    none, end, found, other = ask(request(path), request(missing))
    assert none == []
    assert [(d["code"], d["file"], d["severity"]) for d in found] == [("OVIR101", missing, "error")]
    for item in (end, other):
        assert item["status"] == 0
        assert 0 < item["seconds"] < 60
        assert 1 << 24 < item["memory"] < 1 << 34


@pytest.mark.parametrize(
    ("name", "end", "status"),
    [
        ("_answer", lambda request: os._exit(7), 7),
        ("_answer", lambda request: os.kill(os.getpid(), 9), -9),
        ("limit", lambda request: sys.exit(5), 1),
    ],
)
def test_how_a_fork_ended(name: str, end: Any, status: int, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, name, end)
    nothing, answer = ask(request("model.xml"))
    assert (nothing, answer["status"]) == (None, status)


def test_without_forks_one_file_is_checked(ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    path = request(add_net().write(tmp_path))
    assert ask(path, path) == [[], {"status": 0}]


@pytest.mark.parametrize("hard", [-1, 0, 10, 1 << 50])
def test_limits_of_a_fork(hard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource  # which other systems lack

    limits: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (3, hard))
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    child.limit({"seconds": 5.5, "memory": 1 << 30, "file": 123})
    assert sys.dont_write_bytecode
    own = sum(map(int, re.findall(r"Vm(?:Data|Stk):\s+(\d+)", Path("/proc/self/status").read_text()))) << 10
    soft = {kind: limit for kind, (limit, _) in limits.items()}
    assert {other for _, other in limits.values()} == {hard}
    if 0 <= hard <= 10:
        assert soft == {kind: min(hard, least) for kind, least in zip(soft, (0, 123, 7, 1 << 30), strict=True)}
    else:
        assert abs(soft.pop(resource.RLIMIT_DATA) - own - (1 << 30)) < 1 << 24
        assert soft == {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: 123, resource.RLIMIT_CPU: 7}
    child.limit({"seconds": 5, "memory": 1 << 30})
    assert limits[resource.RLIMIT_FSIZE][0] == 0


def raising(error: BaseException) -> Any:
    def check_file(*given: object) -> NoReturn:
        raise error

    return check_file


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (MemoryError(), "OVIR001", "the check takes more than 1.1 GB of memory"),
        (ovir.InputError.usage("no such device"), "OVIR902", "no such device"),
        (ValueError("x" * 3000), "OVIR999", f"ovir failed to check this file: ValueError: {'x' * 1956}"),
    ],
)
def test_what_is_raised_is_an_error(
    error: BaseException, code: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "check_file", raising(error))
    (found,) = child._answer(request("model.xml"))
    assert (found["code"], found["severity"], found["message"]) == (code, "error", message)


@pytest.mark.parametrize("runtime", [None, (2022, 3)])
def test_options_arrive(runtime: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(child, "check_file", lambda *arguments: given.extend(arguments) or [])
    sent = request("model.xml", runtime=runtime, device="CPU", skip=("OVIR510",))
    assert child._answer(json.loads(json.dumps(sent))) == []
    path, weights, options = given
    assert (path, weights, options.runtime, options.device) == ("model.xml", None, runtime, "CPU")
    assert list(options.skip) == ["OVIR510"]


# --------------------------------------------------------------------------- the side of the owner

GONE = "the check did not finish: its process ended{}, perhaps for lack of memory"
UNREADABLE = "the answer of the process cannot be read, perhaps because an extension writes to its output"
LATE = "the check takes more than 2.5 s"
INFO = {"code": "OVIR702", "severity": "info", "message": "m"}


@pytest.mark.parametrize(
    ("answers", "late", "expected", "is_kept"),
    [
        ([[INFO], {"status": 0, "seconds": 1.5, "memory": 7}], False, (1.5, 7, ["m"]), True),
        ([[INFO], {"status": 0}], False, (0.0, 0, ["m"]), True),
        ([[], {"status": 0, "seconds": 1.5, "memory": 7}], True, (1.5, 7, []), False),
        ([None, {"status": 0, "seconds": 1.5}], False, (0.0, 0, [UNREADABLE]), True),
        ([None, None, [INFO], {"status": 0}], False, (0.0, 0, ["m"]), True),
        ([[INFO], {"status": 3}], False, (0.0, 0, [GONE.format(" with status 3")]), True),
        ([None, {"status": -9}], False, (0.0, 0, [GONE.format(" with signal SIGKILL")]), True),
        ([None, {"status": -SIGXCPU}], False, (0.0, 0, [LATE]), True),
        ([], False, (0.0, 0, [GONE.format("")]), False),
        ([], True, (2.5, 0, [LATE]), False),
    ],
)
def test_what_a_guard_makes_of_the_answers(
    answers: list[Any], late: bool, expected: tuple[float, int, list[str]], is_kept: bool
) -> None:
    lines = b"".join(b"{ not a message\n" if item is None else json.dumps(item).encode() + b"\n" for item in answers)
    process: Any = SimpleNamespace(stdin=io.BytesIO(), stdout=io.BytesIO(lines), poll=lambda: None, end=lambda: None)
    event = threading.Event()
    if late:
        event.set()
    process.killed_after = lambda seconds: nullcontext(event)
    opened = Guard(CheckOptions(), Budget(seconds=2.5))
    opened._process = process
    verdict = opened.check("m.xml")
    assert (verdict.seconds, verdict.memory, [d.message for d in verdict.diagnostics]) == expected
    assert (opened._process is process) == is_kept
    sent = json.loads(process.stdin.getvalue())
    assert (sent["path"], sent["seconds"], sent["memory"]) == ("m.xml", 2.5, 1 << 30)


def test_a_process_that_reads_nothing_is_gone() -> None:
    stdin = SimpleNamespace(write=raising(BrokenPipeError()))
    process: Any = SimpleNamespace(stdin=stdin, stdout=io.BytesIO(b"[]\n"), poll=lambda: None, end=lambda: None)
    process.killed_after = lambda seconds: nullcontext(threading.Event())
    opened = Guard(CheckOptions(), Budget())
    opened._process = process
    assert [d.message for d in opened.check("m.xml").diagnostics] == [GONE.format("")]


# --------------------------------------------------------------------------- the answer


def reported(
    found: list[Diagnostic], folder: Path, monkeypatch: pytest.MonkeyPatch, *, skip: tuple[str, ...] = ()
) -> list[Diagnostic]:
    """Return what is reported of a file of which a check finds this."""
    monkeypatch.setattr(check_file, "check_here", lambda *given: found)
    return check_file.check_file(str(add_net().write(folder)), None, CheckOptions(skip=skip))


def info(number: int, message: str = "", code: str = "OVIR702", line: int | None = 0) -> Diagnostic:
    return diagnose(CODES[code], message, Place("model.xml", None if line is None else line or number))


@pytest.mark.parametrize("count", [1000, 1001, 1003])
def test_an_answer_has_at_most_a_thousand_diagnostics(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = info(5000, code="OVIR401")
    unusable = info(6000, code="OVIR103")
    of_model = [*(info(number) for number in range(count - 2, 0, -1)), error, unusable]
    found = reported(of_model, tmp_path, monkeypatch)
    rest = [d for d in found if d.code == "OVIR006"]
    expected = f"the file has {count:,} diagnostics; this list ends after 1,000"
    assert [d.message for d in rest] == [expected] * (count > 1000)
    kept = found[len(rest) :]
    assert len(kept) == 1000
    assert kept[-2:] == [error, unusable]
    assert [d.line for d in kept] == sorted(d.line or 0 for d in of_model)[-1000:]


@pytest.mark.parametrize("more", [-1, 0])
def test_an_answer_has_a_limited_length(more: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_model = [info(number, "x" * number) for number in range(1, 6)]
    size = sum(len(json.dumps(d.to_dict())) for d in of_model[:3])
    monkeypatch.setattr(check_file, "_MOST_BYTES", size + more)
    first, *kept = reported(of_model, tmp_path, monkeypatch)
    assert kept == of_model[: 3 + more]
    assert first.message == f"the file has 5 diagnostics; this list ends after {3 + more}"
    monkeypatch.setattr(check_file, "_MOST_BYTES", 1 << 20)
    assert reported(of_model[::-1], tmp_path, monkeypatch) == of_model


@pytest.mark.parametrize(("length", "kept"), [(2000, "x" * 2000), (2001, f"{'x' * 2000}...")])
def test_long_texts_are_cut(length: int, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "x" * length
    found = diagnose(CODES["OVIR702"], text, Place("model.xml", 1, text), hint=text)
    assert [(d.message, d.layer, d.hint) for d in reported([found], tmp_path, monkeypatch)] == [(kept, kept, kept)]
    assert reported([info(1)], tmp_path, monkeypatch) == [info(1)]


@pytest.mark.parametrize(
    ("code", "severity"), [("OVIR702", "info"), ("OVIR304", "warning"), ("OVIR213", "warning"), ("OVIR507", "error")]
)
def test_what_is_dangerous_is_an_error(
    code: str, severity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that are used twice are honest, though they may mislead; constants that overlap are not."""
    (found,) = reported([info(1, code=code)], tmp_path, monkeypatch)
    assert found.severity == severity
    assert reported([info(1, code=code)], tmp_path, monkeypatch, skip=(code,)) == []


def test_diagnostics_are_in_the_order_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = [(None, None), (1, 0), (1, 5), (2, None), (2, 3)]
    ordered = [
        diagnose(CODES["OVIR102" if line else "OVIR702"], "", Place("model.xml", line), column=column)
        for line, column in places
    ]
    assert reported(ordered[::-1], tmp_path, monkeypatch) == ordered
