"""The inputs that failed, in few lines for people."""

from __future__ import annotations

from collections.abc import Mapping

from ovir.cli.output import say
from ovir.diagnostics.wording import escaped

SHOWN = 20
"""The number of different faults, and of kinds of warnings, that are printed."""
_NAMED = 3
"""The number of inputs of one fault that are named."""


def print_failures(errors: Mapping[str, str], where: str, prefix: str = "failed") -> None:
    """Print the errors of inputs by their name, with one line for all inputs that have the same.

    ``where`` says what has the inputs that are not shown.
    """
    names: dict[str, list[str]] = {}
    for name, error in errors.items():
        names.setdefault(error.partition("\n")[0], []).append(escaped(name))
    for error, failed in list(names.items())[:SHOWN]:
        more = f" and {len(failed) - _NAMED:,} more" if len(failed) > _NAMED else ""
        say(f"{escaped(prefix)}: {', '.join(failed[:_NAMED])}{more}: {error}")
    shown = sum(min(len(failed), _NAMED) for failed in list(names.values())[:SHOWN])
    if shown < len(errors):
        say(f"{len(errors):,} inputs failed; {where} lists all of them")
