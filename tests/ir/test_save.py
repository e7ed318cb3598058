"""Saved models: the contents of the .xml, and that reading gives back the model that was saved."""

import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from support.bodies import choice
from support.builder import Net, document, layer_text
from support.port_maps import BIN, LOOP, PAIRS
from support.random_models import models

import ovir
from ovir import opset13 as ops
from ovir.core.arrays import Array
from ovir.graph.layers import Layer, Port
from ovir.model import Model
from ovir.ops.infrastructure import Const, Parameter, Result
from ovir.ops.pooling import MaxPool1

EXAMPLES = sorted(path for path in (Path(__file__).parents[2] / "examples" / "xml").glob("*.xml"))


def saved(model: Model, folder: Path, **options: Any) -> tuple[Model, str, bytes]:
    """Save a model, and return the model that is read again, and both files. A second save changes nothing."""
    path = folder / "saved.xml"
    ovir.save_model(model, path, **options)
    require_indentation(path.read_text())
    again = ovir.read_model(path)
    ovir.save_model(again, folder / "second.xml")
    assert (folder / "second.xml").read_text() == path.read_text()
    assert (folder / "second.bin").read_bytes() == path.with_suffix(".bin").read_bytes()
    return again, path.read_text(), path.with_suffix(".bin").read_bytes()


def require_indentation(text: str) -> None:
    """Require as many tabs before each line that begins with a tag as there are elements around it."""
    depth = 0
    for line in text.splitlines()[1:]:
        tag = line.lstrip("\t")
        depth -= tag.startswith("</")
        assert not tag.startswith("<") or line == "\t" * depth + tag
        depth += tag.count("<") - 2 * tag.count("</") - tag.count("/>") - tag.count("<?") + tag.startswith("</")


def described(model: Model) -> list[object]:
    """Return everything that a model holds, except lines, offsets in the .bin, and the shapes of parameters of bodies."""
    found: list[object] = [model.rt_info.to_dict(), model.name]
    for layer in model.file_order:
        skipped = ("offset", "size") if layer.type == "Const" else ("shape",) if model.scope else ()
        attributes = {key: value for key, value in layer.attributes.items() if key not in skipped}
        ports = [
            (
                str(port.type),
                port.own_names if port.is_output or layer.type == "Result" else None,
                port.rt_info.to_dict(),
            )
            for port in (*layer.inputs, *layer.outputs)
        ]
        sources = [(p.source.layer.id, p.source.index) for p in layer.inputs if p.source is not None]
        data = _content(layer.operator.data) if isinstance(layer.operator, Const) else None
        found.append(
            (layer.id, layer.name, layer.type, layer.version, attributes, ports, sources, data, layer.rt_info.to_dict())
        )
        found.extend((key, described(body)) for key, body in layer.bodies.items())
    return found


def _content(data: Array) -> object:
    return data.tolist() if data.dtype.kind == "T" else data.tobytes()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_the_same_after_a_round_trip(path: Path, tmp_path: Path) -> None:
    model = ovir.read_model(path)
    assert described(saved(model, tmp_path)[0]) == described(model)


def test_the_file_is_written_as_openvino_writes_it(tmp_path: Path) -> None:
    net = Net()
    x = net.op("Parameter", name="x", shape="?,2..5", element_type="f32", names=["a\\,b,c"])
    sum_ = net.op("Add", x, net.const(np.float32([[1, 2]]), name="c"), name="sum", auto_broadcast="numpy")
    net.result(sum_, name="out")
    _, text, data = saved(net.model(), tmp_path)
    mark = f'<?ovir-weights size="{len(data)}" crc32="{zlib.crc32(data):08x}"?>'
    assert mark in text
    assert text.replace(f"<rt_info>{mark}</rt_info>", "<rt_info />") == EXPECTED
    assert data == np.float32([1, 2]).tobytes()


EXPECTED = """\
<?xml version="1.0"?>
<net name="test" version="11">
	<layers>
		<layer id="0" name="x" type="Parameter" version="opset1">
			<data shape="?,2..5" element_type="f32" />
			<output>
				<port id="0" precision="FP32" names="a\\,b,c">
					<dim>-1</dim>
					<dim>-1</dim>
				</port>
			</output>
		</layer>
		<layer id="1" name="c" type="Const" version="opset1">
			<data element_type="f32" shape="1, 2" offset="0" size="8" />
			<output>
				<port id="0" precision="FP32" names="c">
					<dim>1</dim>
					<dim>2</dim>
				</port>
			</output>
		</layer>
		<layer id="2" name="sum" type="Add" version="opset1">
			<data auto_broadcast="numpy" />
			<input>
				<port id="0" precision="FP32">
					<dim>-1</dim>
					<dim>-1</dim>
				</port>
				<port id="1" precision="FP32">
					<dim>1</dim>
					<dim>2</dim>
				</port>
			</input>
			<output>
				<port id="2" precision="FP32" names="sum">
					<dim>-1</dim>
					<dim>2</dim>
				</port>
			</output>
		</layer>
		<layer id="3" name="out" type="Result" version="opset1">
			<input>
				<port id="0" precision="FP32">
					<dim>-1</dim>
					<dim>2</dim>
				</port>
			</input>
		</layer>
	</layers>
	<edges>
		<edge from-layer="0" from-port="0" to-layer="2" to-port="0" />
		<edge from-layer="1" from-port="0" to-layer="2" to-port="1" />
		<edge from-layer="2" from-port="2" to-layer="3" to-port="0" />
	</edges>
	<rt_info />
</net>
"""


def test_scalars_unknown_ranks_and_types_without_dimensions(tmp_path: Path) -> None:
    net = Net()
    for name, shape, kind in (("s", "", "boolean"), ("r", "...", "bf16"), ("b", "2", "u1")):
        net.result(net.parameter(name, shape, kind))
    model, text, _ = saved(net.model(), tmp_path)
    assert [str(port.type) for port in model.inputs] == ["boolean[]", "bf16[...]", "u1[2]"]
    assert '<data shape="..." element_type="bf16" />' in text
    assert '<port id="0" precision="BOOL" names="s" />' in text
    assert 'precision="BIN"' in text


def test_attributes_that_no_operation_declares_and_dead_layers_are_kept(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x", "2")
    net.op("Sigmoid", x, name="dead")
    net.result(net.op("ReLU", x, name="y", PrimitivesPriority="cpu:ref", alt_width="128"))
    model, text, _ = saved(net.model(), tmp_path)
    assert model.layer("dead").is_dead
    assert '<data PrimitivesPriority="cpu:ref" alt_width="128" />' in text


def test_operations_of_extensions_are_kept(tmp_path: Path) -> None:
    port = '<port id="{}" precision="FP32"><dim>2</dim><dim>4</dim></port>'
    text = f'<data alpha="0.10" mode=" a, b "/><input>{port.format(0)}</input><output>{port.format(1)}</output>'
    unknown = layer_text(1, "Whirl", text).replace("opset1", "extension")
    result = layer_text(2, "Result", f"<input>{port.format(0)}</input>")
    model = ovir.read_model(document(unknown, result, edges="0.0-1.0 1.1-2.0"))
    again, text, _ = saved(model, tmp_path)
    assert described(again) == described(model)
    assert '<data alpha="0.10" mode=" a, b " />' in text


# --------------------------------------------------------------------------- layers built by a program


def test_a_model_built_by_a_program_has_all_attributes(tmp_path: Path) -> None:
    parameter = Layer(0, "x", "Parameter", "opset1", operator=Parameter(shape=ovir.PartialShape([1, 2, 8, -1])))
    parameter.outputs = [Port(parameter, 0, 0, True)]
    pool = Layer(
        3,
        "pool",
        "MaxPool",
        "opset1",
        operator=MaxPool1(strides=(2, 2), kernel=(3, 3), pads_begin=(0, 0), pads_end=(0, 0)),
    )
    pool.inputs, pool.outputs = [Port(pool, 0, 0, False)], [Port(pool, 0, 0, True)]
    result = Layer(5, "y", "Result", "opset1", operator=Result())
    result.inputs = [Port(result, 0, 0, False)]
    model = Model.of_layers([parameter, pool, result], name="built")
    model.connect(parameter.outputs[0], pool.inputs[0])
    model.connect(pool.outputs[0], result.inputs[0])
    again, text, _ = saved(model, tmp_path)
    assert '<data shape="1,2,8,?" element_type="dynamic" />' in text
    assert all(item in text for item in ('strides="2, 2"', 'kernel="3, 3"', 'auto_pad="explicit"'))
    assert '<edge from-layer="3" from-port="1" to-layer="5" to-port="0" />' in text
    assert str(again.outputs[0].shape) == "[1,2,3,1..]"


# --------------------------------------------------------------------------- names


def named(names: set[str], layer: str = "y") -> Model:
    """Return a model whose layer, and whose output with its Result, have other names."""
    net = Net()
    net.result(net.op("relu", net.parameter("x", "?,2"), name="y"))
    model = net.model()
    model.name = layer
    model.rename_layers({"y": layer})
    model.layer(layer).outputs[0].names = frozenset(names)
    model.outputs[0].names = frozenset({"one", "t,wo"})
    model.reshape([4, 2])
    return model


@pytest.mark.parametrize("name", ['a"b', "<a>&b", "tab\tline\nend", "ein Übel", "日本", " a ", "a/b:0;1"])
def test_names_of_layers_tensors_and_models_are_escaped(name: str, tmp_path: Path) -> None:
    """Names may have commas and backslashes. The type of an operation is written in its usual spelling, and shapes as
    they were inferred last."""
    names = {name, "a,b", ",", "c\\d", "e\\,f", "龍\\"}  # the last one may end in a backslash
    again, text, _ = saved(named(names, name), tmp_path)
    assert (again.name, again.layer(name).outputs[0].names) == (name, names)
    assert again.outputs[0].names == {*names, "one", "t,wo"}
    assert 'type="Result" version="opset1" output_names="one,t\\,wo">' in text
    assert 'type="ReLU"' in text
    assert '<data shape="4,2" element_type="f32" />' in text
    assert (str(again.outputs[0].declared_shape), ovir.check(tmp_path / "saved.xml")) == ("[4,2]", [])


RT_INFO = """\t<rt_info>
\t\t<a x="1">
\t\t\t<b>
\t\t\t\t<c value="&lt;" />
\t\t\t\t<d />
\t\t\t</b>
\t\t\t<e />
\t\t</a>
\t\t<f />
\t</rt_info>
"""


def test_nested_runtime_information_is_indented(tmp_path: Path) -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2")))
    flat = "".join(line.strip() for line in RT_INFO.splitlines())
    text = net.xml().replace("<rt_info/>", "").replace("</net>", f"{flat}</net>")
    _, written, _ = saved(ovir.read_model(text.encode(), b""), tmp_path)
    assert written.endswith(f"{RT_INFO}</net>\n")


def test_attributes_of_a_program_that_no_operation_declares(tmp_path: Path) -> None:
    x = ops.parameter([2], "f32", name="x")
    y, c = ops.relu(x), ops.constant(np.float32([1, 2]))
    for layer in (y, c):
        layer.attributes = {**layer.attributes, "yes": True, "no": False, "list": [1, 2.5, "a"], "text": 'a"b'}
    ovir.save_model(Model([ops.add(y, c)], [x]), tmp_path / "a.xml")
    text = (tmp_path / "a.xml").read_text()
    assert '<data yes="true" no="false" list="1, 2.5, a" text="a&quot;b" />' in text
    assert '<data element_type="f32" shape="2" offset="0" size="8" ' in text


def boxes(*shape: object) -> Model:
    """The boxes that a suppression leaves, whose number has a bound, and how many these are."""
    net = Net()
    sizes = ",".join(map(str, shape))
    found = net.op(
        "NonMaxSuppression",
        net.parameter("boxes", f"{sizes},4"),
        net.parameter("scores", f"{shape[0]},1,{shape[1]}"),
        net.const(np.int64(5)),
        opset=5,
        outputs=3,
    )
    net.result(found)
    return net.model()


def unary(shape: str, kind: str, **attributes: Any) -> Model:
    net = Net()
    net.result(net.op(kind, net.parameter("x", shape), **attributes))
    return net.model()


@pytest.mark.parametrize(
    ("make", "messages"),
    [
        (lambda: unary("2,3", "ReLU"), []),
        (lambda: unary("1..4,3", "ReLU"), ["this input has the shape [1..4,3]"]),
        (lambda: unary("?,3", "ReLU"), ["this input has the shape [?,3]"]),
        (lambda: unary("...", "ReLU"), ["this input has the shape [...]"]),
        (lambda: unary("2,3", "NonZero", opset=3), ["this layer gives the shape [2,..6]"]),
        (lambda: boxes(1, 9), []),
    ],
)  # fmt: skip
def test_what_files_of_version_10_can_hold(make: Any, messages: list[str], tmp_path: Path) -> None:
    """Exact sizes, apart from those of a suppression, of which the upper bound is written."""
    if not messages:
        ovir.save_model(make(), tmp_path / "a.xml", version=10)
        text = (tmp_path / "a.xml").read_text()
        assert 'version="10"' in text
        assert "<dim>-1</dim>" not in text
        return
    with pytest.raises(ovir.ModelError) as caught:
        ovir.save_model(make(), tmp_path / "a.xml", version=10)
    expected = [f"a file of version 10 holds exact sizes only, and {message}" for message in messages]
    assert [d.message for d in caught.value.diagnostics] == expected


def without_source(model: Model) -> Model:
    model.disconnect(model.layer("y").inputs[0])
    return model


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: named({"a\\", "b"}), "cannot be distinguished in a file"),
        (lambda: named({"", "b"}), "cannot be distinguished in a file"),
        (lambda: named({"y"}, "a\x01b"), r"has the character U\+0001, which XML cannot hold"),
        (lambda: without_source(named({"y"})), "input port 0"),
        (lambda: 3, r"expected a Model or the path of an \.xml, got int"),
    ],
)
def test_what_cannot_be_saved_writes_nothing(make: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ovir.OvirError, match=message):
        ovir.save_model(make(), tmp_path / "a.xml")
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------------------- versions


def test_version_10_is_upgraded_to_what_openvino_makes_of_it(tmp_path: Path) -> None:
    net = Net(version=10)
    x = net.op("Parameter", name="x", shape="2", element_type="f16")
    net.result(net.op("Convert", x, name="y", destination_type="i64"))
    model = net.model()
    again, text, _ = saved(model, tmp_path)
    assert '<net name="test" version="11">' in text
    assert [str(port.type) for port in (*again.inputs, *again.outputs)] == ["f32[2]", "i32[2]"]
    legacy = ovir.read_model(net.xml().encode(), bytes(net.blob), legacy_io=True)
    assert [port.names for port in again.outputs] == [port.names for port in legacy.outputs]
    assert str(model.inputs[0].type) == "f16[2]"  # the model itself is as it was
    assert described(saved(legacy, tmp_path)[0]) == described(again)


def test_pre_processing_becomes_part_of_the_model(tmp_path: Path) -> None:
    channels = "".join(f'<channel id="{i}"><mean value="{i + 0.5}"/></channel>' for i in range(2))
    net = Net(version=10)
    net.result(net.parameter("x", "1,2,1,1"))
    text = net.xml().replace("</net>", f'<pre-process reference-layer-name="x">{channels}</pre-process></net>')
    again, text, data = saved(ovir.read_model(text.encode()), tmp_path)
    assert "pre-process" not in text
    assert data == np.float32([0.5, 1.5]).tobytes()
    result = ovir.compile_model(again)([np.zeros((1, 2, 1, 1), np.float32)])[0]
    assert result.ravel().tolist() == [-0.5, -1.5]


def test_the_runtime_information_of_version_10_gets_its_present_names(tmp_path: Path) -> None:
    net = Net(version=10)
    net.result(net.parameter("x", "1"))
    info = '<meta_data><MO_version value="2021"/><cli_parameters><a value="1"/></cli_parameters></meta_data>'
    again, _, _ = saved(ovir.read_model(net.xml().replace("<rt_info/>", info).encode()), tmp_path)
    assert again.rt_info.to_dict() == {"MO_version": "2021", "conversion_parameters": {"a": "1"}}


QUANTIZED = '<quantization_parameters><config>{\n\t"a": 1\n}</config><version value="1.0"/></quantization_parameters>'


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("meta", ['<meta_data>\n<MO_version value="2021"/>\n</meta_data>', ""])
def test_parameters_of_a_quantization_become_runtime_information(version: int, meta: str, tmp_path: Path) -> None:
    """OpenVINO reads a file in this way and writes what this test expects."""
    net = Net(version=version)
    net.result(net.parameter("x", "1"))
    model = ovir.read_model(net.xml().replace("<rt_info/>", meta + QUANTIZED).encode())
    again, text, _ = saved(model, tmp_path)
    expected: dict[str, Any] = {"optimization": {"config": '{\t"a": 1}', "version": "1.0"}}
    assert again.rt_info.to_dict() == expected | ({"MO_version": "2021"} if meta else {})
    with_meta = net.xml().replace("<rt_info/>", (meta or "<meta_data/>") + QUANTIZED)
    assert model.rt_info == ovir.read_model(with_meta.encode()).rt_info
    assert '<config value="{&#9;&quot;a&quot;: 1}" />' in text
    assert [change for change in ovir.diff(model, again).model if change.what == "rt_info"] == []
    beside = net.xml().replace("<rt_info/>", '<rt_info><a value="1"/></rt_info>' + QUANTIZED)
    assert version == 10 or ovir.read_model(beside.encode()).rt_info.to_dict() == {"a": "1"}


# --------------------------------------------------------------------------- arguments


def test_a_path_can_be_saved(tmp_path: Path) -> None:
    net = Net()
    net.result(net.parameter("x", "2"))
    path = net.write(tmp_path)
    assert ovir.save_model(path, str(tmp_path / "copy.xml")) == []
    assert described(ovir.read_model(tmp_path / "copy.xml")) == described(ovir.read_model(path))


def require_equal_runs(model: Model, again: Model) -> None:
    feeds = ovir.random_inputs(model, seed=0)
    results = [ovir.compile_model(one)(feeds)[0].tolist() for one in (model, again)]
    assert results[0] == results[1]


def test_a_loop(tmp_path: Path) -> None:
    model = ovir.read_model(LOOP, BIN)
    again, text, _ = saved(model, tmp_path)
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
    require_equal_runs(model, again)


def test_a_tensor_iterator(tmp_path: Path) -> None:
    model = ovir.read_model(PAIRS)
    again, text, _ = saved(model, tmp_path)
    slicing = 'start="0" end="-1" stride="1" part_size="1"'
    assert f'<input axis="0" external_port_id="1" internal_layer_id="1" {slicing} />' in text
    assert f'<output axis="0" external_port_id="2" internal_layer_id="3" {slicing} />' in text
    assert text.index("<port_map>") < text.index("<input>", text.index("<port_map>")) < text.index("<body>")
    require_equal_runs(model, again)


def with_if() -> Model:
    """If the condition holds, the sum of x and a constant, else their product."""

    def of_constant(function: Any, name: str) -> Any:
        return lambda x: function(x, ops.constant(np.float32([2, 2, 2]), name=name))

    x, condition = ops.parameter("...", "f32", name="x"), ops.parameter([], "boolean", name="condition")
    layer = choice(condition, of_constant(ops.add, "then/c"), of_constant(ops.multiply, "else/c"), x)
    layer.name = "if"
    model = Model([layer], [condition, x])
    model.reshape({"x": [3]})
    return model


@pytest.mark.parametrize("half", [False, True])
def test_an_if(half: bool, tmp_path: Path) -> None:
    model = with_if()
    again, text, _ = saved(model, tmp_path, compress_to_fp16=half)
    parts = ["<else_port_map>", "<then_port_map>", "<input>", "<output>", "<then_body>", "<else_body>"]
    start = text.index('type="If"')
    assert [text.index(part, start) for part in parts] == sorted(text.index(part, start) for part in parts)
    for condition, expected in ((True, [3, 4, 5]), (False, [2, 4, 6])):
        feeds = {"condition": np.array(condition), "x": np.float32([1, 2, 3])}
        assert ovir.compile_model(again)(feeds)[0].tolist() == expected
    then = again.layer("if").bodies["then"]
    assert str(then.inputs[0].layer.attributes["shape"]) == "[3]"  # as the If gives it, not as the body declared it
    assert then.layer("then/c").type == ("Convert" if half else "Const")
    assert (tmp_path / "saved.bin").stat().st_size == (6 if half else 12)


def test_an_edit_of_a_body_is_inferred_first(tmp_path: Path) -> None:
    model = with_if()
    body = model.layer("if").bodies["else"]
    body.remove_layer(next(layer for layer in body.layers if layer.type == "Multiply"), bypass=True)
    again, *_ = saved(model, tmp_path)
    feeds = {"condition": np.array(False), "x": np.float32([1, 2, 3])}
    assert ovir.compile_model(again)(feeds)[0].tolist() == [1, 2, 3]


def test_a_body_whose_connection_is_not_known_is_an_error(tmp_path: Path) -> None:
    model = with_if()
    model.layer("if").operator.wiring = {}  # type: ignore[union-attr]
    with pytest.raises(ovir.ModelError, match="it is not known how the body 'else' is connected with the layer"):
        ovir.save_model(model, tmp_path / "a.xml")
    assert list(tmp_path.iterdir()) == []


ABOUT_THE_FILE = ("OVIR1", "OVIR3", "OVIR402", "OVIR403", "OVIR404", "OVIR405", "OVIR406", "OVIR407", "OVIR509")
"""The beginnings of codes that say that a file contradicts itself or the specification of the format."""


@pytest.mark.slow
@given(models())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_models_are_the_same_after_a_round_trip(model: ovir.Model) -> None:
    with tempfile.TemporaryDirectory() as name:
        one, two = Path(name) / "one.xml", Path(name) / "two.xml"
        assert ovir.save_model(model, one) == []
        again = ovir.read_model(one)
        ovir.save_model(again, two)
        assert one.read_bytes() == two.read_bytes()
        assert one.with_suffix(".bin").read_bytes() == two.with_suffix(".bin").read_bytes()
        assert [d for d in ovir.check(one) if d.code.startswith(ABOUT_THE_FILE)] == []
    assert _operations(again) == _operations(model)
    feeds = dict(ovir.random_inputs(model, seed=0))
    assert _results(again, feeds) == _results(model, feeds)


def _operations(model: ovir.Model) -> list[object]:
    found: list[object] = [model.name]
    for layer in model.walk():
        op = layer.operator
        skipped = ("offset", "size") if layer.type == "Const" else ("shape",) if layer.scope else ()
        attributes = (
            {} if op is None else {field: repr(getattr(op, field)) for field in op.fields if field not in skipped}
        )
        sources = [(port.source.layer.name, port.source.index) for port in layer.inputs if port.source is not None]
        ports = [(str(port.type), sorted(port.own_names)) for port in layer.outputs]
        found.append((layer.key, layer.id, layer.type, op and op.opset, attributes, sources, ports))
    return found


def _results(model: ovir.Model, feeds: dict[str, Any]) -> list[object]:
    try:
        return [(str(array.dtype), array.shape, array.tobytes()) for array in ovir.compile_model(model)(feeds).values()]
    except ovir.OvirError as error:
        return [error.diagnostic.message]
