"""Shapes that no array can have: more than 64 dimensions, or more bytes than 64 bits count."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from builder import Net

import ovir
from ovir.cli import main

HUGE, LARGEST = 2**62, 2**63 - 1
RANK = "a shape has at most 64 dimensions, got"
SIZE = "is larger than any memory"


def _parameter(shape: str) -> Net:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", shape)))
    return net


def _constant(shape: str) -> Net:
    net = Net()
    net.result(net.op("Const", element_type="f32", shape=shape, offset="0", size="0"))
    return net


def _behind(kind: str, *values: list[int], opset: int = 1, **attributes: str) -> Net:
    net = Net()
    inputs = [net.const(np.int64(value)) for value in values]
    net.result(net.op(kind, net.parameter("x", "2,3"), *inputs, opset=opset, **attributes))
    return net


def _message(net: Net) -> str:
    """Return the message of ``read_model``, after a test that ``check`` has the same with its line."""
    text, weights = net.xml().encode(), bytes(net.blob)
    with pytest.raises(ovir.ModelError) as caught:
        ovir.read_model(text, weights)
    errors = [d for d in ovir.check(text, weights) if d.severity is ovir.Severity.ERROR]
    assert [(d.message, d.line) for d in errors] == [(caught.value.diagnostic.message, caught.value.diagnostic.line)]
    assert errors[0].line
    assert errors[0].layer_id is not None
    return errors[0].message


@pytest.mark.parametrize("count", [65, 1000, 1_000_000])
@pytest.mark.parametrize("size", ["1", "?", "0", "2..5"])
def test_ranks_of_parameters(count: int, size: str) -> None:
    assert _message(_parameter(",".join([size] * count))) == f"attribute 'shape': {RANK} {count}"


def test_ranks_of_constants() -> None:
    assert _message(_constant(",".join(["1"] * 65))) == f"{RANK} 65"
    assert "a list has at most 65536 items, got 1000000" in _message(_constant(",".join(["1"] * 1_000_000)))


@pytest.mark.slow
def test_a_shape_of_40_megabytes() -> None:
    text = _parameter(",".join(["7"] * 20_000_000)).xml().encode()
    start = time.process_time()
    with pytest.raises(ovir.ModelError, match=RANK):
        ovir.read_model(text)
    assert time.process_time() - start < 2


def test_dims_of_a_port() -> None:
    text = (
        _parameter("?")
        .xml()
        .replace('<port id="0" precision="UNSPECIFIED"/>', f'<port id="0">{"<dim>1</dim>" * 65}</port>')
    )
    errors = [d for d in ovir.check(text.encode()) if d.severity is ovir.Severity.ERROR]
    assert [d.message for d in errors if RANK in d.message] == [f"port 0: {RANK} 65"] * 2


@pytest.mark.parametrize(
    "shape",
    [f"{HUGE}", f"{LARGEST}", f"{HUGE},0", f"0,{LARGEST},{LARGEST}", f"{LARGEST},{LARGEST}", f"{2**31},{2**31}"],
)
def test_sizes(shape: str) -> None:
    assert _message(_parameter(shape)) == f"output 0, f32[{shape}], {SIZE}"
    assert SIZE in _message(_constant(shape))


@pytest.mark.parametrize("shape", [f"0..{LARGEST}", "1," * 63 + "1", f"0,{2**60}", "0"])
def test_what_can_be_held(shape: str) -> None:
    assert ovir.read_model(_parameter(shape).xml().encode()).outputs[0].shape == ovir.PartialShape.parse(shape)


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (_behind("Reshape", [1] * 65, special_zero="false"), f"{RANK} 65"),
        (_behind("Broadcast", [1] * 64 + [2, 3], opset=3), f"{RANK} 66"),
        (_behind("Tile", [1] * 70), f"{RANK} 70"),
        (_behind("Unsqueeze", list(range(70))), f"{RANK} 72"),
        (_behind("Broadcast", [HUGE, 2, 3], opset=3), SIZE),
        (_behind("Broadcast", [LARGEST, LARGEST, 0, 2, 3], opset=3), SIZE),
        (_behind("Tile", [HUGE, HUGE]), SIZE),
    ],
)
def test_results(net: Net, message: str) -> None:
    assert message in _message(net)


def test_only_the_first_tensor_is_reported() -> None:
    net = Net()
    net.result(net.op("ReLU", net.op("Exp", net.parameter("x", f"{HUGE}"))))
    assert SIZE in _message(net)


def test_ranks_that_only_a_run_knows() -> None:
    net = Net()
    net.result(net.op("Reshape", net.parameter("x", "?"), net.parameter("shape", "?", "i64"), special_zero="false"))
    with pytest.raises(ovir.RunError, match=RANK):
        net.compiled()([np.ones(1, np.float32), np.ones(65, np.int64)])


@pytest.mark.parametrize(
    "reshape",
    [
        lambda model: model.reshape([1] * 65),
        lambda model: model.reshape({"x": ",".join(["1"] * 65)}),
        lambda model: model.reshape(ovir.PartialShape([-1] * 65)),
    ],
)
def test_reshape(reshape: Callable[[ovir.Model], None]) -> None:
    with pytest.raises((ovir.InputError, ValueError), match=RANK):
        reshape(_parameter("...").model())


def test_reshape_to_what_no_memory_holds() -> None:
    with pytest.raises(ovir.ModelError, match=SIZE):
        _parameter("...").model().reshape([HUGE, 0])


@pytest.mark.parametrize(("shape", "message"), [(",".join(["1"] * 65), RANK), (f"{HUGE},0", SIZE)])
def test_the_option_shape(tmp_path, capsys: pytest.CaptureFixture[str], shape: str, message: str) -> None:
    path = _parameter("...").write(tmp_path)
    assert main.main(["infer", str(path), "--shape", shape]) != 0
    assert message in "".join(capsys.readouterr())
