"""Values of variables that grow in each run, as the caches of decoders do."""

from itertools import pairwise, product

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.runtime import executor_cache
from ovir.runtime.state import VariableValue
from ovir.runtime.unbound_calls import UnboundCall

WIDTH = 8


def cache(*, reorders: bool = True) -> ovir.Model:
    """A model that appends its input to a variable, and returns the value doubled."""
    x = ops.parameter([-1, -1, WIDTH], "f32", name="x")
    beams = ops.parameter([-1], "i32", name="beams")
    past = ops.read_value(np.zeros((2, 0, WIDTH), np.float32), "cache", "f32", [-1, -1, WIDTH])
    past = ops.gather(past, beams, np.array(0)) if reorders else past
    both = ops.concat([past, x], 1)
    inputs = [x, beams] if reorders else [x]
    return ovir.Model([ops.multiply(both, np.float32(2))], inputs, "cache", sinks=[ops.assign(both, "cache")])


@pytest.mark.parametrize("emulate", [None, "f16"])
@pytest.mark.parametrize("reorders", [False, True])
def test_a_value_that_grows_is_right_in_every_run(reorders: bool, emulate: str | None) -> None:
    request = ovir.compile_model(cache(reorders=reorders), emulate=emulate).create_infer_request()
    random = np.random.default_rng(0)
    expected = np.zeros((2, 0, WIDTH), np.float32)
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    for index in range(90):
        if index == 40:
            request.query_state()[0].value = expected = expected[:, 3:9].copy()
        if index == 60:
            request.reset_state()
            expected = np.zeros((2, 0, WIDTH), np.float32)
        x = random.integers(-50, 50, (2, index % 4, WIDTH)).astype(np.float32)
        beams = np.array([1, 0] if index % 7 == 3 else [0, 1], np.int32)
        expected = np.concatenate([expected[beams] if reorders else expected, x], 1)
        feeds = {"x": x, "beams": beams} if reorders else {"x": x}
        result = request.infer(feeds)[0]
        np.testing.assert_array_equal(result, 2 * expected)
        np.testing.assert_array_equal(request.query_state()[0].value, expected)
        kept.append((result, 2 * expected))
    for result, before in kept:  # what a caller has received does not change
        np.testing.assert_array_equal(result, before)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_slices_of_a_value_that_grows(axis: int | None) -> None:
    x, which = ops.parameter([2, 1], "f32", name="x"), ops.parameter([-1], "i32", name="which")
    given = ops.parameter([], "i64", name="axis")
    past = ops.read_value(np.zeros((2, 2), np.float32), "past", "f32", [2, -1])
    picked = ops.gather(past, which, given if axis is None else np.array(axis))
    sinks = [ops.assign(ops.concat([past, x], 1), "past")]
    request = ovir.compile_model(ovir.Model([picked], [x, which, given], "slices", sinks=sinks)).create_infer_request()
    value = np.zeros((2, 2), np.float32)
    for number, indices in enumerate(([0, 1], [0, 1], [1, 0], [0], [1, 1], [0, 1])):
        feeds = {"x": np.float32([[number], [-number]]), "which": np.int32(indices), "axis": np.int64(axis or 0)}
        np.testing.assert_array_equal(request.infer(feeds)[0], np.take(value, indices, axis or 0))
        value = np.append(value, feeds["x"], 1)


def test_shapes_of_variables_are_bound_when_they_come_again() -> None:
    request = ovir.compile_model(cache(reorders=False)).create_infer_request()
    bound = []
    for _ in range(2):
        request.reset_state()
        for _ in range(3):
            request.infer({"x": np.ones((2, 1, WIDTH), np.float32)})
            bound.append(len(request._bindings._bound))
    assert bound == [0, 0, 0, 1, 2, 3]


def attention() -> ovir.Model:
    """A model that appends keys and values to variables, and lets queries attend to them, two heads to each."""
    query, new = (
        ops.parameter([-1, 4, -1, WIDTH], "f32", name="query"),
        ops.parameter([-1, 2, -1, WIDTH], "f32", name="new"),
    )
    mask, caches, sinks = ops.parameter([-1, 1, -1, -1], "f32", name="mask"), [], []
    for name, scale in (("keys", 1), ("values", -2)):
        past = ops.read_value(np.zeros((1, 2, 0, WIDTH), np.float32), name, "f32", [-1, 2, -1, WIDTH])
        both = ops.concat([past, ops.multiply(new, np.float32(scale))], 2)
        size = [ops.gather(ops.shape_of(x), np.array([2]), np.array(0)) for x in (past, new)]
        shape = ops.concat([np.int64([1, 1, 2]), ops.add(*size), np.int64([1])], 0)
        repeated = ops.broadcast(ops.unsqueeze(both, np.array(2)), shape, broadcast_spec="BIDIRECTIONAL")
        caches.append(ops.reshape(repeated, np.array([0, 4, -1, WIDTH]), special_zero=True))
        sinks.append(ops.assign(both, name))
    squared = ops.multiply(query, query)
    found = ops.scaled_dot_product_attention(squared, *caches, mask)
    return ovir.Model([found, ops.reduce_sum(squared, np.array([-1]))], [query, new, mask], "attention", sinks=sinks)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_cache, "_REPEATS_OF_SIZES", 3)


def kinds(request: ovir.InferRequest) -> list[tuple[str, bool]]:
    """Return the operations of the steps of the executor that ran last, and whether each is bound."""
    executor = [*request._bindings._bound.values()][-1]
    free = {function._step.layer for function, _ in executor._calls if isinstance(function, UnboundCall)}
    return [(type(step.operator).__name__, step.layer not in free) for step in executor.plan.steps]


@pytest.mark.usefixtures("soon")
def test_sizes_that_stay_are_bound_while_others_grow() -> None:
    compiled = ovir.compile_model(attention())
    request, other = compiled.create_infer_request(), compiled.create_infer_request()
    random, past = np.random.default_rng(0), {"keys": [], "values": []}
    for index in range(40):
        if index in (12, 25):
            request.reset_state()
            past = {"keys": [], "values": []}
        if index == 18:
            for variable in request.query_state():
                given = random.standard_normal((1, 2, 4, WIDTH)).astype(np.float32)
                variable.value, past[variable.name] = given, [given.copy()]
                given += 1  # what is set is a copy
        rows = 3 if index in (0, 12, 30) else 1
        query = random.standard_normal((1, 4, rows, WIDTH)).astype(np.float32)
        new = random.standard_normal((1, 2, rows, WIDTH)).astype(np.float32)
        past["keys"].append(new)
        past["values"].append(-2 * new)
        keys, values = (np.concatenate(past[name], 2).repeat(2, 1) for name in ("keys", "values"))
        mask = np.where(random.random((1, 1, rows, keys.shape[2])) < 0.2, -1, 0).astype(np.float32)
        feeds = {"query": query, "new": new, "mask": mask}
        found, squares = request.infer(feeds, share_outputs=index % 2 > 0).values()
        scores = query**2 @ keys.swapaxes(2, 3) / np.sqrt(WIDTH) + mask
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        np.testing.assert_allclose(found, weights / weights.sum(-1, keepdims=True) @ values, rtol=1e-4, atol=1e-5)
        # The squares are summed as products, perhaps in another order and without rounding each of them.
        np.testing.assert_array_max_ulp(squares, (query * query).sum(-1), 4)
        state = request.query_state()[1].value
        np.testing.assert_array_equal(state, np.concatenate(past["values"], 2))
        state += 1  # what is read is a copy
        if index == 11:
            other.infer({**feeds, "mask": mask[..., :1]})  # another request has values of its own
    assert ("GroupedAttention", False) in kinds(request)  # the sum of two sizes is known to be the length of the cache
    assert ("ReduceSum", True) in kinds(request)
    assert "Broadcast3" not in dict(kinds(request))


@pytest.mark.usefixtures("soon")
def test_sizes_that_were_equal_may_differ_later() -> None:
    query = ops.parameter([-1, 4, 1, WIDTH], "f32", name="query")
    both = [ops.parameter([-1, 2, -1, WIDTH], "f32", name=name) for name in ("keys", "values")]
    size = ops.gather(ops.shape_of(both[1]), np.array([2]), np.array(0))
    shape = ops.concat([np.int64([1, 1, 2]), size, np.int64([1])], 0)
    repeated = [ops.broadcast(ops.unsqueeze(x, np.array(2)), shape, broadcast_spec="BIDIRECTIONAL") for x in both]
    heads = [ops.reshape(x, np.array([0, 4, -1, WIDTH]), special_zero=True) for x in repeated]
    found = ops.scaled_dot_product_attention(ops.multiply(query, query), *heads)
    request = ovir.compile_model(ovir.Model([found], [query, *both])).create_infer_request()
    random = np.random.default_rng(0)
    for sizes in [*[(n, n) for n in range(2, 10)], (1, 3), (1, 4), (12, 12), (1, 5), (1, 6)]:
        feeds = {"query": random.standard_normal((1, 4, 1, WIDTH)).astype(np.float32)}
        for name, count in zip(("keys", "values"), sizes, strict=True):
            feeds[name] = random.standard_normal((1, 2, count, WIDTH)).astype(np.float32)
        keys, values = (np.broadcast_to(feeds[x], (1, 2, sizes[1], WIDTH)).repeat(2, 1) for x in ("keys", "values"))
        weights = np.exp(feeds["query"] ** 2 @ keys.swapaxes(2, 3) / np.sqrt(WIDTH))
        expected = weights / weights.sum(-1, keepdims=True) @ values
        np.testing.assert_allclose(request.infer(feeds)[0], expected, rtol=1e-4, atol=1e-5)
        is_grouped = "GroupedAttention" in dict(kinds(request))
        assert is_grouped or sizes[1] < 6  # the last executor is one for keys and values of one length


@pytest.mark.usefixtures("soon")
def test_sizes_of_which_nothing_follows_are_not_bound() -> None:
    request = ovir.compile_model(cache()).create_infer_request()
    for _ in range(8):
        request.infer({"x": np.ones((2, 1, WIDTH), np.float32), "beams": np.int32([0, 1])})
    assert not request._bindings._bound


@pytest.mark.usefixtures("soon")
def test_a_size_that_grew_may_be_0_later() -> None:
    x = ops.parameter([-1, -1], "f32", name="x")
    rows = ops.gather(ops.shape_of(x), np.array(0), np.array(0))
    results = [ops.greater(rows, np.int64(0)), ops.reduce_sum(ops.multiply(x, x), np.array([0]))]
    request = ovir.compile_model(ovir.Model(results, [x])).create_infer_request()
    for count in (1, 2, 3, 4, 5, 6, 0):
        has_rows, sums = request.infer([np.ones((count, WIDTH), np.float32)]).values()
        assert has_rows == (count > 0)
        np.testing.assert_array_equal(sums, [count] * WIDTH)
    assert [shapes for (shapes, _) in request._bindings._bound] == [((1, WIDTH),), ((-1, WIDTH),)]


def test_inputs_without_elements_are_bound() -> None:
    x = ops.parameter([-1], "f32", name="x")
    request = ovir.compile_model(ovir.Model([ops.relu(x)], [x])).create_infer_request()
    assert request.infer([np.zeros(0, np.float32)])[0].shape == (0,)
    assert [shapes for (shapes, _) in request._bindings._bound] == [((0,),)]


def test_a_run_that_fails_leaves_the_value() -> None:
    request = ovir.compile_model(cache()).create_infer_request()
    beams = np.array([0, 1], np.int32)
    for _ in range(3):
        request.infer({"x": np.ones((2, 2, WIDTH), np.float32), "beams": beams})
        with pytest.raises(ovir.OvirError):
            request.infer({"x": np.ones((3, 1, WIDTH), np.float32), "beams": beams})
    value = request.query_state()[0].value
    assert value is not None
    np.testing.assert_array_equal(value, np.ones((2, 6, WIDTH), np.float32))


def test_only_what_is_new_is_copied() -> None:
    request = ovir.compile_model(cache()).create_infer_request()
    feeds = {"x": np.ones((2, 1, WIDTH), np.float32), "beams": np.array([0, 1], np.int32)}
    arrays = []
    for _ in range(20):
        request.infer(feeds)
        arrays.append(request._variables.named("cache").value)
    assert [array.base.shape[1] for array in arrays] == [1 + 16] * 17 + [18 + 9 + 16] * 3
    assert [np.may_share_memory(a, b) for a, b in pairwise(arrays)] == [index != 16 for index in range(19)]


def test_a_value_may_be_assigned_twice() -> None:
    """The room for the value that grows must not be taken for that of the value that the last layer assigns."""
    x = ops.parameter([-1], "f32", name="x")
    past = ops.read_value(ops.constant(np.zeros(0, np.float32)), "past", "f32", [-1])
    both = ops.concat([past, x], 0)
    half = ops.multiply(both, ops.constant(np.float32([0.5])))
    sinks = [ops.assign(both, "past"), ops.assign(half, "past")]
    request = ovir.compile_model(ovir.Model([both], [x], "twice", sinks=sinks)).create_infer_request()
    expected = np.zeros(0, np.float32)
    for number in range(1, 9):
        expected = np.append(expected, np.float32(number))
        np.testing.assert_array_equal(request.infer([np.float32([number])])[0], expected)
        expected = expected * np.float32(0.5)
        np.testing.assert_array_equal(request.query_state()[0].value, expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", list(product((0, 1, 2), repeat=3)))
def test_appending_joins_what_can_be_joined(shape: tuple[int, ...], axis: int) -> None:
    variable = VariableValue()
    variable.replace(np.zeros((2, 2, 2), np.float32))
    assert variable.value is not None
    new = np.ones(shape, np.float32)
    try:
        expected = np.concatenate([variable.value, new], axis)
    except ValueError:
        with pytest.raises(ValueError, match="must match exactly"):
            variable.append(variable.value, new, axis)
    else:
        np.testing.assert_array_equal(variable.append(variable.value, new, axis), expected)
