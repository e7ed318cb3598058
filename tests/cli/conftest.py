"""Running the command line in this process."""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from support.builder import gather_net
from support.command import Cli, Outcome

from ovir.cli.main import main
from ovir.workers import executors

_new_pool, _end_pool = executors._new_pool, executors.end_pool


def _environment() -> dict[str, str]:
    """Return what workers may depend on; a terminal is none of it."""
    others = {"PYTEST_CURRENT_TEST", "TERM", "NO_COLOR"}
    return {name: value for name, value in os.environ.items() if name not in others}


@pytest.fixture(scope="session")
def _shared_pool() -> Iterator[ProcessPoolExecutor]:
    with _new_pool(2) as pool:
        yield pool


@pytest.fixture
def shared_workers(_shared_pool: ProcessPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands use two processes that other tests use, too, unless the test changes the environment."""
    before = _environment()

    def new_pool(size: int) -> ProcessPoolExecutor:
        return _shared_pool if _environment() == before else _new_pool(size)

    def end_pool(pool: ProcessPoolExecutor) -> None:
        if pool is not _shared_pool:
            _end_pool(pool)

    monkeypatch.setattr(executors, "_new_pool", new_pool)
    monkeypatch.setattr(executors, "end_pool", end_pool)


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
