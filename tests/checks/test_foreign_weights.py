"""The weights of another model, and weights that are all zero: one report, and nothing that follows from it."""

import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.checks.rule import StoredConstant
from ovir.checks.rules import weights_file
from ovir.cli.main import main
from ovir.core.element_types import ElementType
from ovir.ir.weights import WeightBytes, WeightsMark
from ovir.ops.infrastructure import Const


def reductions(axes: int = 5, *, weights: bool = True) -> Net:
    """Several reductions; with weights, also a MatMul before them and an Add after each."""
    generator = np.random.default_rng(1)
    net = Net()
    x = net.parameter("x", "2,3,8")
    if weights:
        x = net.op("MatMul", x, net.const(generator.normal(size=(8, 8)).astype(np.float32)))
    for _ in range(axes):
        x = net.op("ReduceSum", x, net.const(np.array([1])), keep_dims="true")
        if weights:
            x = net.op("Add", x, net.const(generator.normal(size=(8,)).astype(np.float32)))
    net.result(x)
    return net


def other_weights(size: int) -> bytes:
    return np.random.default_rng(7).normal(0, 0.1, size // 4).astype(np.float32).tobytes()


def marked(net: Net, weights: bytes) -> bytes:
    """A topology with the mark of weights that ovir has saved."""
    return f"{net.xml()}{WeightsMark(len(weights), zlib.crc32(weights))}".encode()


def with_nan(weights: bytes) -> bytes:
    """Not a number in all weights."""
    changed = bytearray(weights)
    for start in (0, 264, 304, 344):
        changed[start : start + 4] = np.float32(np.nan).tobytes()
    return bytes(changed)


SMALL, SINGLE = reductions(2, weights=False), reductions(1, weights=False)
IMPOSSIBLE = np.array([4439296554855099675]).tobytes()


@pytest.mark.parametrize(
    ("net", "change", "code", "message"),
    [
        (reductions(), lambda w: other_weights(len(w)), "OVIR517", ": 5 of 11 constants do not fit (5 hold numbers such"),
        (reductions(), lambda w: other_weights(len(w) - 70), "OVIR517", "(3 lie past its end, 4 hold numbers such as"),
        (reductions(), lambda w: b"", "OVIR502", "of weights, which is empty: 11 of 11 constants lie past its end"),
        (reductions(), with_nan, "OVIR510", "NaN in 1 of 64 values"),
        (SMALL, lambda w: other_weights(len(w)), "OVIR517", "weights does not belong to this .xml: 2 of 2 constants do not"),
        (SINGLE, lambda w: other_weights(len(w) + 400), "OVIR517", "left out"),
        (SINGLE, lambda w: IMPOSSIBLE, "OVIR305", "4439296554855099675"),
    ],
)  # fmt: skip
def test_weights_that_do_not_fit(net: Net, change: Callable[[bytes], bytes], code: str, message: str) -> None:
    found = ovir.check(net.xml(), change(bytes(net.blob)))
    assert {d.code for d in found} == {code}
    assert message in found[0].message
    if code == "OVIR517":
        assert [(d.severity, d.line) for d in found] == [(ovir.Severity.ERROR, 2)]
        assert found[0].message.endswith("that may follow from this are left out")
        mark = marked(net, bytes(net.blob))
        assert [d.code for d in ovir.check(mark, change(bytes(net.blob)))] == ["OVIR517"]
    elif code == "OVIR305":
        assert found[0].hint == (
            "layer 1 'const1' (Const, opset1) holds 4439296554855099675: its offset is wrong, or the .bin belongs to "
            "another model"
        )


def test_constants_of_one_byte_are_counted_and_empty_ones_are_not() -> None:
    net = reductions()
    net.result(net.op("Convert", net.const(np.uint8([3])), destination_type="f32"))
    net.result(net.op("Convert", net.const(np.empty(0, np.uint8)), destination_type="f32"))
    weights = other_weights(len(net.blob) + 3)
    (found,) = [d.message for d in ovir.check(net.xml(), weights) if d.code == "OVIR517"]
    assert " of 12 constants do not fit" in found


def test_faults_of_the_topology_are_still_reported() -> None:
    net = reductions()
    text = (
        net.xml()
        .replace('keep_dims="true"', 'keep_dims="maybe"', 1)
        .replace('name="add6" type', 'name="add6" color="1" type')
    )
    text = text.replace(' size="32"', "", 1)
    found = {d.code: d.message for d in ovir.check(text, other_weights(len(net.blob)))}
    assert {"OVIR301", "OVIR302", "OVIR304", "OVIR517"} <= found.keys()
    assert ": 5 of 10 constants do not fit" in found["OVIR517"], "one has no size"


def test_a_single_wrong_constant_is_no_other_model() -> None:
    net = reductions(1)
    weights = bytearray(net.blob)
    weights[256:264] = np.array([4176483385040675784]).tobytes()
    codes = [d.code for d in ovir.check(net.xml(), bytes(weights))]
    assert "OVIR517" not in codes
    assert "OVIR305" in codes


@pytest.mark.parametrize("odd", ["axes", "open ends", "not a number", "unused", "past the end"])
def test_a_mark_that_matches_ends_the_matter(odd: str) -> None:
    """The weights are what the .xml was saved with, whatever they hold."""
    net = reductions()
    weights = bytes(net.blob)
    if odd == "open ends":
        for end in (2**62, -(2**62), 2**61):
            ends = [net.const(np.array([number])) for number in (0, end, 1)]
            net.result(net.op("Slice", net.parameter(f"x{end}", "8"), *ends, opset=8))
        nan = net.const(np.full(4, np.nan, np.float32))
        net.result(net.op("Add", net.parameter("y", "4"), nan))
        weights = bytes(net.blob)
    elif odd == "not a number":
        weights = np.full(len(weights) // 4, np.nan, np.float32).tobytes()
    elif odd == "unused":
        weights += other_weights(400)
    else:
        weights = other_weights(len(weights) - (70 if odd == "past the end" else 0))
    before = {found.code for found in ovir.check(net.xml(), weights)}
    found = ovir.check(marked(net, weights), weights)
    assert {item.code for item in found} >= before - {"OVIR517"}
    assert "OVIR517" not in {item.code for item in found}
    assert not any("belongs to another model" in (item.hint or "") for item in found)


def test_an_integer_beyond_the_exact_bounds_is_not_shown_as_another() -> None:
    net = Net()
    net.result(net.op("Reshape", net.parameter("x", "2,3"), net.const(np.array([-(2**62)])), special_zero="false"))
    (found,) = ovir.check(net.xml(), bytes(net.blob))
    assert found.message == "shape[0] must be at least -1, got -2^53 or less"
    assert found.hint is not None
    assert f"holds {-(2**62)}" in found.hint


Handle = tuple[int, int]


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def warnings(net: Net) -> list[ovir.Diagnostic]:
    return [d for d in ovir.check(net.xml(), bytes(net.blob)) if d.code == "OVIR518"]


# --------------------------------------------------------------------------- weights of one layer


def stored(net: Net, array: Any) -> Handle:
    return net.const(array, name="w")


def reshaped(net: Net, array: Any) -> Handle:
    source = net.op("Convert", stored(net, array.astype(np.float16).ravel()), destination_type="f32")
    return net.op("Reshape", source, net.const(list(array.shape)), special_zero="false")


def decompressed(net: Net, array: Any, zero_point: int = 0) -> Handle:
    codes = net.op("Convert", stored(net, array.astype(np.uint8)), destination_type="f32")
    point = net.op("Convert", net.const(np.uint8(zero_point)), destination_type="f32")
    shifted = net.op("Subtract", codes, point, auto_broadcast="numpy")
    return net.op("Multiply", shifted, net.const(numbers(1, 1)), auto_broadcast="numpy")


def quantized(net: Net, array: Any) -> Handle:
    low, high = net.const(np.float32(-1)), net.const(np.float32(1))
    return net.op("FakeQuantize", stored(net, array), low, high, low, high, levels=255, auto_broadcast="numpy")


FORMS = [stored, reshaped, decompressed, quantized]


def product(form: Callable[..., Handle], array: Any, *more: Any) -> list[ovir.Diagnostic]:
    """Return the warnings of a product with weights in a form."""
    net = Net()
    net.result(net.op("MatMul", net.parameter("x", f"2,{len(array)}"), form(net, array, *more), name="product"))
    return warnings(net)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("array", [zeros(8, 6), -zeros(8, 6)], ids=["0", "-0"])
def test_zeros_in_every_form(form: Callable[[Net, Any], Handle], array: Any) -> None:
    (warning,) = product(form, array)
    assert re.fullmatch(r"the weights 'b' are all zero: they are layer \d 'w' \(Const, opset1\)", warning.message)
    assert warning.layer is not None
    assert "'product' (MatMul, opset1)" in warning.layer
    assert warning.severity is ovir.Severity.WARNING
    one = zeros(100, 100)
    one[99, 99] = 1
    assert not product(form, one)


@pytest.mark.parametrize("kind", ["u8", "i8", "u4", "i4", "u2"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (8, 1), (1, 6), (8, 6)])
@pytest.mark.parametrize("differs", [False, True])
def test_codes_that_equal_their_zero_points(kind: str, shape: tuple[int, ...], differs: bool, tmp_path: Path) -> None:
    points = np.arange(1, 1 + int(np.prod(shape))).reshape(shape) % 3
    codes = np.broadcast_to(points, (8, 6)).copy()
    assert not product(decompressed, zeros(8, 6), 128)
    codes[7, 5] = (codes[7, 5] + differs) % 4
    dtype = ElementType.parse(kind).to_dtype()
    weights, point = (ops.convert(ops.constant(array.astype(dtype), kind), "f32") for array in (codes, points))
    scaled = ops.multiply(ops.subtract(weights, point), numbers(1, 1))
    x = ops.parameter([2, 8], "f32", name="x")
    ovir.save_model(ovir.Model([ops.matmul(x, scaled, False, False)], [x]), tmp_path / "model.xml")
    found = [item for item in ovir.check(tmp_path / "model.xml") if item.code == "OVIR518"]
    assert len(found) == (not differs)


@pytest.mark.parametrize(
    ("codes", "points", "is_found"),
    [
        (np.full((8, 6), 2, np.uint8), np.full((8, 6), 2, np.uint8), True),
        (np.full((1, 6), 2, np.uint8), np.full((8, 6), 2, np.uint8), False),  # zero points are broadcast to no codes
        (np.full((8, 6), 2, np.float16), np.full((8, 6), 2, np.float16), True),
        (np.full((8, 6), np.nan, np.float16), np.full((8, 6), np.nan, np.float16), False),
        (np.full((8, 0), 2, np.uint8), np.full((1, 1), 2, np.uint8), False),
        (np.full((100, 60), 2, np.uint8), np.arange(100)[:, np.newaxis] // 99 * np.uint8(1) + np.uint8(2), False),
    ],
)
@pytest.mark.parametrize("without", [None, "codes", "points"])
def test_codes_and_zero_points_that_make_zeros(codes: Any, points: Any, is_found: bool, without: str | None) -> None:
    """Nothing is known of codes or zero points past the end of the weights."""
    net = Net()
    both = [
        net.op("Convert", net.const(array, name=name), destination_type="f32")
        for name, array in (("codes", codes), ("points", points))
    ]
    weights = net.op("Subtract", *both, auto_broadcast="numpy")
    net.result(net.op("MatMul", net.parameter("x", f"2,{len(points) if len(codes) == 1 else len(codes)}"), weights))
    text = net.xml()
    if without is not None:
        text = re.sub(rf'(name="{without}".*\n.*offset=)"\d+"', r'\1"9999999"', text)
        assert "9999999" in text
    found = [d for d in ovir.check(text, bytes(net.blob)) if d.code in ("OVIR518", "OVIR999")]
    assert [d.code for d in found] == ["OVIR518"] * (is_found and without is None)


@pytest.mark.parametrize(("layers", "is_found"), [(9, True), (10, False)])
@pytest.mark.parametrize("kind", ["Reshape", "Convert"])
def test_zeros_are_looked_for_behind_some_layers(layers: int, is_found: bool, kind: str) -> None:
    net = Net()
    weights = net.const(zeros(8, 6))
    for number in range(layers):
        target = (
            {"destination_type": "f64" if number % 2 == layers % 2 else "f32"}
            if kind == "Convert"
            else {"special_zero": "false"}
        )
        weights = net.op(kind, weights, *([net.const([8, 6])] if kind == "Reshape" else []), **target)
    net.result(net.op("MatMul", net.parameter("x", "2,8", "f32"), weights))
    assert len(warnings(net)) == is_found


def stored_constant(kind: str, shape: tuple[int, ...], data: bytes) -> StoredConstant:
    op = Const(element_type=ElementType.parse(kind), shape=shape, offset=0, size=len(data))
    op.constant_data = WeightBytes.of(data).constant(op.element_type, shape, 0, len(data))
    return StoredConstant(op)


@pytest.mark.parametrize(
    ("kind", "shape", "size", "is_filled"),
    [
        ("f32", (1,), 4, False),
        ("f32", (), 4, False),
        ("f32", (2,), 8, True),
        ("i64", (64,), 512, False),
        ("i64", (65,), 520, True),
        ("u8", (512,), 512, False),
        ("u8", (513,), 513, True),
        ("boolean", (600,), 600, False),
        ("f32", (0,), 0, False),
    ],
)
def test_constants_that_hold_weights(kind: str, shape: tuple[int, ...], size: int, is_filled: bool) -> None:
    """Single numbers, short lists of integers and masks are none."""
    assert stored_constant(kind, shape, bytes(size)).is_filled == is_filled


@pytest.mark.parametrize("kind", ["f32", "f16", "i64", "u8", "u4", "u1"])
def test_constants_that_are_all_zero(kind: str) -> None:
    """Also in the last numbers, and behind the first 4,096; negative zeros count, NaN does not."""
    bits = ElementType.parse(kind).bits
    for count in (8, 4096, 4104, 9000):
        size = count * bits // 8
        data = np.zeros(size, np.uint8)
        assert stored_constant(kind, (count,), data.tobytes()).is_zero
        for place in {0, size - 1, min(4096 * bits // 8, size - 1)}:
            data[place] = 0x40
            assert not stored_constant(kind, (count,), data.tobytes()).is_zero
            data[place] = 0
    assert not stored_constant(kind, (0,), b"").is_zero


def test_negative_zeros_and_nan() -> None:
    assert stored_constant("f32", (3,), np.float32([-0.0, 0, -0.0]).tobytes()).is_zero
    assert not stored_constant("f32", (3,), np.float32([-0.0, 0, np.nan]).tobytes()).is_zero


@pytest.mark.parametrize(
    ("gaps", "sample", "expected"),
    [
        ([(0, 16)], 1 << 26, 1.0),
        ([(0, 8)], 1 << 26, 0.0),
        ([(0, 8), (16, 24)], 1 << 26, 2.5),
        ([(0, 8), (8, 16)], 8, 0.0),
        ([(0, 8), (8, 16)], 12, 0.9183),
        ([(8, 16), (0, 8)], 10, 0.7219),
        ([(16, 32)], 1 << 26, 4.0),
    ],
)
def test_the_entropy_of_bytes(gaps: Any, sample: int, expected: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute 1 bit for two equally frequent values; long ranges are sampled."""
    monkeypatch.setattr(weights_file, "_SAMPLE", sample)
    data = np.uint8([7] * 8 + [9] * 8 + list(range(100, 116)))
    assert weights_file._entropy(data, gaps) == pytest.approx(expected, abs=1e-4)


IMAGES = [f'<channel><mean offset="{offset}" size="100"{{}}/></channel>' for offset in (4, 104)]
FIRST, SECOND = (image.format("") for image in IMAGES)
VALUES = "".join(image.format(' value="1"') for image in IMAGES)
TWICE = '<channel><mean offset="4" size="100"/><mean offset="104" size="100"/></channel>'


@pytest.mark.parametrize(
    ("means", "unused"),
    [
        ("<pre-process/>", 200),
        (f"<pre-process>{FIRST}{SECOND}</pre-process>", None),
        (f"<pre-process>{FIRST}{FIRST}</pre-process>", 100),
        (f"<pre-process>{VALUES}</pre-process>", 200),
        (f"<pre-process/><pre-process>{FIRST}{SECOND}</pre-process>", 200),
        (f"<pre-process>{FIRST}{TWICE}</pre-process>", 100),
    ],
)  # fmt: skip
def test_images_that_are_subtracted_use_their_bytes(means: str, unused: int | None) -> None:
    """Only the first <pre-process> is read, and the first <mean> of a channel."""
    net = Net(version=10)
    net.result(net.op("Add", net.parameter("x", "1,2,5,5"), net.const(np.float32(1))))
    text = net.xml().replace("<layers>", f"{means}<layers>", 1)
    found = ovir.check(text, bytes(net.blob) + np.ones(50, np.float32).tobytes())
    assert [d for d in found if d.severity is ovir.Severity.ERROR] == []
    expected = f"no constant uses {unused} of the 204 bytes of weights"
    assert [d.message for d in found if d.code == "OVIR508"] == ([] if unused is None else [expected])


WINDOW = {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}


@pytest.mark.parametrize(
    ("kind", "shape", "filters", "attributes"),
    [
        ("Convolution", "1,3,8,8", (4, 3, 2, 2), WINDOW),
        ("GroupConvolution", "1,4,8,8", (4, 1, 1, 2, 2), WINDOW),
        ("ConvolutionBackpropData", "1,3,8,8", (3, 4, 2, 2), WINDOW),
        ("GroupConvolutionBackpropData", "1,4,8,8", (4, 1, 1, 2, 2), WINDOW),
    ],
)
def test_convolutions(kind: str, shape: str, filters: tuple[int, ...], attributes: dict[str, str]) -> None:
    net = Net()
    net.result(net.op(kind, net.parameter("x", shape), net.const(zeros(*filters)), **attributes))
    (warning,) = warnings(net)
    assert warning.message.startswith("the weights 'filters' are all zero")


def test_recurrent_layers_may_have_states_and_biases_of_zero() -> None:
    for w, expected in (numbers(1, 16, 3), 0), (zeros(1, 16, 3), 1):
        net = Net()
        state = net.const(zeros(1, 1, 4))
        weights = net.const(w), net.const(numbers(1, 16, 4)), net.const(zeros(1, 16))
        lengths = net.const(np.array([5], np.int32))
        x = net.parameter("x", "1,5,3")
        net.result(net.op("LSTMSequence", x, state, state, lengths, *weights, opset=5, hidden_size=4, outputs=3))
        assert len(warnings(net)) == expected


def test_zeros_that_are_normal() -> None:
    """A bias, a mask, a table of positions, and an initial state, in a model whose weights are numbers."""
    net = Net()
    x = net.op("MatMul", net.parameter("x", "2,8"), net.const(numbers(8, 8)))
    for array in (zeros(8), zeros(2, 8), zeros(1, 8)):
        x = net.op("Add", x, net.const(array), auto_broadcast="numpy")
    net.result(net.op("MatMul", x, net.const(numbers(8, 4))))
    assert not warnings(net)


# --------------------------------------------------------------------------- whole files


def blocks(count: int) -> Net:
    """Products and sums, and a Reshape whose target is in the weights."""
    net = Net()
    x = net.parameter("x", "2,8")
    for _ in range(count):
        x = net.op("MatMul", x, net.const(numbers(8, 8)))
        x = net.op("Add", x, net.const(numbers(8)), auto_broadcast="numpy")
    net.result(net.op("Reshape", x, net.const([16]), special_zero="false"))
    return net


def test_a_file_without_contents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One diagnostic; that the target of the Reshape is zero, too, follows from it."""
    net = blocks(3)
    (tmp_path / "model.xml").write_text(net.xml())
    (tmp_path / "model.bin").write_bytes(bytes(len(net.blob)))
    assert main(["check", str(tmp_path / "model.xml"), "--no-config"]) == 1
    assert capsys.readouterr().out == (
        f"{tmp_path}/model.xml:2: error[OVIR518] model.bin holds hardly anything but zeros: 6 of its 6 constants of more "
        "than one number are all zero; left out: 1 diagnostic that may follow from this\n"
        "  hint: the file may have been made without its contents, such as by a copy that was interrupted\n"
    )


def test_a_skipped_rule_leaves_nothing_out() -> None:
    net = blocks(3)
    assert {d.code for d in ovir.check(net.xml(), bytes(len(net.blob)), skip=["OVIR518"])} == {"OVIR401"}


def test_nearly_all_constants() -> None:
    """Errors are reported where some constants are numbers: they need not follow from the others."""
    net = blocks(10)
    weights = bytearray(len(net.blob))
    weights[:256], weights[-8:] = net.blob[:256], net.blob[-8:]
    (warning,) = ovir.check(net.xml(), bytes(weights), skip=["OVIR705"])
    assert "19 of its 20 constants" in warning.message
    assert warning.severity is ovir.Severity.WARNING
    weights[-8:] = np.int64([17]).tobytes()
    assert {d.code for d in ovir.check(net.xml(), bytes(weights), skip=["OVIR705"])} == {"OVIR518", "OVIR401"}
