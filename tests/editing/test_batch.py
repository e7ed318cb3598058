"""Another number of items in a batch: what constants pin follows the inputs, and models that mix items are refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.batches import MIXING, PINNED, moved, weights, windows
from support.edited import everything

import ovir
from ovir import opset13 as ops

MODELS = pytest.mark.parametrize("make", PINNED, ids=lambda make: make.__name__)


def results(model: ovir.Model, inputs: list[Any]) -> list[Any]:
    return list(ovir.compile_model(model)(inputs).values())


@pytest.mark.slow
@MODELS
@pytest.mark.parametrize("new", [4, -1, 1])
@pytest.mark.parametrize("old", [1, 2])
def test_one_call_equals_single_calls(make: Callable[[int], ovir.Model], old: int, new: int) -> None:
    """The expected results come from the same model, built for the new number."""
    model = make(old)
    edit = model.set_batch(new)
    assert edit.verdict.startswith("proven")
    assert edit.layers
    items = 3 if new < 0 else new
    built = make(items)
    feeds = list(ovir.random_inputs(built, 5).values())
    for own, expected in zip(results(model, feeds), results(built, feeds), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-6)
    if new < 0:
        assert not model.inputs[0].shape.is_static
        one = list(ovir.random_inputs(make(5), 6).values())
        assert [array.shape for array in results(model, one)] == [array.shape for array in results(make(5), one)]


@pytest.mark.parametrize(
    ("make", "old", "is_open"), [(moved, 2, False), (moved, 2, True), (windows, 2, False), (windows, 1, False)]
)
def test_reshapes_that_move_the_items(make: Callable[[int], ovir.Model], old: int, is_open: bool) -> None:
    model, built = make(old), make(3)
    if is_open:
        model.reshape([-1, *model.inputs[0].shape.dims[1:]])
    model.set_batch(-1)
    feeds = list(ovir.random_inputs(built, 5).values())
    np.testing.assert_allclose(results(model, feeds)[0], results(built, feeds)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("number", [4, -1])
def test_a_model_that_takes_any_number_stays_as_it_is(number: int) -> None:
    x = ops.parameter([-1, -1], "f32", name="x")
    doubled = ops.multiply(ops.reshape(x, [-1], False), np.float32(2))
    model = ovir.Model([ops.reshape(doubled, ops.shape_of(x), False)], [x])
    edit = model.set_batch(number)
    assert (edit.layers, edit.verdict) == ([], "proven: the results agree for 3 sets of random inputs")
    assert str(model.inputs[0].shape) == ("[4,?]" if number == 4 else "[?,?]")


@pytest.mark.slow
@pytest.mark.parametrize("old", [1, 2, 3])
@pytest.mark.parametrize(
    ("shape", "axis", "flat"),
    [
        ([6, 1, 4], 1, [-1, 4]),
        ([6, 1, 4], 1, [6, 4]),
        ([6, 1, 4], 1, [2, 3, 4]),
        ([6, 1, 4], 1, [1, 6, 4]),
        ([6, 1, 4], 1, [-1, 2, 2]),
        ([6, 1, 5, 4], 1, [-1, 4]),
        ([3, 2, 1, 4], 2, [3, 2, 4]),
        ([3, 2, 1, 4], 2, [-1, 4]),
        ([3, 2, 1, 4], 2, [6, 4]),
        ([3, 2, 1, 5, 4], 2, [6, 5, 4]),
        ([1, 6, 4], 0, [6, 4]),
    ],
)
def test_items_that_are_merged_into_an_axis(old: int, shape: list[int], axis: int, flat: list[int]) -> None:
    """The expected results come from the same model, built for the new number."""
    merged = next((i for i in reversed(range(len(flat))) if np.prod(shape[axis + 1 :]) == np.prod(flat[i + 1 :])), 0)

    def make(batch: int) -> ovir.Model:
        own, target = list(shape), list(flat)
        own[axis] = batch
        target[merged] *= batch if target[merged] > 0 else 1
        x = ops.parameter([batch, *shape[:axis], *shape[axis + 1 :]], "f32", name="x")
        order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape))]
        rows = ops.matmul(ops.reshape(ops.transpose(x, order), target, False), weights(flat[-1], 2), False, False)
        back = ops.reshape(rows, [*own[: axis + 1], -1, 2], False)
        return ovir.Model([ops.transpose(back, [axis, *range(axis), axis + 1, axis + 2])], [x], "merged")

    model, built = make(old), make(5)
    assert model.set_batch(5).verdict.startswith("proven")
    feeds = list(ovir.random_inputs(built, 5).values())
    np.testing.assert_allclose(results(model, feeds)[0], results(built, feeds)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "axis", "target", "expected"),
    [
        ([6, 1, 8], 1, [6, 2, 4], "[6,6,4]"),
        ([6, 1, 8], 1, [6, -1, 4], "[6,6,4]"),
        ([6, 1, 8], 1, [-1, 2, 4], "[18,2,4]"),
        ([6, 1, 8], 1, [6, 8], "[18,8]"),
        ([1, 1, 8], 1, [1, 8], "[3,8]"),
        ([1, 1, 8], 1, [1, 2, 4], "[1,6,4]"),
        ([1, 1, 8], 1, [1, -1, 4], "[1,6,4]"),
        ([1, 6, 4], 0, [1, -1, 2], "[3,12,2]"),
        ([1, 6, 4], 0, [-1, 2], "[36,2]"),
    ],
)
def test_axes_of_which_one_item_may_be_part(shape: list[int], axis: int, target: list[int], expected: str) -> None:
    x = ops.parameter([1, *shape[:axis], *shape[axis + 1 :]], "f32", name="x")
    order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape))]
    model = ovir.Model([ops.reshape(ops.transpose(x, order), target, False)], [x], "model")
    model.set_batch(3, verify=False)  # items in the inner part of an axis of an output cannot be proven
    assert str(model.outputs[0].shape) == expected


@pytest.mark.parametrize("make", MIXING, ids=lambda make: make.__name__)
def test_models_that_mix_their_items_are_refused(make: Callable[[], ovir.Model]) -> None:
    model = make()
    before = everything(model)
    with pytest.raises(ovir.ModelError, match=r"OVIR812.*'mixing'"):
        model.set_batch(4)
    assert everything(model) == before


def test_targets_get_a_zero_or_minus_one_where_these_suffice() -> None:
    x = ops.parameter([1, 6, 4], "f32", name="x")
    copied = ops.reshape(x, [1, -1, 2], True, name="copied")
    rest = ops.reshape(x, [1, 24], False, name="rest")
    model = ovir.Model([copied, rest], [x], "model")
    model.set_batch(-1)
    targets = [model.layer(name).inputs[1].type.constant.tolist() for name in ("copied", "rest")]
    assert targets == [[0, -1, 2], [-1, 24]]
    assert len(model.layers) == 7


def test_a_pool_of_the_whole_image_has_its_window_still() -> None:
    x = ops.parameter([2, 4, 8, 8], "f32", name="x")
    pool = ops.avg_pool(x, [8, 8], [0, 0], [0, 0], [8, 8], False, "floor", name="pool")
    model = ovir.Model([ops.reshape(pool, [2, 4], False)], [x], "model")
    model.set_batch(-1)
    assert model.layer("pool").type == "AvgPool"


def test_items_keep_their_order_in_memory() -> None:
    x = ops.parameter([2, 6], "f32", name="x")
    model = ovir.Model([ops.reshape(x, [6, 2], False)], [x], "model")
    model.set_batch(3)
    assert str(model.outputs[0].shape) == "[9,2]"


def test_only_named_inputs_get_the_batch() -> None:
    """The table is the same for all items, although its first size is that of the batch."""
    x, table = ops.parameter([1, 4], "f32", name="x"), ops.parameter([1, 4], "f32", name="table")
    model = ovir.Model([ops.reshape(ops.add(x, table), [1, 2, 2], False)], [x, table], "model")
    model.set_batch({"x": 3})
    assert [str(port.shape) for port in (*model.inputs, *model.outputs)] == ["[3,4]", "[1,4]", "[3,2,2]"]


def test_a_layout_tells_the_axis() -> None:
    x = ops.parameter([3, 1, 4], "f32", name="x")
    model = ovir.Model([ops.reshape(x, [3, 1, 2, 2], False)], [x], "model")
    model.preprocess("x", layout="CNW", model_layout="CNW")
    model.set_batch(5)
    assert str(model.outputs[0].shape) == "[3,5,2,2]"


def test_other_axes_are_tried_where_the_first_does_not_fit() -> None:
    """A state of one layer has the batch as its second axis; its first axis has the same size."""
    x, h = ops.parameter([1, 4], "f32", name="x"), ops.parameter([1, 1, 4], "f32", name="h")
    total = ops.add(ops.matmul(x, weights(4, 4), False, False), ops.squeeze(h, [0]))
    model = ovir.Model([ops.reshape(total, [1, 1, 4], False)], [x, h], "model")
    with model.editing():
        model.set_batch(6)
    assert [str(port.shape) for port in model.inputs] == ["[6,4]", "[1,6,4]"]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        *((wrong, "at least 1") for wrong in (0, -2, True, 1.0, "many", 2**63, None)),
        (2**63 - 1, "is larger than any memory"),
        ({"x": 2, "y": 3}, "one number of items"),
        ({"z": 2}, "no input 'z'"),
        ({"x": 2, "y": 2}, r"'y' of shape \[3\] has no axis of 1 item"),
    ],
)
def test_wrong_arguments(batch: Any, message: str) -> None:
    x, y = ops.parameter([1, 3], "f32", name="x"), ops.parameter([3], "f32", name="y")
    model = ovir.Model([ops.add(x, y)], [x, y], "model")
    with pytest.raises(ovir.OvirError, match=message):
        model.set_batch(batch)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("...", r"'x' has an unknown rank\n.* give it a shape before"),
        *((shape, "no input has an axis of items") for shape in ([], None)),
    ],
)
def test_inputs_without_axes(shape: Any, message: str) -> None:
    inputs = [] if shape is None else [ops.parameter(shape, "f32", name="x")]
    with pytest.raises(ovir.InputError, match=message):
        ovir.Model([ops.relu(x) for x in inputs or [1.0]], inputs).set_batch(2)


def _first(x: Any) -> Any:
    return ops.gather(x, [0], 0)


@pytest.mark.parametrize(
    "reduced",
    [
        lambda x: ops.gather(x, 0, 0),
        lambda x: ops.reduce_max(_first(x), [0, 1], False),
        lambda x: _first(x),
        lambda x: ops.clamp(ops.slice(x, [0], [1], [1], [0]), 0, 0),  # equal for all items
    ],
    ids=["row", "scalar", "first", "constant"],
)
def test_outputs_without_an_axis_of_items_are_refused(reduced: Callable[[Any], Any]) -> None:
    """Open sizes hide from inference that only the first item remains."""
    x = ops.parameter([-1, -1], "f32", name="x")
    model = ovir.Model([ops.relu(x), ops.result(reduced(x), name="lost")], [x], "model")
    before = everything(model)
    with pytest.raises(ovir.ModelError, match=r"OVIR812.*'lost'"):
        model.set_batch(3)
    assert everything(model) == before


def test_outputs_that_depend_on_no_item_are_kept() -> None:
    x, table = ops.parameter([-1, 4], "f32", name="x"), ops.parameter([5], "f32", name="table")
    size = ops.gather(ops.shape_of(_first(x)), [1], 0)
    model = ovir.Model([ops.relu(x), ops.relu(table), size], [x, table], "model")
    assert model.set_batch({"x": 3}).verdict.startswith("proven")


@pytest.mark.slow
@MODELS
@pytest.mark.parametrize("number", [1000, 99_999_999_999])
def test_a_large_batch_is_proven_with_few_items(make: Callable[[int], ovir.Model], number: int) -> None:
    model = make(2)
    edit = model.set_batch(number)
    assert edit.verdict.startswith("proven")
    assert edit.verdict.endswith("(run with 5 items)")
    assert number in [dim.lower for dim in model.inputs[0].shape]


@pytest.mark.parametrize(("old", "new", "ran"), [(2, 8, ""), (2, 9, 5), (5, 10, ""), (5, 12, 11), (1, -1, "")])
def test_a_batch_is_large_above_8_items_and_twice_the_present_ones(old: int, new: int, ran: int | str) -> None:
    x = ops.parameter([old, 4], "f32", name="x")
    verdict = ovir.Model([ops.reshape(x, [old, 2, 2], False)], [x]).set_batch(new).verdict
    assert verdict.partition("(run with ")[2] == (f"{ran} items)" if ran else "")


@pytest.mark.parametrize(("batch", "dim"), [("3", "3"), ("?", "?"), ("-1", "?")])
def test_numbers_of_items(batch: Any, dim: str) -> None:
    x = ops.parameter([1, 4], "f32", name="x")
    model = ovir.Model([ops.relu(x)], [x])
    model.set_batch(batch, verify=False)
    assert str(model.inputs[0].shape) == f"[{dim},4]"


@pytest.mark.parametrize(
    "result",
    [lambda x: ops.gather(x, 0, 0), lambda x: ops.matmul(weights(3, 1), x, False, False)],
    ids=["picked", "impossible"],
)
def test_a_refusal_says_that_a_number_is_for_trial(result: Callable[[Any], Any]) -> None:
    x = ops.parameter([1, 4], "f32", name="x")
    with pytest.raises(ovir.ModelError, match="13 items, a trial number"):
        ovir.Model([result(x)], [x], "model").set_batch(4)


def test_a_layer_that_cuts_a_large_batch_is_found_though_few_items_pass() -> None:
    x = ops.parameter([1, 4], "f32", name="x")
    model = ovir.Model([ops.result(ops.slice(x, [0], [100], [1], [0]), name="cut")], [x], "model")
    before = everything(model)
    with pytest.raises(ovir.ModelError, match=r"OVIR812.*'cut' has shape \[3,4\] for 3 items, but \[100,4\] for 1000"):
        model.set_batch(1000)
    assert everything(model) == before
    assert model.set_batch(90).verdict.startswith("proven")


@pytest.mark.parametrize("number", [3, -1])
def test_a_model_of_no_items_gets_some(number: int) -> None:
    x = ops.parameter([0, 3], "f32", name="x")
    model = ovir.Model([ops.relu(x)], [x])
    assert model.set_batch(number).verdict == (
        "not proven: the original model takes 0 items, so that its calls have no results"
    )
    assert results(model, [np.ones((3, 3), np.float32)])[0].shape == (3, 3)


@pytest.mark.parametrize("kind", ["u1", "u3", "u6", "nf4", "i4", "boolean", "bf16"])
def test_states_of_every_type_follow_the_batch(kind: str) -> None:
    x = ops.parameter([1, 2], kind, name="x")
    state = ops.read_value("v", kind, ovir.PartialShape([1, 2]))
    model = ovir.Model([ops.concat([state, x], 1)], [ops.assign(x, "v")], [x])
    model.set_batch(2)
    ones = np.ones((2, 2), x.element_type.to_dtype())
    request = ovir.compile_model(model).create_infer_request()
    assert [request.infer([ones])[0].astype(int).tolist() for _ in range(2)] == [[[0, 0, 1, 1]] * 2, [[1] * 4] * 2]


def test_initial_values_follow_the_batch() -> None:
    x = ops.parameter([1, 2], "f32", name="x")
    state = ops.read_value(np.float32([[3, 4]]), "v", "f32", [1, 2])
    model = ovir.Model([ops.add(state, x)], [ops.assign(x, "v")], [x])
    model.set_batch(2)
    request = ovir.compile_model(model).create_infer_request()
    calls = [np.float32([[1, 2], [5, 6]]), np.zeros((2, 2), np.float32)]
    assert [request.infer([call])[0].tolist() for call in calls] == [[[4, 6], [8, 10]], [[1, 2], [5, 6]]]


def test_a_loop_begins_with_a_constant_for_each_item() -> None:
    """The constant is the second input, after a tensor that each iteration reads and that holds no items; the last
    input is the same in each iteration and for each item."""
    x, table = ops.parameter([1, 2], "f32", name="x"), np.float32([[1, 2], [3, 4], [5, 6]])
    row, total, item, bias = (ops.parameter([1, 2], "f32", name=name) for name in ("row", "total", "item", "bias"))
    added = ops.add(ops.add(row, total), ops.add(item, bias))
    body = ovir.Model([ops.result(added)], [row, total, item, bias], "body")
    layer = ops.tensor_iterator()
    layer.set_body(body)
    layer.set_sliced_input(row, ops.constant(table).output(), 0, 1, 1, -1, 0)
    layer.set_merged_input(total, ops.constant(np.float32([[10, 20]])).output(), body.results[0])
    layer.set_invariant_input(item, x.output())
    layer.set_invariant_input(bias, ops.constant(np.float32([[100, 200]])).output())
    model = ovir.Model([layer.get_iter_value(body.results[0], -1)], [x], "m")
    model.set_batch(2)
    assert results(model, [np.float32([[0, 0], [1, 2]])])[0].tolist() == [[319, 632], [322, 638]]
    assert [port.source.layer.type for port in layer.inputs] == ["Const", "Tile", "Parameter", "Const"]


def test_a_tensor_of_unknown_rank_may_hold_items() -> None:
    x, shape = ops.parameter([1, 2], "f32", name="x"), ops.parameter([-1], "i64", name="shape")
    model = ovir.Model([ops.add(x, ops.broadcast(np.float32(0), shape))], [x, shape])
    model.set_batch({"x": 3}, verify=False)
    assert [str(port.shape) for port in (model.inputs[0], model.outputs[0])] == ["[3,2]", "[...]"]


def test_models_of_no_items() -> None:
    """Data of the items show how many there are; constants of none do not."""

    def empty(*, is_pinned: bool) -> ovir.Model:
        x = ops.parameter([0, 4], "f32", name="x")
        total = ops.add(x, np.ones((0 if is_pinned else 1, 4), np.float32))
        return ovir.Model([ops.reshape(total, np.array([0, 2, 2]), special_zero=True)], [x], "model")

    model = empty(is_pinned=False)
    model.set_batch(3)
    assert str(model.outputs[0].shape) == "[3,2,2]"
    with pytest.raises(ovir.ModelError, match="the number of items cannot change from 0"):
        empty(is_pinned=True).set_batch(3)
