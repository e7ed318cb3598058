"""``--node-data``: what commands write for Model Explorer."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command import Cli

import ovir
from ovir.view.overlays import GREEN, RED

XML = Path(__file__).parents[2] / "examples" / "xml"
BROKEN = XML / "broken"
DIGITS = XML / "digits.xml"


def results(path: Path) -> dict[str, Any]:
    """Return the values and colors of the nodes of the only graph."""
    (graph,) = json.loads(path.read_text()).values()
    return dict(graph["results"])


@pytest.mark.parametrize(
    ("name", "options", "status", "expected"),
    [
        ("axis_out_of_range", (), 1, {"gather": {"value": "error", "bgColor": RED}}),
        ("axis_out_of_range", ("--ignore", "OVIR3"), 0, {}),
        ("missing_bin", (), 2, {"axis": {"value": "error", "bgColor": RED}}),
        ("unquoted_attribute", (), 2, None),  # no model can be read
    ],
)
def test_check_writes_the_severities_that_it_reports(
    cli: Cli, tmp_path: Path, name: str, options: tuple[str, ...], status: int, expected: dict[str, Any] | None
) -> None:
    target = tmp_path / "data.json"
    outcome = cli("check", BROKEN / f"{name}.xml", "--node-data", target, *options)
    assert (outcome.status, "not written" in outcome.err, target.exists()) == (
        status,
        not target.exists(),
        expected is not None,
    )
    assert expected is None or results(target) == expected


def test_run_writes_magnitudes(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "data.json"
    assert cli("run", DIGITS, "--input", XML / "digits_input.npz", "--node-data", target).status == 0
    found = results(target)
    image = np.load(XML / "digits_input.npz")["image"]
    assert found["image"]["value"] == pytest.approx(np.abs(image).max(), rel=1e-4)
    assert found["probabilities"]["value"] <= 1
    assert found["pool1"]["value"] < 100  # nothing reads the second output of MaxPool, which has large indices


def test_run_writes_times(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "data.json"
    assert cli("run", DIGITS, "--profile", "--node-data", target).status == 0
    (graph,) = json.loads(target.read_text()).values()
    assert graph["name"] == "time (ms)"
    assert graph["results"]["conv1"]["value"] > 0


def test_compare_writes_errors(cli: Cli, tmp_path: Path) -> None:
    model = ovir.read_model(DIGITS)
    weights = model.layer("conv2/weights")
    model.set_constant(weights, weights.operator.data * np.float32(1.5))
    other, target = tmp_path / "other.xml", tmp_path / "data.json"
    ovir.save_model(model, other)
    assert cli("compare", DIGITS, other, "--node-data", target).status == 1
    found = results(target)
    assert found["conv1"] == {"value": 0.0, "bgColor": GREEN}
    assert found["conv2"]["bgColor"] == RED
