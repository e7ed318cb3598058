"""Who decides a size, and how large it becomes: the bounds, owners and bytes of tensors of small models."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from support.oversized import ONE, branch, data, doubled, integer, long_string, loop, packed, scalar, tensor_of, uniform

import ovir
from ovir import opset13 as ops
from ovir import opset15
from ovir.checks import owners
from ovir.checks.owners import Owner, OwningEngine, counted_sizes, means_open
from ovir.core.element_types import ElementType, f32, i8, i64, string, u8
from ovir.core.shapes import PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value, from_moved
from ovir.ops.base.operator import Operator

Build = Callable[[ovir.Layer], ovir.Layer | ovir.Port]


def engine_of(*outputs: ovir.Layer | ovir.Port, inputs: tuple[ovir.Layer, ...] = ()) -> OwningEngine:
    engine = OwningEngine()
    engine.infer(ovir.Model(list(outputs), list(inputs)))
    return engine


def result_of(build: Build, x: ovir.Layer) -> tuple[ovir.Port, OwningEngine]:
    made = build(x)
    port = made if isinstance(made, ovir.Port) else made.outputs[0]
    return port, engine_of(port, inputs=(x,))


def least(number: int) -> Build:
    return lambda x: ops.maximum(integer(x), np.int64(number))


NUMBERS: dict[str, tuple[Build, ovir.Layer, str, tuple[float, float]]] = {
    "an input": (lambda x: x, data(), "CALLER", (-inf, inf)),
    "a magnitude": (ops.relu, data(), "CALLER", (0, inf)),
    "a byte": (lambda x: ops.convert(x, "u8"), data(), "CALLER", (0, 255)),
    "a truth": (lambda x: ops.convert(x, "boolean"), data(), "CALLER", (0, 1)),
    "an integer": (integer, data(), "CALLER", (-inf, inf)),
    "a share": (ops.sigmoid, data(), "CALLER", (0, 1)),
    "a scaled share": (lambda x: ops.multiply(ops.sigmoid(x), np.float32(65536)), data(), "CALLER", (0, 65536)),
    "nearly large": (least(65535), data(), "CALLER", (65535, inf)),
    "large": (least(65536), data(), "LARGE", (65536, inf)),
    "an open end": (least(2**31 - 1), data(), "CALLER", (2**31 - 1, inf)),
    "as large as a mask": (lambda x: ops.maximum(x, np.float32(2.0**100)), data(), "CALLER", (2.0**100, inf)),
    "as large as infinity": (lambda x: ops.maximum(x, np.float32(inf)), data(), "CALLER", (inf, inf)),
    "a fixed number": (lambda x: ops.add(ops.multiply(x, np.float32(0)), np.float32(7)), data(), "FILE", (7, 7)),
    "a length of a fixed vector": (lambda x: ops.reduce_l2(ops.multiply(x, np.float32(0)), [0], True), data(), "FILE", (0, inf)),
    "what no interval follows of a fixed number": (lambda x: ops.matmul(ops.multiply(x, np.float32(0)), np.float32([1]), False, False), data(), "CALLER", (-inf, inf)),
    "a size of an input": (lambda x: ops.shape_of(x, "i64"), data([-1, 3]), "CALLER", (0, inf)),
    "fixed sizes of an input": (lambda x: ops.shape_of(x, "i64"), data([2, 3]), "FILE", (2, 3)),
    "a constant": (lambda x: ops.constant(np.float32([2, nan, -5])), data(), "FILE", (-inf, inf)),
    "a constant of integers": (lambda x: ops.constant(np.int8([2, -5])), data(), "FILE", (-5, 2)),
    "a random number": (lambda x: uniform(ONE), data(), "RUN", (-inf, inf)),
    "a random number below a large one": (lambda x: uniform(np.int64(65536)), data(), "LARGE", (-inf, inf)),
    "a random number below a small one": (lambda x: uniform(np.int64(65535)), data(), "RUN", (-inf, inf)),
    "the sign of a random number": (lambda x: ops.sign(uniform(ONE)), data(), "RUN", (-1, 1)),
    "a sum beyond an open end": (lambda x: ops.add(ops.clamp(ops.convert(x, "i32"), 0, 2**31 - 1), np.int32([1])), data(), "CALLER", (1, inf)),
    "a sum that just fits": (lambda x: ops.add(ops.clamp(ops.convert(x, "i8"), 0, 126), np.int8([1])), data(), "CALLER", (1, 127)),
    "a sum of a byte that wraps around": (lambda x: ops.add(ops.clamp(ops.convert(x, "i8"), 0, 126), np.int8([2])), data(), "LARGE", (-128, 127)),
    "a difference that just fits": (lambda x: ops.subtract(ops.clamp(ops.convert(x, "i8"), -127, 0), np.int8([1])), data(), "CALLER", (-128, -1)),
}  # fmt: skip
"""Layers of an input, who is to blame for their numbers, and the bounds of these."""


@pytest.mark.parametrize("name", NUMBERS)
def test_owners_and_bounds_of_numbers(name: str) -> None:
    build, x, owner, ends = NUMBERS[name]
    port, engine = result_of(build, x)
    found = engine.owned(port)
    assert (found.owner.name, (found.bound.low, found.bound.high)) == (owner, ends)
    assert found.is_open == (ends[1] == inf)
    assert found.varies == (ends[0] < ends[1])


def grown(trips: int) -> Build:
    """Return a loop that adds as many elements as the number of the iteration."""

    def build(x: ovir.Layer) -> ovir.Layer:
        i, state = ops.parameter([], "i64"), ops.parameter([1], "f32")
        size = ops.reshape(ops.multiply(i, np.int64(1 << 20)), [1], False)
        new = ops.add(state, ops.reduce_sum(tensor_of(size), [0], True))
        body = ovir.Model([ops.result(new), ops.result(ops.constant(np.array(True)))], [i, state])
        made = ops.loop(np.int64(trips), True)
        made.set_function(body)
        made.set_special_body_ports([0, 1])
        made.set_merged_input(state, x, body.outputs[0].layer)
        made.get_iter_value(body.outputs[0].layer, -1)
        return made

    return build


CLAMPED = "decides input 1, i64[1]"
SIZES: dict[str, tuple[Build, ovir.Layer, str, int, str | None]] = {
    "of the input": (ops.relu, data([2, 3]), "f32[2,3]", 24, None),
    "of an open input": (ops.relu, data([-1, 3]), "f32[?,3]", 12, None),
    "of half a byte": (lambda x: ops.convert(ops.broadcast(x, [5]), "u4"), data(), "u4[5]", 3, None),
    "of bits": (lambda x: ops.convert(ops.broadcast(x, [9]), "u1"), data(), "u1[9]", 2, None),
    "of places": (ops.non_zero, data([100]), "i64[1,..100]", 800, None),
    "of places of a constant": (lambda x: ops.non_zero(ops.constant(np.arange(70_000) % 2)), data(), "i64[1,35000]", 280_000, None),
    "of places of a random tensor": (lambda x: ops.non_zero(uniform(ONE)), data(), "i64[1,..1]", 8, None),
    "that an input says": (lambda x: tensor_of(integer(x)), data(), "f32[?]", 4, None),
    "within bounds": (lambda x: tensor_of(ops.clamp(integer(x), 3, 7)), data(), "f32[3..7]", 28, None),
    "up to an open end": (lambda x: tensor_of(ops.clamp(integer(x), 3, 2**31 - 1)), data(), "f32[3..]", 12, None),
    "at least": (lambda x: tensor_of(least(65535)(x)), data(), "f32[65535..]", 262140, None),
    "at least a large one": (lambda x: tensor_of(least(65536)(x)), data(), "f32[65536..]", 262144, f"a computation with large numbers of the file, which no interval follows, {CLAMPED}"),
    "that a random number says": (lambda x: tensor_of(uniform(np.int64(9))), data(), "f32[?]", 4, f"a random number {CLAMPED}"),
    "that a long loop doubles": (lambda x: tensor_of(loop(100_000, lambda n: [ops.add(n, n)], ops.constant(np.int64([1]))).outputs[0]), data(), "f32[?]", 4, f"the file {CLAMPED}"),
    "that a loop doubles": (lambda x: tensor_of(loop(5, lambda n: [ops.add(n, n)], ops.constant(np.int64([1]))).outputs[0]), data(), "f32[2..32]", 128, None),
    "that a loop doubles once": (lambda x: tensor_of(loop(1, lambda n: [ops.add(n, n)], ops.constant(np.int64([1]))).outputs[0]), data(), "f32[2]", 8, None),
    "of a tensor that a loop doubles": (lambda x: loop(5, lambda v: [doubled(v)], x).outputs[0], data([4]), "f32[8..128]", 512, None),
    "of either branch": (lambda x: branch(x, doubled, ops.relu).outputs[0], data([4]), "f32[4..8]", 32, None),
    "of a branch of the file": (lambda x: tensor_of(branch(x, lambda a: ops.constant(np.int64([9])), lambda b: ops.constant(np.int64([4]))).outputs[0]), data(), "f32[?]", 4, f"the file {CLAMPED}"),
    "of an image padded to a multiple": (lambda x: ops.pad(x, [0], ops.mod(ops.shape_of(x, "i64"), np.int64([32])), "constant", np.float32(0)), data([-1]), "f32[?]", 4, None),
    "of copied bytes": (lambda x: tensor_of(ops.shape_of(opset15.string_tensor_unpack(ops.broadcast(long_string(1000), [3000])).outputs[2], "i64")), data(), "f32[3000000]", 12_000_000, None),
    "of the bytes of strings": (lambda x: opset15.string_tensor_unpack(ops.broadcast(long_string(), [40_000])).outputs[2], data(), "u8[?]", 1, "the file decides it"),
    "of the bytes of an input's strings": (lambda x: opset15.string_tensor_unpack(x).outputs[2], data(element_type="string"), "u8[?]", 1, None),
    "of an input's strings": (lambda x: ops.broadcast(x, [3]), data(element_type="string"), "string[3]", 96, None),
    "of strings of a constant": (lambda x: ops.constant(np.array(["ab", "żółw"], np.dtypes.StringDType())), data(), "string[2]", 2 * (32 + 7), None),
    "of copies of a string": (lambda x: ops.gather(ops.constant(["abcdef", "g"]), ops.convert(x, "i32"), np.int64(0)), data([5]), "string[5]", 5 * 38, None),
    "of packed strings": (lambda x: packed(ops.convert(x, "i32"), ops.convert(x, "i32"), ops.constant(np.full(7, 97, np.uint8))), data([5]), "string[5]", 5 * (32 + 3 * 7), None),
    "of short strings joined to longer ones": (lambda x: ops.concat([ops.constant(["a"]), packed(np.int32([0]), ops.convert(x, "i32"), ops.constant(np.full(7, 97, np.uint8)))], 0), data(), "string[2]", 2 * (32 + 3 * 7), None),
    "of strings in a branch": (lambda x: branch(x, lambda a: ops.constant(["abc"]), lambda b: ops.constant(["abcde"])).outputs[0], data([5]), "string[1]", 37, None),
}  # fmt: skip
"""Layers of an input, their type for the sizes that a caller chooses, its bytes, and why nothing bounds them."""


@pytest.mark.parametrize("name", SIZES)
def test_sizes_and_who_decides_them(name: str) -> None:
    build, x, shown, size, why = SIZES[name]
    port, engine = result_of(build, x)
    assert (str(port.type), engine.bytes_of(port), engine.unbounded(port.layer)) == (shown, size, why)


@pytest.mark.parametrize(("trips", "shown"), [(1, "f32[0]"), (2, "f32[..1048576]"), (10, "f32[..9437184]")])
def test_the_number_of_an_iteration_is_below_the_trip_count(trips: int, shown: str) -> None:
    port, engine = result_of(grown(trips), data())
    assert [ending.count for ending in engine.endings.values()] == [trips]
    (made,) = [layer for layer in port.layer.bodies["body"].layers if layer.type == "Broadcast"]
    assert str(made.outputs[0].type) == shown
    assert engine.unbounded(port.layer) is None


@pytest.mark.parametrize(("is_first", "is_callers"), [(True, True), (False, True), (True, False)])
def test_a_body_knows_who_feeds_it(is_first: bool, is_callers: bool) -> None:
    """Whichever input of the layer it is; what a long computation of the file feeds is the file's."""
    x, number, part = data([1]), ops.parameter([1], "i64"), ops.parameter([1, 1], "f32")
    made = tensor_of(number)
    layer = ops.tensor_iterator()
    layer.set_body(ovir.Model([ops.result(ops.add(part, ops.reduce_sum(made, [0], True)))], [number, part]))
    count = (
        integer(x) if is_callers else loop(100_000, lambda n: [ops.add(n, n)], ops.constant(np.int64([1]))).outputs[0]
    )
    feeds = [
        lambda: layer.set_invariant_input(number, count),
        lambda: layer.set_sliced_input(part, np.ones((2, 1), np.float32), 0, 1, 1, -1, 0),
    ]
    for feed in feeds if is_first else feeds[::-1]:
        feed()
    layer.get_concatenated_slices(layer.bodies["body"].outputs[0], 0, 1, 1, -1, 0)
    engine = engine_of(layer, x, inputs=(x,))
    why = None if is_callers else "the file decides input 1, i64[1]"
    assert (str(made.outputs[0].type), engine.unbounded(made)) == ("f32[?]", why)


# --------------------------------------------------------------------------- limits of the inference


@pytest.mark.parametrize(("trips", "limit", "is_followed"), [(5, 30, True), (5, 29, False), (6, 30, False)])
def test_iterations_are_followed_as_long_as_few_layers_are_inferred(
    trips: int, limit: int, is_followed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The five layers of the body are inferred twice for all iterations, and once for each before the last one."""
    monkeypatch.setattr(owners, "_MOST_INFERRED", limit)
    made = loop(trips, lambda v: [doubled(v)], x := data([4]))
    engine = engine_of(made.outputs[0], inputs=(x,))
    assert len(made.bodies["body"].layers) == 5
    assert str(made.outputs[0].type) == (f"f32[8..{4 << trips}]" if is_followed else "f32[8..]")
    why = f"it changes sizes in each of {trips} iterations, too many to follow"
    assert engine.unbounded(made) == (None if is_followed else why)


def cost_of(layer: ovir.Layer) -> float:
    return 20_000 + layer.operator.kernel_time([p.type for p in layer.inputs], [p.type for p in layer.outputs])


@pytest.mark.parametrize("more", [0, -1])
def test_what_the_file_decides_is_computed_within_a_time(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.arange(9000, dtype=np.float32)
    first = ops.add(ops.constant(array), np.float32(1))
    second = ops.multiply(first, np.float32(2))
    monkeypatch.setattr(owners, "_MOST_TIME", cost_of(first) + cost_of(second) + more)
    engine = engine_of(second)
    np.testing.assert_array_equal(engine.computed(first.outputs[0]), array + 1)
    found = engine.computed(second.outputs[0])
    assert (found is None) == (more < 0)


@pytest.mark.parametrize("is_text", [False, True])
@pytest.mark.parametrize("more", [0, -1])
def test_what_the_file_decides_is_computed_within_a_size(
    is_text: bool, more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = ops.constant(["abc", "abcdef"]) if is_text else ops.constant(np.float32([1, 2]))
    tiled = ops.tile(source, [5000])
    monkeypatch.setattr(owners, "_MOST_BYTES", 10_000 * (32 + 6 if is_text else 4) + more)
    assert (engine_of(tiled).computed(tiled.outputs[0]) is None) == (more < 0)


def test_strings_that_are_made_of_numbers_count_as_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, is_computed in ((5000 * 32, True), (5000 * 32 - 1, False)):
        made = packed(np.zeros(5000, np.int32), np.ones(5000, np.int32), ops.constant(np.uint8([97])))
        monkeypatch.setattr(owners, "_MOST_BYTES", limit)
        assert (engine_of(made).computed(made.outputs[0]) is not None) == is_computed


def test_strings_of_a_file_take_their_bytes_once(tmp_path: Path) -> None:
    """A constant of a file has a header of a count and an offset for each string, and one text."""
    ovir.save_model(ovir.Model([ops.constant(["ab", "c"] * 4500)], []), tmp_path / "model.xml")
    model = ovir.read_model(tmp_path / "model.xml")
    engine = OwningEngine()
    engine.infer(model)
    (layer,) = (layer for layer in model.layers if layer.type == "Const")
    assert (engine.bytes_of(layer.outputs[0]), engine.longest(layer.outputs[0])) == (
        9000 * 32 + 4 + 9001 * 4 + 3 * 4500,
        2,
    )


def test_what_depends_on_an_input_is_not_computed() -> None:
    x = data()
    y, z = ops.add(x, ONE), ops.add(np.float32([1]), uniform(ONE))
    engine = engine_of(y, z, inputs=(x,))
    assert [engine.computed(layer.outputs[0]) for layer in (x, y, z)] == [None] * 3
    assert [engine.owner(layer.outputs[0]) for layer in (x, y, z)] == [Owner.CALLER, Owner.CALLER, Owner.RUN]


def test_tensors_of_known_sizes_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OwningEngine, "computed", None)
    made = ops.add(ops.constant(np.arange(9000)), np.int64(1))
    engine_of(made)
    assert str(made.outputs[0].type) == "i64[9000]"


def test_all_outputs_of_a_kernel_are_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ops.split(np.arange(9000, dtype=np.float32), np.int64(0), 2)
    engine = engine_of(*made.outputs)
    last = engine.computed(made.outputs[1])
    monkeypatch.setattr(Operator, "applied", None)
    np.testing.assert_array_equal(np.concatenate([engine.computed(made.outputs[0]), last]), np.arange(9000))


def test_a_size_that_changes_again_is_inferred_anew() -> None:
    """Forget what one iteration told of the layers of a body before the next one."""
    sizes = loop(3, lambda n: [ops.add(n, n)], ops.constant(np.int64([1])))
    again = loop(scalar(sizes.outputs[0]), lambda v: [doubled(v)], x := data([4]))
    engine_of(again.outputs[0], inputs=(x,))
    assert str(again.outputs[0].type) == "f32[4..1024]"


# --------------------------------------------------------------------------- bounds


@pytest.mark.parametrize("bits", [31, 32])
@pytest.mark.parametrize(("more", "is_open"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_the_largest_integers_mean_that_there_is_no_bound(bits: int, more: int, is_open: bool) -> None:
    assert means_open((1 << bits) + more) == is_open
    assert means_open((1 << 62) + more) == (more >= 0)


@pytest.mark.parametrize(
    ("shape", "counted", "declared"),
    [
        ("2,3", "2,3", "2,3"),
        ("...", "...", "..."),
        ("?,3", "1,3", "1,3"),
        ("0..,5..", "1,5", "1,5"),
        ("2..7,..1073741823", "7,1073741823", "7,1073741823"),
        ("2..1073741824", "1073741824", "2"),
        ("..1073741824", "1073741824", "1"),
    ],
)
def test_sizes_that_are_counted(shape: str, counted: str, declared: str) -> None:
    parsed = PartialShape.parse(shape)
    assert counted_sizes(parsed) == PartialShape.parse(counted)
    assert counted_sizes(parsed, is_declared=True) == PartialShape.parse(declared)


def between(low: float, high: float, element_type: ElementType = i64, shape: tuple[int, ...] = (2,)) -> TensorType:
    ends = (np.full(shape, end, np.float64 if element_type is f32 else np.int64) for end in (low, high))
    return TensorType(element_type, PartialShape(shape), from_moved(element_type, *ends))


def bounds_of(tensor: TensorType) -> tuple[float, float] | None:
    return None if tensor.value is None else (float(tensor.value.lower.min()), float(tensor.value.upper.max()))


@pytest.mark.parametrize(
    ("tensor", "low", "high", "expected"),
    [
        (TensorType(i64, PartialShape([2])), 3, 5, (3, 5)),
        (TensorType(i64, PartialShape([2])), -inf, 5, (-inf, 5)),
        (TensorType(i64, PartialShape([2])), 3, inf, (3, inf)),
        (TensorType(i64, PartialShape([2])), -inf, inf, None),
        (TensorType(i64, PartialShape([2])), 5, 3, None),
        (TensorType(i64, PartialShape([2])), 5, 5, (5, 5)),
        (TensorType(i8, PartialShape([2])), -128, 127, None),
        (TensorType(i8, PartialShape([2])), -127, 127, (-127, 127)),
        (TensorType(i8, PartialShape([2])), -128, 126, (-128, 126)),
        (TensorType(u8, PartialShape([2])), 0, 255, None),
        (TensorType(string, PartialShape([2])), 3, 5, None),
        (TensorType(i64, PartialShape([9000])), 3, 5, None),
        (TensorType(i64, PartialShape.parse("?")), 3, 5, None),
        (between(2, 9), 3, 5, (3, 5)),
        (between(4, 9), 3, 5, (4, 5)),
        (between(2, 4), 3, 5, (3, 4)),
        (TensorType(i64, PartialShape([2]), Value(np.int64([1, 9]))), 3, 5, (1, 9)),
    ],
)
def test_an_interval_narrows_a_small_tensor(
    tensor: TensorType, low: float, high: float, expected: tuple[float, float] | None
) -> None:
    assert bounds_of(owners._within(tensor, owners.Bound(low, high))) == expected


@pytest.mark.parametrize(
    ("one", "other", "shown", "expected"),
    [
        (between(1, 2), between(4, 5), "i64[2]", (1, 5)),
        (between(1, 7), between(4, 5), "i64[2]", (1, 7)),
        (between(1, 7), TensorType(i64, PartialShape([2])), "i64[2]", None),
        (TensorType(i64, PartialShape([2])), between(1, 7), "i64[2]", None),
        (between(1, 2), between(4, 5, shape=(3,)), "i64[2..3]", None),
        (TensorType(f32, PartialShape([9000])), TensorType(f32, PartialShape([9001])), "f32[9000..9001]", None),
        (TensorType(i64, PartialShape([1]), Value(np.int64([1]))), between(4, 5, shape=(1,)), "i64[1]", (1, 5)),
        (*[TensorType(string, PartialShape([1]), Value(np.array([text], object))) for text in "ab"], "string[1]", None),
    ],
)
def test_the_type_of_either_of_two_tensors(
    one: TensorType, other: TensorType, shown: str, expected: tuple[float, float] | None
) -> None:
    found = owners._hull(one, other)
    assert (str(found), bounds_of(found)) == (shown, expected)
    assert owners._hull(one, one) is one


SAME: list[TensorType] = [
    TensorType(i64, PartialShape([2])),
    TensorType(i64, PartialShape([3])),
    between(1, 2),
    between(1, 3),
    between(0, 2),
    TensorType(i64, PartialShape([2]), Value(np.int64([1, 2]))),
    TensorType(i64, PartialShape([2]), Value(np.int64([1, 3]))),
]


@pytest.mark.parametrize("one", range(len(SAME)))
def test_what_is_known_of_two_tensors_is_compared(one: int) -> None:
    copies = [TensorType(tensor.element_type, tensor.shape, tensor.value) for tensor in SAME]
    assert [owners._is_same(SAME[one], other) for other in copies] == [index == one for index in range(len(SAME))]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.float32([2, -5, 7]), (-5, 7)),
        (np.float32([2, nan]), (-9, 9)),
        (np.int8([-3, 4]), (-3, 4)),
        (np.array([True, False]), (0, 1)),
        (np.array(["a"], object), (-9, 9)),
        (np.array(["a"], np.dtypes.StringDType()), (-9, 9)),
        (np.float32([]), (-9, 9)),
    ],
)
def test_the_ends_of_an_array(array: np.ndarray, expected: tuple[float, float]) -> None:
    assert owners._ends(array, -9, 9) == expected
