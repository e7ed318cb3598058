"""``-`` is standard input, for the commands that read one model."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.builder import gather_net
from support.command import Cli


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model whose .xml stands in standard input."""
    path = gather_net().write(tmp_path)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    return path


@pytest.mark.parametrize("command", ["show", "infer", "run", "check", "python"])
def test_command_reads_the_model_from_standard_input(command: str, path: Path, cli: Cli) -> None:
    weights = path.with_suffix(".bin")
    piped = cli(command, "-", "--weights", weights)
    assert piped.status == 0, piped.err
    assert piped.out == cli(command, path).out


def test_other_commands_that_write_read_it_as_well(path: Path, tmp_path: Path, cli: Cli) -> None:
    output = tmp_path / "part.xml"
    assert cli("extract", "-", "--no-weights", "-o", output, "--outputs", "product").status == 0
    assert "constants are in model.bin" in output.read_text(encoding="utf-8")


def test_diagnostics_name_it_and_weights_are_missed(path: Path, cli: Cli) -> None:
    found = cli("check", "-")
    assert found.status == 2
    assert found.out.splitlines()[0].startswith("-:")
    assert "there is no file of weights" in found.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "-", "other.xml"], "standard input (-) is checked alone"),
        (["check", "-", "--workers", "2"], "--workers needs a file, not standard input"),
        (["check", "-", "--untrusted"], "--untrusted needs a file, not standard input"),
        (["run", "-", "--untrusted"], "--untrusted reads the model in other processes"),
        (["run", "-", "--inputs", ".", "--output", "results"], "--inputs reads the model in other processes"),
    ],
)
def test_what_needs_a_file_says_so(arguments: list[str], message: str, path: Path, cli: Cli) -> None:
    found = cli(*arguments)
    assert found.status == 2
    assert message in found.err
