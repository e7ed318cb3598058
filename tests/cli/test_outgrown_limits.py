"""Models that outgrow a limit of Python or NumPy: a clear finding or a result, at once, and never a fault of ovir."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net, document, layer_text

import ovir
from ovir.building.python_code import Program
from ovir.ops.matmul import Einsum

pytestmark = pytest.mark.slow
Handle = tuple[int, int]


def _found(path: Path) -> list[ovir.Diagnostic]:
    found = ovir.check(path)
    assert not [d for d in found if d.code == "OVIR999"]
    return found


# --------------------------------------------------------------------------- sizes that grow without an end


def _tile(net: Net, x: Handle) -> Handle:
    return net.op("Tile", x, net.const(np.int64([1 << 40, 1])))


def _concat(net: Net, x: Handle) -> Handle:
    return net.op("Concat", x, x, axis=0)


def _pad(net: Net, x: Handle) -> Handle:
    pads = net.const(np.int64([1 << 62, 0]))
    return net.op("Pad", x, pads, pads, pad_mode="constant")


def _resize(net: Net, x: Handle) -> Handle:
    scales = net.const(np.float32([64, 2]))
    attributes = {"mode": "nearest", "shape_calculation_mode": "scales"}
    return net.op("Interpolate", x, scales, opset=11, coordinate_transformation_mode="asymmetric", **attributes)


@pytest.mark.parametrize(
    ("step", "count", "shape", "is_error"),
    [
        (_tile, 30, "1..,3", True),
        (_tile, 30, "..5,3", None),
        (_concat, 1100, "1..,3", True),
        (_concat, 1100, "?,3", None),
        (_pad, 30, "2,3", True),
        (_pad, 30, "..5,3", None),
        (_resize, 200, "2,3", True),
        (_resize, 200, "?,3", None),
    ],
)
def test_sizes_that_grow(
    step: Callable[[Net, Handle], Handle], count: int, shape: str, is_error: bool | None, tmp_path: Path, cli: Any
) -> None:
    """Sizes pass 2 ** 1024, which is no number in f64, but for those that pads add to."""
    net = Net()
    x = net.parameter("x", shape)
    for _ in range(count):
        x = step(net, x)
    net.result(x)
    path = net.write(tmp_path)
    codes = {d.code for d in _found(path)}
    assert is_error is None or codes & {"OVIR411", "OVIR517"}  # many faults at once are those of another .bin
    for command in ("infer", "show"):
        assert "OVIR999" not in cli(command, path).err


# --------------------------------------------------------------------------- operands, dimensions and patterns


@pytest.mark.parametrize("count", [33, 64, 65, 700])
@pytest.mark.parametrize("equation", ["ab", "ba,ab", "...a", "a...,...a"])
def test_an_einsum_of_many_operands(count: int, equation: str) -> None:
    subscripts = (equation.split(",") * count)[:count]
    x = np.random.default_rng(0).uniform(0.95, 1.05, (3, 3))
    output = "b" if "b" in equation else "..."
    result = Einsum(equation=f"{','.join(subscripts)}->{output}").run(*[x] * count)
    turned = {"ba": x.T, "a...": x.T}
    axis = 1 if output == "..." else 0
    expected = np.prod([turned.get(s, x) for s in subscripts], axis=0).sum(axis)
    np.testing.assert_allclose(result, expected, rtol=1e-9)


def test_an_einsum_of_too_many_dimensions() -> None:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEF"
    arrays = [np.ones((1,) * 57, np.float32), np.ones((1,) * 25, np.float32)]
    net = Net()
    handles = [net.parameter(f"x{i}", ",".join(map(str, x.shape))) for i, x in enumerate(arrays)]
    net.result(net.op("Einsum", *handles, opset=7, equation=f"{letters}...,...->..."))
    compiled = net.compiled()
    with pytest.raises(ovir.OvirError, match="the equation has 57 dimensions in all; NumPy takes at most 52"):
        compiled(arrays)


# --------------------------------------------------------------------------- edges and bodies


@pytest.mark.parametrize("edge", ["0.0-1.0", "0.0-1.9", "0.5-1.0", "7.0-1.0"])
def test_many_edges_into_a_port_are_one_diagnostic(edge: str) -> None:
    port = '<port id="0" precision="FP32"><dim>2</dim><dim>4</dim></port>'
    relu = layer_text(
        1, "ReLU", f"<input>{port}</input><output>{port.replace(chr(34) + '0', chr(34) + '1', 1)}</output>"
    )
    end = layer_text(2, "Result", f"<input>{port}</input>")
    content = document(relu, end, edges="0.0-1.0 1.1-2.0 " + f"{edge} " * 30_000)
    start = time.process_time()
    assert 1 <= len(ovir.check(content)) <= 4
    assert time.process_time() - start < 20


def test_names_that_many_want_take_linear_time() -> None:
    def seconds(count: int) -> float:
        net = Net()
        x = net.parameter("x", "2")
        for number in range(count):
            x = net.op("ReLU", x, name=f"same{'!' * (number % 3 + 1)}")  # one identifier for all
        net.result(x)
        model = net.model()
        start = time.process_time()
        assert re.search(r"same_+2", Program(model).text)
        return time.process_time() - start

    seconds(200)
    assert seconds(8000) < 10 * seconds(1600) + 1
