"""ReadValue and Assign: what is kept, for how long, and for whom."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir.core.arrays import Array
from ovir.core.element_types import f32
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.errors import OperatorError
from ovir.ops.state import ReadValue6

ONES = np.ones(2, np.float32)


def accumulator(opset: int = 6, **declared: Any) -> Net:
    """Gives the sum of all inputs so far, from 10 on."""
    net = Net()
    x = net.parameter("x", "2")
    read = net.op("ReadValue", net.const(np.float32([10, 10])), name="read", opset=opset, variable_id="v", **declared)
    total = net.op("Add", read, x, name="total")
    net.op("Assign", total, name="write", opset=opset, outputs=0, variable_id="v")
    net.result(total)
    return net


DECLARED = {"variable_type": "f32", "variable_shape": "2"}


@pytest.mark.parametrize(
    ("opset", "declared"), [(3, {}), (6, DECLARED), (6, {}), (6, DECLARED | {"variable_shape": "?"})]
)
def test_a_variable_keeps_its_value_until_reset(opset: int, declared: dict[str, str]) -> None:
    request = accumulator(opset, **declared).compiled().create_infer_request()
    sums = [request.infer([ONES])[0] for _ in range(3)]
    np.testing.assert_array_equal([s[0] for s in sums], [11, 12, 13])
    request.reset_state()
    np.testing.assert_array_equal(request.infer([ONES])[0], [11, 11])


def test_requests_have_states_of_their_own() -> None:
    compiled = accumulator().compiled()
    first, second = compiled.create_infer_request(), compiled.create_infer_request()
    first.infer([ONES])
    np.testing.assert_array_equal(first.infer([ONES])[0], [12, 12])
    np.testing.assert_array_equal(second.infer([ONES])[0], [11, 11])


def test_what_was_read_stays_after_the_variable_is_set() -> None:
    """The value of before is an output, and is used after the Assign too."""
    net = Net()
    x = net.parameter("x", "2")
    read = net.op("ReadValue", net.const(np.float32([0, 0])), opset=3, variable_id="v")
    net.op("Assign", x, opset=3, outputs=0, variable_id="v")
    net.result(read)
    net.result(net.op("Multiply", read, net.const(np.float32(10))))
    request = net.compiled().create_infer_request()
    request.infer([ONES])
    request.infer([2 * ONES])
    before, tenfold = request.infer([3 * ONES]).values()
    np.testing.assert_array_equal(before, [2, 2])
    np.testing.assert_array_equal(tenfold, [20, 20])


@pytest.mark.parametrize(("shape", "initial"), [("2,3", (2, 3)), ("?,3", (0, 3)), ("2..4,3", (2, 3))])
def test_without_an_initial_value_it_is_zero(shape: str, initial: tuple[int, ...]) -> None:
    net = Net()
    read = net.op("ReadValue", opset=6, variable_id="v", variable_type="f32", variable_shape=shape)
    net.op("Assign", net.parameter("x", shape), opset=6, outputs=0, variable_id="v")
    net.result(read)
    request = net.compiled().create_infer_request()
    np.testing.assert_array_equal(request.infer([np.ones((3, 3) if initial[0] == 0 else (2, 3))])[0], np.zeros(initial))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('variable_shape="2"', 'variable_shape="3"', r"init_value is f32\[2\], .* 'v' is declared as f32\[3\]"),
        ('variable_type="f32"', 'variable_type="i32"', r"init_value is f32\[2\], .* 'v' is declared as i32\[2\]"),
        ('<data shape="2"', '<data shape="7,2"', r"assigns f32\[7,2\] to the variable 'v', which layer 2 'read'"),
        ('<data variable_id="v"/>', '<data variable_id="w"/>', r"no ReadValue reads the variable 'w'; .* \['v'\]"),
    ],
)
def test_faults(old: str, new: str, message: str) -> None:
    net = accumulator(6, **DECLARED)
    assert old in net.xml()
    with pytest.raises(ovir.ModelError, match=message):
        ovir.read_model(net.xml().replace(old, new).encode(), bytes(net.blob))


@pytest.mark.parametrize(
    ("kind", "assigned", "is_missed"), [("ReadValue", "w", False), ("ReadState", "w", True), ("ReadState", "v", False)]
)
def test_a_layer_that_may_read_the_variable(kind: str, assigned: str, is_missed: bool) -> None:
    net = accumulator(6, **DECLARED)
    text = net.xml().replace('type="ReadValue" version="opset6"', f'type="{kind}" version="opset99"')
    text = text.replace('<data variable_id="v"/>', f'<data variable_id="{assigned}"/>')
    codes = [d.code for d in ovir.check(text, bytes(net.blob))]
    assert "OVIR202" in codes or "OVIR201" in codes
    assert ("OVIR611" in codes) == is_missed


@pytest.mark.parametrize(
    ("value", "shape", "message"),
    [
        (np.zeros(2), "[2]", "variable 'v' holds a value of type float64, but is declared as f32"),
        (np.zeros(3, np.float32), "[2]", "variable 'v' holds a value of shape [3], but is declared as [2]"),
        (None, "[...]", "variable 'v' has neither init_value nor a known rank, so its initial value is undefined"),
    ],
)
def test_values_that_cannot_be_read(value: Array | None, shape: str, message: str) -> None:
    op = ReadValue6(variable_id="v").applied([], [TensorType(f32, PartialShape.parse(shape))])
    with pytest.raises(OperatorError) as caught:
        op.run(variable=SimpleNamespace(value=value))
    assert message in caught.value.message
