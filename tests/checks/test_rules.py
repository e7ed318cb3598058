"""Rules and consequences: what is reported once, and summed up, where files are wrong in several ways."""

import re

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir.checks.rules.constants import _surely_finite
from ovir.core.element_types import ElementType


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


def test_a_factor_of_an_activation_is_no_scale_of_weights() -> None:
    net = Net()
    x = net.op("ReLU", net.parameter("x", "2,3"))
    net.result(net.op("Multiply", x, net.const(np.float32([0, 1, 2]))))
    assert "OVIR516" not in codes(net)


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


def fake_convert() -> Net:
    net = Net()
    x = net.parameter("x", "2,3")
    net.result(net.op("FakeConvert", x, net.const(np.float32(1)), opset=13, destination_type="f8e4m3"))
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
        (fake_convert(), "2023.3", None, None),
        (fake_convert(), "2023.2", "FakeConvert is declared in opset13; OpenVINO 2023.2 supports opset1 to opset13, but without this operation", "this layer cannot be rewritten: older operations do not round to f8"),
        (fake_convert(), "2023.1", "FakeConvert is declared in opset13; OpenVINO 2023.1 supports opset1 to opset12", "this layer cannot be rewritten: older operations do not round to f8"),
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


# --------------------------------------------------------------------------- numbers of constants

NAN, INFINITY = np.float32(np.nan), np.float32(np.inf)


def holding(arrays: list[tuple[np.ndarray, str]], gap: int = 0) -> Net:
    """Constants one after the other in the weights, with zeros between them."""
    net = Net()
    for array, kind in arrays:
        net.result(net.op("ReLU", net.const(array, kind)))
        net.blob += bytes(gap)
    return net


@pytest.mark.parametrize("kinds", [("f32", "f32"), ("f32", "f16"), ("f16", "f32"), ("f64", "bf16"), ("f16", "i16")])
@pytest.mark.parametrize("gap", [0, 2, 64])
@pytest.mark.parametrize("counts", [(6, 6), (1 << 16, 2), (6, (1 << 16) + 2)])
def test_what_is_not_finite_is_found_wherever_it_lies(
    kinds: tuple[str, str], gap: int, counts: tuple[int, int]
) -> None:
    places = [(which, place) for which in (0, 1) for place in (0, counts[which] - 2, counts[which] - 1)]
    for which, place in [place for place in places if kinds[place[0]] != "i16"]:
        arrays = [np.ones(count, np.float32) for count in counts]
        arrays[which][place] = NAN
        net = holding(list(zip(arrays, kinds, strict=True)), gap)
        found = [d for d in ovir.check(net.xml(), bytes(net.blob)) if d.code == "OVIR510"]
        assert [(d.layer_id, d.message) for d in found] == [(3 * which, f"NaN in 1 of {counts[which]:,} values")]
        arrays[which][place] = 1
        assert "OVIR510" not in codes(holding(list(zip(arrays, kinds, strict=True)), gap))


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, -2, 3], None),
        ([1, NAN, 3], ("NaN in 1 of 3 values", "warning")),
        ([-NAN, NAN, INFINITY], ("NaN in 2 of 3 values", "warning")),
        ([1, INFINITY, 3], ("infinity in 1 of 3 values", "info")),
        ([-INFINITY, INFINITY, 1, -INFINITY], ("infinity in 3 of 4 values", "info")),
        ([-INFINITY], ("infinity in 1 of 1 value", "info")),
        ([3e4, -3e4], None),
    ],
)
def test_what_is_not_finite_is_counted(kind: str, values: list[float], expected: tuple[str, str] | None) -> None:
    net = holding([(np.float32(values), kind)])
    found = [(d.message, str(d.severity)) for d in ovir.check(net.xml(), bytes(net.blob)) if d.code == "OVIR510"]
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize(("kind", "exponent"), [("f16", 0x7C00), ("bf16", 0x7F80)])
def test_each_number_of_16_bits_is_finite_or_not(kind: str, exponent: int) -> None:
    """All bits of the exponent are set in an infinity or NaN."""
    dtype = ElementType.parse(kind).to_dtype()
    for pattern in (edge + more for edge in (0x8000, exponent, 0x8000 | exponent) for more in (-1, 0, 1)):
        for others in ([], [0], [0x8000], [0x0001, 0x8001]):
            is_finite = pattern & exponent != exponent
            assert _surely_finite(np.uint16([*others, pattern]).view(dtype)) == is_finite


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([65504, -65504], None),
        ([65505.0, 1], "the constant holds 65505; the largest of f16 is 65504"),
        ([-70000, 65505], "the constant holds 70000; the largest of f16 is 65504"),
        ([INFINITY, -INFINITY, NAN], None),
        ([INFINITY, 65600], "the constant holds 65600; the largest of f16 is 65504"),
        ([], None),
    ],
)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_numbers_beyond_f16(values: list[float], expected: str | None, kind: str) -> None:
    for target in ("f16", "bf16"):
        net = Net()
        net.result(net.op("Convert", net.const(np.float64(values), kind), destination_type=target))
        assert codes(net).get("OVIR512") == (expected if target == "f16" else None)


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ([0.5, 2], None),
        ([0.5, 0], "zero, NaN or infinity in 1 of 2 scales of compressed weights"),
        ([-0.0, NAN], "zero, NaN or infinity in 2 of 2 scales of compressed weights"),
        ([INFINITY, 1], "zero, NaN or infinity in 1 of 2 scales of compressed weights"),
    ],
)
@pytest.mark.parametrize("kind", ["i8", "f16"])
def test_scales_of_compressed_weights(scale: list[float], expected: str | None, kind: str) -> None:
    """Real numbers may be multiplied with zero; integers are compressed weights."""
    net = Net()
    weights = net.op("Convert", net.const(np.ones((2, 2)), kind), destination_type="f32")
    net.result(net.op("Multiply", weights, net.const(np.float32(scale))))
    assert codes(net).get("OVIR516") == (expected if kind == "i8" else None)


@pytest.mark.parametrize(
    ("divisor", "dividend", "expected"),
    [
        ([1, 2], None, None),
        ([1, 0], None, "the divisor holds 1 zero"),
        ([0, 0], None, "the divisor holds 2 zeros"),
        ([-1, 1], None, None),
        ([-1, 1], [-128, 5], "-128 is divided by -1, which i8 cannot hold"),
        ([1, -1], [-128, 5], None),
        ([-2, 1], [-128, -128], None),
        ([-1, -1], [-127, 127], None),
        ([0, -1], [-128, -128], "the divisor holds 1 zero"),
    ],
)
def test_divisors(divisor: list[int], dividend: list[int] | None, expected: str | None) -> None:
    net = Net()
    source = net.parameter("x", "2", "i8") if dividend is None else net.const(np.int8(dividend), "i8")
    net.result(net.op("Divide", source, net.const(np.int8(divisor), "i8")))
    assert codes(net).get("OVIR514") == expected


def test_a_divisor_is_aligned_as_its_mode_says() -> None:
    net = Net()
    dividend, divisor = (net.const(np.int8(values), "i8") for values in ([[1, -128, 3], [4, 5, 6]], [-1, 2]))
    net.result(net.op("Divide", dividend, divisor, auto_broadcast="pdpd", **{"auto_broadcast.auto_broadcast_axis": 0}))
    assert codes(net).get("OVIR514") == "-128 is divided by -1, which i8 cannot hold"


def test_an_axis_that_is_no_integer_is_one_error() -> None:
    net = Net()
    net.result(net.op("Gather", net.parameter("x", "4,2"), net.const([0]), net.const(np.float32(np.nan)), opset=7))
    assert "OVIR999" not in codes(net)
    assert "OVIR511" not in codes(net)
