"""`ovir check`: configuration files and baselines that are refused, and annotations; transcripts/check.md shows the rest."""

from pathlib import Path
from typing import Any

import pytest
from support.builder import faulty_net

import ovir
from ovir.cli.commands.check import annotation
from ovir.cli.options.check_config import Settings, find_settings
from ovir.diagnostics.codes import TOO_LARGE, UNREADABLE
from ovir.diagnostics.diagnostic import Place, diagnose


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with models/faulty.xml."""
    (tmp_path / "models").mkdir()
    faulty_net().write(tmp_path / "models", "faulty")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configure(project: Path, text: str, name: str = "pyproject.toml") -> None:
    (project / name).write_text(text)


# --------------------------------------------------------------------------- configuration files


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


# --------------------------------------------------------------------------- baselines


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


def test_annotations_are_escaped() -> None:
    found = diagnose(TOO_LARGE, "100%\nof it", Place("a,b:c.xml", 3), hint="buy more", column=7)
    assert (
        annotation(found) == "::warning file=a%2Cb%3Ac.xml,line=3,col=7,title=OVIR412::100%25%0Aof it%0Ahint: buy more"
    )
    noted = diagnose(UNREADABLE, "x", severity=ovir.Severity.INFO)
    assert annotation(noted) == "::notice title=OVIR101::x"
    hostile = ovir.Diagnostic("OVIR101", ovir.Severity.INFO, "x\x1b[2J", file="a\x1b[31m\u202e\n.xml")
    assert annotation(hostile) == r"::notice file=a\x1b[31m\u202e%0A.xml,title=OVIR101::x\x1b[2J"


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


def test_the_summary_counts_the_files_of_each_severity(capsys: pytest.CaptureFixture[str]) -> None:
    from ovir.cli.commands.check import say_counts

    found = [
        diagnose(TOO_LARGE, "m", Place(f"{i}.xml"), severity=s)
        for i, s in enumerate([ovir.Severity.ERROR, ovir.Severity.WARNING, ovir.Severity.WARNING])
    ]
    say_counts(found)
    rows = [line.split()[:4] for line in capsys.readouterr().out.splitlines() if line.startswith("OVIR412")]
    assert rows == [["OVIR412", "warning", "2", "2"], ["OVIR412", "error", "1", "1"]]
