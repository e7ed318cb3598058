"""The candidates of a reduction, what each of them keeps, and with which numbers; and the searches among them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.bodies import looped
from support.builder import Net, output

import ovir
from ovir import opset13 as ops
from ovir.debugging import candidates
from ovir.debugging.candidates import Candidate, Fill, _open_ends
from ovir.debugging.reduce import ReductionSearch
from ovir.debugging.searches import least, needed


def apart(*shapes: Any, constants: tuple[Any, ...] = ()) -> ovir.Model:
    """Return a model of inputs and constants that no layer brings together."""
    inputs = [ops.parameter(shape, "f32", name=f"x{i}") for i, shape in enumerate(shapes)]
    fixed = [ops.constant(array, name=f"c{i}") for i, array in enumerate(constants)]
    return ovir.Model([ops.result(layer) for layer in (*inputs, *fixed)], inputs)


def content(candidate: Candidate | None) -> list[Any]:
    """Return the shapes of inputs, then the numbers of constants, of which large ones are given by their shape."""
    data = [layer.operator.data for layer in candidate.model.layers if layer.type == "Const"]
    return [str(port.shape) for port in candidate.model.inputs] + [
        array.tolist() if array.ndim == 1 and array.size < 5 else list(array.shape) for array in data
    ]


def test_every_variable_of_a_part_is_assigned() -> None:
    """OpenVINO fails at a ReadValue without an Assign, which would look like a fault of the layer."""
    x = ops.parameter([2], "f32", name="x")
    doubled = ops.add(ops.read_value(x, "v", name="read"), x, name="doubled")
    model = ovir.Model([ops.result(doubled)], [x], sinks=[ops.assign(ops.abs(doubled, name="next"), "v")])
    for removed, left in ((["next"], ["read", "doubled"]), (["doubled", "next"], ["read"])):
        part = candidates.without(Candidate(model), [model.layer(name).id for name in removed]).model
        assert [layer.name for layer in candidates.counted_layers(part)] == left
        assert [layer.type for layer in part.layers if layer.outputs and not layer.outputs[0].readers] == ["Assign"]
        assert ovir.compile_model(part)([np.float32([1, 2])])[0].tolist() == ([2, 4] if "doubled" in left else [1, 2])


def test_open_sizes_become_the_least_that_are_allowed() -> None:
    assert content(candidates.static(Candidate(apart([-1, (3, 5), (0, 9), 7], "...", [2])))) == [
        "[1,3,1,7]",
        "[...]",
        "[2]",
    ]
    assert candidates.static(Candidate(apart([2], "..."))) is None


def test_parts_end_at_tensors_that_others_read() -> None:
    """A layer whose outputs nothing reads ends a part with its first one."""
    net = Net()
    x, axis = net.parameter("x", "4,4"), net.const(0, "i64")
    read, _ = (net.op("Split", x, axis, num_splits=4, outputs=4, name=name) for name in ("read", "dead"))
    net.result(net.op("Add", output(read, 1), output(read, 3), name="end"))
    model = net.model()
    first, dead, end = (model.layer(name) for name in ("read", "dead", "end"))
    assert _open_ends([first, dead]) == [first.outputs[1], first.outputs[3], dead.outputs[0]]
    assert _open_ends([first, end]) == [end.outputs[0]]


def test_sizes_that_can_be_smaller() -> None:
    model = apart([6, 1, -1], "...", [9], constants=(np.zeros((4, 6)), np.int64([8, 7])))
    assert candidates.sizes(Candidate(model)) == [9, 6, 4, 2]


TABLE, SHAPE = np.zeros((6, 2, 6)), np.int64([6, -1])


@pytest.mark.parametrize(
    ("shapes", "constants", "ways"),
    [
        ([[6, -1], "...", [5]], (TABLE, SHAPE), [["[4,?]", "[...]", "[5]", [4, 2, 4], [4, -1]], ["[4,?]", "[...]", "[5]", [4, 2, 4], [6, -1]], ["[4,?]", "[...]", "[5]", [6, 2, 6], [6, -1]]]),
        ([[6]], (SHAPE,), [["[4]", [4, -1]], ["[4]", [6, -1]]]),
        ([[5]], (TABLE, SHAPE), [["[5]", [4, 2, 4], [4, -1]], ["[5]", [4, 2, 4], [6, -1]]]),
        ([[5]], (SHAPE,), [["[5]", [4, -1]]]),
        ([[5]], (TABLE,), [["[5]", [4, 2, 4]]]),
        ([[6]], (), [["[4]"]]),
        ([[5]], (np.int8([6]), np.full(17, 6), np.float32([6])), []),  # no shapes
        ([[5]], (np.full(16, 6),), [["[5]", [16]]]),
        ([[5]], (np.int64([6]),), [["[5]", [4]]]),
    ],
)  # fmt: skip
def test_ways_to_replace_a_size(shapes: list[Any], constants: tuple[Any, ...], ways: list[list[Any]]) -> None:
    whole = Candidate(apart(*shapes, constants=constants))
    made = [make(whole) for make in candidates.resized(whole, 6, 4)]
    assert [content(candidate) for candidate in made] == ways
    for candidate in made:
        pairs = zip(candidate.model.inputs, candidate.feeds, strict=True)
        assert all(port.shape.contains(feed.shape) for port, feed in pairs)


@pytest.mark.parametrize(
    ("array", "equal"),
    [
        (np.float32([1, -3, 2]), [-3, -3, -3]),
        (np.float32([1, np.nan]), [np.nan, np.nan]),
        (np.float32([np.nan, np.nan]), None),
        (np.int8([1, 2]), [2, 2]),
        (np.int64([1, 2]), None),  # it may be a shape
        (np.arange(17), [16] * 17),
        (np.float32([7]), None),
        (np.array(["a", "b"]), None),
    ],
)
def test_constants_with_equal_elements(array: Any, equal: list[float] | None) -> None:
    whole = Candidate(apart([2], constants=(array,)))
    varied = candidates.varied_constants(whole)
    assert bool(varied) == (equal is not None)
    if equal is not None:
        (layer,) = [x for x in candidates.with_equal_elements(whole, varied).model.layers if x.type == "Const"]
        np.testing.assert_array_equal(layer.operator.data, equal)


def test_runtime_information_is_stripped() -> None:
    x = ops.parameter([2], "f32")
    assert not candidates.has_rt_info(Candidate(ovir.Model([ops.relu(x)], [x])))
    x = ops.parameter([2], "f32")
    marked = Candidate(ovir.Model([ops.relu(x, rt_info={"note": "1"})], [x]))
    assert candidates.has_rt_info(marked)
    assert not candidates.has_rt_info(candidates.stripped(marked))


def test_values_of_what_is_cut_out() -> None:
    """Inputs keep the values that the tensors have had; constants hold them if the fill says so, but never NaN."""
    x, y = ops.parameter([2], "f32", name="x"), ops.parameter([2], "f32", name="y")
    index = ops.convert(ops.abs(x, name="size"), "i32", name="index")
    root = ops.sqrt(x, name="root")
    rows = ops.gather(np.float32([5, 6, 7, 8]), index, 0, name="rows")
    model = ovir.Model([ops.add(ops.add(rows, root, name="sum"), y, name="end")], [x, y])
    whole = Candidate(model, given={0: np.float32([1, 3]), 1: np.float32([10, 20])})
    removed = [model.layer(name).id for name in ("size", "index", "root")]
    expected = np.float32([6, 8]) + np.sqrt(np.float32([1, 3])) + np.float32([10, 20])
    for fill, inputs in ((Fill.PARAMETERS, 3), (Fill.MIXED, 2), (Fill.CONSTANTS, 2)):
        part = candidates.without(whole, removed, fill)
        assert len(part.model.inputs) == inputs
        (result,) = ovir.compile_model(part.model)(part.feeds).values()
        np.testing.assert_allclose(result, expected)
        assert [layer.name for layer in part.model.layers if layer.type in ("Gather", "Add")] == ["rows", "sum", "end"]
    negative = Candidate(model, given={0: np.float32([-1, 3]), 1: np.float32([10, 20])})
    assert candidates.without(negative, removed, Fill.CONSTANTS) is None
    assert candidates.without(whole, candidates.layers_of(whole)) is None


@pytest.mark.parametrize("least", [1, 2, 5, 63, 64])
def test_a_size_becomes_the_least_that_is_needed(least: int) -> None:
    def attempt(candidate: Candidate, _: str) -> bool:
        return any(layer.type == "ReLU" and layer.shape[0].lower >= least for layer in candidate.model.layers)

    x = ops.parameter([64, -1, 3], "f32")
    search = ReductionSearch(Candidate(ovir.Model([ops.relu(x)], [x])), attempt)
    search.run()
    assert content(search.best) == [f"[{least},1,1]"]


def test_a_layer_in_a_body_is_left_alone() -> None:
    def attempt(candidate: Candidate, _: str) -> bool:
        return any(layer.type == "Floor" for layer in candidate.model.walk())

    search = ReductionSearch(Candidate(looped(lambda x: ops.floor(ops.abs(x)))), attempt)
    search.run()
    assert sorted(layer.type for layer in search.best.model.walk()) == ["Floor", "Parameter", "Result"]


@pytest.mark.parametrize(("shortest", "read"), [(True, "x"), (False, "a")])
def test_readers_of_a_layer_read_one_of_its_inputs(shortest: bool, read: str) -> None:
    x = ops.parameter([2], "f32", name="x")
    a = ops.relu(x, name="a")
    b = ops.add(a, x, name="b", tensor_names="kept")
    model = ovir.Model([ops.abs(b, name="c"), ops.result(b), ops.shape_of(b, name="size")], [x])
    whole = Candidate(model)
    paths = {model.layer(number).name: (number,) for (number,) in candidates.paths(whole)}
    assert list(paths) == ["a", "b", "c"]
    found = candidates.past(whole, [paths["b"]], shortest=shortest)
    assert [found.model.layer(name).inputs[0].source.layer.name for name in ("c", "size")] == [read, read]
    assert "kept" in found.model.outputs[1].source.names
    assert "b" not in [layer.name for layer in found.model.layers]
    assert candidates.past(whole, [(model.layer("size").id,)], shortest=shortest) is None


@pytest.mark.parametrize("gain", [1, 3, 8])
@pytest.mark.parametrize("most", [1, 2, 7, 64])
def test_the_least_number_that_suffices(most: int, gain: int) -> None:
    for wanted in range(1, most + 1):
        tried: list[int] = []
        found = least(0, most, lambda number: bool(tried.append(number)) or number >= wanted, least_gain=gain)  # noqa: B023
        assert found == wanted or (found == most and wanted > most - gain)
        assert len(tried) <= most.bit_length()


@pytest.mark.parametrize("wanted", [{0}, {7}, {3, 4}, {0, 5, 9}, set(range(10))])
def test_the_items_that_are_needed(wanted: set[int]) -> None:
    tried: list[list[int]] = []

    def can_remove(chunk: Sequence[int], rest: Sequence[int]) -> bool:
        tried.append(list(rest))
        return wanted <= set(rest)

    assert needed(range(10), can_remove) == sorted(wanted)
    assert [] not in tried
    assert needed(range(10), lambda chunk, rest: len(chunk) < 2, most_failures=1) == list(range(10))
    assert needed(range(10), lambda chunk, rest: len(chunk) == 2, most_failures=2) == list(range(8, 10))
