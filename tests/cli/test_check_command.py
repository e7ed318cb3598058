"""`ovir check`: diagnostics, formats, exit status."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir.cli.commands import check

BAD = Path(__file__).parent.parent / "data" / "bad"
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
    assert "--select OVIR998: no diagnostic has this code" in refused.err


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


@pytest.mark.parametrize("suffix", [".xml", ".bin", ".XML"])
def test_sarif_does_not_overwrite_a_model(cli: Any, faulty: Path, suffix: str) -> None:
    """``--sarif *.xml`` takes the first file for the log."""
    other = faulty.with_name(f"other{suffix}")
    other.write_bytes(b"whole")
    result = cli("check", "--sarif", other, faulty)
    assert result.status == 2
    assert "a model would be overwritten" in result.err
    assert other.read_bytes() == b"whole"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(
            (f"--select {code}", f"--select {code}: no diagnostic has this code")
            for code in ("OVIR9", "OVIR801", "OVIR999")
        ),
        ("--weights {faulty}.bin --no-weights", "--weights and --no-weights exclude each other"),
        ("--sarif {folder}/nowhere/x.sarif", "there is no directory"),
        ("{faulty}.xml --weights x.bin", "--weights"),
        ("{folder} --weights x.bin", "--weights"),
    ],
)
def test_wrong_usage(cli: Any, faulty: Path, arguments: str, message: str) -> None:
    words = arguments.format(faulty=faulty.with_suffix(""), folder=faulty.parent).split()
    result = cli("check", faulty, *words)
    assert (result.status, result.out) == (2, "")
    assert message in result.err


# --------------------------------------------------------------------------- folders, and several processes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two models, one of them in a folder of its own, beside XML of another kind."""
    top = tmp_path / "models"
    (top / "sub").mkdir(parents=True)
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2")))
    net.write(top, "right")
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2"), name="relu", unheard_of="1"))
    net.write(top / "sub", "odd")
    (top / "pom.xml").write_text("<project/>")
    return top


def test_a_folder_is_searched_for_models(cli: Any, folder: Path) -> None:
    result = cli("check", folder)
    assert result.status == 0
    assert result.out.startswith(f"{folder / 'sub' / 'odd.xml'}:")
    assert result.out.count("\n") == 1
    assert result.err == "2 files checked: 1 warning\n"


def test_a_file_given_by_name_must_be_a_model(cli: Any, folder: Path) -> None:
    result = cli("check", folder / "pom.xml")
    assert result.status == 2
    assert "error[OVIR105]" in result.out


def test_a_folder_and_a_file(cli: Any, folder: Path, faulty: Path) -> None:
    result = cli("check", folder, faulty)
    assert result.status == 1
    assert result.err == "3 files checked: 1 error, 2 warnings\n"


def test_a_folder_without_models(cli: Any, tmp_path: Path, faulty: Path) -> None:
    """It is reported, and the rest is checked all the same."""
    (tmp_path / "empty").mkdir()
    result = cli("check", tmp_path / "empty", faulty)
    assert result.status == 2
    assert f"{tmp_path / 'empty'}: error[OVIR101] the folder holds no .xml file" in result.out
    assert WRONG_TYPE in result.out


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


def test_nothing_checked_is_no_success(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "pom.xml").write_text("<project/>")
    result = cli("check", tmp_path)
    assert result.status == 2
    assert f"{tmp_path}: error[OVIR101] no OpenVINO IR was found: 1 .xml file with another root" in result.out
    assert result.err == "0 files checked: 1 error\n"


def test_a_file_given_twice_is_checked_once(cli: Any, faulty: Path) -> None:
    (faulty.parent / "link.xml").symlink_to(faulty)
    assert cli("check", faulty, faulty.parent, faulty).err.startswith("1 file checked")


def test_json_and_sarif_are_ascii(cli: Any, faulty: Path) -> None:
    path = faulty.rename(faulty.with_name("ünï.xml"))
    assert cli("check", path, "--json").out.isascii()
    result = cli("check", path, "--sarif", "-")
    assert result.out.isascii()
    assert "%C3%BCn%C3%AF.xml" in result.out


@pytest.mark.parametrize(
    ("release", "message"),
    [
        ("2019.1", "OpenVINO 2019.1 reads neither IR version 10 nor 11; the first release that does is 2020.1"),
        ("1999.1", "OpenVINO 1999.1 reads neither IR version 10 nor 11; the first release that does is 2020.1"),
        ("2022.9", "there is no OpenVINO release 2022.9: that year has releases 2022.1 to 2022.3"),
        ("2027.0", "OpenVINO 2027.0 is newer than the releases that ovir supports, up to 2026.4"),
        ("22.3", "'22.3' is not an OpenVINO release, such as '2022.3'"),
    ],
)
def test_an_unknown_release(cli: Any, faulty: Path, release: str, message: str) -> None:
    refused = cli("check", faulty, "--runtime", release)
    assert refused.status == 2
    assert message in refused.err
    with pytest.raises(ovir.InputError, match="'next' is not an OpenVINO release"):
        ovir.check(faulty, runtime="next")


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


def test_no_weights(cli: Any, model: Path) -> None:
    model.with_suffix(".bin").unlink()
    result = cli("check", model)
    assert result.status == 2
    assert "error[OVIR501]" in result.out
    assert cli("check", model, "--no-weights") == (0, "", "1 file checked: nothing found\n")


def test_fail_on(cli: Any, folder: Path) -> None:
    unused = Net()
    unused.parameter("unused", "2")
    unused.result(unused.parameter("x", "2"))
    noted, warned, right = unused.write(folder, "noted"), folder / "sub" / "odd.xml", folder / "right.xml"
    expected = {
        (noted, "error"): 0, (noted, "warning"): 0, (noted, "info"): 1,
        (warned, "error"): 0, (warned, "warning"): 1, (warned, "info"): 1,
        (right, "info"): 0,
    }  # fmt: skip
    assert {key: cli("check", key[0], "--fail-on", key[1]).status for key in expected} == expected
    assert "1 file checked: 1 info" in cli("check", noted).err


def test_runtime(cli: Any) -> None:
    path = BAD / "OVIR701_newer_than_runtime.xml"
    old = cli("check", path, "--runtime", "2022.3")
    assert "error[OVIR701]" in old.out
    assert old.status == 1
    assert "BitwiseNot is declared in opset13; OpenVINO 2022.3 supports opset1 to opset10" in old.out
    first = cli("check", path, "--runtime", "2020.1")
    assert "supports opset1\n" in first.out
    assert cli("check", path, "--runtime", "2023.2.0").out == cli("check", path).out == ""


def test_element_types_and_ir_versions_of_a_release(cli: Any) -> None:
    typed, version_11 = BAD / "OVIR701_element_type.xml", BAD / "OVIR701_ir_version.xml"
    result = cli("check", typed, "--runtime", "2024.0")
    assert result.status == 1
    assert "OpenVINO 2024.0 does not support the element type f8e8m0; the same applies to 1 more layer\n" in result.out
    assert "hint: OpenVINO supports f8e8m0 from release 2024.3" in result.out
    assert cli("check", typed, "--runtime", "2024.3").status == 0
    assert "OpenVINO 2021.4 does not read IR version 11" in cli("check", version_11, "--runtime", "2021.4").out
    assert cli("check", version_11, "--runtime", "2022.1").status == 0


def test_profile(cli: Any, model: Path) -> None:
    lines = cli("check", model, "--profile").err.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["reading", "inference", "rules"]
    assert all(" ms " in line and line.endswith("%") for line in lines[:3])
    assert lines[3].startswith("outside inference: ")


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


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (["1,4"], "say for which input the shape [1,4] is; the model's inputs are 'x', 'mask'"),
        (["none=1,4"], "the model has no input 'none'"),
        (["x=1,q"], "--shape x=1,q: 'q' is not a dimension"),
        (["x=1,4", "x=2,4"], "--shape x=2,4: expected one shape for each input, as NAME=2,4"),
    ],
)
def test_shapes_that_mean_nothing_are_refused(cli: Any, products: Path, shapes: list[str], expected: str) -> None:
    result = cli("check", products, *(part for text in shapes for part in ("--shape", text)))
    assert result.status == 2
    assert expected in result.err


# --------------------------------------------------------------------------- untrusted files


def written(folder: Path, rest: bytes = b"") -> Path:
    net = Net()
    net.result(net.op("Add", net.parameter("data", "3"), net.const(np.float32([1, 2, 3]))))
    (folder / "model.xml").write_text(net.xml(), encoding="utf-8")
    (folder / "model.bin").write_bytes(bytes(net.blob) + rest)
    return folder / "model.xml"


# --------------------------------------------------------------------------- the command


def test_the_command(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, b"payload")
    (tmp_path / "ovir.toml").write_text('[check]\nignore = ["OVIR"]\n', encoding="utf-8")
    (tmp_path / "numpy.py").write_text("raise SystemExit\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    result = cli("check", "--untrusted", ".", "--json", "--sarif", "log.sarif")
    assert result.status == 1
    assert [found["code"] for found in json.loads(result.out)] == ["OVIR508"]
    (rule,) = json.loads(Path("log.sarif").read_text(encoding="utf-8"))["runs"][0]["tool"]["driver"]["rules"]
    assert rule["properties"]["security-severity"] == "5.0"
    assert cli("check", "--untrusted", ".", "--ignore", "OVIR508").status == 0


@pytest.mark.parametrize("options", [["--timeout", "5"], ["--untrusted", "--timeout", "0"], ["--memory", "100"]])
def test_wrong_options(options: list[str], tmp_path: Path, cli: Any) -> None:
    assert cli("check", written(tmp_path), *options).status == 2
