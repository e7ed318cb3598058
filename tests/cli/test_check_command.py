"""`ovir check`: workers, colors, untrusted files; transcripts/check.md shows the rest."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.builder import add_net, faulty_net

import ovir
from ovir.cli.commands import check

BAD = Path(__file__).parent.parent / "data" / "bad"


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    return faulty_net().write(tmp_path, "faulty")


# --------------------------------------------------------------------------- workers


@pytest.mark.slow
@pytest.mark.usefixtures("shared_workers")
def test_workers_report_the_same_in_the_same_order(cli: Any) -> None:
    files = sorted(BAD.glob("OVIR2*.xml"))
    alone = cli("check", *files, "--json")
    assert cli("check", *files, "--json", "--workers", 2) == alone
    assert cli("check", *files, "--json", "--workers", 1) == alone


@pytest.mark.slow
@pytest.mark.usefixtures("shared_workers")
def test_processes_join_in_if_it_takes_long(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    files = sorted(BAD.glob("OVIR2*.xml"))
    alone = cli("check", *files, "--json")
    handed: list[str] = []
    by_workers = check._check_by_workers

    def spy(one: Any, names: list[str], workers: dict[str, Any]) -> Any:
        handed.extend(names)
        return by_workers(one, names, workers)

    monkeypatch.setattr(check, "_check_by_workers", spy)
    assert cli("check", *files[:3], "--json").out
    assert handed == []
    monkeypatch.setattr(check, "_PATIENCE", 0.0)
    assert cli("check", *files, "--json") == alone
    assert handed == [str(file) for file in files[1:]]


@pytest.mark.slow
def test_dask_reports_the_same(cli: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs distributed, of the extra `dask`")
    shutil.copytree(BAD, tmp_path / "bad")
    monkeypatch.chdir(tmp_path)
    alone = cli("check", "bad", "--json")
    assert cli("check", "bad", "--json", "--dask", "local", "--workers", 2) == alone


# --------------------------------------------------------------------------- options


def test_profile(cli: Any, model: Path) -> None:
    lines = cli("check", model, "--profile").err.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["reading", "inference", "rules"]
    assert all(" ms " in line and line.endswith("%") for line in lines[:3])
    assert lines[3].startswith("share of other work than inference: ")


def test_color_is_for_terminals(cli: Any, faulty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    plain = cli("check", faulty).out
    assert "\x1b" not in plain
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    colored = cli("check", faulty).out
    assert "\x1b[1;31merror[OVIR203]\x1b[0m" in colored
    assert "\x1b[1;33mwarning[OVIR304]\x1b[0m" in colored
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert cli("check", faulty).out == plain
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert cli("check", faulty).out == plain


# --------------------------------------------------------------------------- from Python


def test_check_without_weights_opens_none(model: Path) -> None:
    assert ovir.check(model, need_weights=False) == ovir.check(model) == []
    model.with_suffix(".bin").write_bytes(b"version https://git-lfs.github.com/spec/v1")
    assert [d.code for d in ovir.check(model)] == ["OVIR505"]
    assert ovir.check(model, need_weights=False) == []
    assert [d.code for d in ovir.check(BAD / "OVIR502_past_end.xml", need_weights=False)] == []


# --------------------------------------------------------------------------- untrusted files


@pytest.mark.slow
def test_the_command(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with add_net().write(tmp_path).with_suffix(".bin").open("ab") as weights:
        weights.write(b"payload")
    (tmp_path / "ovir.toml").write_text('[check]\nignore = ["OVIR"]\n', encoding="utf-8")
    (tmp_path / "numpy.py").write_text("raise SystemExit\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    result = cli("check", "--untrusted", ".", "--json", "--sarif", "log.sarif")
    assert result.status == 1
    assert [found["code"] for found in json.loads(result.out)] == ["OVIR508"]
    (rule,) = json.loads(Path("log.sarif").read_text(encoding="utf-8"))["runs"][0]["tool"]["driver"]["rules"]
    assert rule["properties"]["security-severity"] == "5.0"
    assert cli("check", "--untrusted", ".", "--ignore", "OVIR508").status == 0
