"""What tests use that only POSIX systems have: elsewhere they are skipped, and say why."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

_LACKING = {
    r"\bmkfifo\b": "named pipes",
    r"\b(symlink_to|os\.symlink)\b": "links that every user may make",
    r"\b(chmod|geteuid|getuid)\b": "modes of files",
    r"\b(killpg|SIGKILL|SIGHUP|SIGTERM|SIGUSR1|SIGSTOP)\b": "signals that end processes",
    r"\b(os\.fork|import resource|import fcntl)\b": "fork, limits and locks of processes",
    r"[\"'](bash|sh|/bin/\w+|cat|head|true|false)[\"' ]": "the shell and its programs",
    r"[\"'/]/?(dev|proc|etc|tmp)/\w": "the files of /dev and /proc",
}
"""What a system may lack, by the text of a test that needs it."""


def lacking_elsewhere(source: str) -> str | None:
    """Return what a test with this text needs that only POSIX systems have; None if there is nothing."""
    return next((what for pattern, what in _LACKING.items() if re.search(pattern, source)), None)


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, and keep no bytecode, which the limit would cut."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        with mock.patch.object(sys, "dont_write_bytecode", True):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
