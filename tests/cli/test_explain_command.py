"""`ovir explain`, and the texts of the codes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovir
from ovir.checks.rules import CODES
from ovir.cli.terminal.display import lines_for_terminal
from ovir.diagnostics import codes

ROOT = Path(__file__).parents[2]


def test_a_terminal_shows_no_markdown(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("ovir.cli.commands.explain.terminal_width", lambda: 60)
    monkeypatch.setenv("NO_COLOR", "1")
    lines = cli("explain", "OVIR402").out.splitlines()
    assert lines[0] == f"OVIR402: {CODES['OVIR402'].meaning}"
    assert not [line for line in lines if line.startswith(("#", "```"))]
    assert "      <dim>4</dim>" in lines
    assert all(len(line) <= 60 for line in lines if not line.startswith("    "))
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "xterm")
    assert cli("explain", "OVIR402").out.startswith("\033[1mOVIR402: ")


def test_lists_on_a_terminal() -> None:
    lines = list(
        lines_for_terminal("## Head\n\nText:\n\n- one two three\n- four\n\n```xml\n<a>\n```\n", 9, colors=False)
    )
    assert lines == ["Head", "", "Text:", "", "- one two", "  three", "- four", "", "    <a>", ""]


def test_the_beginning_of_codes_lists_them(cli: Any) -> None:
    lines = cli("explain", "80").out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [code for code in CODES if code.startswith("OVIR80")]
    assert len(cli("explain").out.splitlines()) == len(CODES) + 1


def test_known_codes_beside_unknown_ones(cli: Any) -> None:
    result = cli("explain", "402", "OVIR999999", "706", "shape")
    assert result.status == 2
    assert [line[3:10] for line in result.out.splitlines() if line.startswith("## ")] == ["OVIR402", "OVIR706"]
    errors = [line for line in result.err.splitlines() if line.startswith("error")]
    assert errors == [f"error[OVIR902] there is no code '{text}'" for text in ("OVIR999999", "shape")]


def test_sections_have_no_links_that_lead_nowhere() -> None:
    assert not [code for code in CODES if "](" in codes.section(code)]


def wrong_calls() -> list[ovir.OvirError]:
    """Return the errors of some wrong calls."""
    data, indices = np.zeros((3, 7, 5), "f4"), np.zeros((3, 10, 5), "i4")
    compiled = ovir.compile_model("examples/xml/gather_elements_3x7x5.xml")
    digits = ovir.read_model("examples/xml/digits.xml")
    calls = (
        lambda: compiled([data, indices + 7]),
        lambda: ovir.compile_model("examples/xml/swirl.xml"),
        lambda: compiled([np.zeros((4, 7, 5), "f4"), indices]),
        lambda: digits.layer("con2"),
    )
    errors = []
    for call in calls:
        with pytest.raises(ovir.OvirError) as caught:
            call()
        errors.append(caught.value)
    return errors


def test_sections_of_errors_at_run_time_show_real_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    errors = wrong_calls()
    assert [error.diagnostic.code for error in errors] == ["OVIR801", "OVIR802", "OVIR901", "OVIR902"]
    for error in errors:
        assert f"```text\n{error}\n```" in codes.section(error.diagnostic.code)
    compiled = ovir.compile_model("examples/xml/gather_1_small.xml")
    (found,) = compiled([np.zeros((2, 3, 2), "f4"), np.full((2, 2), -1)]).diagnostics
    assert f"```text\n{found}\n```" in codes.section("OVIR803")
