"""`ovir check`: diagnostics, formats, exit status."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.builder import Net, add_net, faulty_net, unary_net

import ovir
from ovir.cli.commands import check

BAD = Path(__file__).parent.parent / "data" / "bad"
WRONG_TYPE = "error[OVIR203]"


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    return faulty_net().write(tmp_path, "faulty")


def test_sarif(cli: Any, faulty: Path, tmp_path: Path) -> None:
    result = cli("check", faulty, "--sarif", tmp_path / "out.sarif")
    assert result.status == 1
    assert WRONG_TYPE in result.out
    log = json.loads((tmp_path / "out.sarif").read_text())
    run = log["runs"][0]
    assert log["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["OVIR203", "OVIR304"]
    first = run["results"][0]
    assert (first["ruleId"], first["level"]) == ("OVIR203", "error")
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == faulty.as_uri()
    assert place["region"]["startLine"] > 1
    assert json.loads(cli("check", faulty, "--sarif", "-").out) == log


# --------------------------------------------------------------------------- folders, and several processes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two models, one of them in a folder of its own, beside XML of another kind."""
    top = tmp_path / "models"
    (top / "sub").mkdir(parents=True)
    unary_net("ReLU").write(top, "right")
    unary_net("ReLU", name="relu", unheard_of="1").write(top / "sub", "odd")
    (top / "pom.xml").write_text("<project/>")
    return top


@pytest.mark.parametrize("version", [' version="11.0"', ' version="abc"', ' version="-1"', ""])
def test_a_model_of_no_version_is_not_passed_over(cli: Any, folder: Path, version: str) -> None:
    right = folder / "right.xml"
    text = right.read_text()
    assert ' version="11">' in text
    right.write_text(text.replace(' version="11">', f"{version}>"))
    result = cli("check", folder)
    assert result.status == 2
    assert "error[OVIR106]" in result.out
    assert result.err.startswith("2 files checked: 1 error")


def test_json_and_sarif_are_ascii(cli: Any, faulty: Path) -> None:
    path = faulty.rename(faulty.with_name("ünï.xml"))
    assert cli("check", path, "--json").out.isascii()
    result = cli("check", path, "--sarif", "-")
    assert result.out.isascii()
    assert "%C3%BCn%C3%AF.xml" in result.out


# --------------------------------------------------------------------------- workers


@pytest.mark.slow
def test_workers_report_the_same_in_the_same_order(cli: Any) -> None:
    files = sorted(BAD.glob("OVIR2*.xml"))
    alone = cli("check", *files, "--json")
    assert cli("check", *files, "--json", "--workers", 2) == alone
    assert cli("check", *files, "--json", "--workers", 1) == alone


@pytest.mark.slow
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


@pytest.fixture
def products(tmp_path: Path) -> Path:
    """Three products with weights of four rows, of two inputs."""
    net = Net()
    x, mask = net.parameter("x", "?,4"), net.parameter("mask", "?,4")
    weights = net.const([[1.0], [2.0], [3.0], [4.0]], "f32")
    for i in range(3):
        net.result(net.op("MatMul", net.op("Add", x, mask), weights, name=f"product {i}"))
    return net.write(tmp_path, "products")


def test_other_shapes_are_checked_as_commands_say(cli: Any, products: Path) -> None:
    assert cli("check", products).status == 0
    shapes = ["--shape", "x=2,5", "--shape", "mask=2,5"]
    refused = cli("run", products, *shapes)
    assert "(2 more errors)" in refused.err
    assert "hint: `ovir check` with the same --shape lists all errors" in refused.err
    result = cli("check", products, *shapes)
    assert result.status == 1
    assert [f"product {i}" in line for i, line in enumerate(result.out.splitlines()[:3])] == [True] * 3
    assert "3 errors" in result.err
    assert cli("check", products, "--shape", "x=2,4", "--shape", "mask=2,4").status == 0


def test_declared_shapes_are_not_compared_with_other_shapes(cli: Any, model: Path) -> None:
    assert cli("check", model, "--shape", "2,3").out == cli("check", model).out


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
