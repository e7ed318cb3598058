"""The option --html of the commands."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ovir.diagnostics import errors

if TYPE_CHECKING:
    from support.command import Cli

EXAMPLES = Path(__file__).parents[2] / "examples" / "xml"
DIGITS = EXAMPLES / "digits.xml"
BROKEN = EXAMPLES / "broken" / "axis_out_of_range.xml"
COMMANDS = {
    "check": (DIGITS,),
    "show": (DIGITS, "--memory"),
    "run": (DIGITS, "--profile"),
    "compare": (DIGITS, DIGITS),
    "diff": (DIGITS, DIGITS),
}

pytest.importorskip("jinja2", reason="jinja2, of the extra `html`, is not installed")
pytest.importorskip("plotly", reason="plotly, of the extra `html`, is not installed")
pytest.importorskip("itables", reason="itables, of the extra `html`, is not installed")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_report_is_written_beside_the_output(cli: Cli, tmp_path: Path, command: str) -> None:
    path = tmp_path / "report.html"
    plain = cli(command, *COMMANDS[command])
    found = cli(command, *COMMANDS[command], "--html", path)
    assert found.status == plain.status == 0
    assert len(found.out.splitlines()) == len(plain.out.splitlines())
    assert f"{path}: report written" in found.err
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert f'<span class="command">{command}</span>' in text
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_the_status_stays(cli: Cli, tmp_path: Path) -> None:
    assert cli("check", BROKEN, "--html", tmp_path / "check.html").status == 1
    assert cli("diff", DIGITS, EXAMPLES / "dynamic_shapes.xml", "--html", tmp_path / "diff.html").status == 1
    assert cli("check", tmp_path / "missing.xml", "--html", tmp_path / "missing.html").status == 2
    assert "OVIR101" in (tmp_path / "missing.html").read_text(encoding="utf-8")


def test_a_report_has_what_is_reported(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "check.html"
    cli("check", BROKEN, "--ignore", "OVIR305", "--html", path)
    report = path.read_text(encoding="utf-8")
    assert report.count("OVIR305") == 1
    assert "--ignore OVIR305" in report


def test_watched_values_are_in_the_report(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    assert cli("run", DIGITS, "--watch", "overflow:f16", "--tap", "relu1", "--html", path).status == 0
    text = path.read_text(encoding="utf-8")
    assert '<section id="taps"' in text
    assert '<section id="watched-values"' in text
    assert re.search(r"runs in [\d.,]+ ms", text)
    assert '<section id="repeated-runs"' not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_missing_packages(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setattr(errors.importlib.util, "find_spec", lambda name: None)
    found = cli(command, *COMMANDS[command], "--html", tmp_path / "report.html")
    assert (found.status, found.out) == (2, "")
    assert found.err == (
        'error[OVIR904] a report needs jinja2, plotly and itables, which cannot be imported\n  hint: pip install "ovir[html]"\n'
    )


def test_a_report_says_how_it_was_made(cli: Cli, tmp_path: Path) -> None:
    other, report = tmp_path / "other.xml", tmp_path / "it's.html"
    assert cli("edit", DIGITS, "--set-constant", "conv2/bias=9", "-o", other).status == 0
    assert cli("compare", DIGITS, other, "--html", report).status == 1
    text = html.unescape(report.read_text(encoding="utf-8"))
    assert re.search(r"with Python \d[\w.]+ and NumPy \d[\w.]+ on \d{4}-\d\d-\d\d \d\d:\d\d UTC by: ovir compare", text)
    assert "the seed of random inputs is 0" in text
    printed = cli("compare", DIGITS, other).out
    first = next(line for line in printed.splitlines() if line.startswith("first layer beyond tolerance"))
    assert f'<p class="conclusion">{first}</p>' in text


def test_the_report_of_a_check_counts_the_files_of_its_table(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    cli("check", DIGITS, BROKEN, tmp_path / "empty", "--html", tmp_path / "check.html")
    text = (tmp_path / "check.html").read_text()
    assert "3 files" in text
    assert "2 files" not in text
