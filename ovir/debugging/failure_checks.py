"""Checks of candidates: a command that is run without a shell where possible, or a function; and their answers."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from ovir.core.reading import open_regular, read_bytes
from ovir.diagnostics.errors import InputError
from ovir.system.interrupts import temporary_folder, uninterrupted
from ovir.system.processes import ChildProcess, ending_of, why_not_started

TIMED_OUT = 124
"""The status of a command that took longer than allowed, as the program ``timeout`` has it."""
PLACE = "{}"
"""The placeholder of the candidate's path in a command."""

Check = Callable[[str], int]
"""A function that returns the status of the model at a path."""


class Command:
    """A command line in which ``{}`` stands for the path of the model; its status is the exit status, or the negative
    number of the signal that ended it.

    It runs in a process group of its own, which is killed after ``timeout`` seconds, and when ovir is interrupted. Its
    temporary files lie in a folder of their own, because a process that is killed does not remove them.
    """

    def __init__(self, text: str, timeout: float | None = None) -> None:
        self.text = text
        self.timeout = timeout
        self.last_line = ""
        """The last error that the command has printed, or the last line, if none begins with "error"."""
        if PLACE not in text:
            hint = f"write {PLACE} where the path of the model belongs, as in 'ovir run {PLACE}'"
            raise InputError.usage(f"the check command does not contain {PLACE}: {text}", hint=hint)
        try:
            self._parts = shlex.split(text)
        except ValueError as error:
            raise InputError.usage(f"the check command cannot be split into arguments: {error}: {text}") from None
        self._needs_shell = _needs_shell(text)

    def __call__(self, path: str) -> int:
        with temporary_folder("ovir-check-") as folder, tempfile.TemporaryFile() as output:
            process = None
            try:
                with uninterrupted():
                    process = self._start(path, os.fspath(folder), output)
                status = process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                status = TIMED_OUT
            finally:
                if process is not None:
                    with uninterrupted():
                        process.end()
            size = output.seek(0, os.SEEK_END)
            output.seek(max(0, size - 2000))
            lines = output.read().decode("utf-8", "replace").strip().splitlines()
            found = [line for line in lines if line.startswith("error")] or lines
            self.last_line = found[-1].strip() if found else ""
        return status

    def require_started(self, status: int) -> None:
        """Raise InputError if a status means that the shell has not found the command."""
        if self._needs_shell and status in _NOT_STARTED:
            raise InputError.usage(f"the check command cannot be started: {self.last_line}")

    def _start(self, path: str, folder: str, output: IO[bytes]) -> ChildProcess:
        if self._needs_shell:
            arguments = ["/bin/sh", "-c", self.text.replace(PLACE, shlex.quote(path))]
        else:
            arguments = [part.replace(PLACE, path) for part in self._parts]
            if arguments[0] == "ovir":
                arguments[:1] = _OVIR
        try:
            pipes = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
            return ChildProcess(arguments, env={**os.environ, "TMPDIR": folder}, **pipes)
        except (OSError, ValueError) as error:
            reason = why_not_started(arguments[0], error)
            raise InputError.usage(f"the check command cannot be started: {reason}") from None


_NOT_STARTED = (126, 127)
"""The statuses of a shell for a command that is not executable, or does not exist."""

_OVIR = [
    *(sys.executable, "-P", "-c"),
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); "
    "from ovir.__main__ import command; sys.exit(command())",
]
"""The command of the ``ovir`` that runs now, whichever one the search path of the shell has."""


def _needs_shell(text: str) -> bool:
    """Return whether a command has pipes, redirections, variables or assignments, which only a shell understands."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    is_assignment = bool(words) and re.match(r"\w+=", words[0]) is not None
    return is_assignment or "$" in text or "`" in text or any(set(word) <= set("();<>|&") for word in words if word)


def status_text(status: int) -> str:
    """Return a status in words."""
    return f"{ending_of(status)}{' (taking too long)' * (status == TIMED_OUT)}"


class Answers:
    """The statuses of candidates by a hash of their files and of the check; they outlive the process in a folder."""

    def __init__(self, check: str, folder: Path | None) -> None:
        self._start = hashlib.sha256(check.encode()).digest()
        self._path = folder / "answers.txt" if folder is not None else None
        self._known: dict[str, int] = {}
        if self._path is not None and self._path.exists():
            for line in read_bytes(self._path).decode("ascii", "replace").splitlines():
                match = re.fullmatch(r"([0-9a-f]{64}) (-?\d+)", line)  # the last line may be incomplete
                if match is not None:
                    self._known[match[1]] = int(match[2])

    def key(self, path: Path) -> str:
        """Return the key of the model in an .xml and the .bin next to it."""
        found = hashlib.sha256(self._start)
        for file in (path, path.with_suffix(".bin")):
            if file.exists():
                with open_regular(file) as stream:
                    found.update(hashlib.file_digest(stream, "sha256").digest())
        return found.hexdigest()

    def of(self, key: str, run: Callable[[], int]) -> int:
        """Return the status of a candidate, which is run unless the answer is known."""
        if key not in self._known:
            self._known[key] = run()
            if self._path is not None:
                with self._path.open("a", encoding="ascii") as file:
                    file.write(f"{key} {self._known[key]}\n")
        return self._known[key]
