"""Lines of files that a report shows around a place."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from ovir.diagnostics.wording import escaped

AROUND = 6
"""The number of lines before and after the one that a diagnostic names."""
LONGEST = 500
"""The number of characters of a line that a report shows; files without line breaks have lines of megabytes."""


class Sources:
    """The lines of files that the excerpts of a page need, each line once."""

    def __init__(self) -> None:
        self._files: dict[str, list[str] | None] = {}
        self._wanted: dict[str, set[int]] = defaultdict(set)

    def add(self, file: str, line: int) -> bool:
        """Keep the lines around one of a file, counted from 1; return False if the file does not have it."""
        lines = self._lines(file)
        if lines is None or not 1 <= line <= len(lines):
            return False
        self._wanted[file].update(range(max(line - AROUND, 1), min(line + AROUND, len(lines)) + 1))
        return True

    def _lines(self, file: str) -> list[str] | None:
        if file not in self._files:
            self._files[file] = _read(file)
        return self._files[file]

    def to_data(self) -> dict[str, list[tuple[int, list[str]]]]:
        """Return by file the runs of lines that are kept: the number of the first, and their texts."""
        return {file: self._runs(file, sorted(numbers)) for file, numbers in self._wanted.items()}

    def _runs(self, file: str, numbers: list[int]) -> list[tuple[int, list[str]]]:
        lines = self._lines(file) or []
        runs: list[tuple[int, list[str]]] = []
        for number in numbers:
            if not runs or number != runs[-1][0] + len(runs[-1][1]):
                runs.append((number, []))
            runs[-1][1].append(_shown(lines[number - 1]))
        return runs


def _read(file: str) -> list[str] | None:
    """Return the lines of a text file, None if it cannot be read; bytes that are no text are replaced."""
    try:
        data = Path(file).read_bytes()
    except (OSError, ValueError):  # the path may have a null character
        return None
    wide = next((encoding for mark, encoding in _WIDE.items() if data.startswith(mark)), "utf-8-sig")
    return data.decode(wide, "replace").replace("\r\n", "\n").split("\n")


_WIDE = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}


def _shown(line: str) -> str:
    text = line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
    return "\t".join(map(escaped, text.split("\t")))
