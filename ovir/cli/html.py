"""The option ``--html``, which writes the result of a command as a report for a browser."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

import ovir
from ovir.cli.arguments import check_target
from ovir.cli.output import print_message
from ovir.cli.outputs import output_file
from ovir.core.progress import stage
from ovir.diagnostics.wording import escaped

if TYPE_CHECKING:
    from ovir.reports.page import Page


def add_html(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--html", type=output_file, metavar="FILE.html", help="also write a report for a browser, in one file"
    )


def check_html(arguments: argparse.Namespace) -> None:
    """Raise an error if the report cannot be written, before the work that produces it."""
    if arguments.html is not None:
        from ovir.reports.writing import require_report

        check_target("--html", arguments.html, ".html")
        require_report(arguments.html)


def write_html(arguments: argparse.Namespace, make: Callable[[], Page]) -> None:
    """Write the report that ``make`` returns, if the option asks for it."""
    if arguments.html is not None:
        from ovir.reports.writing import write_report

        with stage("writing the report"):
            write_report(make(), arguments.html, ovir.__version__)
        print_message(f"{escaped(arguments.html)}: report written")
