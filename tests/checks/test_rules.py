"""Rules and consequences: what is reported once, and summed up, where files are wrong in several ways."""

import re

import numpy as np
import pytest
from support.builder import ITERATOR, RELU, RESULT, Net, document, layer_text

import ovir


def codes(net: Net) -> dict[str, str]:
    return {d.code: d.message for d in ovir.check(net.xml(), bytes(net.blob))}


@pytest.mark.parametrize(("opset", "batch_dims", "code"), [(8, "x", "OVIR302"), (99, "1", "OVIR202")])
def test_indices_of_an_operation_that_cannot_be_read(opset: int, batch_dims: str, code: str) -> None:
    net = Net()
    indices = net.const(np.array([[7]]))
    net.result(net.op("GatherND", net.parameter("data", "2,3"), indices, opset=opset, batch_dims=batch_dims))
    assert codes(net).keys() == {code}


@pytest.mark.parametrize(
    ("kind", "opset", "code"),
    [
        ("ScatterUpdate", 3, "OVIR511"),
        ("ScatterElementsUpdate", 3, "OVIR703"),
        ("ScatterElementsUpdate", 12, None),
        ("GatherND", 5, "OVIR703"),
        ("GatherND", 8, None),
    ],
)
def test_negative_indices(kind: str, opset: int, code: str | None) -> None:
    net = Net()
    data, indices = net.parameter("data", "4"), net.const(np.array([-1] if "Scatter" in kind else [[-1]]))
    more = (net.parameter("updates", "1"), net.const(np.int64(0))) if "Scatter" in kind else ()
    net.result(net.op(kind, data, indices, *more, opset=opset))
    assert codes(net).keys() == ({code} if code else set())


@pytest.mark.parametrize("bits", [np.uint16([0x7D00]), np.uint32([0x7FA00000]), np.uint64([0x7FF4000000000000])])
def test_signaling_nan_is_reported_without_a_warning_of_numpy(bits: np.ndarray) -> None:
    net = Net()
    net.result(net.op("ReLU", net.const(np.tile(bits, 9).view(f"f{bits.itemsize}"))))
    assert "OVIR510" in codes(net)


@pytest.mark.parametrize(("rows", "expected"), [(4, {"OVIR518"}), (5, {"OVIR401"})])
def test_zeros_of_a_product_that_cannot_be_computed(rows: int, expected: set[str]) -> None:
    net = Net()
    net.result(net.op("MatMul", net.parameter("data", "2,4"), net.const(np.zeros((rows, 3), np.float32))))
    assert codes(net).keys() == expected


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ('names="relu1"', 'name="relu1"', "<port> has no attribute 'name'; it is ignored", "did you mean 'names'?"),
        ('type="ReLU"', 'type="ReLU" color="1"', "<layer> has no attribute 'color'; it is ignored", None),
        ('type="ReLU"', 'type="ReLU" xml:lang="en"', None, None),
    ],
)
def test_unknown_attributes_of_layers_and_ports(old: str, new: str, message: str | None, hint: str | None) -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("data", "4")))
    text = net.xml()
    assert old in text
    found = [(d.code, d.message, d.hint) for d in ovir.check(text.replace(old, new), bytes(net.blob))]
    assert found == ([("OVIR304", message, hint)] if message else [])


_CLUSTERED = 'width="2" height="3" step_h="0" step_w="0" offset="0.5" variance="0.1"'


@pytest.mark.parametrize(
    ("kind", "data", "name", "hint"),
    [
        ("PriorBoxClustered", f'{_CLUSTERED} clip="0" flip="1"', "flip", "the Model Optimizer wrote it into old files; it has no effect"),
        ("PriorBoxClustered", f'{_CLUSTERED} flip="1"', "flip", "the Model Optimizer wrote it into old files; it has no effect"),
        ("PriorBoxClustered", f'{_CLUSTERED} klip="1"', "klip", "did you mean 'clip'?"),
        ("PriorBoxClustered", f'{_CLUSTERED} clip="0" klip="1"', "klip", None),
        ("PriorBoxClustered", f'{_CLUSTERED} img_w="0"', "img_w", "the Model Optimizer wrote it into old files; it has no effect"),
    ],
)  # fmt: skip
def test_an_attribute_that_the_layer_has_is_not_proposed(kind: str, data: str, name: str, hint: str | None) -> None:
    net = Net()
    net.result(net.op(kind, net.const(np.int64([2, 2])), net.const(np.int64([8, 8])), _="_"))
    text = net.xml()
    assert '_="_"' in text
    (found,) = [d for d in ovir.check(text.replace('_="_"', data), bytes(net.blob)) if d.code == "OVIR304"]
    assert (found.message, found.hint) == (f"{kind} of opset1 has no attribute '{name}'; it is ignored", hint)


def test_no_elements_along_huge_axes() -> None:
    """NumPy has no array of such a shape, though it would be empty."""
    net = Net()
    data = net.parameter("data", "0,3,9223372036854775807")
    net.result(net.op("ReduceSum", data, net.const(np.array([1])), keep_dims="true"))
    net.result(net.op("Add", data, net.const(np.float32(1)), auto_broadcast="numpy"))
    assert "OVIR999" not in codes(net)


def test_a_factor_of_an_activation_is_no_scale_of_weights() -> None:
    net = Net()
    x = net.op("ReLU", net.parameter("x", "2,3"))
    net.result(net.op("Multiply", x, net.const(np.float32([0, 1, 2]))))
    assert "OVIR516" not in codes(net)


def test_a_size_that_contradicts_inference_is_not_said_to_be_declared_twice() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2,3")))
    lines = net.declared_xml().split("\n")
    place = max(i for i, line in enumerate(lines) if "<dim>2</dim>" in line)
    lines[place : place + 2] = ["<dim>-1</dim>", "<dim>9</dim>"]
    assert {d.code for d in ovir.check("\n".join(lines), b"")} == {"OVIR406"}


@pytest.mark.parametrize("is_input", [True, False])
def test_a_size_that_only_one_of_two_ports_leaves_open(is_input: bool) -> None:
    net = Net()
    net.result(net.op("Exp", net.op("ReLU", net.parameter("x", "2,3"), name="relu"), name="exp"))
    before, after = net.declared_xml().split('name="exp"' if is_input else 'name="relu"')
    at = after.index("<input>" if is_input else "<output>")
    text = f'{before}name="{"exp" if is_input else "relu"}"{after[:at]}{after[at:].replace("<dim>2</dim>", "<dim>-1</dim>", 1)}'
    (warning,) = ovir.check(text, b"")
    assert (warning.code, "but its source declares" in warning.message) == ("OVIR413", True)


def found(text: str, net: Net) -> list[tuple[str, str]]:
    return [(d.code, str(d.severity)) for d in ovir.check(text, bytes(net.blob))]


def test_a_question_mark_is_no_size() -> None:
    """OpenVINO refuses it, though it stands for an unknown size wherever else a shape is written."""
    net = Net()
    net.result(net.op("ReLU", net.parameter("data", "?,2")))
    port = '<port id="0" precision="UNSPECIFIED" names="data"/>'
    assert port in net.xml()
    for size, expected in ("-1", []), ("?", [("OVIR112", "error")]):
        dims = f"<dim>{size}</dim><dim>2</dim>"
        assert found(net.xml().replace(port, port.replace("/>", f">{dims}</port>")), net) == expected


def test_a_port_without_id_keeps_its_place() -> None:
    net = Net()
    data, index = net.parameter("data", "4"), net.const(np.array([1]))
    net.result(net.op("Gather", data, index, net.const(np.int64(0)), opset=8, batch_dims=0))
    inputs = '<port id="0" precision="UNSPECIFIED"/><port id="1" precision="UNSPECIFIED"/><port id="2"'
    assert inputs in net.xml()
    text = net.xml().replace(inputs, inputs.replace(' id="1"', ""))
    (found,) = ovir.check(text, bytes(net.blob))
    assert (found.code, found.layer_id) == ("OVIR110", 3)


def test_without_a_result_errors_stay_errors() -> None:
    net = Net()
    net.op("Reshape", net.parameter("data", "4"), net.const(np.array([3])), special_zero="false")
    assert [code for code, severity in found(net.xml(), net) if severity == "error"] == ["OVIR401"]


def test_a_constant_without_data_is_told_once() -> None:
    net = Net()
    net.result(net.op("Const"))
    (found,) = ovir.check(net.xml(), b"")
    assert (found.code, found.message) == (
        "OVIR301",
        "Const has no <data>, but needs element_type, shape, offset, size",
    )


def test_the_own_shape_of_a_parameter_in_a_body() -> None:
    """Inference takes what the body is fed; what the Parameter says of itself is held against its port all the same."""
    for shape, expected in ("1,4", []), ("1,5", ["OVIR404"]):
        own = (
            f'shape="{shape}" element_type="f32"/><output><port id="0" precision="FP32"><dim>1</dim><dim>4</dim></port>'
        )
        body = ITERATOR.replace('shape="1,4" element_type="f32"/><output><port id="0" precision="FP32"/>', own)
        assert own in body
        layers = [layer_text(1, "ReLU", RELU), layer_text(2, "TensorIterator", body), layer_text(3, "Result", RESULT)]
        content = document(*layers, edges="0.0-1.0 1.1-2.0 2.1-3.0")
        assert [d.code for d in ovir.check(content)] == expected


@pytest.mark.parametrize(("is_read", "severity"), [(False, "warning"), (True, "error")])
def test_what_is_declared_of_an_output_that_nothing_reads(is_read: bool, severity: str) -> None:
    """Exports of Open Model Zoo declare f32 for the indices of a MaxPool."""
    net = Net()
    pooled, port = net.op(
        "MaxPool", net.parameter("data", "1,1,4,4"), opset=8, outputs=2, kernel="2,2", strides="2,2",
        pads_begin="0,0", pads_end="0,0",
    )  # fmt: skip
    net.result((pooled, port))
    if is_read:
        net.result((pooled, port + 1))
    text = net.xml()
    declared = f'<port id="{port + 1}" precision="FP32"'
    assert declared.replace("FP32", "UNSPECIFIED") in text
    found = ovir.check(text.replace(declared.replace("FP32", "UNSPECIFIED"), declared), bytes(net.blob))
    assert [(d.code, str(d.severity)) for d in found] == [("OVIR403", severity)]


@pytest.mark.parametrize("is_same", [True, False])
def test_a_name_of_two_results(is_same: bool) -> None:
    net = Net()
    x = net.parameter("x", "4")
    one = net.op("ReLU", x)
    net.result(one)
    net.result(one if is_same else net.op("Exp", x))
    text = net.xml().replace('type="Result"', 'type="Result" output_names="y"')
    assert text.count('output_names="y"') == 2
    edge = re.findall(r"<edge [^>]*>", text)[-1]
    assert "OVIR999" not in [code for code, _ in found(text.replace(edge, ""), net)]
    assert [code for code, _ in found(text, net)] == ([] if is_same else ["OVIR220"])


@pytest.mark.parametrize(("outputs", "more"), [(2, 1), (2, 3)])
def test_surplus_outputs_are_counted(outputs: int, more: int) -> None:
    net = Net()
    parts = net.op("Split", net.parameter("x", "4"), net.const(np.int64(0)), outputs=outputs + more, num_splits=outputs)
    net.result((parts[0], parts[1] + 1))
    (found,) = [d for d in ovir.check(net.xml(), bytes(net.blob)) if d.severity is ovir.Severity.ERROR]
    assert (found.code, found.port) == ("OVIR218", parts[1] + outputs)
    assert found.message == f"the layer declares {outputs + more} outputs, but Split has {outputs}"


def test_a_misspelled_attribute_that_the_specification_requires() -> None:
    """One error names both and the value that is assumed."""
    net = Net()
    filters = net.const(np.ones((1, 1, 1, 1), np.float32))
    data = net.parameter("data", "1,1,4,4")
    pads = {"pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
    net.result(net.op("Convolution", data, filters, stride="2,2", **pads))
    (found,) = ovir.check(net.xml(), bytes(net.blob))
    assert (found.code, str(found.severity), found.hint) == ("OVIR308", "error", "did you mean 'strides'?")
    assert found.message == (
        "Convolution needs the attribute 'strides'; <data> has the unknown attribute 'stride' instead; "
        "1 for each axis is assumed"
    )
    (read,) = ovir.read_model(net.xml(), bytes(net.blob)).diagnostics
    assert (read.message, str(read.severity)) == (found.message, "warning")


def doubles(count: int) -> list[ovir.Diagnostic]:
    net = Net()
    x = net.parameter("x", "2,3")
    for _ in range(count):
        net.result(net.op("Convert", x, destination_type="f64"))
    return ovir.check(net.xml())


@pytest.mark.parametrize(("count", "reported"), [(3, 3), (4, 1), (6, 1)])
def test_notes_of_many_layers(count: int, reported: int) -> None:
    found = doubles(count)
    assert [d.code for d in found] == ["OVIR704"] * reported
    if reported == 1:
        line = found[0].line
        assert line is not None
        expected = f"; {count - 1} more of this kind, for example on line "
        assert expected in found[0].message


def test_tensor_names_that_differ() -> None:
    net = Net()
    x = net.parameter("x", "2,3")
    for i in range(10):
        x = net.op("ReLU", x, name=f"relu{i}", names=[f"name{i % 5}"])
    net.result(x)
    (found,) = ovir.check(net.xml())
    assert (found.code, found.layer_id) == ("OVIR214", 6)
    assert found.message.startswith("layer 1 'relu0' (ReLU, opset1) has the same tensor name 'name0'; 4 more of this")
    assert found.message.count("tensor name") == 3


def test_attributes_that_are_not_known() -> None:
    """They repeat where the message is the same."""
    net = Net()
    x = net.parameter("x", "2,3")
    for i in range(5):
        x = net.op("ReLU", x, color="1")
        x = net.op("Sigmoid", x, **{f"shade{i}": "1"})
    net.result(x)
    messages = [d.message for d in ovir.check(net.xml())]
    assert len(messages) == 6
    assert "4 more of this kind, for example on line" in messages[0]


def test_errors_are_reported_one_by_one() -> None:
    net = Net()
    x = net.parameter("x", "2,3")
    for _ in range(5):
        x = net.op("Sparkle", x)
    net.result(x)
    assert [d.code for d in ovir.check(net.xml())] == ["OVIR201"] * 5


def gathering(copied: bool = False) -> tuple[str, bytes]:
    net = Net()
    x = net.parameter("x", "2,3")
    axes = net.const(np.array([1, 0]), name="order")
    if copied:
        axes = net.op("Reshape", axes, net.const(np.array([2])), name="copied", special_zero="false")
    net.result(net.op("Transpose", x, axes, name="turned"))
    return net.declared_xml(), bytes(net.blob)


def with_type(text: str, name: str, element_type: str) -> str:
    before, after = text.split(f'name="{name}"', 1)
    return before + f'name="{name}"' + after.replace('element_type="i64"', f'element_type="{element_type}"', 1)


@pytest.mark.parametrize("copied", [False, True])
def test_the_first_layer_that_cannot_read_it(copied: bool) -> None:
    text, weights = gathering(copied)
    (found,) = (d for d in ovir.check(with_type(text, "order", "f64"), weights) if d.code != "OVIR702")
    assert (found.code, found.severity) == ("OVIR409", ovir.Severity.ERROR)
    assert found.layer is not None
    assert "'turned'" in found.layer
    assert "must be of an integer type, got f64; layer 1 'order' (Const, opset1) on line " in found.message
    assert found.message.endswith("declares type i64, but the Const itself has f64")
    assert (
        found.hint == "its size fits i64: change the attribute element_type of layer 1 'order' (Const, opset1) from f64"
    )


def test_a_type_of_another_size() -> None:
    net = Net()
    net.result(
        net.op(
            "Gather",
            net.parameter("x", "2,3"),
            net.const(np.array([1, 0]), name="rows"),
            net.const(np.int64(0)),
            opset=8,
        )
    )
    (found,) = ovir.check(with_type(net.declared_xml(), "rows", "i32"), bytes(net.blob))
    assert (found.code, found.severity) == ("OVIR405", ovir.Severity.WARNING)
    assert "but the Const itself has i32; attribute 'size' is 16, but i32[2] needs 8 bytes" in found.message
    assert found.hint is not None
    assert found.hint.startswith("its size fits i64")


def test_other_faults_of_the_file_remain() -> None:
    text, weights = gathering()
    text = with_type(text, "order", "f64").replace('name="x" type="Parameter"', 'name="x" color="1" type="Parameter"')
    assert {d.code for d in ovir.check(text, weights)} == {"OVIR304", "OVIR409"}
    assert {d.code for d in ovir.check(text, need_weights=False)} == {"OVIR304", "OVIR409"}


def exchanged(kind: str, first: tuple[str, str], second: tuple[str, str], **options: int | str) -> str:
    """A layer whose two inputs are exchanged, in a file that declares what was meant."""
    net = Net()
    a, b = net.parameter("a", *first), net.parameter("b", *second)
    net.result(net.op(kind, a, b, name="both", **options))  # type: ignore[arg-type]
    text = net.declared_xml()
    for old, new in (("0", "x"), ("1", "0"), ("x", "1")):
        text = text.replace(f'to-layer="2" to-port="{old}"', f'to-layer="2" to-port="{new}"')
    return text


def line_of(text: str, part: str) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if part in line)


def test_exchanged_inputs_are_one_error() -> None:
    text = exchanged("Subtract", ("2,3", "f32"), ("2,1", "f32"))
    to_0, to_1 = (line_of(text, f'to-layer="2" to-port="{port}"') for port in (0, 1))
    (found,) = ovir.check(text)
    assert (found.code, found.severity, found.line) == ("OVIR222", ovir.Severity.ERROR, to_0)
    assert found.message == (
        "the inputs look exchanged: "
        f"port 0 declares f32[2,3] but gets f32[2,1] (layer 1 'b' (Parameter, opset1) by the edge on line {to_0}), "
        f"port 1 declares f32[2,1] but gets f32[2,3] (layer 0 'a' (Parameter, opset1) by the edge on line {to_1})"
    )
    assert found.hint == f"exchange the input ports of the edges on lines {to_0} and {to_1}"
    assert [d.code for d in ovir.read_model(text).diagnostics] == ["OVIR222"]


@pytest.mark.parametrize(
    ("kind", "first", "second", "options", "code"),
    [
        ("MatMul", ("2,3", "f32"), ("3,4", "f32"), {}, "OVIR401"),
        ("GatherND", ("2,3", "f32"), ("2,1", "i64"), {"opset": 8}, "OVIR409"),
    ],
)
def test_inputs_that_the_operation_cannot_take_so(
    kind: str, first: tuple[str, str], second: tuple[str, str], options: dict[str, int], code: str
) -> None:
    (found,) = ovir.check(exchanged(kind, first, second, **options))
    assert (found.code, found.severity) == (code, ovir.Severity.ERROR)
    assert found.message.startswith("the inputs look exchanged: port 0 declares ")
    assert found.hint is not None
    assert found.hint.startswith("exchange the input ports of the edges on lines ")


def test_inputs_that_differ_otherwise_are_not_exchanged() -> None:
    text = exchanged("Subtract", ("2,3", "f32"), ("2,1", "f32")).replace("<dim>1</dim>", "<dim>3</dim>")
    assert "OVIR222" not in {d.code for d in ovir.check(text)}


def test_an_edge_from_another_layer() -> None:
    """The message names the edge and both layers."""
    net = Net()
    x = net.parameter("x", "2,3")
    net.parameter("y", "4,5")
    net.result(net.op("ReLU", x))
    text = net.declared_xml().replace('<edge from-layer="0"', '<edge from-layer="1"')
    (found,) = [d for d in ovir.check(text) if d.severity is ovir.Severity.ERROR and d.code == "OVIR406"]
    line = line_of(text, '<edge from-layer="1"')
    assert found.layer == "layer 2 'relu2' (ReLU, opset1)"
    assert found.message == (
        "input port 0 declares shape [2,3], but its tensor has [4,5] "
        f"(layer 1 'y' (Parameter, opset1) by the edge on line {line})"
    )


# --------------------------------------------------------------------------- releases


def converting(kind: str, count: int, *, is_constant: bool = False) -> Net:
    net = Net()
    for number in range(count):
        source = net.const([1, 2], kind) if is_constant else net.parameter(f"x{number}", "2", kind)
        net.result(net.op("Convert", source, destination_type="f32"))
    return net


def chain(kind: str, opset: int, count: int, **attributes: str) -> Net:
    net = Net()
    x = net.parameter("x", "2,3")
    for _ in range(count):
        x = net.op(kind, x, opset=opset, **attributes)
    net.result(x)
    return net


LOWERS = "'ovir edit --runtime {}' rewrites {}"
DECOMPRESSES = "; 'ovir edit --decompress --runtime 2023.3' replaces compressed weights by numbers"


@pytest.mark.parametrize(
    ("net", "runtime", "message", "hint"),
    [
        (converting("f8e4m3", 2, is_constant=True), "2023.3", "does not support the element type f8e4m3; the same applies to 1 more layer", f"OpenVINO supports f8e4m3 from release 2024.0{DECOMPRESSES}"),
        (converting("f8e4m3", 2, is_constant=True), "2024.0", None, None),
        (converting("u3", 1), "2024.4", "does not support the element type u3", "OpenVINO supports u3 from release 2024.5"),
        (chain("IsNaN", 10, 1), "2022.3", None, None),
        (chain("IsNaN", 10, 1), "2022.2", "supports opset1 to opset9", LOWERS.format("2022.2", "this layer")),
        (chain("IsNaN", 10, 3), "2022.2", "supports opset1 to opset9; the same applies to 2 more layers", LOWERS.format("2022.2", "these layers")),
        (chain("ReLU", 1, 1), "2021.4", "OpenVINO 2021.4 does not read IR version 11", "OpenVINO reads it from release 2022.1; 'ovir edit --runtime 2021.4' writes version 10"),
        (chain("ReLU", 1, 1), "2022.1", None, None),
        (chain("Elu", 1, 3, alpha="inf"), "2025.4", "reads this layer, but reads its attribute 'alpha' of inf as 0; the same applies to 2 more layers", "give it a finite number"),
        (chain("Mish", 4, 1), "2020.3", "Mish is declared in opset4; OpenVINO 2020.3 supports opset1 to opset2", "this layer cannot be rewritten: older operations do not compute the same"),
    ],
)  # fmt: skip
def test_what_a_release_does_not_know(net: Net, runtime: str, message: str | None, hint: str | None) -> None:
    found = [d for d in ovir.check(net.xml(), bytes(net.blob), runtime=runtime) if d.code == "OVIR701"]
    assert bool(found) == (message is not None)
    if message is not None:
        assert found[-1].message.endswith(message)
        assert found[-1].hint == hint


# --------------------------------------------------------------------------- places in the weights


@pytest.mark.parametrize(("size", "expected"), [(0, []), (1, []), (2, ["OVIR504"])])
def test_one_byte_of_a_constant_without_elements_is_not_too_much(size: int, expected: list[str]) -> None:
    net = Net()
    net.blob += bytes(size)
    net.result(net.op("Const", element_type="u8", shape="0", offset="0", size=str(size)))
    assert [code for code in codes(net) if code == "OVIR504"] == expected


MESSAGE = "offset 2 is not a multiple of 4, the size of f32; ovir copies 21.0 MB that it would map otherwise"


@pytest.mark.parametrize(
    ("offset", "mebibytes", "count", "expected"),
    [
        (0, 20, 1, None),
        (2, 1, 1, None),
        (2, 20, 1, MESSAGE),
        (4, 20, 1, None),
        (2, 4, 4, MESSAGE.replace("21.0", "16.8") + "; the same applies to 3 more constants"),
    ],
)
def test_only_large_copies_of_constants_that_are_not_aligned_are_reported(
    offset: int, mebibytes: int, count: int, expected: str | None
) -> None:
    net = Net()
    net.blob += bytes(offset)
    tensor = net.parameter("x", "1")
    for number in range(count):
        weights = net.const(np.tile(np.float32([1, 2, 3, 5 + number]), mebibytes << 16))
        tensor = net.op("Add", tensor, weights, auto_broadcast="numpy")
    net.result(tensor)
    assert codes(net).get("OVIR509") == expected


# --------------------------------------------------------------------------- files that nearly violate a rule


def transposed(*orders: list[int], between: str = "") -> Net:
    """Transposes in a row, of a tensor of as many axes as each order, with another layer before the last one."""
    net = Net()
    x = net.parameter("x", ",".join("23456"[: len(orders[0])]))
    for index, order in enumerate(orders):
        if between and index == len(orders) - 1:
            x = net.op(between, x)
        x = net.op("Transpose", x, net.const(np.array(order)))
    net.result(x)
    return net


@pytest.mark.parametrize(
    ("net", "is_found"),
    [
        (transposed([1, 0], [1, 0]), True),
        (transposed([1, 2, 0], [2, 0, 1]), True),
        (transposed([1, 2, 0], [1, 2, 0]), False),  # three of them change nothing
        (transposed([2, 0, 1], [0, 2, 1]), False),
        (transposed([0, 1], [0, 1]), False),  # each changes nothing by itself
        (transposed([0, 1, 2], [0, 1, 2]), False),
        (transposed([0, 1], [1, 0]), False),
        (transposed([1, 0], [1, 0], between="ReLU"), False),
        (transposed([1, 0]), False),
    ],
)
def test_permutations_that_undo_each_other(net: Net, is_found: bool) -> None:
    assert ("OVIR706" in codes(net)) is is_found


_LEAST, _GREATEST = -(2**31), 2**31 - 1


@pytest.mark.parametrize(
    ("values", "clipped"),
    [
        ([_LEAST, _GREATEST], None),
        ([_LEAST - 1, _LEAST], _LEAST - 1),
        ([_LEAST, _LEAST - 1, 0], _LEAST - 1),
        ([_GREATEST, _GREATEST + 1], _GREATEST + 1),
        ([_LEAST, 5, _GREATEST + 2], _GREATEST + 2),
        ([2**63 - 1, -(2**63), 2**63 - 2**33, -(2**63) + 2**33], None),  # an open end
        ([2**63 - 2**33 - 2**11], 2**63 - 2**33 - 2**11),
        ([1, -(2**62)], -(2**62)),
        ([2**63 - 1, _LEAST, _LEAST - 2], _LEAST - 2),
    ],
)
def test_integers_at_the_limits_of_32_bits(values: list[int], clipped: int | None) -> None:
    net = Net()
    net.result(net.op("Add", net.parameter("x", str(len(values)), "i64"), net.const(np.array(values, np.int64))))
    expected = {"OVIR515": f"the constant holds {clipped}, which devices that compute in i32 clip"}
    assert {code: text for code, text in codes(net).items() if code == "OVIR515"} == (expected if clipped else {})


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ([0, 3], {}),
        ([0, 1, 0], {}),
        ([0, -1], {"OVIR703": "index -1 is negative, which Gather-7 leaves open"}),
        ([3, -4], {"OVIR703": "index -4 is negative, which Gather-7 leaves open"}),
        ([0, 4], {"OVIR511": "index 4 is outside [-4, 3], the range of the indexed axis"}),
        ([0, -5], {"OVIR511": "index -5 is outside [-4, 3], the range of the indexed axis"}),
    ],
)
def test_indices_at_the_ends_of_an_axis(indices: list[int], expected: dict[str, str]) -> None:
    net = Net()
    net.result(
        net.op("Gather", net.parameter("x", "4,2"), net.const(np.array(indices)), net.const(np.int64(0)), opset=7)
    )
    assert codes(net) == expected
