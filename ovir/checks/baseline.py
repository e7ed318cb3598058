"""Baselines: the diagnostics that are known, so that only new ones count."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ovir.core.reading import parse_json, read_text
from ovir.diagnostics.diagnostic import Diagnostic, Place
from ovir.diagnostics.errors import InputError
from ovir.diagnostics.wording import reason_of
from ovir.system.files import write_json

_VERSION = 1
Key = tuple[str, str, str, int]
"""File, code, layer and port: lines move when a file is written again, and a new ovir may change messages."""


class Baseline:
    """The diagnostics of a baseline that have not been met yet. Its paths are relative to the folder of its file."""

    def __init__(self, path: str, known: Counter[Key]) -> None:
        self.path = path
        self._left = known

    @classmethod
    def read(cls, path: str) -> Baseline:
        """Read a file; raise InputError, with the line if it is known, if it is not a baseline."""
        try:
            content = parse_json(read_text(path))
        except OSError as error:
            is_missing = isinstance(error, FileNotFoundError)
            hint = f"`ovir check ... --write-baseline {path}` writes it" if is_missing else None
            raise _refused(path, f"cannot read the baseline: {reason_of(error)}", hint=hint) from None
        except json.JSONDecodeError as error:
            raise _refused(path, f"the baseline is not JSON: {error.msg}", error.lineno) from None
        except UnicodeDecodeError:
            raise _refused(path, "the baseline is not JSON in UTF-8") from None
        except ValueError as error:
            raise _refused(path, f"the baseline is not JSON: {error}") from None
        if not isinstance(content, dict) or content.get("version") != _VERSION:
            raise _refused(path, f"not a baseline of version {_VERSION}, which `--write-baseline` writes")
        known: Counter[Key] = Counter()
        entries = content.get("diagnostics")
        for i, entry in enumerate(entries if isinstance(entries, list) else [None]):
            try:
                key = (entry["file"], entry["code"], entry.get("layer", ""), entry.get("port", -1))
                known[key] += entry.get("count", 1)
            except (TypeError, KeyError, AttributeError):
                raise _refused(path, f"entry {i} of the baseline's 'diagnostics' is not a diagnostic") from None
        return cls(path, known)

    def takes(self, diagnostic: Diagnostic) -> bool:
        """Return whether a diagnostic is known, at most as often as the baseline contains it."""
        key = _key(diagnostic, self.path)
        if self._left[key] < 1:
            return False
        self._left[key] -= 1
        return True

    def count_missing(self, files: Iterable[str], wanted: Callable[[str, str], bool]) -> int:
        """Return the number of its unmet diagnostics on these files, among the ``wanted`` codes of a file."""
        checked = {_relative(file, self.path): file for file in files}
        left = ((checked.get(file), code, count) for (file, code, *_), count in self._left.items())
        return sum(count for file, code, count in left if file is not None and wanted(file, code))


def write_baseline(path: str, diagnostics: Iterable[Diagnostic]) -> None:
    """Write the diagnostics as a baseline, each with its message for human readers."""
    counts: Counter[Key] = Counter()
    messages: dict[Key, str] = {}
    for diagnostic in diagnostics:
        key = _key(diagnostic, path)
        counts[key] += 1
        messages.setdefault(key, diagnostic.message)
    entries = [_entry(key, counts[key], messages[key]) for key in sorted(counts)]
    write_json(path, {"version": _VERSION, "diagnostics": entries}, "write the baseline")


def _entry(key: Key, count: int, message: str) -> dict[str, Any]:
    file, code, layer, port = key
    entry: dict[str, Any] = {"file": file, "code": code}
    entry |= {"layer": layer} if layer else {}
    entry |= {"port": port} if port >= 0 else {}
    entry |= {"count": count} if count > 1 else {}
    return entry | {"message": message}


def _key(diagnostic: Diagnostic, baseline: str) -> Key:
    port = -1 if diagnostic.port is None else diagnostic.port
    return _relative(diagnostic.file or "", baseline), diagnostic.code, diagnostic.layer or "", port


def _relative(file: str, baseline: str) -> str:
    return os.path.relpath(file, os.path.dirname(os.path.abspath(baseline))).replace(os.sep, "/") if file else ""


def _refused(path: str, message: str, line: int | None = None, hint: str | None = None) -> InputError:
    return InputError.usage(message, Place(path, line), hint=hint)
