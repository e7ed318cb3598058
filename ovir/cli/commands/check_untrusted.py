"""``ovir check --untrusted``: the options of the profile for untrusted files, and the check by processes."""

from __future__ import annotations

import argparse
import os
from collections.abc import Generator, Sequence

from ovir.checks.options import CheckOptions
from ovir.checks.untrusted.budget import Budget
from ovir.cli.options.arguments import options_of, raise_usage_error
from ovir.diagnostics.diagnostic import Diagnostic


def add_untrusted(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    option = options_of(parser, "checks")
    option(
        "--untrusted",
        "for untrusted files: report everything that could harm a reader as an error; check each in a process",
    )
    option(
        "--timeout SECONDS",
        "with --untrusted: the time for one file (default: 30, and 15 more for each GB of weights)",
        float,
    )
    option("--memory MB", "with --untrusted: the memory for one file (default: 1074)", int)


def refuse_options(arguments: argparse.Namespace) -> None:
    """Raise an error for options that only go with ``--untrusted``, and for those that do not go with it."""
    for option in ("timeout", "memory"):
        if getattr(arguments, option) is not None and not arguments.untrusted:
            raise_usage_error(f"--{option} belongs to --untrusted")
    for option in ("dask", "node_data", "html"):
        if arguments.untrusted and getattr(arguments, option) is not None:
            raise_usage_error(f"--{option.replace('_', '-')} and --untrusted exclude each other")
    if arguments.untrusted and arguments.shape:
        raise_usage_error("--shape and --untrusted exclude each other")
    if arguments.untrusted and arguments.ask:
        raise_usage_error("--ask and --untrusted exclude each other: the device would compile the model")


def check_each_untrusted(
    names: Sequence[str], arguments: argparse.Namespace, options: CheckOptions
) -> Generator[tuple[list[Diagnostic], dict[str, float]]]:
    """Yield the diagnostics of each file in order, and the time that its check took."""
    from ovir.checks.untrusted.gate import check_each  # trusted files do not need it

    memory = Budget.memory if arguments.memory is None else arguments.memory * 10**6
    processes = arguments.workers or os.cpu_count() or 1
    for verdict in check_each(names, arguments.weights, options, Budget(arguments.timeout, memory), processes):
        yield verdict.diagnostics, {"inference": 0.0, "process": verdict.seconds}


def find_files_untrusted(given: Sequence[str]) -> tuple[list[tuple[str, bool]], list[Diagnostic]]:
    """Return every file to check, with whether it was found in a folder; and the errors of paths."""
    from ovir.checks.untrusted.gate import find_untrusted  # trusted files do not need it

    return find_untrusted(given)
