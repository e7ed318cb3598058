"""Bounds of contents: what they say is true, and where they meet they are exactly what a run gives."""

from typing import Any

import numpy as np
import pytest
from support.builder import Net

from ovir.core.element_types import (
    ElementType,
    bf16,
    boolean,
    f8e5m2,
    f8e8m0,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    nf4,
    u8,
    u32,
    u64,
)
from ovir.core.shapes import Dimension, PartialShape
from ovir.core.tensor_types import TensorType, constant_type, type_name
from ovir.core.values import MAX_ELEMENTS, Value, bound_text, from_bounds, from_dimensions, is_small

INF = np.inf


def sizes(net: Net, data: tuple[int, int], element_type: str = "i64") -> tuple[int, int]:
    return net.op("ShapeOf", data, opset=3, output_type=element_type)


def element(net: Net, source: tuple[int, int], position: int) -> tuple[int, int]:
    return net.op("Gather", source, net.const(np.int64(position)), net.const(np.int64(0)), opset=8)


@pytest.mark.parametrize("number", [2**63 - 1, 2**53 + 1, 2**53, -(2**63), -(2**53) - 1])
def test_integers_that_floats_do_not_hold_come_out_as_they_are(number: int) -> None:
    net = Net()
    joined = net.op("Concat", sizes(net, net.parameter("x", "?")), net.const(np.int64([number])), axis=0)
    net.result(element(net, joined, 1))
    assert net.compiled()([np.ones(3, np.float32)])[0] == number


def test_a_size_times_a_scale_is_rounded_down_from_f32() -> None:
    net = Net()
    size = net.op("Convert", sizes(net, net.parameter("x", "?,10")), destination_type="f32")
    floor = net.op("Floor", net.op("Multiply", size, net.const(np.float32([0.7, 0.7]))))
    target = net.op("Convert", floor, destination_type="i64")
    picked = net.op("Gather", target, net.const(np.int64([1])), net.const(np.int64(0)), opset=8)
    net.result(net.op("Broadcast", net.const(np.float32(1)), picked, opset=3, mode="numpy"))
    assert str(net.model().outputs[0].shape) == "[7]"  # of f64 it were 6


@pytest.mark.parametrize(
    ("kind", "other"), [("Multiply", 0.0), ("Minimum", -INF), ("LessEqual", INF), ("GreaterEqual", -INF)]
)
def test_an_unknown_real_number_can_be_nan(kind: str, other: float) -> None:
    net = Net()
    net.result(net.op(kind, net.parameter("x", "2"), net.const(np.float32([other, other])), name="out"))
    assert net.model().layer("out").outputs[0].type.value is None
    net = Net()
    net.result(net.op("Clamp", net.parameter("x", "2"), min="5", max="5", name="out"))
    assert np.isnan(net.compiled()([np.float32([np.nan, 1])])[0][0])


@pytest.mark.parametrize(
    ("element_type", "lower", "upper", "expected"),
    [
        (i64, 3, 2.0**60, (3, INF)),
        (i64, -(2.0**60), 4, (-INF, 4)),
        (i64, 2.0**60, INF, (-INF, INF)),
        (i32, 3, 2.0**31, (-INF, INF)),
        (i32, 3, 2.0**31 - 1, (3, 2.0**31 - 1)),
        (i32, 3, INF, (3, INF)),
        (i8, -128, 127, (-128, 127)),
        (i8, -129, 0, (-128, 127)),
        (u8, -1, 0, (0, 255)),
        (u8, 255, 256, (0, 255)),
        (u8, 3, INF, (0, 255)),
        (u32, -INF, 3, (0, INF)),
        (i64, -1.7, 2.9, (-1, 2)),
        (i64, np.nan, np.nan, (-INF, INF)),
        (f32, 0.1, 0.2, (float(np.float32(0.1)), float(np.float32(0.2)))),
        (f16, 0.1, 1e6, (-INF, INF)),
        (f32, 0.1, 1e60, (float(np.float32(0.1)), INF)),
        (bf16, 1.001, 3, (1, 3)),
        (f64, 0.1, 0.2, (0.1, 0.2)),
    ],
)
def test_bounds_are_those_of_the_element_type(
    element_type: ElementType, lower: float, upper: float, expected: tuple[float, float]
) -> None:
    # The second element is always known: nothing is said of a value of which nothing is known.
    value = from_bounds(element_type, np.array([lower, 1]), np.array([upper, 2]), sizes=True)
    assert value is not None
    assert (value.lower[0], value.upper[0]) == expected


@pytest.mark.parametrize(("lower", "upper"), [(3, INF), (-INF, 3), (-INF, INF), (2.0**30, INF)])
@pytest.mark.parametrize("element_type", [i32, i64])
def test_data_without_a_bound_may_wrap_around(element_type: ElementType, lower: float, upper: float) -> None:
    ends = np.array([lower, 1]), np.array([upper, 2])
    for value in (from_bounds(element_type, *ends), from_bounds(element_type, *ends, sizes=np.array([False, True]))):
        assert value is not None
        assert (value.lower[0], value.upper[0]) == (-INF, INF)
        assert not value.is_size[0]
    kept = from_bounds(element_type, *ends, may_wrap=False)
    assert kept is not None
    assert (kept.lower[0], kept.upper[0]) == (lower, upper)


def test_an_integer_that_wraps_around_is_no_longer_the_size_it_was() -> None:
    value = from_bounds(u8, np.array([0.0, 0]), np.array([255.0, 256]), np.array([5, 6]))
    assert value is not None
    assert value.symbols.tolist() == [5, 0]


def test_bounds_that_meet_are_a_constant() -> None:
    value = from_bounds(f16, np.array([0.1, 0.2]), np.array([0.1, 0.2000001]))
    assert value is not None
    assert value.constant is not None
    assert value.constant.tolist() == np.float16([0.1, 0.2]).tolist()
    assert from_bounds(i64, np.array([2.0**53]), np.array([2.0**53])) is None
    assert from_bounds(boolean, np.array([False]), np.array([True])) is not None


@pytest.mark.parametrize(
    ("array", "lower", "upper"),
    [
        (np.int64([2**53 - 1, 2**53 + 1, -(2**63)]), [2**53 - 1, 2**53, -INF], [2**53 - 1, INF, -(2**53)]),
        (np.uint64([7, 2**64 - 1]), [7, 2**53], [7, INF]),
        (np.float32([2.0**60, -INF]), [2.0**60, -INF], [2.0**60, -INF]),
        (np.array([True, False]), [1, 0], [1, 0]),
    ],
)
def test_bounds_of_a_constant_hold_it(array: Any, lower: list[float], upper: list[float]) -> None:
    value = Value(array)
    assert value.lower.tolist() == lower
    assert value.upper.tolist() == upper


def test_sizes_as_a_value_and_back() -> None:
    dims = [Dimension(2, 5), Dimension(3, None, 7), Dimension(4, 4)]
    value = from_dimensions(i64, dims)
    assert value is not None
    assert value.dimensions() == dims
    assert [d.symbol for d in value.dimensions()] == [0, 7, 0]
    assert constant_type(np.int64([-1, 3])).value.dimensions() == [Dimension(0, 0), Dimension(3, 3)]  # type: ignore[union-attr]
    assert TensorType(u64, constant_type(np.int64([1])).shape).bounds_or_unknown() is not None


def test_the_type_of_a_tensor_takes_texts_and_lists() -> None:
    shape = PartialShape("1,?")
    for given in (shape, [1, -1], "1,?"):
        found = TensorType("f32", given)
        assert (found.element_type, found.shape) == (f32, shape)
        assert isinstance(found.shape, PartialShape)
    assert TensorType(f32, shape).shape is shape
    assert (TensorType(f32, shape) == "f32[1,?]", repr(TensorType(f32, shape))) == (False, "<f32[1,?]>")
    assert {TensorType(f32, shape), TensorType("f32", "1,?"), TensorType("f16", "1,?")} == {
        TensorType(kind, shape) for kind in (f16, f32)
    }
    assert [type_name(np.dtype(name)) for name in ("f4", "c16", "bool")] == ["f32", "complex128", "boolean"]


@pytest.mark.parametrize(
    ("element_type", "largest"),
    [(f16, 2048), (bf16, 256), (f32, 2**24), (f64, 2**52), (f8e5m2, 8), (i64, 2**52), (nf4, 0), (f8e8m0, 0)],
)
def test_sizes_up_to_which_a_type_holds_each(element_type: ElementType, largest: int) -> None:
    """A size that may be rounded is no longer the size of the symbol."""
    for upper in (largest, 2 * largest) if largest else (1,):
        value = from_bounds(element_type, np.zeros(2), np.array([upper, 1]), np.array([5, 6]))
        is_exact = upper <= largest or largest == 2**52
        assert value is not None
        assert value.symbols.tolist()[0] == 5 * is_exact


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("[]", True),
        ("...", False),
        (f"{MAX_ELEMENTS}", True),
        (f"{MAX_ELEMENTS + 1}", False),
        (f"2,{MAX_ELEMENTS // 2}", True),
        (f"3..{MAX_ELEMENTS}", True),
        (f"3..{MAX_ELEMENTS + 1}", False),
        ("1..", False),
        (f"0,{2**40 - 1}", True),
        (f"0,{2**40}", False),
        (f"0,{2**20},{2**20}", False),
        ("0,0", True),
    ],
)
def test_values_that_are_small_enough_to_follow(shape: str, expected: bool) -> None:
    assert is_small(PartialShape.parse(shape)) == expected
    data = TensorType(i64, shape)
    assert (data.bounds_or_unknown() is not None) == (expected and data.shape.is_static)


def test_bounds_in_messages() -> None:
    exact = 2**53 - 1
    assert [bound_text(float(x)) for x in (0, -3, exact, -exact)] == ["0", "-3", str(exact), str(-exact)]
    assert [bound_text(x) for x in (2.0**53, INF, -(2.0**53), -INF)] == ["2^53 or more"] * 2 + ["-2^53 or less"] * 2


@pytest.mark.parametrize(("element_type", "ends"), [(u8, (0, 255)), (i8, (-128, 127)), (u32, (0, INF)), (i32, (-INF, INF)),
                                                    (boolean, (-INF, INF)), (f16, (-INF, INF))])  # fmt: skip
def test_what_is_known_of_an_element_of_which_only_its_type_is_known(element_type: ElementType, ends: Any) -> None:
    value = TensorType(element_type, "2").bounds_or_unknown()
    assert value is not None
    assert (value.lower.tolist(), value.upper.tolist()) == ([ends[0]] * 2, [ends[1]] * 2)
    assert value.size == 2
    assert (value.has_symbols, value.is_unknown.tolist()) == (False, [ends == (-INF, INF)] * 2)
    lower, upper = value.known_ends(element_type)
    if element_type.is_real:
        assert np.isnan([lower, upper]).all()
    else:
        assert (lower is value.lower, upper is value.upper) == (True, True)
