"""The options of commands that work on untrusted files within a budget."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ovir.checks.untrusted.budget import Budget
from ovir.cli.options.command import Command, Group
from ovir.cli.options.values import positive, seconds


class BudgetOptions(Group):
    """``--untrusted``, which means ``meaning``, and its limits."""

    untrusted: bool
    timeout: float | None
    memory: int | None

    def __init__(self, meaning: str) -> None:
        self.meaning = meaning

    def add_to(self, command: Command) -> None:
        option = command.under("checks")
        option("--untrusted", self.meaning)
        option(
            "--timeout SECONDS",
            "with --untrusted: the time for one file (default: 30, and 15 more for each GB of weights)",
            seconds,
        )
        option("--memory MB", "with --untrusted: the memory for one file (default: 1074)", positive)

    def budget(self, *, run: bool = False) -> Budget | None:
        """Return the budget that the options give; None without ``--untrusted``, which the others need."""
        if self.untrusted:
            return Budget(self.timeout, Budget.memory if self.memory is None else self.memory * 10**6, run=run)
        self.refuse("belongs to --untrusted", "--timeout", "--memory", "--run")
        return None

    def without(self, command_line: Sequence[str]) -> list[str]:
        """Return the arguments of a command line, from the command on, without these options."""
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        self.add_to(Command(parser))
        return parser.parse_known_args(command_line[1:])[1]
