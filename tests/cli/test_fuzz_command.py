"""``ovir fuzz``: options, files and the exit status."""

import json
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
    first = cli("fuzz", *options, "-o", tmp_path / "a", "--write-known", tmp_path / "known.txt")
    assert (first.status, first.err.count("error")) == (1, 0)
    assert "values\n" in (tmp_path / "known.txt").read_text()
    assert (tmp_path / "a" / "fuzz.json").exists()
    assert cli("fuzz", *options, "-o", tmp_path / "b").status == 0


def test_types_that_numpy_lacks_are_not_supported(tmp_path: Path, cli: Cli) -> None:
    program = "import ml_dtypes, numpy\n\ndef run(*_):\n    return [numpy.zeros(1, ml_dtypes.bfloat16)]\n"
    (tmp_path / "compiler.py").write_text(program)
    options = ["--against", f"python:{tmp_path / 'compiler.py'}:run", "--models", 4, "--ops", "Floor-1|Sqrt-1|Abs-1"]
    done = cli("fuzz", *options, "--types", "f32", "-o", tmp_path / "a")
    assert (done.status, "0 findings" in done.out, "more operation" in done.out) == (2, True, False)


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
    assert set(found["exercised"]) == {"Floor-1", "Sqrt-1"}
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
