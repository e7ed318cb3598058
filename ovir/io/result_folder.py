"""A folder with the results of a model for many inputs: one .npz for each, and a manifest."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NoReturn, Self

from ovir.core.arrays import Array
from ovir.core.files import TEMPORARY, replaced_file
from ovir.diagnostics.diagnostic import Place
from ovir.diagnostics.errors import InputError
from ovir.io.input_files import ENDINGS, InputFile
from ovir.io.manifest import CONTINUES, DOING, NAME, Manifest, Row, writing
from ovir.io.tensor_files import write_npz


class ResultFolder:
    """The results of one model with one set of options, in a folder. It is a context manager, which closes the
    manifest."""

    def __init__(
        self, path: str, model: str, fingerprint: str, options: dict[str, Any], *, resume: bool = False
    ) -> None:
        """Open the folder, or create it.

        ``model`` is the path of the model, and ``fingerprint`` changes with its content. With ``resume``, results of an
        earlier run are kept if they are from the same model and options; without it, there must be none. Raise
        InputError for a folder with other results or files, ReadError for a broken manifest, WriteError if the folder
        cannot be written.
        """
        self.path = path
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
            return
        if not resume:
            hint = "--resume continues that run; give another folder for new results"
            raise InputError.usage("the folder has results of an earlier run", Place(path), hint=hint)
        self.manifest = Manifest(manifest, head)
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

        A model that has changed under its name is no error: all of its inputs are pending again.
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
        return checksum(os.path.join(self.path, row.result)) == row.sha256

    def failures(self, inputs: Sequence[InputFile]) -> list[Row]:
        """Return the rows of the inputs that have failed."""
        rows = (self.manifest.rows.get(file.name) for file in inputs)
        return [row for row in rows if row is not None and row.status == "failed"]

    # ----- what has been done

    def keep(self, file: InputFile, arrays: Mapping[str, Array], seconds: float) -> None:
        """Write the result of an input, and then its row; raise WriteError if they cannot be written.

        The result appears under its name when it is complete and on the disk. Threads may call this.
        """
        result = result_name(file.name)
        path = os.path.join(self.path, *result.split("/"))
        with writing(path, hint=CONTINUES):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with replaced_file(path, DOING, hint=CONTINUES) as opened:
            write_npz(opened, arrays)
            opened.flush()
            os.fsync(opened.fileno())
            digest = checksum(opened.name)
        self._append(file, "done", seconds=round(seconds, 6), result=result, sha256=digest)

    def fail(self, file: InputFile, error: str) -> None:
        """Record that an input has failed, and remove a result of an earlier run; raise WriteError if that cannot be
        written."""
        path = os.path.join(self.path, *result_name(file.name).split("/"))
        with writing(path, hint=CONTINUES), suppress(FileNotFoundError):
            os.remove(path)
        self._append(file, "failed", error=error)

    def _append(self, file: InputFile, status: str, **what: Any) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        source = self._sources.get(file.name) or _source(file.path)
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


def checksum(path: str) -> str | None:
    """Return the SHA-256 of a file, None if there is none."""
    try:
        with open(path, "rb") as file:
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
