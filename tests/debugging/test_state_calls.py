"""Calls in a row of models with variables, and of models that take several items at once."""

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.debugging import device_queries
from ovir.debugging.item_calls import put_together
from ovir.debugging.state_calls import StatefulCalls, state_calls


def growing(*, is_stateful: bool) -> ovir.Model:
    """Return a model that appends x to what it has seen; a mask has an element for each row of it."""
    x, mask = ops.parameter([1, 8, 2], "f32", name="x"), ops.parameter([1, -1], "i64", name="attention_mask")
    position = ops.parameter([1, 1], "i64", name="position")
    past = ops.parameter([1, -1, 2], "f32", name="past")
    before = (
        ops.read_value(np.zeros((1, 0, 2), np.float32), "v", "f32", [1, -1, 2], name="state") if is_stateful else past
    )
    present = ops.concat([before, x], 1, name="present")
    seen = ops.multiply(present, ops.unsqueeze(ops.convert(mask, "f32"), np.int64(2)), name="seen")
    table = ops.constant(np.zeros((4, 2), np.float32))
    placed = ops.add(seen, ops.gather(table, position, np.int64(0)), name="placed")
    sinks = [ops.assign(present, "v")] if is_stateful else []
    inputs = [x, mask, position] + ([] if is_stateful else [past])
    return ovir.Model([placed] + ([] if is_stateful else [present]), inputs, sinks=sinks)


def test_positions_count_on_where_the_variables_end() -> None:
    """The model accepts no other position than that of the last row; a single number is none."""
    number = ops.parameter([], "i64", name="number")
    x, position = ops.parameter([1, 1], "f32", name="x"), ops.parameter([1], "i64", name="position")
    state = ops.read_value(np.zeros((1, 0), np.float32), "v", "f32", [1, -1], name="state")
    present = ops.concat([state, x], 1, name="present")
    size = ops.add(position, np.int64(1))
    out = ops.reshape(present, ops.concat([np.int64([1]), size], 0), False, name="out")
    calls = StatefulCalls(ovir.Model([out], [number, x, position], sinks=[ops.assign(present, "v")]), 0)
    assert [calls.next()["position"].tolist() for _ in range(4)] == [[0], [1], [2], [3]]


def test_the_model_without_variables_gets_what_they_held() -> None:
    stateful, stateless = growing(is_stateful=True), growing(is_stateful=False)
    stateless.outputs[1].layer.name = "present"
    sets = list(state_calls(stateful, stateless, {"v": ("past", None)}, 3, 0))
    assert [each.name for each in sets] == ["call 1", "call 2", "call 3"]
    arrays = [each() for each in sets]
    assert [[array.shape for array in each] for each in arrays] == [
        [(1, 8, 2), (1, 8 * n + 8), (1, 1), (1, 8 * n, 2)] for n in range(3)
    ]
    np.testing.assert_array_equal(arrays[2][3], np.concatenate([arrays[0][0], arrays[1][0]], 1))


@pytest.mark.parametrize(("width", "count"), [(2, 2), (3, 1), (1, 4)])
def test_there_are_fewer_calls_once_no_inputs_fit(width: int, count: int) -> None:
    """The sum with numbers of a fixed width accepts one row of the state, and as many as the width."""

    def net(*, is_stateful: bool) -> ovir.Model:
        x, past = ops.parameter([1, 1], "f32", name="x"), ops.parameter([1, -1], "f32", name="past")
        state = ops.read_value(np.zeros((1, 0), np.float32), "v", "f32", [1, -1]) if is_stateful else past
        present = ops.concat([state, x], 1)
        sinks = [ops.assign(present, "v")] if is_stateful else []
        end = ops.add(present, np.zeros((1, width), np.float32))
        return ovir.Model([end], [x] if is_stateful else [x, past], sinks=sinks)

    models = [net(is_stateful=value) for value in (True, False)]
    assert len(list(state_calls(*models, {"v": ("past", None)}, 4, 0))) == count


def test_a_model_of_which_no_call_runs_is_an_error() -> None:
    x = ops.parameter([50], "i32", name="x")
    failing = ovir.Model([ops.reshape(ops.non_zero(x), [1, 3], False, name="y")], [x])
    with pytest.raises(ovir.RunError, match="'y'"):
        list(state_calls(failing, failing, {}, 4, 0))


@pytest.mark.parametrize("each", [1, 2])
def test_rows_with_the_number_of_an_item_follow_the_order_of_one_call(each: int) -> None:
    """Calls with fewer items count these from 0; a row with a number below 0 ends the rows."""
    actual = np.float32([[2, 20], [0, 1], [1, 10], [0, 2], [2, 21], [-1, 0]])
    per_item = [[[0, 1], [0, 2]], [[0, 10]], [[0, 20], [0, 21]]]
    calls = [range(first, first + each) for first in range(0, 3, each)]
    parts = [
        np.float32([[k, row[1]] for k, item in enumerate(call) for row in per_item[item % 3]] + [[-1, 7]])
        for call in calls
    ]
    assert put_together(parts, actual, (3, each), 0, True).tolist() == actual.tolist()
    parts[0] = parts[0][1:]
    assert put_together(parts, actual, (3, each), 0, True).tolist() != actual.tolist()


@pytest.mark.parametrize(
    ("parts", "actual", "items", "is_output", "expected"),
    [
        ([[[1, 2]], [[3, 4]]], [[1, 2], [3, 4]], (2, 1), True, [[1, 2], [3, 4]]),
        ([[[1], [2]], [[3], [4]]], [[1, 3], [2, 4]], (2, 1), True, [[1, 3], [2, 4]]),
        ([[1, 2], [3, 1]], [1, 2, 3], (3, 2), True, [1, 2, 3]),
        ([[1, 2], [3, 4], [5, 1]], [1, 2, 3, 4, 5], (5, 2), True, [1, 2, 3, 4, 5]),
        ([[[1, 2]], [[3, 4, 5]]], [[1, 2], [3, 4]], (2, 1), True, [[1, 2]]),
        ([[1, 2], [3, 4]], [1, 3, 2, 4], (2, 1), False, [1, 3, 2, 4]),  # the items are the inner part
        ([[1, 2], [3, 4]], [1, 2, 3, 4], (2, 1), False, [1, 2, 3, 4]),
        ([[1, 2], [1, 2]], [1, 2], (2, 1), True, [1, 2]),
        ([[[1], [2]], [[3, 5], [4, 6]]], [[1, 3, 5], [2, 4, 6]], (3, 2), True, [[1, 3, 5], [2, 4, 6]]),
        ([1, 1], 1, (2, 1), True, 1),
        ([[1], [[1]]], [1, 1], (2, 1), True, [1]),
    ],
)
def test_results_of_several_calls_are_put_together(
    parts: list[Any], actual: Any, items: tuple[int, int], is_output: bool, expected: Any
) -> None:
    found = put_together([np.float32(part) for part in parts], np.float32(actual), items, None, is_output)
    assert found.tolist() == expected


def test_a_device_names_the_layers_that_it_supports(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Mock(description="a device", query=lambda path, weights: ["x", "second", "y"])
    process = Mock(return_value=Mock(__enter__=lambda _: engine, __exit__=lambda *_: None))
    monkeypatch.setattr(device_queries, "EngineProcess", process)
    x = ops.parameter([2], "f32", name="x")
    last: Any = x
    for name in ("first", "second", "third"):
        last = ops.relu(last, name=name)
    model = ovir.Model([ops.result(ops.tanh(last, name="fourth"), name="y")], [x])
    found = [(d.message, d.layer) for d in device_queries.ask_device(model, "m.xml", "CPU")]
    assert [message for message, _ in found] == [
        "asked: a device does not support this ReLU; the same applies to 1 more layer",
        "asked: a device does not support this Tanh",
    ]
    assert "'first'" in str(found[0][1])
