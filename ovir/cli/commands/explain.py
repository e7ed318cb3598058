"""``ovir explain``: explain what the code of a diagnostic means and how to fix the fault.

Examples:
  ovir explain OVIR402
  ovir explain 402 403
  ovir explain 4          the codes of 4xx
  ovir explain            all codes
"""

from __future__ import annotations

import argparse
import re
import sys

from ovir.cli.options.arguments import raise_usage_error
from ovir.cli.terminal.display import has_colors, lines_for_terminal, terminal_width
from ovir.cli.terminal.output import say, say_table
from ovir.diagnostics.codes import CODES, Code, section
from ovir.diagnostics.wording import did_you_mean


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "codes",
        nargs="*",
        metavar="CODE",
        help="a code, or the beginning of several; without any, all codes are listed",
    )


def run(arguments: argparse.Namespace) -> int:
    chosen = [_matching(text) for text in arguments.codes or [""]]
    for position, codes in enumerate(chosen):
        if position:
            say()
        if len(codes) == 1:
            _say_section(section(codes[0].id))
        else:
            say_table(("code", "severity", "¶meaning"), [(code.id, code.severity, code.meaning) for code in codes])
    return 0


def _say_section(text: str) -> None:
    """Print a section: laid out on a terminal, as Markdown elsewhere."""
    colors = has_colors(sys.stdout)
    for line in lines_for_terminal(text, terminal_width(), colors=colors) if sys.stdout.isatty() else [text]:
        say(line)


def _matching(text: str) -> list[Code]:
    """Return the codes that a text names or begins, such as ``OVIR402``, ``ovir402``, ``402`` or ``4``."""
    digits = re.sub("^OVIR", "", text.strip().upper())
    if f"OVIR{digits}" not in CODES:  # a code of a rule, or the beginning of several codes
        import ovir.checks.rules  # noqa: F401

    found = [code for code in CODES.values() if code.id.startswith(f"OVIR{digits}")]
    if not found:
        hint = did_you_mean(f"OVIR{digits}", CODES, "{}") or "`ovir explain` lists the codes"
        raise_usage_error(f"there is no code {text!r}", hint)
    return found
