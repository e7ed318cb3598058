"""`model.weights()`: which inputs are weights, what compresses them, and the arrays they stand for."""

from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir.checks.recovering import read_recovering
from ovir.core.arrays import Array
from ovir.core.encoding import decode
from ovir.inference.layer_weights import codes_of, compression_of

EXAMPLES = Path(__file__).parents[2] / "examples" / "xml"
CODES = np.arange(24).reshape(6, 4) % 16


def converted(net: Net, source: Any, target: str) -> Any:
    return net.op("Convert", source, destination_type=target)


def product(net: Net, weights: Any) -> Net:
    net.result(net.op("MatMul", net.parameter("x", "?,6"), weights, name="product"))
    return net


def grouped() -> tuple[Net, Array]:
    """Return a product with u4 weights in groups of two, and the weights that it means."""
    net = Net()
    codes = converted(net, net.const(CODES.reshape(6, 2, 2), "u8", "codes"), "f16")
    zero = net.const(np.full((6, 2, 1), 3), "f16")
    scale = net.const(np.arange(12).reshape(6, 2, 1) / 8, "f16")
    restored = net.op("Multiply", net.op("Subtract", codes, zero), scale)
    shaped = net.op("Reshape", restored, net.const([6, 4], "i64"), special_zero="false")
    expected = ((CODES.reshape(6, 2, 2) - 3.0) * np.arange(12).reshape(6, 2, 1) / 8).reshape(6, 4)
    return product(net, converted(net, shaped, "f32")), expected.astype("f4")


def only(net: Net) -> Any:
    (found,) = net.model().weights()
    return found


def plain() -> tuple[Net, Array]:
    net, values = Net(), np.linspace(0, 1, 24, dtype="f4").reshape(6, 4)
    return product(net, net.const(values, name="codes")), values


def halves() -> tuple[Net, Array]:
    net = Net()
    stored = net.const(CODES / 3, "f16", "codes")
    return product(net, converted(net, stored, "f32")), (CODES / 3).astype("f2").astype("f4")


def scaled_halves() -> tuple[Net, Array]:
    """Return products of f16, which are computed in f32."""
    net, values, scales = Net(), (CODES / 3).astype("f2"), (np.arange(6)[:, None] / 7).astype("f2")
    scaled = net.op("Multiply", net.const(values, name="codes"), net.const(scales))
    return product(net, converted(net, scaled, "f32")), values.astype("f4") * scales.astype("f4")


def by_row() -> tuple[Net, Array]:
    net, scales = Net(), np.arange(6, dtype="f4")[:, None]
    codes = converted(net, net.const(CODES, "i8", "codes"), "f32")
    return product(net, net.op("Multiply", codes, net.const(scales))), CODES * scales


@pytest.mark.parametrize(
    ("make", "stored", "compression"),
    [
        (plain, "f32", "none"),
        (halves, "f16", "f16"),
        (scaled_halves, "f16", "f16 with scale"),
        (by_row, "i8", "i8 with scale"),
        (grouped, "u8", "u8 with scale and zero point, groups of 2"),
    ],
)
def test_weights_of_a_product(make: Callable[[], tuple[Net, Array]], stored: str, compression: str) -> None:
    """The arrays are those of a run."""
    net, expected = make()
    found = only(net)
    assert (found.layer.name, found.input.index, found.constant.name) == ("product", 1, "codes")
    assert (str(found.shape), str(found.element_type), str(found.stored_type)) == ("[6,4]", "f32", stored)
    assert found.compression == compression
    assert compression_of(found.input.source) == (stored if compression == "none" else compression)
    assert found.largest_code == (CODES.max() if stored == "i8" else None)
    np.testing.assert_array_equal(found.array, expected)
    np.testing.assert_array_equal(net.compiled()([np.eye(6, dtype="f4")])[0], expected)


def test_fake_quantized_weights_of_a_convolution() -> None:
    net = Net()
    filters = np.linspace(-2, 2, 2 * 3 * 9, dtype="f4").reshape(2, 3, 3, 3)
    limits = [net.const(np.float32([value, 0]).reshape(2, 1, 1, 1)) for value in (-2, 2, -2, 2)]  # a channel of zeros
    quantized = net.op("FakeQuantize", net.const(filters), *limits, levels="3")
    quantized = net.op("Transpose", quantized, net.const([0, 1, 3, 2], "i64"))
    x = net.parameter("x", "1,3,8,8")
    ones = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    net.result(net.op("Convolution", x, quantized, name="conv", **ones))
    found = only(net)
    assert (found.layer.name, found.compression) == ("conv", "f32 with 3 levels")
    assert found.largest_code == 1
    np.testing.assert_array_equal(np.unique(found.array), [-2, 0])


@pytest.mark.parametrize(("levels", "largest"), [("256", 255), ("257", None)])
@pytest.mark.parametrize(("kind", "is_moved"), [("Squeeze", True), ("ReLU", False)])
def test_levels_that_8_bits_can_number(levels: str, largest: int | None, kind: str, is_moved: bool) -> None:
    net = Net()
    limits = [net.const(np.float32(value)) for value in (0, 255, 0, 255)]
    quantized = net.op("FakeQuantize", net.const(np.full((1, 6, 4), 255, "f4")), *limits, levels=levels)
    found = only(product(net, net.op(kind, quantized) if is_moved else net.op(kind, net.op("Squeeze", quantized))))
    assert found.compression == f"f32 with {levels} levels"
    assert found.largest_code == (largest if is_moved else None)


@pytest.mark.parametrize(("value", "largest"), [(3, 1), (np.inf, None)])
def test_codes_that_are_not_finite_have_no_largest(value: float, largest: int | None) -> None:
    net = Net()
    limits = [net.const(np.float32(limit)) for limit in (0, value, 0, value)]
    found = only(product(net, net.op("FakeQuantize", net.const(np.full((6, 4), 9, "f4")), *limits, levels="2")))
    assert found.largest_code == largest


def test_a_file_without_its_numbers() -> None:
    net = Net()
    codes = net.op("Multiply", converted(net, net.const(CODES, "i8", "codes"), "f32"), net.const(np.float32(2)))
    recovered = read_recovering(product(net, codes).xml(), need_weights=False)
    (found,) = recovered.model.weights()
    assert (found.compression, found.largest_code) == ("i8 with scale", 0)
    unread = net.xml().replace('type="MatMul"', 'type="MatMal"')
    assert read_recovering(unread, need_weights=False).model.weights() == []


def test_what_constants_do_not_compute_alone() -> None:
    net = Net()
    codes = converted(net, net.const(CODES, "u8"), "f32")
    scaled = net.op("Multiply", codes, net.parameter("scale", "6,1"), name="scaled")
    net.result(net.op("ReLU", scaled))
    model = net.model()
    port = model.layer("scaled").outputs[0]
    assert (compression_of(port), codes_of(port), model.weights()) == ("computed", None, [])


def test_the_table_of_a_gather_counts_and_its_constant_indices_do_not() -> None:
    net = Net()
    table = net.const(np.ones((9, 4), "f4"), name="table")
    axis = net.const(np.int64(0))
    net.result(net.op("Gather", table, net.parameter("ids", "3", "i64"), axis, name="embedding", opset=8))
    net.result(net.op("Gather", net.parameter("y", "3,4"), net.const([0], "i64"), axis, opset=8))
    net.result(net.op("MatMul", net.parameter("a", "2,3"), net.op("ReLU", net.parameter("b", "3,2"))))
    net.result(net.op("ScatterUpdate", table, net.const([0], "i64"), net.parameter("z", "1,4"), axis, opset=3))
    found = only(net)
    assert (found.layer.name, found.input.index, found.constant.name) == ("embedding", 0, "table")


def test_weights_of_an_example() -> None:
    found = ovir.read_model(EXAMPLES / "digits.xml").weights()
    assert [(w.layer.type, w.input.index) for w in found] == [("Convolution", 1), ("Convolution", 1), ("MatMul", 1)]
    for weights in found:
        assert weights.array.shape == weights.shape.to_tuple()
        with pytest.raises(ValueError, match="read-only"):
            weights.array[...] = 0


def codes_net(kind: str, shape: tuple[int, ...], factors: tuple[int, ...], target: tuple[int, ...]) -> Any:
    """Return the output of ``(codes - zero_point) * scale`` in another shape."""
    net, rng = Net(), np.random.default_rng(2)
    codes = converted(net, net.const(rng.integers(0, 8, shape), kind), "f32")
    zero, scale = rng.integers(0, 8, factors).astype("f4"), rng.uniform(1, 2, factors).astype("f4")
    restored = net.op("Multiply", net.op("Subtract", codes, net.const(zero)), net.const(scale))
    net.result(net.op("Reshape", restored, net.const(target, "i64"), special_zero="false"))
    return net.model().outputs[0].source


@pytest.mark.parametrize("kind", ["i4", "u4", "i8", "u8"])
@pytest.mark.parametrize(
    ("shape", "factors"),
    [((4, 6), (4, 1)), ((4, 6), (1, 1)), ((4, 6), (1,)), ((4, 6), ()), ((4, 3, 2), (4, 3, 1)), ((4, 3, 2), (3, 1)),
     ((4, 2, 3), (4, 2, 1)), ((4, 6, 1), (4, 6, 1))],
)  # fmt: skip
def test_codes_give_the_matrix(kind: str, shape: tuple[int, ...], factors: tuple[int, ...]) -> None:
    output = codes_net(kind, shape, factors, (4, 6))
    groups = f", groups of {shape[-1]}" if len(shape) > 2 else ""
    assert compression_of(output) == f"{kind} with scale and zero point{groups}"
    found = codes_of(output)
    if kind[1] == "4" and shape[-1] % 2:  # a byte would hold codes of two groups
        assert found is None
        return
    assert found is not None
    codes = decode(found.numbers.reshape(-1).view(np.uint8), found.element_type, (4, prod(shape[1:-1]), shape[-1]))
    values = (codes.astype("f4") - found.zero_point[..., None]) * found.scale[..., None]
    assert str(found.element_type) == kind
    assert found.scale.shape == found.zero_point.shape == codes.shape[:-1]
    np.testing.assert_array_equal(values.reshape(4, 6), ovir.compile_model(output.layer.owner)([])[0])


@pytest.mark.parametrize(
    ("kind", "shape", "factors", "target"),
    [
        ("u2", (4, 6), (4, 1), (4, 6)),
        ("u8", (4, 6), (1, 6), (4, 6)),
        ("u8", (4, 6), (4, 1), (6, 4)),
        ("u8", (4, 6), (4, 1), (4, 3, 2)),
        ("u8", (4, 6), (4, 1), (24,)),
        ("u8", (6,), (1,), (1, 6)),
        ("u8", (2, 2, 3, 2), (2, 2, 3, 1), (2, 12)),
        ("u8", (2, 3), (4, 2, 1), (4, 6)),
        ("u8", (4, 0), (4, 1), (4, 0)),
    ],
)
def test_no_codes(kind: str, shape: tuple[int, ...], factors: tuple[int, ...], target: tuple[int, ...]) -> None:
    assert codes_of(codes_net(kind, shape, factors, target)) is None
