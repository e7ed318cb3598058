"""Steps of bound plans whose shapes only a run shows: they bind themselves to shapes that come again."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.core.shapes import PartialShape
from ovir.diagnostics.errors import OperatorError
from ovir.ops.convolution import Convolution
from ovir.runtime import unbound_calls
from ovir.runtime.executor import _is_free
from ovir.runtime.unbound_calls import UnboundCall


def chosen() -> Net:
    """A chain on the nonzero rows of x: how many there are is known in a run."""
    net = Net()
    x, y = net.parameter("x", "6"), net.parameter("y", "6,4")
    places = net.op("NonZero", x, opset=3, output_type="i64", name="places")
    indices = net.op("Squeeze", places, net.const(np.int64([0])), name="indices")
    rows = net.op("Gather", y, indices, net.const(np.int64(0)), opset=8, name="rows")
    total = net.op("Add", rows, net.const(np.float32([[1, 2, 3, 4]])), name="total")
    count = net.op("ShapeOf", total, opset=3, output_type="i64", name="count")
    doubled = net.op(
        "Concat",
        net.const(np.int64([2, 2])),
        net.op("Gather", count, *map(net.const, np.int64([[0], [0]])), opset=8),
        axis=0,
    )
    order = net.const(np.int64([1, 2, 0]))
    parts = net.op(
        "Reshape", net.op("Transpose", total, net.const(np.int64([1, 0]))), doubled, special_zero="false", name="parts"
    )
    last = net.op("Transpose", parts, order, name="last")
    number = net.op("Gather", count, net.const(np.int64(0)), net.const(np.int64(0)), opset=8, name="number")
    counted = net.op(
        "Range", net.const(np.int64(0)), number, net.const(np.int64(1)), opset=4, output_type="i64", name="counted"
    )
    net.result(net.op("Multiply", last, last, name="square"))
    net.result(counted)
    same = net.op("Convert", total, destination_type="f32", name="same")
    net.result(net.op("ReduceSum", same, net.const(np.int64([0, 1])), keep_dims="false", name="sum"))
    return net


def free_steps(request: ovir.InferRequest) -> dict[str, UnboundCall]:
    (executor,) = request._bindings._bound.values()
    return {f._step.layer.name: f for f, _ in executor._calls if isinstance(f, UnboundCall)}


def bound_names(request: ovir.InferRequest) -> set[str]:
    return {name for name, step in free_steps(request).items() if step._binding is not None}


CHAIN = {"indices", "rows", "total", "count", "parts", "last", "counted", "square", "same", "sum"}


def feeds(random: np.random.Generator, count: int) -> list[Any]:
    x = np.zeros(6, np.float32)
    x[random.choice(6, count, replace=False)] = 1
    return [x, random.standard_normal((6, 4)).astype(np.float32)]


def check(request: ovir.InferRequest, inputs: list[Any]) -> None:
    expected = request.compiled.create_infer_request().infer(inputs)
    for got, wanted in zip(request.infer(inputs).values(), expected.values(), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.parametrize("counts", ["3333", "333555533", "345345", "3335353553355", "330033", "61616166"])
def test_results_hold_whatever_shapes_come(counts: str) -> None:
    random = np.random.default_rng(0)
    request = chosen().compiled().create_infer_request()
    for count in counts:
        check(request, feeds(random, int(count)))


def test_few_shapes_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unbound_calls, "_MOST_SHAPES", 2)
    data, indices = (ops.parameter([-1, 3], kind, name=kind) for kind in ("f32", "i64"))
    model = ovir.Model([ops.gather_elements(data, indices, 1)], [data, indices])
    request = ovir.compile_model(model).create_infer_request()
    for count in (1, 2, 3, 4, 5, 6):
        request.infer([np.ones((count, 3), np.float32), np.zeros((count, 3), np.int64)])
    executor = request._bindings._for_all_shapes
    (gather,) = [function for function, _ in executor._calls if isinstance(function, UnboundCall)]
    assert gather._fitting == {((6, 3), (6, 3))}


def test_steps_bind_to_shapes_that_come_again() -> None:
    random = np.random.default_rng(0)
    request = chosen().compiled().create_infer_request()
    for count in (3, 4):
        for _ in range(2):
            check(request, feeds(random, count))
            assert bound_names(request) == set()
        check(request, feeds(random, count))
        assert bound_names(request) >= CHAIN
        bindings = {name: step._binding for name, step in free_steps(request).items()}
        check(request, feeds(random, count))
        assert {name: step._binding for name, step in free_steps(request).items()} == bindings
        assert "places" not in bound_names(request)  # its output has another shape for other elements


def test_steps_whose_shapes_always_change_bind_when_they_stay_at_last() -> None:
    random = np.random.default_rng(0)
    request = chosen().compiled().create_infer_request()
    for run in range(3 * unbound_calls._CHANGES):
        check(request, feeds(random, 1 + run % 6))
    assert any(step._pause for step in free_steps(request).values())
    for _ in range(unbound_calls._PAUSE + 3):
        check(request, feeds(random, 3))
    assert bound_names(request) >= CHAIN


def test_steps_with_weights_bind_when_their_shapes_come_a_second_time() -> None:
    net = Net()
    x, y = net.parameter("x", "4"), net.parameter("y", "4,200")
    places = net.op("Squeeze", net.op("NonZero", x, opset=3, output_type="i64"), net.const(np.int64([0])))
    rows = net.op("Gather", y, places, net.const(np.int64(0)), opset=8, name="rows")
    weights = np.random.default_rng(0).standard_normal((200, 400)).astype(np.float32)
    net.result(net.op("MatMul", rows, net.const(weights), name="product"))
    request = net.compiled().create_infer_request()
    for bound in (set(), {"product"}, {"product", "rows"}):
        check(request, [np.float32([1, 0, 1, 0]), np.ones((4, 200), np.float32)])
        assert bound_names(request) & {"product", "rows"} == bound


def test_large_steps_keep_their_kernels() -> None:
    net = Net()
    x = net.parameter("x", "40000")
    places = net.op("NonZero", x, opset=3, output_type="i64")
    net.result(net.op("Negative", places, name="negative"))
    request = net.compiled().create_infer_request()
    for _ in range(4):
        check(request, [np.ones(40000, np.float32)])
    assert bound_names(request) == set()


@pytest.mark.parametrize(
    ("kernel", "first", "runs"),
    [((3, 3), (8, 502), 1), ((3, 3), (8, 503), 0), ((7, 9), (8, 11), 1), ((8, 8), (8, 11), 0), ((1, 64), (8, 80), 0)],
)
def test_convolutions_of_many_bytes_or_taps_take_their_fast_form_whatever_size_comes(
    kernel: tuple[int, int], first: tuple[int, int], runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    run = Convolution.run
    monkeypatch.setattr(Convolution, "run", lambda op, *arrays: calls.append(op) or run(op, *arrays))
    random = np.random.default_rng(2)
    weights = random.standard_normal((8, 4, *kernel)).astype(np.float32)
    x = ops.parameter([1, 4, -1, -1], "f32")
    model = ovir.Model([ops.convolution(x, weights, [1, 1], [1, 1], [1, 1], [1, 1])], [x])
    request = ovir.compile_model(model).create_infer_request()
    request.infer([np.zeros((1, 4, 6, 75), np.float32)])
    inputs = [random.standard_normal((1, 4, *size)).astype(np.float32) for size in (first, (9, 700), (600, 90))]
    expected = [ovir.compile_model(model)([array])[0] for array in inputs]
    calls.clear()
    kept = [request.infer([array])[0] for array in inputs]
    assert len(calls) == runs
    for found, array in zip(kept, expected, strict=True):
        np.testing.assert_allclose(found, array, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [64, 65])
def test_steps_that_read_many_sizes_keep_their_kernels(count: int) -> None:
    net = Net()
    places = net.op("NonZero", net.parameter("x", "65"), opset=3, output_type="i64")
    net.result(net.op("Unique", places, opset=10, name="unique", outputs=4))
    request = net.compiled().create_infer_request()
    for _ in range(4):
        check(request, [(np.arange(65) < count).astype(np.float32)])
    assert ("unique" in bound_names(request)) == (count == 64)


def test_errors_of_bound_steps_name_the_layer() -> None:
    net = Net()
    x, y = net.parameter("x", "4"), net.parameter("y", "3")
    places = net.op("Squeeze", net.op("NonZero", x, opset=3, output_type="i64"), net.const(np.int64([0])))
    net.result(net.op("Add", net.op("Convert", places, destination_type="f32"), y, name="total"))
    request = net.compiled().create_infer_request()
    three, two = np.float32([0, 1, 1, 1]), np.float32([0, 1, 1, 0])
    for _ in range(4):
        np.testing.assert_array_equal(request.infer([three, np.zeros(3, np.float32)])[0], [1, 2, 3])
    for _ in range(3):
        with pytest.raises(ovir.RunError, match="total"):
            request.infer([two, np.zeros(3, np.float32)])
    np.testing.assert_array_equal(request.infer([three, np.zeros(3, np.float32)])[0], [1, 2, 3])


def test_variables_of_known_shape_do_not_free_the_steps_after_them() -> None:
    net = Net()
    x = net.parameter("x", "2")
    state = net.op("ReadValue", net.const(np.float32([1, 1])), opset=3, variable_id="v")
    total = net.op("Add", state, x, name="total")
    net.op("Assign", total, opset=3, variable_id="v")
    net.result(total)
    request = net.compiled().create_infer_request()
    got = [request.infer([np.float32([1, 2])])[0].tolist() for _ in range(4)]
    assert got == [[2, 3], [3, 5], [4, 7], [5, 9]]
    assert "total" not in free_steps(request)
    request.reset_state()
    assert request.infer([np.float32([1, 2])])[0].tolist() == [2, 3]


def identity_or_double(x: Any, count: Any) -> Any:
    one, other = ops.parameter([-1], "f32"), ops.parameter([-1], "f32")
    results = ops.result(one), ops.result(ops.concat([other, other], 0))
    branch = ops.if_op(ops.greater(ops.squeeze(count, np.int64([0])), np.int64(0)))
    branch.set_then_body(ovir.Model([results[0]], [one], "then"))
    branch.set_else_body(ovir.Model([results[1]], [other], "else"))
    branch.set_input(x.output(0), one, other)
    return branch.set_output(*results)


SHOWN: dict[str, Callable[[Any, Any], Any]] = {
    "part": lambda x, count: ops.slice(x, np.int64([0]), count, np.int64([1]), np.int64([0])),
    "initial value": lambda x, count: ops.read_value(x, "v", "f32", [-1]),
    "branch": identity_or_double,
}


@pytest.mark.parametrize("name", SHOWN)
def test_memory_that_an_unbound_step_shows_is_not_taken(name: str) -> None:
    x, count = ops.parameter([4], "f32"), ops.parameter([1], "i64")
    shown = SHOWN[name](ops.exp(x), count)
    later = ops.exp(ops.add(x, ops.reduce_sum(shown, np.int64([0]), False)))  # when nothing else reads the first one
    sinks = [ops.assign(shown, "v")] if name == "initial value" else []
    model = ovir.Model([ops.concat([shown, later], 0)], [x, count], "shown", sinks=sinks)
    request = ovir.compile_model(model).create_infer_request()
    for number in (0.0, 0.5, 0.5, 0.5, 0.5):
        request.reset_state()
        data = np.full(4, number, np.float32)
        first = np.exp(data)
        expected = [*first, *np.exp(data + first.sum())]
        np.testing.assert_allclose(request.infer([data, np.int64([4])])[0], expected, rtol=1e-6)


def test_constants_that_follow_from_shapes_are_prepared_for_each() -> None:
    x, table = ops.parameter([-1], "f32"), np.float32([[1, 5], [2, 6], [3, 7], [4, 8]])
    rows = ops.gather(table, ops.reshape(ops.non_zero(x), [-1], special_zero=False), 0)
    weights = ops.convert(ops.broadcast(ops.shape_of(x), np.int64([2, 2])), "f32")
    ones = ops.broadcast(ops.reduce_max(x, [0], True), np.int64([1, 2]))
    model = ovir.Model([ops.matmul(part, weights, False, True) for part in (rows, ones)], [x])
    request = ovir.compile_model(model).create_infer_request()
    for count in (3, 3, 3, 3, 4, 4, 4, 4, 3):
        unbound, bound = request.infer([np.ones(count, np.float32)]).values()
        np.testing.assert_array_equal(unbound, table[:count] @ np.full((2, 2), count))
        np.testing.assert_array_equal(bound, [[2 * count] * 2])


def test_steps_that_bind_themselves_out_of_order() -> None:
    """A step binds itself later than one behind it in the plan; its output must not lie in the workspace of that one."""
    table = np.random.default_rng(1).random((8, 16), np.float32)
    inputs = [ops.parameter([8], "f32") for _ in range(2)]
    first, second = [ops.gather(table, ops.reshape(ops.non_zero(x), [-1], special_zero=False), 0) for x in inputs]
    exponentials = ops.exp(first)
    model = ovir.Model([ops.concat([exponentials, ops.log_softmax(second, 1)], 0), exponentials], inputs)
    request = ovir.compile_model(model).create_infer_request()
    masks = [np.arange(8) < count for count in range(9)]
    for few, many in [(1, 5), (2, 5), (3, 5), *[(4, 5)] * 8, *[(4, 6)] * 8, *[(2, 6)] * 8]:
        both, alone = request.infer([masks[few].astype(np.float32), masks[many].astype(np.float32)]).values()
        rows = table[:many]
        logarithms = rows - np.log(np.exp(rows).sum(1, keepdims=True))
        np.testing.assert_allclose(both, [*np.exp(table[:few]), *logarithms], rtol=1e-5)
        np.testing.assert_allclose(alone, np.exp(table[:few]), rtol=1e-5)


@pytest.mark.parametrize("share", [False, True])
def test_results_that_kernels_make_belong_to_the_caller(share: bool) -> None:
    random = np.random.default_rng(0)
    request = chosen().compiled().create_infer_request()
    kept = []
    for count in (3, 3, 3, 3, 4, 3):  # the steps bind themselves
        inputs = feeds(random, count)
        results = request.infer(inputs, share_outputs=share)
        kept.append([(array, array.copy()) for array in list(results.values())[:2]])
        check(request, inputs)
    arrays = [array for run in kept for array, _ in run]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])
    for array, copied in (pair for run in kept for pair in run):
        np.testing.assert_array_equal(array, copied)
        array[...] = -1


@ovir.register("Table", version="unbound")
class Table(ovir.Operator):
    """An operation that returns an array of its own, and keeps those that it reads."""

    numbers = np.float32([1, 2])
    read: ClassVar[list[Any]] = []

    def infer(self, x: Any) -> Any:
        return ovir.TensorType(x.element_type, ovir.PartialShape([-1]))

    def run(self, x: Any) -> Any:
        self.read.append(x)
        return self.numbers


def test_outputs_of_known_shape_are_copied_only_for_steps_of_known_shapes() -> None:
    x = ops.parameter([-1, 2], "f32", name="x")
    total, most = (make(x, np.int64([0]), True) for make in (ops.reduce_sum, ops.reduce_max))
    request = ovir.compile_model(ovir.Model([ops.add(x, total), ops.negative(most)], [x])).create_infer_request()
    for size in (1, 2, 3):
        summed, least = request.infer([np.ones((size, 2), np.float32)]).values()
        assert (summed.tolist(), least.tolist()) == ([[1 + size] * 2] * size, [[-1, -1]])
    executor = request._bindings._for_all_shapes
    assert executor is not None
    calls = [function for function, _ in executor._calls if isinstance(function, UnboundCall)]
    fixed = {call._step.layer.type for call in calls if any(array is not None for _, array in call._targets)}
    assert fixed == {"ReduceMax"}


SIZES: list[tuple[Any, bool]] = [
    (np.zeros((2, 0, 3, 4)), True),
    (np.zeros((5, 7, 3, 4)), True),
    (np.zeros((1, 7, 3, 4)), False),
    (np.zeros((6, 7, 3, 4)), False),
    (np.zeros((5, 7, 2, 4)), False),
    (np.zeros((5, 7, 3, 1)), False),
    (np.zeros((5, 7, 3, 3000)), True),
    (np.zeros((5, 7, 3)), False),
    (np.zeros((5, 7, 3, 4), np.float32), False),
]


@pytest.mark.parametrize(("array", "is_promised"), SIZES)
def test_results_are_held_against_each_size_that_is_known(array: Any, is_promised: bool) -> None:
    port = ops.parameter(PartialShape.parse("2..5,?,3,2.."), "f64").output(0)
    slots: list[Any] = [None, None]
    put = unbound_calls._checked_put(slots, 1, port)
    if is_promised:
        put(array)
    else:
        with pytest.raises(OperatorError, match="the kernel returned output 0"):
            put(array)
    assert slots[0] is None
    assert (slots[1] is array) == is_promised


def test_arrays_that_an_operation_of_a_user_keeps_are_copied() -> None:
    x = ops.parameter([-1], "f32", name="x")
    root = ops.sqrt(x)
    request = ovir.compile_model(
        ovir.Model([root, ovir.create_layer("Table", [root], version="unbound")], [x])
    ).create_infer_request()
    for size in (3, 2, 2):
        for result in request.infer([np.ones(size, np.float32)]).values():
            result[...] = -1
    assert Table.numbers.tolist() == [1, 2]
    assert all((array == 1).all() for array in Table.read)


def test_results_of_bodies_are_copied() -> None:
    """A body returns one array in all runs."""
    chosen = ops.parameter([], "boolean", name="chosen")
    branch = ops.if_op(chosen)
    results = [ops.result(ops.constant(np.zeros(size, np.float32))) for size in (2, 3)]
    branch.set_then_body(ovir.Model([results[0]], [], "then"))
    branch.set_else_body(ovir.Model([results[1]], [], "else"))
    result = branch.set_output(*results)
    request = ovir.compile_model(ovir.Model([result], [chosen])).create_infer_request()
    before, after = (request.infer([np.array(True)])[0] for _ in range(2))
    assert not np.shares_memory(before, after)


KEPT = np.zeros(2)
KEPT.flags.writeable = False


@pytest.mark.parametrize(
    ("result", "is_free"),
    [
        (np.zeros((2, 3)), True),
        (np.zeros((2, 3))[:1], False),
        (np.zeros((2, 3), order="F"), False),
        (KEPT, False),
        (np.float32(1), False),
    ],
)
def test_which_arrays_are_returned_without_a_copy(result: Any, is_free: bool) -> None:
    assert _is_free(result) == is_free


def test_a_bound_step_that_returns_its_input_makes_no_array() -> None:
    x = ops.parameter([-1], "f32", name="x")
    model = ovir.Model([ops.convert(ops.unique(x)[0], "f32")], [x])
    request = ovir.compile_model(model).create_infer_request()
    inputs = [np.float32([number, number + 1]) for number in range(5)]
    kept = [request.infer([array])[0] for array in inputs]
    np.testing.assert_array_equal(kept, inputs)


def test_which_results_are_not_copied() -> None:
    x = ops.parameter([-1], "f32", name="x")
    past = ops.read_value(np.zeros(0, np.float32), "past", "f32", [-1])
    twice, once, assigned = ops.negative(x), ops.exp(x), ops.multiply(past, past)
    viewed, parts = ops.unsqueeze(once, [0]), ops.topk(x, np.int64(1), 0, "max", "value")
    results = [twice, twice, ops.sqrt(once), assigned, viewed, parts]
    request = ovir.compile_model(ovir.Model(results, [x], sinks=[ops.assign(assigned, "past")])).create_infer_request()
    for size in (2, 3, 3):
        request.infer([np.ones(size, np.float32)])
    executor = request._bindings._for_all_shapes
    assert executor is not None
    assert {executor.plan.ports[slot].layer.type for slot in executor._new} == {"Sqrt"}
