"""Help: it fits into 80 columns, has the options in groups, and the commands by what they are for."""

import re
import shlex
import subprocess
import sys

import pytest
from support.command import Cli

from ovir.cli.main import COMMANDS, JOBS, parser
from ovir.cli.options.command import GROUPS


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_fits_into_the_terminal(
    command: str | None, width: int, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = cli(*filter(None, [command]), "--help").out
    assert "examples:" in text
    assert "``" not in text  # of the docstrings that it is made from
    assert [line for line in text.splitlines() if len(line) > width] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_in_several_lines_are_commands(command: str, cli: Cli) -> None:
    text = cli(command, "--help").out.partition("examples:\n")[2]
    lines = re.findall(r"^  (ovir .*)$", text.replace("\\\n", ""), re.MULTILINE)
    assert lines
    for line in lines:
        words = shlex.split(re.split(r" {2,}(?![ -])| [|>] ", line)[0])
        parser([command]).parse_args(words[1:])


def test_commands_are_listed_by_what_they_are_for(cli: Cli) -> None:
    text = cli("--help").out
    found = re.findall(r"^  (?:  (\w+)(?= |$)|(\w.*):$)", text.partition("commands:\n")[2], re.MULTILINE)
    listed: dict[str, list[str]] = {}
    for name, job in found:
        if job:
            listed[job] = []
        else:
            listed[list(listed)[-1]].append(name)
    assert listed == {job: list(names) for job, names in JOBS.items()}


@pytest.mark.parametrize("command", COMMANDS)
def test_groups_stand_in_one_order_and_have_what_commands_share(command: str, cli: Cli) -> None:
    text = cli(command, "--help").out.partition("examples:\n")[0]
    titles = [title for title in re.findall(r"^(\w[\w ]*):$", text, re.MULTILINE) if title in GROUPS]
    assert titles == [title for title in GROUPS if title in titles]
    alone = re.search(r"^options:\n(.*?)(?:^\w|\Z)", text, re.MULTILINE | re.DOTALL)
    assert alone is not None
    assert not set(re.findall(r"^  (--[\w-]+)", alone[1], re.MULTILINE)) & {
        "--json",
        "--extension",
        "--input",
        "--html",
    }


def test_every_option_of_run_has_a_group(cli: Cli) -> None:
    options = cli("run", "--help").out.partition("\noptions:\n")[2].partition("\n\n")[0]
    assert re.findall(r"^  (-\S+)", options, re.MULTILINE) == ["-h,"]


def test_help_and_version_are_commands_as_well(cli: Cli) -> None:
    assert cli("help").out == cli("--help").out
    assert cli("help", "show").out == cli("show", "--help").out
    assert cli("version").out == cli("--version").out == cli("-V").out
    assert "there is no command 'shwo'" in cli("help", "shwo").err
    assert "COMMAND" not in cli("--help").out.partition("commands:")[2].partition("examples:")[0]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("show", "--help"), ("explain", "OVIR702")])
def test_a_python_without_docstrings_says_so(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-OO", "-m", "ovir", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "this Python runs with -OO, which removes the texts" in done.stderr
