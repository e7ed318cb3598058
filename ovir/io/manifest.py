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

from ovir.diagnostics.codes import UNREADABLE, UNWRITABLE
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

    def __init__(self, path: str, head: dict[str, Any], *, is_new: bool = False) -> None:
        """Open the file, and drop a last line that a crash has left incomplete.

        If not even the first line is complete, ``head`` begins the manifest anew. If it ``is_new``, there must be no
        such file yet. Raise ReadError if the file is no manifest, InputError if another process has it open or has
        created it, WriteError if it cannot be written.
        """
        self.path = path
        self.is_anew = False
        """Whether an older file had no complete line."""
        self.rows: dict[str, Row] = {}
        """The last row of each input."""
        self._lock = Lock()
        self._synced = monotonic()
        self.unreadable = 0
        """The number of rows that could not be read; their inputs have no row."""
        flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
        with writing(path, hint=None if is_new else CONTINUES):
            try:
                self._file = os.open(path, flags | os.O_CREAT | os.O_EXCL if is_new else flags, 0o666)
            except FileExistsError:
                raise _is_written(path) from None
        try:
            _lock(self._file, path)
            self.head = head
            if not is_new:
                self._read()
            elif os.fstat(self._file).st_size:  # another process has found the empty file before it was locked
                raise _is_written(path)
            else:
                self._begin(is_new=True)
        except BaseException:
            os.close(self._file)
            raise

    def _read(self) -> None:
        """Read head and rows; without any line, begin the manifest anew."""
        with open(self.path, "rb") as file:
            lines = file.read().split(b"\n")
        torn = lines.pop()
        if not lines and _is_torn_head(torn):
            self.is_anew = True
            self._begin()
            return
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
        self.head = head

    def _begin(self, *, is_new: bool = False) -> None:
        """Write the first line; a new file is removed if that fails."""
        try:
            with writing(self.path):
                os.ftruncate(self._file, 0)
                _write_all(self._file, _head_line(self.head).encode("ascii"))
                os.fsync(self._file)
        except BaseException:
            if is_new:
                os.remove(self.path)
            raise

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
    """Raise InputError if another process holds the lock; the system releases it when that ends, however it does."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _is_written(path) from None
    except OSError:  # some network file systems have no locks
        return


def _is_written(path: str) -> InputError:
    return InputError.usage("another run is writing results into this folder", Place(path))


# --------------------------------------------------------------------------- writing


DOING = "write the results"
CONTINUES = "what has been written is complete; --resume continues"
"""The hint of an error that leaves a manifest behind."""


@contextmanager
def writing(path: str, *, hint: str | None = None) -> Iterator[None]:
    """Raise WriteError for an OSError."""
    try:
        yield
    except OSError as error:
        message = f"cannot {DOING}: {error.strerror or error}"
        raise WriteError(diagnose(UNWRITABLE, message, Place(path), hint=hint)) from error
