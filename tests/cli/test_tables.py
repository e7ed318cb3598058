"""Tables: what is printed for programs and files is what rich would print there."""

from __future__ import annotations

import pytest

from ovir.cli.output import _folded_table, plain_table, say_table
from ovir.cli.terminal import columns_of

HEADS = ["id", "name", "shape"]
TO_RIGHT = [True, False, False]
CELLS = [["1", "x", "f32[1,2]"], ["20", "größe 幅 e\u0301", ""], ["300", "", "i64[]"]]


def test_columns_are_as_wide_as_their_widest_cell(capsys: pytest.CaptureFixture[str]) -> None:
    say_table((">id", "name"), [(1, "relu"), (20, "a"), (3, "")], title="layers")
    assert capsys.readouterr().out == "layers\nid  name\n 1  relu\n20  a\n 3\n"


def test_a_table_without_rows_has_its_heads(capsys: pytest.CaptureFixture[str]) -> None:
    say_table((">id", "name"), [])
    assert capsys.readouterr().out == "id  name\n"


def test_a_plain_table_is_laid_out_as_on_a_wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    plain = [line.rstrip() for line in plain_table(HEADS, TO_RIGHT, CELLS)]
    assert plain == [line.rstrip() for line in _folded_table(HEADS, TO_RIGHT, CELLS)]


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("größe", 5), ("幅", 2), ("e\u0301", 1), ("", 0)])
def test_wide_characters_take_two_columns_and_combining_ones_none(text: str, columns: int) -> None:
    assert columns_of(text) == columns
