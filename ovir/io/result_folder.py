"""A folder with the results of many inputs, and its manifest, by which an interrupted run continues."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from threading import Lock
from time import monotonic
from typing import Any, NoReturn, Self

from ovir.core.arrays import Array
from ovir.core.reading import Path, open_regular, parse_json, read_bytes, why_not_regular
from ovir.diagnostics.diagnostic import Place
from ovir.diagnostics.errors import InputError, ReadError, WriteError
from ovir.diagnostics.wording import reason_of, shortened
from ovir.io.input_files import ENDINGS, InputFile
from ovir.io.tensor_files import write_npz
from ovir.system.files import TEMPORARY, replaced_file

NAME = "manifest.jsonl"
_FORMAT = 1
_SYNC = 1.0
"""Seconds after which rows are on the disk. A row that a loss of power takes costs another run of its input."""


@dataclass(frozen=True)
class Row:
    """The outcome of one input."""

    input: str
    """The name of the input."""
    status: str
    """``done`` or ``failed``."""
    time: str
    """The time of its end, in UTC."""
    source: tuple[int, int]
    """The size of the input's file in bytes, and its time of change in nanoseconds."""
    model: str
    """The fingerprint of the model."""
    seconds: float | None = None
    """The duration of the run."""
    result: str | None = None
    """The file of the result, relative to the folder of the manifest."""
    sha256: str | None = None
    """The checksum of this file."""
    error: str | None = None
    """The error of the input."""


class Manifest:
    """An open manifest. Only one process at a time can open it."""

    def __init__(self, path: str, head: dict[str, Any], *, is_new: bool = False) -> None:
        """Open the file, and drop a last line that a crash has left incomplete.

        If not even the first line is complete, ``head`` begins the manifest anew. If it ``is_new``, there must be no
        such file yet. Raise ReadError if the file is not a manifest, InputError if another process has it open or has
        created it, WriteError if it cannot be written.
        """
        self.path = path
        self.is_anew = False
        """Whether an older file had no complete line."""
        self.rows: dict[str, Row] = {}
        """The last row of each input."""
        self._lock = Lock()
        self._synced = monotonic()
        self.unreadable: list[str] = []
        """For each row that could not be read, its line and the reason; its input has no row."""
        flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
        if not is_new and (fault := why_not_regular(path)) is not None:
            raise ReadError.of_file(path, fault)
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
        lines = read_bytes(self.path).split(b"\n")
        torn = lines.pop()
        if not lines and _is_torn_head(torn):
            self.is_anew = True
            self._begin()
            return
        head = _parsed(lines[0]) if lines else None
        message = None
        if head is None or type(head.get("ovir_manifest")) is not int or head["ovir_manifest"] != _FORMAT:
            message = "this is not a manifest of `ovir run`, or one of another version"
        elif (wrong := _wrong_field(head, _HEAD)) is not None:
            message = f"the manifest is damaged: {wrong}"
        if head is None or message is not None:
            raise ReadError.of_file(self.path, message or "", 1, hint="give another folder")
        if torn:
            with writing(self.path, hint=CONTINUES):
                os.ftruncate(self._file, os.fstat(self._file).st_size - len(torn))
        for number, line in enumerate(lines[1:], 2):
            row = _row(_parsed(line))
            if isinstance(row, Row):
                self.rows[row.input] = row
            else:  # as a loss of power may leave it
                self.unreadable.append(f"line {number}: {row}")
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
        line = _line_of(row)
        with self._lock, writing(self.path, hint=CONTINUES):
            before = os.fstat(self._file).st_size
            try:
                _write_all(self._file, line.encode())
                if monotonic() - self._synced > _SYNC:
                    os.fsync(self._file)
                    self._synced = monotonic()
            except BaseException:
                os.ftruncate(self._file, before)
                raise
            self.rows[row.input] = row

    def is_there(self) -> bool:
        """Return whether the file still has its name."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._file))
        except OSError:
            return False

    def restore(self) -> bool:
        """Write the manifest once more if nothing has its name; return whether there is one."""
        with self._lock, suppress(OSError):
            if not os.path.lexists(self.path):
                rows = [_line_of(row) for row in self.rows.values()]
                with replaced_file(self.path, DOING) as file:
                    file.write("".join([_head_line(self.head), *rows]).encode())
                return True
        return os.path.exists(self.path)

    def close(self) -> None:
        """Release the file, and with it the lock; raise WriteError if the last rows cannot be written."""
        try:
            with writing(self.path, hint=CONTINUES):
                os.fsync(self._file)
        finally:
            os.close(self._file)


def _line_of(row: Row) -> str:
    return json.dumps({key: value for key, value in asdict(row).items() if value is not None}) + "\n"


_HEAD_BEGINS = b'{"ovir_manifest"'


def _head_line(head: dict[str, Any]) -> str:
    return json.dumps({"ovir_manifest": _FORMAT, **head}) + "\n"


def _is_torn_head(line: bytes) -> bool:
    """Return whether a line is the beginning of a first line; a loss of power may leave zeros behind it."""
    begins = line.rstrip(b"\0")
    return begins.startswith(_HEAD_BEGINS) or _HEAD_BEGINS.startswith(begins)


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line, None if it is not one."""
    try:
        found = parse_json(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


_HEAD = {"model": str, "fingerprint": str, "options": dict}
_ROW = {"input": str, "status": str, "time": str, "source": list, "model": str}
_MAY_LACK = {"seconds": (int, float), "result": str, "sha256": str, "error": str}


def _wrong_field(found: dict[str, Any], types: Mapping[str, Any]) -> str | None:
    """Return the fault of an object whose fields must have these types; None if there is none."""
    for name, wanted in types.items():
        if name not in found:
            return f"'{name}' is missing"
        if not isinstance(found[name], wanted):
            return f"'{name}' is {shortened(repr(found[name]))}"
    return None


def _row(found: dict[str, Any] | None) -> Row | str:
    """Return the row of an object, or its fault.

    Every path of a row follows from the name of its input, so none leads out of the folder.
    """
    if found is None:
        return "no object in JSON"
    optional = {name: wanted for name, wanted in _MAY_LACK.items() if found.get(name) is not None}
    if (wrong := _wrong_field(found, {**_ROW, **optional})) is not None:
        return wrong
    if found["status"] not in ("done", "failed"):
        return f"'status' is {shortened(repr(found['status']))}"
    known = {key: found[key] for key in Row.__dataclass_fields__ if key in found}
    row = Row(**{**known, "source": tuple(known["source"])})
    if row.result is not None and row.result != (expected := result_name(row.input)):
        return f"'result' is {shortened(repr(row.result))}, but the result of this input is {shortened(repr(expected))}"
    return row


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
        raise WriteError.of_file(path, f"cannot {DOING}: {reason_of(error)}", hint=hint) from error


class ResultFolder:
    """The results of one model with one set of options, in a folder; a context manager, which closes the manifest."""

    def __init__(
        self, path: Path, model: str, fingerprint: str, options: dict[str, Any], *, resume: bool = False
    ) -> None:
        """Open the folder, or create it.

        ``model`` is the path of the model, and ``fingerprint`` changes with its content. With ``resume``, results of an
        earlier run are kept if they are from the same model and options; without it, there must be none. Raise
        InputError for a folder with other results or files, ReadError for a broken manifest, WriteError if the folder
        cannot be written.
        """
        self.path = path = os.fspath(path)
        self._real = os.path.join(os.path.realpath(path), "")
        self._fingerprint = fingerprint
        self._sources: dict[str, tuple[int, int]] = {}
        options = json.loads(json.dumps(options))  # so that they compare equal to what a manifest has
        head = {"model": os.path.abspath(model), "fingerprint": fingerprint, "options": options}
        manifest = os.path.join(path, NAME)
        if not os.path.exists(manifest):
            _require_empty(path)
            with writing(path):
                os.makedirs(path, exist_ok=True)
            self.manifest = Manifest(manifest, head, is_new=True)
            self._state = os.stat(path)
            return
        self._require_inside(manifest)
        if not resume:
            hint = "--resume continues that run; give another folder for new results"
            raise InputError.usage("the folder has results of an earlier run", Place(path), hint=hint)
        self.manifest = Manifest(manifest, head)
        self._state = os.stat(path)
        try:
            self._require_same(os.path.abspath(model), options)
            _remove_leftovers(path)
        except BaseException:
            self.manifest.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.manifest.close()

    def _require_same(self, model: str, options: dict[str, Any]) -> None:
        """Raise InputError for results of another model or other options.

        A model that has changed under its name is not an error: all of its inputs are pending again.
        """
        head = self.manifest.head
        known = {head.get("fingerprint"), *(row.model for row in self.manifest.rows.values())}
        if self._fingerprint not in known and head.get("model") != model:
            self._refuse(f"the folder has results of another model, {head.get('model')}")
        before = head.get("options", {})
        for name in sorted({*before, *options}):
            if before.get(name) != options.get(name):
                self._refuse(
                    f"the folder has results with other options: {name} was {_text(before.get(name))}, "
                    f"and is now {_text(options.get(name))}"
                )

    def _refuse(self, message: str) -> NoReturn:
        hint = "give another folder, or the model and the options of the earlier run"
        raise InputError.usage(message, Place(self.path), hint=hint)

    def _require_inside(self, path: str) -> None:
        """Raise InputError for a file that a link in the folder puts elsewhere: it would be replaced there."""
        if not os.path.realpath(path).startswith(self._real):
            message = "a link leads out of the folder of results"
            raise InputError.usage(message, Place(path), hint="remove the link, or give another folder")

    def _path(self, result: str) -> str:
        """Return the path of a result, which is inside the folder; raise InputError otherwise."""
        path = os.path.join(self.path, *result.split("/"))
        self._require_inside(path)
        return path

    # ----- what remains to be done

    def pending(self, inputs: Sequence[InputFile]) -> list[InputFile]:
        """Return the inputs without a result that is complete and up to date."""
        # A file that changes later has another state than its row says, and is pending again.
        self._sources.update((file.name, _source(file.path)) for file in inputs)
        return [file for file in inputs if not self._is_done(file)]

    def _is_done(self, file: InputFile) -> bool:
        row = self.manifest.rows.get(file.name)
        if row is None or row.status != "done" or row.result is None:
            return False
        if row.model != self._fingerprint or row.source != self._sources[file.name]:
            return False
        return checksum(self._path(row.result)) == row.sha256

    def failures(self, inputs: Sequence[InputFile]) -> list[Row]:
        """Return the rows of the inputs that have failed."""
        rows = (self.manifest.rows.get(file.name) for file in inputs)
        return [row for row in rows if row is not None and row.status == "failed"]

    def missing(self, inputs: Sequence[InputFile]) -> list[Row]:
        """Return the rows of the inputs whose results have been removed since they were written."""
        rows = (self.manifest.rows.get(file.name) for file in inputs)
        done = (row for row in rows if row is not None and row.status == "done")
        return [row for row in done if row.result is None or not os.path.isfile(self._path(row.result))]

    # ----- what has been done

    def require_there(self) -> None:
        """Raise WriteError if the folder or its manifest was removed or replaced since it was opened.

        If the folder itself is left, it gets a manifest again, so that the next run can continue with what is there.
        """
        if self.manifest.is_there():
            return
        try:
            is_same = os.path.samestat(os.stat(self.path), self._state)
        except OSError:
            is_same = False
        what = "the manifest" if is_same else "the folder of the results"
        message = f"cannot {DOING}: {what} was removed or replaced by another while the run went on"
        hint = "run the command again, with a new folder"
        if is_same and self.manifest.restore():
            hint = "--resume continues with the results that are left"
        raise WriteError.of_file(self.manifest.path if is_same else self.path, message, hint=hint)

    def keep(self, file: InputFile, arrays: Mapping[str, Array], seconds: float) -> None:
        """Write the result of an input, and then its row; raise WriteError if they cannot be written.

        The result appears under its name when it is complete and on the disk. Threads may call this.
        """
        result = result_name(file.name)
        path = self._path(result)
        self.require_there()
        try:
            with writing(path, hint=CONTINUES):
                _make_folders(self.path, result)
            with replaced_file(path, DOING, hint=CONTINUES) as opened:
                write_npz(opened, arrays)
                opened.flush()
                os.fsync(opened.fileno())
                digest = checksum(opened.name)
        except WriteError:
            self.require_there()  # a better reason, if there is one
            raise
        self._append(file, "done", seconds=round(seconds, 6), result=result, sha256=digest)

    def fail(self, file: InputFile, error: str) -> None:
        """Record that an input has failed, and remove an older result; raise WriteError if that cannot be written."""
        path = self._path(result_name(file.name))
        with writing(path, hint=CONTINUES), suppress(FileNotFoundError):
            os.remove(path)
        self._append(file, "failed", error=error)

    def _append(self, file: InputFile, status: str, **what: Any) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        source = self._sources.get(file.name) or _source(file.path)
        self.require_there()
        self.manifest.append(Row(file.name, status, now, source, self._fingerprint, **what))


def result_name(name: str) -> str:
    """Return the path of the result of an input, relative to the folder of results, with ``/`` on every system.

    It depends on nothing but the name of the input, and no two names share one: ``a/x.npz`` stays as it is, and others
    keep their ending, as in ``a/x.jpg.npz``. A file outside of the folder of its set gets a hash of its path.
    """
    if os.path.isabs(name):
        stem, ending = posixpath.splitext(posixpath.basename(name))
        name = f"{stem}~{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:16]}{ending}"
    stem, ending = posixpath.splitext(name)
    return name if ending == ".npz" and not stem.lower().endswith(ENDINGS) else f"{name}.npz"


def _make_folders(root: str, result: str) -> None:
    """Make the folders of a result, but not the root: if that was removed, it must not return without its manifest."""
    folder = root
    for name in result.split("/")[:-1]:
        folder = os.path.join(folder, name)
        with suppress(FileExistsError):
            os.mkdir(folder)


def checksum(path: str) -> str | None:
    """Return the SHA-256 of a file, None if there is none."""
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def fingerprint(*paths: str | None) -> str:
    """Return a text that changes with the content of the files; those that are None or missing have no content."""
    digests = [None if path is None else checksum(path) for path in paths]
    return hashlib.sha256(repr(digests).encode()).hexdigest()[:32]


def _source(path: str) -> tuple[int, int]:
    """Return size and time of change of a file, zeros if it is missing."""
    try:
        state = os.stat(path)
    except OSError:
        return 0, 0
    return state.st_size, state.st_mtime_ns


def _require_empty(path: str) -> None:
    """Raise InputError for a folder with files, because results would mix with them."""
    if os.path.exists(path) and not os.path.isdir(path):
        message = "the results of many inputs are written into a folder, but this is a file"
        raise InputError.usage(message, Place(path))
    names = os.listdir(path) if os.path.isdir(path) else []
    # Another run may have begun its manifest since this one has looked for it.
    others = [name for name in names if not TEMPORARY.fullmatch(name) and name != NAME]
    if others:
        message = f"the folder has other files, such as '{min(others)}', and no results of an earlier run"
        raise InputError.usage(message, Place(path), hint="give a new or an empty folder")


def _remove_leftovers(folder: str) -> None:
    """Remove the temporary files of a process that was killed."""
    for root, _, files in os.walk(folder):
        for name in filter(TEMPORARY.fullmatch, files):
            with writing(os.path.join(root, name), hint=CONTINUES):
                os.remove(os.path.join(root, name))


def _text(value: object) -> str:
    return "not given" if value in (None, [], False) else str(value)
