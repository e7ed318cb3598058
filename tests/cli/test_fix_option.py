"""`ovir check --fix`: what is written, what is printed, and which status follows."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

BAD = Path(__file__).parent.parent / "data" / "bad"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a stale.xml, a dead.xml and a wrong.xml, of which the last one cannot be fixed."""
    for name, new in (
        ("OVIR402_stated_shape", "stale"),
        ("OVIR212_dead_layer", "dead"),
        ("OVIR401_inference", "wrong"),
    ):
        for path in BAD.glob(f"{name}.*"):
            shutil.copy(path, tmp_path / f"{new}{path.suffix}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_several_files_say_what_is_fixed_and_what_is_left(cli: Any, folder: Path) -> None:
    before = content(folder)
    result = cli("check", "stale.xml", "dead.xml", "wrong.xml", "--fix")
    assert result.status == 1
    assert "stale.xml:39: fixed[OVIR402] layer 2 'product' (MatMul, opset1): port 2 declares f32[2,5]\n" in result.err
    assert "dead.xml: 1 diagnostic fixed; proven: the results agree" in result.err
    assert "3 files checked: 1 error\n" in result.err
    assert result.out.startswith("wrong.xml:")
    changed = {name for name, data in content(folder).items() if data != before[name]}
    assert changed == {"stale.xml", "dead.xml"}
    assert cli("check", "stale.xml", "dead.xml").status == 0


def test_a_diff_changes_no_file_and_no_status(cli: Any, folder: Path) -> None:
    before = content(folder)
    result = cli("check", "stale.xml", "--fix", "--diff")
    assert result.status == 1
    assert "-          <dim>4</dim>\n+          <dim>5</dim>\n" in result.out
    assert "error[OVIR402]" in result.out
    assert "1 error; 1 fixable with --fix" in result.err
    assert content(folder) == before


def test_elsewhere(cli: Any, folder: Path) -> None:
    before = content(folder)
    result = cli("check", "stale.xml", "--fix", "-o", "new.xml", "--json")
    assert result.status == 0
    assert json.loads(result.out) == []
    assert "new.xml: 1 diagnostic fixed" in result.err
    after = content(folder)
    assert {name: after.get(name) for name in before} == before
    assert after["new.xml"] != before["stale.xml"]
    assert after.get("new.bin") == before.get("stale.bin")
    assert cli("check", "new.xml", "--fix", "-o", "again.xml").status == 0  # nothing to fix, but a place to write to
    assert (folder / "again.xml").read_bytes() == after["new.xml"]
    assert cli("check", "stale.xml", "dead.xml", "--fix", "-o", "new.xml").status == 2


def test_json_says_what_is_fixable(cli: Any, folder: Path) -> None:
    found = json.loads(cli("check", "stale.xml", "wrong.xml", "--json").out)
    assert [(entry["code"], entry["fixable"]) for entry in found] == [("OVIR402", True), ("OVIR401", False)]


def test_what_is_ignored_is_not_fixed(cli: Any, folder: Path) -> None:
    before = content(folder)
    assert cli("check", "stale.xml", "--fix", "--ignore", "OVIR402").status == 0
    assert content(folder) == before


def test_without_weights_or_proof(cli: Any, folder: Path) -> None:
    elsewhere = cli("check", "dead.xml", "--fix", "-o", "one.xml", "--no-weights")
    assert "not proven: the weights are not read" in elsewhere.err
    assert "not proven: the proof was left out" in cli("check", "dead.xml", "--fix", "--no-verify").err


def test_a_file_that_cannot_be_read_stays(cli: Any, folder: Path) -> None:
    Path("broken.xml").write_text("<net")
    assert cli("check", "broken.xml", "--fix").status == 2
    assert cli("check", "broken.xml", "--fix", "-o", "new.xml").status == 2
    assert not Path("new.xml").exists()
