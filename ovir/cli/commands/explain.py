"""``ovir explain``: explain what the code of a diagnostic means and how to fix the fault.

Examples:
  ovir explain OVIR402
  ovir explain 402 403
  ovir explain 4          the codes of 4xx
  ovir explain            all codes
"""

from __future__ import annotations

import re
import sys

from ovir.cli.options.command import Command, Options
from ovir.cli.terminal.display import has_colors, lines_for_terminal, terminal_width
from ovir.cli.terminal.output import DONE, UNUSABLE, print_message, say, say_table
from ovir.core.tables import Table, columns
from ovir.diagnostics.codes import CODES, USAGE, Code, section
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.wording import did_you_mean


def add_to(command: Command) -> None:
    text = "a code, or the beginning of several; without any, all codes are listed"
    command.argument("codes", "CODE", text, nargs="*")


def run(options: Options) -> int:
    found = {text: _matching(text) for text in options.codes or [""]}
    for position, codes in enumerate(dict.fromkeys(filter(None, found.values()))):  # each once
        if position:
            say()
        if len(codes) == 1:
            _say_section(section(codes[0].id))
        else:
            rows = [(code.id, code.severity, code.meaning) for code in codes]
            say_table(Table(columns("code: tag; severity: tag; meaning: sentence"), rows))
    unknown = [text for text, codes in found.items() if not codes]
    for text in unknown:
        hint = did_you_mean(f"OVIR{_digits(text)}", CODES, "{}") or "`ovir explain` lists the codes"
        print_message(str(diagnose(USAGE, f"there is no code {text!r}", hint=hint)))
    return UNUSABLE if unknown else DONE


def _say_section(text: str) -> None:
    """Print a section: laid out on a terminal, as Markdown elsewhere."""
    colors = has_colors(sys.stdout)
    for line in lines_for_terminal(text, terminal_width(), colors=colors) if sys.stdout.isatty() else [text]:
        say(line)


def _matching(text: str) -> tuple[Code, ...]:
    """Return the codes that a text names or begins, such as ``OVIR402``, ``ovir402``, ``402`` or ``4``."""
    if f"OVIR{_digits(text)}" not in CODES:  # a code of a rule, or the beginning of several codes
        import ovir.checks.rules  # noqa: F401

    return tuple(code for code in CODES.values() if code.id.startswith(f"OVIR{_digits(text)}"))


def _digits(text: str) -> str:
    return re.sub("^OVIR", "", text.strip().upper())
