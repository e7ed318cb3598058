"""Files whose run would not end, or would compute or hold too much; and honest ones, which pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support import oversized
from support.bodies import choice
from support.oversized import CODES, MODEST, OVERSIZED

import ovir
from ovir import opset13 as ops
from ovir.checks.checker import check_here
from ovir.checks.options import CheckOptions
from ovir.checks.owners import OwningEngine
from ovir.checks.rules import runs
from ovir.checks.untrusted.budget import Budget
from ovir.cli.main import main

Body = Callable[[ovir.Layer, ovir.Layer, ovir.Layer], ovir.Layer]
"""A condition of the state f32[1,2], the counter i64[] and an input f32[1,2] that stays the same."""


def found_in(model: ovir.Model, folder: Path) -> list[ovir.Diagnostic]:
    ovir.save_model(model, folder / "model.xml")
    found = check_here(folder / "model.xml", None, CheckOptions(untrusted=True))
    assert not [d for d in found if d.code == "OVIR999"], found
    return found


def codes_of(model: ovir.Model, folder: Path) -> dict[str, str]:
    """Return the codes of a model that the rules for runs report, with their severities."""
    codes = ("OVIR007", "OVIR008", "OVIR015", "OVIR016")
    return {d.code: d.severity.value for d in found_in(model, folder) if d.code in codes}


def errors_of(model: ovir.Model, folder: Path) -> set[str]:
    return {d.code for d in found_in(model, folder) if d.severity is ovir.Severity.ERROR}


@pytest.mark.slow
@pytest.mark.parametrize("name", OVERSIZED)
def test_a_size_that_the_file_or_the_run_decides_is_refused(name: str, tmp_path: Path) -> None:
    assert errors_of(OVERSIZED[name](), tmp_path) & CODES


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a_random_number as a size", "the size of its output: a computation with large numbers of the file, which no interval follows, decides input 1, i64[1]"),
        ("a row added in many iterations", "the iterations of its body: it changes sizes in each of 900,000 iterations, too many to follow"),
    ],
)  # fmt: skip
def test_the_reason_why_nothing_bounds_a_size_is_named(name: str, message: str, tmp_path: Path) -> None:
    (found,) = {d.message for d in found_in(OVERSIZED[name](), tmp_path) if d.code == "OVIR017"}
    assert found == f"nothing bounds {message}"


@pytest.mark.parametrize("name", MODEST)
def test_a_size_that_the_caller_decides_passes(name: str, tmp_path: Path) -> None:
    assert errors_of(MODEST[name](), tmp_path) == set()


def loop(
    trips: object, condition: Body, state: ovir.Layer, fixed: ovir.Layer, inside: Callable[[ovir.Layer], ovir.Layer]
) -> ovir.Layer:
    """Return a Loop that carries a state and a counter, which goes on while ``condition`` holds."""
    x = ops.parameter([1, 2], "f32", name="x")
    count = ops.parameter([], "i64", name="count")
    same = ops.parameter([1, 2], "f32", name="same")
    new, more = inside(x), ops.add(count, np.int64(1))
    body = ovir.Model([ops.result(new), ops.result(more), ops.result(condition(x, more, same))], [x, count, same])
    made = ops.loop(trips if isinstance(trips, ovir.Layer) else ops.constant(trips), ops.constant(np.array(True)))
    made.set_function(body)
    made.set_special_body_ports([-1, 2])
    made.set_merged_input(body.inputs[0].layer, state, body.outputs[0].layer)
    made.set_merged_input(body.inputs[1].layer, ops.constant(np.int64(0)), body.outputs[1].layer)
    made.set_invariant_input(body.inputs[2].layer, fixed)
    made.get_iter_value(body.outputs[0].layer, -1)
    return made


def always(x: ovir.Layer, i: ovir.Layer, same: ovir.Layer) -> ovir.Layer:
    return ops.constant(np.array(True))


def plus_one(x: ovir.Layer) -> ovir.Layer:
    return ops.add(x, np.float32([[1, 1]]))


def looped(
    trips: int, condition: Body = always, inside: Callable[[ovir.Layer], ovir.Layer] = plus_one, count: int = 1
) -> ovir.Model:
    """Return a model of one Loop, or of several one after the other."""
    state, fixed = ops.parameter([1, 2], "f32", name="state"), ops.parameter([1, 2], "f32", name="fixed")
    y: ovir.Port | ovir.Layer = state
    for _ in range(count):
        y = loop(np.int64(trips), condition, y, fixed, inside).outputs[0]  # type: ignore[arg-type]
    return ovir.Model([y, ops.relu(fixed)], [state, fixed])


def nested(trips: Sequence[int]) -> ovir.Model:
    """Return a model of Loops within each other, from the outside in."""

    def inside(position: int) -> Callable[[ovir.Layer], ovir.Layer]:
        if position == len(trips):
            return plus_one
        return lambda x: loop(np.int64(trips[position]), always, x, x, inside(position + 1)).outputs[0]

    return looped(trips[0], inside=inside(1))


@pytest.mark.slow
def test_the_loops_around_are_named(tmp_path: Path) -> None:
    (found,) = {d.message for d in found_in(nested([1000, 50, 21]), tmp_path) if d.code == "OVIR008"}
    assert found.startswith("the body runs 21 times, 50,000 times in the loops around it; no real model runs more than")
    assert "OVIR008" not in codes_of(nested([1000, 50, 20]), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trips", "is_error"),
    [
        ([10], False),
        ([1_000_000], False),
        ([1_000_001], True),
        ([-1], True),
        ([1_000_000, 2**62], True),
        ([1000] * 3, True),
        ([1000, 1000], False),
        ([1_000_000, 2], True),
        ([2, 1_000_000], True),
        ([100, 100, 101], True),
        ([1, 1_000_000, 3], True),
    ],
)
def test_iterations_are_multiplied_over_the_loops_around(trips: list[int], is_error: bool, tmp_path: Path) -> None:
    assert codes_of(nested(trips), tmp_path).get("OVIR008") == ("error" if is_error else None)


# --------------------------------------------------------------------------- conditions


def first(x: ovir.Layer) -> ovir.Layer:
    return ops.reduce_sum(x, [0, 1], keep_dims=False)


@pytest.mark.parametrize("is_nested", [False, True])
def test_other_files_and_runs_warn_of_loops_that_never_end(
    is_nested: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.xml"
    ovir.save_model(nested([0, -1] if is_nested else [-1]), path)
    assert [d.severity.value for d in ovir.check(path) if d.code == "OVIR008"] == ["warning"]
    if is_nested:  # the outer loop runs zero times
        assert main(["run", str(path)]) == 0
        printed = capsys.readouterr().err
        assert printed.count("OVIR008] layer") == 1
        assert "the loop never ends: its condition is always true" in printed


def test_loops_of_many_iterations_are_no_fault_of_trusted_files(tmp_path: Path) -> None:
    ovir.save_model(nested([1000] * 3), tmp_path / "model.xml")
    assert "OVIR008" not in {d.code for d in ovir.check(tmp_path / "model.xml")}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (lambda x, i, same: ops.less(i, np.int64(100)), {}),
        (lambda x, i, same: ops.less(first(x), np.float32(100)), {"OVIR016": "warning"}),
        (lambda x, i, same: ops.equal(first(x), first(x)), {"OVIR008": "error"}),
    ],
)
def test_conditions_of_loops_without_trip_count(condition: Body, expected: dict[str, str], tmp_path: Path) -> None:
    assert codes_of(looped(-1, condition), tmp_path) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('type="Less" version="opset1"', 'type="Result" version="opset1"'),
        ('external_port_id="', 'external_port_id="x'),
        ("then_body", "another_body"),
        ("<edge ", "<vertex "),
    ],
)
def test_conditions_that_are_at_fault_themselves(old: str, new: str, tmp_path: Path) -> None:
    def condition(x: ovir.Layer, i: ovir.Layer, same: ovir.Layer) -> ovir.Layer:
        no = ops.constant(np.array(False))
        return choice(ops.less(first(x), np.float32(9)), lambda i: ops.less(i, np.int64(12)), lambda i: no, i)

    path = tmp_path / "model.xml"
    ovir.save_model(looped(-1, condition), path)
    before, start, after = path.read_text(encoding="utf-8").partition('type="If"')
    path.write_text(before + start + after.replace(old, new), encoding="utf-8")
    found = ovir.check(path)
    assert any(d.severity == "error" for d in found)
    assert "OVIR999" not in {d.code for d in found}, found


def test_the_count_of_a_counter_is_multiplied(tmp_path: Path) -> None:
    def many(x: ovir.Layer) -> ovir.Layer:
        return loop(np.int64(2000), always, x, x, plus_one).outputs[0]

    model = looped(-1, lambda x, i, same: ops.less(i, np.int64(1000)), many)
    assert codes_of(model, tmp_path).get("OVIR008") == "error"


# --------------------------------------------------------------------------- sizes


def broadcast_to(x: ovir.Layer, *sizes: object) -> ovir.Layer:
    """Return zeros of these sizes; an item that is not a number is a layer of i64[1]."""
    parts = [ops.constant(np.int64([size])) if isinstance(size, int) else size for size in sizes]
    return ops.broadcast(np.float32(0), ops.concat(parts, 0))


def size_of(x: ovir.Layer) -> ovir.Layer:
    return ops.gather(ops.shape_of(x), np.int64([0]), np.int64(0))


LARGE: dict[str, tuple[object, Callable[[ovir.Layer], ovir.Layer]]] = {
    "a dynamic batch": ([-1, 2], lambda x: broadcast_to(x, size_of(x), 2**40)),
    "a batch with an upper bound": (["1..64", 2], lambda x: broadcast_to(x, size_of(x), 2**27)),
    "the square of a bounded size": (["1..65536", 2], lambda x: broadcast_to(x, size_of(x), size_of(x))),
    "a bound that a file sets": ([1, 2**16], lambda x: broadcast_to(x, size_of_nonzero(x), size_of_nonzero(x))),
}


def size_of_nonzero(x: ovir.Layer) -> ovir.Layer:
    return ops.gather(ops.shape_of(ops.non_zero(x)), np.int64([1]), np.int64(0))


@pytest.mark.parametrize("name", LARGE)
def test_tensors_of_unknown_sizes(name: str, tmp_path: Path) -> None:
    shape, make = LARGE[name]
    x = ops.parameter(shape, "f32", name="x")  # type: ignore[arg-type]
    small = ops.reduce_max(make(x), [0], keep_dims=True)
    assert codes_of(ovir.Model([small], [x]), tmp_path)["OVIR007"] == "error"


@pytest.mark.parametrize("more", [0, 1])
def test_the_largest_tensor(more: int, tmp_path: Path) -> None:
    x = ops.parameter([1], "f32", name="x")
    model = ovir.Model([ops.reduce_max(ops.broadcast(x, [(1 << 30) + more]), [0])], [x])
    assert codes_of(model, tmp_path) == ({"OVIR007": "error"} if more else {})


def tiled(value: ovir.Layer) -> ovir.Layer:
    return ops.tile(value, [1, 1 << 40])


def of_its_size(value: ovir.Layer) -> ovir.Layer:
    return broadcast_to(ops.constant(np.float32(0)), ops.multiply(size_of(value), np.int64([1 << 40])), 2)


@pytest.mark.parametrize("has_initial", [True, False])
@pytest.mark.parametrize("shape", [[-1, 4], ["1..8", 4], [-1, -1], ["1..2147483647", 4]])
@pytest.mark.parametrize("make", [ops.relu, tiled, of_its_size])
def test_tensors_made_of_variables(
    make: Callable[[ovir.Layer], ovir.Layer], shape: list[object], has_initial: bool, tmp_path: Path
) -> None:
    x = ops.parameter(shape, "f32", name="x")  # type: ignore[arg-type]
    initial = x if has_initial else ops.constant(np.zeros((1, 4), np.float32))
    value = ops.read_value(initial, "v", "f32", shape)  # type: ignore[arg-type]
    model = ovir.Model([ops.reduce_max(make(value), [0, 1], keep_dims=True)], [x], sinks=[ops.assign(value, "v")])
    assert codes_of(model, tmp_path).get("OVIR007") == (None if make is ops.relu else "error")


@pytest.mark.parametrize(
    "shape", [[-1, 3, 224, 224], ["1..8", 3, -1, -1], ["0..2147483647", 8], [2, "1..9223372036854775807"]]
)
def test_open_sizes_are_the_callers(shape: list[object], tmp_path: Path) -> None:
    x = ops.parameter(shape, "f32", name="x")  # type: ignore[arg-type]
    y = ops.concat([ops.relu(x), ops.exp(x)], 1)
    assert codes_of(ovir.Model([y], [x]), tmp_path) == {}


def test_constants_that_an_iteration_reads_are_needed(tmp_path: Path) -> None:
    x, state, part, same = (ops.parameter([1, 64], "f32", name=name) for name in ("x", "state", "part", "same"))
    new = ops.add(ops.multiply(state, part), same)
    layer = ops.tensor_iterator()
    layer.set_body(ovir.Model([ops.result(new)], [part, state, same]))
    numbers = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    layer.set_sliced_input(part, numbers[:3], 0, 1, 1, -1, 0)
    layer.set_merged_input(state, x, layer.bodies["body"].outputs[0])
    layer.set_invariant_input(same, numbers[3:])
    model = ovir.Model([layer.get_iter_value(layer.bodies["body"].outputs[0])], [x])
    assert found_in(model, tmp_path) == []


# --------------------------------------------------------------------------- all of a run


def repeated(apply: Callable[[ovir.Layer, ovir.Layer], ovir.Layer], count: int, size: int) -> ovir.Model:
    x = ops.parameter([size, size], "f16", name="x")
    y: ovir.Layer = x
    for _ in range(count):
        y = apply(y, x)
    return ovir.Model([y], [x])


products = partial(repeated, lambda y, x: ops.matmul(y, x, False, False))


def products_in_a_loop(count: int, size: int) -> ovir.Model:
    def inside(x: ovir.Layer) -> ovir.Layer:
        wide = ops.broadcast(ops.reduce_sum(x, [0, 1], keep_dims=True), np.int64([size, size]))
        return ops.add(x, ops.reduce_max(ops.matmul(wide, wide, False, False), [0, 1], keep_dims=True))

    return looped(count, inside=inside)


def convolutions(count: int, size: int) -> ovir.Model:
    x = ops.parameter([1, 16, size, size], "f16", name="x")
    filters = ops.parameter([16, 16, 65, 65], "f16", name="filters")
    y: ovir.Layer = x
    for _ in range(count):
        y = ops.convolution(y, filters, [1, 1], [32, 32], [32, 32], [1, 1])
    return ovir.Model([y], [x, filters])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "count", "size", "is_error"),
    [
        (products, 500, 32768, True),
        (products, 2, 16384, False),
        (products_in_a_loop, 1_000_000, 4096, True),
        (products_in_a_loop, 100, 4096, False),
        (convolutions, 100, 4096, True),
        (convolutions, 2, 512, False),
    ],
)
def test_work_of_a_run(
    make: Callable[[int, int], ovir.Model], count: int, size: int, is_error: bool, tmp_path: Path
) -> None:
    found = codes_of(make(count, size), tmp_path)
    assert found == ({"OVIR015": "error"} if is_error else {})


@pytest.mark.parametrize("rows", [1 << 14, "1..16384", None])
@pytest.mark.parametrize(("count", "is_error"), [(22, False), (23, True)])
def test_work_of_the_largest_sizes(count: int, is_error: bool, rows: object, tmp_path: Path) -> None:
    """The number of rows is fixed, has a bound, or follows from numbers of an input."""
    shape = [1 << 14] if rows is None else [rows, 1 << 14]
    x, weights = ops.parameter(shape, "f32", name="x"), ops.parameter([1 << 14] * 2, "f32", name="weights")  # type: ignore[arg-type]
    y: ovir.Layer = x
    if rows is None:
        places = ops.convert(ops.non_zero(x), "f32")
        y = ops.matmul(places, ops.constant(np.ones((1, 1 << 14), np.float32)), True, False)
    for _ in range(count):
        y = ops.matmul(y, weights, False, False)
    assert ("OVIR015" in codes_of(ovir.Model([ops.reduce_max(y, [0, 1])], [x, weights]), tmp_path)) == is_error


def long() -> ovir.Layer:
    return ops.parameter([1000], "f32")


def reads_twice(x: ovir.Layer) -> list[ovir.Layer]:
    a = ops.abs(x)
    return [ops.add(ops.abs(ops.abs(a)), a)]


def of_constants(x: ovir.Layer) -> list[ovir.Layer]:
    return [ops.add(ops.abs(ops.abs(x)), ops.abs(np.ones(1000, np.float32)))]


def with_state(x: ovir.Layer) -> list[ovir.Layer]:
    return [ops.abs(ops.abs(x)), ops.assign(ops.abs(ops.read_value(ops.abs(x), "v", "f32", [1000])), "v")]


@pytest.mark.parametrize(
    ("build", "tensors"),
    [
        (lambda x: [ops.abs(x)], 1),
        (lambda x: [ops.abs(ops.abs(ops.abs(x)))], 2),  # what a layer reads and what it writes
        (reads_twice, 3),  # the first of the chain is kept for the last
        (lambda x: [a := ops.abs(x), ops.abs(a), ops.abs(x)], 3),
        (of_constants, 3),  # what is computed from constants is there before the run
        (with_state, 3),
        (lambda x: [looped_twice(x)], 3),  # two inside, and what the loop returns
    ],
)
def test_the_tensors_of_1000_numbers_that_are_held(
    build: Callable[[ovir.Layer], list[ovir.Layer]], tensors: int
) -> None:
    x = long()
    made = build(x)
    sinks = [layer for layer in made if layer.type == "Assign"]
    model = ovir.Model([layer for layer in made if layer not in sinks], [x], sinks=sinks)
    engine = OwningEngine()
    engine.infer(model)
    sizes = {port: engine.bytes_of(port) for layer in model.walk() for port in layer.outputs}
    assert runs._held(model, sizes) == 4000 * tensors


def looped_twice(x: ovir.Layer) -> ovir.Layer:
    return oversized.loop(3, lambda state: [ops.abs(ops.abs(state))], x)


def test_the_work_of_a_layer() -> None:
    """The call, and four multiply-adds for each number that is read or written; a Loop is counted by its body."""
    x = long()
    layer = ops.add(ops.abs(x), np.float32(1))
    assert runs._work(layer) == 10_000 + 4 * (1000 + 1 + 1000)
    assert runs._work(ops.result(layer)) == runs._work(looped_twice(long())) == 0


@pytest.mark.parametrize("more", [0, 1])
def test_the_limits_of_a_run(more: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limits nothing is reported; the outputs count together, and the layer with most of the work is named."""
    x = long()
    y = ops.abs(x, name="first")
    model = ovir.Model([y, ops.add(y, np.float32(1), name="second")], [x])
    monkeypatch.setattr(runs, "_MOST_WORK", sum(map(runs._work, model.layers)) - more)
    monkeypatch.setattr(runs, "_LARGE", 8000 - more)
    found = [d.message for d in found_in(model, tmp_path)]
    expected = [
        "the outputs take 8.0 kB (8,000 bytes) together, more than 8.0 kB, the limit for every file",
        "a run takes 6e+04 multiply-adds, more than 6e+04, the limit for every file; 30% of it in layer 3 'second' (Add, opset1)",
    ]  # fmt: skip
    assert found == expected * more


def live(count: int, wide: Callable[[ovir.Layer, int], ovir.Layer]) -> ovir.Model:
    """Return a model of which all of some tensors are made before the first of them is read."""
    x = ops.parameter([1], "f32", name="x")
    made = [wide(ops.add(x, np.float32([i])), i) for i in range(count)]
    return ovir.Model([ops.add(ops.reduce_max(y, [0], keep_dims=True), np.float32(i)) for i, y in enumerate(made)], [x])


@pytest.mark.parametrize(
    ("megabytes", "limit"), [(0, "8.6 GB, the limit for every file"), (300, "9.6 GB, 32 times the weights")]
)
def test_the_limit_of_held_tensors_is_named(megabytes: int, limit: str, tmp_path: Path) -> None:
    """Large weights raise the limit."""
    path = tmp_path / "model.xml"
    ovir.save_model(live(40, lambda x, index: ops.broadcast(x, np.int64([10**9]))), path)
    weights = path.with_suffix(".bin")
    os.truncate(weights, weights.stat().st_size + megabytes * 10**6)
    (found,) = [
        d
        for d in check_here(path, weights, CheckOptions(untrusted=True))
        if d.code == "OVIR015" and "holds" in d.message
    ]
    assert found.message.endswith(f"at one time, more than {limit}")


def sampled_regions(ratio: int) -> ovir.Model:
    x, rois = ops.parameter([1, 64, 32, 32], "f32", name="x"), ops.parameter([1000, 4], "f32", name="rois")
    return ovir.Model(
        [ops.roi_align(x, rois, np.zeros(1000, np.int32), 7, 7, ratio, 1.0, "avg", "asymmetric")], [x, rois]
    )


def sorted_numbers(count: int) -> ovir.Model:
    x = ops.parameter([1], "f32", name="x")
    return ovir.Model([ops.topk(ops.broadcast(x, [count]), np.int64(5), 0, "max", "value", "i64").outputs[0]], [x])


def sampled_pixels(count: int) -> ovir.Model:
    x = ops.parameter([1, 1, 4, 4], "f32", name="x")
    grid = ops.broadcast(ops.reduce_max(x, [0, 1, 2, 3], keep_dims=True), [1, count, 1000, 2])
    return ovir.Model([ops.grid_sample(x, grid, {"mode": "bicubic"})], [x])


def looked_up_rows(count: int) -> ovir.Model:
    indices = ops.parameter([1, count], "i32", name="indices")
    return ovir.Model([ops.embedding_bag_packed_sum(np.ones((2, 100_000), np.float32), indices)], [indices])


@pytest.mark.parametrize(
    ("make", "modest", "excessive"),
    [
        (sampled_regions, 2, 100_000),
        (sorted_numbers, 10**8, 10**9),
        (sampled_pixels, 1000, 100_000),
        (looked_up_rows, 1000, 10**7),
    ],
)
def test_work_and_temporaries_inside_of_a_layer(
    make: Callable[[int], ovir.Model], modest: int, excessive: int, tmp_path: Path
) -> None:
    assert codes_of(make(modest), tmp_path) == {}
    assert codes_of(make(excessive), tmp_path) == {"OVIR015": "error"}


# --------------------------------------------------------------------------- the memory of the check


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the memory is limited on Linux only")
@pytest.mark.parametrize(
    ("name", "size", "stored"),
    [("model.bin", 1 << 40, 0), ("other.bin", 100 << 30, 0), ("model.bin", 128 << 20, 16 << 20)],
)
def test_the_size_of_the_weights_gives_a_check_no_more_memory(
    name: str, size: int, stored: int, tmp_path: Path
) -> None:
    path = tmp_path / "model.xml"
    x = ops.parameter([1], "f32", name="x")
    ovir.save_model(ovir.Model([ops.negative(x)], [x]), path)
    text = path.read_text(encoding="utf-8")
    content = f"<a>{'x' * 1000}</a>" * 40_000
    path.write_text(text.replace("</net>", f"<rt_info>{content}</rt_info></net>"), encoding="utf-8")
    with open(tmp_path / name, "wb") as file:
        file.write(b"x" * stored)
        file.truncate(size)
    found = ovir.check(path, tmp_path / name, untrusted=Budget(memory=1 << 26))
    assert "OVIR001" in {d.code for d in found}, found
