"""Export of models: names, dynamic dimensions, state, refusals, files."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops

onnx = pytest.importorskip("onnx", reason="the export needs onnx")
pytest.importorskip("onnx_ir", reason="the export needs onnx_ir")

from ovir.export.model_exporter import export_model  # noqa: E402  (it imports these packages)


def softmax_net(shape: str = "2,4") -> Net:
    net = Net()
    net.result(net.op("SoftMax", net.parameter("x", shape), opset=8, axis="-1"), name="y")
    return net


def test_names_of_inputs_and_outputs_are_kept(tmp_path: Path) -> None:
    exported = ovir.export_onnx(softmax_net().model(), tmp_path / "model.onnx", 17)
    assert (exported.inputs, exported.outputs) == (["x"], ["softmax1"])  # the tensor has a name, so it counts
    proto = onnx.load(tmp_path / "model.onnx")
    assert [value.name for value in proto.graph.input] == ["x"]
    assert [value.name for value in proto.graph.output] == ["softmax1"]
    assert proto.opset_import[0].version == 17


def test_equal_unknown_sizes_have_equal_names(tmp_path: Path) -> None:
    exported = ovir.export_onnx(softmax_net("?,4").model(), tmp_path / "model.onnx")
    (given,), (result,) = exported.onnx.graph.inputs, exported.onnx.graph.outputs
    assert given.shape is not None
    assert result.shape is not None
    assert str(given.shape[0]) == str(result.shape[0])
    assert given.shape[1] == 4


def sizes_of(model: ovir.Model) -> dict[str, list[str]]:
    """Return the sizes of the inputs of an export, by their names."""
    exported = export_model(model, 21).onnx.graph
    return {str(value.name): list(map(str, value.shape or ())) for value in exported.inputs}


def test_sizes_that_a_layer_needs_to_be_equal_have_equal_names() -> None:
    a, b = (ops.parameter([-1, -1, 3], "f32", name=name) for name in "ab")
    found = sizes_of(ovir.Model([ops.concat([a, b], -2)], [a, b], "concat"))
    assert found["a"][0] == found["b"][0] != "None"
    assert len({found["a"][0], found["a"][1], found["b"][1]}) == 3  # the axis of Concat may differ
    query, key, value = (ops.parameter([1, -1, 8], "f32", name=name) for name in ("query", "key", "value"))
    attention = ops.scaled_dot_product_attention(query, key, value)
    found = sizes_of(ovir.Model([attention], [query, key, value], "attention"))
    assert found["key"] == found["value"] != found["query"]
    x, y = (ops.parameter([-1, 3], "f32", name=name) for name in "xy")
    found = sizes_of(ovir.Model([ops.add(x, y)], [x, y], "broadcast"))  # one of them may be 1
    assert found["x"] != found["y"]


@pytest.mark.parametrize("further", ["", "past_key_values.0.key"])
def test_the_inputs_of_texts_share_their_sizes(further: str) -> None:
    names = ("input_ids", "attention_mask", "token_type_ids", *filter(None, [further]))
    inputs = [ops.parameter([-1, -1], "i64", name=name) for name in names]
    found = sizes_of(ovir.Model([ops.shape_of(port) for port in inputs], inputs, "text"))
    assert found["input_ids"] == found["token_type_ids"]
    assert found["input_ids"][0] == found["attention_mask"][0] != found["input_ids"][1]
    assert (found["input_ids"][1] == found["attention_mask"][1]) == (not further)
    assert not further or set(found[further]).isdisjoint(found["input_ids"])


@pytest.mark.parametrize(
    ("opset", "reason"),
    [
        (16, "opset 16 of ONNX cannot be written; it can be 17 to"),
        (99, "opset 99 of ONNX cannot be written"),
        ("21", "opset must be an integer of at least 1, got '21'"),
    ],
)
def test_opset_that_cannot_be_exported_to(tmp_path: Path, opset: Any, reason: str) -> None:
    with pytest.raises(ovir.InputError, match=reason):
        ovir.export_onnx(softmax_net().model(), tmp_path / "model.onnx", opset)


def test_operation_without_exporter_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    swirl = Path(__file__).parents[2] / "examples" / "xml" / "swirl.xml"
    with pytest.raises(ovir.ExportError, match=r"swirl.xml:14: error\[OVIR806\] .*Swirl.*cannot be exported to ONNX"):
        ovir.export_onnx(swirl, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_weights_in_a_file_of_their_own(tmp_path: Path) -> None:
    x = ops.parameter([1, 64], np.float32, name="x")
    table = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    model = ovir.Model([ops.softmax(x, 1), ops.constant(table)], [x])
    ovir.export_onnx(model, tmp_path / "model.onnx", external_data=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    assert (tmp_path / "model.onnx.data").stat().st_size >= table.nbytes
    loaded = onnx.load(tmp_path / "model.onnx")
    (weights,) = (t for t in loaded.graph.initializer if list(t.dims) == [64, 64])
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(weights), table)


def test_variables_become_inputs_and_outputs(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x", "2")
    state = net.op("ReadValue", net.const(np.zeros(2, np.float32)), opset=6, variable_id="sum", variable_type="f32", variable_shape="2")  # fmt: skip
    total = net.op("SoftMax", state, opset=8, axis="0")
    net.op("Assign", total, opset=6, outputs=0, variable_id="sum")
    net.result(x, name="y")
    exported = ovir.export_onnx(net.model(), tmp_path / "model.onnx")
    assert exported.state_inputs == {"sum": "sum"}
    assert exported.state_outputs == {"sum": "sum/next"}
    assert list(exported.feeds([np.zeros(2), np.ones(2)])) == ["x", "sum"]


def test_runtime_information_becomes_metadata() -> None:
    net = softmax_net()
    nested = '<one value="1"/><more><two value="2"/><inner><three value="3"/></inner></more>'
    text = net.xml().replace("<rt_info/>", f"<rt_info>{nested}</rt_info>")
    exported = export_model(ovir.read_model(text.encode(), bytes(net.blob)), 17)
    assert dict(exported.onnx.metadata_props) == {"one": "1", "more/two": "2", "more/inner/three": "3"}


def test_a_tensor_without_elements_that_onnx_refuses_is_named(tmp_path: Path) -> None:
    x, y = ops.parameter([0, -1], np.float32, name="x"), ops.parameter([2, -1], np.float32, name="y")
    model = ovir.Model([ops.reshape(each, [0, -1], True) for each in (y, x)], [y, x])
    with pytest.raises(ovir.ExportError, match="tensor 'x' has no elements, which ONNX does not allow"):
        ovir.export_onnx(model, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ovir.WriteError, match=r"the folder .*none does not exist"):
        ovir.export_onnx(softmax_net().model(), tmp_path / "none" / "model.onnx")


@pytest.mark.parametrize("name", ["model.xml", "model.bin", "model"])
def test_other_endings_are_refused_so_that_no_ir_is_overwritten(tmp_path: Path, name: str) -> None:
    path = softmax_net().write(tmp_path)
    before = path.read_bytes()
    with pytest.raises(ovir.InputError, match=r"must end in \.onnx"):
        ovir.export_onnx(path, tmp_path / name)
    assert path.read_bytes() == before


def test_a_path_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ovir.InputError, match="no file whose path is not UTF-8"):
        ovir.export_onnx(softmax_net().model(), tmp_path / "\udcff.onnx")


def test_the_example_exports_a_model_that_onnxruntime_runs(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the example needs onnxruntime")
    example = Path(__file__).parents[2] / "examples" / "export_to_onnx.py"
    assert runpy.run_path(str(example))["main"](tmp_path) == 1.0
    assert (tmp_path / "digits.onnx").stat().st_size > 20_000
