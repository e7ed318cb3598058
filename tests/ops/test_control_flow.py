"""If, Loop and TensorIterator: first on bodies that are Python functions, then in whole models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from support.builder import Net, output
from support.tensors import const, tensor

import ovir
from ovir.core.arrays import Array
from ovir.core.element_types import boolean, f32, i32, i64
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType, constant_type
from ovir.core.values import from_bounds
from ovir.diagnostics.errors import OperatorError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.graph.layers import Layer
from ovir.ops.base.bodies import BackEdge, BodyMap, InputMap, OutputMap
from ovir.ops.control_flow import If, Loop, TensorIterator


@dataclass
class Body:
    """A body as inference sees it."""

    parameters: list[TensorType]
    results: Callable[..., Sequence[TensorType]]

    def __call__(self, given: Sequence[TensorType]) -> list[TensorType]:
        return list(self.results(*given))


@dataclass
class RunningBody:
    """A body as its operation sees it while it runs."""

    run: Callable[[Sequence[Array]], list[Array]]
    parameters: Sequence[TensorType] = ()
    shapes: Sequence[PartialShape] = ()

    def result_shapes(self, given: Sequence[PartialShape]) -> Sequence[PartialShape]:
        return self.shapes

    def __call__(self, given: Sequence[Array]) -> list[Array]:
        return self.run(given)


def shapes(types: Sequence[TensorType]) -> list[str]:
    return [str(t.shape) for t in types]


# --------------------------------------------------------------------------- TensorIterator


def iterator(item: InputMap, output: OutputMap | None = None) -> TensorIterator:
    op = TensorIterator()
    op.wiring = {"body": BodyMap((item,), (output or OutputMap(0, 0, axis=0, part_size=item.part_size),), (), 1)}
    return op


def parts_of(length: int, start: int, end: int, stride: int, size: int) -> list[list[int]] | None:
    """Return the elements of each part: of the first from ``start`` on in the direction of the stride, and so on, as
    long as the last one is not behind ``end``; None if they lie outside or in the other direction."""
    first, last = (place + length if place < 0 else place for place in (start, end))
    if not (0 <= first < length and 0 <= last < length) or (last - first) * stride < 0:
        return None
    forward, found = 1 if stride > 0 else -1, []
    while (last - first) * forward >= size - 1:
        found.append(sorted(first + forward * i for i in range(size)))
        first += stride
    return found


def noting(seen: list[Any]) -> Callable[[Sequence[Array]], list[Array]]:
    """Return a body that returns its inputs and notes the first one."""

    def body(given: Sequence[Array]) -> list[Array]:
        seen.append(given[0].tolist())
        return [array.copy() for array in given]

    return body


@pytest.mark.parametrize("stride", [1, 2, 3, -1, -2])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_slicing(stride: int, size: int) -> None:
    body = {"body": Body([tensor("?")], lambda x: [x])}
    for start, end in product((0, 1, 3, -1, -2, -4), repeat=2):
        op, counts = iterator(InputMap(0, 0, axis=0, start=start, end=end, stride=stride, part_size=size)), []
        for length in range(size, 7):
            parts, seen = parts_of(length, start, end, stride, size), list[Any]()
            if parts is None:
                with pytest.raises(OperatorError, match=r"is outside|opposite direction"):
                    op.infer(tensor(str(length)), bodies=body)
                continue
            counts.append(len(parts) * size)
            (out,) = op.infer(tensor(str(length)), bodies=body)
            assert str(out.shape) == f"[{len(parts) * size}]"
            if parts:
                (result,) = op.run(np.arange(length), bodies={"body": noting(seen)})
                assert seen == parts
                assert result.tolist() == [place for part in parts for place in part]
        if counts:
            (out,) = op.infer(tensor(f"{size}..6"), bodies=body)
            assert all(out.shape.contains([count]) for count in counts)


@pytest.mark.parametrize(
    ("output", "count"),
    [
        ({"end": 6}, 6),
        ({"end": 6, "part_size": 2}, 3),
        ({"end": 7, "part_size": 2}, 3),
        ({"start": -1, "end": -7}, 6),
        ({}, 1),
    ],
)
def test_iterations_without_a_sliced_input(output: dict[str, int], count: int) -> None:
    size = output.get("part_size", 1)
    joined = OutputMap(0, 0, axis=0, **output) if output else OutputMap(0, 0)
    op, seen = iterator(InputMap(0, 0), joined), list[Any]()
    (out,) = op.infer(tensor(str(size)), bodies={"body": Body([tensor("?")], lambda x: [x])})
    (result,) = op.run(np.zeros(size), bodies={"body": noting(seen)})
    assert (len(seen), out.shape) == (count, list(result.shape))


@pytest.mark.parametrize(
    ("slicing", "axis", "count"),
    [
        ({}, "?", "?"),
        ({}, "3..8", "3..8"),
        ({"stride": 2, "part_size": 2}, "3..8", "2..8"),
        ({"start": 1, "end": 4}, "?", "4"),
        ({"start": -3, "end": -1}, "?", "3"),
        ({"start": -1, "end": 0, "stride": -1}, "2..", "2.."),
        ({"start": -3, "end": 4}, "?", "?"),
    ],
)
def test_number_of_iterations_of_an_unknown_axis(slicing: dict[str, int], axis: str, count: str) -> None:
    op = iterator(InputMap(0, 0, axis=0, **slicing))
    (out,) = op.infer(tensor(f"{axis},5"), bodies={"body": Body([tensor("...")], lambda x: [x])})
    assert str(out.shape) == f"[{count},5]"


def test_a_whole_axis_keeps_its_symbol() -> None:
    op = iterator(InputMap(0, 0, axis=1), OutputMap(0, 0, axis=1))
    data = TensorType(f32, PartialShape([2, Dimension(0, None, 77)]))
    (out,) = op.infer(data, bodies={"body": Body([tensor("...")], lambda x: [x])})
    assert out.shape[1].symbol == 77


def test_negative_axis_and_reversed_output() -> None:
    op = iterator(InputMap(0, 0, axis=-1), OutputMap(0, 0, axis=-1, stride=-1))
    op.infer(tensor("2,3"), bodies={"body": Body([tensor("2,1")], lambda x: [x])})
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(op.run(data, bodies={"body": list})[0], data[:, ::-1])


@pytest.mark.parametrize(
    ("slicing", "shape", "message"),
    [
        ({"axis": 2}, "2,3", r"input 0: axis 2 is outside \[-2, 1\] for data of shape \[2,3\]"),
        ({"axis": 0}, "", "input 0 is a scalar: it cannot be sliced"),
        ({"axis": 0, "stride": 0}, "3", "the stride of input 0 must not be 0"),
        ({"axis": 0, "part_size": 0}, "3", "the part_size of input 0 must be positive, got 0"),
        ({"axis": 0, "part_size": 2}, "1", r"the part_size 2 of input 0 is larger than axis 0 of its shape \[1\]"),
        ({"axis": 0, "start": 3}, "3", r"start 3 of input 0 is outside \[-3, 2\]"),
        ({"axis": 0, "end": -4}, "3", r"end -4 of input 0 is outside \[-3, 2\]"),
        ({"axis": 0, "start": -1, "end": 0}, "3", "from -1 to 0, but its stride 1 has the opposite direction"),
    ],
)
def test_slicing_that_cannot_be(slicing: dict[str, int], shape: str, message: str) -> None:
    op = iterator(InputMap(0, 0, **slicing))
    with pytest.raises(OperatorError, match=message):
        op.infer(tensor(shape), bodies={"body": Body([tensor("...")], lambda x: [x])})


def test_sliced_inputs_must_have_the_same_number_of_parts() -> None:
    op = TensorIterator()
    op.wiring = {"body": BodyMap((InputMap(0, 0, axis=0), InputMap(1, 1, axis=0)), (OutputMap(0, 0, axis=0),), (), 2)}
    body = {"body": Body([tensor("?"), tensor("?")], lambda a, b: [a])}
    with pytest.raises(OperatorError, match="input 1 has 4 parts to iterate over, but another sliced input has 3"):
        op.infer(tensor("3"), tensor("4"), bodies=body)
    assert shapes(op.infer(tensor("?"), tensor("4"), bodies=body)) == ["[4]"]
    with pytest.raises(OperatorError, match=r"differ in their number of parts: \{0: 3, 1: 4\}"):
        op.run(np.zeros(3), np.zeros(4), bodies={"body": list})


def test_parts_must_have_the_size_that_the_output_says() -> None:
    op = iterator(InputMap(0, 0, axis=0), OutputMap(0, 0, axis=0))
    with pytest.raises(OperatorError, match=r"concatenates parts of part_size 1 along axis 0, but the body's .* there"):
        op.infer(tensor("3"), bodies={"body": Body([tensor("?")], lambda x: [tensor("2")])})


def test_types_of_inputs_and_body_must_be_equal() -> None:
    op = iterator(InputMap(0, 0, axis=0))
    with pytest.raises(OperatorError, match="input 0 is f32, but parameter 0 of the body, which it feeds, is declared"):
        op.infer(tensor("3"), bodies={"body": Body([tensor("1", i32)], lambda x: [x])})


def test_no_part_at_all() -> None:
    op = TensorIterator()
    maps = (InputMap(0, 0, axis=0), InputMap(1, 1))
    op.wiring = {"body": BodyMap(maps, (OutputMap(0, 0, axis=0), OutputMap(1, 0)), (BackEdge(0, 1),), 2)}
    inputs = tensor("?,2"), tensor("1,2")
    outputs = op.infer(*inputs, bodies={"body": Body([tensor("...")] * 2, lambda x, h: [h])})
    assert shapes(outputs) == ["[?,2]", "[1,2]"]
    start = np.ones((1, 2), np.float32)
    joined, last = op.applied(inputs, outputs).run(np.empty((0, 2), np.float32), start, bodies={"body": list})
    assert joined.shape == (0, 2)
    np.testing.assert_array_equal(last, start)
    assert last is not start


# --------------------------------------------------------------------------- Loop


def loop(*, axis: int | None = 0) -> Loop:
    """Inputs trip count, condition, start; body (number, carried) -> (again, carried); outputs last and joined."""
    op = Loop()
    op.wiring = {
        "body": BodyMap(
            (InputMap(2, 1), InputMap(-1, 0, purpose="current_iteration")),
            (OutputMap(0, 1), OutputMap(1, 1, axis=axis), OutputMap(-1, 0, purpose="execution_condition")),
            (BackEdge(1, 1),),
            2,
        )
    }
    return op


TRUE, FALSE, UNKNOWN = constant_type(np.array(True)), constant_type(np.array(False)), tensor("", boolean)


@pytest.mark.parametrize(
    ("trip_count", "condition", "again", "joined"),
    [
        (const(3), TRUE, TRUE, "[6,5]"),
        (const(3), TRUE, UNKNOWN, "[2..6,5]"),
        (const(3), UNKNOWN, UNKNOWN, "[..6,5]"),
        (const(3), UNKNOWN, TRUE, "[..6,5]"),
        (const(3), TRUE, FALSE, "[2,5]"),
        (const(0), TRUE, TRUE, "[0,5]"),
        (const(3), FALSE, TRUE, "[0,5]"),
        (const(3), UNKNOWN, FALSE, "[..2,5]"),
        (const(0), UNKNOWN, UNKNOWN, "[0,5]"),
        (const(0), TRUE, FALSE, "[0,5]"),
        (tensor("", i64), TRUE, FALSE, "[..2,5]"),
        (const(-1), TRUE, UNKNOWN, "[2..,5]"),
        (TensorType(i64, [], from_bounds(i64, np.array(-1.0), np.array(0.0))), TRUE, TRUE, "[?,5]"),
        (const(-1), TRUE, TRUE, "[2..,5]"),
        (const(-1), UNKNOWN, TRUE, "[?,5]"),
        (const(-1), UNKNOWN, UNKNOWN, "[?,5]"),
        (tensor("", i64), TRUE, TRUE, "[?,5]"),
        (tensor("", i64), UNKNOWN, TRUE, "[?,5]"),
    ],
)
def test_number_of_iterations_of_a_loop(
    trip_count: TensorType, condition: TensorType, again: TensorType, joined: str
) -> None:
    body = Body([tensor("", i64), tensor("...")], lambda number, carried: [again, carried])
    outputs = loop().infer(trip_count, condition, tensor("2,5"), bodies={"body": body})
    assert shapes(outputs) == ["[2,5]", joined]


def grown(number: TensorType, carried: TensorType) -> list[TensorType]:
    return [TRUE, TensorType(f32, carried.shape.with_dim(0, carried.shape[0] + 1))]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (grown, "[2..,5]"),
        (lambda number, carried: [TRUE, tensor("5,5")], "[5,5]"),
        (lambda number, carried: [TRUE, TensorType(f32, carried.shape + PartialShape([1]))], "[...]"),
        (lambda number, carried: [TRUE, tensor("...")], "[...]"),
        (lambda number, carried: [TRUE, carried], "[1,5]"),
    ],
)
def test_shapes_through_back_edges_reach_what_holds_in_every_iteration(body: Any, expected: str) -> None:
    outputs = loop().infer(const(4), TRUE, tensor("1,5"), bodies={"body": Body([tensor("", i64), tensor("...")], body)})
    assert str(outputs[0].shape) == expected


def test_a_carried_value_is_known_only_if_it_stays() -> None:
    seen = []

    def body(number: TensorType, carried: TensorType) -> list[TensorType]:
        seen.append(carried.constant)
        return [TRUE, constant_type(np.float32([1]))]

    start = constant_type(np.float32([0]))
    loop().infer(const(2), TRUE, start, bodies={"body": Body([tensor("", i64), tensor("...")], body)})
    assert seen[0] is not None
    assert seen[-1] is None


@pytest.mark.parametrize(
    ("trip_count", "condition", "expected"),
    [(3, True, [1, 2, 3]), (-1, True, [1, 2, 3, 4, 5]), (9, True, [1, 2, 3, 4, 5]), (3, False, []), (0, True, [])],
)
def test_runs_of_a_loop(trip_count: int, condition: bool, expected: list[float]) -> None:
    op = loop()
    inputs, parameters = (tensor("", i64), UNKNOWN, tensor("1")), [tensor("1", i64), tensor("1")]
    outputs = op.infer(*inputs, bodies={"body": Body(parameters, lambda number, carried: [UNKNOWN, carried])})
    numbers = []

    def body(given: Sequence[Array]) -> list[Array]:
        number, carried = given
        numbers.append(number.tolist())
        return [np.array(number[0] < 4), carried + 1]

    start = np.zeros(1, np.float32)
    bodies = {"body": RunningBody(body, parameters)}
    last, joined = op.applied(inputs, outputs).run(np.int64([trip_count]), np.array(condition), start, bodies=bodies)
    assert numbers == [[i] for i in range(len(expected))]
    np.testing.assert_array_equal(joined, np.float32(expected))
    np.testing.assert_array_equal(last, np.float32(expected[-1:] or [0]))


def test_scalars_are_joined_to_a_vector() -> None:
    op = loop()
    body = Body([tensor("", i64), tensor("")], lambda number, carried: [TRUE, carried])
    assert shapes(op.infer(const(2), TRUE, tensor(""), bodies={"body": body})) == ["[]", "[2]"]
    again = np.array(True)
    running = RunningBody(lambda given: [again, given[1].copy()], body.parameters)
    _, joined = op.run(np.int64(2), again, np.array(3, np.float32), bodies={"body": running})
    np.testing.assert_array_equal(joined, [3, 3])
    inputs = tensor("", i64), TRUE, tensor("")
    op, running.shapes = op.applied(inputs, [tensor(""), tensor("...")]), [PartialShape([])] * 2
    first, joined = op.run(np.int64(0), again, np.array(3, np.float32), bodies={"body": running})
    assert (first, joined.tolist()) == (3, [])


@pytest.mark.parametrize("shapes", [((), (3,), ()), ((1,), (), (3,))])
def test_scalars_and_vectors_are_joined_where_the_rank_is_unknown(shapes: tuple[tuple[int, ...], ...]) -> None:
    results = ([np.array(True), np.full(shape, len(shape), np.float32)] for shape in shapes)
    running = RunningBody(lambda given: next(results), [tensor("", i64), tensor("...")])
    _, joined = loop().run(np.int64(3), np.array(True), np.zeros(1, np.float32), bodies={"body": running})
    np.testing.assert_array_equal(joined, np.concatenate([np.full(shape or 1, len(shape)) for shape in shapes]))


def test_faults_of_loops() -> None:
    body = {"body": Body([tensor("", i64), tensor("?")], lambda number, carried: [TRUE, carried])}
    with pytest.raises(OperatorError, match="trip_count must be of an integer type, got f32"):
        loop().infer(tensor(""), TRUE, tensor("1"), bodies=body)
    with pytest.raises(OperatorError, match=r"condition must have rank 0 or 1, got shape \[1,1\]"):
        loop().infer(const(1), tensor("1,1", boolean), tensor("1"), bodies=body)
    with pytest.raises(OperatorError, match=r"trip_count must have one element, got shape \[2\]"):
        loop().infer(tensor("2", i64), TRUE, tensor("1"), bodies=body)
    wrong = Body(body["body"].parameters, lambda number, carried: [TRUE, tensor("1", i32)])
    with pytest.raises(OperatorError, match="a back edge connects result 1 of type i32 to parameter 1 of type f32"):
        loop().infer(const(1), TRUE, tensor("1"), bodies={"body": wrong})
    unmarked = loop()
    unmarked.wiring = {"body": BodyMap(unmarked.wiring["body"].inputs, (OutputMap(0, 1),), (), 2)}
    with pytest.raises(OperatorError, match=r'needs exactly one output with purpose="execution_condition" .* got 0'):
        unmarked.infer(const(1), TRUE, tensor("1"), bodies=body)


def test_a_fault_of_a_connection_is_told_on_its_line_with_the_ids_of_the_file() -> None:
    op = loop()
    wiring = op.wiring["body"]
    op.wiring = {"body": replace(wiring, back_edges=(BackEdge(1, 1, line=34, ids=(6, 4)),))}
    body = Body([tensor("", i64), tensor("1")], lambda number, carried: [TRUE, tensor("1", i32)])
    with pytest.raises(OperatorError, match="a back edge connects result 6 of type i32 to parameter 4 of") as caught:
        op.infer(const(1), TRUE, tensor("1"), bodies={"body": body})
    assert caught.value.line == 34


def test_faults_of_runs() -> None:
    op = loop()
    body = {"body": Body([tensor("", i64), tensor("1")], lambda number, carried: [TRUE, carried])}
    start = np.zeros(1, np.float32)
    op.infer(tensor("", i64), TRUE, tensor("?"), bodies=body)

    def growing(given: Sequence[Array]) -> list[Array]:
        return [np.array(True), np.zeros((1, len(given[1]) + 1), np.float32)]

    bodies = {"body": RunningBody(growing, body["body"].parameters)}
    with pytest.raises(OperatorError, match=r"axis 0: iteration 1 gives shape \[1,2\], but the first gave"):
        op.run(np.int64(2), np.array(True), np.zeros(4, np.float32), bodies=bodies)
    with pytest.raises(OperatorError, match=r"condition must have one element, got shape \[2\]"):
        op.run(np.int64(2), np.array([True, True]), start, bodies={"body": list})


@pytest.mark.parametrize("trip_count", [const(-1), tensor("", i64)])
def test_outputs_of_a_loop_that_does_not_run(trip_count: TensorType) -> None:
    op = loop()
    wiring = op.wiring["body"]
    op.wiring = {"body": replace(wiring, outputs=(*wiring.outputs, OutputMap(2, 2)))}
    body = Body([tensor("", i64), tensor("1,2")], lambda number, carried: [TRUE, carried, tensor("2..3,4,?", i32)])
    inputs = trip_count, UNKNOWN, tensor("1,2")
    outputs = op.infer(*inputs, bodies={"body": body})
    op = op.applied(inputs, outputs)
    assert shapes(outputs)[1] == "[?,2]"
    reports: list[str] = []
    with reporting_to(lambda code, message, effect: reports.append(f"{code.id} {message}")):
        bodies = {"body": RunningBody(list, body.parameters, [results.shape for results in body(body.parameters)])}
        last, joined, lost = op.run(np.int64(-1), np.array(False), np.ones((1, 2), np.float32), bodies=bodies)
    np.testing.assert_array_equal(last, [[1, 1]])
    assert joined.shape == (0, 2)
    assert (lost.shape, lost.dtype) == ((2, 4, 0), np.int32)
    assert not lost.any()
    assert reports == ["OVIR803 output 2 is set to 0: the body ran zero times and no back edge supplies a value"]


def test_a_loop_that_outruns_its_sliced_input() -> None:
    op = Loop()
    maps = (InputMap(2, 0, axis=0),)
    op.wiring = {"body": BodyMap(maps, (OutputMap(0, 0), OutputMap(-1, 1, purpose="execution_condition")), (), 1)}
    op.infer(const(5), TRUE, tensor("3"), bodies={"body": Body([tensor("?")], lambda x: [x, TRUE])})
    with pytest.raises(OperatorError, match=r"iteration 3 reads \[3, .* axis 0 of input 2, outside of its shape \[3\]"):
        op.run(np.int64(5), np.array(True), np.zeros(3), bodies={"body": lambda g: [g[0], np.array(True)]})


def counting_loop(shape: str, trip_count: int | None, condition: bool | None) -> Net:
    """A Loop over x + 1, twice: the last x, all x joined, and the last 2 * x, which has no back edge."""
    net = Net()
    x = net.parameter("x", shape)
    count_to = net.parameter("n", "", "i64") if trip_count is None else net.const(np.int64(trip_count))
    starts = net.parameter("starts", "1", "boolean") if condition is None else net.const(np.array(condition))
    body = Net(blob=net.blob)
    carried = body.parameter("carried", "...")
    added = body.op("Add", carried, body.const(np.float32(1)))
    doubled = body.op("Multiply", added, body.const(np.float32(2)))
    results = [body.result(port)[0] for port in (body.const(np.array(True)), added, doubled)]
    handle = net.op("Loop", count_to, starts, x, opset=5, outputs=3)
    ports = f"""<port_map><input external_port_id="2" internal_layer_id="{carried[0]}"/>
        <output external_port_id="3" internal_layer_id="{results[1]}"/>
        <output external_port_id="4" internal_layer_id="{results[1]}" axis="0"/>
        <output external_port_id="5" internal_layer_id="{results[2]}"/>
        <output external_port_id="-1" internal_layer_id="{results[0]}" purpose="execution_condition"/></port_map>
        <back_edges><edge from-layer="{results[1]}" to-layer="{carried[0]}"/></back_edges>"""
    add_with_bodies(net, handle, ports, inside("body", body))
    for index in range(3):
        net.result(output(handle, index))
    return net


@pytest.mark.parametrize("shape", ["2,3", "?,3", "?,?", "..."])
@pytest.mark.parametrize(("trip_count", "condition"), [(3, None), (None, True), (None, None), (3, False), (0, True)])
def test_every_run_of_a_loop_that_may_not_run(shape: str, trip_count: int | None, condition: bool | None) -> None:
    request = counting_loop(shape, trip_count, condition).compiled().create_infer_request()
    for rows, times in ((2, 0), (2, 0), (2, 0), (2, 3), (2, 3), (2, 0), (1, 0), (1, 3), (2, 3), (2, 0)):
        if shape == "2,3" and rows == 1:
            continue
        x = np.random.default_rng(rows).random((rows, 3), np.float32)
        inputs: dict[str, Any] = {"x": x}
        if trip_count is None:
            inputs["n"] = np.int64(times if condition is not None else 3)
        if condition is None:
            inputs["starts"] = np.array([times > 0])
        runs = times if len(inputs) > 1 else 0
        last, joined, doubled = request.infer(inputs).values()
        np.testing.assert_allclose(last, x + runs, rtol=1e-6)
        expected = np.concatenate([x[:0], *(x + i + 1 for i in range(runs))])
        np.testing.assert_allclose(joined, expected, rtol=1e-6)
        np.testing.assert_allclose(doubled, 2 * (x + runs) if runs else np.zeros_like(x), rtol=1e-6)


def test_the_last_value_may_be_the_first() -> None:
    body = Body([tensor("", i64), tensor("...")], lambda number, carried: [TRUE, tensor("5,5")])
    for condition, expected in ((TRUE, "[5,5]"), (UNKNOWN, "[2..5,5]"), (FALSE, "[2,5]")):
        assert shapes(loop().infer(const(4), condition, tensor("2,5"), bodies={"body": body}))[0] == expected


# --------------------------------------------------------------------------- If


def branches(then: str, other: str, cond: TensorType, types: Any = (f32, f32)) -> tuple[If, tuple[TensorType, ...]]:
    op = If()
    op.wiring = {"then": BodyMap(outputs=(OutputMap(0, 0),)), "else": BodyMap(outputs=(OutputMap(0, 0),))}
    bodies = {
        "then": Body([], lambda: [tensor(then, types[0])]),
        "else": Body([], lambda: [tensor(other, types[1])]),
    }
    return op, op.infer(cond, bodies=bodies)


@pytest.mark.parametrize(
    ("then", "other", "expected"),
    [
        ("2,3", "2,3", "[2,3]"),
        ("2,3", "4,3", "[2..4,3]"),
        ("1..4", "2..7", "[1..7]"),
        ("?", "3", "[?]"),
        ("2", "2,3", "[...]"),
        ("...", "2", "[...]"),
        ("", "", "[]"),
        ("", "3", "[1..3]"),
        ("1", "", "[1]"),
    ],
)
def test_the_shape_of_an_output_holds_those_of_both_branches(then: str, other: str, expected: str) -> None:
    assert shapes(branches(then, other, UNKNOWN)[1]) == [expected]


def test_a_constant_condition_chooses_the_branch() -> None:
    assert shapes(branches("2", "3,3", TRUE)[1]) == ["[2]"]
    assert shapes(branches("2", "3,3", FALSE, (f32, i32))[1]) == ["[3,3]"]


def test_faults_of_if() -> None:
    with pytest.raises(
        OperatorError, match=r"output 0 of .* then branch is f32 and output 0 of the else branch is i32"
    ):
        branches("2", "2", UNKNOWN, (f32, i32))
    with pytest.raises(OperatorError, match="cond must be boolean or of an integer type, got f32"):
        branches("2", "2", tensor(""))
    with pytest.raises(OperatorError, match=r"cond must have rank 0 or 1, got shape \[1,1\]"):
        branches("2", "2", tensor("1,1", boolean))
    for shape in ("0", "2", "2..5"):
        with pytest.raises(OperatorError, match=r"cond must have one element, got shape \["):
            branches("2", "2", tensor(shape, boolean))
    branches("2", "2", tensor("..5", boolean))


def test_a_scalar_stands_for_a_vector_of_one() -> None:
    op, outputs = branches("", "3", UNKNOWN)
    op = op.applied((UNKNOWN,), outputs)
    bodies = {"then": lambda given: [np.float32(7).reshape(())], "else": lambda given: [np.zeros(3, np.float32)]}
    assert op.run(np.array([True]), bodies=bodies)[0].shape == (1,)
    assert op.run(np.array([0], np.int32), bodies=bodies)[0].shape == (3,)
    with pytest.raises(OperatorError, match=r"cond must have one element, got shape \[0\]"):
        op.run(np.array([], bool), bodies=bodies)


# --------------------------------------------------------------------------- in models


def inside(tag: str, net: Net) -> str:
    return f"<{tag}><layers>{''.join(net.layers)}</layers><edges>{''.join(net.edges)}</edges></{tag}>"


def add_with_bodies(net: Net, handle: tuple[int, int], *parts: str) -> tuple[int, int]:
    """Put port maps and bodies into the layer that was added last."""
    net.layers[-1] = net.layers[-1].removesuffix("</layer>") + "".join(parts) + "</layer>"
    return handle


def summing_loop(net: Net, start: tuple[int, int], trip_count: tuple[int, int]) -> tuple[int, int]:
    """A Loop named sum: start + 0 + 1 + ... ; its second output has all partial sums."""
    body = Net(blob=net.blob)
    number, total = body.parameter("number", "1", "i64"), body.parameter("total", "?")
    step = body.op("Convert", number, name="step", destination_type="f32")
    added = body.op("Add", total, step, name="added")
    body.result(body.const(np.array(True)))
    body.result(added)
    ids = {"number": number[0], "total": total[0], "again": body.count - 2, "added": body.count - 1}
    handle = net.op("Loop", trip_count, net.const(np.array(True)), start, name="sum", opset=5, outputs=2)
    return add_with_bodies(
        net,
        handle,
        f"""<port_map><input external_port_id="2" internal_layer_id="{ids["total"]}"/>
        <input external_port_id="-1" internal_layer_id="{ids["number"]}" purpose="current_iteration"/>
        <output external_port_id="3" internal_layer_id="{ids["added"]}"/>
        <output external_port_id="4" internal_layer_id="{ids["added"]}" axis="0"/>
        <output external_port_id="-1" internal_layer_id="{ids["again"]}" purpose="execution_condition"/></port_map>
        <back_edges><edge from-layer="{ids["added"]}" to-layer="{ids["total"]}"/></back_edges>""",
        inside("body", body),
    )


def loop_model() -> Net:
    net = Net()
    handle = summing_loop(net, net.parameter("start", "1"), net.parameter("n", "", "i64"))
    net.result(handle)
    net.result((handle[0], handle[1] + 1))
    return net


def test_results_of_a_loop_last_when_the_request_runs_it_again() -> None:
    request = loop_model().compiled().create_infer_request()
    kept = [list(request.infer([np.float32([start]), np.int64(3)]).to_dict().values()) for start in range(5)]
    for start, (total, sums) in enumerate(kept):
        np.testing.assert_array_equal(total, [start + 3])
        np.testing.assert_array_equal(sums, [start, start + 1, start + 3])


def test_listeners_and_taps_see_the_layers_of_bodies() -> None:
    seen: list[tuple[str, float]] = []

    class Watch:
        def will_run(self, layer: Layer, inputs: Sequence[Array]) -> None:
            pass

        def did_run(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            if layer.name == "added":
                seen.append((layer.scope, float(outputs[0][0])))

    results = loop_model().compiled()([np.float32([1]), np.int64(3)], listeners=[Watch()], taps=["sum/body/added"])
    assert seen == [("sum/body/", 1), ("sum/body/", 2), ("sum/body/", 4)]
    np.testing.assert_array_equal(results.taps["sum/body/added"][0], [4])


def if_model(then_output_id: int = 2) -> Net:
    """cond ? a loop over x : x * 2"""
    net = Net()
    cond, x = net.parameter("cond", "1", "boolean"), net.parameter("x", "1")
    then, other = Net(blob=net.blob), Net(blob=net.blob)
    then.result(summing_loop(then, then.parameter("x", "?"), then.const(np.int64(3))))
    doubled = other.op("Multiply", other.parameter("x", "?"), other.const(np.float32(2)))
    other.result(doubled)
    handle = net.op("If", cond, x, name="choice", opset=8)
    add_with_bodies(
        net,
        handle,
        *(
            f"""<{key}_port_map><input external_port_id="1" internal_layer_id="0"/>
            <output external_port_id="{then_output_id}" internal_layer_id="{body.count - 1}"/></{key}_port_map>"""
            for key, body in (("then", then), ("else", other))
        ),
        inside("then_body", then),
        inside("else_body", other),
    )
    net.result(handle)
    return net


@pytest.mark.parametrize("output_id", [2, 0])  # 0: outputs counted on their own, as in the specification's example
def test_bodies_in_bodies(output_id: int) -> None:
    compiled = if_model(output_id).compiled()
    assert str(compiled.outputs[0].shape) == "[1]"
    np.testing.assert_array_equal(compiled([np.array([True]), np.float32([5])])[0], [8])
    np.testing.assert_array_equal(compiled([np.array([False]), np.float32([5])])[0], [10])


def test_a_fault_in_a_body_is_named_with_where_it_stands() -> None:
    net = loop_model()
    text = net.xml().replace('destination_type="f32"', 'destination_type="i32"')
    with pytest.raises(ovir.ModelError, match=r"'added' \(Add, opset1\) in sum/body: .*f32.*i32"):
        ovir.read_model(text.encode(), bytes(net.blob))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('<output external_port_id="4"', '<output external_port_id="3"', "output port 3 of the layer is fed a second"),
        ('<output external_port_id="4" internal_layer_id="6" axis="0"/>', "", "feeds output port 4 of the layer"),
        ('<input external_port_id="2" internal_layer_id="1"/>', "", "feeds parameter 1 'total' of the body"),
        ('external_port_id="2"', 'external_port_id="9"', r"external_port_id 9 is not an input port .* \[0, 1, 2\]"),
        ('internal_layer_id="1"', 'internal_layer_id="0"', "parameter 0 of the body is fed a second time"),
    ],
)
def test_port_maps_that_do_not_fit(old: str, new: str, message: str) -> None:
    net = loop_model()
    assert old in net.xml()
    with pytest.raises(ovir.ModelError, match=message):
        ovir.read_model(net.xml().replace(old, new, 1).encode(), bytes(net.blob))


def test_state_in_a_body_is_that_of_the_request() -> None:
    """Each iteration adds one to a variable, which the next iteration and the next call read."""
    net = Net()
    body = Net(blob=net.blob)
    read = body.op("ReadValue", body.const(np.float32([0])), opset=3, variable_id="v")
    added = body.op("Add", read, body.const(np.float32([1])))
    body.op("Assign", added, opset=3, outputs=0, variable_id="v")
    again, total = body.result(body.const(np.array(True))), body.result(added)
    trip_count = net.parameter("n", "", "i64")
    handle = net.op("Loop", trip_count, net.const(np.array(True)), name="count", opset=5)
    port_map = f"""<port_map><output external_port_id="2" internal_layer_id="{total[0]}" axis="0"/>
        <output external_port_id="-1" internal_layer_id="{again[0]}" purpose="execution_condition"/></port_map>"""
    net.result(add_with_bodies(net, handle, port_map, inside("body", body)))
    request = net.compiled().create_infer_request()
    (variable,) = request.query_state()
    np.testing.assert_array_equal(variable.value, [0])
    np.testing.assert_array_equal(request.infer([np.int64(3)])[0], [1, 2, 3])
    np.testing.assert_array_equal(request.infer([np.int64(2)])[0], [4, 5])
    np.testing.assert_array_equal(variable.value, [5])
    request.reset_state()
    np.testing.assert_array_equal(request.infer([np.int64(1)])[0], [1])
