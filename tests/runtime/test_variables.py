"""The variables of a request: listed before the first run, the caller's when read or set, and safe from failed runs."""

from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir

ONES = np.ones(2, np.float32)


def accumulator(initial: str = "constant", shape: str = "2", *, fails: bool = False) -> ovir.CompiledModel:
    """The sum of all inputs so far; the sum of a failing run is assigned before an index that is out of range."""
    net = Net()
    x = net.parameter("x", shape)
    inits = {
        "constant": lambda: [net.const(np.float32([10, 20]))],
        "none": list,
        "computed": lambda: [net.op("Multiply", x, net.const(np.float32(2)))],
    }
    read = net.op(
        "ReadValue", *inits[initial](), opset=6, variable_id="v", variable_type="f32", variable_shape=shape, name="read"
    )
    total = net.op("Add", read, x, name="total")
    net.op("Assign", total, opset=6, outputs=0, variable_id="v")
    net.result(total)
    if fails:
        net.result(net.op("GatherElements", total, net.parameter("i", "1", "i64"), opset=6, axis=0))
    return net.compiled()


def sums(request: ovir.InferRequest, count: int) -> list[list[float]]:
    return [request.infer([ONES])[0].tolist() for _ in range(count)]


@pytest.mark.parametrize(
    ("initial", "shape", "value"),
    [
        ("constant", "2", [10, 20]),
        ("constant", "?", [10, 20]),
        ("none", "2", [0, 0]),
        ("none", "2..4", [0, 0]),
        ("none", "?", []),
        ("computed", "2", None),
        ("none", "...", None),
    ],
)
def test_variables_are_listed_before_the_first_run(initial: str, shape: str, value: list[int] | None) -> None:
    request = accumulator(initial, shape).create_infer_request()
    (variable,) = request.query_state()
    assert (variable.name, str(variable.element_type), str(variable.shape)) == ("v", "f32", f"[{shape}]")
    got = variable.value
    assert (None if got is None else got.tolist()) == value
    assert got is None or got.dtype == np.float32


@pytest.mark.parametrize("initial", ["constant", "none", "computed"])
@pytest.mark.parametrize("runs", [0, 1, 4])
@pytest.mark.parametrize("shape", ["2", "?"])
def test_a_state_is_restored_in_a_new_request(initial: str, runs: int, shape: str) -> None:
    if (initial, shape) == ("none", "?"):
        shape = "2..4"
    compiled = accumulator(initial, shape)
    request, other = compiled.create_infer_request(), compiled.create_infer_request()
    sums(request, runs)
    for variable in other.query_state():
        variable.value = {v.name: v.value for v in request.query_state()}[variable.name]
    assert sums(other, 4) == sums(request, 4)


def test_a_state_has_openvinos_name_and_no_value_is_lost_to_a_typo() -> None:
    compiled = accumulator("none", "2")
    request = compiled.create_infer_request()
    (variable,) = request.query_state()
    variable.state = np.float32([5, 7])
    assert variable.state.tolist() == variable.value.tolist() == [5, 7]
    with pytest.raises(AttributeError):
        variable.valeu = np.float32([1, 2])


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("before", range(4))
def test_a_value_that_was_read_stays_as_it_is(before: int, share: bool) -> None:
    request = accumulator().create_infer_request()
    sums(request, before)
    saved = request.query_state()[0].value
    assert saved is not None
    assert saved.tolist() == [10 + before, 20 + before]
    after = [request.infer([ONES], share_outputs=share)[0].tolist() for _ in range(3)]
    assert saved.tolist() == [10 + before, 20 + before]
    request.query_state()[0].value = saved
    assert [request.infer([ONES], share_outputs=share)[0].tolist() for _ in range(3)] == after
    request.infer([ONES], share_outputs=share)[0][:] = -99
    saved[:] = -1
    assert sums(request, 1) == [[15 + before, 25 + before]]


def test_the_caller_keeps_what_it_set() -> None:
    request = accumulator().create_infer_request()
    given = np.float32([100, 200])
    (variable,) = request.query_state()
    for _ in range(3):
        variable.value = given
        assert sums(request, 2) == [[101, 201], [102, 202]]
    np.testing.assert_array_equal(given, [100, 200])
    variable.value = given
    given[:] = 0
    assert sums(request, 1) == [[101, 201]]
    variable.reset()
    assert sums(request, 1) == [[11, 21]]
    variable.value = None
    assert sums(request, 1) == [[11, 21]]


@pytest.mark.parametrize("runs", range(4))
@pytest.mark.parametrize("is_set", [False, True])
def test_a_failed_run_changes_nothing(runs: int, is_set: bool) -> None:
    request = accumulator(fails=True).create_infer_request()
    good, bad = np.int64([1]), np.int64([7])
    for _ in range(runs):
        request.infer([ONES, good])
    (variable,) = request.query_state()
    if is_set:
        variable.value = np.float32([100, 200])
    before = variable.value
    assert before is not None
    for _ in range(3):
        with pytest.raises(ovir.RunError, match="7 is outside"):
            request.infer([ONES, bad])
        np.testing.assert_array_equal(variable.value, before)
    np.testing.assert_array_equal(request.infer([ONES, good])[0], before + 1)
    np.testing.assert_array_equal(request.infer([ONES, good])[0], before + 2)


def test_an_interrupted_run_changes_nothing() -> None:
    class Interrupting:
        def will_run(self, layer: ovir.Layer, inputs: Any) -> None:
            pass

        def did_run(self, layer: ovir.Layer, inputs: Any, outputs: Any) -> None:
            if layer.type == "Assign":
                raise KeyboardInterrupt

    request = accumulator().create_infer_request()
    request.query_state()[0].value = np.float32([1, 2])
    with pytest.raises(KeyboardInterrupt):
        request.infer([ONES], listeners=[Interrupting()])
    assert sums(request, 1) == [[2, 3]]
