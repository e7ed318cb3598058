"""Sizes and values for a model without inputs."""

from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.analysis.input_sizes import fix_shapes
from ovir.analysis.random_inputs import _draw, _range_of, arranged, generate_inputs, input_domains
from ovir.core.element_types import ELEMENT_TYPES, ElementType, value_range
from ovir.ops.base.domains import Domain


@pytest.mark.parametrize("kind", [kind for kind in ELEMENT_TYPES if kind.is_integral], ids=str)
def test_integers_are_drawn_from_the_whole_type_up_to_8_bits(kind: ElementType) -> None:
    """Draw a quarter of the range of 64-bit types, so that sums of a few elements do not overflow."""
    least, most = value_range(kind)
    assert _range_of(kind) == ((least // 4, most // 4) if kind.bits == 64 else (least, most))
    x = ops.parameter([9999], kind)
    (made,) = generate_inputs(ovir.Model([ops.result(x)], [x]))
    assert {*map(int, made.array)} == {*(range(least, most + 1) if kind.bits <= 8 else range(10))}


@pytest.mark.parametrize("name", ["f32", "f64", "f16", "bf16", "f8e4m3", "f8e5m2", "f8e8m0"])
def test_real_numbers_have_both_signs_for_odd_seeds(name: str) -> None:
    x = ops.parameter([999], name)
    model = ovir.Model([ops.result(x)], [x])
    even, odd, later = ([float(n) for n in generate_inputs(model, seed)[0].array] for seed in (0, 1, 2))
    assert 0 <= min(even) < 0.1 < 0.9 < max(even) <= 1
    assert 0 <= min(later) < 0.1
    assert 0.9 < max(odd) <= 1
    assert 0 <= min(odd) < 0.1 if name == "f8e8m0" else -1 <= min(odd) < -0.9


def domain_of(net: Net, name: str = "x") -> Domain | None:
    model = net.model()
    return input_domains(model).get(model.inputs[model.input_index(name)])


def bounds(net: Net, name: str = "x") -> tuple[float | None, float | None]:
    domain = domain_of(net, name)
    return domain.low, domain.high


def gather(net: Net, indices: Any, axis: int = 0, size: int = 7) -> Any:
    data = net.const(np.zeros((size, 2), np.float32))
    return net.op("Gather", data, indices, net.const(axis, "i64"), opset=8, name="pick")


def test_an_index_is_found_behind_layers_that_move_values() -> None:
    net = Net()
    x = net.parameter("x", "2,3", "i32")
    moved = net.op("Convert", x, destination_type="i64")
    moved = net.op("Transpose", moved, net.const([1, 0], "i64"))
    moved = net.op("Unsqueeze", moved, net.const([0], "i64"))
    net.result(gather(net, moved))
    domain = domain_of(net)
    assert domain == Domain(0, 6, why="Gather 'pick'")
    assert str(domain) == "0..6"


def test_the_tightest_of_several_uses_counts() -> None:
    net = Net()
    x = net.parameter("x", "3", "i64")
    net.result(gather(net, x, axis=0))
    net.result(gather(net, x, axis=1))
    assert bounds(net) == (0, 1)


@pytest.mark.parametrize(
    ("operation", "swapped", "constant", "expected"),
    [
        ("Add", False, 2, (-2, 4)),
        ("Subtract", False, 2, (2, 8)),
        ("Subtract", True, 6, (0, 6)),
        ("Multiply", False, 3, (0, 2)),
    ],
)
def test_arithmetic_with_constants_is_undone(
    operation: str, swapped: bool, constant: int, expected: tuple[int, int]
) -> None:
    net = Net()
    operands = [net.parameter("x", "3", "i64"), net.const(constant, "i64")]
    net.result(gather(net, net.op(operation, *(operands[::-1] if swapped else operands))))
    assert bounds(net) == expected


def test_two_unknown_summands_share_the_range() -> None:
    net = Net()
    net.result(gather(net, net.op("Add", net.parameter("x", "3", "i64"), net.parameter("y", "3", "i64"))))
    assert bounds(net) == bounds(net, "y") == (0, 3)


@pytest.mark.parametrize(
    ("operation", "attributes", "expected"),
    [("GatherElements", {"opset": 6, "axis": "1"}, (0, 4)), ("GatherND", {"opset": 8}, (0, 3))],
)
def test_other_index_ports(operation: str, attributes: Any, expected: tuple[int, int]) -> None:
    net = Net()
    data = net.parameter("data", "4,5")
    x = net.parameter("x", "4,2", "i64")
    net.result(net.op(operation, data, x, **attributes))
    assert bounds(net) == expected


def test_what_is_no_index_has_no_domain() -> None:
    net = Net()
    x = net.parameter("x", "3", "i64")
    net.result(net.op("Add", x, x))
    assert domain_of(net) is None


def test_values_are_seeded_and_in_range() -> None:
    net = Net()
    net.result(gather(net, net.parameter("x", "100", "i64")))
    net.result(net.op("ReLU", net.parameter("image", "1,3,4,4", "u8")))
    net.result(net.op("ReLU", net.parameter("y", "100")))
    net.result(net.op("ReLU", net.parameter("attention_mask", "5", "i64")))
    model = net.model()
    x, image, y, mask = (item.array for item in generate_inputs(model, 4))
    assert x.dtype == np.int64
    assert (x.min(), x.max()) == (0, 6)
    assert image.dtype == np.uint8
    assert image.max() > 9
    assert y.dtype == np.float32
    assert 0 <= y.min() < y.max() < 1
    np.testing.assert_array_equal(mask, 1)
    np.testing.assert_array_equal(generate_inputs(model, 4, only=[2])[0].array, y)
    assert (generate_inputs(model, 6, only=[2])[0].array != y).any()


@pytest.mark.parametrize("element_type", [str(t) for t in ovir.core.element_types.ELEMENT_TYPES if not t.is_dynamic])
def test_every_element_type(element_type: str) -> None:
    net = Net()
    net.result(net.parameter("x", "4,5", element_type))
    model = net.model()
    (made,) = generate_inputs(model)
    assert made.array.dtype == model.inputs[0].element_type.to_dtype()
    assert made.array.shape == (4, 5)
    ovir.compile_model(model)([made.array])


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("any", [[5, 1, 3], [2, 9, 0]]),
        ("sorted", [[1, 3, 5], [0, 2, 9]]),
        ("offsets", [[0, 3, 5], [0, 2, 9]]),
        ("counting", [[4, 5, 6], [7, 8, 9]]),
        ("whole", [[-1, 1, 1], [-1, 1, 1]]),
    ],
)
def test_orders_of_values(order: Any, expected: list[list[int]]) -> None:
    domain = Domain(4, 9, order=order, why="a test")
    assert arranged(np.array([[5, 1, 3], [2, 9, 0]]), domain).tolist() == expected
    assert arranged(np.array(7), domain) == 7
    assert arranged(np.array([3, 1]), None).tolist() == [3, 1]


def drawn(kind: str, domain: Domain | None = None) -> np.ndarray[Any, Any]:
    return _draw(np.random.default_rng(0), ElementType.parse(kind), (20_000,), domain, is_signed=False)


def test_all_of_what_may_be_drawn_is_drawn() -> None:
    """So values are neither left out at an end nor coarser than their type."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    assert sorted(set("".join(drawn("string").tolist()))) == list(letters)
    assert set(drawn("boolean").tolist()) == {False, True}
    assert drawn("boolean").mean() == pytest.approx(0.5, abs=0.02)
    assert drawn("boolean", Domain(1, 1, why="a mask")).all()
    assert set(drawn("boolean", Domain(0, 1, why="a choice")).tolist()) == {False, True}
    for kind in ("f64", "f32", "f16", "f8e4m3"):
        reals = drawn(kind).astype(np.float64)
        assert reals.min() >= 0
        assert 0.99 < reals.max() <= 1
    assert (drawn("f64").astype(np.float32) != drawn("f64")).any()
    assert set(drawn("f4e2m1").astype(float).tolist()) == {0, 1, 2, 3, 4, 6}
    assert set(drawn("i32").tolist()) == set(range(10))
    assert set(drawn("i32", Domain(None, 3, why="")).tolist()) == {0, 1, 2, 3}
    assert set(drawn("i32", Domain(5, None, why="")).tolist()) == set(range(5, 10))
    assert set(drawn("i32", Domain(11, None, why="")).tolist()) == {11}


def test_an_index_in_a_body_is_found_outside_of_it() -> None:
    data = ops.constant(np.zeros((7, 2), np.float32))
    inside, other = (ops.parameter([3], "i64", name=name) for name in ("inside", "other"))
    picked = ops.gather(data, inside, ops.constant(np.int64(0)), name="pick")
    body = ovir.Model([picked, other], [inside, other])
    unused = ops.parameter([3], "i64", name="unused")
    x, y, chosen = ops.parameter([3], "i64", name="x"), ops.parameter([3], "i64", name="y"), ops.constant(True)
    branch = ops.if_op(chosen)
    rest = ovir.Model([ops.constant(np.zeros((3, 2), np.float32)), unused], [unused])
    branch.set_then_body(body)
    branch.set_else_body(rest)
    branch.set_input(x, inside, None)
    branch.set_input(y, other, unused)
    first = branch.set_output(body.outputs[0], rest.outputs[0])
    second = branch.set_output(body.outputs[1], rest.outputs[1])
    model = ovir.Model(
        [first, ops.gather(ops.constant(np.zeros((4, 2), np.float32)), second, ops.constant(np.int64(0)))], [x, y]
    )
    found = {port.any_name: (domain.low, domain.high) for port, domain in input_domains(model).items()}
    assert found == {"x": (0, 6), "y": (0, 3)}


def test_a_rank_that_is_not_tried_is_an_error() -> None:
    x = ops.parameter(ovir.PartialShape(None), "f32", name="x")
    with pytest.raises(ovir.ModelError):
        fix_shapes(ovir.Model([ops.transpose(x, np.arange(7)[::-1].copy())], [x]))


def test_sizes() -> None:
    net = Net()
    for name, shape in (("a", "?,?"), ("b", "?,2..5,3"), ("c", "2,16..,..4"), ("d", "")):
        net.result(net.op("ReLU", net.parameter(name, shape)))
    model = net.model()
    assert fix_shapes(model).shapes == {0: (1, 8), 1: (1, 3, 3), 2: (2, 16, 1)}
    assert [str(port.shape) for port in model.inputs] == ["[1,8]", "[1,3,3]", "[2,16,1]", "[]"]


def test_sizes_that_inference_asks_for() -> None:
    net = Net()
    x = net.parameter("x", "?,?,?,?")
    window = {"strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    net.result(net.op("Convolution", x, net.const(np.zeros((4, 3, 9, 9), np.float32)), **window))
    model = net.model()
    assert fix_shapes(model).shapes == {0: (1, 3, 16, 16)}


def test_sizes_follow_those_of_given_inputs() -> None:
    net = Net()
    a, b = net.parameter("a", "?,?"), net.parameter("b", "?,?")
    net.result(net.op("Add", a, b))
    model = net.model()
    assert fix_shapes(model, {0: (4, 6)}).shapes == {1: (4, 6)}


def test_a_shape_that_fits_nothing_leaves_the_model_as_it_was() -> None:
    net = Net()
    x = net.parameter("x", "?,5")
    net.result(net.op("MatMul", x, net.const(np.zeros((5, 2), np.float32))))
    model = net.model()
    with pytest.raises(ovir.ModelError):
        fix_shapes(model, {0: (2, 6)})
    assert str(model.inputs[0].shape) == "[?,5]"


def test_the_default_seed_is_0() -> None:
    x = ops.parameter([4], "f32", name="x")
    model = ovir.Model([ops.abs(x)], [x])
    for seed, is_default in ((0, True), (1, False)):
        assert np.array_equal(ovir.random_inputs(model)["x"], ovir.random_inputs(model, seed)["x"]) == is_default
        (made,), (given,) = generate_inputs(model), generate_inputs(model, seed)
        assert np.array_equal(made.array, given.array) == is_default
