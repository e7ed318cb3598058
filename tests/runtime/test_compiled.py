"""Running: inputs, outputs, state of requests, listeners, memory."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.bodies import looped
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.graph.layers import Layer


def add_and_multiply() -> Net:
    """out0 = (x + 1) * y, out1 = x + 1"""
    net = Net()
    x, y = net.parameter("x", "2,3"), net.parameter("y", "?,3")
    total = net.op("Add", x, net.const(np.float32(1)), name="total")
    net.result(net.op("Multiply", total, y, name="product"), name="first")
    net.result(total, name="second")
    return net


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_outputs_by_position_and_name() -> None:
    results = add_and_multiply().compiled()({"x": X, "y": X[:1]})
    np.testing.assert_array_equal(results[0], (X + 1) * X[:1])
    for key in (1, "total", "second"):
        np.testing.assert_array_equal(results[key], X + 1)
    assert len(results) == 2
    assert "nothing" not in results
    with pytest.raises(KeyError, match="there is no output 'nothing'; the outputs are 0: 'product', 1: 'total'"):
        results["nothing"]


@pytest.mark.parametrize("feeds", [[X, X], {0: X, 1: X}, {"x": X.tolist(), "y": X.astype(np.float64)}])
def test_ways_to_feed(feeds: Any) -> None:
    np.testing.assert_array_equal(add_and_multiply().compiled()(feeds)[0], (X + 1) * X)


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"x": X}, r"no value is given for 'y' f32\[\?,3\]"),
        ({"x": X, "y": X, "z": X}, r"no input 'z'; its inputs are 0: 'x', 1: 'y'"),
        ({"x": X, "y": X, 0: X}, r"input 0 'x' is given twice"),
        ([X, X, X], r"3 values given for 2 inputs: 'x'"),
        (X, r"one array given for 2 inputs"),
        ({"x": X.T, "y": X}, r"input 'x' takes shape \[2,3\], got \[3,2\]"),
        ({"x": X, "y": X[0]}, r"the input has 2 dimensions, the array 1"),
        ({"x": X.astype(complex), "y": X}, r"takes f32, got an array of complex128"),
        ({"x": "text", "y": X}, r"takes f32"),
        ({"x": [[1, 2], [3]], "y": X}, r"input 'x'"),
        ({"x": None, "y": X}, r"a NoneType is not an array"),
    ],
)
def test_inputs_that_do_not_fit(feeds: Any, message: str) -> None:
    with pytest.raises(ovir.InputError, match=message):
        add_and_multiply().compiled()(feeds)


def test_results_are_the_callers_unless_shared() -> None:
    compiled = add_and_multiply().compiled()
    request = compiled.create_infer_request()
    for run in (compiled, request.infer):
        first = run([X, X])
        before = first[0].copy()
        run([X + 5, X])
        np.testing.assert_array_equal(first[0], before)
    shared = request.infer([X, X], share_outputs=True)[1]
    np.testing.assert_array_equal(request.infer([X + 5, X], share_outputs=True)[1], X + 6)
    np.testing.assert_array_equal(shared, X + 6)  # the same memory


def test_taps_see_layers_that_are_folded_or_dead() -> None:
    net = Net()
    x = net.parameter("x", "2,3")
    net.op("Add", net.const(np.float32(1)), net.const(np.float32(2)), name="three")
    net.result(net.op("Add", x, net.const(np.float32(1)), name="total"))
    results = net.compiled()([X], taps=["three", "total"])
    assert results.taps["three"][0] == 3
    np.testing.assert_array_equal(results.taps["total"][0], X + 1)
    with pytest.raises(ovir.InputError, match="no layer and no tensor is named 'none'"):
        net.compiled()([X], taps=["none"])


def test_listeners_see_every_step() -> None:
    class Seen:
        def __init__(self) -> None:
            self.calls: list[str] = []

        def will_run(self, layer: Layer, inputs: Sequence[Any]) -> None:
            self.calls.append(f"will {layer.name} {len(inputs)}")

        def did_run(self, layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
            self.calls.append(f"did {layer.name} {outputs[0].shape}")

    seen = Seen()
    add_and_multiply().compiled()([X, X], listeners=[seen])
    assert seen.calls == ["will total 2", "did total (2, 3)", "will product 2", "did product (2, 3)"]


def test_a_report_names_the_layer_in_a_body_or_after_it() -> None:
    def quotient(x: Any, name: str = "inner") -> Any:
        return ops.convert(ops.divide(ops.convert(x, "i32"), ops.constant(np.int32([0, 0])), name=name), "f32")

    for model, name in ((looped(quotient), "'inner'"), (looped(ops.relu, after=quotient), "'out'")):
        (warning,) = ovir.compile_model(model)([np.ones(2, np.float32)]).diagnostics
        assert name in str(warning)


def test_an_error_in_place_of_a_warning_claims_no_result() -> None:
    net = Net()
    a, b = net.parameter("a", "1", "i32"), net.parameter("b", "1", "i32")
    net.result(net.op("Divide", a, b))
    feeds = [np.int32([1]), np.int32([0])]
    (warning,) = net.compiled()(feeds).diagnostics
    assert warning.message == "an integer is divided by 0, which is undefined; the result here is 0"
    with pytest.raises(ovir.RunError) as caught:
        net.compiled(strict=True)(feeds)
    assert caught.value.diagnostic.message == "an integer is divided by 0, which is undefined"


def test_threads_must_be_positive() -> None:
    for threads in (0, 1.5, "2", True):
        with pytest.raises(ovir.InputError, match=f"threads must be an integer of at least 1, got {threads!r}"):
            add_and_multiply().compiled(threads=threads)
    np.testing.assert_array_equal(add_and_multiply().compiled(threads=1)([X, X])[1], X + 1)


@pytest.mark.parametrize(
    ("build", "checks"),
    [
        (lambda x, y: ops.gather_elements(x, y, 0), True),
        (lambda x, y: ops.gather_elements(np.ones((2, 3)), y, 0), True),
        (lambda x, y: ops.tile(np.ones((2, 3)), ops.reshape(y, [-1], False)), True),
        (lambda x, y: ops.topk(x, np.int64(1), 0, "max", "value").output(0), False),
        (lambda x, y: ops.negative(x), False),
        (lambda x, y: ops.maximum(x, y), False),  # its kernel checks them itself
    ],
)
def test_steps_that_check_sizes(build: Callable[[Any, Any], Any], checks: bool) -> None:
    inputs = [ops.parameter([-1, -1], "i64") for _ in range(2)]
    assert ovir.compile_model(ovir.Model([build(*inputs)], inputs)).plan().steps[-1].checks_sizes == checks
