"""The progress of a command, on the last line of the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import perf_counter

from ovir.cli.terminal.display import last_line, moves_cursor
from ovir.cli.terminal.output import print_message
from ovir.cli.terminal.signals import requests
from ovir.core.short_names import columns_of
from ovir.diagnostics.wording import escaped
from ovir.system.progress import Stage, stage, watching

PATIENCE = 1.0
"""Seconds before progress appears; shorter commands need none."""
INTERVAL = 0.1
_BAR = 24
"""The columns of the bar."""
_MOST_TEXT = 40
"""The number of characters of the item in work."""


@contextmanager
def showing_progress() -> Iterator[None]:
    """Show the stages of a ``with`` block on stderr, if this is a terminal and the block takes long."""
    if not moves_cursor(sys.stderr):
        yield
        return
    ended = Event()
    with watching() as stages:
        thread = Thread(target=_draw_until, args=(ended, stages), name="ovir-progress", daemon=True)
        last_line.open()
        try:
            with suppress(RuntimeError):  # the system has no more threads
                thread.start()
            yield
        finally:
            ended.set()
            last_line.close()
            if thread.is_alive():
                thread.join()


@contextmanager
def reported(
    name: str, note: str | None = None, *, rate_of: str | None = None
) -> Iterator[Callable[[int, int, str], None]]:
    """Open a stage for work that calls a function with the number of things done, their total, and the latest one.

    ``note`` is a message to print when the work has begun, which it may not if it is refused. With
    ``rate_of``, which says what is counted, the rate and the time that is left take the place of the latest thing.
    """
    notes = [] if note is None else [note]
    with stage(name) as opened:

        def update(done: int, total: int, text: str = "") -> None:
            if notes:
                print_message(notes.pop())
            opened.done, opened.total = done, total
            opened.item = text if rate_of is None else _rate_text(opened, rate_of)

        yield update
    if notes:
        print_message(notes.pop())


def advance(opened: Stage) -> None:
    """Count one more input of a stage, which shows their rate, and the time that the others take at this rate."""
    opened.done += 1
    opened.item = _rate_text(opened, "inputs")


def _rate_text(opened: Stage, things: str) -> str:
    rate = opened.done / opened.seconds
    left = f", {_time((opened.total - opened.done) / rate)} left" if rate else ""
    return f"{rate:.3g} {things}/s{left}"


def _draw_until(ended: Event, stages: Sequence[Stage]) -> None:
    """Draw the stages again and again, once the command has taken long."""
    start = perf_counter()
    if ended.wait(PATIENCE):
        return
    with suppress(OSError, ValueError):  # the terminal is gone
        while not ended.wait(INTERVAL):
            shown = [Stage("stopping")] if requests.received is not None else list(stages)
            last_line.show(text_of(shown, perf_counter() - start, _columns()))


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def text_of(stages: Sequence[Stage], seconds: float, columns: int) -> str:
    """Return the line that shows the open stages of a command, which has taken so many seconds.

    The outermost stage that counts is shown, because stages inside of it come and go with each item; without one, the
    innermost stage. For layers in bodies, the same work is a stage again: the innermost has the item.
    """
    if not stages:
        return _fitting(["working", _time(seconds)], columns)
    shown = next((opened for opened in stages if opened.total > 1), stages[-1])
    done, total = shown.done, shown.total  # which the work may change meanwhile
    item = next(opened.item for opened in reversed(stages) if opened.name == shown.name)
    count = [_bar(done, total), f"{done:,} of {total:,}"] if total > 1 else []
    return _fitting([shown.name, *count, _time(seconds), _text_of(item)], columns)


def _text_of(item: object) -> str:
    """Return the end of an item's name, because the beginnings of names are alike."""
    from ovir.graph.layers import Layer  # not every command has a model

    layer = getattr(item, "layer", item)  # of a step of a plan
    if isinstance(layer, Layer):
        return f"{layer.type} {escaped(layer.name[-_MOST_TEXT:])}"
    return escaped(item[-_MOST_TEXT:]) if isinstance(item, str) else ""


def _bar(done: int, total: int) -> str:
    filled = min(done * _BAR // total, _BAR)
    bar = "█" * filled + "░" * (_BAR - filled)
    try:
        bar.encode(sys.stderr.encoding or "ascii")
    except UnicodeEncodeError:
        return f"[{'#' * filled}{'.' * (_BAR - filled)}]"
    return bar


def _time(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _fitting(parts: Sequence[str], columns: int) -> str:
    """Return the parts in one line, cut to the columns of the terminal except the last, where lines break."""
    text = "  ".join(part for part in parts if part)
    while columns_of(text) >= columns:
        text = text[:-1]
    return text
