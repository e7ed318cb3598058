"""The terminal: its abilities, its last line, and pages in Markdown."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from time import perf_counter
from typing import TextIO

from ovir.core.short_names import columns_of

QUIET = 0.3
"""Seconds after a message in which the last line stays empty, because more messages may follow."""


def moves_cursor(stream: TextIO) -> bool:
    """Return whether the stream is a terminal on which a line can be written again."""
    return stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def has_colors(stream: TextIO) -> bool:
    """Return whether texts on the stream may be colored; see no-color.org."""
    return moves_cursor(stream) and not os.environ.get("NO_COLOR")


def terminal_width() -> int:
    """Return the number of columns of the terminal, 80 if there is none. Unlike that of shutil, it imports nothing."""
    if (columns := os.environ.get("COLUMNS", "")).isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size().columns or 80
    except OSError:  # stdout is not a terminal
        return 80


class LastLine:
    """The line of the terminal below all output, on which stderr shows the progress.

    The cursor stays at its beginning, so that output of other programs overwrites it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._text = ""
        self._is_open = False
        self._printed = 0.0

    def open(self) -> None:
        """Let the line be shown."""
        self._is_open = True

    def close(self) -> None:
        """Erase the line, and show nothing from now on."""
        self._is_open = False
        with self._lock:
            self._erase()

    def show(self, text: str) -> None:
        """Show a text, which must fit into the line, in place of the one before."""
        with self._lock:
            if not self._is_open or perf_counter() - self._printed < QUIET or text == self._text:
                return
            sys.stderr.write(f"\r{text}{' ' * (columns_of(self._text) - columns_of(text))}\r")
            sys.stderr.flush()
            self._text = text

    @contextmanager
    def free(self, stream: TextIO) -> Iterator[None]:
        """Keep the line free in a ``with`` block, which prints to the stream."""
        if not (self._is_open and stream.isatty()):
            yield
            return
        with self._lock:
            self._erase()
            yield
            self._printed = perf_counter()

    def _erase(self) -> None:
        if self._text:
            sys.stderr.write(f"\r{' ' * columns_of(self._text)}\r")
            sys.stderr.flush()
            self._text = ""


last_line = LastLine()


_BOLD, _CYAN, _RESET = "\033[1m", "\033[36m", "\033[0m"


def bold(text: str) -> str:
    """Return a text that terminals show bold."""
    return f"{_BOLD}{text}{_RESET}"


def lines_for_terminal(text: str, columns: int, *, colors: bool) -> Iterator[str]:
    """Yield the lines of a text of headings, paragraphs, lists and blocks of code.

    Paragraphs are filled to ``columns``, and at most 100. Code is indented in place of its fences, and keeps its lines.
    """
    width = min(columns, 100)
    cyan, reset = (_CYAN, _RESET) if colors else ("", "")
    for number, part in enumerate(re.split(r"^```\w*\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)):
        if number % 2:
            yield from ("", *(f"    {cyan}{line}{reset}".rstrip() for line in part.splitlines()), "")
            continue
        for index, paragraph in enumerate(re.split(r"\n{2,}", part.strip("\n"))):
            if index:
                yield ""
            for item in re.split(r"\n(?=- )", paragraph):
                if item.startswith("#"):
                    heading = item.lstrip("# ").replace("`", "")
                    yield bold(heading) if colors else heading
                else:
                    indent = "  " if item.startswith("- ") else ""
                    yield from textwrap.wrap(item, width, subsequent_indent=indent, break_on_hyphens=False)
