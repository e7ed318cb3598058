"""What the fixture ``cli`` returns, which runs the command line in this process."""

import shlex
from collections.abc import Callable
from typing import NamedTuple

import pytest


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


Cli = Callable[..., Outcome]


def require_row(cli: Cli, monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    """Run ``NAME=value command => status => text && !text``: the last parts are printed, or not, where ``!`` is."""
    command, status, parts = row.replace(r"\n", "\n").split(" => ")
    words = shlex.split(command)
    while "=" in words[0]:
        monkeypatch.setenv(*words.pop(0).split("=", 1))
    done = cli(*words)
    assert done.status == int(status), done
    for part in parts.split(" && "):
        assert (part.removeprefix("!") in done.out + done.err) == (not part.startswith("!")), (part, done)
