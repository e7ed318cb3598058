"""The options of commands that work on untrusted files within a budget."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from ovir.checks.untrusted.budget import Budget
from ovir.cli.options.arguments import AddOption, add_option, options_of, raise_usage_error


def add_budget(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add ``--untrusted``, which means ``meaning``, and its limits."""
    _add(options_of(parser, "checks"), meaning)


def _add(option: AddOption, meaning: str) -> None:
    option("--untrusted", meaning)
    option(
        "--timeout SECONDS",
        "with --untrusted: the time for one file (default: 30, and 15 more for each GB of weights)",
        float,
    )
    option("--memory MB", "with --untrusted: the memory for one file (default: 1074)", int)


def budget_of(arguments: argparse.Namespace) -> Budget | None:
    """Return the budget that the options give; None without ``--untrusted``, which the others need."""
    if arguments.untrusted:
        memory = Budget.memory if arguments.memory is None else arguments.memory * 10**6
        return Budget(arguments.timeout, memory, run=getattr(arguments, "with_run", False))
    for option, name in (("timeout", "timeout"), ("memory", "memory"), ("run", "with_run")):
        if (value := getattr(arguments, name, None)) is not None and value is not False:
            raise_usage_error(f"--{option} belongs to --untrusted")
    return None


def without_budget(command_line: Sequence[str]) -> list[str]:
    """Return the arguments of a command line, from the command on, without the options of ``add_budget``."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    _add(partial(add_option, parser), "")
    return parser.parse_known_args(command_line[1:])[1]
