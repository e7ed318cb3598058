"""The table of the benchmark of real sizes is written row by row."""

from __future__ import annotations

import pytest

pytest.importorskip("openvino", reason="the benchmarks compare with openvino")

from benchmarks.real_sizes import means, merged  # needs openvino

HEAD = ["| model | a | b | c | d | e |", "|---|---|---|---|---|---|"]


def row(name: str, ratio: float) -> str:
    return f"| {name} | {' | '.join([f'1.00 ({ratio:.2f})'] * 5)} |"


def test_new_row_leaves_the_others() -> None:
    table = [*HEAD, row("first", 2), row("second", 3), "| geometric mean of the ratios | 9 | 9 | 9 | 9 | 9 |"]
    lines = merged(table, {"second": ["7.00 (8.00)"] * 5, "third": ["1.00 (0.50)"] * 5}, ["third", "first", "second"])
    assert [line.split("|")[1].strip() for line in lines[2:-1]] == ["third", "first", "second"]
    assert row("first", 2) in lines
    assert lines[-1] == "| geometric mean of the ratios | 2.00 | 2.00 | 2.00 | 2.00 | 2.00 |"


def test_means_are_those_of_the_ratios() -> None:
    assert means([["5 (4.00)", "1.5 (0.25)"], ["9 (1.00)", "2.5 (1.00)"]]) == ["2.00", "0.50"]
