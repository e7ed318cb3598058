"""`ovir check`: findings, formats, exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builder import Net

WRONG_TYPE = "error[OVIR203]"


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """An operation that its opset does not have (an error) and an attribute that is not known (a warning)."""
    net = Net()
    x = net.parameter("x", "2,3")
    net.result(net.op("GatherElements", x, net.const([[0]], "i64"), name="early", axis=0))
    net.result(net.op("ReLU", x, name="relu", unheard_of="1"))
    return net.write(tmp_path, "faulty")


def test_nothing_wrong(cli: Any, model: Path) -> None:
    assert cli("check", model) == (0, "", "1 file checked: nothing found\n")


def test_findings_are_results_with_their_line(cli: Any, faulty: Path) -> None:
    result = cli("check", faulty)
    assert result.status == 1
    line = 1 + faulty.read_text().splitlines().index(
        '<layer id="2" name="early" type="GatherElements" version="opset1">'
    )
    assert f"{faulty}:{line}: {WRONG_TYPE} layer 2 'early' (GatherElements, opset1): " in result.out
    assert "warning[OVIR304] layer 4 'relu' (ReLU, opset1): " in result.out
    assert result.err == "1 file checked: 1 error, 1 warning\n"


def test_select_and_ignore(cli: Any, faulty: Path) -> None:
    assert cli("check", faulty, "--ignore", "OVIR203").status == 0
    assert cli("check", faulty, "--ignore", "OVIR203", "--fail-on", "warning").status == 1
    assert WRONG_TYPE not in cli("check", faulty, "--select", "OVIR304,OVIR4").out
    assert cli("check", faulty, "--ignore", "ovir2,ovir3").out == ""
    refused = cli("check", faulty, "--select", "OVIR998")
    assert refused.status == 2
    assert "--select OVIR998: no finding has this code" in refused.err


def test_an_unreadable_file_counts_whatever_is_selected(cli: Any, model: Path, tmp_path: Path) -> None:
    result = cli("check", model, tmp_path / "none.xml", "--select", "OVIR2")
    assert result.status == 2
    assert "none.xml: error[OVIR101]" in result.out


def test_json(cli: Any, faulty: Path) -> None:
    found = json.loads(cli("check", faulty, "--json").out)
    assert [(f["code"], f["severity"], f["layer_id"]) for f in found] == [
        ("OVIR203", "error", 2),
        ("OVIR304", "warning", 4),
    ]


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


def test_sarif_into_no_directory(cli: Any, faulty: Path, tmp_path: Path) -> None:
    result = cli("check", faulty, "--sarif", tmp_path / "nowhere" / "x.sarif")
    assert result.status == 2
    assert "there is no directory" in result.err
    assert result.out == ""


def test_weights_are_for_one_model(cli: Any, faulty: Path) -> None:
    assert cli("check", faulty, faulty, "--weights", "x.bin").status == 2
