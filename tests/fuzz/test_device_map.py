"""The map of a device: the cells of a search, how they are filled, and the comparison of two maps."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovir
from fuzz.faulty import compiler, run
from ovir.core.arrays import Array
from ovir.fuzzing.device_map import STATUSES, Cell, diff_maps, main_type
from ovir.fuzzing.typed import types_of

OPS = "^Floor-1|^Abs-1|^LogicalNot-1"


def quantized(op: Any, inputs: Sequence[Array]) -> list[Array]:
    """Round f16 to a few levels."""
    (result,) = run(op, inputs)
    return [np.round(result * 0.3).astype(np.float16) if result.dtype == np.float16 else result]


def device(path: str, inputs: Sequence[Array]) -> list[Array]:
    """Compute no f64 and no u16, and quantize the Floor of f16."""
    for port in (port for layer in ovir.read_model(path).layers for port in layer.outputs):
        if port.element_type.name == "f64":
            raise NotImplementedError("f64")
        if port.element_type.name == "u16":
            raise ValueError("u16 is wrong")
    return compiler({"Floor": quantized})(path, inputs)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("map") / "a"
    ovir.fuzz(device, map=3, ops=OPS, output=folder)
    return folder


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("map") / "b"
    ovir.fuzz(compiler({}), map=1, ops="^Floor-1|^Sqrt-1", types=["f16", "u16", "f32"], output=folder)
    return folder


def state(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "fuzz.json").read_text())


@pytest.mark.slow
def test_a_cell_says_what_the_device_does(folder: Path) -> None:
    cells = state(folder)["map"]
    assert set(cells) == {"Floor-1", "Abs-1", "LogicalNot-1"}
    assert cells["Floor-1"]["f32"] == {"status": "agrees", "models": {"agrees": 3}, "findings": []}
    assert cells["Floor-1"]["f16"]["status"] == "differs"
    assert cells["Floor-1"]["f16"]["findings"] == ["values: Floor-1"]
    assert cells["Abs-1"]["f16"]["status"] == "agrees"
    assert cells["Abs-1"]["u16"]["status"] == cells["Floor-1"]["u16"]["status"] == "refuses"
    assert cells["Abs-1"]["f64"] == {"status": "not supported", "models": {"not supported": 3}, "findings": []}


def test_an_element_type_that_an_operation_does_not_take_has_no_cell(folder: Path) -> None:
    assert set(state(folder)["map"]["LogicalNot-1"]) == {"boolean"}
    assert "string" not in state(folder)["map"]["Floor-1"]


@pytest.mark.parametrize(
    ("version", "taken", "others"),
    [
        (("MVN", 2), {"f32", "f16", "bf16"}, {"i32", "boolean", "string"}),
        (("Select", 1), {"f32", "i8", "boolean", "string"}, set()),
        (("BitwiseAnd", 13), {"i32", "u8", "boolean"}, {"f32"}),
        (("Eye", 9), {"i32", "i64"}, {"f32"}),
        (("TensorIterator", 1), {"f32", "f16"}, {"boolean", "string"}),
    ],
)
def test_types_that_an_operation_takes(version: tuple[str, int], taken: set[str], others: set[str]) -> None:
    found = {*types_of(*version)}
    assert (found >= taken, found & others) == (True, set())


@pytest.mark.parametrize(
    ("inputs", "outputs", "kind"),
    [
        (["f16", "i64"], ["f16"], "f16"),
        (["boolean", "f32", "f32"], ["f32"], "f32"),
        (["i64", "i64", "u8", "u8"], ["u8"], "u8"),
        (["i32", "i32"], ["boolean"], "i32"),
        (["f32"], ["i64"], "f32"),
        ([], ["f32"], "f32"),
        ([], [], "-"),
    ],
)
def test_the_element_type_of_a_layer(inputs: list[str], outputs: list[str], kind: str) -> None:
    assert main_type(inputs, outputs) == kind


def test_the_table_has_the_cells(folder: Path) -> None:
    with (folder / "map.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = {(row["operation"], row["element type"]): row for row in rows}
    for version, cells in state(folder)["map"].items():
        for name, cell in cells.items():
            row = found.pop((version, name))
            assert row["status"] == cell["status"]
            assert {status: int(row[status]) for status in STATUSES if row[status] != "0"} == cell["models"]
            assert row["findings"] == "; ".join(cell["findings"])
    assert not found


def test_cells_are_filled_evenly() -> None:
    found = ovir.fuzz(device, map=3, models=20, ops=OPS, types=["f32", "f16", "i32"])
    counts = [cell.counts.total() for row in found.map.values() for cell in row.values()]
    assert (sum(counts), max(counts)) == (20, 3) or max(counts) - min(counts) <= 1
    half = ovir.fuzz(device, map=3, models=4, ops=OPS, types=["f32", "f16", "i32"])
    assert {cell.counts.total() for row in half.map.values() for cell in row.values()} == {0, 1}


def test_a_finding_of_a_map_is_made_again_by_its_number(folder: Path) -> None:
    for finding in state(folder)["findings"]:
        again = ovir.fuzz(device, models=1, seed=finding["number"])
        assert [x.signature for x in again.findings] == [finding["signature"]]


def test_a_map_goes_on(tmp_path: Path) -> None:
    options: dict[str, Any] = {"ops": "^Floor-1", "types": ["f32", "i32"], "output": tmp_path}
    assert ovir.fuzz(compiler({}), map=1, **options).models == 2
    found = ovir.fuzz(compiler({}), map=2, resume=True, **options)
    assert {name: str(cell) for name, cell in found.map["Floor-1"].items()} == {
        "f32": "agrees (2)",
        "i32": "agrees (2)",
    }
    assert found.models == 4


def test_known_findings_are_no_reason_for_another_color(tmp_path: Path) -> None:
    (tmp_path / "known.txt").write_text("values: Floor-1\n")
    found = ovir.fuzz(device, map=1, ops="^Floor-1", types=["f16"], known=tmp_path / "known.txt")
    assert str(found.map["Floor-1"]["f16"]) == "known (1)"


@pytest.mark.slow
def test_any_models_fill_cells_too() -> None:
    found = ovir.fuzz(compiler({}), models=40)
    assert not found.findings
    statuses = {cell.status for row in found.map.values() for cell in row.values()}
    assert statuses <= {"agrees", "not supported", "not tried"}
    assert len(found.map) > 20
    assert not {*found.unreached} & {name for name, row in found.map.items() if any(x.counts for x in row.values())}
    assert not {"Parameter-1", "Result-1", "Const-1"} & {*found.map, *found.unreached}


@pytest.mark.parametrize(
    ("counts", "findings", "text"),
    [
        ({}, [], "not tried"),
        ({"agrees": 1200}, [], "agrees (1,200)"),
        ({"agrees": 5, "not supported": 1, "known": 2}, [], "agrees (5)"),
        ({"known": 2, "not supported": 1}, [], "known (2)"),
        ({"agrees": 5, "differs": 1}, ["a"], "differs (1)"),
        ({"differs": 5, "crashes": 1, "refuses": 1}, ["a"], "crashes (1)"),
    ],
)
def test_the_status_of_a_cell(counts: dict[str, int], findings: list[str], text: str) -> None:
    assert str(Cell(Counter(counts), findings)) == text


@pytest.mark.slow
def test_a_crash_is_in_the_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ovir.fuzzing.findings._MOST_RUNS", 3)
    (tmp_path / "compiler.py").write_text("import os\ndef run(path, inputs):\n    os.abort()\n")
    found = ovir.fuzz(f"python:{tmp_path / 'compiler.py'}:run", map=1, ops="^Floor-1", types=["f32"])
    assert str(found.map["Floor-1"]["f32"]) == "crashes (1)"


# --------------------------------------------------------------------------- two maps


def test_two_maps(folder: Path, good: Path) -> None:
    found = diff_maps(folder / "fuzz.json", good / "fuzz.json")
    assert [(x.change, x.operation, x.type, x.before.split()[0], x.after) for x in found.changes] == [
        ("better", "Floor-1", "f16", "differs", "agrees (1)"),
        ("better", "Floor-1", "u16", "refuses", "agrees (1)"),
    ]
    assert (found.equal, found.only[1]) == (1, 3)
    back = diff_maps(good / "fuzz.json", folder / "fuzz.json")
    assert ({x.change for x in back.changes}, back.only) == ({"worse"}, found.only[::-1])
    assert str(back).startswith("0 cells better, 2 worse, 1 alike; 3 tried only on A; ")
    first = ["worse", "Floor-1", "f16", "agrees (1)", back.changes[0].after, "values: Floor-1"]
    assert back.table(1).texts() == [first]
    assert str(found).startswith("2 cells better, 0 worse, 1 alike; ")
    assert not diff_maps(good / "fuzz.json", good / "fuzz.json")
