"""Bodies of saved models: port maps, back edges, and the shapes that a loop gives its body."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builder import Net

import ovir
from ovir.model import Model

BAD = Path(__file__).parent.parent / "data" / "bad"
BIN = (BAD / "OVIR610_output_purpose.bin").read_bytes()
LOOP = (BAD / "OVIR610_output_purpose.xml").read_text().replace("execution_conditon", "execution_condition")
PAIRS = (BAD / "OVIR304_in_port_map.xml").read_text().replace("strid=", "stride=")


def saved(model: Model, folder: Path, *, half: bool = False) -> tuple[Model, str]:
    ovir.save_model(model, folder / "a.xml", compress_to_fp16=half)
    again = ovir.read_model(folder / "a.xml")
    ovir.save_model(again, folder / "b.xml")
    assert (folder / "b.xml").read_bytes() == (folder / "a.xml").read_bytes()
    return again, (folder / "a.xml").read_text()


def test_a_loop(tmp_path: Path) -> None:
    model = ovir.read_model(LOOP, BIN)
    again, text = saved(model, tmp_path)
    start = text.index("<port_map>")
    lines = [line.strip() for line in text[start : text.index("<input>", start)].rstrip().splitlines()]
    assert lines == [
        "<port_map>",
        '<input external_port_id="2" internal_layer_id="0" />',
        '<output external_port_id="3" internal_layer_id="4" />',
        '<input external_port_id="-1" internal_layer_id="1" purpose="current_iteration" />',
        '<output external_port_id="-1" internal_layer_id="5" purpose="execution_condition" />',
        "</port_map>",
        "<back_edges>",
        '<edge from-layer="4" to-layer="0" />',
        "</back_edges>",
    ]
    feeds = [np.full(port.shape.to_tuple(), 3, port.element_type.to_dtype()) for port in model.inputs]
    results = [ovir.compile_model(one)(feeds)[0].tolist() for one in (model, again)]
    assert results[0] == results[1]


def test_a_tensor_iterator(tmp_path: Path) -> None:
    model = ovir.read_model(PAIRS)
    again, text = saved(model, tmp_path)
    slicing = 'start="0" end="-1" stride="1" part_size="1"'
    assert f'<input axis="0" external_port_id="1" internal_layer_id="1" {slicing} />' in text
    assert f'<output axis="0" external_port_id="2" internal_layer_id="3" {slicing} />' in text
    assert text.index("<port_map>") < text.index("<input>", text.index("<port_map>")) < text.index("<body>")
    rng = np.random.default_rng(0)
    feeds = [rng.random(port.shape.to_tuple(), np.float32) for port in model.inputs]
    results = [ovir.compile_model(one)(feeds)[0].tolist() for one in (model, again)]
    assert results[0] == results[1]


def with_if() -> Model:
    """If the condition holds, the sum of x and a constant, else their product."""
    bodies = []
    for key, kind in (("then", "Add"), ("else", "Multiply")):
        body = Net()
        x = body.parameter("x", "...")
        result = body.result(body.op(kind, x, body.const(np.float32([2, 2, 2]), name=f"{key}/c")))
        inner = body.xml()
        inner = inner[inner.index("<layers>") : inner.index("</net>")]
        ports = f'<input external_port_id="1" internal_layer_id="{x[0]}"/><output external_port_id="2" internal_layer_id="{result[0]}"/>'
        bodies.append(f"<{key}_port_map>{ports}</{key}_port_map><{key}_body>{inner}</{key}_body>")
    net = Net()
    blob = np.float32([2, 2, 2]).tobytes()
    net.blob += blob
    branch = net.op("If", net.parameter("condition", "", "boolean"), net.parameter("x", "3"), opset=8, name="if")
    net.result(branch)
    number = f'<layer id="{branch[0]}"'
    at = net.xml().index("</layer>", net.xml().index(number))
    return ovir.read_model((net.xml()[:at] + "".join(bodies) + net.xml()[at:]).encode(), bytes(net.blob))


@pytest.mark.parametrize("half", [False, True])
def test_an_if(half: bool, tmp_path: Path) -> None:
    model = with_if()
    again, text = saved(model, tmp_path, half=half)
    parts = ["<else_port_map>", "<then_port_map>", "<input>", "<output>", "<then_body>", "<else_body>"]
    start = text.index('type="If"')
    assert [text.index(part, start) for part in parts] == sorted(text.index(part, start) for part in parts)
    for condition, expected in ((True, [3, 4, 5]), (False, [2, 4, 6])):
        feeds = {"condition": np.array(condition), "x": np.float32([1, 2, 3])}
        assert ovir.compile_model(again)(feeds)[0].tolist() == expected
    then = again.layer("if").bodies["then"]
    assert str(then.inputs[0].layer.attributes["shape"]) == "[3]"  # as the If gives it, not as the file declared it
    assert then.layer("then/c").type == ("Convert" if half else "Const")
    assert (tmp_path / "a.bin").stat().st_size == (6 if half else 12)


def test_an_edit_of_a_body_is_inferred_first(tmp_path: Path) -> None:
    model = with_if()
    body = model.layer("if").bodies["else"]
    body.remove_layer(next(layer for layer in body.layers if layer.type == "Multiply"), bypass=True)
    again, _ = saved(model, tmp_path)
    feeds = {"condition": np.array(False), "x": np.float32([1, 2, 3])}
    assert ovir.compile_model(again)(feeds)[0].tolist() == [1, 2, 3]


def test_a_body_whose_connection_is_not_known_is_an_error(tmp_path: Path) -> None:
    model = with_if()
    model.layer("if").operator.wiring = {}  # type: ignore[union-attr]
    with pytest.raises(ovir.ModelError, match="it is not known how the body 'else' is connected with the layer"):
        ovir.save_model(model, tmp_path / "a.xml")
    assert list(tmp_path.iterdir()) == []
