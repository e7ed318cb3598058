"""The rules of devices: each is broken by a model that is made for it, and by no other; a plain model breaks none."""

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir.checks.checker import DEVICES
from ovir.checks.rules.devices import LIMITS
from ovir.cli.main import main

RULES = ("OVIR708", "OVIR709", "OVIR710")
EXAMPLES = Path(__file__).parents[2] / "examples" / "xml"


def unary(shape: str, element_type: str = "i32", kind: str = "Abs", **attributes: Any) -> Net:
    net = Net()
    net.result(net.op(kind, net.parameter("x", shape, element_type), **attributes))
    return net


def added(element_type: str) -> Net:
    net = Net()
    net.result(net.op("Add", net.parameter("x", "2,3", element_type), net.parameter("y", "2,3", element_type)))
    return net


def stateful(shape: str) -> Net:
    net = Net()
    state = {"variable_id": "v", "variable_shape": shape, "variable_type": "i32"}
    read = net.op("ReadValue", net.parameter("x", "2,3", "i32"), opset=6, **state)
    net.op("Assign", read, opset=6, variable_id="v")
    net.result(net.op("Abs", read))
    return net


def strings() -> Net:
    net = Net()
    net.result(net.parameter("x", "2,3", "string"))
    return net


def reshaped() -> Net:
    net = Net()
    target = net.const(np.array([1, 1, 1, 1, 2, 3]))
    net.result(net.op("Reshape", net.parameter("x", "2,3", "f16"), target, special_zero="false"))
    return net


def large(size: int) -> Net:
    net = Net()
    sizes = net.const([size // 64, 64])
    net.result(net.op("Broadcast", net.const(1, "u8"), sizes, opset=3, mode="numpy"))
    return net


def unique() -> Net:
    net = Net()
    ports = net.op("Unique", net.parameter("x", "6", "i32"), opset=10, outputs=4, sorted="true")
    net.result(ports)
    return net


def quantized(largest: int, *, of_data: bool = True) -> Net:
    net = Net()
    data = net.parameter("x", "1,4")
    if of_data:
        ends = [net.const(np.float32(end)) for end in (0, 1, 0, 1)]
        data = net.op("FakeQuantize", data, *ends, levels=256)
    codes = net.const(np.array([[1, largest, -2, 3]], np.int8))
    scaled = net.op("Multiply", net.op("Convert", codes, destination_type="f32"), net.const(np.float32([[0.1]])))
    net.result(net.op("MatMul", data, scaled, transpose_b="true"))
    return net


def fake_quantized(share: float, levels: int = 256, *, of_data: bool = True, reshaped: bool = True) -> Net:
    """Return a product with weights of which the codes take a share of their range, as NNCF's older models have it."""
    net = Net()
    data = net.parameter("x", "1,4")
    if of_data:
        data = net.op("FakeQuantize", data, *(net.const(np.float32(end)) for end in (0, 1, 0, 1)), levels=256)
        data = net.op("Reshape", data, net.const(np.array([1, 4])), special_zero="false") if reshaped else data
    low, high = -0.5 * (levels // 2), 0.5 * ((levels - 1) // 2)
    ends = [net.const(np.float32([[end]])) for end in (low, high, low, high)]
    rounded = net.op("FakeQuantize", net.const(np.float32([[low * share, 1, -2, 3]])), *ends, levels=levels)
    net.result(net.op("MatMul", data, rounded, transpose_b="true"))
    return net


CASES: list[tuple[str, str, str | None, Callable[[], Net]]] = [
    ("NPU", "a dimension without upper bound", None, lambda: unary("?,3")),
    ("NPU", "a dimension with bounds", None, lambda: unary("1..8,3")),
    ("NPU", "an unknown rank", None, lambda: unary("...")),
    ("NPU", "more than 5 dimensions of an input or output", None, lambda: unary("1,1,1,1,2,3")),
    ("NPU", "more than 5 dimensions of an input or output", None, reshaped),
    ("NPU", "u1, u3, u6 or strings", None, strings),
    ("NPU", "an operation of no known form", None, unique),
    ("NPU", "an operation of an extension", None, lambda: unary("2,3", kind="Mine")),
    ("NPU", "f32 and f64 are computed in f16", None, lambda: unary("2,3", "f32")),
    ("GPU", "an unknown rank", None, lambda: unary("...")),
    ("GPU", "unknown dimensions other than a bounded batch", "2022.3", lambda: unary("1..8,?")),
    ("GPU", "unknown dimensions other than a bounded batch", "2022.3", lambda: unary("3,1..8")),
    ("GPU", "more than 8 dimensions", None, lambda: unary("1,1,1,1,1,1,1,1,2")),
    ("GPU", "more than 6 dimensions", "2022.3", lambda: unary("1,1,1,1,1,1,2")),
    ("GPU", "strings", None, strings),
    ("GPU", "states", "2022.2", lambda: stateful("2,3")),
    ("GPU", "states of unknown sizes", "2023.2", lambda: stateful("?,3")),
    ("GPU", "a tensor beyond the largest single allocation", None, lambda: large(4_294_959_168)),
    ("GPU", "64-bit integers are computed in i32", None, lambda: added("i64")),
    ("CPU", "an unknown rank", None, lambda: unary("...")),
    ("CPU", "inputs of u1, u3 or u6", None, lambda: unary("8", "u3", "Convert", destination_type="f32")),
    ("CPU", "64-bit integers are computed in i32", None, lambda: added("i64")),
    ("CPU", "int8 weights of the full range saturate without VNNI", None, lambda: quantized(-65)),
]


def found(path: Path, device: str, runtime: str | None = None) -> list[ovir.Diagnostic]:
    return [d for d in ovir.check(path, device=device, runtime=runtime) if d.code in RULES]


def test_every_limit_has_a_case() -> None:
    assert {(device, says) for device, says, _, _ in CASES} == {(limit.device, limit.says) for limit in LIMITS}
    assert {limit.device for limit in LIMITS} == set(DEVICES)


@pytest.mark.parametrize(
    ("device", "says", "runtime", "make"), CASES, ids=[f"{device} {says}" for device, says, _, _ in CASES]
)
def test_a_model_breaks_its_limit(
    device: str, says: str, runtime: str | None, make: Callable[[], Net], tmp_path: Path
) -> None:
    net = make()
    path = net.write(tmp_path)
    if says == "an operation of an extension":
        path.write_text(path.read_text().replace('type="Mine" version="opset1"', 'type="Mine" version="extension"'))
    limit = next(limit for limit in LIMITS if (limit.device, limit.says) == (device, says))
    reported = [d for d in found(path, device, runtime) if d.hint is not None and d.hint.endswith(limit.source)]
    assert limit.code.id in {d.code for d in reported}
    assert all(d.line for d in reported)


@pytest.mark.parametrize(
    ("device", "runtime", "make"),
    [
        *((device, release, lambda: unary("2,3,4")) for device in (*DEVICES, "cpu") for release in (None, "2022.1", "2023.2", "2026.4")),
        *(("GPU", release, lambda: unary("1,1,1,1,1,1,2")) for release in ("2023.0", None)),
        ("GPU", "2022.3", lambda: unary("1..8,3")),
        ("GPU", "2022.3", lambda: unary("1,1,1,1,1,2")),
        ("GPU", None, lambda: unary("1,1,1,1,1,1,1,2")),
        ("GPU", None, lambda: large(4_294_959_104)),
        ("NPU", None, lambda: unary("1,1,1,2,3")),
        # weights of half of the range, and those that are only compressed, which are multiplied as real numbers
        *(("CPU", None, partial(quantized, largest)) for largest in (64, -64)),
        ("CPU", None, partial(quantized, 127, of_data=False)),
        *(("CPU", None, partial(fake_quantized, *codes)) for codes in ((0.5,), (0.5, 255), (1, 16))),
        ("CPU", None, partial(fake_quantized, 1, of_data=False)),
    ],
)  # fmt: skip
def test_a_model_breaks_none(device: str, runtime: str | None, make: Callable[[], Net], tmp_path: Path) -> None:
    assert found(make().write(tmp_path), device, runtime) == []


@pytest.mark.parametrize("levels", [255, 256])
@pytest.mark.parametrize("reshaped", [True, False])
def test_weights_that_are_quantized_in_a_run_saturate_as_well(levels: int, reshaped: bool, tmp_path: Path) -> None:
    (info,) = found(fake_quantized(1.0, levels, reshaped=reshaped).write(tmp_path), "CPU")
    assert (info.code, "weights of the full range saturate" in info.message) == ("OVIR710", True)


def test_the_hint_fixes_the_shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dimensions that must be equal get one size, and the command of the hint leaves nothing to report."""
    net = Net()
    image, other = net.parameter("an image", "?,3,?,?", "i32"), net.parameter("other", "?,3,32,32", "i32")
    net.result(net.op("Add", image, other))
    path = net.write(tmp_path)
    (refusal,) = found(path, "NPU")
    assert "the inputs 'an image' [?,3,?,?], 'other' [?,3,32,32]" in refusal.message
    monkeypatch.chdir(tmp_path)
    command = shlex.split((refusal.hint or "").split("`")[1])
    assert command[0] == "ovir"
    assert main(command[1:]) == 0
    assert found(tmp_path / "fixed.xml", "NPU") == []


@pytest.mark.parametrize(("count", "more"), [(1, ""), (4, ""), (5, " and 1 more"), (6, " and 2 more")])
def test_some_of_many_inputs_are_named(count: int, more: str, tmp_path: Path) -> None:
    net = Net()
    for number in range(count):
        net.result(net.op("Abs", net.parameter(f"x{number}", "?,3", "i32")))
    (refusal,) = found(net.write(tmp_path), "NPU")
    names = ", ".join(f"'x{number}' [?,3]" for number in range(min(count, 4)))
    start = "the input" if count == 1 else "the inputs"
    assert refusal.message == f"NPU: {start} {names}{more}: unknown sizes without an upper bound"


def test_sizes_that_depend_on_values_stay(tmp_path: Path) -> None:
    """Only the first of several layers is reported, and not for what an option would fix."""
    net = Net()
    nonzero = net.op("NonZero", net.parameter("x", "?,3", "i32"), opset=3, output_type="i32")
    net.result(net.op("Abs", nonzero))
    first, second = found(net.write(tmp_path), "NPU")
    assert "the input 'x'" in first.message
    assert "outputs of NonZero" in second.message
    assert "depend on values" in (second.hint or "")


def test_only_an_input_can_be_given_a_rank(tmp_path: Path) -> None:
    net = Net()
    net.result(
        net.op("Reshape", net.parameter("x", "4", "i32"), net.parameter("shape", "?", "i64"), special_zero="false")
    )
    hints = [d.hint or "" for device in ("GPU", "CPU") for d in found(net.write(tmp_path), device)]
    hints += [d.hint or "" for d in found(unary("...").write(tmp_path), "GPU")]
    assert ["gives an input a rank" in hint for hint in hints] == [False, False, True]


def test_small_arithmetic_of_sizes_is_no_integer_arithmetic(tmp_path: Path) -> None:
    net = Net()
    sizes = net.op("ShapeOf", net.parameter("x", "?,3", "i32"), opset=3, output_type="i64")
    net.result(net.op("Add", sizes, net.const([1, 1])))
    assert found(net.write(tmp_path), "CPU") == []


@pytest.mark.parametrize(
    ("count", "more"), [(1, ""), (2, "; the same applies to 1 more layer"), (4, "; the same applies to 3 more layers")]
)
def test_layers_of_one_reason_are_counted(count: int, more: str, tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x", "2,3")
    for _ in range(count):
        x = net.op("ReLU", x)
    net.result(x)
    (info,) = found(net.write(tmp_path), "NPU")
    assert info.message == f"NPU: f32 is computed in f16{more}"


def test_other_devices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ovir.InputError, match="no rules for the device 'TPU': known are CPU, GPU, NPU"):
        ovir.check(unary("2").write(tmp_path), device="TPU")


REFUSED = [
    lambda: unary("..."),
    lambda: unary("8", "u1", "Convert", destination_type="f32"),
    lambda: unary("8", "u6", "Convert", destination_type="f32"),
]
TAKEN = [
    lambda: unary("?,3"),
    lambda: unary("1,1,1,1,1,1,1,1,2,3"),
    lambda: unary("8", "f64"),
    lambda: unary("8", "u4", "Convert", destination_type="f32"),
    strings,
    unique,
    lambda: stateful("?,3"),
]


@pytest.mark.parametrize(
    ("make", "is_taken"), [*((make, False) for make in REFUSED), *((make, True) for make in TAKEN)]
)
def test_the_cpu_agrees(make: Callable[[], Net], is_taken: bool, tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino", reason="OpenVINO says what its CPU plugin takes")
    path = make().write(tmp_path)
    assert any(d.code == "OVIR708" for d in found(path, "CPU")) is not is_taken
    try:
        openvino.Core().compile_model(path, "CPU")
    except RuntimeError:
        assert not is_taken
    else:
        assert is_taken


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.xml")), ids=lambda path: path.stem)
def test_no_alarm_on_models_that_run_on_the_cpu(path: Path) -> None:
    assert not [d for d in found(path, "CPU") if d.code != "OVIR710"]
