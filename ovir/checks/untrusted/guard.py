"""The process that checks untrusted files, from the side of its owner."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ovir.checks.options import CheckOptions
from ovir.checks.untrusted.budget import Budget
from ovir.checks.untrusted.paths import weights_beside
from ovir.diagnostics.codes import OVER_BUDGET, Severity
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.system.interrupts import uninterrupted
from ovir.system.processes import ChildProcess, ending_of


@dataclass(frozen=True, slots=True)
class Verdict:
    """The diagnostics of a file, and the cost of its check, as far as it is known."""

    diagnostics: list[Diagnostic]
    seconds: float = 0.0
    memory: int = 0


class Guard(AbstractContextManager["Guard"]):
    """Checks files one after the other, each in a process of its own within a budget; nothing of a file is read
    here."""

    def __init__(self, options: CheckOptions, budget: Budget) -> None:
        self.options = options
        self.budget = budget
        self._process: ChildProcess | None = None

    def check(self, path: str, weights: str | None = None) -> Verdict:
        """Return the verdict on a file; a check that is over its budget, or whose process dies, is an error."""
        seconds = self.budget.seconds_for(weights_beside(path) if weights is None else weights)
        limits = {"seconds": seconds, "memory": self.budget.memory}
        request = {"path": path, "weights": weights, "options": asdict(self.options), **limits}
        process = self._started()
        try:
            with process.killed_after(seconds) as expired:
                answer, end = self._ask(process, request)
        except BaseException:  # an interrupt between request and answer: the next answer would be a wrong one
            self.close()
            raise
        if end is None or expired.is_set():
            self.close()
        if answer is not None and end is not None and end["status"] == 0:
            return Verdict(answer, end.get("seconds", 0.0), end.get("memory", 0))
        if expired.is_set() or (end is not None and end["status"] == -SIGXCPU):
            message = f"the check takes more than {seconds:.3g} s"
        elif end is not None and end["status"] == 0:
            message = "the answer of the process cannot be read, perhaps because an extension writes to its output"
        else:
            died = "" if end is None else f" with {ending_of(end['status'])}"
            message = f"the check did not finish: its process ended{died}, perhaps for lack of memory"
        return Verdict([diagnose(OVER_BUDGET, message, Place(path))], seconds if expired.is_set() else 0.0)

    def _started(self) -> ChildProcess:
        if self._process is None or self._process.poll() is not None:
            self.close()
            arguments = [sys.executable, "-P", "-c", _PROGRAM, ROOT, *self.options.extensions]
            with uninterrupted():
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
                self._process = ChildProcess(arguments, env={**os.environ, **_ONE_THREAD}, **pipes)
            with self._process.killed_after(_START):
                _message(self._process.stdout)  # it is ready
        return self._process

    def _ask(
        self, process: ChildProcess, request: dict[str, Any]
    ) -> tuple[list[Diagnostic] | None, dict[str, Any] | None]:
        """Return the diagnostics, None without an answer, and how the fork ended, None if the process has ended."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            return None, None
        answer = None
        while (message := _message(process.stdout)) is not _ENDED:
            if isinstance(message, list):
                answer = [Diagnostic(**{**item, "severity": Severity(item["severity"])}) for item in message]
            elif isinstance(message, dict):
                return answer, message
        return answer, None

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def __exit__(self, *_: object) -> None:
        self.close()


_ENDED = object()


def _message(stream: BinaryIO | Any) -> Any:
    """Return the next message; None for a line that is not a message, as a dying process may leave."""
    try:
        line = stream.readline(_LONGEST)
        return json.loads(line) if line else _ENDED
    except ValueError:
        return None


SIGXCPU = int(getattr(signal, "SIGXCPU", 0))
_LONGEST = 1 << 24
"""Bytes of an answer; the child writes less."""
_START = 60.0
"""Seconds that the start of the process may take, on a busy machine."""
ROOT = os.fspath(Path(__file__).parents[3])
_PROGRAM = """
import sys
sys.path.append(sys.argv[1])
from ovir.checks.untrusted.child import main
main(sys.argv[2:])
"""
"""Without the working directory in its path, which may hold untrusted files."""
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
