"""ShapeOf, Reshape, Squeeze, Unsqueeze, Transpose, and shapes computed in a graph on their way to Reshape."""

import re
from itertools import product
from math import prod

import numpy as np
import pytest
from support.builder import Net
from support.tensors import applied, assert_refused, const, inferred, inferred_value, operation, tensor, types

import ovir
from ovir import opset13 as ops
from ovir.core.element_types import f32, i32, i64
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType
from ovir.core.values import Value
from ovir.diagnostics.errors import OperatorError
from ovir.ops.shape import Reshape, ShapeOf1, ShapeOf3, Squeeze1, Squeeze15, Transpose

# ----- ShapeOf


def test_shape_of_knows_its_content() -> None:
    op, data = ShapeOf3(output_type=i32), tensor("2,?,3..5")
    assert str(op.infer(data)) == "i32[3]"
    assert [str(d) for d in inferred_value(op, data).dimensions()] == ["2", "?", "3..5"]
    assert str(ShapeOf1().infer(tensor("..."))) == "i64[?]"
    assert inferred_value(ShapeOf1(), tensor("")).constant.shape == (0,)


# ----- Reshape


def test_reshape_runs_as_a_view() -> None:
    data = np.arange(24.0).reshape(2, 3, 4)
    result = Reshape(special_zero=True).run(data, np.array([0, -1]))
    assert result.shape == (2, 12)
    assert np.shares_memory(result, data)
    assert Reshape(special_zero=False).run(np.zeros((0, 3)), np.array([0, -1])).shape == (0, 3)


N, M, K = (Dimension(0, None, symbol) for symbol in (901, 902, 903))


P = Dimension(0, 1)


@pytest.mark.parametrize("special_zero", [True, False])
@pytest.mark.parametrize(
    "pattern",
    [
        (-1, P),
        (Dimension(0, 3), 2),
        (0, P, -1),
        (P,),
    ],
)
@pytest.mark.parametrize(
    "data", [(Dimension(5, 7), 1), (Dimension(5, 7), Dimension(0, 2)), (6, 2), (2, Dimension(0, None), 3), (N, N), None]
)
def test_computed_elements_that_may_be_zero(
    data: tuple[Dimension | int, ...] | None, pattern: tuple[Dimension | int, ...], special_zero: bool
) -> None:
    op = Reshape(special_zero=special_zero)
    bounds = np.array([[d, d] if isinstance(d, int) else [d.lower, d.upper] for d in pattern], np.float64).T
    wanted = TensorType(i64, [len(pattern)], Value(None, *bounds))
    try:
        expected = op.infer(TensorType(f32, PartialShape(data)), wanted).shape
    except OperatorError:
        return  # no sizes fit
    dims = [[d] if isinstance(d, int) else range(d.lower, min(d.upper or 7, 7) + 1) for d in data or (4, 3)]
    numbers = [[d] if isinstance(d, int) else range(d.lower, (d.upper or 0) + 1) for d in pattern]
    for *shape, target in product(*dims, list(product(*numbers))):
        if data == (N, N) and shape[0] != shape[1]:
            continue
        try:
            result = op.run(np.zeros(shape, np.float32), np.array(target))
        except OperatorError:
            continue
        assert expected.contains(result.shape), (shape, target)


@pytest.mark.parametrize("special_zero", ["true", "false"])
def test_an_empty_batch_is_reshaped_as_any_other(special_zero: str) -> None:
    net = Net()
    x = net.parameter("x", "?,2,2")
    shape = net.op("ShapeOf", x, opset=3)
    batch = net.op("Gather", shape, net.const(np.array([0])), net.const(np.int64(0)), opset=8)
    pattern = net.op("Concat", batch, net.const(np.array([-1])), axis=0)
    rows = net.op("Reshape", x, pattern, special_zero=special_zero)
    net.result(net.op("MatMul", rows, net.const(np.ones((4, 3), np.float32))))
    request = net.compiled().create_infer_request()
    for count in (2, 0, 0, 0, 3, 0, 2):
        data = np.random.default_rng(count).random((count, 2, 2), np.float32)
        (result,) = request.infer([data]).values()
        np.testing.assert_allclose(result, data.reshape(count, 4) @ np.ones((4, 3)), rtol=1e-5)
    static = net.model()
    static.reshape({"x": [0, 2, 2]})
    assert str(static.outputs[0].shape) == "[0,3]"


def test_the_size_of_another_tensor_that_may_be_zero_is_not_a_size_of_the_result() -> None:
    net = Net()
    shape = net.op("ShapeOf", net.parameter("a", "?,?"), opset=3)
    y = net.op("Reshape", net.parameter("b", "?,?"), shape, special_zero="true")
    net.result(net.op("Equal", net.op("ShapeOf", y, opset=3), shape))
    given = [np.zeros((0, 0), np.float32), np.zeros((0, 4), np.float32)]
    model = net.model()
    request = ovir.compile_model(model).create_infer_request()
    for _ in range(3):
        assert request.infer(given)[0].tolist() == [True, False]
    model.simplify()
    assert ovir.compile_model(model)(given)[0].tolist() == [True, False]


def test_reshape_into_sizes_of_which_none_fits() -> None:
    open_size = TensorType(i64, [2], Value(None, np.array([4.0, -1]), np.array([5.0, -1])))
    assert_refused("cannot be divided evenly into the shape", Reshape(), tensor("6"), open_size)


def test_the_shape_of_a_large_constant_is_known() -> None:
    net = Net()
    x = net.parameter("x", "?,300")
    large = net.const(np.ones((300, 300), np.float32))
    net.result(net.op("Broadcast", net.const(np.float32(1)), net.op("ShapeOf", large, opset=3), opset=3))
    net.result(net.op("Broadcast", x, net.op("ShapeOf", large), opset=3))
    alike = net.op("ConvertLike", net.op("ShapeOf", x), net.const(np.ones((300, 300), np.int32)))
    net.result(net.op("Broadcast", net.const(np.float32(2)), alike, opset=3))
    model = net.model()
    assert [str(port.shape) for port in model.outputs] == ["[300,300]", "[300,300]", "[?,300]"]
    assert model.outputs[2].shape[0].symbol == model.inputs[0].shape[0].symbol
    request = net.compiled().create_infer_request()
    for count in (1, 1, 300, 300, 300, 1):
        data = np.random.default_rng(count).random((count, 300), np.float32)
        ones, repeated, alike_filled = request.infer([data]).values()
        assert (ones == np.ones((300, 300))).all()
        assert (repeated == np.broadcast_to(data, (300, 300))).all()
        assert alike_filled.shape == data.shape
    model.fold_constants()
    assert sum(layer.type == "ShapeOf" for layer in model.layers) == 1


def test_a_shape_that_does_not_fit_a_large_constant_is_found_before_a_run() -> None:
    net = Net()
    shape = net.op("ShapeOf", net.const(np.ones((300, 300), np.float32)), opset=3)
    net.result(net.op("Broadcast", net.parameter("x", "7,300"), shape, opset=3))
    errors = [d for d in ovir.check(net.xml().encode(), bytes(net.blob)) if d.severity is ovir.Severity.ERROR]
    assert [error.layer_id for error in errors] == [3]


# ----- Squeeze and Unsqueeze


@pytest.mark.parametrize(
    ("data", "axes", "result", "with_skip"),
    [
        ("1,3,1", [-1], "[1,3]", "[1,3]"),
        ("1,3,1", [-1, 2, 2], "[1,3]", "[1,3]"),
        ("?,3,1", [0, 2], "[3]", "[...]"),
        ("2..5,3,1", [0, 2], "[2..5,3]", "[2..5,3]"),
    ],
)
def test_squeeze_shape(data: str, axes: list[int], result: str, with_skip: str) -> None:
    assert inferred(Squeeze1(), tensor(data), const(axes)) == result
    assert inferred(Squeeze15(), tensor(data), const(axes)) == result
    assert inferred(Squeeze15(allow_axis_skip=True), tensor(data), const(axes)) == with_skip


def test_squeeze_ignores_dimensions_that_are_not_one() -> None:
    data = np.zeros((1, 3, 1))
    assert Squeeze1().run(data, np.array([0, 1])).shape == (3, 1)
    assert Squeeze1().run(data).shape == (3,)
    assert Squeeze1().run(np.zeros(()), np.array([0])).shape == ()


# ----- Transpose


def test_squeeze_of_a_size_that_inference_took_for_1() -> None:
    op = applied(operation("Squeeze-1"), *types("1,?,? =[0,2,1]"))
    assert np.shape(op.run(np.zeros((1, 1, 1)), np.array([0, 2, 1]))) == ()
    for shape, axis in (((1, 1, 3), 2), ((1, 4, 3), 2), ((1, 4, 1), 1)):
        message = re.escape(f"dimension {axis} of data {list(shape)} is {shape[axis]}".replace(", ", ","))
        with pytest.raises(OperatorError, match=message):
            op.run(np.zeros(shape), np.array([0, 2, 1]))


def test_transpose() -> None:
    assert inferred(Transpose(), tensor("?,2..3,4"), const([2, 0, 1])) == "[4,?,2..3]"
    assert inferred(Transpose(), tensor("?,2..3,4"), const([])) == "[4,2..3,?]"
    assert inferred(Transpose(), tensor("2,3,4"), tensor("3", i64)) == "[?,?,?]"
    assert inferred(Transpose(), tensor("..."), tensor("3", i64)) == "[?,?,?]"
    assert inferred(Transpose(), tensor("..."), const([])) == "[...]"
    data = np.arange(6).reshape(2, 3)
    assert Transpose().run(data, np.array([], np.int64)).tolist() == [[0, 3], [1, 4], [2, 5]]


# ----- shapes computed in the graph


def test_symbols_cancel_in_reshape() -> None:
    """Heads split off as exported models do it: the unknown batch and length come back as they were."""
    net = Net()
    data = net.parameter("data", "?,?,64")
    shape = net.op("ShapeOf", data, opset=3, output_type="i64")
    lengths = net.const(np.array([1, 2], np.int64))
    batch = net.op("VariadicSplit", shape, net.const(np.int64(0)), lengths, outputs=2)
    rest = (batch[0], batch[1] + 1)
    pattern = net.op("Concat", batch, net.const(np.array([-1, 4, 16], np.int64)), axis=0)
    heads = net.op("Reshape", data, pattern, special_zero="false", name="heads")
    back = net.op("Reshape", heads, net.op("Concat", batch, rest, axis=0), special_zero="false", name="back")
    net.result(back)
    model = net.model()
    sizes = model.inputs[0].shape.dims
    split = model.layer("heads").outputs[0].shape
    assert str(split) == "[?,?,4,16]"
    assert [d.symbol for d in split.dims[:2]] == [d.symbol for d in sizes[:2]]
    joined = model.layer("back").outputs[0].shape
    assert str(joined) == "[?,?,64]"
    assert [d.symbol for d in joined.dims[:2]] == [d.symbol for d in sizes[:2]]


def test_content_follows_views_of_a_shape() -> None:
    net = Net()
    data = net.parameter("data", "2,3..5,?")
    shape = net.op("ShapeOf", data, opset=3, output_type="i32")
    column = net.op("Unsqueeze", shape, net.const(np.array([1])))
    turned = net.op("Transpose", column, net.const(np.array([1, 0])))
    flat = net.op("Squeeze", turned, net.const(np.array([0])))
    twice = net.op("Tile", flat, net.const(np.array([2])))
    first = net.op("Slice", twice, *(net.const(np.array([v])) for v in (4, -7, -2)), opset=8)
    net.result(net.op("Broadcast", net.const(np.float32(1)), first, opset=3, mode="numpy", name="broadcast"))
    model = net.model()
    assert str(model.layer("broadcast").outputs[0].shape) == "[3..5,?,2]"


def test_dimension_is_kept_where_nothing_changes() -> None:
    size = Dimension(0, None, symbol=7)
    data = TensorType(f32, PartialShape([size, 3, 4]))
    result = Reshape().infer(data, const([-1, 12]))
    assert result.shape[0].symbol == 7


SIZES = ([-1], [1], [4], [-1, 4], [4, -1], [2, -1, 2], [-1, -1])
HEADS = ("copied", "taken", "given", "none")
"""The first element of a pattern: 0, the first size of data, an input, or no element."""


@pytest.mark.slow
@pytest.mark.parametrize("declared", SIZES)
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("tail", [[], [2]])
def test_a_size_of_a_pattern_that_only_a_run_shows(declared: list[int], head: str, tail: list[int]) -> None:
    """The inferred shape holds what the kernel accepts, also where empty data leave that size free."""
    special_zero = head == "copied"
    x, w = ops.parameter(declared, "f32", name="x"), ops.parameter([1], "i64", name="w")
    given = ops.parameter([1], "i64", name="given")
    first = {
        "copied": lambda: [ops.constant(np.array([0]))],
        "taken": lambda: [ops.gather(ops.shape_of(x), ops.constant(np.array([0])), ops.constant(np.int64(0)))],
        "given": lambda: [given],
        "none": list,
    }[head]()
    parts = [*first, w, *([ops.constant(np.array(tail))] if tail else [])]
    parameters = [x, w, *([given] if head == "given" else [])]
    try:
        made = ops.reshape(x, ops.concat(parts, 0), special_zero)
        compiled = ovir.compile_model(ovir.Model([made], parameters))
    except ovir.ModelError:
        compiled = None  # no pattern fits
    for sizes in product((0, 1, 2, 4), repeat=declared.count(-1)):
        left = iter(sizes)
        data = np.zeros([next(left) if size == -1 else size for size in declared], np.float32)
        for size, other in product((0, 1, 2, 3, 4, 8), (0, 2, 4)):
            begin = {"copied": [0], "taken": [data.shape[0]], "given": [other], "none": []}[head]
            pattern = [*begin, size, *tail]
            if special_zero:
                if 0 in pattern[data.ndim :]:
                    continue  # there is nothing to copy
                pattern = [data.shape[i] if n == 0 else n for i, n in enumerate(pattern)]
            if prod(pattern) != data.size:
                continue
            assert compiled is not None
            feeds = [data, np.array([size]), *([np.array([other])] if head == "given" else [])]
            assert compiled(feeds)[0].shape == tuple(pattern)
