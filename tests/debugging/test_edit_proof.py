"""The proof of edits: models that compute the same pass, others are refused with the first layer that differs."""

import re
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.debugging import edit_proof
from ovir.debugging.comparison_session import Findings
from ovir.debugging.edit_proof import LEAST_SIZES, _sets
from ovir.debugging.item_calls import calls_for_items
from ovir.debugging.layerwise_run import WalkPlan


def model(batch: int = 1, target: Any = (1, 12), axes: Any = (1,), *, width: int = 4) -> ovir.Model:
    x = ops.parameter([batch, 3, width], "f32", name="x")
    flat = ops.reshape(ops.relu(x, name="relu"), np.array(target), False, name="flat")
    normal = ops.mvn(flat, np.array(axes), True, 1e-6, "inside_sqrt", name="mvn")
    return ovir.Model([ops.multiply(normal, 2.0, name="out")], [x], "model")


def stateful(factor: float) -> ovir.Model:
    """The factor counts from the second call on."""
    x = ops.parameter([1, 4], "f32", name="x")
    state = ops.read_value(np.zeros((1, 4), np.float32), "v", name="state")
    total = ops.add(ops.multiply(state, factor, name="scaled"), x, name="total")
    return ovir.Model([total], [x], "model", sinks=[ops.assign(total, "v")])


def test_models_that_compute_the_same_pass() -> None:
    assert str(ovir.prove_edit(model(), model())) == "proven: the results agree for 3 sets of random inputs"
    assert ovir.prove_edit(stateful(1), stateful(1)).sets == 5


@pytest.mark.parametrize("batch", [None, {0: 0}])
def test_layers_are_only_looked_at_where_results_differ(batch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    add = Findings.add_tensor
    monkeypatch.setattr(
        Findings, "add_tensor", lambda self, layer, *rest: compared.append(layer.name) or add(self, layer, *rest)
    )
    after, wrong = (model(2 if batch else 1, (-1, 12), axes) for axes in ((1,), (0,)))
    assert ovir.prove_edit(model(), after, batch=batch)
    assert set(compared) <= {"out"}
    with pytest.raises(ovir.ModelError, match="'mvn'"):
        ovir.prove_edit(model(), wrong, batch=batch)
    assert {"relu", "mvn"} <= set(compared)


@pytest.mark.parametrize("batch", [None, {0: 0}])
def test_a_proof_prepares_each_model_once(batch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many calls of the original stand against one of the result."""
    planned: list[ovir.Model] = []
    plan = WalkPlan.__init__
    monkeypatch.setattr(
        WalkPlan, "__init__", lambda self, model, **others: planned.append(model) or plan(self, model, **others)
    )
    before, after = model(), model(4 if batch else 1, (-1, 12))
    assert ovir.prove_edit(before, after, batch=batch).sets == 3
    assert sorted(map(id, planned)) == sorted(map(id, (before, after)))


def test_each_call_of_a_proof_keeps_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the outputs agree at once, and no layers are compared."""
    planned: list[ovir.Model] = []
    plan = WalkPlan.__init__
    monkeypatch.setattr(
        WalkPlan, "__init__", lambda self, model, **others: planned.append(model) or plan(self, model, **others)
    )

    def summed(batch: int) -> ovir.Model:
        x = ops.parameter([batch, 4], "f32", name="x")
        total = ops.add(x, ops.read_value(np.zeros((batch, 4), np.float32), "past", "f32", [batch, 4]))
        return ovir.Model([total], [x], sinks=[ops.assign(total, "past")])

    before, after = summed(1), summed(4)
    assert ovir.prove_edit(before, after, batch={0: 0})
    assert [sum(model is given for model in planned) for given in (before, after)] == [4, 1]


def test_a_slow_proof_ends_after_the_first_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_proof, "ENOUGH_SECONDS", -1)
    assert [ovir.prove_edit(model(), model(), samples=samples).sets for samples in (None, 2, 4)] == [1, 2, 4]


def test_dynamic_sizes_differ_between_the_sets() -> None:
    """A Slice that keeps 8 columns differs from one that keeps all only where there are more than 8."""

    def cut(end: int) -> ovir.Model:
        x = ops.parameter([1, -1], "f32", name="x")
        return ovir.Model([ops.slice(x, [0], [end], [1], [1], name="cut")], [x], "model")

    with pytest.raises(ovir.ModelError, match="'cut'"):
        ovir.prove_edit(cut(8), cut(100))


@pytest.mark.parametrize(
    ("before", "after", "layer"),
    [
        (model(), model(axes=(0,)), "mvn"),
        (model(), model(target=(1, -1), axes=(0,)), "mvn"),
        (stateful(1), stateful(2), "scaled"),
    ],
)
def test_the_first_layer_that_differs_is_named(before: ovir.Model, after: ovir.Model, layer: str) -> None:
    with pytest.raises(ovir.ModelError, match=f"OVIR812.*'{layer}'.*instead of"):
        ovir.prove_edit(before, after)


@pytest.mark.parametrize(("items", "target"), [(3, (3, 12)), (-1, (-1, 12)), (4, (0, -1))])
@pytest.mark.parametrize("old", [1, 2, 3])
def test_one_call_equals_calls_with_fewer_items(old: int, items: int, target: Any) -> None:
    if 0 in target:
        target = (items, 12)
    assert ovir.prove_edit(model(old, (old, 12)), model(items, target), batch={0: 0})


@pytest.mark.parametrize(("target", "axes"), [((3, 12), (0, 1)), ((1, 36), (1,))])
def test_mixed_items_are_named(target: Any, axes: Any) -> None:
    with pytest.raises(ovir.ModelError, match=r"OVIR812.*'mvn'.*calls with fewer items[^$]*mixes the items"):
        ovir.prove_edit(model(1, (1, 12), axes), model(3, target, axes), batch={0: 0})


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("m", "output 'm' depends on the items"),
        ("mn", "outputs 'm', 'n' depend on the items"),
        ("mz", "output 'm' depends on the items"),
        ("i", "output 'i' depends on the items"),
        ("z", None),
        ("zs", None),
    ],
)
def test_outputs_that_depend_on_the_items_need_an_axis_for_them(names: str, message: str | None) -> None:
    """Accept outputs that are equal for all items without an axis, but not inputs; other inputs have no items."""

    def reduced(batch: int) -> ovir.Model:
        x, other = ops.parameter([batch, 2], "f32", name="x"), ops.parameter([1], "f32", name="other")
        made = {
            "m": lambda: ops.reduce_max(x, [0]),
            "n": lambda: ops.reduce_max(ops.negative(x), [0]),
            "s": lambda: ops.shape_of(x),
            "z": lambda: ops.multiply(other, np.float32(2)),
            "i": lambda: ops.reduce_max(ops.multiply(x, np.float32(0)), [0]),
        }
        return ovir.Model([ops.result(made[name](), name=name) for name in names], [x, other])

    if message is None:
        assert ovir.prove_edit(reduced(1), reduced(3), batch={0: 0})
    else:
        with pytest.raises(ovir.ModelError, match=message):
            ovir.prove_edit(reduced(1), reduced(3), batch={0: 0})


def test_other_shapes_are_named() -> None:
    with pytest.raises(ovir.ModelError, match=r"the results before and after the edit differ.* output 0 has shape \["):
        ovir.prove_edit(model(), model(target=(2, 6)))
    with pytest.raises(ovir.ModelError, match=r"output 0 of fewer items, put together, has shape \["):
        ovir.prove_edit(model(), model(3, (9, 4)), batch={0: 0})


def test_functions_that_differ_below_0_do_not_agree() -> None:
    def model(function: Any) -> ovir.Model:
        x = ops.parameter([4], "f32", name="x")
        return ovir.Model([function(x, name="y")], [x])

    with pytest.raises(ovir.ModelError, match="the results before and after the edit differ"):
        ovir.prove_edit(model(ops.relu), model(ops.abs))


def test_nothing_is_proven_of_a_loop_that_never_ends() -> None:
    x, state = ops.parameter([4], "f32", name="x"), ops.parameter([4], "f32", name="state")
    after = ops.negative(state)
    loop = ops.loop(np.int64(-1), np.array(True), name="loop")
    loop.set_function(ovir.Model([after, ops.constant(np.array(True))], [state], "body"))
    loop.set_special_body_ports([-1, 1])
    loop.set_merged_input(state, x.output(0), after.output(0))
    model = ovir.Model([loop.get_iter_value(after.output(0), -1)], [x])
    proof = ovir.prove_edit(model, model)
    assert not proof
    assert "the loop never ends" in str(proof)


def test_nothing_is_proven_where_the_original_cannot_be_run() -> None:
    x = ops.parameter([50], "i32", name="x")
    failing = ovir.Model([ops.reshape(ops.non_zero(x), [1, 3], False, name="y")], [x], "model")
    proof = ovir.prove_edit(failing, failing.clone())
    assert not proof
    assert str(proof).startswith("not proven: ovir cannot run the model")
    x = ops.parameter([1], "i32", name="x")
    random = ovir.Model([ops.random_uniform(x, 0.0, 1.0, "f32", name="draw")], [x], "model")
    assert "draws random numbers" in str(ovir.prove_edit(random, random.clone()))


@pytest.mark.parametrize("makes_inputs", [True, False])
def test_variables_and_the_inputs_in_their_place_agree(makes_inputs: bool) -> None:
    def stateless(factor: float) -> ovir.Model:
        x, past = (ops.parameter([1, 4], "f32", name=name) for name in ("x", "past"))
        total = ops.add(ops.multiply(past, factor, name="scaled"), x, name="total", tensor_names="present")
        return ovir.Model([total], [x, past], "model")

    states, way = {"v": ("past", "present")}, 1 if makes_inputs else -1
    proof = ovir.prove_edit(*(stateful(1), stateless(1))[::way], states=states)
    assert str(proof) == "proven: the results agree for 5 calls in a row, with random inputs"
    with pytest.raises(ovir.ModelError) as caught:
        ovir.prove_edit(*(stateful(1), stateless(2))[::way], states=states)
    found = re.search(r"is (\S+) at \[0,\d\] instead of (\S+)", caught.value.diagnostic.message)
    now, expected = map(float, found.groups())
    assert (now > expected) == makes_inputs, "the numbers are positive, and the factor 2 is that of the inputs"


def test_so_many_sets_as_are_asked_for_have_no_least_sizes() -> None:
    x = ops.parameter([-1, 3], "f32", name="x")
    model = ovir.Model([ops.relu(x)], [x])
    assert ovir.prove_edit(model, model.clone(), samples=2).sets == 2
    assert ovir.prove_edit(model, model.clone()).sets > 3


def test_nothing_is_proven_where_no_call_of_the_original_can_be_run() -> None:
    def model(batch: int, columns: int) -> ovir.Model:
        x = ops.parameter([batch, 4], "f32", name="x")
        found = ops.non_zero(ops.add(ops.abs(x), 1.0))
        return ovir.Model([ops.relu(ops.reshape(found, [2, columns], False, name="rows"), name="end")], [x], "model")

    proof = ovir.prove_edit(model(1, 3), model(3, -1), batch={0: 0})
    assert str(proof).startswith("not proven: ovir cannot run the model: ")


@pytest.mark.parametrize("count", [1, 2])
def test_outputs_of_sizes_and_constants_do_not_depend_on_items(count: int) -> None:
    def model(batch: int) -> ovir.Model:
        x = ops.parameter([batch, 4], "f32", name="x")
        return ovir.Model([ops.constant(np.float32([1, 2])), ops.shape_of(ops.relu(x))][:count], [x])

    proof = ovir.prove_edit(model(1), model(3), batch={0: 0})
    assert str(proof) == "not proven: all outputs are computed from sizes and constants alone"
    edited = model(1)
    assert edited.set_batch(3).verdict == str(proof)
    assert str(edited.inputs[0].shape) == "[3,4]"


def test_least_sizes_with_which_the_original_fails_are_left_out() -> None:
    """The step is one less than the elements, which inference does not know, and must not be 0."""

    def model(*, mended: bool) -> ovir.Model:
        x = ops.parameter([-1, -1], "f32", name="x")
        count = ops.gather(ops.shape_of(ops.non_zero(ops.add(ops.abs(x), 1.0))), 1, 0)
        step = ops.subtract(count, np.int64(1))
        step = ops.add(step, ops.convert(ops.equal(step, np.int64(0)), "i64")) if mended else step
        return ovir.Model([ops.range(np.int64(0), np.int64(9), step, "i64", name="end")], [x], "model")

    proof = ovir.prove_edit(model(mended=False), model(mended=False))
    assert (proof.reason, proof.sets) == (None, 5)
    assert ovir.prove_edit(model(mended=True), model(mended=True)).sets == 6
    with pytest.raises(ovir.ModelError, match="here first: output 0 step must not be 0"):
        ovir.prove_edit(model(mended=True), model(mended=False))


@pytest.mark.parametrize(("left", "agrees"), [(0, True), (1, False)])
def test_outputs_are_compared_with_the_variables_in_whose_place_they_are(left: int, agrees: bool) -> None:
    x, past = (ops.parameter([1, 4], "f32", name=name) for name in ("x", "past"))
    total = ops.add(past, x, name="total")
    present = ops.add(total, np.float32(left), name="present", tensor_names="present")
    stateless, states = ovir.Model([total, present], [x, past], "model"), {"v": ("past", "present")}
    if agrees:
        assert ovir.prove_edit(stateful(1), stateless, states=states)
    else:
        with pytest.raises(ovir.ModelError, match="'present'"):
            ovir.prove_edit(stateful(1), stateless, states=states)


def test_inputs_can_be_given() -> None:
    """The result has no input ``rate``, which is fixed."""
    x, rate = ops.parameter([3], "f32", name="x"), ops.parameter([], "f32", name="rate")
    before = ovir.Model([ops.multiply(x, rate, name="y")], [x, rate], "model")
    z = ops.parameter([3], "f32", name="x")
    after = ovir.Model([ops.multiply(z, 8.0, name="y")], [z], "model")
    assert ovir.prove_edit(before, after, given={"rate": np.array(8, np.float32)})
    with pytest.raises(ovir.ModelError, match="'y'"):
        ovir.prove_edit(before, after, given={"rate": np.array(9, np.float32)})


def test_dynamic_sizes_are_zero_as_well() -> None:
    """A Reshape copies a dimension where the size of the other tensor is 0."""
    a, b = (ops.parameter([-1, -1], "f32", name=name) for name in "ab")
    copied = ovir.Model([ops.shape_of(ops.reshape(b, ops.shape_of(a), special_zero=True))], [a, b])
    a, b = (ops.parameter([-1, -1], "f32", name=name) for name in "ab")
    taken = ovir.Model([ops.shape_of(ops.reshape(b, ops.shape_of(a), special_zero=False))], [a, b])
    assert str(ovir.prove_edit(copied, copied.clone())).startswith("proven")
    with pytest.raises(ovir.ModelError, match="differ"):
        ovir.prove_edit(copied, taken)


def returned(**shapes: Any) -> ovir.Model:
    """Return a model that returns its inputs."""
    inputs = [ops.parameter(shape, "f32", name=name, tensor_names=name) for name, shape in shapes.items()]
    return ovir.Model([ops.result(layer) for layer in inputs], inputs)


GROWING = [((1, 4), (1, 8)), ((2, 4), (2, 16)), ((3, 4), (3, 24))]


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (1, [*GROWING, ((1, 4), (1, 1)), ((0, 4), (0, 8)), ((0, 4), (0, 0))]),
        (8, [*GROWING[:1] * 3, ((1, 4), (1, 1)), ((0, 4), (0, 8))]),
    ],
)
def test_sizes_grow_and_are_1_and_0_where_both_models_accept_that(width: int, expected: Any) -> None:
    model, given = returned(x=[-1, 4], y=[(0, 4), -1], z=[-1, 3]), np.ones((7, 3), np.float32)
    y = ops.parameter([-1, -1], "f32", name="y", tensor_names="y")
    other = ovir.Model([ops.add(y, np.zeros(width, np.float32))], [y])
    sets = list(_sets(model, other, 3, 5, {"z": given}, least_sizes=True))
    assert [tuple(array.shape for array in each()[:2]) for each in sets] == expected
    assert all(np.array_equal(each()[2], given) for each in sets)
    assert [each.name for each in sets[:4]] == ["seed 5", "seed 6", "seed 7", LEAST_SIZES]


def pooled(stride: int, *, end: int | None = None, items: int = 1) -> ovir.Model:
    """Return a model that takes images of 64 elements or more."""
    x = ops.parameter([items, 1, -1, -1], "f32", name="x", tensor_names="x")
    pool = ops.max_pool(x, [stride, stride], [1, 1], [0, 0], [0, 0], [40, 40], name="pool")[0]
    return ovir.Model([pool if end is None else ops.slice(pool, [0], [end], [1], [2], name="cut")], [x], "model")


@pytest.mark.parametrize(
    ("stride", "is_batch", "expected"),
    [(32, True, [64, 96, 128]), (64, True, [64, 128, 192]), (128, True, [128, 256, 384]), (32, False, [64, 128, 192])],
)
def test_large_sizes_grow_by_little_where_only_items_matter(stride: int, is_batch: bool, expected: Any) -> None:
    model = pooled(stride)
    sets = list(_sets(model, None if is_batch else model, 3, 0, {}))
    assert [each()[0].shape for each in sets] == [(1, 1, size, size) for size in expected]
    assert model.inputs[0].shape[2].is_dynamic


@pytest.mark.parametrize("stride", [32, 64, 128])
def test_sizes_that_grow_by_little_show_a_cut_after_any_stride(stride: int) -> None:
    assert ovir.prove_edit(pooled(stride), pooled(stride, items=3), batch={0: 0}).sets == 3
    with pytest.raises(ovir.ModelError, match="of fewer items, put together, has shape"):
        ovir.prove_edit(pooled(stride), pooled(stride, end=1, items=3), batch={0: 0})


def test_an_input_of_unknown_rank_keeps_its_shape() -> None:
    sets = list(_sets(returned(x="[...]", y=[-1]), None, 2, 0, {}))
    first, second = ([array.shape for array in each()] for each in sets)
    assert first[0] == second[0]
    assert first[1] != second[1]


@pytest.mark.parametrize(
    ("before", "after", "items", "calls"),
    [
        (2, 3, 3, [[0, 1], [2, 0]]),
        (1, 3, 3, [[0], [1], [2]]),
        (-1, -1, 2, [[0], [1]]),
        (0, 2, 2, []),
        (2, -1, 2, [[0, 1]]),
        ((2, 5), 3, 3, [[0, 1], [2, 0]]),
        ((0, 5), 2, 2, [[0], [1]]),
    ],
)
def test_items_of_the_calls(before: Any, after: int, items: int, calls: list[list[int]]) -> None:
    sized, found = calls_for_items(returned(x=[4, before], y=[5]), returned(y=[5], x=[4, after]), {1: 1})
    assert sized.inputs[1].shape.to_tuple() == (4, items)
    assert found == [{1: call} for call in calls]
