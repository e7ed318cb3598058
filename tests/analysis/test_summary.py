"""The numbers of a model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.analysis.costs import macs_of, stored_bytes
from ovir.analysis.summary import ports_table, provenance, summarize

WINDOW = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    ("operation", "shape", "weights", "attributes", "expected"),
    [
        ("MatMul", "2,5,3", zeros(3, 4), {}, 2 * 5 * 4 * 3),
        ("MatMul", "2,3,5", zeros(3, 4), {"transpose_a": "true"}, 2 * 5 * 4 * 3),
        ("MatMul", "3", zeros(3), {}, 3),
        ("Convolution", "2,3,8,8", zeros(4, 3, 3, 3), WINDOW, 2 * 4 * 64 * 27),
        ("GroupConvolution", "2,4,8,8", zeros(2, 3, 2, 3, 3), WINDOW, 2 * 6 * 64 * 18),
        ("ConvolutionBackpropData", "2,3,8,8", zeros(3, 4, 3, 3), WINDOW, 2 * 3 * 64 * 36),
    ],
)
def test_multiply_accumulates(operation: str, shape: str, weights: Any, attributes: Any, expected: int) -> None:
    net = Net()
    net.result(net.op(operation, net.parameter("x", shape), net.const(weights), name="counted", **attributes))
    count = macs_of(net.model().layer("counted"))
    assert count.is_static
    assert count.lower == expected


def test_shared_weights_count_once_in_the_file() -> None:
    net = Net()
    net.result(net.const(zeros(4)))
    net.op("Const", element_type="f32", shape="3", offset="4", size="12")
    summary = summarize(net.model())
    assert summary.constants["f32"].elements == 7
    assert summary.constants["f32"].bytes == 28
    assert summary.weights_bytes == 16
    assert summary.file_bytes is None


def test_the_file_of_the_weights_and_what_applications_read(tmp_path: Path) -> None:
    net = Net()
    net.result(net.op("Add", net.parameter("x", "2"), net.const(zeros(2), name="zeros"), name="sum"))
    net.result(net.op("Unknown", net.parameter("y", "2"), opset=1))
    path = net.write(tmp_path)
    rt_info = '<rt_info><model_info><labels value="cat dog"/><size><width value="3"/></size></model_info></rt_info>'
    path.write_text(path.read_text().replace("<rt_info/>", rt_info))
    (tmp_path / "other").write_bytes(bytes(99))
    model = ovir.read_model(path)
    summary = summarize(model)
    assert (summary.file_bytes, summarize(model, weights=str(tmp_path / "other")).file_bytes) == (8, 99)
    assert summarize(model, weights=str(tmp_path / "missing")).file_bytes is None
    assert summary.model_info == [("labels", "cat dog"), ("size/width", "3")]
    assert summary.not_run == {"Unknown of opset1": 1}
    assert [stored_bytes(model.layer(name)) for name in ("zeros", "sum")] == [8, 0]


def test_tables_of_a_summary() -> None:
    """The layers without products come last, those with more parameters first."""
    net = Net()
    x = net.parameter("x", "2,3")
    wide = net.op("MatMul", net.op("Add", x, net.const(zeros(1, 3)), name="add"), net.const(zeros(3, 40)), name="wide")
    narrow = net.op("MatMul", wide, net.const(zeros(40, 1)), name="narrow")
    net.result(net.op("Add", narrow, net.const(zeros(1, 200)), name="most"))
    model = net.model()
    summary = summarize(model)
    html = summary._repr_html_()
    places = [html.index(f">{name}<") for name in ("wide", "narrow", "most", "add")]
    assert places == sorted(places)
    assert "320 MACs, 363 parameters in 10 layers" in html
    assert [row[:3] for row in summary.operations_table().rows] == [
        ("Const", 4, 0.4),
        ("Add", 2, 0.2),
        ("MatMul", 2, 0.2),
        ("Parameter", 1, 0.1),
        ("Result", 1, 0.1),
    ]
    costs = {row[0]: row[3:] for row in summary.operations_table().rows}
    assert {name for name, cells in costs.items() if any(cell is not None for cell in cells)} == {"Add", "MatMul"}
    assert summary.constants_table().rows == [("f32", "f32", 4, 363, 1452)]
    port = model.inputs[0]
    port.own_names = frozenset("zyx")
    assert ports_table("inputs", [port]).rows == [("x", port.layer, port.element_type, port.shape, "y, z")]


def test_a_length_of_states_must_fit() -> None:
    x, length = ops.parameter([1, 2], "f32", name="x"), ops.parameter([], "f32", name="length")
    state = ops.read_value(np.zeros((1, 2), np.float32), "v", "f32", [-1, 2])
    total = ops.reshape(state, [2], False, name="flat")
    model = ovir.Model([total, length], [x, length], sinks=[ops.assign(ops.concat([state, x], 0), "v")])
    assert summarize(model).layer_count == len(model.layers)
    assert summarize(model, state_length=1).macs_unknown == []
    with pytest.raises(ovir.ModelError, match="flat"):
        summarize(model, state_length=3)


CONVERTER = '<MO_version value="2022.1.0-7019-cdb9"/>'


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("", ""),
        ('<Runtime_version value=" "/>', ""),
        ('<OpenVINO_Runtime value="x"/><Runtime_version value="2024.6.0-1-a"/>', "OpenVINO 2024.6.0"),
        (CONVERTER, "OpenVINO 2022.1.0"),
        (CONVERTER + '<Runtime_version value="2022.1.0-9-b"/>', "OpenVINO 2022.1.0"),
        (CONVERTER + '<Runtime_version value="2023.0-b"/>', "OpenVINO 2023.0, converter 2022.1.0"),
        ('<Runtime_version value="custom-a_b"/>', "OpenVINO custom-a_b"),
        ('<cli_parameters><input_model value="C:\\m\\a.onnx"/></cli_parameters>', "from a.onnx"),
        (
            '<conversion_parameters><framework value="tf"/><input_model value="a.pb"/></conversion_parameters>',
            "from tf",
        ),
        (
            '<nncf><version value="2.7.0"/><torch_version value="2.0-x"/><n value="1"/></nncf>',
            "nncf 2.7.0, torch 2.0",
        ),
        ('<conversion_parameters><version value="1"/></conversion_parameters><note value="1"/>', ""),
    ],
)
def test_who_made_a_model(inside: str, expected: str) -> None:
    net = Net()
    net.result(net.parameter("x", "2"))
    text = net.xml().replace("<rt_info/>", f"<rt_info>{inside}</rt_info>")
    assert str(provenance(ovir.read_model(text.encode()).rt_info)) == expected
