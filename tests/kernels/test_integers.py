"""Real numbers as integers: one result on every processor, also for NaN and numbers beyond the type."""

from math import isfinite, isnan, trunc
from typing import Any

import numpy as np
import pytest
from support.builder import Net

from ovir.core.element_types import ElementType
from ovir.kernels.precision import fill_saturated, integer_range, to_integers
from ovir.ops.convert import Convert

REALS = ["f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2"]
INTEGERS = ["u1", "u2", "u3", "u4", "u6", "i4", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
NUMBERS = [
    np.nan, np.inf, -np.inf, 1e30, -1e30, 3e4, -3e4, 300.7, -300.7, 127.5, -128.9, -0.9, 0, 0.9, 1, 5, -1, 255,
    *[sign * (2.0**power + more) for power in (31, 32, 63, 64) for more in (-0.9, 0, 512, 2.0 ** (power - 8)) for sign in (1, -1)],
]  # fmt: skip


def as_integer(number: float, target: ElementType) -> int:
    """Return what OpenVINO's reference makes of a number."""
    bits = 64 if target.bits == 64 or str(target) == "u32" else 32
    if str(target) == "u64" and number >= 2.0**63:
        return int(number) if number < 2.0**64 else 0
    inside = isfinite(number) and -(2 ** (bits - 1)) <= trunc(number) < 2 ** (bits - 1)
    low_bits = (trunc(number) if inside else -(2 ** (bits - 1))) % 2**target.bits
    return low_bits - 2**target.bits if target.kind == "signed" and low_bits >= 2 ** (target.bits - 1) else low_bits


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", REALS)
def test_conversions(source: str, target: str) -> None:
    given, wanted = ElementType.parse(source), ElementType.parse(target)
    with np.errstate(all="ignore"):
        numbers = np.array(NUMBERS).astype(given.to_dtype())
    expected = [as_integer(float(number), wanted) for number in numbers]
    op = Convert(destination_type=wanted)
    op.input_types, op.output_types = (given,), (wanted,)
    assert [int(number) for number in op.run(numbers)] == expected
    net = Net()
    net.result(net.op("Convert", net.parameter("x", str(len(numbers)), source), destination_type=target))
    assert [int(number) for number in net.compiled()([numbers])[0]] == expected


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
@pytest.mark.parametrize("number", [2.0**63, np.nan, 7.9])
def test_shapes(shape: tuple[int, ...], number: float) -> None:
    for target in map(ElementType.parse, ("u8", "i32", "i64", "u64")):
        found = to_integers(np.full(shape, number), target.to_dtype())
        assert found.shape == shape
        assert (found == as_integer(number, target)).all()


@pytest.mark.parametrize("name", [name for name in INTEGERS if name not in ("u1", "u3", "u6")])
@pytest.mark.parametrize("real", [np.float32, np.float64, np.float16])
def test_real_numbers_at_the_limits_of_integers(name: str, real: Any) -> None:
    target = ElementType.parse(name)
    ends = [2.0**n for n in (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64)]
    numbers = [sign * (end + d) for end in ends for d in (-1, 0, 0.5, 1) for sign in (1, -1)]
    with np.errstate(over="ignore"):
        x = np.array([*numbers, 0, -0.5, np.nan, np.inf, -np.inf, 1e30], real)
    found = to_integers(x, target.to_dtype()).astype(object)
    assert found.tolist() == [as_integer(number, target) for number in x.tolist()]
    out, (low, high) = np.empty(x.shape, target.to_dtype()), integer_range(target.to_dtype())
    with np.errstate(all="ignore"):
        fill_saturated(x, out)
    clipped = [0 if isnan(number) else min(max(number, -1e30), 1e30) for number in x.tolist()]
    assert out.astype(object).tolist() == [min(max(int(number), low), high) for number in clipped]


@pytest.mark.parametrize("element_type", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
def test_powers_wrap_around(element_type: str) -> None:
    target = ElementType.parse(element_type)
    low, high = integer_range(target.to_dtype())
    ends = [n for n in (0, 1, 2, 3, 5, 7, -1, -2, -3, low, low + 1, high // 3, high) if n >= low]
    exponents = [n for n in (0, 1, 2, 3, 7, 14, 31, 40, 63, high, -1, -2, -3, low) if n >= low]
    a, b = (x.ravel() for x in np.meshgrid(np.array(ends, target.to_dtype()), np.array(exponents, target.to_dtype())))

    def power(x: int, y: int) -> int:
        if y < 0:
            return as_integer(float(x) ** (y % 2 - 2) if x else np.inf, target)
        wrapped = pow(x, y, 2**target.bits)
        return wrapped - 2**target.bits if wrapped > high else wrapped

    net = Net()
    net.result(net.op("Power", *(net.parameter(name, str(len(a)), element_type) for name in "ab")))
    assert net.compiled()([a, b])[0].tolist() == [power(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]


def test_products_of_small_integers_that_f64_does_not_hold() -> None:
    net = Net()
    x = net.parameter("x", "3,100", "i16")
    net.result(net.op("ReduceProd", x, net.const(np.int64([1]))))
    data = np.full((3, 100), 30_000, np.int16)
    data[1, 0], data[2, 0] = 0, -1
    assert net.compiled()([data])[0].tolist() == [32767, 0, -32768]
