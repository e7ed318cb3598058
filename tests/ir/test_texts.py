"""Layers of equal text are read, and inferred, once: what comes of it is what comes of each layer by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builder import ITERATOR, RELU, RESULT, Net, document, layer_text

import ovir
from ovir.checks.checker import check
from ovir.core.element_types import ElementType
from ovir.diagnostics.collector import Diagnostics
from ovir.graph.layers import Port
from ovir.graph.model import Model
from ovir.ir import source
from ovir.ir.reader import load
from ovir.ir.texts import cut
from ovir.ir.weights import decode

EXAMPLES = Path(__file__).parents[2] / "examples" / "xml"


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
    """All that a model holds, of symbols which are the same."""
    symbols: dict[int, int] = {}

    def port(p: Port) -> tuple[Any, ...]:
        shape, value = p.type.shape, p.type.value
        same = [symbols.setdefault(d.symbol, len(symbols)) for d in shape.dims] if shape.rank is not None else None
        known = None if value is None else (value.lower.tolist(), value.upper.tolist())
        source = None if p.source is None else (p.source.layer.id, p.source.id)
        declared = str(p.declared_shape), str(p.declared_element_type)
        return p.index, p.id, p.line, sorted(p.names), declared, source, str(p.type), same, known, p.rt_info is None

    return [
        (
            *(layer.id, layer.name, layer.type, layer.version, layer.scope, layer.line, layer.data_line, layer.is_dead),
            *(str(layer.attributes), type(layer.operator).__name__, layer.rt_info is None),
            *(
                [port(p) for p in layer.inputs],
                [port(p) for p in layer.outputs],
                list(map(fields, layer.bodies.values())),
            ),
        )
        for layer in model.layers
    ]


def both(monkeypatch: pytest.MonkeyPatch, read: Callable[[], Any]) -> tuple[Any, Any]:
    """What ``read`` gives, and what it gives where no layer has a form."""
    by_text = read()
    monkeypatch.setattr(source, "cut", lambda data: None)
    one_by_one = read()
    monkeypatch.undo()
    return by_text, one_by_one


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.xml")), ids=lambda path: path.stem)
def test_examples(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read() -> Any:
        found = [str(d) for d in check(path)]
        try:
            return found, fields(ovir.read_model(path))
        except ovir.OvirError as error:
            return found, str(error)

    by_text, one_by_one = both(monkeypatch, read)
    assert by_text == one_by_one


def test_equal_layers_are_not_parsed() -> None:
    texts = cut(blocks().xml().encode())
    assert texts is not None
    left_out = [text.name for text in texts.layers if text is not None and text.is_left_out]
    assert {"add1", "back1", "add3", "back3"} <= set(left_out)
    assert "add1" not in texts.rest
    assert texts.rest.count("\n") == blocks().xml().count("\n")


def test_what_differs_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    net = blocks()
    by_text, one_by_one = both(monkeypatch, lambda: fields(net.model()))
    assert by_text == one_by_one
    model = net.model()
    assert [str(model.layer(f"front{i}").outputs[0].shape) for i in range(3)] == ["[2,?]", "[3,?]", "[4,?]"]
    assert model.layer("add2").outputs[0].names == {"sum2", "alias2"}
    x = np.arange(240, dtype=np.float32).reshape(60, 4)
    np.testing.assert_array_equal(ovir.compile_model(model)([x])[0], x + 6)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n", "\r\n"),
        ('name="add2"', 'name="add&amp;2"'),
        ('name="add2"', 'name="add&lt;2"'),
        ('name="add2"', "name='add2'"),
        ('name="add2"', 'name="add\t2"'),
        ('names="sum2,alias2"', 'names="sum&quot;2"'),
        ('name="add2" type', 'name="add2"  type'),
        ('name="add2"', 'name="add2" other="3"'),
        ('<layer id="0"', '<!-- <layer id="9"> --><layer id="0"'),
        ("<layers>", "<layers><!-- </layer> -->"),
        ("<edges>", "<edges>\n"),
        ("</edges>", "<!-- <edge/> --></edges>"),
        ("<rt_info/>", "<rt_info><layers><layer/></layers><edges></edges></rt_info>"),
        ("<edges>", "<?odd <layer ?><edges>"),
        ("</layer>\n", "</layer >\n"),
        ("<edges>", '<edges a="1">'),
        ("<layers>", '<layers a="1">'),
        ("<rt_info/>", "<rt_info/><edges></edges>"),
        ("<rt_info/>", "<rt_info><a><edges></edges></a></rt_info>"),
        ('names="sum2,alias2"', '\tnames="sum2,alias2"'),
        ('names="sum2,alias2"/>', 'names="sum2,alias2"><dim names="a">-1</dim><dim>4</dim></port>'),
        ("<input>", "<rt_info/><input>"),
        ("<input>", "<rt_info><rt_info/></rt_info><input>"),
        ("<input>", '<rt_info a="1"/><rt_info><attribute name="x" value=" names="/></rt_info><input>'),
        ('<net name="', '<net xml:id="a" name="'),
        ("</layer>\n</layers>", "</layer >\n</layers>"),
        ('<layer id="30"', '<layer\nid="30"'),
        ("<input>", "<rt_info><layer /></rt_info><input>"),
        ('<input><port id="0"', '<input><port id="0" x="a names=" y="b"'),
        ("<input>", '<rt_info><attribute name=" value=" version="0"/></rt_info><input>'),
        ("\n<edge from", "\n<!-- one --><edge from"),
    ],
)
def test_other_ways_to_write_it(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net = blocks()
    text = net.xml()
    assert old in text
    content = text.replace(old, new).encode()

    def read() -> Any:
        return [str(d) for d in check(content, bytes(net.blob))], fields(ovir.read_model(content, bytes(net.blob)))

    by_text, one_by_one = both(monkeypatch, read)
    assert by_text == one_by_one


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name="add2"', 'name="add<2"'),
        ('name="add2"', 'name="add\x012"'),
        ('name="add2"', 'name="add&2"'),
        ('name="add2"', 'name="add\uffff"'),
        ('names="sum2,alias2"', 'names="sum<2"'),
        ('name="add2"', 'name="add2" name="twice"'),
        ('name="add2" type="Add"', 'name="add2" type="Ad"'),
        ('name="add2"', 'nam="add2"'),
        ('<layer id="13"', '<layer id="-13"'),
        ('<layer id="13"', '<layer id="99999999999999999999"'),
        ('from-layer="13"', 'from-layer="x"'),
        ('from-layer="13"', 'from-layer="14"'),
        ('offset="52"', 'offset="-52"'),
        ('offset="52"', 'offset="999999"'),
        ('offset="52"', 'offset="99999999999999999999"'),
        ("</layer>\n</layers>", "</layers>"),
        ('offset="52" size="', 'offset=" size="'),
        ("<layer ", "\x0c<layer "),
        ("<layer ", "\x0b<layer "),
        ("\n<edge from", "\n\x01<edge from"),
        ('<?xml version="1.0"?>', '<!DOCTYPE net SYSTEM "a"><?xml version="1.0"?>'),
        ('type="Add"', 'type="if"'),
        ('type="Add"', 'type="tensoriterator"'),
        ('special_zero="false"', 'special_zero="maybe"'),
        ("<input>", "<rt_info><input>"),
        ("<edges>", "<edges/><rt_info><edges>"),
        ('names="sum2,alias2"/>', 'x="a names="junk"b"/>'),
    ],
)
def test_faults(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net = blocks()
    text = net.xml()
    assert old in text, text
    content = text.replace(old, new).encode()
    by_text, one_by_one = both(monkeypatch, lambda: [str(d) for d in check(content, bytes(net.blob))])
    assert by_text == one_by_one
    assert by_text


def test_rt_info_of_a_layer_that_is_left_out() -> None:
    net = blocks()
    for i in range(4):
        at = next(n for n, text in enumerate(net.layers) if f'name="add{i}"' in text)
        info = f'<rt_info><attribute name="fused_names" version="0" value="op{i}"/></rt_info>'
        net.layers[at] = net.layers[at].replace("<input>", f"{info}\n<input>")
    texts = cut(net.xml().encode())
    assert texts is not None
    assert "op3" not in texts.rest
    info = net.model().layer("add3").rt_info
    assert info is not None
    assert dict(info) == {"fused_names": "op3"}


@pytest.mark.parametrize("element_type", ["string", "boolean", "u4", "i4", "u3", "f16", "nf4", "f8e4m3", "i64"])
def test_constants_of_one_form_keep_their_own_data(element_type: str) -> None:
    net = Net()
    blobs = [bytes(3 * [i]) for i in range(4)]
    if element_type == "string":
        blobs = [np.array([1, 0, 1], "<i4").tobytes() + bytes([97 + i]) for i in range(4)]
    shape, size = (
        ("1", len(blobs[0])) if element_type in ("string", "u4", "i4", "u3", "nf4", "f8e4m3", "f16") else ("3", 3)
    )
    if element_type == "i64":
        blobs, size = [np.full(3, i).tobytes() for i in range(4)], 24
    for i, blob in enumerate(blobs):
        offset = str(i * len(blob))
        net.result(net.op("Const", element_type=element_type, shape=shape, offset=offset, size=str(size)))
    by_text = ovir.read_model(net.xml().encode(), b"".join(blobs))
    values = [by_text.layer(f"const{2 * i}").outputs[0].type.constant for i in range(4)]
    expected = [decode(np.frombuffer(b, np.uint8), ElementType.parse(element_type), [int(shape)]) for b in blobs]
    for value, other in zip(values, expected, strict=True):
        assert value is not None
        assert value.tobytes() == other.tobytes() if element_type != "string" else value[0] == other[0]


def test_each_string_constant_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    good = np.array([1, 0, 1], "<i4").tobytes() + b"a"
    broken = np.array([1, 0, 9], "<i4").tobytes() + b"a"
    net = Net()
    for i in range(3):
        net.result(net.op("Const", element_type="string", shape="1", offset=str(13 * i), size="13"))
    content = net.xml().encode()
    by_text, one_by_one = both(monkeypatch, lambda: [str(d) for d in check(content, good + broken + broken)])
    assert by_text == one_by_one
    assert sum("layer 4" in text for text in by_text) == 1


def test_constants_of_one_place_share_their_bytes() -> None:
    net = Net()
    first = net.const(np.arange(3, dtype=np.float32))
    net.layers.append(net.layers[0].replace('id="0"', 'id="1"').replace("const0", "again"))
    net.count += 1
    net.result(net.op("Add", first, (1, 0)))
    diagnostics = Diagnostics()
    document = load(net.xml().encode(), bytes(net.blob), diagnostics)
    assert document is not None
    one, other = (document.model.layer(name).operator for name in ("const0", "again"))
    assert one is not None
    assert other is not None
    assert one.content is other.content


def infos(*texts: str) -> bytes:
    """A chain of ReLU, each with an <rt_info>."""
    layers = [layer_text(i, "ReLU", f"<rt_info>{text}</rt_info>{RELU}") for i, text in enumerate(texts, 1)]
    result = len(texts) + 1
    edges = ["0.0-1.0", *(f"{i}.1-{i + 1}.0" for i in range(1, result))]
    return document(*layers, layer_text(result, "Result", RESULT), edges=" ".join(edges))


@pytest.mark.parametrize(
    "texts",
    [
        ('<attribute name=" value=" version="0"/>', '<attribute name=" value="junk"0"/>'),
        ('<a x="1" name="b value=" y="2"/>', '<a x="1" name="b value="3" x="2"/>'),
        ('<a x="1" value="2"/>', '<a x="1" value="2>"/>'),
        ('"a" value="b"', '"a" value="]]>"'),
        ("<a>" * 300 + "</a>" * 300, "<a>" * 300 + "</a>" * 300),
    ],
)
def test_rt_info_is_looked_at_as_it_stands(texts: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    content = infos(*texts)

    def read() -> Any:
        found = [str(d) for d in check(content)]
        try:
            return found, [
                layer.rt_info.elements for layer in ovir.read_model(content).layers[1:3] if layer.rt_info is not None
            ]
        except ovir.OvirError as error:
            return found, str(error)

    by_text, one_by_one = both(monkeypatch, read)
    assert by_text == one_by_one


def test_a_surplus_output_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three layers of one form, the last is wrong."""
    two = RELU.replace("</output>", '<port id="2" precision="FP32"/></output>')
    layers = [layer_text(i, "ReLU", two) for i in (1, 2, 3)]
    content = document(*layers, layer_text(4, "Result", RESULT), edges="0.0-1.0 1.1-2.0 2.1-3.0 3.2-4.0")
    by_text, one_by_one = both(monkeypatch, lambda: [str(d) for d in check(content)])
    assert by_text == one_by_one
    with pytest.raises(ovir.ModelError, match="output port 2 is read"):
        ovir.read_model(content)


def test_the_offset_is_that_of_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def constant(number: int, elsewhere: int) -> str:
        info = f'<rt_info><data a="1" offset="{elsewhere}"/></rt_info>'
        data = '<data element_type="f32" shape="" offset="0" size="4"/><output><port id="0" precision="FP32"/></output>'
        return layer_text(number, "Const", info + data)

    results = [layer_text(i, "Result", RESULT) for i in (3, 4)]
    content = document(constant(1, 0), constant(2, 4), *results, edges="1.0-3.0 2.0-4.0")
    weights = np.array([1, 2], np.float32).tobytes()
    by_text, one_by_one = both(monkeypatch, lambda: fields(ovir.read_model(content, weights)))
    assert by_text == one_by_one


@pytest.mark.parametrize(
    ("begin", "end"), [("<layers >", "</layer >"), ("<layers>", "</layer >"), ("<layers>", "</layer>")]
)
def test_bodies_in_another_spelling(begin: str, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layers of a body have forms that stand outside, too, and are not to be taken for those of the net."""
    content = document(
        layer_text(1, "ReLU", RELU), layer_text(2, "TensorIterator", ITERATOR), layer_text(3, "ReLU", RELU),
        layer_text(4, "Result", RESULT), edges="0.0-1.0 1.1-2.0 2.1-3.0 3.1-4.0",
    )  # fmt: skip
    text = content.decode().replace("<body><layers>", f"<body>{begin}")
    last = text.rindex("</layer>")
    text = text[:last] + end + text[last + len("</layer>") :]

    by_text, one_by_one = both(monkeypatch, lambda: ([str(d) for d in check(text)], fields(ovir.read_model(text))))
    assert by_text == one_by_one
    assert by_text[0] == []
