"""``ovir fuzz``: maps that are refused, times and the report; transcripts/fuzz.md shows the rest."""

import json
from pathlib import Path

import pytest
from support.command import Cli

from ovir.cli.commands.fuzz import duration


def cell(models: str) -> str:
    return f'{{"map": {{"A-1": {{"f32": {{"findings": [], "models": {models}}}}}}}, "description": "a"}}'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "not a map that ovir fuzz has written: it lacks fields, or has others"),
        ("{", "not a map that ovir fuzz has written: Expecting property name"),
        ('{"map": {"A-1": {"f32": {"models": {"fine": 1}, "findings": []}}}}', "there is no status 'fine'"),
        (cell('{"agrees": 0}'), "a number of models is not an integer above 0"),
        (cell('{"agrees": "1"}'), "a number of models is not an integer above 0"),
        (cell('{"agrees": 1}, "findings": null'), "it lacks fields, or has others"),
        (cell('{"agrees": 1}, "findings": [1]'), "a finding is not a text"),
        (None, "cannot read the map: No such file"),
    ],
)
def test_a_file_that_is_no_map(tmp_path: Path, cli: Cli, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "a.json").write_text(content)
    done = cli("diff", tmp_path / "a.json", tmp_path / "a.json")
    assert (done.status, message in done.err) == (2, True), done.err


def test_a_map_is_not_compared_with_a_model(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "a.json").write_text('{"map": {}, "description": "nothing"}')
    (tmp_path / "net.xml").write_text("<net/>")
    for pair in (("a.json", "net.xml"), ("net.xml", "a.json")):
        done = cli("diff", *(tmp_path / name for name in pair))
        assert (done.status, "net.xml: error[OVIR901] not a map that ovir fuzz has written" in done.err) == (2, True)


def test_maps_without_a_common_cell_are_not_equal(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "a.json").write_text('{"map": {}, "description": "nothing"}')
    assert cli("diff", tmp_path / "a.json", tmp_path / "a.json").status == 2


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200)])
def test_times(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.slow
def test_what_was_exercised_is_told(tmp_path: Path, cli: Cli) -> None:
    pytest.importorskip("jinja2", reason="reports need ovir[html]")
    (tmp_path / "compiler.py").write_text("def run(path, inputs):\n    return [array + 1 for array in inputs]\n")
    options = ["--against", f"python:{tmp_path / 'compiler.py'}:run", "--models", 12, "--ops", "Floor-1|Sqrt-1"]
    done = cli("fuzz", *options, "-o", tmp_path / "a", "--json")
    found = json.loads(done.out)
    assert found["unreached"] == []
    assert set(found["map"]) == {"Floor-1", "Sqrt-1"}
    assert "Floor-1" in (tmp_path / "a" / "index.html").read_text()
