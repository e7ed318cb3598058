"""``ovir fuzz``: options, files and the exit status."""

import json
import re
from pathlib import Path

import pytest
from support.command import Cli

from ovir.cli.commands.fuzz import duration

PROGRAM = """
def run(path, inputs):
    return [array + 1 for array in inputs]
"""


@pytest.mark.slow
def test_known_findings_are_not_reported(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "compiler.py").write_text(PROGRAM)
    options = ["--against", f"python:{tmp_path / 'compiler.py'}:run", "--models", 3, "--ops", "Floor-1"]
    options += ["--types", "f32", "--known", tmp_path / "known.txt"]
    (tmp_path / "known.txt").write_text("# reported\n  # upstream\n")
    first = cli("fuzz", *options, "-o", tmp_path / "a", "--write-known", tmp_path / "known.txt")
    assert (first.status, first.err.count("error")) == (1, 0)
    assert re.fullmatch("# reported\n  # upstream\n(?s:.*)values\n", (tmp_path / "known.txt").read_text())
    assert (tmp_path / "a" / "fuzz.json").exists()
    assert cli("fuzz", *options, "-o", tmp_path / "b").status == 0


def test_types_that_numpy_lacks_are_not_supported(tmp_path: Path, cli: Cli) -> None:
    program = "import ml_dtypes, numpy\n\ndef run(*_):\n    return [numpy.zeros(1, ml_dtypes.bfloat16)]\n"
    (tmp_path / "compiler.py").write_text(program)
    options = ["--against", f"python:{tmp_path / 'compiler.py'}:run", "--models", 4, "--ops", "Floor-1|Sqrt-1|Abs-1"]
    done = cli("fuzz", *options, "--types", "f32", "-o", tmp_path / "a")
    assert (done.status, "0 findings" in done.out, "more operation" in done.out) == (2, True, False)


@pytest.mark.slow
def test_two_maps_are_compared(tmp_path: Path, cli: Cli) -> None:
    program = """
import ovir

def run(path, inputs):
    return [array + (array.dtype == "TYPE") for array in ovir.compile_model(path)(list(inputs)).values()]
"""
    options: list[object] = ["--map", 1, "--ops", "^Floor-1", "--types", "f32,f16,i32"]
    for name, wrong in (("old", "float16"), ("new", "float32")):
        (tmp_path / f"{name}.py").write_text(program.replace("TYPE", wrong))
        cli("fuzz", "--against", f"python:{tmp_path / name}.py:run", *options, "-o", tmp_path / name)
    maps = [tmp_path / name / "fuzz.json" for name in ("old", "new")]
    done = cli("diff", *maps)
    assert done.status == 1
    assert "better  Floor-1    f16   differs (1)  agrees (1)" in done.out
    assert "worse   Floor-1    f32   agrees (1)   differs (1)" in done.out
    assert "1 cell better, 1 worse, 1 alike" in done.out
    assert "and 1 more cell; --all shows all" in cli("diff", *maps, "--limit", 1).out
    found = json.loads(cli("diff", *maps, "--json").out)
    assert [(x["change"], x["type"]) for x in found["changes"]] == [("worse", "f32"), ("better", "f16")]
    assert cli("diff", maps[0], maps[0]).status == 0
    assert "--rtol compares models, not the maps" in cli("diff", *maps, "--rtol", 1).err


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


def test_the_last_line_says_who_did_not_run_what(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "compiler.py").write_text("def run(*_):\n    raise NotImplementedError\n")
    options = ["--against", f"python:{tmp_path / 'compiler.py'}:run", "--models", 4, "--ops", "Floor-1"]
    done = cli("fuzz", *options, "--types", "f32", "-o", tmp_path / "a")
    *_, last, nothing = done.out.splitlines()
    assert "4 models of 1 operation version; the other side does not support 4; " in last
    assert nothing == "nothing could be compared"
    assert "cells of the map: not supported" in done.out
    few = ["--against", options[1], "--map", 1, "--models", 1, "--ops", "Abs-1|Floor-1", "-o", tmp_path / "few"]
    assert "1 model of 1 operation version; " in cli("fuzz", *few).out, "those without a model do not count"
    done = cli("fuzz", *options, "-o", tmp_path / "compiler.py")
    assert (done.status, "compiler.py is a file, but findings need a folder" in done.err) == (2, True)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200)])
def test_times(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.slow
def test_what_was_exercised_is_told(tmp_path: Path, cli: Cli) -> None:
    pytest.importorskip("jinja2", reason="reports need ovir[html]")
    (tmp_path / "compiler.py").write_text(PROGRAM)
    options = ["--against", f"python:{tmp_path / 'compiler.py'}:run", "--models", 12, "--ops", "Floor-1|Sqrt-1"]
    done = cli("fuzz", *options, "-o", tmp_path / "a", "--json")
    found = json.loads(done.out)
    assert found["unreached"] == []
    assert set(found["map"]) == {"Floor-1", "Sqrt-1"}
    assert "Floor-1" in (tmp_path / "a" / "index.html").read_text()


UNSTEADY = """
from itertools import count

import ovir

CALLS = count()


def run(path, inputs):
    return [x + (next(CALLS) % 3 == 0) for x in ovir.compile_model(path)(inputs).values()]
"""


@pytest.mark.slow
def test_an_unsteady_finding_says_in_how_many_runs_it_was_seen(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "device.py").write_text(UNSTEADY)
    against = f"python:{tmp_path / 'device.py'}:run"
    done = cli("fuzz", "--against", against, "--models", 2, "--ops", "Floor-1", "--types", "f32", "-o", tmp_path / "a")
    assert done.status == 1
    assert ", unsteady: in 3 of 9 runs)" in done.out
