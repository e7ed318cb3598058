"""Elementwise functions of small numbers by tables, and in blocks of f16 and bf16: the same as the kernel gives."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.binding import bound_results
from support.tensors import applied_to

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.fast.base import passes
from ovir.fast.registry import fast_form
from ovir.ops import arithmetic, comparison
from ovir.ops.activation import Clamp, Gelu7, ReLU, Sigmoid
from ovir.ops.arithmetic import Add, Divide, FloorMod, Maximum, Mod, Multiply, Power
from ovir.ops.base.elementwise import BinaryBase
from ovir.ops.comparison import Greater, IsNaN
from ovir.ops.convert import Convert
from ovir.ops.quantization import FakeConvert, FakeQuantize
from ovir.ops.unary import Abs, Exp, Floor, Sign, Sqrt

F16, BF16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)


def all_numbers(dtype: Any) -> Array:
    """Return every number of a type, NaN and infinities among them, in no order."""
    dtype = np.dtype(dtype)
    codes = np.random.default_rng(0).permutation(1 << 8 * dtype.itemsize)
    return codes.astype(f"u{dtype.itemsize}").view(dtype).reshape(4, -1, 2)


def same(op: Any, *inputs: Array, constants: set[int]) -> None:
    """Hold the fast form, which must exist, against the kernel: equal, or neighbors in 16 bits."""
    op = applied_to(op, *inputs)
    with np.errstate(all="ignore"):
        expected = op.run(*inputs)
    results = bound_results(op, inputs, [expected], constants)
    assert results is not None
    assert results[0].dtype == expected.dtype
    assert results[0].shape == expected.shape
    rtol = {F16: 2e-3, BF16: 1e-2}.get(expected.dtype, 0)
    if expected.dtype.kind in "iub":
        np.testing.assert_array_equal(results[0], expected)
    else:
        np.testing.assert_allclose(results[0].astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=1e-7)


@pytest.mark.parametrize("dtype", [F16, BF16])
@pytest.mark.parametrize(
    "op", [ReLU(), Sigmoid(), Gelu7(), Clamp(min=-2, max=3), Abs(), Exp(), Floor(), Sign(), Sqrt(), IsNaN()]
)
def test_functions_of_one_input(op: Any, dtype: Any) -> None:
    same(op, all_numbers(dtype), constants=set())


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint16, np.int64])
@pytest.mark.parametrize("op", [ReLU(), Sigmoid(), Clamp(min=-2.5, max=1e30), Abs(), Sqrt()])
def test_functions_of_integers(op: Any, dtype: Any) -> None:
    data = all_numbers(np.uint8 if np.dtype(dtype).itemsize == 1 else np.uint16).astype(dtype)
    op = applied_to(op, data)
    with np.errstate(all="ignore"):
        expected = op.run(data)
    results = bound_results(op, (data,), [expected], set())
    is_left_to_run = data.itemsize == 1 if isinstance(op, Abs) else data.itemsize > 2 and isinstance(op, Sigmoid | Sqrt)
    assert (results is None) == is_left_to_run
    if results is not None:
        np.testing.assert_array_equal(results[0], expected)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [F16, BF16])
@pytest.mark.parametrize("op", [Add(), Multiply(), Divide(), Maximum(), Mod(), FloorMod(), Power(), Greater()])
@pytest.mark.parametrize("shape", [(4, 1, 2), (), (4, 16, 2)])
@pytest.mark.parametrize("is_constant", [False, True])
def test_binary_functions_in_blocks(
    op: Any, shape: tuple[int, ...], is_constant: bool, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "_BLOCK_ELEMENTS", 24)
    rng = np.random.default_rng(0)
    a = (rng.standard_normal((4, 16, 2)) * 10).astype(dtype)
    b = np.abs(rng.standard_normal(shape) * 2 + 0.5).astype(dtype)
    for x, y, position in ((a, b, 1), (b, a, 0)):
        same(op, x, y, constants={position} if is_constant else set())
        same(op, np.asfortranarray(x), y, constants={position} if is_constant else set())


@pytest.mark.parametrize("source", ["f16", "bf16", "f8e4m3", "f8e5m2", "i8", "u8", "i32", "f32", "boolean"])
@pytest.mark.parametrize("target", ["f16", "bf16", "f8e4m3", "f8e5m2", "u8", "i64", "f32", "boolean"])
def test_conversions(source: str, target: str) -> None:
    dtype = ElementType.parse(source).to_dtype()
    numbers = np.arange(1 << 16) % 60 if dtype.kind in "iub" else np.linspace(-7, 70, 1 << 16)
    data = numbers.astype(np.float32).astype(dtype).reshape(4, -1, 2)
    same(Convert(destination_type=ElementType.parse(target)), data, constants=set())


@pytest.mark.parametrize("dtype", [np.float32, F16, BF16])
@pytest.mark.parametrize("destination_type", ["f8e4m3", "f8e5m2"])
@pytest.mark.parametrize("shape", [(1,), (4, 1, 1), (2,)])
@pytest.mark.parametrize("has_shift", [False, True])
def test_round_trips_through_8_bits(destination_type: str, dtype: Any, shape: Any, has_shift: bool) -> None:
    with np.errstate(invalid="ignore"):
        data = all_numbers(F16).astype(dtype)
    scale = np.linspace(1.5, 3, int(np.prod(shape))).reshape(shape).astype(dtype)
    inputs = (data, scale, scale) if has_shift else (data, scale)
    same(FakeConvert(destination_type=destination_type), *inputs, constants={1, 2})
    same(FakeConvert(destination_type=destination_type), *inputs, constants=set())


def test_ranges_of_channels_in_blocks() -> None:
    data = np.random.default_rng(0).standard_normal((2, 3, 100)).astype(F16)
    low = -np.ones((3, 1), F16) - np.arange(3, dtype=F16).reshape(3, 1)
    same(FakeQuantize(levels=256), data, low, -low, low, -low, constants={1, 2, 3, 4})


_OF_NUMBERS = [
    cls
    for module in (arithmetic, comparison)
    for cls in vars(module).values()
    if isinstance(cls, type) and issubclass(cls, BinaryBase) and not cls.__name__.endswith("Base")
]


@pytest.mark.parametrize("dtype", [F16, BF16])
@pytest.mark.parametrize("cls", _OF_NUMBERS, ids=lambda cls: cls.__name__)
def test_a_number_of_higher_rank_adds_an_axis(cls: Any, dtype: Any) -> None:
    if fast_form(cls) is None or (fast_form(cls) is fast_form(BinaryBase) and not hasattr(cls, "function")):
        pytest.skip("the operation has no fast form")
    data, number = all_numbers(dtype), np.full((1, 1, 1, 1), 1.5, dtype)
    same(cls(), data, number, constants={1})
    same(cls(), number, data, constants={0})


def test_roots_among_other_powers() -> None:
    bases, powers = np.float32([-0.0, -np.inf, -0.0, 4]), np.float32([0.5, 0.5, 3, 0.5])
    results = bound_results(Power(), (bases, powers), [bases], set())
    assert results is not None
    assert results[0].tobytes() == np.float32([0, np.inf, -0.0, 2]).tobytes()
