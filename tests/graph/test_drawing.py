"""The drawing of a model in a notebook."""

from pathlib import Path
from xml.etree import ElementTree

import ovir
from ovir import opset13 as ops
from ovir.graph.drawing import MOST_LAYERS, svg_of


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
    assert len(list(svg.findall(".//{*}path"))) == 5  # the constant is left out
    assert not any(word in html for word in ("<script", "http://1", "https://", "href"))


def test_layers_lie_near_what_they_are_connected_with() -> None:
    """Boxes of 150 by 34 stand 170 by 58 apart, without crossings where none is needed; a line passes boxes in a bow."""
    a, b = (ops.parameter([2], "f32", name=name) for name in "ab")
    u, v = ops.relu(b, name="u"), ops.exp(a, name="v")
    p = ops.multiply(ops.add(u, v, name="w"), a, name="p")
    model = ovir.Model([ops.result(p, name="r"), ops.result(v, name="s")], [a, b], "m")
    svg = ElementTree.fromstring(svg_of(model.layers))
    assert (svg.get("width"), svg.get("height")) == ("415", "319")
    boxes = {}
    for box in svg.findall("{*}g"):
        rect, kind, name = box[1:]
        assert (rect.get("width"), rect.get("height")) == ("150", "34")
        x, y = float(rect.get("x", 0)), float(rect.get("y", 0))
        at = [(float(text.get("x", 0)) - x, float(text.get("y", 0)) - y) for text in (kind, name)]
        assert at == [(75, 14), (75, 28)]
        boxes[name.text] = x, y
    top, left, middle, right = 12, 10, 95, 180
    rows = [{"b": left, "a": right}, {"u": left, "v": right}, {"w": left, "s": right}, {"p": middle}, {"r": middle}]
    assert boxes == {name: (x, top + 58 * i) for i, row in enumerate(rows) for name, x in row.items()}
    assert [path.get("d") for path in svg.findall("{*}path")] == [
        "M85,46C85,58 85,58 85,70",
        "M255,46C255,58 255,58 255,70",
        "M85,104C85,116 85,116 85,128",
        "M255,104C255,116 85,116 85,128",
        "M85,162C85,174 170,174 170,186",
        "M255,46C374,104 289,128 170,186",
        "M170,220C170,232 170,232 170,244",
        "M255,104C255,116 255,116 255,128",
    ]


def test_a_large_model_is_not_drawn(tmp_path: Path) -> None:
    def deep(count: int) -> ovir.Model:
        x = layer = ops.parameter([4], "f32", name="x")
        for _ in range(count - 2):
            layer = ops.relu(layer)
        return ovir.Model([layer], [x], "deep")

    assert "<svg" in deep(MOST_LAYERS)._repr_html_()
    model = deep(MOST_LAYERS + 1)
    assert "<p>Graph: 401 layers are too many to be drawn here</p>" in model._repr_html_()
    ovir.save_model(model, tmp_path / "deep.xml")
    assert "; <code>ovir view " in ovir.read_model(tmp_path / "deep.xml")._repr_html_()
