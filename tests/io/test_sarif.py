"""SARIF logs fit the schema of SARIF 2.1.0, and say what the diagnostics say."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import ovir
from ovir.diagnostics.codes import AXIS, UNREADABLE, Severity, section
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.io.sarif import to_sarif

DATA = Path(__file__).parent.parent / "data"
SCHEMA = json.loads((DATA / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft4Validator(SCHEMA, format_checker=jsonschema.FormatChecker())
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def log_of(*diagnostics: Diagnostic) -> dict[str, Any]:
    """The log as it is written and read again, once it is known to fit the schema."""
    log: dict[str, Any] = json.loads(json.dumps(to_sarif(diagnostics, ovir.__version__)))
    VALIDATOR.validate(log)
    return log


def test_a_log_of_findings_of_every_kind() -> None:
    diagnostics = [d for path in sorted((DATA / "bad").glob("*.xml")) for d in ovir.check(path)]
    run = log_of(*diagnostics)["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert len(diagnostics) == len(run["results"]) > 90
    assert len({rule["id"] for rule in rules}) == len(rules)
    for found, result in zip(diagnostics, run["results"], strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == found.code
        assert result["level"] == LEVELS[found.severity]
        assert found.message in result["message"]["text"]
        (location,) = result["locations"]
        region = location["physicalLocation"].get("region", {})
        assert (region.get("startLine"), region.get("startColumn")) == (found.line, found.column)


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("models/a.xml", "models/a.xml"),
        ("a model #1.xml", "a%20model%20%231.xml"),
        ("modèle.xml", "mod%C3%A8le.xml"),
        ("/srv/a b.xml", "file:///srv/a%20b.xml"),
        ("sub\\a.xml", "sub/a.xml"),
    ],
)
def test_paths_are_uri_references(path: str, uri: str) -> None:
    log = log_of(diagnose(UNREADABLE, "cannot read the file", Place(path)))
    (location,) = log["runs"][0]["results"][0]["locations"]
    assert location["physicalLocation"] == {"artifactLocation": {"uri": uri}}


def test_a_finding_without_a_file_has_no_location() -> None:
    assert "locations" not in log_of(diagnose(AXIS, "axis 5"))["runs"][0]["results"][0]


def test_layer_and_hint_are_told() -> None:
    found = diagnose(AXIS, "axis 5", Place("a.xml", 7, "layer 3 'gather'", 3), hint="count from 0")
    result = log_of(found)["runs"][0]["results"][0]
    assert result["message"]["text"] == "layer 3 'gather': axis 5 (count from 0)"
    assert result["locations"][0]["logicalLocations"] == [{"fullyQualifiedName": "layer 3 'gather'", "kind": "module"}]


def test_rules_explain_themselves() -> None:
    (rule,) = log_of(diagnose(AXIS, "axis 5"))["runs"][0]["tool"]["driver"]["rules"]
    assert rule["help"]["markdown"] == section("OVIR305")
    assert rule["help"]["text"].startswith("`ovir explain OVIR305` shows this:")
    assert "docs/diagnostics.md" not in rule["help"]["text"]
