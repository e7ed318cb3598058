"""Bound plans give what a run step by step gives, in every later call."""

import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from support.builder import Net
from threadpoolctl import threadpool_info

import ovir
from ovir import opset13 as ops
from ovir.runtime import executor
from ovir.runtime.executor_cache import MOST_BINDINGS, _fits

RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


def convolution(net: Net, data: tuple[int, int], outputs: int, size: int, begin: int = 0, end: int = 0) -> Any:
    pads = {"pads_begin": f"{begin},{begin}", "pads_end": f"{end},{end}", "strides": "1,1", "dilations": "1,1"}
    return net.op("Convolution", data, net.const(f32(outputs, 4, size, size)), **pads)


def require_same_in_later_calls(net: Net, *inputs: np.ndarray[Any, Any]) -> None:
    request = net.compiled().create_infer_request()
    expected = [np.array(array) for array in request.infer(list(inputs)).to_dict().values()]
    for share in (False, True, True):
        request.infer([np.ones_like(array) for array in inputs], share_outputs=share)
        for array, wanted in zip(
            request.infer(list(inputs), share_outputs=share).to_dict().values(), expected, strict=True
        ):
            np.testing.assert_allclose(array, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max(initial=0))


@pytest.mark.parametrize("pads", [((1, 1), (2, 0)), ((0, 2), (2, 0)), ((1, 1), (1, 1))])
def test_convolutions_with_other_pads_read_one_tensor(pads: tuple[tuple[int, int], ...]) -> None:
    net = Net()
    data = net.op("Tanh", convolution(net, net.parameter("x", "1,4,8,8"), 4, 1))
    for begin, end in pads:
        net.result(convolution(net, data, 4, 3, begin, end))
    require_same_in_later_calls(net, f32(1, 4, 8, 8))


def test_slopes_that_mean_something_else_for_other_shapes() -> None:
    net = Net()
    net.result(net.op("PReLU", net.parameter("x", "1,?,4"), net.const(np.float32([0.1, 0.2, 0.3, 0.4]))))
    compiled = net.compiled()
    for shape in ((1, 2, 4), (1, 4, 4)):
        data = -np.abs(f32(*shape))
        request = compiled.create_infer_request()
        first = request.infer([data])[0]
        for _ in range(2):
            np.testing.assert_array_equal(request.infer([data])[0], first)


def test_results_do_not_share_memory() -> None:
    net = Net()
    x = net.parameter("x", "1,3")
    data = net.op("Exp", x)
    for output in (x, data, data, net.op("Squeeze", data)):
        net.result(output)
    request = net.compiled().create_infer_request()
    for share in (False, False, False, True, True):
        given = f32(1, 3)
        arrays = [given, *request.infer([given], share_outputs=share).values()]
        assert not any(np.shares_memory(one, other) for one, other in combinations(arrays, 2))


def test_threads_do_not_warn_of_infinities() -> None:
    net = Net()
    net.result(net.op("MatMul", net.parameter("x", "1024,1024"), net.const(f32(1024, 1024))))
    data = np.full((1024, 1024), np.inf, np.float32)
    request = net.compiled().create_infer_request()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            request.infer([data])


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that has an element for each executor that is made."""
    made: list[int] = []
    original = executor.Executor.__init__

    def counted(self: Any, *arguments: Any) -> None:
        made.append(1)
        original(self, *arguments)

    monkeypatch.setattr(executor.Executor, "__init__", counted)
    return made


@pytest.mark.parametrize(("lengths", "most"), [(MOST_BINDINGS + 1, 30), (40, 2)])
def test_more_sets_of_shapes_than_plans_are_kept(lengths: int, most: int, made: list[int]) -> None:
    net = Net()
    net.result(net.op("Exp", net.parameter("x", "?,3")))
    request = net.compiled().create_infer_request()
    for _ in range(20):
        for length in range(1, lengths + 1):
            data = f32(length, 3)
            np.testing.assert_allclose(request.infer([data])[0], np.exp(data), rtol=1e-5)
    assert len(made) <= most


def test_shapes_that_were_dropped_are_bound_when_they_come_twice_as_often(made: list[int]) -> None:
    net = Net()
    net.result(net.op("Exp", net.parameter("x", "?,3")))
    request, counts = net.compiled().create_infer_request(), []
    for length in (1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 1, 1, 1, 1, 1):
        request.infer([f32(length, 3)])
        counts.append(len(made))
    assert " ".join(map(str, counts)) == "1 1 2 3 3 4 4 5 5 6 6 6 7 7 7 7 8 8 8 9 9 9 10 10 10 11 11 11 11 11 12"


def test_a_failure_of_a_bound_step_names_its_layer() -> None:
    net = Net()
    data = net.op("Abs", net.parameter("x", "2,3"))
    net.result(net.op("Gather", data, net.parameter("i", "2", "i64"), net.const(np.int64(0)), name="pick", opset=8))
    request = net.compiled()
    strict = ovir.compile_model(net.model(), strict=True)
    good, bad = np.int64([0, 1]), np.int64([0, 7])
    for model in (request, strict):
        for _ in range(3):
            model([f32(2, 3), good])
    assert "'pick'" in str(request([f32(2, 3), bad]).diagnostics[0])
    with pytest.raises(ovir.RunError, match="'pick'"):
        strict([f32(2, 3), bad])
    np.testing.assert_array_equal(strict([np.ones((2, 3), np.float32), good])[0], np.ones((2, 3)))


def test_a_large_constant_is_no_step() -> None:
    table = ops.constant(np.zeros((1 << 13, 1 << 10), np.float32))
    row = ops.parameter([1], "i64", name="row")
    model = ovir.Model([ops.gather(table, row, 0)], [row])
    assert [step.layer.type for step in ovir.compile_model(model).plan().steps] == ["Gather"]


def test_blas_uses_one_thread_while_steps_are_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    bind_step = executor.bind_step

    def recorded(*arguments: Any) -> None:
        libraries = [lib for lib in threadpool_info() if lib["user_api"] == "blas" and "numpy" in lib["filepath"]]
        used.extend(library["num_threads"] for library in libraries)
        bind_step(*arguments)

    monkeypatch.setattr(executor, "bind_step", recorded)
    net = Net()
    net.result(net.op("Relu", net.parameter("x", "2")))
    net.compiled()([f32(2)])
    assert set(used) == {1}


@pytest.mark.parametrize(
    ("shapes", "fits"),
    [
        (((2, 5), (5,)), True),
        (((2, 5), (6,)), False),  # sizes that are equal where shapes are bound
        (((3, 5), (5,)), False),
        (((2, 5, 1), (5,)), False),
        (((2, 5), None), False),
    ],
)
def test_which_shapes_have_the_sizes_that_are_bound(shapes: tuple[Any, ...], fits: bool) -> None:
    (first, second), bound = shapes, ((2, -1), (-1,))
    assert _fits(((first,), (second,)), ((bound[0],), (bound[1],))) == fits
