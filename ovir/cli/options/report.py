"""Reports that commands write."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence

import numpy as np

import ovir
from ovir.cli.terminal.output import print_message
from ovir.diagnostics.wording import escaped
from ovir.reports.page import Page
from ovir.reports.writing import write_report
from ovir.system.progress import stage


def write_html(path: str, make: Callable[[], Page], command_line: Sequence[str], seed: int | None = None) -> None:
    """Write the report that ``make`` returns to a file; ``seed`` is the one of random inputs, if any were drawn."""
    with stage("writing the report"):
        page = make()
        page.origin = _origin(command_line, seed)
        write_report(page, path, ovir.__version__)
    print_message(f"{escaped(path)}: report written")


def _origin(command_line: Sequence[str], seed: int | None) -> str:
    """Return the time, versions and command line of a report, which suffice to make it again."""
    import shlex
    from datetime import UTC, datetime

    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    versions = f"with Python {platform.python_version()} and NumPy {np.__version__}"
    drawn = "" if seed is None else f"; the seed of random inputs is {seed}"
    return f"{versions} on {now} by: {shlex.join(command_line)}{drawn}"
