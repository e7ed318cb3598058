"""`ovir check`: configuration files, baselines, and forms of output."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.builder import faulty_net

import ovir
from ovir.cli.commands.check import annotation
from ovir.cli.options.check_config import Settings, find_settings
from ovir.diagnostics.codes import TOO_LARGE, UNREADABLE
from ovir.diagnostics.diagnostic import Place, diagnose


def write_faulty(folder: Path, name: str = "faulty") -> Path:
    folder.mkdir(exist_ok=True)
    return faulty_net().write(folder, name)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with models/faulty.xml and old/faulty.xml."""
    write_faulty(tmp_path / "models")
    write_faulty(tmp_path / "old")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configure(project: Path, text: str, name: str = "pyproject.toml") -> None:
    (project / name).write_text(text)


# --------------------------------------------------------------------------- configuration files


@pytest.mark.parametrize(
    ("name", "table"), [("pyproject.toml", "tool.ovir.check"), ("ovir.toml", "tool.ovir.check"), ("ovir.toml", "check")]
)
def test_a_file_sets_options(cli: Any, project: Path, name: str, table: str) -> None:
    configure(project, f'[{table}]\nignore = ["OVIR203"]\nfail-on = "warning"\n', name)
    result = cli("check", "models")
    assert result.status == 1
    assert "OVIR203" not in result.out
    assert cli("check", "models", "--fail-on", "error").status == 0


def test_what_is_ignored_may_have_a_reason_and_must_hide_something(cli: Any, project: Path) -> None:
    reasons = 'ignore = { OVIR203 = "the exporter is old", OVIR702 = "the exporter pads" }'
    configure(
        project, f'[tool.ovir.check]\n{reasons}\n[tool.ovir.check.per-path-ignores]\n"old/*" = ["304", "OVIR6"]\n'
    )
    result = cli("check", "models", "old")
    assert result.out.count("OVIR304") == 1
    assert "OVIR203" not in result.out
    said = [line for line in result.err.splitlines() if "hides nothing" in line]
    assert said == [
        "ignore OVIR702 hides nothing in these files; remove it",
        "per-path-ignores old/* OVIR6 hides nothing in these files; remove it",
    ]
    assert "OVIR6" not in cli("check", "models").err  # no checked file matches the pattern
    assert "hides" not in cli("check", "models", "old", "--quiet").err


def test_it_is_found_upwards(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(project, '[tool.ovir.check]\nselect = ["402", "OVIR1"]\nbaseline = "known.json"\nruntime = "2022.3"\n')
    configure(project / "models", "[tool.other]\ncheck = 1\n")
    monkeypatch.chdir(project / "models")
    found = find_settings(".")
    assert found.select == ("OVIR402", "OVIR1")
    assert found.runtime == (2022, 3)
    assert found.baseline == str(project / "known.json")
    configure(project / "models", "[check]\nno-weights = true\n", "ovir.toml")
    assert find_settings(".") == Settings(no_weights=True, folder=str(project / "models"))


def test_the_command_line_wins(cli: Any, project: Path) -> None:
    configure(project, '[tool.ovir.check]\nignore = ["OVIR203"]\n')
    assert "OVIR203" in cli("check", "models", "--ignore", "OVIR304").out
    assert "OVIR203" in cli("check", "models", "--no-config").out
    assert "OVIR203" not in cli("check", "models").out


def test_codes_are_ignored_by_path(cli: Any, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(project, '[tool.ovir.check.per-path-ignores]\n"old/*" = ["OVIR2"]\n"none.xml" = ["OVIR3"]\n')
    shown = cli("check", "models", "old").out
    assert [line.split(":")[0] for line in shown.splitlines() if "OVIR203" in line] == ["models/faulty.xml"]
    assert shown.count("OVIR304") == 2
    monkeypatch.chdir(project / "old")
    assert "OVIR203" not in cli("check", "faulty.xml").out
    assert "OVIR203" in cli("check", "../models/faulty.xml").out


def test_an_unreadable_file_is_reported_whatever_is_ignored(cli: Any, project: Path) -> None:
    configure(project, '[tool.ovir.check.per-path-ignores]\n"*" = ["OVIR1", "OVIR2", "OVIR3"]\n')
    (project / "old" / "empty.xml").touch()
    result = cli("check", "old")
    assert result.status == 2
    assert "OVIR101" in result.out


# --------------------------------------------------------------------------- baselines


def test_a_baseline_leaves_out_what_it_knows(cli: Any, project: Path) -> None:
    written = cli("check", "models", "--write-baseline", "known.json")
    assert (written.status, written.out, written.err) == (0, "", "known.json: 2 diagnostics written\n")
    assert cli("check", "models", "--baseline", "known.json") == (
        0, "", "1 file checked: nothing found; 2 known from the baseline\n",
    )  # fmt: skip
    assert cli("check", "models", "old", "--baseline", "known.json").status == 1


def test_lines_may_move_and_new_faults_count(cli: Any, project: Path) -> None:
    path = project / "models" / "faulty.xml"
    cli("check", "models", "--write-baseline", "known.json")
    path.write_text(path.read_text().replace("<layers>", "\n\n<layers>"))
    assert cli("check", "models", "--baseline", "known.json").out == ""
    path.write_text(path.read_text().replace('type="ReLU" version="opset1"', 'type="ReLU" version="opset99"'))
    result = cli("check", "models", "--baseline", "known.json")
    assert result.status == 1
    assert "OVIR202" in result.out
    assert "OVIR203" not in result.out


def test_a_baseline_works_from_other_folders(cli: Any, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("check", "models", "--write-baseline", "known.json")
    configure(project, '[tool.ovir.check]\nbaseline = "known.json"\n')
    monkeypatch.chdir(project / "models")
    assert cli("check", "faulty.xml").out == ""
    assert cli("check", str(project / "models")).out == ""


def test_mended_faults_are_counted(cli: Any, project: Path) -> None:
    cli("check", "models", "old", "--write-baseline", "known.json")
    path = project / "models" / "faulty.xml"
    path.write_text(path.read_text().replace(' unheard_of="1"', ""))
    result = cli("check", "models", "--baseline", "known.json")
    assert result.status == 0
    assert "known.json: 1 diagnostic no longer found; write the baseline again" in result.err


def test_a_fault_that_comes_twice_is_new_once(cli: Any, project: Path) -> None:
    cli("check", "models", "--write-baseline", "known.json")
    known = json.loads((project / "known.json").read_text())
    assert [set(entry) for entry in known["diagnostics"]] == [{"file", "code", "layer", "message"}] * 2
    known["diagnostics"][0]["count"] = 0
    (project / "known.json").write_text(json.dumps(known))
    assert len(cli("check", "models", "--baseline", "known.json", "--json").out.split('"code"')) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "known.json: error[OVIR902] cannot read the baseline: No such file"),
        ('{\n"version": 1,\n', "known.json:3: error[OVIR902] the baseline is not JSON: "),
        ("[]", "not a baseline of version 1"),
        ('{"version": 1, "diagnostics": [{"code": "OVIR402"}]}', "entry 0 of the baseline's 'diagnostics'"),
    ],
)
def test_a_baseline_that_is_none(cli: Any, project: Path, text: str | None, message: str) -> None:
    if text is not None:
        (project / "known.json").write_text(text)
    result = cli("check", "models", "--baseline", "known.json")
    assert result.status == 2
    assert message in result.err


def test_unreadable_files_are_never_known(cli: Any, project: Path) -> None:
    (project / "models" / "empty.xml").touch()
    written = cli("check", "models", "--write-baseline", "known.json")
    assert written.status == 2
    assert "OVIR101" in written.out
    assert "2 diagnostics written, but not the 1 diagnostic of OVIR101, which cannot be ignored" in written.err
    assert cli("check", "models", "--baseline", "known.json").status == 2


# --------------------------------------------------------------------------- forms


def test_a_summary_counts_by_code_and_by_file(cli: Any, project: Path) -> None:
    write_faulty(project / "models", "second")
    result = cli("check", "models", "old", "--summary")
    assert result.status == 1
    rows = [line.split() for line in result.out.splitlines()]
    assert rows[0] == ["code", "severity", "found", "files", "meaning"]
    assert rows[1][:4] == ["OVIR203", "error", "3", "3"]
    assert rows[2][:4] == ["OVIR304", "warning", "3", "3"]
    assert ["models/second.xml", "1", "1", "0"] in rows
    assert result.err == "3 files checked: 3 errors, 3 warnings\n"


def test_annotations_of_github(cli: Any, project: Path) -> None:
    lines = cli("check", "models", "--format", "github").out.splitlines()
    line = (project / "models" / "faulty.xml").read_text().splitlines().index(
        '<layer id="2" name="early" type="GatherElements" version="opset1">'
    ) + 1
    assert lines[0].startswith(f"::error file=models/faulty.xml,line={line},title=OVIR203::layer 2 'early' (Gather")
    assert lines[1].startswith("::warning file=models/faulty.xml,line=")


def test_annotations_are_escaped() -> None:
    found = diagnose(TOO_LARGE, "100%\nof it", Place("a,b:c.xml", 3), hint="buy more", column=7)
    assert (
        annotation(found) == "::warning file=a%2Cb%3Ac.xml,line=3,col=7,title=OVIR412::100%25%0Aof it%0Ahint: buy more"
    )
    noted = diagnose(UNREADABLE, "x", severity=ovir.Severity.INFO)
    assert annotation(noted) == "::notice title=OVIR101::x"
    hostile = ovir.Diagnostic("OVIR101", ovir.Severity.INFO, "x\x1b[2J", file="a\x1b[31m\u202e\n.xml")
    assert annotation(hostile) == r"::notice file=a\x1b[31m\u202e%0A.xml,title=OVIR101::x\x1b[2J"


def test_json_and_sarif_in_one_run(cli: Any, project: Path) -> None:
    result = cli("check", "models", "--json", "--sarif", "out.sarif")
    log = json.loads((project / "out.sarif").read_text())
    assert [d["code"] for d in json.loads(result.out)] == [d["ruleId"] for d in log["runs"][0]["results"]]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("pyproject.toml", '[tool.ovir.check]\nselect = ["OVIR998"]\n', ":2: error[OVIR902] select: OVIR998: no diagnostic has this code"),
        ("pyproject.toml", "[tool.ovir.check]\n\nselect = [1.5]\n", ":3: error[OVIR902] select: a list of codes such as"),
        ("pyproject.toml", '[tool.ovir.check]\nfail_on = "error"\n', ":2: error[OVIR902] fail_on: there is no such option; did you mean 'fail-on'?"),
        ("pyproject.toml", '[tool.other]\nselect = 1\n[tool.ovir.check]\nfail-on = "grave"\n', ":4: error[OVIR902] fail-on: one of error, warning, info"),
        ("pyproject.toml", '[tool.ovir.check]\nno-weights = "yes"\n', ":2: error[OVIR902] no-weights: true or false is expected, got 'yes'"),
        ("pyproject.toml", '[tool.ovir.check]\nruntime = "2022.9"\n', ":2: error[OVIR902] runtime: there is no OpenVINO release 2022.9"),
        ("pyproject.toml", '[tool.ovir.check]\nignore = { OVIR702 = "" }\n', ":2: error[OVIR902] ignore: a table of codes and reasons"),
        ("pyproject.toml", '[tool.ovir.check]\nignore = ["OVIR505"]\n', ":2: error[OVIR902] ignore: OVIR505: this cannot be ignored"),
        ("pyproject.toml", '[tool.ovir.check.per-path-ignores]\n"a" = ["x"]\n', ":1: error[OVIR902] per-path-ignores: x: no diagnostic has this code"),
        ("pyproject.toml", "[tool.ovir.check]\nbaseline = []\n", ":2: error[OVIR902] baseline: a text is expected, got []"),
        ("pyproject.toml", "[tool.ovir.check]\nselect = [\n", ":2: error[OVIR902] not valid TOML: "),
        ("ovir.toml", 'ignore = ["OVIR2"]', ":1: error[OVIR902] ignore: this option has no effect here; it belongs in the table [check]"),
        ("ovir.toml", "\n[chek]\nquiet = 1", ":2: error[OVIR902] chek: there is no such key or table; did you mean 'check'?"),
        ("ovir.toml", "check = 3", ":1: error[OVIR902] check: this is not a table"),
        ("ovir.toml", "[tool.ovr.check]", "ovr: there is no such key or table in [tool]; did you mean 'ovir'?"),
        ("ovir.toml", "[check]\n[tool.ovir.check]", "[check] and [tool.ovir.check] are both given"),
        ("pyproject.toml", '[tool.ovir]\nignore = ["OVIR2"]', ":2: error[OVIR902] ignore: this option has no effect here; it belongs in the table [tool.ovir.check]"),
        ("pyproject.toml", "[tool.ovir.chek]", "chek: there is no such key or table in [tool.ovir]; did you mean 'check'?"),
    ],
)  # fmt: skip
def test_wrong_files_are_refused(cli: Any, project: Path, name: str, text: str, message: str) -> None:
    configure(project, text, name)
    result = cli("check", "models")
    assert result.status == 2
    assert message in result.err
    assert result.out == ""


def test_what_is_not_requested_is_not_missed_in_the_baseline(cli: Any, project: Path) -> None:
    assert cli("check", "models", "--write-baseline", "known.json").status == 0
    for option in ("--select", "--ignore"):
        assert "no longer found" not in cli("check", "models", "--baseline", "known.json", option, "OVIR304").err
    assert "no longer found" not in cli("check", "models", "--baseline", "known.json").err


def test_the_summary_counts_the_files_of_each_severity(capsys: pytest.CaptureFixture[str]) -> None:
    from ovir.cli.commands.check import say_counts

    found = [
        diagnose(TOO_LARGE, "m", Place(f"{i}.xml"), severity=s)
        for i, s in enumerate([ovir.Severity.ERROR, ovir.Severity.WARNING, ovir.Severity.WARNING])
    ]
    say_counts(found)
    rows = [line.split()[:4] for line in capsys.readouterr().out.splitlines() if line.startswith("OVIR412")]
    assert rows == [["OVIR412", "warning", "2", "2"], ["OVIR412", "error", "1", "1"]]
