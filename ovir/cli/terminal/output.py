"""Output of the commands: tables, JSON and numbers on stdout, messages on stderr, and exit statuses."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TextIO

from ovir.cli.terminal.display import bold, has_colors, last_line, terminal_width
from ovir.cli.terminal.tables import FittedTable
from ovir.core.tables import Table, columns
from ovir.diagnostics.codes import CODES, NO_ENGINE, UNWRITABLE, USAGE, Severity
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.wording import plural
from ovir.system.files import target_paths
from ovir.system.progress import stage

if TYPE_CHECKING:  # not every command has a model
    from ovir.model import Model

DONE, WRONG, UNUSABLE = 0, 1, 2
"""Nothing is wrong; the model or its data is at fault; wrong usage, or a file cannot be read at all."""
INTERRUPTED, BROKEN_PIPE = 130, 141
LIMIT = 20
"""The number of rows that are shown unless the options say otherwise; JSON has all."""


def status_of(diagnostics: Iterable[Diagnostic], failing: Collection[Severity] = (Severity.ERROR,)) -> int:
    """Return the exit status of a command; diagnostics of the severities ``failing`` count as faults."""
    found = list(diagnostics)
    if any(CODES[d.code].unusable or d.code in (USAGE.id, UNWRITABLE.id, NO_ENGINE.id) for d in found):
        return UNUSABLE
    return WRONG if any(d.severity in failing for d in found) else DONE


def say(text: str = "") -> None:
    """Print a line of the result."""
    _write(sys.stdout, text)


def say_filled(text: str) -> None:
    """Print a sentence, which a terminal shows in lines of whole words, with its indentation."""
    say(_filled(text, sys.stdout))


def _filled(text: str, stream: TextIO) -> str:
    if not stream.isatty():
        return text
    indent = text[: len(text) - len(text.lstrip())]
    fill = partial(wrap, width=terminal_width(), subsequent_indent=indent)
    return "\n".join(fill(text, break_on_hyphens=False, break_long_words=False))


def say_part(text: str) -> None:
    """Print a part of the result at once, without a new line."""
    _write(sys.stdout, text, end="")
    sys.stdout.flush()


def print_message(text: str) -> None:
    """Print a message to the user on stderr."""
    with pipe.may_close(sys.stdout):
        sys.stdout.flush()  # keeps earlier output first
    _write(sys.stderr, text)


def print_note(text: str) -> None:
    """Print a sentence about the work on stderr; unlike diagnostics, a terminal shows it in lines of whole words."""
    print_message(_filled(text, sys.stderr))


def print_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Print the diagnostics on stderr; equal ones are summed up, as in ``ovir check``."""
    listed = list(diagnostics)
    if len(listed) > 1:
        from ovir.checks.consequences import sum_up  # most commands have nothing to sum up

        listed = sum_up(listed)
    for found in listed:
        print_message(str(found))


def say_json(value: Any) -> None:
    """Print JSON in ASCII that every parser reads: non-finite numbers become texts, lists of numbers take one line."""
    from json import dumps

    with stage("laying out"):
        text = _laid_out(_plain(value), "", dumps)
    say(text)


def _laid_out(value: Any, indent: str, dumps: Callable[..., str]) -> str:
    inner = indent + "  "
    if isinstance(value, dict) and value:
        items = [f"{dumps(key)}: {_laid_out(item, inner, dumps)}" for key, item in value.items()]
        return "{\n" + ",\n".join(inner + item for item in items) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return "[\n" + ",\n".join(inner + _laid_out(item, inner, dumps) for item in value) + f"\n{indent}]"
    return dumps(value, allow_nan=False)


def say_table(table: Table, *, title: str = "", limit: int | None = None, more: str = "") -> None:
    """Print a table, or its first ``limit`` rows and how many ``more`` there are, such as more layers.

    A terminal that is too narrow shows the last column below the rows if it has sentences or a list, then leaves out
    columns of ``table.least``, the first one first, and says so. Elsewhere, everything is printed in full.
    """
    if title:
        say(title)
    with stage("laying out"):
        is_terminal = sys.stdout.isatty()
        width = terminal_width() if is_terminal else None
        shown = replace(table, rows=table.rows[:limit]).without(["reports"])
        laid_out = FittedTable(shown, width=width)
        for head in laid_out.heads():
            say(bold(head) if has_colors(sys.stdout) else head)
        for line in laid_out.rows():
            say(line)
    if laid_out.left_out:
        say_filled(f"({width} columns leave out {', '.join(laid_out.left_out)}; a pipe shows all)")
    if limit is not None and len(table.rows) > limit:
        say(f"and {plural(len(table.rows) - limit, more)}")


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return the first names in one line, and the number of the others."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def listed_layers(counts: Mapping[str, int]) -> str:
    """Return kinds of layers with their counts: ``FakeQuantize-1 (12 layers), Interpolate-11 (2)``."""
    amounts = [plural(amount, "layer") if i == 0 else f"{amount:,}" for i, amount in enumerate(counts.values())]
    return ", ".join(f"{kind} ({amount})" for kind, amount in zip(counts, amounts, strict=True))


def _write(stream: Any, text: str, end: str = "\n") -> None:
    """Write a text, by default as a line, with characters escaped that the stream's encoding lacks."""
    with last_line.free(stream), pipe.may_close(stream):
        try:
            print(text, file=stream, end=end)
        except UnicodeEncodeError:
            encoding = stream.encoding or "ascii"
            print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, end=end)


class Pipe:
    """The pipe that standard output may be, whose reader may end first, as in ``ovir show model.xml | head``."""

    is_needed = True
    """Whether the command ends with its reader: it writes no files besides."""
    is_closed = False
    """Whether the reader has ended, and what followed was discarded."""

    @contextmanager
    def may_close(self, stream: TextIO) -> Iterator[None]:
        """Discard the rest of a stream once its reader has ended; raise BrokenPipeError if the pipe is needed."""
        try:
            yield
        except BrokenPipeError:
            if self.is_needed:
                raise
            self.is_closed = True
            silence(stream)


pipe = Pipe()


def silence(stream: TextIO) -> None:
    """Discard everything that is still to be written."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def say_saved(
    is_json: bool,
    model: Model,
    path: str | None,
    keys_before: Collection[str],
    warnings: Iterable[Diagnostic],
    **more: object,
) -> bool:
    """Print the warnings about a model that was written to ``path``, or its whole description as JSON with ``more``.

    None stands for no file, and ``keys_before`` are the keys of the layers from which it was made. The result is
    whether JSON was printed.
    """
    if not is_json:
        print_diagnostics(warnings)
        return False
    from ovir.graph.names import port_as_json  # not every command has a model

    keys, before = dict.fromkeys(layer.key for layer in model.walk()), set(keys_before)
    document = {
        "files": [] if path is None else list(target_paths(path)),
        "name": model.name,
        "inputs": [port_as_json(port) for port in model.inputs],
        "outputs": [port_as_json(port) for port in model.outputs],
        "layers": len(model.layers),
        "added": [key for key in keys if key not in before],
        "removed": [key for key in keys_before if key not in keys],
        **more,
        "diagnostics": [found.to_dict() for found in warnings],
    }
    say_json(document)
    return True


def say_ports(model: Model) -> None:
    """Print the inputs and outputs of a model."""
    ports = [("input", port) for port in model.inputs] + [("output", port) for port in model.outputs]
    rows = [(side, port.any_name, port.type) for side, port in ports]
    say_table(Table(columns(": text; tensor: name; type: tensor"), rows))
