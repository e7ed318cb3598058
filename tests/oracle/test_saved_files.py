"""OpenVINO reads saved models as it reads the originals, and compresses the same constants to f16."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree
from support.builder import Net

import ovir
from ovir.ir.weights import WeightsMark

pytest.importorskip("openvino", reason="openvino, the oracle, is not installed")
pytestmark = pytest.mark.oracle
ROOT = Path(__file__).parents[2]
BAD = ROOT / "tests" / "data" / "bad"


def _names() -> tuple[bytes, bytes]:
    net = Net()
    x = net.op("Parameter", name="x", shape="?,2..5,3", element_type="f32", names=["a\\,b,c\\d"])
    net.result(net.op("Clamp", x, name="y &lt;&amp;&quot;&gt;", min="-0.1", max="0.1"))
    return net.xml().encode(), bytes(net.blob)


def _attributes() -> tuple[bytes, bytes]:
    rng = np.random.default_rng(0)
    net = Net()
    x = net.parameter("x", "1,3,16,16")
    weights = net.const(rng.standard_normal((8, 3, 3, 3)).astype(np.float32), name="weights")
    x = net.op(
        "Convolution",
        x,
        weights,
        strides="2,2",
        dilations="1,1",
        pads_begin="0,0",
        pads_end="0,0",
        auto_pad="same_upper",
    )
    x = net.op("Add", x, net.const(np.float32([[[[0.1]]]]), name="scalar"))
    x = net.op("Multiply", x, net.const(np.full((1, 8, 1, 1), 0.1, np.float32), name="vector"))
    x = net.op("Add", x, net.const(np.float32([1e-9] * 7 + [2]).reshape(1, 8, 1, 1), name="tiny"))
    x = net.op("Add", x, net.const(np.float32([5000.5] * 7 + [2]).reshape(1, 8, 1, 1), name="inexact"))
    x = net.op("Interpolate", x, net.const(np.int64([4, 4])), net.const(np.float32([0.5, 0.5]), name="scales"), net.const(np.int64([2, 3])),
               opset=4, mode="linear_onnx", shape_calculation_mode="scales", coordinate_transformation_mode="half_pixel",
               nearest_mode="simple", antialias="false", pads_begin="0", pads_end="0", cube_coeff="-0.75")  # fmt: skip
    shape = net.op(
        "Convert",
        net.op("Multiply", net.const(np.float32([1, 128]), name="size"), net.const(np.float32([1, 1]))),
        destination_type="i64",
    )
    net.result(net.op("Reshape", x, shape, special_zero="true"))
    return net.xml().encode(), bytes(net.blob)


def _version_10() -> tuple[bytes, bytes]:
    net = Net(version=10)
    x = net.op("Parameter", name="x", shape="1,3", element_type="f16")
    net.result(net.op("Add", x, net.const(np.float16([[1, 2, 3]])), name="y"))
    net.result(net.op("Convert", x, name="z", destination_type="i64"))
    return net.xml().encode(), bytes(net.blob)


def _file(name: str, old: str, new: str) -> tuple[bytes, bytes]:
    data = (BAD / f"{name}.bin").read_bytes() if (BAD / f"{name}.bin").exists() else b""
    return (BAD / f"{name}.xml").read_text().replace(old, new).encode(), data


def _example(name: str) -> tuple[bytes, bytes]:
    folder = ROOT / "examples" / "xml"
    return (folder / f"{name}.xml").read_bytes(), (folder / f"{name}.bin").read_bytes()


MODELS = {
    "names": _names(),
    "attributes": _attributes(),
    "version_10": _version_10(),
    "loop": _file("OVIR610_output_purpose", "execution_conditon", "execution_condition"),
    "iterator": _file("OVIR304_in_port_map", "strid=", "stride="),
    "digits": _example("digits"),
    "dynamic_shapes": _example("dynamic_shapes"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = tmp_path_factory.mktemp("saved")
    for name, (text, data) in MODELS.items():
        folder = parent / name
        folder.mkdir()
        (folder / "original.xml").write_bytes(text)
        (folder / "original.bin").write_bytes(data)
        ovir.save_model(folder / "original.xml", folder / "saved.xml")
        ovir.save_model(folder / "original.xml", folder / "f16.xml", compress_to_fp16=True)
        model = ovir.read_model(folder / "saved.xml")
        np.savez(folder / "inputs.npz", **ovir.random_inputs(model))
    worker = Path(__file__).with_name("save_worker.py")
    subprocess.run([sys.executable, str(worker), str(parent)], check=True, timeout=240)
    return parent


@pytest.mark.parametrize("name", MODELS)
def test_openvino_reads_the_same_model(name: str, folder: Path) -> None:
    report = json.loads((folder / name / "report.json").read_text())
    ports, layers = report["saved"]["model"]
    assert ports == report["original"]["model"][0]
    if name != "version_10":  # OpenVINO gives the Converts that it adds other names
        assert layers == report["original"]["model"][1]
    assert report["saved"]["results"] == report["original"]["results"]


@pytest.mark.parametrize("name", [name for name in MODELS if name != "version_10"])
def test_the_same_constants_become_f16(name: str, folder: Path) -> None:
    report = json.loads((folder / name / "report.json").read_text())
    assert report["f16"]["model"] == report["openvino"]["model"]
    ours, theirs = (_constants(folder / name / f"{file}.xml") for file in ("f16", "openvino"))
    assert ours == theirs
    assert name != "attributes" or {kind for kind, _ in ours.values()} >= {"f16", "f32"}


def _constants(path: Path) -> dict[str, tuple[str, bytes]]:
    """Element type and bytes of each constant of a file."""
    weights = path.with_suffix(".bin").read_bytes()
    found = {}
    for layer in etree.parse(path).iter("layer"):
        if layer.get("type") == "Const":
            data: Any = layer.find("data")
            offset, size = int(data.get("offset")), int(data.get("size"))
            found[layer.get("name", "")] = data.get("element_type"), weights[offset : offset + size]
    return found


@pytest.mark.parametrize("name", [name for name in MODELS if name != "version_10"])
def test_a_file_of_openvino_is_written_as_it_is(name: str, folder: Path, tmp_path: Path) -> None:
    ovir.save_model(folder / name / "plain.xml", tmp_path / "again.xml")
    assert _without_offsets(tmp_path / "again.xml") == _without_offsets(folder / name / "plain.xml")
    assert _constants(tmp_path / "again.xml") == _constants(folder / name / "plain.xml")


@pytest.mark.parametrize("name", MODELS)
def test_openvino_does_not_keep_the_mark_of_the_weights(name: str, folder: Path) -> None:
    """So the file is read, although its weights have changed."""
    saved, resaved = folder / name / "saved.xml", folder / name / "resaved.xml"
    assert (WeightsMark.find(saved.read_bytes()) is None) == (saved.with_suffix(".bin").stat().st_size == 0)
    assert b"ovir-weights" not in resaved.read_bytes()
    ovir.read_model(resaved)


def _without_offsets(path: Path) -> list[str]:
    """The lines of a file, without the places of constants, because the writer of some releases does not align them, and
    without the mark of the weights."""
    root = etree.parse(path, etree.XMLParser(remove_pis=True)).getroot()
    for item in root.iter("data"):
        if "offset" in item.attrib:
            item.set("offset", "")
    return etree.tostring(root, encoding="unicode").splitlines()
