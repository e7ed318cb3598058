"""A figure goes into the documentation if two runs, half an hour apart, agree."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import agreement, common, figures


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """Time in minutes, which tests set."""
    found = SimpleNamespace(minutes=1000.0)
    monkeypatch.setattr(agreement, "FOLDER", tmp_path / "runs")
    monkeypatch.setattr(common, "version", lambda package: "1.0")  # openvino need not be installed
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    monkeypatch.setattr(agreement, "time", SimpleNamespace(time=lambda: 60 * found.minutes))
    return found


def refused(state: str, **figures: float) -> str:
    with pytest.raises(SystemExit) as raised:
        agreement.require_agreement("models", state, figures)
    assert str(raised.value).startswith("NOT WRITTEN: run it again in ")
    return str(raised.value)


def test_two_runs_that_agree_are_noted(clock: SimpleNamespace) -> None:
    assert "in 30 minutes or later, to confirm this run: first" in refused("first", a=1.0, b=5.0)
    clock.minutes += 10
    assert "in 20 minutes or later, to confirm this run: first" in refused("soon", a=1.0, b=5.0)
    clock.minutes += 20
    text, differing = agreement.require_agreement("models", "second.", {"a": 1.14, "b": 5.0})
    assert text == "second. Another run agrees within 15% in 2 of 2 figures: first"
    assert not differing
    assert "to confirm this run: third" in refused("third", a=1.0, b=5.0)  # the pair is used up


@pytest.mark.parametrize(
    ("later", "named"),
    [
        ({"a": 1.16, "b": 5.0}, "a: 1.0 before, 1.16 now"),
        ({"a": 1.0, "b": 4.3}, "b: 5.0 before, 4.3 now"),
        ({"a": 1.0}, "b: 5.0 before, nothing now"),
        ({"a": 1.0, "b": 5.0, "c": 2.0}, "c: nothing before, 2.0 now"),
        ({"a": float("inf"), "b": 5.0}, "a: 1.0 before, inf now"),
        ({"a": 0.0, "b": 5.0}, "a: 1.0 before, 0.0 now"),
    ],
)
def test_runs_that_differ_are_not_written(clock: SimpleNamespace, later: dict[str, float], named: str) -> None:
    refused("first", a=1.0, b=5.0)
    clock.minutes += 31
    assert refused("second", **later).splitlines()[1:] == [named]
    clock.minutes += 31
    text, differing = agreement.require_agreement("models", "third", later)
    assert text.endswith(f"in {len(later)} of {len(later)} figures: second")
    assert not differing


def test_single_figures_that_differ_are_left_out(clock: SimpleNamespace) -> None:
    first = {str(number): 1.0 for number in range(10)}
    refused("first", **first)
    clock.minutes += 31
    text, differing = agreement.require_agreement("models", "second.", first | {"7": 1.16})
    assert text == "second. Another run agrees within 15% in 9 of 10 figures; the others are left out: first"
    assert differing == {"7"}
    refused("first", **first)
    clock.minutes += 31
    assert len(refused("second", **(first | {"7": 1.16, "3": 0.8})).splitlines()) == 3


def test_a_table_is_written_by_the_second_run(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written: list[list[str]] = []
    monkeypatch.setattr(common, "write_table", lambda table, lines, page: written.append(lines))
    monkeypatch.setattr(sys, "argv", ["benchmark", "--write"])
    changes = iter((2.0, 2.1))

    def rows(given: object) -> common.Rows:
        change = next(changes)
        yield "row", change, 5 * change
        yield "restless row", change**5 / 10, 0.0
        yield from ((f"row {number}", float(number), 0.0) for number in range(3, 9))

    def run() -> None:
        common.report("", "t", ["name", "ms", "share"], rows, rounds=1, means=["ms"], keep=lambda row: row["ms"] < 7)

    with pytest.raises(SystemExit):
        run()
    assert not written
    clock.minutes += 30
    run()
    (lines,) = written
    assert lines[0].startswith("Measured at ")
    assert lines[0].count("Measured at commit") == 2
    assert "agrees within 15% in 17 of 18 figures; the others are left out: Measured" in lines[0]
    assert lines[4:6] == ["| row | 2.10 | 10.5 |", "| restless row | – | 0.00 |"]
    assert lines[-3:] == ["| row 6 | 6.00 | 0.00 |", "| geometric mean | 4.52 |  |", "| largest | 8.00 |  |"]


def test_a_table_has_the_rows_that_are_kept(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which rows are kept may differ from run to run: all rows are compared."""
    written: list[list[str]] = []
    monkeypatch.setattr(common, "write_table", lambda table, lines, page: written.append(lines))
    monkeypatch.setattr(sys, "argv", ["benchmark", "--write"])
    numbers = iter((1.9, 2.1))

    def run() -> None:
        rows = [("slow", 5.0), ("near", next(numbers))]
        common.report("", "t", ["name", "ms"], lambda given: iter(rows), rounds=1, keep=lambda row: row["ms"] > 2)

    with pytest.raises(SystemExit):
        run()
    clock.minutes += 30
    run()
    assert written[0][4:] == ["| slow | 5.00 |", "| near | 2.10 |"]


def test_a_table_without_figures_needs_one_run(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(common, "write_table", lambda table, lines, page: written.append(table))
    monkeypatch.setattr(sys, "argv", ["benchmark", "--write"])
    common.report("", "t", ["name", "runs"], lambda given: iter([("row", "yes")]), rounds=1)
    assert written == ["t"]


def test_kernels_for_another_processor_write_nothing(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")

    def run() -> None:
        common.report("", "t", ["name", "ms"], lambda given: iter([("row", 2.0)]), rounds=1)

    monkeypatch.setattr(sys, "argv", ["benchmark", "--write"])
    with pytest.raises(SystemExit, match="OPENBLAS_CORETYPE=Prescott is set"):
        run()
    assert not agreement.FOLDER.exists()
    monkeypatch.setattr(sys, "argv", ["benchmark"])
    run()
    assert "kernels of OpenBLAS for " in capsys.readouterr().out


def test_sentences_follow_their_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    text = "It takes {}<!-- t | {} | ms --> ms.\n"
    (tmp_path / "README.md").write_text(text.format("1.0", "largest of row"), "utf-8")
    page = tmp_path / "docs" / "page.md"
    page.write_text(text.format("7.0", "row 2") + "<!-- begin: t -->\n<!-- end: t -->\n", "utf-8")
    lines = ["Measured at noon.", "", "| name | ms |", "| --- | --- |", "| row 1 | 3.5 |", "| row 2 | – |"]
    with pytest.raises(SystemExit, match=r"lacks figures of sentences:\npage.md: t \| row 2 \| ms"):
        figures.write_table("t", lines, "page.md")
    assert (tmp_path / "README.md").read_text("utf-8").startswith("It takes 3.5<!--")
    assert page.read_text("utf-8").startswith("It takes 7.0<!--")
    assert "| row 2 | – |\n<!-- end: t -->" in page.read_text("utf-8")
