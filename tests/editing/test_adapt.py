"""Other sizes of the inputs: how constants follow, which data is a function of positions, and what is refused."""

import re
from collections.abc import Callable
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pytest
from support.adaptable import chunks, keypoints, opened, results, table, windows
from support.builder import Net
from support.edited import everything, with_body

import ovir
from ovir import opset13 as ops
from ovir.editing.other_exports import is_like

Make = Callable[[int], ovir.Model]


def added(data: Callable[[int], Any]) -> Make:
    """Return the function that builds a sum of an input and data for a length."""

    def make(length: int) -> ovir.Model:
        array = data(length)
        x = ops.parameter(array.shape, array.dtype, name="x")
        return ovir.Model([ops.add(x, array)], [x], "model")

    return make


def grid(n: int) -> Any:
    """Return coordinates of a plane, x before y, in one list, with a column that does not vary."""
    y, x = np.meshgrid(np.arange(n), np.arange(6), indexing="ij")
    return np.stack([(x.ravel() + 0.5) * 4, y.ravel() / n, np.full(6 * n, 0.1)], 1).astype(np.float32)


POSITIONS: dict[str, Callable[[int], Any]] = {
    "numbers": lambda n: np.arange(n),
    "numbers from 7 on": lambda n: np.arange(n, dtype=np.int32) + 7,
    "numbers backwards": lambda n: np.arange(n)[::-1].copy(),
    "distances": lambda n: np.arange(n)[:, None] - np.arange(n) + n - 1,
    "centres": lambda n: (np.arange(n, dtype=np.float32) + np.float32(0.5)) * 8,
    "from -1 to 1": lambda n: np.linspace(-1, 1, n, dtype=np.float32),
    "parts of one": lambda n: (np.arange(n) / n).astype(np.float32),
    "centres of parts": lambda n: ((np.arange(n) + 0.5) / n).astype(np.float32),
    "small steps": lambda n: np.arange(n)[None] * np.array([[0.125], [0.0625]], np.float32),
    "triangle": lambda n: np.tril(np.ones((2, n, n), np.float32), -1),
    "infinite triangle": lambda n: np.triu(np.full((n, n), -np.inf, np.float32), 1),
    "diagonal": lambda n: np.eye(n, dtype=np.int32),
    "band of each head": lambda n: np.stack([np.eye(n), 2 * np.tri(n)]).astype(np.float32),
    "equal rows": lambda n: np.tile(np.float32([[3, 1, 4]]), (n, 1)),
    "equal columns": lambda n: np.tile(np.float32([[3], [1]]), (1, n)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize("old", [9, 10])
def test_data_that_follows(name: str, old: int) -> None:
    make = added(POSITIONS[name])
    model, others = make(old), [make(new) for new in (5, 23)]
    edit = model.reshape(opened(make, (old,), (5,)), adapt=True)
    assert "equal to the last bit" in edit.verdict
    for built in others:
        feeds = list(ovir.random_inputs(built, 3).values())
        np.testing.assert_allclose(results(model, feeds)[0], results(built, feeds)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "data",
    [
        lambda n: np.random.default_rng(n).standard_normal(n).astype(np.float32),
        lambda n: np.arange(n) ** 2,
        lambda n: np.append(np.arange(n - 1), 0),
        lambda n: np.linspace(-1, 1, n, dtype=np.float32)[: n // 2].repeat(2),
        lambda n: np.tri(n, k=5, dtype=np.float32),
    ],
    ids=["random", "squares", "last differs", "pairs", "far from the diagonal"],
)
def test_data_that_does_not_follow(data: Callable[[int], Any]) -> None:
    make = added(data)
    model = make(8)
    before = everything(model)
    with pytest.raises(ovir.ModelError, match=r"OVIR812.*(?s:.*)of shape \[8.* would need the shape \[17"):
        model.reshape(opened(make, (8,), (6,)), adapt=True)
    assert everything(model) == before


def test_data_that_may_follow_in_two_ways_is_refused() -> None:
    """Five numbers from -1 to 1 may be steps of a half, or a range that is divided."""
    make = added(lambda n: np.linspace(-1, 1, n, dtype=np.float32))
    with pytest.raises(ovir.ModelError, match="has no data"):
        make(5).reshape("?", adapt=True)


def test_targets_get_a_zero_or_minus_one_where_these_suffice() -> None:
    x = ops.parameter([2, 3, 8, 8], "f32", name="x")
    kept = ops.reshape(x, [2, 3, 8, 8, 1], True, name="kept")
    joined = ops.reshape(x, [2, 3, 64], False, name="joined")
    model = ovir.Model([kept, joined], [x], "model")
    model.reshape("2,3,?,?", adapt=True)
    targets = [model.layer(name).inputs[1].type.constant.tolist() for name in ("kept", "joined")]
    assert targets == [[2, 3, 0, 0, 1], [2, 3, -1]]


def regrouped(seed: int) -> Callable[[int, int], ovir.Model]:
    """Return the function that builds a Reshape which groups axes, or divides those that do not vary, for two sizes."""
    rng = np.random.default_rng(seed)
    axes = rng.permutation(["h", "w", "1", "3", "4"]).tolist()[: rng.integers(3, 6)]
    axes += [axis for axis in ("h",) if axis not in axes]
    parts = [part for axis in axes for part in (("2", "2") if axis == "4" and rng.random() < 0.5 else (axis,))]
    bounds = sorted({0, len(parts), *rng.integers(0, len(parts) + 1, rng.integers(0, 4)).tolist()})
    groups = [parts[a:b] for a, b in pairwise(bounds)]
    groups.insert(int(rng.integers(len(groups) + 1)), [])  # an axis of size 1
    opened, special_zero = int(rng.integers(-len(groups), len(groups))), bool(rng.integers(2))

    def make(h: int, w: int) -> ovir.Model:
        sizes = {"h": h, "w": w}
        shape, target = (
            [prod(sizes.get(part, 0) or int(part) for part in group) for group in own]
            for own in ([[axis] for axis in axes], groups)
        )
        if opened >= 0:
            target[opened] = -1
        x = ops.parameter(shape, "f32", name="x")
        return ovir.Model([ops.reshape(ops.relu(x), target, special_zero)], [x], "regrouped")

    return make


@pytest.mark.parametrize("seed", range(40))
def test_axes_that_are_grouped_otherwise(seed: int) -> None:
    make = regrouped(seed)
    model, built = make(10, 14), make(7, 33)
    model.reshape(opened(make, (10, 14), (7, 33)), adapt=True, verify=False)
    feeds = list(ovir.random_inputs(built, 3).values())
    np.testing.assert_array_equal(results(model, feeds)[0], results(built, feeds)[0])


def test_a_target_that_is_computed_in_part_follows() -> None:
    """The height is computed from the shape already, and the width is a number."""

    def make(height: int, width: int) -> ovir.Model:
        x = ops.parameter([1, height, width, 4], "f32", name="x")
        target = ops.concat([ops.gather(ops.shape_of(x), [1], 0), [4 * width]], 0)
        return ovir.Model([ops.reshape(ops.relu(x), target, False)], [x], "traced")

    model = make(8, 6)
    assert model.reshape("1,?,?,4", adapt=True).verdict.startswith("proven")
    for sizes in ((8, 6), (5, 12)):
        feeds = list(ovir.random_inputs(make(*sizes), 3).values())
        np.testing.assert_array_equal(results(model, feeds)[0], results(make(*sizes), feeds)[0])


def test_windows_tell_the_sizes_that_fit() -> None:
    model = windows(32, 32)
    edit = model.reshape("1,3,?,32", adapt=True)
    assert edit.notes == ["the sizes that fit are multiples of 8 in axis 2"]
    model = windows(32, 32)
    before = everything(model)
    with pytest.raises(ovir.ModelError, match="multiples of 8 in axis 2"):
        model.reshape("1,3,36,32", adapt=True)
    assert everything(model) == before


def test_parts_that_a_loop_reads_divide_the_size() -> None:
    assert chunks(15).reshape("1,?,4", adapt=True).notes == ["the sizes that fit are multiples of 3 in axis 1"]
    model = chunks(15)
    before = everything(model)
    with pytest.raises(ovir.ModelError, match=r"'iterator'.*parts.*(?s:.*)multiples of 3"):
        model.reshape("1,20,4", adapt=True)
    assert everything(model) == before


def test_a_table_has_rows_for_some_sizes_only() -> None:
    rows = np.random.default_rng(0).standard_normal((64, 4)).astype(np.float32)

    def make(length: int) -> ovir.Model:
        x = ops.parameter([1, length, 4], "f32", name="x")
        return ovir.Model([ops.add(x, ops.gather(rows, np.arange(length)[None], 0, name="rows"))], [x], "model")

    edit = table(60).reshape([1, 64, 8], adapt=True)
    assert edit.notes == []
    assert "x=[1,64,8]" in edit.verdict
    assert make(60).reshape([1, 64, 4], adapt=True).notes == []
    with pytest.raises(ovir.ModelError, match=r"'rows'.*of shape \[64,4\] has fewer rows"):
        make(60).reshape([1, 65, 4], adapt=True)


def test_a_frame_that_is_cut_off_has_its_begin() -> None:
    x = ops.parameter([1, 4], "f32", name="x")
    model = ovir.Model([ops.slice(ops.pad(x, [0, 2], [0, 2], "edge"), [2], [6], [1], [1])], [x], "model")
    model.reshape("1,?", adapt=True)
    array = np.arange(9, dtype=np.float32)[None]
    np.testing.assert_array_equal(results(model, [array])[0], array)


def test_a_later_layer_decides() -> None:
    """The first elements may be 9 of any number, until they meet all but 7."""
    x = ops.parameter([1, 16], "f32", name="x")
    parts = ops.slice(x, [0], [9], [1], [1]), ops.slice(x, [7], [2**31 - 1], [1], [1])
    model = ovir.Model([ops.add(*parts)], [x], "model")
    model.reshape("1,?", adapt=True)
    (found,) = results(model, [np.arange(10, dtype=np.float32)[None]])
    assert found.tolist() == [[7, 9, 11]]


def test_axes_of_inputs_that_must_have_equal_sizes() -> None:
    x, mask = ops.parameter([1, 8, 4], "f32", name="x"), ops.parameter([1, 8, 8], "f32", name="mask")
    scores = ops.add(ops.matmul(x, x, False, True), mask)
    model = ovir.Model([ops.reshape(ops.matmul(scores, x, False, False), [8, 4], False)], [x, mask], "model")
    model.reshape({"x": [1, 5, 4], "mask": [1, 5, 5]}, adapt=True)
    assert str(model.outputs[0].shape) == "[5,4]"


def test_sizes_that_do_not_follow_are_named() -> None:
    x = ops.parameter([1, 3, 32, 32], "f32", name="x")
    model = ovir.Model([ops.adaptive_avg_pool(x, np.array([4, 4]))], [x], "model")
    layer = next(layer for layer in model.layers if layer.type == "AdaptiveAvgPool")
    assert model.reshape("1,3,?,?", adapt=True).notes == [
        f"a constant or a window decides on sizes that do not follow in {layer.name}"
    ]


def test_independent_items_are_shown() -> None:
    x = ops.parameter([6, 4], "f32", name="x")
    model = ovir.Model([ops.reshape(ops.relu(x), [6, 2, 2], False)], [x], "model")
    assert model.reshape("?,4", adapt=True).verdict.endswith("one call equals calls with fewer items")


@pytest.mark.parametrize("verify", [True, False])
def test_shapes_that_need_no_change(verify: bool) -> None:
    x = ops.parameter([1, 4], "f32", name="x")
    model = ovir.Model([ops.relu(x)], [x], "model")
    edit = model.reshape("1,9", adapt=True, verify=verify)
    assert (list(edit), edit.verdict.startswith("proven"), str(model.outputs[0].shape)) == ([], verify, "[1,9]")


def test_open_sizes_that_get_numbers_prove_nothing() -> None:
    x = ops.parameter([-1, 4], "f32", name="x")
    edit = ovir.Model([ops.relu(x)], [x], "model").reshape("3,4", adapt=True)
    assert edit.verdict == "nothing to prove: no size changes that the inputs had"


@pytest.mark.parametrize(
    ("shape", "message"),
    [("1,2,3", "the rank differs"), ({"z": "1,4"}, "no input 'z'"), ("?,?", "nothing says for which size")],
)
def test_wrong_arguments(shape: Any, message: str) -> None:
    x = ops.parameter([1, -1], "f32", name="x")
    model = ovir.Model([ops.reshape(x, [2, 2], False)], [x], "model")
    with pytest.raises(ovir.InputError, match=message):
        model.reshape(shape if message != "nothing says for which size" else "1,?", adapt=True)


def test_a_target_that_no_sizes_make_is_named() -> None:
    with pytest.raises(
        ovir.ModelError, match=r"'end' of \[3, 14\] would need .* was \[1,7,6\] and would be \[1,13,6\]"
    ):
        rows(lambda n: 3, lambda n: 2 * n)(7).reshape("1,?,6", adapt=True)


def test_another_model_of_the_same_sizes_says_nothing() -> None:
    make = added(POSITIONS["numbers"])
    with pytest.raises(ovir.InputError, match="has the sizes of this one"):
        make(8).reshape("?", adapt=True, like=make(8))


@pytest.mark.parametrize("shape", [[-1], []])
def test_another_model_has_a_size_for_each_axis(shape: list[int]) -> None:
    x = ops.parameter(shape, "i64", name="x")
    with pytest.raises(ovir.InputError, match=r"the other model must have a size in axis 0 of its input of shape \["):
        added(POSITIONS["numbers"])(8).reshape("?", adapt=True, like=ovir.Model([ops.abs(x)], [x]))


def test_constants_that_differ_in_another_model_are_named() -> None:
    def make(length: int) -> ovir.Model:
        x, same = ops.parameter([1, length], "f32", name="x"), ops.constant(np.float32(3), name="same")
        scaled = x * ops.constant(np.float32(length), name="length") + same
        return ovir.Model([ops.reshape(scaled, [length], False)], [x], "m")

    with pytest.raises(ovir.ModelError, match=r"hint: these constants differ in the other model: 'length'$"):
        make(8).reshape("1,?", adapt=True, like=make(20))


@pytest.mark.parametrize("change", [lambda m: m.reshape("3,4", adapt=True), lambda m: m.set_batch(2)])
def test_the_inputs_of_a_body_keep_their_sizes(change: Callable[[ovir.Model], Any]) -> None:
    with pytest.raises(ovir.InputError, match=r"of a body cannot be .*: .* come from the model around it"):
        change(with_body().layer("n1").bodies["body"])


@pytest.mark.parametrize(
    ("own", "theirs", "expected"),
    [
        (np.int64([0, 5]), np.int64([0, 5]), True),
        (np.int64([0, 5]), np.int64([0, 6]), False),
        (np.int64([1, 5]), np.int64([1, 6]), False),
        (np.int64([-1, 5]), np.int64([1, 6]), True),
        (np.int64([1, 5]), np.int64([-1, 6]), True),
        (np.float32([1, 5]), np.float32([1, 6]), True),
        (np.int64([]), np.int64([]), True),
        (np.int64([1]), np.int64([1, 1]), False),
    ],
)
def test_what_is_alike_in_another_model(own: Any, theirs: Any, expected: bool) -> None:
    """Integers are equal, unless one of them is counted from an end or open; real numbers may differ."""
    one, other = (ops.unsqueeze(ops.constant(array), 0) for array in (own, theirs))
    assert is_like([one.inputs[0].type], [one.outputs[0].type], other) == expected


def scores(rows: int, columns: int) -> ovir.Model:
    x, y = (ops.parameter([1, size, 4], "f32", name=name) for name, size in (("x", rows), ("y", columns)))
    return ovir.Model([ops.reshape(ops.matmul(x, y, False, True), [rows, columns], False)], [x, y], "scores")


@pytest.mark.parametrize("sizes", [(5, 3), (5, 12), (20, 12)])
def test_equal_old_sizes_may_become_different_ones(sizes: tuple[int, int]) -> None:
    model, expected = scores(12, 12), scores(*sizes)
    edit = model.reshape({name: [1, size, 4] for name, size in zip("xy", sizes, strict=True)}, adapt=True)
    assert str(expected.inputs[0].shape) in edit.verdict
    inputs = list(ovir.random_inputs(expected, 3).values())
    np.testing.assert_array_equal(*(ovir.compile_model(one)(inputs)[0] for one in (model, expected)))


def test_sizes_that_are_taken_for_one_are_named() -> None:
    edit = scores(12, 12).reshape({"x": "1,?,4", "y": "1,?,4"}, adapt=True)
    assert edit.notes == ["axis 1 of x, y is taken for the same size"]


@pytest.mark.parametrize(("size", "end"), [(32, "x=[1,32]"), (33, "; x=[1,33] was not run"), (0, "x=[1,0]")])
def test_a_large_size_is_not_run(size: int, end: str) -> None:
    x = ops.parameter([1, 8], "f32", name="x")
    model = ovir.Model([ops.reshape(ops.relu(x), [8, 1], False)], [x], "model")
    assert model.reshape([1, size], adapt=True).verdict.endswith(end)


@pytest.mark.parametrize(("less", "is_run"), [(1, True), (2, False)])
def test_no_loop_runs_for_ever(less: int, is_run: bool) -> None:
    """A trip count of two less than a length is negative for a length of one, which has no limit; 0 is one."""
    edit = looped_over(12 - less, 12).reshape("1,20,6", adapt=True)
    assert ("x=[1,1,6]" in edit.verdict) == is_run
    assert "x=[1,20,6]" in edit.verdict


def looped_over(count: int, length: int) -> ovir.Model:
    """Return a loop over the first steps of an input, whose results are concatenated."""
    x = ops.parameter([1, length, 6], "f32", name="x")
    step, state, steps = ops.parameter([], "i64"), ops.parameter([1, 6], "f32"), ops.parameter([1, length, 6], "f32")
    last = ops.add(state, ops.gather(steps, step, 1))
    rows = ops.unsqueeze(last, [1])
    loop = ops.loop(ops.constant(np.int64(count)), ops.constant(np.array(True)), name="loop")
    loop.set_function(ovir.Model([ops.constant(np.array(True)), last, rows], [step, state, steps], "body"))
    loop.set_special_body_ports([0, 0])
    loop.set_merged_input(state, ops.constant(np.zeros((1, 6), np.float32)).output(0), last.output(0))
    loop.set_invariant_input(steps, x.output(0))
    return ovir.Model([loop.get_concatenated_slices(rows.output(0), 0, 1, 1, -1, 1)], [x], "looped")


def windows_of(size: Callable[[int], int]) -> Make:
    """Return the function that builds a pool with windows of a size for images of a size."""

    def make(width: int) -> ovir.Model:
        x, window = ops.parameter([1, 1, width, width], "f32", name="x"), [size(width)] * 2
        return ovir.Model([ops.avg_pool(x, window, [0, 0], [0, 0], window, False, "floor", name="pool")], [x], "pooled")

    return make


@pytest.mark.parametrize(("size", "is_meant"), [(4, True), (3, False)])
def test_a_small_window_is_not_taken_for_the_whole_image(size: int, is_meant: bool) -> None:
    model = windows_of(lambda n: size)(size)
    model.reshape("1,1,?,?", adapt=True)
    assert (model.layer("pool").type == "AvgPool") != is_meant


@pytest.mark.parametrize(("outputs", "kind"), [(1, "ReduceMax"), (2, "MaxPool")])
def test_a_window_stays_if_the_places_of_the_largest_numbers_are_read(outputs: int, kind: str) -> None:
    x = ops.parameter([1, 1, 8, 8], "f32", name="x")
    pool = ops.max_pool(x, [8, 8], [1, 1], [0, 0], [0, 0], [8, 8], name="pool")
    model = ovir.Model([ops.unsqueeze(port, 0) for port in pool.outputs[:outputs]], [x], "pooled")
    model.reshape("1,1,?,?", adapt=True, verify=False)
    assert model.layer("pool").type == kind


@pytest.mark.parametrize("make", [windows_of(lambda n: n), windows_of(lambda n: 16)])
def test_a_window_of_the_whole_image_becomes_the_image_unless_another_export_keeps_it(make: Make) -> None:
    told = make(16).reshape("1,1,?,?", adapt=True).notes
    assert told == ["a window that was as large as the image is now the whole image in pool"]
    model, built = make(16), make(40)
    model.reshape("1,1,?,?", adapt=True, like=make(32))
    feeds = list(ovir.random_inputs(built, 3).values())
    np.testing.assert_allclose(results(model, feeds)[0], results(built, feeds)[0], rtol=1e-5, atol=1e-6)


def test_a_window_beyond_the_image_stays() -> None:
    x = ops.parameter([1, 1, 8, 8], "f32", name="x")
    pool = ops.avg_pool(x, [8, 8], [1, 1], [1, 1], [8, 8], False, "floor", name="pool")
    (note,) = ovir.Model([pool], [x], "pooled").reshape("1,1,?,?", adapt=True).notes
    assert note.startswith("a constant or a window decides")


@pytest.mark.parametrize(("width", "window", "is_told"), [(16, 8, True), (17, 8, False), (8, 4, True), (6, 3, False)])
def test_windows_of_half_the_image_are_named(width: int, window: int, is_told: bool) -> None:
    notes = windows_of(lambda n: window)(width).reshape("1,1,?,?", adapt=True).notes
    assert notes == ["a constant or a window decides on sizes that do not follow in pool"] * is_told


def first_steps(count: Callable[[int], int]) -> Make:
    """Return the function that builds a slice of the first steps of an input for a length."""

    def make(length: int) -> ovir.Model:
        x = ops.parameter([1, length], "f32", name="x")
        return ovir.Model([ops.slice(x, [0], ops.constant([count(length)], name="end"), [1], [1])], [x], "first")

    return make


def step(place: Callable[[int], int]) -> Make:
    """Return the function that builds one step of an input for a length."""

    def make(length: int) -> ovir.Model:
        x = ops.parameter([1, length], "f32", name="x")
        return ovir.Model([ops.gather(x, ops.constant(place(length), name="end"), 1)], [x], "step")

    return make


def rows(height: Callable[[int], int], width: Callable[[int], int]) -> Make:
    """Return the function that builds a Reshape of steps of 6 numbers for a number of steps."""

    def make(length: int) -> ovir.Model:
        x = ops.parameter([1, length, 6], "f32", name="x")
        return ovir.Model(
            [ops.reshape(x, ops.constant([height(length), width(length)], name="end"), False)], [x], "rows"
        )

    return make


def filled(pad: Callable[[int], tuple[int, int]]) -> Make:
    """Return the function that builds a Pad for a length."""

    def make(length: int) -> ovir.Model:
        x, (begin, end) = ops.parameter([1, length], "f32", name="x"), pad(length)
        ends = [ops.constant([0, pads], name=name) for pads, name in ((begin, "begin"), (end, "end"))]
        return ovir.Model([ops.pad(x, *ends, "edge")], [x], "filled")

    return make


AMBIGUOUS = {
    "all but two, or ten": (
        first_steps(lambda n: n - 2),
        first_steps(lambda n: 10),
        r"\[10\].*becomes \[21\].*where \[10\]",
    ),
    "eight, or all but four": (first_steps(lambda n: 8), first_steps(lambda n: n - 4), r"\[8\].*stays.*where \[19\]"),
    "six, or half": (first_steps(lambda n: 6), first_steps(lambda n: n // 2), r"\[6\].*stays.*where \[11\]"),
    "the last, or the eleventh": (step(lambda n: n - 1), step(lambda n: 11), "11.*becomes 22.*where 11"),
    "four more, or sixteens": (
        filled(lambda n: (0, 4)),
        filled(lambda n: (0, -n % 16)),
        r"\[0, 4\].*stays.*a multiple of 8 or 16 would",
    ),
    "four more at the begin, or sixteens": (
        filled(lambda n: (4, 0)),
        filled(lambda n: (-n % 16, 0)),
        r"\[0, 4\].*stays.*a multiple of 8 or 16 would",
    ),
    "nothing, or an even number": (
        filled(lambda n: (0, 0)),
        filled(lambda n: (0, n % 2)),
        r"\[0, 0\].*stays.*a multiple of 2 or ",
    ),
    "two more at both ends, or sixteens": (
        filled(lambda n: (2, 2)),
        filled(lambda n: (-n % 16 // 2, (-n % 16 + 1) // 2)),
        r"\[0, 2\].*stays.*a multiple of 8 or 16 would",
    ),
    "six rows, or halves": (
        rows(lambda n: 6, lambda n: n),
        rows(lambda n: n // 2, lambda n: 12),
        r"\[6, 12\].*becomes \[6,23\].*and for .*\[18,12\] would fit as well as \[6,36\]",
    ),
}
"""Models that are equal for a length of 12: what one is taken for, what it may also be, and a note about both."""


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_may_be_meant_otherwise_is_told_or_decided_by_another_export(name: str) -> None:
    taken, other, note = AMBIGUOUS[name]
    shape = opened(taken, (12,), (20,))
    model = taken(12)
    edit = model.clone().reshape(shape, adapt=True)
    (found,) = edit.notes
    assert edit.verdict.endswith("; notes tell 1 constant with another meaning that fits")
    assert re.fullmatch(f"constant '(begin|end)' of {note}.*", found)
    for make in (taken, other):
        adapted, built = make(12), make(16)
        assert "would fit as well" not in str(adapted.reshape(shape, adapt=True, like=make(20)).notes)
        feeds = list(ovir.random_inputs(built, 3).values())
        np.testing.assert_array_equal(results(adapted, feeds)[0], results(built, feeds)[0])


def test_what_a_later_layer_decides_is_no_question() -> None:
    """A slice of all but two steps is added to a product without the outermost steps."""
    x = ops.parameter([1, 1, 12], "f32", name="x")
    cut = ops.slice(x, [0], [10], [1], [2])
    inner = ops.convolution(ops.relu(x), np.ones((1, 1, 3), np.float32), [1], [0], [0], [1])
    model = ovir.Model([ops.add(cut, inner)], [x], "model")
    assert model.reshape("1,1,?", adapt=True).notes == []


def last_steps(begin: Callable[[int], int]) -> Make:
    """Return the function that builds a slice of an input up to its end for a length."""

    def make(length: int) -> ovir.Model:
        x, start = ops.parameter([1, length], "f32", name="x"), ops.constant([begin(length)], name="begin")
        return ovir.Model([ops.slice(x, start, [length], [1], [1])], [x], "last")

    return make


@pytest.mark.parametrize(
    ("make", "old", "new"),
    [
        # positions follow in the last quarter, and ends too if they leave out at most 8 steps
        (step(lambda n: n - 3), 12, 20),
        (step(lambda n: 8), 12, 20),
        (step(lambda n: 0), 1, 5),
        (first_steps(lambda n: n - 8), 32, 40),
        (first_steps(lambda n: 23), 32, 40),
        (first_steps(lambda n: n - 4), 16, 20),
        (first_steps(lambda n: 11), 16, 20),
        # begins follow in the last third and in the middle
        (last_steps(lambda n: n - 4), 12, 20),
        (last_steps(lambda n: 7), 12, 20),
        (last_steps(lambda n: n // 2), 12, 20),
        (last_steps(lambda n: 5), 12, 20),
    ],
)
def test_numbers_near_an_end_follow(make: Make, old: int, new: int) -> None:
    model, built = make(old), make(new)
    model.reshape([1, new], adapt=True, verify=False)
    feeds = list(ovir.random_inputs(built, 3).values())
    np.testing.assert_array_equal(results(model, feeds)[0], results(built, feeds)[0])


@pytest.mark.parametrize(
    ("size", "old", "is_taken"),
    [
        *((size, old, True) for old in (20, 37) for size in (lambda n: n, lambda n: 2 * n, lambda n: 5 * n)),
        *((lambda n: n // 2, old, old == 20) for old in (20, 37)),
        *((lambda n: n // 4, old, False) for old in (20, 37)),
        *((size, 20, False) for size in (lambda n: 3 * n // 2, lambda n: n - 9, lambda n: n + 9)),
        *((size, 20, True) for size in (lambda n: n + 1, lambda n: n - 1, lambda n: n - 8, lambda n: n + 8)),
    ],
)
def test_sizes_that_an_image_is_resized_to(size: Callable[[int], int], old: int, is_taken: bool) -> None:
    """They are multiples, half, or at most 8 more or less; a rest of 37 rows shows nothing about a half."""
    x = ops.parameter([1, 1, old, 4], "f32", name="x")
    model = ovir.Model([ops.interpolate(x, [size(old)], "nearest", "sizes", axes=[2])], [x], "m")
    notes = model.reshape("1,1,?,4", adapt=True, verify=False).notes
    assert [note.startswith("a constant or a window decides") for note in notes] == [not is_taken] * (size(old) != old)
    model.reshape([1, 1, 50, 4])
    assert model.outputs[0].shape[2] == size(50 if is_taken else old)


def convolved(size: int) -> Callable[[Any], Any]:
    """Return the function that builds a convolution with a kernel of a size."""
    return lambda x: ops.convolution(x, np.ones((1, 1, size), np.float32), [1], [0], [0], [1])


@pytest.mark.parametrize(
    ("network", "old", "ran"),
    [
        (ops.relu, 8, (1, 11, 17)),
        (convolved(5), 100, (16, 101, 201)),  # 1, 4, 16 or 64, or the old size if that is less
        (convolved(17), 100, (64, 101, 201)),
        (convolved(17), 20, (20, 23, 41)),
        (lambda x: ops.reshape(x, [1, 5, 6], False), 30, (6, 30, 66)),  # all are multiples of 6
    ],
)
def test_the_sizes_that_are_run(network: Callable[[Any], Any], old: int, ran: tuple[int, ...]) -> None:
    x = ops.parameter([1, 1, old], "f32", name="x")
    verdict = ovir.Model([network(x)], [x], "m").reshape("1,1,?", adapt=True).verdict
    assert re.findall(r"x=\[1,1,(\d+)\]", verdict) == [str(size) for size in (old, *ran)]


@pytest.mark.parametrize(
    ("target", "multiples", "ran", "taken", "other"),
    [
        ([1, 2, 3, 2, 5], (3, 5), ["3,5", "9,15", "15,25"], "6,3,22,5", "6,3,2,55"),
        ([1, 3, 2, 2, 5], (2, 5), ["2,5", "6,15", "14,25"], "9,2,22,5", "9,2,2,55"),
        ([1, 2, 3, 10], (3, 1), ["3,1", "9,11", "15,21"], "6,3,110", "2,9,110"),
    ],
)
def test_parts_of_axes_have_the_sizes_that_the_outer_ones_leave(
    target: list[int], multiples: tuple[int, int], ran: list[str], taken: str, other: str
) -> None:
    """Where primes do not fit, 3 and 11 times the old sizes are tried; others fit if they are multiples of the parts."""
    x = ops.parameter([1, 6, 10], "f32", name="x")
    edit = ovir.Model([ops.reshape(x, ops.constant(target, name="parts"), False)], [x]).reshape("1,?,?", adapt=True)
    assert re.findall(r"x=\[1,([\d,]+)\]", edit.verdict) == ["6,10", *ran]
    told, sizes = edit.notes
    assert f"becomes [1,{taken}] for x=[1,18,110], where [1,{other}] would fit as well" in told
    fitting = [f"multiples of {n} in axis {axis}" for axis, n in enumerate(multiples, 1) if n > 1]
    assert sizes == f"the sizes that fit are {' and '.join(fitting)}"


def test_trial_sizes_are_primes_far_apart() -> None:
    """They are at least 5/3 of the old sizes, and at least three times another one."""
    x = ops.parameter([32, 48, 2], "f32", name="x")
    model = ovir.Model([x * np.random.default_rng(0).random((32, 48, 2), np.float32)], [x], "m")
    with pytest.raises(ovir.ModelError, match=r"from x=\[32,48,2\]: .* x=\[59,179,541\], trial sizes"):
        model.reshape("?,?,?", adapt=True)


@pytest.mark.parametrize(
    ("shape", "value", "is_told"),
    [
        *(([1, 8], value, told) for value, told in ((8, True), (7, True), (9, False), (1 / 8, True), (1 / 7, True))),
        *(([1, 8], value, told) for value, told in ((-8, True), (1 / 9, False), ([8, 7] * 2, True), ([8] * 8, False))),
        *(([1, 3], value, told) for value, told in ((2, False), (3, True))),  # 2 is also that of a square
        *(([1, 4, 8, 3], value, told) for value, told in ((32, True), (96, True), (8, True), (24, False))),
    ],
)
def test_numbers_that_may_be_sizes_are_told(shape: list[int], value: Any, is_told: bool) -> None:
    """They are a size, one less, the product of the sizes that vary, or of all, and the parts of one."""
    x = ops.parameter(shape, "f32", name="x")
    number = ops.constant(np.float32(value), name="number")
    joined = ops.divide(ops.reshape(x, [-1, 1], False), number)
    model = ovir.Model([joined], [x], "m")
    notes = model.reshape([1, -1] if len(shape) == 2 else [1, -1, -1, 3], adapt=True, verify=False).notes
    assert (
        any("sizes, or numbers that follow from one, may be what stays in number" in note for note in notes) == is_told
    )


def test_the_last_of_two_steps_follows() -> None:
    model = step(lambda n: n - 1)(2)
    model.reshape("1,?", adapt=True)
    assert results(model, [np.arange(6, dtype=np.float32)[None]])[0].tolist() == [5]


@pytest.mark.parametrize(
    ("steps", "length", "start"), [(5, 11, "a constant or a window"), (6, 11, "constant 'end' of [6]"), (1, 2, "other")]
)
def test_a_few_first_steps_are_no_question(steps: int, length: int, start: str) -> None:
    (note,) = first_steps(lambda _: steps)(length).reshape("1,?", adapt=True).notes
    assert note.startswith(start)


def test_the_last_two_of_several_steps_stay() -> None:
    x = ops.parameter([1, 7], "f32", name="x")
    (note,) = ovir.Model([ops.gather(x, [5, 6], 1)], [x], "m").reshape("1,?", adapt=True).notes
    assert note.startswith("a constant or a window decides")


@pytest.mark.parametrize("change", [lambda m: m.reshape("3,?", adapt=True), lambda m: m.set_batch(2)])
def test_an_output_that_its_operation_lacks_changes_nothing(change: Callable[[ovir.Model], Any]) -> None:
    net = Net()
    odd = net.op("ReLU", net.parameter("x", "3,6"), outputs=2)
    net.result(net.op("Reshape", odd, net.const(np.array([3, 2, 3])), special_zero="false"))
    model = net.model()
    assert "the kernel gave 1 outputs of 2" in change(model).verdict
    assert not model.outputs[0].shape.is_static or model.outputs[0].shape[0] == 2


@pytest.mark.parametrize(
    ("network", "note"),
    [
        (
            lambda x: ops.reshape(x, [1, 8, 8], False, name="same"),
            r".*\[1, 8, 8\] in layer 'same'.*where \[1,53,17\] would.*",
        ),
        (lambda x: ops.max_pool(x, [2], [1], [0], [1], [3]).output(0), "a constant or a window decides .*"),
        (lambda x: ops.slice(x, [7], [-(2**31)], [-1], [2]), "a constant or a window decides .*"),
    ],
    ids=["a Reshape that did nothing", "pads at one end", "a step and an axis of 1"],
)
def test_what_does_not_show_is_told(network: Callable[[Any], Any], note: str) -> None:
    x = ops.parameter([1, 8, 8], "f32", name="x")
    (found,) = ovir.Model([network(x)], [x], "model").reshape("1,?,?", adapt=True).notes
    assert re.fullmatch(note, found)


@pytest.mark.parametrize(
    ("length", "shape", "is_told"), [(1, (1, 1, 4), True), (1, (1, 4), True), (1, (4,), False), (6, (1, 1, 4), False)]
)
def test_the_only_row_of_a_constant_is_named(length: int, shape: tuple[int, ...], is_told: bool) -> None:
    """A single number is no row, and a list is one of no axis besides the last."""
    x = ops.parameter([1, length, 4], "f32", name="x")
    total = x * np.full((1, 1, 1), 2, np.float32) + ops.constant(np.ones(shape, np.float32), name="row")
    notes = ovir.Model([total], [x], "model").reshape("1,?,4", adapt=True).notes
    told = ["one row for an axis of size 1, which may be meant for this size, is repeated in row"]
    assert notes == told * is_told


@pytest.mark.parametrize(("length", "is_told"), [(2, True), (4, True), (5, False)])
def test_small_old_sizes_are_told(length: int, is_told: bool) -> None:
    x = ops.parameter([1, length, 7], "f32", name="x")
    notes = ovir.Model([ops.relu(x)], [x], "model").reshape("1,?,7", adapt=True).notes
    assert notes == [f"other numbers may be equal by chance to the old size of {length} in axis 1"] * is_told


def test_sizes_that_are_rounded_to_the_old_ones_show_nothing() -> None:
    with pytest.raises(ovir.ModelError, match=r"of shape \[3\] would need the shape"):
        keypoints(12, 12).reshape("1,3,?,?", adapt=True)


def test_a_table_behind_other_layers_is_named() -> None:
    x, at = ops.parameter([1, 6, 6], "f32", name="x"), np.arange(6)
    table = ops.constant(np.random.default_rng(0).standard_normal((11, 1)).astype(np.float32), name="table")
    bias = ops.squeeze(ops.gather(table, at[:, None] - at + 5, 0), [2])
    with pytest.raises(ovir.ModelError, match=r"made of 'table' of shape \[11,1\], would need the shape \[1"):
        ovir.Model([x + bias], [x], "model").reshape({"x": "1,?,?"}, adapt=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: ops.convolution(x, np.ones((2, 1, 3, 3), np.float32), [1, 1], [1, 1], [1, 1], [1, 1]),
        lambda x: ops.matmul(ops.transpose(x, [0, 2, 3, 1]), np.ones((1, 4), np.float32), False, False),
    ],
    ids=["convolution", "product"],
)
def test_weights_of_one_channel_are_not_repeated(make: Callable[[Any], Any]) -> None:
    x = ops.parameter([1, 1, 8, 8], "f32", name="x")
    model = ovir.Model([make(x)], [x])
    with pytest.raises(ovir.ModelError, match="for which it has no data"):
        model.reshape([1, 3, 8, 8], adapt=True)


def test_multiples_that_do_not_fit_are_told() -> None:
    """Every third of half of the elements ends beyond them."""
    x = ops.parameter([1, 4], "f32", name="x")
    model = ovir.Model([ops.result(ops.gather(x, np.int64([0, 3]), np.int64(1)))], [x])
    with pytest.raises(ovir.ModelError, match="fewer rows than the size needs") as raised:
        model.reshape([1, 8], adapt=True)
    assert raised.value.diagnostic.hint is None
    edit = model.reshape([1, -1], adapt=True)
    assert edit.notes[-1] == "larger sizes do not fit, such as 12 in axis 1"
