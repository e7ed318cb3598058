"""`ovir infer`, `ovir show`, `ovir ops`."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net, unary_net

from ovir.cli.operations import entries, tokenizer_entries


def test_infer_lists_layers_and_says_why_they_are_dynamic(cli: Any, tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x", "?,3,?")
    found = net.op("NonZero", net.op("ReLU", x, name="relu"), name="found", opset=3, output_type="i64")
    net.result(net.op("Transpose", found, net.const([1, 0], "i64"), name="turned"))
    result = cli("infer", net.write(tmp_path))
    assert result.status == 0
    rows = {parts[1]: " ".join(parts[2:]) for line in result.out.splitlines()[1:-2] if (parts := line.split())}
    assert rows["x"] == "Parameter f32[?,3,?] [0,2] left open by the model"
    assert rows["relu"] == "ReLU f32[?,3,?] [0,2] is x[0,2]"
    assert rows["found"] == "NonZero i64[3,?] [1] depends on data"
    assert rows["turned"] == "Transpose i64[?,3] [0] is found[1], depends on data"
    assert result.out.endswith("6 layers, 4 of them with dynamic shapes\n")


def test_infer_with_another_shape_as_json(cli: Any, model: Path) -> None:
    document = json.loads(cli("infer", model, "--shape", "data=2..5,3", "--json").out)
    layers = {layer["name"]: layer for layer in document["layers"]}
    assert layers["data"]["outputs"][0]["shape"] == "[2..5,3]"
    assert layers["data"]["outputs"][0]["dynamic"] == [
        {"axis": 0, "size": "2..5", "cause": "input", "origin": "data[0]", "from": ["data[0]"]}
    ]
    assert layers["rows"]["outputs"] == [{"name": "rows", "shape": "[4,3]", "type": "f32", "names": ["rows"]}]
    assert [port["name"] for port in document["outputs"]] == ["probabilities", "rows"]
    assert document["diagnostics"] == []


def test_declared_shapes_are_not_held_against_those_asked_for(cli: Any, tmp_path: Path) -> None:
    path = unary_net("ReLU", "2,3", name="relu").write(tmp_path)
    declared = r'<port id="1"\1><dim>2</dim><dim>3</dim></port>'
    path.write_text(re.sub('<port id="1"([^>]* names="relu")/>', declared, path.read_text()))
    for command in ("infer", "show", "run"):
        result = cli(command, path, "--shape", "4,3")
        assert result.status == 0
        assert "OVIR402" not in result.err
    path.write_text(path.read_text().replace("<dim>3</dim>", "<dim>9</dim>"))
    assert "declares shape [2,9], but inference gives [2,3]" in cli("infer", path, "--shape", "4,3").err
    result = cli("infer", path)
    assert (result.status, "warning[OVIR402] layer 1 'relu' (ReLU, opset1): output port 1 " in result.err) == (0, True)


def unknown_net() -> Net:
    """Two operations that no opset has, twice and once."""
    net = Net()
    x = net.op("Foo", net.op("Foo", net.parameter("x", "2,3"), name="foo"), name="foo2")
    net.result(net.op("Bar", x, name="bar"))
    return net


def test_infer_marks_what_is_only_declared(cli: Any, tmp_path: Path) -> None:
    path = unknown_net().write(tmp_path)
    out = cli("infer", path).out
    assert "dynamic[...] (only declared)" in next(line for line in out.splitlines() if " foo2 " in line)
    assert "(only declared)" not in next(line for line in out.splitlines() if " x " in line)
    assert out.endswith(", 3 whose shapes are only declared, because ovir cannot infer them\n")
    layers = {layer["name"]: layer["inferred"] for layer in json.loads(cli("infer", path, "--json").out)["layers"]}
    assert (layers["x"], layers["foo"], layers["bar"]) == (True, False, False)


def test_all_that_cannot_be_run_is_listed(cli: Any, tmp_path: Path) -> None:
    path = unknown_net().write(tmp_path)
    listed = "cannot be run yet: Foo of opset1 (2 layers), Bar of opset1 (1)\n"
    assert listed in cli("show", path).out
    assert json.loads(cli("show", path, "--json").out)["not_run"] == {"Foo of opset1": 2, "Bar of opset1": 1}
    result = cli("run", path)
    assert result.status == 1
    assert "error[OVIR802]" in result.err
    assert listed in result.err


def test_show_as_json(cli: Any, tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x", "?,3,8,8")
    weights = net.const(np.zeros((4, 3, 3, 3), np.float16))
    window = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    y = net.op("Convolution", x, net.op("Convert", weights, destination_type="f32"), name="conv", **window)
    net.result(y)
    path = net.write(tmp_path)
    document = json.loads(cli("show", path, "--json").out)
    assert (document["macs"], document["counted_at"]) == (4 * 64 * 27, {"x": "[1,3,8,8]"})
    assert document["parameters"] == {"f16": {"tensors": 1, "elements": 108, "bytes": 216}}
    assert document["inputs"][0]["shape"] == "[?,3,8,8]"
    assert document["operations"]["Convolution"] == 1
    assert document["costs"] == [
        {
            "id": 3,
            "name": "conv",
            "type": "Convolution",
            "runs": 1,
            "macs": 6912,
            "macs_least": 6912,
            "operations": 0,
            "parameters": 108,
            "weight_bytes": 216,
            "bits_per_parameter": 16.0,
            "bytes_read": 768 + 216,
            "bytes_written": 1024,
            "shared": {},
            "intensity": 2 * 6912 / (768 + 216 + 1024),
        }
    ]
    document = json.loads(cli("show", path, "--json", "--shape", "2,3,8,8").out)
    assert (document["macs"], document["macs_unknown"], document["counted_at"]) == (2 * 4 * 64 * 27, [], {})


def three_products(folder: Path) -> Path:
    net, width = Net(), 64
    x = net.parameter("x", "?,64")
    for name, count in (("block.0/small", 8), ("block.1/large", 512), ("head", 4)):
        x = net.op("MatMul", x, net.const(np.zeros((width, count), np.float32)), name=name)
        width = count
    net.result(net.op("ReLU", x, name="last"))
    return net.write(folder)


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        (
            "--layers",
            [
                "block.1/large MatMul 4.1 k 61.5%",
                "head MatMul 2.05 k",
                "block.0/small MatMul 512",
                "last ReLU - ",
                "all 4 layers 6.66 k 100.0%",
            ],
        ),
        ("--layers --sort name", ["block.0/small", "block.1/large", "head", "last", "all 4 layers"]),
        ("--layers --sort activations --limit 1", ["block.1/large", "3 more", "all 4 layers"]),
        ("--filter block", ["block.1/large", "block.0/small", "chosen", "all 4 layers"]),
        ("--by type", ["MatMul 3", "ReLU 1 -", "all 4 layers"]),
        ("--by prefix", ["block.1 1", "* 2 2.05", "block.0 1", "all 4 layers"]),
    ],
)
def test_costs(cli: Any, tmp_path: Path, options: str, rows: list[str]) -> None:
    head, *shown = cli("show", three_products(tmp_path), "--shape", "1,64", *options.split()).out.splitlines()
    assert max(map(len, (head, *shown))) <= 80
    assert len(shown) == len(rows)
    for line, row in zip(shown, rows, strict=True):
        assert " ".join(line.split()).startswith(row)


def test_costs_of_a_dynamic_model_name_the_sizes(cli: Any, tmp_path: Path) -> None:
    shown = cli("show", three_products(tmp_path), "--layers").out
    assert shown.startswith("counted at x=[1,64]; --shape gives other sizes\n")


def test_costs_as_csv(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "costs.csv"
    cli("show", three_products(tmp_path), "--csv", path, "--sort", "params", "--limit", "1")
    head, *rows = path.read_text().splitlines()
    assert head.startswith("id,name,type,runs,macs,")
    assert [row.split(",")[1] for row in rows] == ["block.1/large", "head", "block.0/small", "last"]


def test_chosen_layers_of_infer(cli: Any, tmp_path: Path) -> None:
    def chosen(*options: str) -> list[str]:
        document = json.loads(cli("infer", path, "--no-constants", "--json", *options).out)
        return [layer["name"] for layer in document["layers"]]

    path = three_products(tmp_path)
    assert chosen() == ["x", "block.0/small", "block.1/large", "head", "last", "result8"]
    assert chosen("--filter", "block") == ["block.0/small", "block.1/large"]
    assert chosen("--dynamic") == chosen()
    assert chosen("--dynamic", "--shape", "1,64") == []


def test_a_reason_that_repeats_is_written_once(cli: Any, tmp_path: Path) -> None:
    lines = cli("infer", three_products(tmp_path), "--no-constants").out.splitlines()
    assert [line.split("]", 1)[1].strip() for line in lines[1:6]] == [
        "[0] left open by the model",
        "[0] is x[0]",
        *["as layer 2"] * 3,
    ]


def test_ops(cli: Any) -> None:
    listed = json.loads(cli("ops", "--json").out)
    assert [(e["type"], e["version"]) for e in listed] == [
        (e.name, e.version) for e in (*entries(), *tokenizer_entries())
    ]
    gather = {e["version"]: e for e in listed if e["type"] == "Gather"}
    assert list(gather) == ["opset1", "opset7", "opset8"]
    assert gather["opset8"] == {
        "type": "Gather", "version": "opset8", "opsets": "8-16", "inference": True, "kernel": True
    }  # fmt: skip
    table = cli("ops").out
    assert f"{len(entries())} operation versions: " in table
    assert f"{len(tokenizer_entries())} operations of openvino_tokenizers" in table


@pytest.mark.parametrize("command", ["run", "infer"])
def test_equal_warnings_are_summed_up(cli: Any, tmp_path: Path, command: str) -> None:
    net = Net()
    end = net.parameter("x", "2,3")
    for i in range(28):
        end = net.op("ReLU", end, name=f"r{i}", strange="1")
    net.result(end)
    warnings = [line for line in cli(command, net.write(tmp_path)).err.splitlines() if "OVIR304" in line]
    assert len(warnings) == 1
    assert "; 27 more of this kind, for example on line 14 and on line 19" in warnings[0]


@pytest.mark.parametrize("own", ["2,7", "?,7", "4..5,7"])
@pytest.mark.parametrize("rest", ["MatMul", "Concat"])
def test_a_parameter_keeps_its_own_shape_after_errors(own: str, rest: str, tmp_path: Path, cli: Any) -> None:
    """The port of the Parameter declares another shape, for which layers were made."""
    net = Net()
    x, constant = net.parameter("x", "2,5"), net.const(np.ones((5, 5), np.float32))
    net.result(net.op("ReLU", net.op(rest, x, constant, **({"axis": 0} if rest == "Concat" else {}))))
    (tmp_path / "model.bin").write_bytes(bytes(net.blob))
    path = tmp_path / "model.xml"
    path.write_text(net.declared_xml().replace('shape="2,5"', f'shape="{own}"', 1))
    shape = f"[{own}]"
    shown = cli("show", path)
    assert "error[" in shown.err
    assert any(line.split()[:3] == ["x", "f32", shape] for line in shown.out.splitlines())
    (line,) = [line for line in cli("infer", path).out.splitlines() if " x " in line and "Parameter" in line]
    assert f"f32{shape}" in line
    assert "only declared" not in line
    (given,) = json.loads(cli("infer", path, "--json").out)["inputs"]
    assert given["shape"] == shape
