"""`ovir diff`: what it prints, its JSON, its exit status."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net


def net(count: int = 3, kind: str = "ReLU", bias: float = 0.5, name: str = "relu", shape: str = "2,3") -> Net:
    net = Net()
    end = net.parameter("x", shape)
    for i in range(count):
        end = net.op("Add", end, net.const(np.float32([i, bias, 0]), name=f"bias{i}"), name=f"add{i}")
    net.result(net.op(kind, end, name=name), name="out")
    return net


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return net().write(tmp_path, "before")


def test_equal(cli: Any, before: Path) -> None:
    assert cli("diff", before, before) == (0, "the models are equal\n", "")


def test_different(cli: Any, before: Path, tmp_path: Path) -> None:
    after = net(count=4, kind="Exp", bias=0.25).write(tmp_path, "after")
    result = cli("diff", before, after)
    assert result.status == 1
    assert result.out.splitlines() == [
        "the models differ: 2 layers added, 1 layer replaced, 3 layers changed",
        "note: in all, parameters 9 -> 12, weights 36 bytes -> 48 bytes",
        "",
        "changed  Const 'bias0': constant: 1 of 3 values differ, by at most 0.25",
        "changed  Const 'bias1': constant: 1 of 3 values differ, by at most 0.25",
        "changed  Const 'bias2': constant: 1 of 3 values differ, by at most 0.25",
        "added    Const 'bias3' read by 'add3'",
        "added    Add 'add3' between 'add2' and 'relu'",
        "replaced Exp 'relu': type: ReLU -> Exp",
    ]


def test_several_changes_of_one_layer(cli: Any, before: Path, tmp_path: Path) -> None:
    after = net(kind="Exp", name="exp").write(tmp_path, "after")
    assert cli("diff", before, after).out.splitlines()[2:] == [
        "replaced Exp 'exp'",
        "         type: ReLU -> Exp",
        "         name: relu -> exp",
        "         tensor names 0: [relu] -> [exp]",
    ]


def test_ignored_names(cli: Any, before: Path, tmp_path: Path) -> None:
    after = net(name="other").write(tmp_path, "after")
    assert cli("diff", before, after).status == 1
    assert cli("diff", before, after, "--ignore-names").status == 0


def test_automatic_names_are_counted_after_the_real_differences(cli: Any, tmp_path: Path) -> None:
    def written(first: int, bias: float) -> Path:
        net = Net()
        end = net.parameter("x", "2,3")
        for i in range(30):
            bias_name = "bias" if i == 25 else f"Constant_{first + i}"
            end = net.op("Add", end, net.const(np.float32([i + bias * (i == 25)]), name=bias_name), name=f"add{i}")
        net.result(end, name="out")
        return net.write(tmp_path, f"model{first}")

    before, after = written(100, 0.0), written(31000, 0.5)
    assert cli("diff", before, after).out.splitlines() == [
        "the models differ: 1 layer changed, 29 layers renumbered",
        "",
        "changed  Const 'bias': constant: 1 of 1 values differ, by at most 0.5",
        "",
        "renumbered: only the automatic names of 29 layers differ, as in Constant_100 -> Constant_31000; --all lists them",
    ]
    lines = cli("diff", before, after, "--all").out.splitlines()
    assert lines[2].startswith("changed  Const 'bias'")
    assert len([line for line in lines if line.startswith("renumbered Const 'Constant_")]) == 29
    assert json.loads(cli("diff", before, after, "--json").out)["counts"]["renumbered"] == 29


def test_tolerances(cli: Any, before: Path, tmp_path: Path) -> None:
    after = net(bias=0.5001).write(tmp_path, "after")
    assert cli("diff", before, after).status == 1
    assert cli("diff", before, after, "--rtol", "1e-3").status == 0
    assert cli("diff", before, after, "--atol", "1e-3").status == 0
    assert cli("diff", before, after, "--atol", "1e-5").status == 1


def test_consequences(cli: Any, before: Path, tmp_path: Path) -> None:
    after = net(shape="5,3").write(tmp_path, "after")
    assert cli("diff", before, after, "--limit", "2").out.splitlines() == [
        "the models differ: 1 layer changed, 4 outputs of another type as a consequence",
        "",
        "changed  Parameter 'x': attribute shape: [2,3] -> [5,3]",
        "",
        "affected Add 'add0': f32[2,3] -> f32[5,3]",
        "affected Add 'add1': f32[2,3] -> f32[5,3]",
        "and 2 more outputs; --all shows all",
    ]


def test_limits(cli: Any, tmp_path: Path) -> None:
    paths = [net(count=30, bias=bias).write(tmp_path, f"m{bias}") for bias in (1.0, 2.0)]
    lines = cli("diff", *paths).out.splitlines()
    assert len(lines) == 2 + 20 + 1
    assert lines[-1] == "and 10 more layers; --all shows all"
    assert len(cli("diff", *paths, "--all").out.splitlines()) == 2 + 30
    assert len(cli("diff", *paths, "--limit", "1").out.splitlines()) == 2 + 1 + 1


def test_moved_subgraphs_are_shown_together(cli: Any, tmp_path: Path) -> None:
    def write(order: list[str], name: str) -> Path:
        model = Net()
        end = model.parameter("x", "2,3")
        for kind in order:
            end = model.op(kind, end, name=kind)
        model.result(end)
        return model.write(tmp_path, name)

    first = write(["Exp", "Abs", "Sin", "Cos", "Tan", "Floor", "Sqrt", "Erf"], "a")
    second = write(["Exp", "Cos", "Tan", "Floor", "Sqrt", "Abs", "Sin", "Erf"], "b")
    assert cli("diff", first, second).out.splitlines() == [
        "the models differ: 2 layers moved",
        "",
        "moved    2 layers, from 'Abs' on",
        "moved    Abs 'Abs': input 0: Exp -> Sqrt",
    ]


def test_json(cli: Any, before: Path, tmp_path: Path) -> None:
    after = net(bias=0.25).write(tmp_path, "after")
    result = cli("diff", before, after, "--json")
    document = json.loads(result.out)
    assert result.status == 1
    assert list(document) == ["equal", "a", "b", "counts", "model", "layers", "affected", "notes", "costs"]
    assert document["costs"]["a"] == document["costs"]["b"] == {"parameters": 9, "weight_bytes": 36, "macs": 0}
    assert document["b"] == {"path": str(after), "name": "test"}
    assert document["layers"][0]["changes"] == [
        {"what": "constant", "name": "", "old": None, "new": None, "elements": 3, "different": 1, "largest": 0.25}
    ]
    equal = cli("diff", before, before, "--json")
    assert (equal.status, json.loads(equal.out)["equal"]) == (0, True)


def test_weights_elsewhere(cli: Any, before: Path, tmp_path: Path) -> None:
    after = net(bias=0.25).write(tmp_path, "after")
    assert cli("diff", before, after, "--weights-b", before.with_suffix(".bin")).status == 0


def test_bodies_and_names_are_escaped(cli: Any, before: Path, tmp_path: Path) -> None:
    after = net(name="a&#10;b").write(tmp_path, "after")
    assert "name: relu -> a\\nb" in cli("diff", before, after).out
