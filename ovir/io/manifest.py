"""A manifest: what a run of a model on many inputs was made with, and what has become of each input.

It is a file of JSON lines. The first one describes the run, and each further one an input. Lines are only appended; of
several lines about an input, the last one counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from threading import Lock
from time import monotonic
from typing import Any

from ovir.diagnostics.codes import UNREADABLE, UNWRITABLE, USAGE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, ReadError, WriteError

NAME = "manifest.jsonl"
_FORMAT = 1
_SYNC = 1.0
"""Seconds after which rows are on the disk. A row that a loss of power takes costs another run of its input."""


@dataclass(frozen=True)
class Row:
    """What has become of one input."""

    input: str
    """The name of the input."""
    status: str
    """``done`` or ``failed``."""
    time: str
    """When it ended, in UTC."""
    source: tuple[int, int]
    """The size of the input's file in bytes, and its time of change in nanoseconds."""
    model: str
    """The fingerprint of the model."""
    seconds: float | None = None
    """How long the run took."""
    result: str | None = None
    """The file of the result, relative to the folder of the manifest."""
    sha256: str | None = None
    """The checksum of this file."""
    error: str | None = None
    """Why the input failed."""


class Manifest:
    """An open manifest. Only one process at a time can open it."""

    def __init__(self, path: str, head: dict[str, Any]) -> None:
        """Open the file, and drop a last line that a crash has left incomplete.

        If not even the first line is complete, ``head`` begins the manifest anew. Raise ReadError if the file is no
        manifest, InputError if another process has it open, WriteError if it cannot be written.
        """
        self.path = path
        self.is_anew = False
        """Whether the file had no complete line."""
        self.rows: dict[str, Row] = {}
        """The last row of each input."""
        self._lock = Lock()
        self._synced = monotonic()
        self.unreadable = 0
        """The number of rows that could not be read; their inputs have no row."""
        with writing(path, hint=CONTINUES):
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0))
        try:
            _lock(self._file, path)
            self.head = self._read(head)
        except BaseException:
            os.close(self._file)
            raise

    @classmethod
    def create(cls, path: str, head: dict[str, Any]) -> Manifest:
        """Create the file with a description of the run; raise WriteError if it cannot be written."""
        with atomic_file(path) as temporary, open(temporary, "w", encoding="ascii") as file:
            file.write(_head_line(head))
            file.flush()
            os.fsync(file.fileno())
        return cls(path, head)

    def _read(self, new_head: dict[str, Any]) -> dict[str, Any]:
        with open(self.path, "rb") as file:
            lines = file.read().split(b"\n")
        torn = lines.pop()
        if not lines and _is_torn_head(torn):
            self._begin_anew(new_head)
            return new_head
        head = _parsed(lines[0]) if lines else None
        if head is None or head.get("ovir_manifest") != _FORMAT:
            message = "this is no manifest of `ovir run`, or one of another version"
            raise ReadError(diagnose(UNREADABLE, message, Place(self.path, 1), hint="give another folder"))
        if torn:
            with writing(self.path, hint=CONTINUES):
                os.ftruncate(self._file, os.fstat(self._file).st_size - len(torn))
        for line in lines[1:]:
            row = _row(_parsed(line))
            if row is None:  # as a loss of power may leave it
                self.unreadable += 1
            else:
                self.rows[row.input] = row
        return head

    def _begin_anew(self, head: dict[str, Any]) -> None:
        self.is_anew = True
        with writing(self.path):
            os.ftruncate(self._file, 0)
            _write_all(self._file, _head_line(head).encode("ascii"))
            os.fsync(self._file)

    def append(self, row: Row) -> None:
        """Write a row, which outlives this process when this returns, and a loss of power ``_SYNC`` seconds later;
        raise WriteError if it cannot be written. Threads may call this."""
        text = json.dumps({key: value for key, value in asdict(row).items() if value is not None})
        with self._lock, writing(self.path, hint=CONTINUES):
            before = os.fstat(self._file).st_size
            try:
                _write_all(self._file, f"{text}\n".encode())
                if monotonic() - self._synced > _SYNC:
                    os.fsync(self._file)
                    self._synced = monotonic()
            except BaseException:
                os.ftruncate(self._file, before)
                raise
            self.rows[row.input] = row

    def close(self) -> None:
        """Release the file, and with it the lock; raise WriteError if the last rows cannot be written."""
        try:
            with writing(self.path, hint=CONTINUES):
                os.fsync(self._file)
        finally:
            os.close(self._file)


_HEAD_BEGINS = b'{"ovir_manifest"'


def _head_line(head: dict[str, Any]) -> str:
    return json.dumps({"ovir_manifest": _FORMAT, **head}) + "\n"


def _is_torn_head(line: bytes) -> bool:
    """Return whether a line is the beginning of a first line; a loss of power may leave zeros behind it."""
    begins = line.rstrip(b"\0")
    return begins.startswith(_HEAD_BEGINS) or _HEAD_BEGINS.startswith(begins)


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line, None if it is none."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _row(found: dict[str, Any] | None) -> Row | None:
    """Return the row of an object, None if it is none."""
    if found is None or found.get("status") not in ("done", "failed"):
        return None
    known = {key: found[key] for key in Row.__dataclass_fields__ if key in found}
    try:
        return Row(**{**known, "source": tuple(known["source"])})
    except (KeyError, TypeError):
        return None


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _lock(file: int, path: str) -> None:
    """Raise InputError if another process holds the lock; it is released when the file is closed."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        message = "another run is writing results into this folder"
        raise InputError(diagnose(USAGE, message, Place(path))) from None
    except OSError:  # some network file systems have no locks
        return


# --------------------------------------------------------------------------- writing


CONTINUES = "what has been written is complete; --resume continues"
"""The hint of an error that leaves a manifest behind."""


@contextmanager
def writing(path: str, *, hint: str | None = None) -> Iterator[None]:
    """Raise WriteError for an OSError."""
    try:
        yield
    except OSError as error:
        message = f"cannot write the results: {error.strerror or error}"
        raise WriteError(diagnose(UNWRITABLE, message, Place(path), hint=hint)) from error


@contextmanager
def atomic_file(path: str, *, hint: str | None = None) -> Iterator[str]:
    """Give the path of a temporary file to write, which replaces ``path`` unless anything is raised.

    Raise WriteError, with the hint, if it cannot be written.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    with writing(path, hint=hint):
        try:
            yield temporary
            os.replace(temporary, path)
        except BaseException:
            if os.path.exists(temporary):
                os.remove(temporary)
            raise
