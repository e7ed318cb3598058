"""What users see of objects at a prompt, in a notebook, and when they type names of OpenVINO's API."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.core.html import html_table

ZEROS = np.zeros((1, 4), np.float32)


def small_model() -> ovir.Model:
    x = ops.parameter([1, 4], "f32", name="x")
    return ovir.Model([ops.softmax(ops.relu(x, name="act"), 1, name="softmax")], [x], "<small>")


def objects() -> dict[str, Any]:
    model = small_model()
    compiled = ovir.compile_model(model)
    layer = model.layer("softmax")
    return {
        "Model": model,
        "Layer": layer,
        "Port": layer.outputs[0],
        "CompiledModel": compiled,
        "InferRequest": compiled.create_infer_request(),
        "Results": compiled([ZEROS]),
        "Comparison": ovir.compare(model, against=small_model()),
    }


class Cells(HTMLParser):
    """Collects the texts of the cells of tables, and the names of elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def test_dir_lists_names_of_the_documentation_only() -> None:
    hidden = []
    pages = Path(__file__).parents[1] / "mkdocs.yml"
    for line in pages.read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r'\s+- "!\^\((.*)\)\$"', line):
            hidden += match[1].split("|")
    assert {"holder", "prepare_change"} <= set(hidden)
    for kind in ("Model", "Layer", "Port", "CompiledModel", "InferRequest"):
        shown = {name for name in dir(objects()[kind]) if not name.startswith("_")}
        assert not shown & set(hidden), kind


def test_representations_show_shapes_and_attributes() -> None:
    layer = small_model().layer("softmax")
    assert repr(layer) == "<layer 2 'softmax' (SoftMax, opset8): f32[1,4]>"
    assert repr(layer.operator) == "<SoftMax-8(axis=1)>"
    assert repr(small_model().outputs[0].layer).endswith("(Result, opset1): f32[1,4]>")


@pytest.mark.parametrize("kind", ["Model", "Layer", "CompiledModel", "Results", "Comparison"])
def test_notebooks_show_a_table(kind: str) -> None:
    html = objects()[kind]._repr_html_()
    found = Cells(html)
    assert found.tags.count("table") == (2 if kind == "Comparison" else 1)  # of outputs and of layers
    assert "<small>" not in html
    assert any("f32[1,4]" in cell or "within" in cell for cell in found.cells)


def test_lists_of_a_model_are_lists_that_a_notebook_shows_as_tables() -> None:
    model = small_model()
    for items, row in (
        (model.layers, [str(model.layer("softmax").id), "softmax", "SoftMax", "f32[1,4]"]),
        (model.inputs, [model.inputs[0].any_name, "f32[1,4]", ""]),
        (model.outputs, [model.outputs[0].any_name, "f32[1,4]"]),
    ):
        assert isinstance(items, list)
        cells = Cells(items._repr_html_()).cells  # type: ignore[attr-defined]
        assert any(cells[i : i + len(row)] == row for i in range(len(cells))), cells
    assert "0 ports" in ovir.Model([ops.constant([1.0])], []).inputs._repr_html_()  # type: ignore[attr-defined]


def test_headings_align_with_their_columns() -> None:
    html = html_table("one", ("a", "b"), [(1, 2)])
    assert html.count('<th style="text-align:left">') == html.count('<td style="text-align:left">') == 2


def test_a_diagnostic_is_shown_as_its_message() -> None:
    (found,) = ovir.check(b"<net/>")[:1]
    assert repr(found) == str(found)
    assert "OVIR" in repr([found])


def test_the_table_of_a_layer_names_the_source_of_each_input() -> None:
    x = ops.parameter([1, 4], "f32", name="x")
    model = ovir.Model([ops.add(ops.relu(x, name="act"), x, name="sum")], [x])
    for layer in model.layers:
        cells = Cells(layer._repr_html_()).cells
        for port in layer.inputs:
            assert port.source is not None
            assert cells[cells.index(f"input {port.index}") + 1] == f"{port.type} from {port.source.layer.key}"
        for port in layer.outputs:
            assert cells[cells.index(f"output {port.index}") + 1] == str(port.type)


def test_the_table_of_a_comparison_states_the_verdict() -> None:
    x = ops.parameter([1, 4], "f32", name="x")
    other = ovir.Model([ops.softmax(x * 2.0, 1, name="softmax")], [x], "other")
    assert "beyond tolerance" in ovir.compare(small_model(), against=other)._repr_html_()


def test_a_model_of_a_file_names_the_command_that_shows_its_graph(tmp_path: Path) -> None:
    path = tmp_path / "my model.xml"
    ovir.save_model(small_model(), path)
    assert f"ovir view &#x27;{path}&#x27;" in ovir.read_model(path)._repr_html_()


def test_results_suggest_names() -> None:
    with pytest.raises(KeyError, match="did you mean 'softmax'"):
        objects()["Results"]["sofmax"]


def test_openvinos_names_exist() -> None:
    found = objects()
    model, compiled, layer = found["Model"], found["CompiledModel"], found["Layer"]
    assert model.get_ops() == model.get_ordered_ops() == model.layers
    assert model.input("x") is model.input() is model.input(0) is model.inputs[0] is compiled.input("x")
    assert model.output("softmax") is model.outputs[0] is compiled.output(0)
    assert model.get_parameters() == model.parameters == [model.layer("x")]
    assert [result.type for result in model.get_results()] == ["Result"]
    port = layer.output(0)
    assert (port.get_any_name(), str(port.get_partial_shape()), str(port.get_element_type())) == (
        "softmax",
        "[1,4]",
        "f32",
    )
    assert port.get_node() is port.node is layer
    assert layer.input(0).source.layer.name == "act"
    port.set_names({"a"})
    port.add_names({"b"})
    assert port.get_names() == {"a", "b"}
    assert ovir.compile_model(model, "CPU")([ZEROS])[0].sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("kind", "name", "way"),
    [
        ("Model", "get_friendly_name", "use model.name"),
        ("Layer", "get_attributes", "use layer.attributes"),
        ("Port", "get_shape", "use port.shape"),
        ("Port", "tensor", "use .* port.set_names"),
        ("CompiledModel", "get_property", "use the attributes and options of compile_model"),
        ("InferRequest", "start_async", "use ovir.map"),
    ],
)
def test_other_names_of_openvino_name_ovirs_way(kind: str, name: str, way: str) -> None:
    with pytest.raises(AttributeError, match=way):
        getattr(objects()[kind], name)


def test_a_name_that_nobody_has_is_a_plain_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'Model' object has no attribute 'layerz'$"):
        small_model().layerz  # noqa: B018


def test_openvinos_module_names_name_ovirs_way() -> None:
    with pytest.raises(AttributeError, match=r"use ovir\.read_model and ovir\.compile_model"):
        ovir.Core  # noqa: B018


def test_an_unknown_input_or_output_is_listed_with_a_suggestion() -> None:
    model = small_model()
    with pytest.raises(KeyError, match=r"no output 'sotfmax'.*\n.*did you mean 'softmax'"):
        model.output("sotfmax")
    with pytest.raises(IndexError, match="no input 3; its inputs are 0: 'x'"):
        model.input(3)


def test_a_device_other_than_the_cpu_is_refused() -> None:
    ovir.compile_model(small_model(), "AUTO", {})
    with pytest.raises(ovir.InputError, match="no properties of devices, got A") as refused:
        ovir.compile_model(small_model(), "CPU", {"A": 1})
    assert "threads=4" in str(refused.value)
    with pytest.raises(ovir.InputError, match="runs models on the CPU only, got the device 'GPU'"):
        ovir.compile_model(small_model(), "GPU")


def _set(kind: str, name: str, value: Any) -> None:
    setattr(objects()[kind], name, value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _set("Layer", "name", None), "name must be a text, got None"),
        (lambda: _set("Model", "name", 5), "name must be a text, got 5"),
        (lambda: _set("Port", "names", ["a", None]), r"names must be texts, got \['a', None\]"),
        (lambda: objects()["Port"].add_names(5), "names must be texts, got 5"),
        (lambda: objects()["CompiledModel"](ZEROS, share_outputs="x"), "share_outputs must be True or False, got 'x'"),
        (lambda: ovir.compile_model(small_model(), strict="yes"), "strict must be True or False, got 'yes'"),
        (lambda: ovir.save_model(small_model(), "no.xml", compress_to_fp16="f16"), "compress_to_fp16 must be True or"),
    ],
)
def test_arguments_of_other_kinds_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ovir.InputError, match=message):
        call()
