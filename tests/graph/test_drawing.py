"""The drawing of a model in a notebook."""

from pathlib import Path
from xml.etree import ElementTree

import ovir
from ovir import opset13 as ops
from ovir.graph.drawing import MOST_LAYERS


def test_a_model_in_a_notebook_has_a_link_that_opens_its_graph() -> None:
    x = ops.parameter([1, 4], "f32", name="<x>")
    layer = ops.add(ops.relu(x, name="a name that is longer than the box of its layer"), [1.0], name="sum")
    model = ovir.Model([ops.multiply(layer, x, name="product")], [x], "small")
    html = model._repr_html_()
    summary, drawing = html.partition("<details>")[2].split("</summary>")
    assert summary.endswith(">Graph")
    svg = ElementTree.fromstring(drawing[drawing.index("<svg") : drawing.index("</svg>") + 6])
    texts = ["".join(node.itertext()) for node in svg.findall(".//{*}text")]
    types = ["Parameter", "ReLU", "Add", "Multiply", "Result"]
    assert [text for text in texts if text in types] == types
    assert "<x>" in texts
    assert not any(len(text) > 22 for text in texts)
    places = {
        next(iter(node)).text.split(":")[0]: (float(box.get("x", 0)), float(box.get("y", 0)))
        for node in svg.findall(".//{*}g")
        for box in node.findall(".//{*}rect")
    }
    assert len(set(places.values())) == len(places) == 5
    assert [y for _, y in places.values()] == sorted(y for _, y in places.values())
    assert len(list(svg.findall(".//{*}path"))) == 5  # the constant is left out
    assert not any(word in html for word in ("<script", "http://1", "https://", "href"))


def test_a_large_model_is_not_drawn(tmp_path: Path) -> None:
    x = layer = ops.parameter([4], "f32", name="x")
    for _ in range(MOST_LAYERS):
        layer = ops.relu(layer)
    model = ovir.Model([layer], [x], "deep")
    assert "<p>Graph: 402 layers are too many to be drawn here</p>" in model._repr_html_()
    ovir.save_model(model, tmp_path / "deep.xml")
    assert "; <code>ovir view " in ovir.read_model(tmp_path / "deep.xml")._repr_html_()
