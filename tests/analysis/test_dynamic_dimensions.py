"""Why dimensions are dynamic, held against what happens when one dimension of an input changes."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.analysis.dynamic_dimensions import Cause, SizeOrigins
from ovir.graph.layers import Port

WINDOW = {"strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
POOL = {"kernel": "2,2", "strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "rounding_type": "floor"}


def reasons(net: Net) -> dict[str, str]:
    model = net.model()
    origins = SizeOrigins(model)
    return {layer.name: origins.explain(layer.outputs[0]) for layer in model.layers if layer.outputs}


def filters(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def convolutions() -> Net:
    net = Net()
    x = net.parameter("x", "?,3,?,?")
    found = net.op("Convolution", x, net.const(filters(4, 3, 3, 3)), name="conv", **WINDOW)
    found = net.op("AvgPool", found, name="pool", **POOL, **{"exclude-pad": "true"})
    net.result(net.op("ReLU", found, name="relu"))
    return net


def resized() -> Net:
    """Sizes that go through arithmetic on tensors."""
    net = Net()
    x = net.parameter("x", "?,4,?,?")
    shape = net.op("ShapeOf", x, opset=3, output_type="i64")
    sizes = net.op("Gather", shape, net.const([2, 3], "i64"), net.const(0, "i64"), opset=8)
    sizes = net.op("Divide", sizes, net.const([2, 4], "i64"))
    axes = net.const([2, 3], "i64")
    found = net.op(
        "Interpolate", x, sizes, axes, opset=11, name="small", mode="nearest", shape_calculation_mode="sizes"
    )
    net.result(net.op("Reshape", found, net.const([0, 0, -1], "i64"), name="flat", special_zero="true"))
    return net


def joined() -> Net:
    net = Net()
    a, b = net.parameter("a", "?,?"), net.parameter("b", "?,?")
    net.result(net.op("Concat", a, b, axis=1, name="both"))
    net.result(net.op("MatMul", a, b, name="product", transpose_b="true"))
    net.result(net.op("Pad", a, net.const([0, 1], "i64"), net.const([2, 0], "i64"), name="padded", pad_mode="constant"))
    net.result(net.op("Tile", a, net.const([2, 3], "i64"), name="tiled"))
    net.result(net.op("Transpose", a, net.const([1, 0], "i64"), name="turned"))
    return net


def test_each_axis_of_a_window_comes_from_its_own() -> None:
    found = reasons(convolutions())
    assert found["x"] == "[0,2,3] left open by the model"
    assert found["conv"] == found["pool"] == "[0] is x[0]; [2] from x[2]; [3] from x[3]"
    assert found["relu"] == "[0] is x[0]; [2] is pool[2], from x[2]; [3] is pool[3], from x[3]"


def test_sizes_are_followed_through_arithmetic() -> None:
    found = reasons(resized())
    assert found["small"] == "[0] is x[0]; [2] from x[2]; [3] from x[3]"
    assert found["flat"] == "[0] is x[0]; [2] from x[2], x[3]"


def test_a_size_that_never_changes_is_not_named() -> None:
    """The last 10 columns of b are 10 for all but small sizes."""
    net = Net()
    a, b = net.parameter("a", "2,?"), net.parameter("b", "2,?")
    ends = [net.const([number], "i64") for number in (-10, 2**63 - 1, 1, 1)]
    net.result(net.op("Concat", a, net.op("Slice", b, *ends, opset=8), axis=1, name="both"))
    assert reasons(net)["both"] == "[1] from a[1]"


def test_a_size_that_changes_only_below_a_limit_is_named() -> None:
    """The first 100 columns are 100 for all samples, with one root changed or not."""
    net = Net()
    ends = [net.const([number], "i64") for number in (0, 100, 1, 1)]
    net.result(net.op("Slice", net.parameter("x", "2,?"), *ends, opset=8, name="first"))
    assert reasons(net)["first"] == "[1] from x[1]"


@pytest.mark.parametrize("through_tensor", [False, True])
@pytest.mark.parametrize(("count", "named"), [(3, "a[0], b[0], c[0], y[0]"), (4, "all[0], y[0]")])
def test_more_than_four_sizes_are_named_by_those_between(count: int, named: str, through_tensor: bool) -> None:
    """The elements of a target shape, in which sizes are added, are not named."""
    net = Net()
    rows = [net.parameter(name, "?,3") for name in "abcd"[:count]]
    joined, y = net.op("Concat", *rows, axis=0, name="all"), net.parameter("y", "?,3")
    if through_tensor:
        first, axis = net.const([0], "i64"), net.const(0, "i64")
        shapes = [net.op("ShapeOf", x, opset=3, output_type="i64") for x in (joined, y)]
        total = net.op("Add", *(net.op("Gather", shape, first, axis, opset=8) for shape in shapes))
        net.result(net.op("Broadcast", net.const(np.float32(0)), total, opset=3, mode="numpy", name="end"))
    else:
        net.result(net.op("Concat", joined, y, axis=0, name="end"))
    assert reasons(net)["end"] == f"[0] from {named}"


def test_sizes_that_data_picks() -> None:
    """So many elements as data decides, which are at most three, are followed no further."""
    net = Net()
    shape = net.op("ShapeOf", net.parameter("x", "?,?,?"), opset=3, output_type="i64")
    found = net.op("NonZero", net.parameter("mask", "3"), opset=3, output_type="i64", name="found")
    picked = net.op("Gather", shape, found, net.const(0, "i64"), opset=8, name="picked")
    net.result(net.op("Squeeze", picked, net.const([0], "i64"), name="end"))
    assert reasons(net)["picked"] == "[1] is found[1], depends on data"


def test_sizes_of_an_operation_that_ovir_does_not_know() -> None:
    net = Net()
    x = net.parameter("x", "?,3")
    net.result(net.op("ReLU", net.op("Unknown", x, name="own"), name="end"))
    dims = "<dim>-1</dim><dim>3</dim>"
    text = net.xml().replace('names="own"/>', f'names="own">{dims}</port>').replace("UNSPECIFIED", "FP32")
    model = ovir.read_model(text.encode())
    origins = SizeOrigins(model)
    assert origins.explain(model.layer("own").outputs[0]) == "[0] as the file declares"
    assert origins.explain(model.layer("end").outputs[0]) == "[0] is own[0], as the file declares"


def test_sizes_that_must_be_equal_are_both_named() -> None:
    net = Net()
    net.result(net.op("Add", net.parameter("a", "?,3"), net.parameter("b", "?,3"), name="sum"))
    assert reasons(net)["sum"] == "[0] from a[0], b[0]"


@pytest.mark.parametrize(
    ("shape", "count", "operation", "attributes", "expected"),
    [
        ("?,5", 1, "Multinomial", {"opset": 13, "convert_type": "i64", "with_replacement": "true",
                                   "log_probs": "false"}, "[0] is d[0]; [1] depends on data"),
        ("1,4,?,?", 2, "AdaptiveAvgPool", {"opset": 8}, "[2,3] depends on data"),
        ("?,4", 2, "Reshape", {"special_zero": "false"}, "[0,1] depends on data"),
        ("?,8", 1, "TopK", {"opset": 11, "axis": 1, "mode": "max", "sort": "value"},
         "[0] is d[0]; [1] depends on data"),
    ],
)  # fmt: skip
def test_sizes_from_fed_values_depend_on_data(
    shape: str, count: int, operation: str, attributes: Any, expected: str
) -> None:
    net = Net()
    sizes = net.parameter("sizes", "" if operation == "TopK" else str(count), "i64")
    outputs = 2 if operation == "TopK" else 1
    net.result(net.op(operation, net.parameter("d", shape), sizes, name="op", outputs=outputs, **attributes))
    assert reasons(net)["op"] == expected


def test_a_fed_output_shape_of_a_transposed_convolution() -> None:
    net = Net()
    inputs = net.parameter("d", "1,3,?,?"), net.const(filters(3, 4, 3, 3)), net.parameter("sizes", "2", "i64")
    net.result(net.op("ConvolutionBackpropData", *inputs, name="up", **WINDOW))
    assert reasons(net)["up"] == "[2,3] depends on data"


def test_a_state_leaves_its_length_open() -> None:
    net = Net()
    ids = net.parameter("ids", "?,?,4")
    state = net.op(
        "ReadValue", net.const(filters(1, 0, 4)), opset=6, name="past", variable_id="cache", variable_type="f32",
        variable_shape="?,?,4",
    )  # fmt: skip
    joined = net.op("Concat", state, ids, axis=1, name="all")
    net.op("Assign", joined, opset=6, outputs=0, variable_id="cache")
    net.result(joined)
    found = reasons(net)
    assert found["past"] == "[0,1] left open by state 'cache'"
    assert found["all"].endswith("[1] from past[1], ids[1]")


def test_what_data_decides_and_what_follows_from_it() -> None:
    net = Net()
    x, y = net.parameter("x", "?,?"), net.parameter("y", "2,?", "i64")
    found = net.op("NonZero", x, opset=3, output_type="i64", name="found")
    net.result(net.op("Concat", found, y, axis=1, name="both"))
    unknown = net.parameter("u", "...")
    net.result(net.op("Transpose", unknown, net.const([1, 0], "i64"), name="turned"))
    given = reasons(net)
    assert given["found"] == "[1] depends on data"
    assert given["both"] == "[1] from found[1], y[1]"
    assert given["u"] == "the rank is not known"
    assert given["turned"] == "[0,1] from u, whose rank is not known"


# --------------------------------------------------------------------------- against the truth


def explained(model: ovir.Model) -> Iterator[tuple[Port, int, set[str]]]:
    """Yield each dynamic size that follows from sizes of inputs alone, with those."""
    origins = SizeOrigins(model)
    inputs = {f"{port.layer.name}[{axis}]" for port in model.inputs for axis in range(port.shape.rank or 0)}
    for layer in model.layers:
        for port in layer.outputs:
            for axis, origin in origins.of(port):
                if origin.cause in (Cause.INPUT, Cause.COMPUTED) and set(origin.roots) <= inputs:
                    yield port, axis, set(origin.roots)


def changes(model: ovir.Model) -> tuple[dict[tuple[Port, int], set[str]], set[str]]:
    """Return the sizes of inputs with which each size changes, and those that inference does not let change alone."""
    before = {i: port.shape for i, port in enumerate(model.inputs)}
    base, size = _accepted(model)
    sizes = {port: port.shape for layer in model.layers for port in layer.outputs}
    found: dict[tuple[Port, int], set[str]] = {}
    fixed: set[str] = set()
    for i, shape in before.items():
        for axis in (axis for axis, dim in enumerate(shape) if not dim.is_static):
            name = f"{model.inputs[i].layer.name}[{axis}]"
            try:
                model.reshape({**base, i: [*base[i][:axis], 2 * size, *base[i][axis + 1 :]]})
            except ovir.ModelError:
                fixed.add(name)
                continue
            for port, old in sizes.items():
                new = port.shape
                if new.rank is not None and new.rank == old.rank:
                    for place in (place for place in range(new.rank) if new[place] != old[place]):
                        found.setdefault((port, place), set()).add(name)
    model.reshape(before)
    return found, fixed


def _accepted(model: ovir.Model) -> tuple[dict[int, list[int]], int]:
    """Give all dynamic sizes of the inputs one number that inference accepts."""
    before = [port.shape for port in model.inputs]
    for size in (224, 64, 16):
        base = {i: [dim.length if dim.is_static else size for dim in shape] for i, shape in enumerate(before)}
        try:
            model.reshape(base)
        except ovir.ModelError:
            continue
        return base, size
    pytest.skip("inference accepts none of the sizes that are tried")


def assert_true(model: ovir.Model) -> None:
    said = {(port, axis): roots for port, axis, roots in explained(model)}
    assert said
    truth, fixed = changes(model)
    for place, roots in said.items():
        changed = truth.get(place, set())
        assert changed <= roots, f"{place} also changes with {changed - roots}"
        # Where nothing changes a size, inference does not see that it is always the same.
        assert not changed or roots <= changed | fixed, f"{place} does not change with {roots - changed - fixed}"


@pytest.mark.parametrize("build", [convolutions, resized, joined])
def test_explanations_are_what_changes_with_one_size(build: Any) -> None:
    assert_true(build().model())


def test_many_layers_are_explained_in_good_time() -> None:
    net = Net()
    x = net.parameter("x", "?,4,?,?")
    weights = net.const(filters(4, 4, 3, 3))
    for _ in range(1000):
        x = net.op("Convolution", x, weights, **{**WINDOW, "strides": "1,1"})
    net.result(x)
    model = net.model()
    started = time.process_time()
    origins = SizeOrigins(model)
    assert time.process_time() - started < 2
    assert origins.explain(model.outputs[0]) == "[0] is x[0]; [2] from x[2]; [3] from x[3]"


def looped(*, grows: bool) -> ovir.Model:
    """Return a model with a loop over the second axis of its input, in which a tensor may grow."""
    x, start = ops.parameter([2, -1, -1], "f32", name="x"), ops.parameter([2, -1, -1], "f32", name="start")
    part, state = ops.parameter([2, 1, -1], "f32", name="part"), ops.parameter([2, -1, -1], "f32", name="state")
    following = ops.concat([state, part], 1, name="next") if grows else ops.add(state, part, name="next")
    body = ovir.Model([following, ops.relu(part, name="same")], [state, part])
    loop = ops.tensor_iterator(name="loop")
    loop.set_body(body)
    loop.set_sliced_input(part, x, 0, 1, 1, -1, 1)
    loop.set_merged_input(state, start, body.outputs[0])
    last = loop.get_iter_value(body.outputs[0], -1)
    every = loop.get_concatenated_slices(body.outputs[1], 0, 1, 1, -1, 1)
    return ovir.Model([ops.relu(last, name="last"), ops.relu(every, name="every")], [x, start])


@pytest.mark.parametrize(
    ("grows", "state", "last"),
    [
        (True, "[1] from start[1], x[1]; [2] is start[2]", "[1] is loop[1], from start[1], x[1]; [2] is start[2]"),
        (False, "[1] is start[1]; [2] from start[2], x[2]", "[1] is start[1]; [2] is loop[2], from start[2], x[2]"),
    ],
)
def test_sizes_in_loops(grows: bool, state: str, last: str) -> None:
    model = looped(grows=grows)
    origins = SizeOrigins(model)
    found = {layer.key: origins.explain(layer.outputs[0]) for layer in model.walk() if layer.outputs}
    assert (found["loop/body/state"], found["last"]) == (state, last)
    assert found["loop/body/part"] == found["loop/body/same"] == "[2] is x[2]"
    assert found["every"] == "[1,2] is x[1,2]"


def repeated(count: str, start: int = -1, *, swaps: bool = False) -> ovir.Model:
    """Return a model with a loop that adds x to a tensor as often as x has columns, as y is long, 3 times, or as fed.

    If it swaps, x is added to a second tensor, and the two change places.
    """
    x, y = ops.parameter([2, -1], "f32", name="x"), ops.parameter([-1], "f32", name="y")
    given: Any = ops.parameter([start, 2], "f32", name="start") if start < 0 else np.zeros((start, 2), np.float32)
    fed = ops.parameter([], "i64", name="fed")
    counts: Any = {
        "x": ops.gather(ops.shape_of(x), 1, 0),
        "y": ops.add(ops.gather(ops.shape_of(y), 0, 0), np.int64(1)),
        "3": 3,
        "fed": fed,
    }
    state, other, rows = (ops.parameter([-1, 2], "f32", name=name) for name in ("state", "other", "rows"))
    grown = ops.result(ops.concat([other if swaps else state, rows], 0, name="grown"))
    kept, again = ops.result(state if swaps else other), ops.result(ops.constant(True))
    loop = ops.loop(counts[count], True, name="loop")
    loop.set_function(ovir.Model([grown, kept, again], [state, other, rows]))
    loop.set_special_body_ports([-1, 2])
    loop.set_merged_input(state, given, grown)
    loop.set_merged_input(other, np.zeros((1, 2), np.float32), kept)
    loop.set_invariant_input(rows, ops.transpose(x, [1, 0]))
    last = loop.get_iter_value(grown, -1)
    every = loop.get_concatenated_slices(kept, 0, 1, 1, -1, 0)
    inputs = [x, y, fed, *([given] if start < 0 else [])]
    return ovir.Model([ops.result(last, name="last"), ops.result(every, name="every")], inputs)


def sizes_of_results(model: ovir.Model, sizes: dict[str, int]) -> dict[tuple[Port, int], int]:
    shapes = {
        port: [sizes.get(f"{port.layer.name}[{a}]", d.lower) for a, d in enumerate(port.shape)] for port in model.inputs
    }
    feeds = [np.ones(shape, port.element_type.to_dtype()) for port, shape in shapes.items()]
    results = ovir.compile_model(model)(feeds).values()
    return {(p, a): n for p, array in zip(model.outputs, results, strict=True) for a, n in enumerate(array.shape)}


@pytest.mark.parametrize(
    "make",
    [
        lambda: looped(grows=True),
        *(lambda c=count, s=start: repeated(c, s) for count in ("x", "y", "3") for start in (-1, 1)),
        *(lambda c=count: repeated(c, swaps=True) for count in ("x", "y")),
    ],
)  # fmt: skip
def test_roots_of_what_grows_in_loops_change_it(make: Any) -> None:
    """The sizes of results of runs change with the sizes that are named, and with no others."""
    model = make()
    dims = {f"{port.layer.name}[{a}]": dim for port in model.inputs for a, dim in enumerate(port.shape)}
    names = [name for name, dim in dims.items() if not dim.is_static and name not in ("start[2]", "x[2]")]
    changed: dict[tuple[Port, int], set[str]] = {}
    for size in (3, 4):
        base = {"start[2]": 2, "x[2]": 2, **dict.fromkeys(names, size)}
        before = sizes_of_results(model, base)
        for name in names:
            after = sizes_of_results(model, {**base, name: 5})
            for place in after:
                changed.setdefault(place, set()).update([name] if after[place] != before[place] else [])
    origins = SizeOrigins(model)
    found = {
        (p, a): set(o.roots) for p in model.outputs for a, o in origins.of(p) if not {"start[2]", "x[2]"} & {*o.roots}
    }
    assert found
    assert found == {place: changed[place] for place in found}


def test_growth_whose_end_data_decides() -> None:
    model = repeated("fed")
    found = SizeOrigins(model)
    last, every = (found.explain(port) for port in model.outputs)
    assert last == "[0] from start[0], x[1], loop/body/state[0]"
    assert every == "[0] depends on data"
