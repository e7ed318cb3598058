"""Rewrites of a plan give what the operations give, in every run."""

from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.ops.shape import Reshape
from ovir.runtime.rewrites import Reshaped, for_unwatched_runs

INDICES = [
    [0, 1, 2],
    [2, 0],
    [4, 3, 2, 1],
    [4, 3, 2, 1, 0],
    [-1, -2],
    [3],
    4,
    -1,
    [1, 1],
    [[0, 2]],
    [-1, 0],
    9,
    [3, 4, 5],
]


@pytest.mark.parametrize("indices", INDICES, ids=str)
@pytest.mark.parametrize("shape", ["2,5,3", "?,5,?", "?,?,?"])
def test_gather_with_constant_indices(indices: Any, shape: str) -> None:
    net = Net()
    net.result(
        net.op("Gather", net.parameter("x", shape), net.const(np.int64(indices)), net.const(np.int64(1)), opset=8)
    )
    request = net.compiled().create_infer_request()
    wanted = np.array(indices)
    outside = ((wanted >= 5) | (wanted < -5)).reshape(1, *wanted.shape, 1)
    for seed in (0, 1, 0, 2):
        x = np.random.default_rng(seed).standard_normal((2, 5, 3)).astype(np.float32)
        expected = np.where(outside, 0, np.take(x, np.clip(wanted, -5, 4), 1))
        np.testing.assert_array_equal(request.infer([x])[0], expected)


@pytest.mark.parametrize(
    ("indices", "calls"),
    [
        ([4, 2, 0], 0),
        ([-1, -2], 0),
        ([-5], 0),
        (4, 0),
        ([[0, 2]], 1),
        ([0, 0], 1),
        ([0, 1, 3], 1),
        ([0, -1], 1),
        ([-6], 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("opset", [1, 8])
def test_evenly_spaced_indices_cost_no_call(indices: Any, calls: int, opset: int) -> None:
    net = Net()
    data = net.op("ReLU", net.parameter("x", "2,5"))
    net.result(net.op("Gather", data, net.const(np.int64(indices)), net.const(np.int64(1)), opset=opset))
    request = net.compiled().create_infer_request()
    request.infer([np.ones((2, 5), np.float32)])
    calls = 1 if opset == 1 and np.min(indices) < 0 else calls  # which counts from the end from opset 8 on
    (executor,) = request._bindings._bound.values()
    assert executor._counts == [(1, 0), (calls, 0)]


@pytest.mark.parametrize(
    ("kind", "shape", "second", "is_rewritten"),
    [
        ("Unsqueeze", "2,?,3", [0, -1], True),
        ("Unsqueeze", "?,?,3", [1], False),
        ("Squeeze", "1,?,3", [0], True),
        ("Squeeze", "2,?,3", [1], False),  # the unknown size must be 1
        ("Reshape", "2,?,3", [3, -1, 2], True),
        ("Reshape", "2,?,6", [-1, 3], False),  # a multiple of the unknown size
        ("Reshape", "?,6", [0, 2, 3], True),
        ("Reshape", "2,?,0", [0, -1, 0], False),  # nothing follows from no elements
    ],
)
def test_shapes_with_one_unknown_size_are_known_before_a_run(
    kind: str, shape: str, second: list[int], is_rewritten: bool
) -> None:
    net = Net()
    attributes = {"special_zero": "true"} if kind == "Reshape" else {}
    rows = net.op("ReLU", net.parameter("x", shape))
    net.result(net.op(kind, rows, net.const(np.int64(second)), name="shaped", **attributes))
    compiled = net.compiled()
    assert isinstance(compiled.plan().steps[-1].operator, Reshaped) == is_rewritten
    runs, fresh = compiled.create_infer_request(), compiled.create_infer_request
    sizes = [1, 1, 1] if kind == "Squeeze" and not is_rewritten else [4, 1, 0, 5, 4]
    for size in sizes:
        x = np.random.default_rng(size).random([size if n == "?" else int(n) for n in shape.split(",")], np.float32)
        np.testing.assert_array_equal(runs.infer([x])[0], fresh().infer([x])[0])
        np.testing.assert_array_equal(runs.infer([x], listeners=[Watcher()])[0].ravel(), x.ravel())


@pytest.mark.parametrize(
    ("shape", "pattern"),
    [
        ("...", [-1, 3]),
        ("?,?,?,6", [0, 6]),  # two of the unknown sizes must be 1
        ("?,6", [0, 2, 2]),  # there must be no elements
        ("?,6", None),  # both inputs need the same shape
    ],
)
def test_shapes_that_only_a_run_shows_to_fit_are_not_rewritten(shape: str, pattern: list[int] | None) -> None:
    net = Net()
    rows = net.op("ReLU", net.parameter("x", shape))
    if pattern is None:
        count = net.parameter("count", "1", "i64")
        second = net.op("Concat", count, net.const(np.int64([6])), axis=0)
    else:
        second = net.const(np.int64(pattern))
    net.result(net.op("Reshape", rows, second, special_zero="true"))
    assert isinstance(net.compiled().plan().steps[-1].operator, Reshape)


class Watcher(ovir.Listener):
    """A listener that sees the tensors of all steps."""

    def will_run(self, layer: ovir.Layer, inputs: Any) -> None:
        assert len(inputs) == len(layer.inputs)
        for port, array in zip(layer.inputs, inputs, strict=True):
            assert port.shape.contains(array.shape)

    def did_run(self, layer: ovir.Layer, inputs: Any, outputs: Any) -> None:
        assert len(outputs) == len(layer.outputs)


def shared_keys(repeats: str, batch: int, rows: int, *, shows_keys: bool = False) -> ovir.Model:
    """Attention of six heads that share two keys and values, which grow in each run."""
    query = ops.parameter([batch, 6, rows, 4], "f32", name="query")
    new = ops.parameter([batch, 2, rows, 4], "f32", name="new")
    mask = ops.parameter([batch, 1, rows, -1], "f32", name="mask")
    past = ops.read_value(np.zeros((2, 2, 0, 4), np.float32), "cache", "f32", [batch, 2, -1, 4])
    both = ops.concat([past, new], 2)
    if repeats == "each head":
        repeated = ops.broadcast(ops.unsqueeze(both, [2]), np.array([1, 1, 3, 1, 1]), None, "bidirectional")
    elif repeats == "tile":
        repeated = ops.tile(ops.unsqueeze(both, [2]), np.array([1, 1, 3, 1, 1]))
    elif repeats == "heads in turn":
        repeated = ops.tile(ops.unsqueeze(both, [2]), np.array([1, 3, 1, 1, 1]))
    else:  # heads 0, 2 and 4 share keys
        repeated = ops.broadcast(ops.unsqueeze(both, [1]), np.array([1, 3, 1, 1, 1]), None, "bidirectional")
    keys = ops.reshape(repeated, [0, 6, -1, 4], True)
    outputs = [ops.scaled_dot_product_attention(query, keys, ops.reshape(repeated, [0, 6, -1, 4], True), mask)]
    if shows_keys:
        outputs.append(keys)
    return ovir.Model(outputs, [query, new, mask], "attention", sinks=[ops.assign(both, "cache")])


@pytest.mark.slow
@pytest.mark.parametrize("emulate", [None, "f16"])
@pytest.mark.parametrize("shows_keys", [False, True])
@pytest.mark.parametrize("rows", [1, 3, -1])
@pytest.mark.parametrize("repeats", ["each head", "tile", "all heads"])
def test_heads_that_share_keys(repeats: str, rows: int, shows_keys: bool, emulate: str | None) -> None:
    model = shared_keys(repeats, -1, rows, shows_keys=shows_keys)
    compiled = ovir.compile_model(model, emulate=emulate)
    runs, watched = compiled.create_infer_request(), compiled.create_infer_request()
    random = np.random.default_rng(0)
    keys = np.zeros((2, 2, 0, 4), np.float32)
    tolerance = 1e-5 if emulate is None else 2e-2
    for index in range(5):
        length = rows if rows > 0 else 1 + index % 2
        query, new = (random.standard_normal((2, heads, length, 4)).astype(np.float32) for heads in (6, 2))
        keys = np.concatenate([keys, new], 2)
        mask = np.where(random.random((2, 1, length, keys.shape[2])) < 0.7, np.float32(0), np.float32(-30))
        inputs = {"query": query, "new": new, "mask": mask}
        result = runs.infer(inputs)[0]
        np.testing.assert_allclose(watched.infer(inputs, listeners=[Watcher()])[0], result, tolerance, 1e-6)
        whole = np.repeat(keys, 3, 1) if repeats != "all heads" else np.tile(keys, (1, 3, 1, 1))
        scores = query @ whole.swapaxes(2, 3) / 2 + mask
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        expected = weights / weights.sum(-1, keepdims=True) @ whole
        np.testing.assert_allclose(result, expected, tolerance, tolerance)


def test_sizes_that_contradict_each_other_are_named_where_heads_share_keys() -> None:
    request = ovir.compile_model(shared_keys("each head", -1, -1)).create_infer_request()
    inputs = {"query": np.ones((2, 6, 3, 4)), "new": np.ones((2, 2, 3, 4)), "mask": np.zeros((2, 1, 3, 7))}
    with pytest.raises(ovir.OvirError, match=r"attention_mask of shape .* cannot be broadcast to 3 queries by 3 keys"):
        request.infer({name: array.astype(np.float32) for name, array in inputs.items()})


@pytest.mark.parametrize(
    ("keys", "values", "rank", "shares"),
    [
        (2, 2, 5, True),
        (2, 3, 5, False),  # not the same groups
        (2, 6, 5, False),  # as many values as queries, which are not repeated
        (6, 6, 5, False),
        (2, 2, 4, False),  # the groups take turns
        (-1, 2, 5, False),  # groups of unknown number
        (6, 2, 5, False),
    ],
)
def test_which_keys_and_values_are_read_before_they_are_repeated(
    keys: int, values: int, rank: int, shares: bool
) -> None:
    def repeated(x: Any, times: int) -> Any:
        if times == 1:
            return x
        if rank == 4:
            return ops.reshape(ops.tile(x, np.array([1, times, 1, 1])), [0, 6, -1, 4], True)
        return ops.reshape(ops.tile(ops.unsqueeze(x, [2]), np.array([1, 1, times, 1, 1])), [0, 6, -1, 4], True)

    sizes = [[2, 6, 3, 4], [2, keys, 5, 4], [2, values, 5, 4]]
    query, key, value = (ops.parameter(shape, "f32", name=name) for shape, name in zip(sizes, "qkv", strict=True))
    heads = [3 if count < 0 else 6 // count for count in (keys, values)]
    end = ops.scaled_dot_product_attention(query, repeated(key, heads[0]), repeated(value, heads[1]))
    compiled = ovir.compile_model(ovir.Model([end], [query, key, value]))
    kinds = {type(step.operator).__name__ for step in for_unwatched_runs(compiled.plan()).steps}
    assert ("GroupedAttention" in kinds) == shares
    assert not shares or kinds.isdisjoint({"Tile", "Reshape", "Reshaped"})
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(np.where(np.array(shape) < 0, 2, shape)).astype(np.float32) for shape in sizes]
    np.testing.assert_allclose(compiled(arrays)[0], compiled(arrays, listeners=[Watcher()])[0], rtol=1e-5)


def test_shapes_that_only_folded_layers_read_are_not_computed() -> None:
    x = ops.parameter([-1, 3], "f32", name="x")
    rows = ops.relu(x)
    columns = ops.gather(ops.shape_of(rows), [1], 0)
    model = ovir.Model([ops.add(rows, ops.convert(columns, "f32"))], [x])
    plan = ovir.compile_model(model).plan()
    assert [step.layer.type for step in plan.steps] == ["ReLU", "ShapeOf", "Add"]
    assert [step.layer.type for step in for_unwatched_runs(plan).steps] == ["ReLU", "Add"]


def test_a_body_that_assigns_a_variable_runs_although_only_its_shape_is_read() -> None:
    chosen, x = ops.parameter([], "boolean", name="chosen"), ops.parameter([-1, 3], "f32", name="x")
    parameters = [ops.parameter([-1, 3], "f32") for _ in range(2)]
    results = [ops.result(ops.relu(parameter)) for parameter in parameters]
    count = ops.add(ops.read_value(np.zeros(1, np.float32), "count", "f32", [1]), np.ones(1, np.float32))
    branch = ops.if_op(chosen)
    branch.set_then_body(ovir.Model([results[0]], [parameters[0]], "then", sinks=[ops.assign(count, "count")]))
    branch.set_else_body(ovir.Model([results[1]], [parameters[1]], "else"))
    branch.set_input(x.output(0), *parameters)
    columns = ops.gather(ops.shape_of(branch.set_output(*results)), [1], 0)
    model = ovir.Model([ops.add(x, ops.convert(columns, "f32"))], [chosen, x])
    request = ovir.compile_model(model).create_infer_request()
    for rows in (2, 3, 3):
        request.infer([np.array(True), np.ones((rows, 3), np.float32)])
    assert [state.value.tolist() for state in request.query_state()] == [[3]]
