"""Reading: models of good files, and the diagnostics of faults, each on its line."""

import copy
import pickle
import re
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from lxml import etree
from support.builder import RELU, RESULT, Net, add_net, document, layer_text

import ovir
from ovir.checks.recovering import read_recovering
from ovir.cli.main import main
from ovir.diagnostics.codes import Severity
from ovir.graph.connections import MAX_DEPTH
from ovir.ir.elements import line_of
from ovir.ops.base.opsets import NEWEST_OPSET


def small() -> Net:
    """relu(data) on lines of their own."""
    net = Net()
    data = net.parameter("data", "2,?")
    net.result(net.op("ReLU", data, name="relu", names=["a\\,b,c"]), name="out")
    return net


def replaced(old: str, new: str) -> bytes:
    text = small().xml()
    assert old in text
    return text.replace(old, new).encode()


def test_structure() -> None:
    model = small().model()
    relu = model.layer("relu")
    assert (relu.id, relu.type, relu.version) == (1, "ReLU", "opset1")
    assert relu.line == 8
    assert relu.outputs[0].names == {"a,b", "c"}
    assert [port.any_name for port in model.inputs] == ["data"]
    assert str(relu.outputs[0].shape) == "[2,?]"
    assert str(relu.outputs[0].element_type) == "f32"
    assert model.outputs[0].names == {"a,b", "c"}
    assert [layer.name for layer in model.layers] == ["data", "relu", "out"]


def test_graph_is_keyed_by_the_to_port() -> None:
    net = Net()
    data = net.parameter("data", "2")
    net.result(net.op("Multiply", data, data, name="square"))
    graph = net.model().graph
    assert sorted(graph[0][1]) == [0, 1]  # both edges of x * x are there
    assert graph[0][1][1]["from_port"] == 0
    assert graph.nodes[1]["layer"].name == "square"


def test_attributes_are_typed_by_the_operation() -> None:
    net = Net()
    data = net.parameter("data", "3,4")
    gather = net.op("GatherElements", data, net.parameter("i", "3,2", "i64"), opset=6, axis=" 1 ")
    net.result(gather)
    layer = net.model().layers[2]
    assert layer.attributes == {"axis": 1}
    assert layer.operator is not None


INPUT_PORT = '<port id="0" precision="UNSPECIFIED"/>'
EDGE = '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
TO_ITSELF = 'from-layer="1" from-port="1" to-layer="1"'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('id="1" name="relu"', 'name="relu"', r"<layer> 'relu' has no attribute 'id'"),
        ('type="ReLU" version="opset1"', 'type="ReLU"', r"has no attribute 'version'"),
        ('element_type="f32"', 'element_type="fp99"', r"attribute 'element_type': 'fp99' is not an element type"),
        ('shape="2,?"', 'shape="2,-3"', r"attribute 'shape': '-3' is not a dimension"),
        ('shape="2,?"', "", r"Parameter needs the attribute 'shape'"),
        ('type="ReLU" version="opset1"', 'version="opset1"', r"has no attribute 'type'"),
        (EDGE, "", r"no edge leads to input port 0"),
        ('from-layer="0" from-port="0" to-layer="1"', TO_ITSELF, "depend on each other"),
        (INPUT_PORT, '<port id="0" precision="FP33"/>', r"precision 'FP33' is not an element type"),
        (INPUT_PORT, '<port id="0"><dim>-2</dim></port>', r"<dim>: '-2' is not a dimension"),
        ('shape="2,?"', 'shape="2,1_0"', r"'1_0' is not a dimension"),
        ('shape="2,?"', 'shape="2,\u0663"', r"is not a dimension"),
        ('shape="2,?"', f'shape="2,{2**63}"', r"the largest size is 9223372036854775807"),
        (INPUT_PORT, f'<port id="0"><dim>{2**64}</dim></port>', r"the largest size is"),
        ('to-port="0"', f'to-port="{2**64}"', r"outside the range of unsigned 64-bit integers"),
        ('from-layer="0"', 'from-layer="relu"', r"'relu' is not an integer\n  hint: edges use ids; relu is layer 1"),
        ('from-layer="0"', 'from-layer="-1"', r"outside the range of unsigned 64-bit integers"),
        ('<net name="test" version="11">', '<net name="test" version="1_1">', r"version of the <net> .* '1_1' is not"),
    ],
)  # fmt: skip
def test_faults(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.xml"
    path.write_bytes(replaced(old, new))
    with pytest.raises(ovir.OvirError, match=message) as caught:
        ovir.read_model(path)
    assert caught.value.diagnostic.file == str(path)
    assert caught.value.diagnostic.line is not None
    assert 1 <= len(ovir.check(path)) <= small().xml().count(old), "each fault is told once"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"hello world", "this is not XML"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git-LFS pointer"),
        (b'<net version="11">\n<layers>\n', "the file ends before the model does"),
        (b'<net version="11">\n<data axis=1 />\n</net>', r"(?s):2:\d+: .*in quotes"),
        (b'<... type="Gather" ...>', r"(?s):1:2: .*a tag needs a name"),
    ],
)
def test_not_a_model(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.xml"
    path.write_bytes(content)
    for given, expected in (path, message), (tmp_path / "none.xml", "No such file"), (tmp_path, message):
        with pytest.raises(ovir.ReadError, match=expected):
            ovir.read_model(given)


def subtraction() -> Net:
    net = Net()
    net.result(net.op("Subtract", net.parameter("a", "2"), net.parameter("b", "2")))
    return net


def with_attributes(kind: str, opset: int, **attributes: str) -> Net:
    net = Net()
    if kind == "Gather":
        inputs = net.parameter("x", "2,3"), net.const(np.array([0])), net.const(np.int64(0))
    else:
        inputs = net.parameter("x", "1,1,4,4"), net.const(np.ones((1, 1, 2, 2), np.float32))
        attributes |= {"dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    net.result(net.op(kind, *inputs, opset=opset, **attributes))
    return net


def read_often() -> Net:
    net = Net()
    x = net.op("ReLU", net.parameter("a", "2"))
    for _ in range(3):
        net.result(x)
    return net


@pytest.mark.parametrize(
    ("net", "old", "new", "code", "says"),
    [
        (add_net(), ' size="12"', ' sze="12"', "OVIR301", "perhaps 'sze' is a misspelling of it"),
        (add_net(), ' size="12"', "", "OVIR301", "which is missing in <data>\nNone"),
        (add_net(), ' shape="3" offset', ' shape="[3]" offset', "OVIR302", "a list is written without brackets"),
        (subtraction(), 'to-layer="2" to-port="1"', 'to-layer="2" to-port="0"', "OVIR209", "no edge leads to input port 1: perhaps to-port of one of them should be 1"),
        (read_often(), 'from-layer="1"', 'from-layer="9"', "OVIR206", "the edge leads from layer 9, which does not exist"),
        (with_attributes("Gather", 1, batch_dims="0"), "", "", "OVIR304", "Gather of opset7 has it: perhaps the version of the layer is wrong"),
        (small(), 'shape="2,?"', 'shape=" {2,?}"', "OVIR302", "' {2,?}' is not a shape: OpenVINO reads 1,?,2..5"),
        (small(), 'shape="2,?"', 'shape="(2,?)"', "OVIR302", "'(2,?)' is not a shape: OpenVINO reads 1,?,2..5"),
        (small(), 'type="ReLU" version="opset1">', 'type="ReLU" version="opset1"><data slope="3"/>', "OVIR304", "ReLU of opset1 has no attribute 'slope'; it is ignored"),
        (with_attributes("Convolution", 1, strides="2;2"), "", "", "OVIR302", "attribute 'strides': '2;2' is not an integer; the numbers of a list are separated by commas"),
        (with_attributes("Convolution", 1, strides="[2,2]"), "", "", "OVIR302", "attribute 'strides': '[2' is not an integer; a list is written without brackets"),
        (small(), "<layers>", "<layers>" + "\n" * 70_000 + "<strata/>", "OVIR116", "<strata> is not a <layer>; it is ignored"),
    ],
)  # fmt: skip
def test_one_fault_is_one_finding(net: Net, old: str, new: str, code: str, says: str) -> None:
    text = net.xml().replace(old, new)
    (found,) = ovir.check(text, bytes(net.blob))
    assert found.code == code
    assert says in f"{found.message}\n{found.hint}"
    if old == "<layers>":  # beyond line 65535
        assert found.line == 1 + text[: text.index("<strata/>")].count("\n")


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("version", [10, 11])
def test_the_type_of_a_constant_is_its_own(version: int, count: int) -> None:
    """A port of a constant, or of its reader too, declares another type; devices do not look at that."""
    net = Net(version=version)
    axes = net.const(np.array([1]))
    net.result(net.op("LRN", net.parameter("x", "1,3,4,4"), axes, alpha="1", beta="0.75", bias="1", size="5"))
    text = net.declared_xml().replace('precision="I64"', 'precision="FP32"', count)
    assert diagnostics_of(text, bytes(net.blob)) == ["OVIR405"]
    assert [d.code for d in ovir.check(text, need_weights=False) if d.severity is not Severity.INFO] == ["OVIR405"]
    assert diagnostics_of(text) == ["OVIR501", "OVIR405"]


def test_all_errors_are_found_not_the_first() -> None:
    text = replaced('shape="2,?"', 'shape="2,x"').replace(b"</edges>", b'<edge from-layer="7"/></edges>')
    codes = [found.code for found in ovir.check(text) if found.severity is Severity.ERROR]
    assert codes == ["OVIR302", "OVIR110"]


def test_unknown_operation_keeps_its_declared_shape() -> None:
    text = replaced('type="ReLU"', 'type="Sparkle"')
    text = text.replace(
        b'<port id="1" precision="UNSPECIFIED" names="a\\,b,c"/>',
        b'<port id="1" precision="FP16"><dim>2</dim><dim>9</dim></port>',
    )
    model = ovir.read_model(text)
    assert str(model.layer("relu").outputs[0].type) == "f16[2,9]"
    assert [found.code for found in model.diagnostics] == ["OVIR201"]
    with pytest.raises(ovir.RunError, match="Sparkle"):
        ovir.compile_model(model)


def diagnostics_of(text: bytes | str, weights: bytes | None = None) -> list[str]:
    return [found.code for found in ovir.check(text, weights) if found.severity is not Severity.INFO]


def test_an_interval_is_reported_at_each_port() -> None:
    net = Net()
    net.result(net.op("ReLU", net.op("ReLU", net.parameter("x", "2"))))
    model = read_recovering(net.declared_xml().replace("<dim>2</dim>", "<dim>2..3</dim>")).model
    lines = {d.line for d in model.read_diagnostics if "<dim>2..3</dim> is an interval" in d.message}
    assert len(lines) == sum(len(layer.inputs) + len(layer.outputs) for layer in model.layers)


def test_a_parameter_without_a_port_is_the_only_fault() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2,3"), name="relu"))
    text = net.xml()
    begin, end = text.index("<output>"), text.index("</output>") + len("</output>")
    found = read_recovering(text[:begin] + text[end:])
    assert ["the Parameter has no output port" in d.message for d in found.errors] == [True]
    assert str(found.model.layer("relu").outputs[0].type) == "f32[2,3]"


def test_constants_past_the_end_have_one_cause() -> None:
    net = Net()
    x = net.parameter("x", "4")
    for _ in range(8):
        x = net.op("Add", x, net.const(np.ones(4, np.float32)))
    net.result(x)
    (found,) = ovir.check(net.xml(), bytes(net.blob[:20]))
    assert found.code == "OVIR502"
    assert found.message.endswith(": 7 of 8 constants lie past its end")


def not_ascii(declared: str | None) -> str:
    """Return a file with a name that is not ASCII, which declares an encoding or none."""
    declaration = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""
    return declaration + small().xml().partition("?>")[2].replace('name="relu"', 'name="caf\u00e9"')


@pytest.mark.parametrize(
    ("declared", "encoding", "message"),
    [
        (None, "iso-8859-1", "the file declares no encoding, and byte 0xe9 is not UTF-8; it is read as Latin-1"),
        ("utf-8", "iso-8859-1", "the file declares utf-8, and byte 0xe9 is not UTF-8"),
        ("UTF-16", "utf-8", "declares the encoding UTF-16, but its text is UTF-8"),
        ("none-such", "utf-8", "declares the encoding none-such, but its text is UTF"),
    ],
)
def test_texts_in_another_encoding_than_they_declare(declared: str | None, encoding: str, message: str) -> None:
    """OpenVINO reads them, too. The line is that of the byte, or of what is declared."""
    text = not_ascii(declared)
    model = ovir.read_model(text.encode(encoding))
    assert model.layer("caf\u00e9").type == "ReLU"
    (found,) = (d for d in model.diagnostics if d.code == "OVIR121")
    assert message in found.message
    line = text[: text.index("\u00e9")].count("\n") + 1 if encoding == "iso-8859-1" else 1
    assert (found.severity, found.line) == (Severity.WARNING, line)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8", "iso-8859-1"])
def test_texts_in_the_encoding_that_they_declare(encoding: str) -> None:
    assert ovir.read_model(not_ascii(encoding).encode(encoding)).diagnostics == []


def test_a_merge_conflict() -> None:
    text = add_net().xml().replace("<edges>", "<<<<<<< HEAD\n<edges>")
    (found,) = ovir.check(text)
    assert (found.code, found.line) == ("OVIR102", text[: text.index("<<<<<<<")].count("\n") + 1)
    assert found.message == "the file contains a merge conflict of git"


def test_lines_beyond_65535() -> None:
    """libxml2 keeps 16 bits of an element's line, and of longer files the lines of texts."""
    rows = ['<a b="1"/>', "<a>", "  <b/>", "", "  <b>1</b>", "  <b>", "  text", "  </b>", "</a>", "<a><b/></a><c/>", "<a><b>2</b>", "</a>"]  # fmt: skip
    lines = ["<net>", *rows * 8000, "</net>"]
    root = etree.fromstring("\n".join(lines))
    expected = [i for i, line in enumerate(lines, 1) for _ in range(line.count("<") - line.count("</"))]
    assert [line_of(element) for element in root.iter()] == expected


HEAD = '<?xml version="1.0"?>\n<!-- <!DOCTYPE of old>\n<!ENTITY too> -->\n\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
@pytest.mark.parametrize(
    ("doctype", "code", "line"),
    [
        ("<!DOCTYPE net>", "OVIR108", 5),
        ('<!DOCTYPE net\n SYSTEM "ir.dtd">', "OVIR108", 5),
        ('<!DOCTYPE net [\n<!ELEMENT net ANY>\n<!ENTITY a "b">]>', "OVIR107", 7),
    ],
)
def test_declarations(doctype: str, code: str, line: int, encoding: str) -> None:
    head = HEAD.replace("?>", f' encoding="{encoding}"?>', 1)
    text = small().xml().replace('<?xml version="1.0"?>', f"{head}{doctype}")
    assert [(d.code, d.line) for d in ovir.check(text.encode(encoding))] == [(code, line)]


_PORT = '<port id="{}" precision="FP32"><dim>2</dim></port>'
_MAPS = '<input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="2"/>'
_CONDITION = (
    '<layer id="3" name="c" type="Const" version="opset1"><data element_type="boolean" shape="" offset="0" size="1"/>'
    '<output><port id="0" precision="BOOL"/></output></layer>'
)


def _edges(*ends: str) -> str:
    numbers = [end.split() for end in ends]
    return "".join(f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in numbers)


def _around(layer: str, edges: str) -> str:
    """Return a graph of a Parameter, a condition, one layer and a Result."""
    layers = (
        '<layer id="0" name="p" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>'
        f"<output>{_PORT.format(0)}</output></layer>{_CONDITION}{layer}{layer_text(2, 'Result', RESULT)}"
    )
    return f"<layers>\n{layers}\n</layers><edges>{edges}</edges>"


def nested(depth: int) -> bytes:
    """Return a model in which an If is ``depth`` times within an If."""
    innermost = graph = _around(layer_text(1, "ReLU", RELU), _edges("0 0 1 0", "1 1 2 0"))
    for level in range(depth):
        bodies = "".join(
            f"<{name}_port_map>{_MAPS}</{name}_port_map><{name}_body>{body}</{name}_body>"
            for name, body in (("then", graph), ("else", innermost))
        )
        ports = f'<input><port id="0"/>{_PORT.format(1)}</input><output>{_PORT.format(2)}</output>'
        layer = f'<layer id="1" name="f{level}" type="If" version="opset8">{ports}{bodies}</layer>'
        graph = _around(layer, _edges("3 0 1 0", "0 0 1 1", "1 2 2 0"))
    return f'<net name="a" version="11">{graph}</net>'.encode()


ACTIONS: dict[str, Callable[[ovir.Model], object]] = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "pickle a layer": lambda model: pickle.loads(pickle.dumps(model.layers[-1])),
    "clone": lambda model: model.clone(),
    "deepcopy": copy.deepcopy,
    "walk": lambda model: [layer.key for layer in model.walk()],
    "reshape": lambda model: model.reshape([2]),
    "weights": lambda model: model.weights(),
    "show": repr,
    "run": lambda model: ovir.compile_model(model)([np.ones(2, np.float32)]),
}


@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)
def test_bodies_of_the_greatest_depth(action: Callable[[ovir.Model], object]) -> None:
    assert action(ovir.read_model(nested(MAX_DEPTH), b"\1")) is not NotImplemented


@pytest.mark.slow
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100, 400])
def test_bodies_that_are_nested_too_deeply(depth: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.xml"
    path.write_bytes(nested(depth))
    path.with_suffix(".bin").write_bytes(b"\1")
    with pytest.raises(ovir.ModelError, match=f"bodies are nested more than {MAX_DEPTH} deep") as caught:
        ovir.read_model(path)
    assert caught.value.diagnostic.line
    for command in ("check", "infer", "show", "run"):
        assert main([command, str(path)]) in (1, 2)
    assert "Traceback" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("depth", [1000, 2000])
@pytest.mark.parametrize("place", ["<rt_info>", "<input>"])
def test_elements_within_elements(depth: int, place: str) -> None:
    layers = layer_text(1, "ReLU", RELU), layer_text(2, "Result", RESULT)
    text = document(*layers, edges="0.0-1.0 1.1-2.0").replace(b"</net>", b"<rt_info></rt_info></net>")
    deep = "<a>" * depth + "</a>" * depth
    model = ovir.read_model(text.replace(place.encode(), f"{place}{deep}".encode(), 1))
    copied = pickle.loads(pickle.dumps(model.clone()))
    assert str(copied.rt_info) == str(model.rt_info)
    assert len(ovir.compile_model(copied)([np.ones((2, 4), np.float32)])) == 1


@pytest.mark.slow
@pytest.mark.parametrize("action", [ovir.Model.infer_shapes, ovir.compile_model, lambda model: model.reshape([3]), pickle.dumps], ids=["infer", "compile", "reshape", "pickle"])  # fmt: skip
def test_bodies_that_are_nested_in_memory_have_the_same_limit(action: Callable[[ovir.Model], object]) -> None:
    """A model built layer by layer can have more levels than any file that is read."""
    model = ovir.read_model(nested(1), b"\1")
    for _ in range(150):
        outer = ovir.read_model(nested(1), b"\1")
        holder = next(layer for layer in outer.layers if layer.bodies)
        holder.bodies[next(iter(holder.bodies))] = model
        model = outer
    with pytest.raises(ovir.ModelError, match=f"bodies are nested more than {MAX_DEPTH} deep"):
        action(model)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("where", ["<net ", "<layers", "<layer ", "<data ", "<rt_info", "<edges", "<edge "])
def test_default_namespaces_say_nothing(where: str, encoding: str) -> None:
    """OpenVINO finds elements by their names as they are written."""
    net = small()
    net.result(net.op("ReduceSum", net.parameter("x", "2,3"), net.const([1]), keep_dims="true", name="sum"))
    text = net.xml().replace("<data ", '<rt_info a:b="1"><attribute name="kept" value="1"/></rt_info><data ', 1)
    text = re.sub(r"<\?xml.*?\?>", "", text).replace("<net ", '<net xmlns:a="urn:a" ', 1)
    named = text.replace(where, f'{where.rstrip()} xmlns="urn:names" ')
    assert named != text
    plain, model = (ovir.read_model(xml.encode(encoding), weights=bytes(net.blob)) for xml in (text, named))
    assert ovir.diff(plain, model).is_equal
    assert model.layers[0].rt_info == plain.layers[0].rt_info
    assert not ovir.check(named.encode(encoding), bytes(net.blob))


def test_a_second_layer_of_an_id_is_left_out_if_edges_name_no_other() -> None:
    layer = '<layer id="0" name="again" type="Parameter" version="opset1"><data shape="1" element_type="f32"/></layer>'
    (found,) = [x for x in ovir.check(replaced("</layers>", f"{layer}</layers>")) if x.code == "OVIR204"]
    assert (found.layer, found.hint) == ("layer 0 'again' (Parameter, opset1)", None)


def test_elements_with_a_prefix_are_others() -> None:
    text = replaced("<net ", '<net xmlns:a="urn:a" ').replace(b"layers>", b"a:layers>")
    assert {found.code for found in ovir.check(text)} == {"OVIR109"}


def test_shapes_repair_a_file_that_does_not_fit_its_own() -> None:
    net = Net()
    x = net.parameter("x", "1,3,1,1")
    pooled = net.op("MaxPool", x, strides="2,2", pads_begin="0,0", pads_end="0,0", kernel="2,2")
    net.result(pooled)
    with pytest.raises(ovir.ModelError, match="the window is too large"):
        net.model()
    for shapes in (
        {"x": [1, 3, 8, 8]},
        "1,3,8,8",
        lambda model: {0: [1, 3, 8, 8]},
    ):
        model = ovir.read_model(net.xml().encode(), shapes=shapes)
        assert str(model.outputs[0].shape) == "[1,3,4,4]"
        assert not model.diagnostics
    with pytest.raises(ovir.InputError, match="nothing"):
        ovir.read_model(net.xml().encode(), shapes={"nothing": [1]})
    with pytest.raises(ovir.ModelError, match="the window is too large"):
        ovir.read_model(net.xml().encode(), shapes={"x": [1, 3, 8, 1]})


def test_an_id_that_another_layer_has_is_recognized_by_the_order_of_the_file() -> None:
    net = Net()
    x = net.parameter("x", "2")
    for _ in range(5):
        x = net.op("ReLU", x)
    net.result(x)
    for number, other in permutations(range(1, 6), 2):
        before, start, after = net.xml().partition(f'<layer id="{number}" ')
        diagnostics = ovir.check(before + start.replace(str(number), str(other)) + after, bytes(net.blob))
        hint = f"edges name a layer {number}, which does not exist: perhaps this layer is meant"
        line = before.count("\n") + 1
        assert [(d.line, d.hint) for d in diagnostics if d.code == "OVIR204"] == [(line, hint)], (number, other)


KNOWN = f"known are opset1 to opset{NEWEST_OPSET}, and 'extension'"
DECLARED = "but no such operation is registered; inference continues with the declared types"
UNDECLARED = "but no such operation is registered; their outputs are not all declared"


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ("Mine.extension.FP32", [f"info 1 layer needs a user's extension (Mine), {DECLARED}"]),
        ("Mine.extension.FP32 Yours.Extension.FP32 Mine.extension.FP32", [f"info 3 layers need a user's extension (Mine, Yours), {DECLARED}"]),
        ("Mine.extension.FP32 Mine.extension.UNSPECIFIED", [f"error 2 layers need a user's extension (Mine), {UNDECLARED}"]),
        ("Mine.extension.", [f"error 1 layer needs a user's extension (Mine), {UNDECLARED}"]),
        ("RaggedToSparse.extension.FP32", [f"info 1 layer needs openvino_tokenizers (RaggedToSparse), {DECLARED}"]),
        ("Mine.v1.FP32", [f"error 'v1' is not an opset: {KNOWN}; 1 layer seems to need a user's extension (Mine), which is not registered"]),
        ("RaggedToSparse.v1.FP32 Mine.v2.FP32", [f"error 'v1' and 'v2' are not opsets: {KNOWN}; 2 layers seem to need openvino_tokenizers (RaggedToSparse) and a user's extension (Mine), which is not registered"]),
        ("Mine.extension.FP32 Mine.v1.FP32", [f"info 1 layer needs a user's extension (Mine), {DECLARED}", f"error 'v1' is not an opset: {KNOWN}; 1 layer seems to need a user's extension (Mine), which is not registered"]),
    ],
)  # fmt: skip
def test_layers_of_extensions_that_are_not_registered(layers: str, expected: list[str]) -> None:
    texts = []
    for number, layer in enumerate(layers.split(), 1):
        kind, version, precision = layer.split(".")
        output = f'<output><port id="0" precision="{precision}"/></output>' if precision else ""
        texts.append(layer_text(number, kind, output).replace("opset1", version))
    found = [d for d in ovir.check(document(*texts)) if d.code in ("OVIR221", "OVIR202")]
    assert [f"{d.severity} {d.message}" for d in found] == expected


@pytest.mark.parametrize("kind", ["input", "output"])
def test_the_kind_of_a_port_whose_id_is_taken_is_named(kind: str) -> None:
    ports = f'<{kind}><port id="0" precision="FP32"/><port id="7" precision="FP32"/><port id="7" precision="FP32"/></{kind}>'
    found = [d for d in ovir.check(document(layer_text(1, "Concat", ports))) if d.code == "OVIR205"]
    assert [(d.message, d.port) for d in found] == [(f"a second {kind} port has the id 7", 7)]


TWO = '<input><port id="0" precision="FP32"/><port id="1" precision="FP32"/></input><output><port id="2" precision="FP32"/></output>'
SECOND = "error OVIR209 layer 3 'n3' (Add, opset1): a second edge into port {}; the other comes from layer 0 'n0' (Parameter, opset1)"


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ("0.0-1.0 0.0-2.0 0.0-3.0 1.1-3.1 3.2-4.0", []),
        ("0.0-1.0 0.0-2.0 0.0-3.0 2.1-3.0 1.1-3.1 3.2-4.0", [SECOND.format(0)]),
        ("0.0-1.0 0.0-2.0 0.0-3.0 1.1-3.0 2.1-3.0 1.1-3.1 3.2-4.0", [SECOND.format(0) + "; 1 more follows"]),
        ("0.0-1.0 0.0-2.0 0.0-3.0 1.1-3.0 1.1-3.0 1.1-3.0 1.1-3.1 3.2-4.0", [SECOND.format(0) + "; 2 more follow"]),
        ("0.0-1.0 0.0-2.0 0.0-3.0 1.1-3.1 0.0-3.0 1.1-3.1 3.2-4.0", [SECOND.format(0), SECOND.format(1).replace("0 'n0' (Parameter", "1 'n1' (ReLU")]),
        ("0.0-1.0 0.0-2.0 0.0-3.0 1.1-3.0 3.2-4.0", [SECOND.format(0) + "\n  hint: no edge leads to input port 1: perhaps to-port of one of them should be 1"]),
        ("0.0-1.0 0.0-2.0 0.0-3.0 3.2-4.0", ["error OVIR210 layer 3 'n3' (Add, opset1): no edge leads to input port 1"]),
        ("0.0-1.0 0.0-2.0 0.0-3.0 1.1-9.0 3.2-4.0", ["error OVIR207 the edge leads to layer 9, which does not exist\n  hint: no edge leads to input port 1 of layer 3 'n3' (Add, opset1): perhaps this edge should"]),
        ("0.0-1.0 0.0-2.0 0.0-3.0 1.1-3.1 1.1-9.0 3.2-4.0", ["warning OVIR207 the edge leads to layer 9, which does not exist; it is ignored"]),
        ("0.0-1.0 0.0-2.0 0.0-3.0 9.0-3.1 3.2-4.0", ["error OVIR206 layer 3 'n3' (Add, opset1): the edge leads from layer 9, which does not exist"]),
        ("0.0-1.0 0.0-2.0 0.0-3.0 9.0-3.1 9.1-4.0", ["error OVIR206 layer 3 'n3' (Add, opset1): the edge leads from layer 9, which does not exist"]),
        ("0.0-1.0 0.0-2.0 0.0-3.0 1.5-3.1 3.2-4.0", ["error OVIR208 layer 1 'n1' (ReLU, opset1): the edge names output port 5, but the output ports of the layer are [1]"]),
        ("0.0-1.0 0.0-2.0 0.0-3.0 1.1-3.7 3.2-4.0", ["error OVIR208 layer 3 'n3' (Add, opset1): the edge names input port 7, but the input ports of the layer are [0, 1]"]),
        ("0.0-1.0 0.0-2.0 0.0-3.0 1.5-3.1 1.5-2.0 3.2-4.0", ["error OVIR208 layer 1 'n1' (ReLU, opset1): the edge names output port 5, but the output ports of the layer are [1]"]),
    ],
)  # fmt: skip
def test_edges_that_lead_nowhere_or_twice(edges: str, expected: list[str]) -> None:
    """Each fault is one diagnostic, with what it may have been meant for."""
    layers = [
        layer_text(1, "ReLU", RELU),
        layer_text(2, "ReLU", RELU),
        layer_text(3, "Add", TWO),
        layer_text(4, "Result", RESULT),
    ]
    found = [d for d in ovir.check(document(*layers, edges=edges)) if d.code < "OVIR211"]
    hints = [f"\n  hint: {d.hint}" if d.hint else "" for d in found]
    heads = [f"{d.layer}: " if d.layer else "" for d in found]
    assert [
        f"{d.severity} {d.code} {head}{d.message}{hint}" for d, head, hint in zip(found, heads, hints, strict=True)
    ] == expected


@pytest.mark.parametrize(("count", "listed"), [(20, ""), (21, ", and 1 more"), (23, ", and 3 more")])
def test_some_of_many_ports_are_listed(count: int, listed: str) -> None:
    ports = "".join(f'<port id="{number}" precision="FP32"/>' for number in range(count))
    text = document(layer_text(1, "Concat", f"<input>{ports}</input>"), edges="0.0-1.99")
    messages = [d.message for d in ovir.check(text) if d.code == "OVIR208"]
    shown = ", ".join(map(str, range(20)))
    assert messages == [f"the edge names input port 99, but the input ports of the layer are [{shown}{listed}]"]
