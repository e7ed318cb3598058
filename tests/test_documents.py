"""Documents name commands, options, codes and operations that exist.

What they link to and run is tested in test_documents_run.py."""

import argparse
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from benchmarks import figures
from ovir.cli.main import parser
from ovir.cli.operations import entries

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
DIAGNOSTICS = (DOCS / "diagnostics.md").read_text(encoding="utf-8")
IN_CI = (DOCS / "checking-in-ci.md").read_text(encoding="utf-8")


def test_every_extra_is_in_the_table() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    table = re.findall(r"^\| (`\w+`.*?) \|", (DOCS / "getting-started.md").read_text(encoding="utf-8"), re.MULTILINE)
    listed = {name for cell in table for name in re.findall(r"`(\w+)`", cell)}
    assert listed == set(project["optional-dependencies"])


OPERATIONS = {entry.name for entry in entries()}


def test_the_first_sentence_of_an_operation_makes_sense_alone() -> None:
    # The table of operations shows it without the base class.
    faults = []
    for entry in entries():
        assert entry.cls is not None
        bases = {base.__name__ for base in entry.cls.__mro__[1:]} - OPERATIONS
        if len(entry.doc.split()) < 5 or bases & set(re.findall(r"\w+", entry.doc)):
            faults.append(f"{entry.name}-{entry.opset}: {entry.doc}")
    assert not faults


# --------------------------------------------------------------------------- checking


def options_of_commands() -> set[str]:
    """Return the options of all commands."""
    commands = next(a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    return {o for command in commands.choices.values() for action in command._actions for o in action.option_strings}


@pytest.mark.parametrize("text", [IN_CI, DIAGNOSTICS], ids=["checking-in-ci", "diagnostics"])
def test_commands_are_those_of_the_parser(text: str) -> None:
    # `ovir check` in a sentence is not a command; one with arguments is.
    commands = re.findall(r"(?:^|[`$ ] ?)(ovir check [^`\n>]+)", text, re.MULTILINE)
    assert commands
    for command in commands:
        parser().parse_args(shlex.split(command)[1:])


@pytest.mark.parametrize("text", [IN_CI, DIAGNOSTICS], ids=["checking-in-ci", "diagnostics"])
def test_options_are_those_of_the_parser(text: str) -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text))
    assert len(named) >= 3
    assert named <= options_of_commands()


def test_codes_exist() -> None:
    from ovir.checks.rules import CODES

    named = set(re.findall(r"OVIR\d+", IN_CI + DIAGNOSTICS))
    assert named
    assert all(any(code.startswith(name) for code in CODES) for name in named)


def yaml_of(text: str) -> Any:
    yaml = pytest.importorskip("yaml", reason="PyYAML, of the extra `dev`, is not installed")
    return yaml.safe_load(text)


@pytest.mark.documents
def test_the_hook_for_pre_commit() -> None:
    (hook,) = yaml_of((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (hook["id"], hook["language"]) == ("ovir-check", "python")
    assert re.search(hook["files"], "models/a.xml")
    assert not re.search(hook["files"], "models/a.bin")
    parser().parse_args([*shlex.split(hook["entry"])[1:], "models/a.xml"])


@pytest.mark.documents
def test_the_examples_of_yaml() -> None:
    config, workflow = map(yaml_of, re.findall(r"```yaml\n(.*?)```", IN_CI, re.DOTALL))
    (hook,) = config["repos"][0]["hooks"]
    assert hook["id"] == "ovir-check"
    parser().parse_args(["check", *hook["args"], "models/a.xml"])
    (job,) = workflow["jobs"].values()
    runs = [step["run"] for step in job["steps"] if "run" in step]
    assert any(command.startswith("ovir check ") for command in runs)
    assert job["steps"][-1]["with"]["sarif_file"] in runs[-1]


@pytest.mark.documents
def test_hooks_and_ci_check_the_same() -> None:
    config = yaml_of((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    commands = {hook["entry"] for repository in config["repos"] for hook in repository["hooks"]}
    assert commands == {"ruff check", "ruff format --check", "mypy"}
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert all(f"run {command}" in ci for command in commands)


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.documents
def test_workflows_run_the_script_of_ci_on_every_system_and_interpreter() -> None:
    jobs = yaml_of((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    runs = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    assert runs == {"everything": [".ci/run"], "tests": [".ci/run tests"]}
    assert "steps=${1:-all}" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    matrix = jobs["tests"]["strategy"]["matrix"]
    assert {system.split("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
    assert matrix["python"] == versions == ["3.11", "3.12", "3.13", "3.14"]


@pytest.mark.documents
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_allowed_to_read_only(path: Path) -> None:
    workflow = yaml_of(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    assert all(job.keys() >= {"runs-on", "timeout-minutes", "steps"} for job in workflow["jobs"].values())


@pytest.mark.documents
def test_reports_of_faults_bring_what_is_needed() -> None:
    form = yaml_of((ROOT / ".github" / "ISSUE_TEMPLATE" / "fault.yml").read_text(encoding="utf-8"))
    needed = [part["attributes"]["label"] for part in form["body"] if part.get("validations", {}).get("required")]
    assert {"`ovir show --json model.xml`", "`ovir --version`"} <= set(needed)
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text)) <= options_of_commands() | {"--version"}


@pytest.mark.slow
def test_spelling_is_american() -> None:
    behavior = r"(?<![\".`])\bbehaviour(?![\"=:`])"  # not the attribute that openvino_tokenizers writes
    british = re.compile(
        behavior
        + r"|(col|hon|fav|neighb)our|(?<!aria-)labelled|modelling|travelled|\bcentred?\b|licence|catalogue|artefact|misspelt|\bspelt\b"
        r"|\b(normal|recogn|organ|initial|quant|optim|serial|summar|minim|maxim|emphas|general)is(e[sd]?|ing|ation)\b|analyse[sd]?\b",
        re.IGNORECASE,
    )
    texts = [
        path for folder in ("ovir", "docs", "examples", "tests", "benchmarks") for path in (ROOT / folder).rglob("*")
    ]
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in [*ROOT.glob("*.md"), *texts]
        if path.suffix in {".md", ".py", ".pyi", ".html", ".js", ".css"} and path != Path(__file__)
        for match in british.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not found


# --------------------------------------------------------------------------- figures


def test_figures_of_sentences_are_in_their_tables() -> None:
    known = figures.tables()
    wrong = [
        f"{path.name}: {found[0]}"
        for path in figures.pages()
        for found in figures.FIGURE.finditer(path.read_text(encoding="utf-8"))
        if found[1] != figures.figure(known, *found.groups()[1:])
    ]
    assert not wrong


NUMBER = r"(\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|hundred)"
UNITS = r"(times (as|the|faster|slower)|ms|µs|(micro|milli)?seconds|s|[KMG]i?B)"
MEASURED = re.compile(rf"\b{NUMBER} {UNITS}\b|(?<!Python )\b\d{{1,3}}\.\d+\b(?!<!--)")
"""Figures without a comment that names their table."""


@pytest.mark.parametrize("page", ["performance.md", "tokenizers.md", "many-inputs.md"])
def test_sentences_name_only_figures_of_tables(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    prose = re.sub(
        r"<!-- begin: .*?<!-- end: [^\n]*|```.*?```|`[^`]*`|^\|[^\n]*", "", text, flags=re.DOTALL | re.MULTILINE
    )
    assert [found[0] for found in MEASURED.finditer(prose)] == []
