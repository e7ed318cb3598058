"""What stands in many layers is parsed once; each layer still has what is its own, however the file is written."""

from typing import Any

import numpy as np
import pytest
from support.builder import ITERATOR, RELU, RESULT, Net, document, layer_text

import ovir
from ovir.core.element_types import ELEMENT_TYPES, ElementType, boolean
from ovir.core.encoding import decode
from ovir.diagnostics.codes import Severity
from ovir.diagnostics.errors import Diagnostics
from ovir.ir.reader import load
from ovir.model import Model


def blocks(count: int = 4, **names: str) -> Net:
    """(x + i) reshaped by another pattern in each block, and cut at another place."""
    net = Net()
    x = net.parameter("data", "?,4")
    for i in range(count):
        x = net.op("Add", x, net.const(np.float32(i)), name=names.get("add", f"add{i}"), names=[f"sum{i},alias{i}"])
        x = net.op("Reshape", x, net.const(np.array([2 + i, -1])), special_zero="false", name=f"front{i}")
        x = net.op("Slice", x, *(net.const(np.array([n])) for n in (0, 2 + i, 1, 0)), opset=8)
        x = net.op("Reshape", x, net.const(np.array([-1, 4])), special_zero="false", name=f"back{i}")
    net.result(x)
    return net


def fields(model: Model) -> list[Any]:
    """All that a file says of the layers of a model, but for the lines."""
    return [
        (
            *(layer.id, layer.name, layer.type, layer.version, layer.attributes, type(layer.operator)),
            *[
                (p.id, p.names, p.declared_shape, p.declared_element_type, p.source and p.source.id, str(p.type))
                for p in (*layer.inputs, *layer.outputs)
            ],
        )
        for layer in model.layers
    ]


def test_what_differs_is_kept() -> None:
    net = blocks()
    model = net.model()
    assert [str(model.layer(f"front{i}").outputs[0].shape) for i in range(3)] == ["[2,?]", "[3,?]", "[4,?]"]
    assert model.layer("add2").outputs[0].names == {"sum2", "alias2"}
    x = np.arange(240, dtype=np.float32).reshape(60, 4)
    np.testing.assert_array_equal(ovir.compile_model(model)([x])[0], x + 6)


def test_equal_layers_share_what_is_read_only() -> None:
    model = blocks().model()
    assert model.layer("front2").attributes == {"special_zero": False}
    assert model.layer("front2").attributes is model.layer("back3").attributes
    assert model.layer("front2").operator is model.layer("back3").operator


def test_parameters_and_layers_with_bodies_have_operators_of_their_own() -> None:
    layers = [layer_text(1, "TensorIterator", ITERATOR), layer_text(2, "TensorIterator", ITERATOR)]
    data = '<data shape="2,4" element_type="f32"/><output><port id="0" precision="FP32"/></output>'
    layers += [layer_text(3, "Parameter", data), *(layer_text(i, "Result", RESULT) for i in (4, 5, 6))]
    model = ovir.read_model(document(*layers, edges="0.0-1.0 1.1-2.0 2.1-4.0 3.0-5.0 0.0-6.0"))
    assert model.layer("n1").operator is not model.layer("n2").operator
    model.reshape({"n0": "3,4"})
    assert [str(port.shape) for port in model.inputs] == ["[3,4]", "[2,4]"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n", "\r\n"),
        ('name="add2"', "name='add2'"),
        ('name="add2"', 'name="add&#50;"'),
        ('name="add2" type', 'name="add2"  type'),
        ('name="add2" type="Add"', 'type="Add" name="add2"'),
        ('names="sum2,alias2"', '\tnames="sum2,alias2"'),
        ('<layer id="0"', '<!-- <layer id="9"> --><layer id="0"'),
        ("<layers>", "<layers><!-- </layer> -->"),
        ("</edges>", "<!-- <edge/> --></edges>"),
        ("\n<edge from", "\n<!-- one --><edge from"),
        ("<edges>", "<?odd <layer ?><edges>"),
        ("</layer>\n", "</layer >\n"),
        ("<edges>", '<edges a="1">'),
        ("<layers>", '<layers a="1">'),
        ('<layer id="30"', '<layer\nid="30"'),
        ("<rt_info/>", "<rt_info><layers><layer/></layers><edges></edges></rt_info>"),
        ("<input>", "<rt_info><layer /></rt_info><input>"),
        ("<input>", '<rt_info><attribute name=" names=" version="0"/></rt_info><input>'),
    ],
)
def test_other_ways_to_write_the_same(old: str, new: str) -> None:
    net = blocks()
    text = net.xml()
    assert old in text
    model = ovir.read_model(text.replace(old, new).encode(), bytes(net.blob))
    assert model.diagnostics == []
    assert fields(model) == fields(net.model())


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        ('name="add2"', 'name="add2" other="3"', ["OVIR304"]),
        ('name="add2" type="Add"', 'name="add2" type="Ad"', ["OVIR201"]),
        ('name="add2"', 'nam="add2"', ["OVIR110"]),
        ('<layer id="13"', '<layer id="-13"', ["OVIR111"]),
        ('<layer id="13"', '<layer id="99999999999999999999"', ["OVIR111"]),
        ('from-layer="13"', 'from-layer="x"', ["OVIR111"]),
        ('from-layer="13" from-port="2"', 'from-layer=" 13" from-port="+2"', []),
        ('offset="52"', 'offset="-52"', ["OVIR303"]),
        ('offset="52"', 'offset="999999"', ["OVIR502"]),
        ('special_zero="false"', 'special_zero="maybe"', ["OVIR302"] * 8),
    ],
)
def test_one_that_is_not_like_the_others(old: str, new: str, codes: list[str]) -> None:
    net = blocks()
    text = net.xml()
    assert old in text, text
    found = ovir.check(text.replace(old, new).encode(), bytes(net.blob))
    assert [d.code for d in found if d.severity is not Severity.INFO] == codes


@pytest.mark.parametrize("kind", [kind for kind in ELEMENT_TYPES if kind.bits], ids=str)
def test_equal_constants_keep_their_own_data(kind: ElementType) -> None:
    net = Net()
    size = -(-3 * kind.bits // 8)
    blobs = [bytes(size * [i % 2 if kind == boolean else i]) for i in range(4)]
    for i in range(4):
        place = {"offset": str(i * size), "size": str(size)}
        net.result(net.op("Const", element_type=str(kind), shape="3", **place))
    model = ovir.read_model(net.xml().encode(), b"".join(blobs))
    for i, blob in enumerate(blobs):
        value = model.layer(f"const{2 * i}").outputs[0].type.constant
        assert value is not None
        assert value.tobytes() == decode(np.frombuffer(blob, np.uint8), kind, [3]).tobytes()


def test_each_string_constant_is_decoded() -> None:
    net = Net()
    blobs = [
        np.array([1, 0, end], "<i4").tobytes() + letter for end, letter in ((1, b"a"), (9, b"a"), (9, b"a"), (1, b"b"))
    ]
    for i in range(4):
        net.result(net.op("Const", element_type="string", shape="1", offset=str(13 * i), size="13"))
    content = net.xml().encode()
    found = [d.layer or "" for d in ovir.check(content, b"".join(blobs))]
    assert [title.split()[1] for title in found] == ["2", "4"]
    model = ovir.read_model(content, (blobs[0] + blobs[3]) * 2)
    assert [port.type.constant.tolist() for port in model.outputs] == [["a"], ["b"]] * 2


def test_constants_of_one_place_share_their_bytes() -> None:
    net = Net()
    first = net.const(np.arange(3, dtype=np.float32))
    net.layers.append(net.layers[0].replace('id="0"', 'id="1"').replace("const0", "again"))
    net.count += 1
    net.result(net.op("Add", first, (1, 0)))
    diagnostics = Diagnostics()
    document = load(net.xml().encode(), bytes(net.blob), Model, diagnostics)
    assert document is not None
    one, other = (document.model.layer(name).operator for name in ("const0", "again"))
    assert one is not None
    assert other is not None
    assert one.constant_data is other.constant_data


def test_a_surplus_output_that_is_read() -> None:
    """Of three equal layers, the last is wrong."""
    two = RELU.replace("</output>", '<port id="2" precision="FP32"/></output>')
    layers = [layer_text(i, "ReLU", two) for i in (1, 2, 3)]
    content = document(*layers, layer_text(4, "Result", RESULT), edges="0.0-1.0 1.1-2.0 2.1-3.0 3.2-4.0")
    with pytest.raises(ovir.ModelError, match="output port 2 is read"):
        ovir.read_model(content)


def test_the_offset_is_that_of_data() -> None:
    def constant(number: int, elsewhere: int) -> str:
        info = f'<rt_info><data a="1" offset="{elsewhere}"/></rt_info>'
        data = '<data element_type="f32" shape="" offset="0" size="4"/><output><port id="0" precision="FP32"/></output>'
        return layer_text(number, "Const", info + data)

    results = [layer_text(i, "Result", RESULT) for i in (3, 4)]
    content = document(constant(1, 0), constant(2, 4), *results, edges="1.0-3.0 2.0-4.0")
    weights = np.array([1, 2], np.float32).tobytes()
    compiled = ovir.compile_model(ovir.read_model(content, weights))
    outputs = compiled([np.zeros((2, 4), np.float32)])
    assert [float(outputs[i]) for i in range(2)] == [1, 1]
