"""What the fixture ``cli`` returns, which runs the command line in this process."""

from collections.abc import Callable
from typing import NamedTuple


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


Cli = Callable[..., Outcome]
