"""Running the command line in this process."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.builder import gather_net
from support.command import Cli, Outcome

from ovir.cli.main import main
from ovir.workers import executors

_new_pool = executors._new_pool


def _environment() -> dict[str, str]:
    """Return the variables that workers may depend on, without those that describe the terminal."""
    others = {"PYTEST_CURRENT_TEST", "TERM", "NO_COLOR", "COLUMNS"}
    return {name: value for name, value in os.environ.items() if name not in others}


@pytest.fixture(scope="session")
def _pools() -> Iterator[Callable[[Any], ProcessPoolExecutor]]:
    with ExitStack() as stack:
        yield cache(lambda _: stack.enter_context(_new_pool(2)))


@pytest.fixture
def shared_workers(_pools: Callable[[Any], ProcessPoolExecutor], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands use two processes that other tests with the same environment use, too."""
    monkeypatch.setattr(executors, "_new_pool", lambda size: _pools(frozenset(_environment().items())))
    monkeypatch.setattr(executors, "end_pool", lambda pool: None)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """``cli("run", path)``: status, stdout and stderr. Never a traceback."""

    def call(*arguments: object) -> Outcome:
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return Outcome(status, captured.out, captured.err)

    return call


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return gather_net().write(tmp_path)
