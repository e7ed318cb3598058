"""Port maps and back edges: what is reported for names, numbers and parts that cannot be, or that mean nothing."""

import pytest
from support.port_maps import BIN, LOOP, PAIRS

import ovir

CONDITION = '<output external_port_id="-1" internal_layer_id="5" purpose="execution_condition" />'
NUMBER = '<input external_port_id="-1" internal_layer_id="1" purpose="current_iteration" />'
VALUE = '<input external_port_id="2" internal_layer_id="0" />'
BACK = '<edge from-layer="4" to-layer="0" />'


def reported(text: str, old: str, new: str) -> list[str]:
    """What is found once ``old`` is replaced: severity, code and words, with the hint in brackets."""
    assert old in text
    found = ovir.check(text.replace(old, new), BIN, skip={"OVIR508"})
    return [f"{d.severity} {d.code} {d.message}{f' ({d.hint})' if d.hint else ''}" for d in found if d.code < "OVIR7"]


def test_nothing_is_told_of_the_files_as_they_are() -> None:
    assert reported(LOOP, VALUE, VALUE) == reported(PAIRS, "stride", "stride") == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (VALUE, '<input external_port="2" internal_layer="0" />', [
            "error OVIR110 attribute 'external_port_id' of <input> is missing (perhaps 'external_port' is a misspelling of it)",
            "error OVIR110 attribute 'internal_layer_id' of <input> is missing (perhaps 'internal_layer' is a misspelling of it)",
        ]),
        (VALUE, VALUE.replace(" />", ' end="0" />'), ["warning OVIR616 'end' has no effect without 'axis': the whole tensor is used (add 'axis', or remove them)"]),
        (VALUE, VALUE.replace(" />", ' axsi="0" end="nan" />'), ["warning OVIR616 'end' has no effect without 'axis': the whole tensor is used (perhaps 'axsi' is a misspelling of it)"]),
        (VALUE, VALUE.replace(" />", ' axsi="0" />'), ["warning OVIR304 <input> has no attribute 'axsi'; it is ignored (did you mean 'axis'?)"]),
        (VALUE, VALUE.replace(" />", ' internal_port_id="0" />'), []),
        (VALUE, VALUE.replace("2", "-2"), ["error OVIR604 external_port_id -2 is not an input port of the layer, whose ports are [0, 1, 2] (-1 means no port)"]),
        (VALUE, VALUE.replace("2", "NaN"), ["error OVIR111 attribute 'external_port_id' of <input>: 'NaN' is not an integer"]),
        (CONDITION, CONDITION.replace("purpose", "purpse"), ["error OVIR304 <output> has no attribute 'purpse'; it is ignored (did you mean 'purpose'?)"]),
        (CONDITION, CONDITION + CONDITION, ["error OVIR609 a second <output> has the purpose 'execution_condition'"]),
        (NUMBER, NUMBER.replace("input ", "inptu "), [
            "error OVIR607 no <input> of the port map feeds parameter 1 'number' of the body",
            "warning OVIR116 <inptu> is not part of <port_map>; it is ignored (did you mean <input>?)",
        ]),
        (BACK, BACK.replace(" />", ' axis="0" from-port="0" />'), ["warning OVIR304 <edge> has no attribute 'axis'; it is ignored"]),
        (BACK, BACK.replace("from-layer", "from_layer"), ["error OVIR110 attribute 'from-layer' of <edge> is missing (perhaps 'from_layer' is a misspelling of it)"]),
        ("</back_edges>", "</back_edges><back_edges>" + BACK + "</back_edges>", ["warning OVIR117 a second <back_edges> in one layer; it is ignored"]),
        ("<body>", "<body /><body>", ["error OVIR109 <body> of layer 'count' has no <layers>"]),
        ("</body>", "</body><body />", ["warning OVIR117 a second <body> in one layer; it is ignored"]),
    ],
)  # fmt: skip
def test_of_a_loop(old: str, new: str, expected: list[str]) -> None:
    assert reported(LOOP, old, new) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('stride="1" part_size="1" external_port_id="1"', 'stride="1" part_size="9223372036854775807" external_port_id="1"', [
            "error OVIR609 the part_size 9223372036854775807 of input 1 is larger than axis 0 of its shape [4]"
        ]),
        ('part_size="1" external_port_id="2"', 'part_size="0" external_port_id="2"', [
            "error OVIR609 output 2 concatenates parts of part_size 0 along axis 0, but the body's result has length 1 there"
        ]),
        ('part_size="1" external_port_id="2"', 'part_size="-1" external_port_id="2"', [
            "error OVIR609 output 2 concatenates parts of part_size -1 along axis 0, but the body's result has length 1 there"
        ]),
        ('external_port_id="2"', 'purpose="execution_condition" external_port_id="2"', [
            "warning OVIR616 purpose 'execution_condition' has no effect: only a Loop uses it"
        ]),
        ('start="0" end="-1" stride="1" part_size="1" external_port_id="1"', 'start="1e3" external_port_id="1"', [
            "error OVIR111 attribute 'start' of <input>: '1e3' is not an integer"
        ]),
        ('<output axis="0" start="0" end="-1" stride="1"', '<output axis="0" start="0" end="4" stride="1"', []),
        ('<output axis="0" start="0" end="-1" stride="1"', '<output axis="0" start="-1" end="0" stride="-1"', []),
        ('<output axis="0" start="0" end="-1" stride="1"', '<output axis="0" start="4" end="0" stride="-1"', []),
        ('<output axis="0" start="0" end="-1" stride="1"', '<output axis="0" start="-1" end="1" stride="-1"', [
            "warning OVIR617 output 2 has the start -1 and the end 1, which leave out a part of its length 4 along axis 0: OpenVINO's CPU plugin refuses that, or gives wrong results"
        ]),
        ('<output axis="0"', '<output axis="-1"', [
            "warning OVIR305 axis -1 of <output> is negative: in a port map OpenVINO counts from the front only"
        ]),
    ],
)  # fmt: skip
def test_of_a_tensor_iterator(old: str, new: str, expected: list[str]) -> None:
    assert reported(PAIRS, old, new) == expected


BRANCHES = """<net name="n" version="11"><layers>
<layer id="0" name="c" type="Parameter" version="opset1"><data shape="1" element_type="boolean"/>
<output><port id="0" precision="BOOL"><dim>1</dim></port></output></layer>
<layer id="1" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="2" name="choice" type="If" version="opset8">
<input><port id="0"><dim>1</dim></port><port id="1"><dim>2</dim></port></input>
<output><port id="2" precision="FP32"><dim>2</dim></port></output>
<then_port_map>{maps}</then_port_map><else_port_map>{maps}</else_port_map>{more}
<then_body>{body}</then_body><else_body>{body}</else_body></layer>
<layer id="3" name="r" type="Result" version="opset1"><input><port id="0"><dim>2</dim></port></input></layer></layers>
<edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>"""
BODY = """<layers><layer id="0" name="p" type="Parameter" version="opset1"><data shape="2" element_type="{type}"/>
<output><port id="0" precision="{precision}"><dim>2</dim></port></output></layer>
<layer id="1" name="s" type="Sin" version="opset1"><input><port id="0"><dim>2</dim></port></input>
<output><port id="1" precision="{precision}"><dim>2</dim></port></output></layer>
<layer id="2" name="q" type="Result" version="opset1"><input><port id="0"><dim>2</dim></port></input></layer></layers>
<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges>"""
MAPS = '<input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="2"/>'


def branches(
    maps: str = MAPS, more: str = "", element_type: tuple[str, str] = ("f32", "FP32")
) -> list[tuple[str, str]]:
    body = BODY.format(type=element_type[0], precision=element_type[1])
    found = ovir.check(BRANCHES.format(maps=maps, more=more, body=body))
    return [(d.code, d.message) for d in found if d.code < "OVIR7"]


def test_of_an_if() -> None:
    assert branches() == []
    edges = '<back_edges><edge from-layer="2" to-layer="0"/></back_edges>'
    assert branches(more=edges) == [("OVIR616", "a back edge of an If has no effect: its bodies run once")]
    sliced = MAPS.replace("<input", '<input axis="0" start="0"')
    expected = ("OVIR616", "'axis', 'start' have no effect: an If passes whole tensors")
    assert branches(sliced)[0] == expected
    assert set(branches(sliced)) == {expected}


def test_a_type_that_does_not_fit_is_told_with_the_ids_of_the_file() -> None:
    found = branches(element_type=("f16", "FP16"))
    assert found[0] == (
        "OVIR609",
        "input 1 is f32, but parameter 0 of the body, which it feeds, is declared as f16",
    )
