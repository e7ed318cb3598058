"""Convert, ConvertLike, ConvertPromoteTypes: every pair of types, what does not fit, the common type, known content."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from support.tensors import inferred_value, operation, types

from ovir.core.element_types import ELEMENT_TYPES, ElementType, boolean, f32, i64, nf4, value_range
from ovir.core.shapes import PartialShape, new_symbol
from ovir.core.tensor_types import TensorType
from ovir.core.values import from_bounds
from ovir.diagnostics.errors import OperatorError
from ovir.ops.convert import Convert, ConvertLike, ConvertPromoteTypes, is_exact

INF, NAN = np.inf, np.nan
PLAIN = [t for t in ELEMENT_TYPES if t.name not in ("dynamic", "string")]


def converted(values: Any, source: str, target: str) -> Any:
    types = ElementType.parse(source), ElementType.parse(target)
    op = Convert(destination_type=types[1])
    op.input_types, op.output_types = types[:1], types[1:]
    x = np.asarray(values, types[0].to_dtype())
    result = op.run(x)
    assert isinstance(result, np.ndarray)
    assert result.dtype == types[1].to_dtype()
    return result


@pytest.mark.slow
@pytest.mark.parametrize("source", PLAIN, ids=str)
@pytest.mark.parametrize("target", PLAIN, ids=str)
def test_one_is_one_in_every_type(source: ElementType, target: ElementType) -> None:
    codes = {nf4: 15}
    result = converted([codes.get(source, 1)], source.name, target.name)
    expected = -1 if target.name == "i1" else codes.get(target, 1)
    assert float(result[0]) == expected


@pytest.mark.parametrize("source", [t for t in PLAIN if t.bits <= 16 and t.name not in ("nf4", "f8e8m0")], ids=str)
def test_a_conversion_is_exact_if_each_value_comes_back(source: ElementType) -> None:
    dtype = source.to_dtype()
    if source.is_integral:
        low, high = map(int, value_range(source))
        values = np.arange(low, high + 1).astype(dtype)
    else:
        values = (
            np.array([0, 1]) > 0
            if source == boolean
            else np.arange(1 << source.bits, dtype=f"u{dtype.itemsize}").view(dtype)
        )
    for target in [t for t in PLAIN if t.name not in ("boolean", "nf4", "f8e8m0")]:
        there = converted(values, source.name, target.name)
        back = converted(there, target.name, source.name).astype(np.float64)
        as_many = np.unique(there.astype(np.float64)).size == np.unique(values.astype(np.float64)).size
        same = np.array_equal(there.astype(np.float64), values.astype(np.float64), equal_nan=True) and as_many
        assert is_exact(source, target) == (same and np.array_equal(back, values.astype(np.float64), equal_nan=True)), (
            target
        )


def test_a_conversion_is_left_out_if_another_has_kept_every_value() -> None:
    kept = set()
    for first, between, last in product(map(ElementType.parse, ("f16", "f32", "f64", "i8", "i16")), repeat=3):
        op, given = Convert(destination_type=last), TensorType(between, PartialShape([2]))
        if op.is_same_for(TensorType(first, PartialShape([2])), [given], TensorType(last, PartialShape([2]))):
            kept.add(f"{first} {between} {last}")
    assert {"f16 f32 f16", "f16 f32 f64", "i8 f16 i8", "i8 i16 f32", "f32 f32 f64", "i16 i16 i16"} <= kept
    assert kept.isdisjoint({"f32 f16 f32", "i16 f16 i16", "f16 f32 i8", "f64 f32 f16", "f32 f64 f16", "i16 f32 f16"})


@pytest.mark.parametrize(
    ("source", "target", "values", "expected"),
    [
        ("f32", "u8", [255.9, 300, -1], [255, 44, 255]),
        ("f8e4m3", "bf16", [1.5, -0.25], [1.5, -0.25]),
        ("i4", "bf16", [-3, 7], [-3, 7]),
        ("f64", "i64", [1e12, -1.9], [10**12, -1]),
        ("i64", "i8", [200, -129, 256], [-56, 127, 0]),
        ("i32", "u64", [-1], [2**64 - 1]),
        ("boolean", "f32", [True, False], [1, 0]),
        ("i64", "u1", [2, 3], [0, 1]),
        ("i64", "u2", [-1, 4], [3, 0]),
        ("f32", "u3", [7.9, 9], [7, 1]),
        ("i64", "u4", [16, -2], [0, 14]),
        ("i64", "u6", [63, 64, -1], [63, 0, 63]),
        ("i4", "f32", [-8, 7], [-8, 7]),
        ("f32", "f16", [1e6, 1.0004], [INF, 1]),
        ("f32", "bf16", [1.00390625], [1]),
        ("f32", "f8e4m3", [0.3, 448, 500, -1000], [0.3125, 448, NAN, NAN]),
        ("f32", "f8e5m2", [300, 1e9, -INF], [320, INF, -INF]),
        ("f32", "f4e2m1", [0.3, 1.2, 3.4, 9, -INF, NAN], [0.5, 1, 3, 6, -6, 6]),
        ("f32", "f8e8m0", [0, -3, 1.5, 3, 200, INF, NAN], [2**-127, 2**-127, 2, 2, 256, 2.0**127, NAN]),
    ],
)
def test_what_does_not_fit(source: str, target: str, values: Any, expected: Any) -> None:
    result = converted(values, source, target)
    np.testing.assert_array_equal(result if result.dtype.kind in "iub" else result.astype(np.float64), expected)


def test_nf4_takes_the_nearest_of_its_sixteen_numbers() -> None:
    codes = converted([-1, -0.7, 0, 0.1, 0.4, 0.8, INF, -INF, NAN], "f32", "nf4")
    assert codes.tolist() == [0, 1, 7, 8, 12, 14, 15, 0, 0]
    np.testing.assert_allclose(converted(codes[:4], "nf4", "f32"), [-1, -0.6961928, 0, 0.0795803], rtol=1e-6)


def test_strings_are_not_numbers() -> None:
    with pytest.raises(OperatorError, match="conversion of f32 to string is not supported"):
        converted([1], "f32", "string")


def test_the_destination_is_needed() -> None:
    op = Convert()
    op.input_types, op.output_types = (f32,), (op.destination_type,)
    with pytest.raises(OperatorError, match="destination_type is missing"):
        op.run(np.ones(1, np.float32))


def test_convert_like() -> None:
    op = ConvertLike()
    op.input_types, op.output_types = (f32, i64), (i64,)
    assert op.run(np.array([1.5, -2.5], np.float32), np.zeros((3, 3), np.int64)).tolist() == [1, -2]


# --------------------------------------------------------------------------- the common type


def test_promoted_values() -> None:
    op = ConvertPromoteTypes(promote_unsafe=True)
    op.input_types, op.output_types = (i64, f32), (f32, f32)
    first, second = op.run(np.array([1, -2]), np.array([0.5], np.float32))
    assert (first.tolist(), second.tolist()) == ([1, -2], [0.5])


# --------------------------------------------------------------------------- known content


def known(target: str, lower: float, upper: float, element_type: ElementType = i64) -> tuple[float, float, bool] | None:
    symbol = new_symbol()
    value = from_bounds(element_type, np.array([lower]), np.array([upper]), np.array([symbol]), sizes=True)
    tensor = TensorType(element_type, PartialShape([1]), value)
    found = inferred_value(Convert(destination_type=ElementType.parse(target)), tensor)
    if found is None:
        return None
    return float(found.lower[0]), float(found.upper[0]), bool(found.symbols[0] == symbol)


def test_sizes_keep_bounds_and_symbols() -> None:
    assert known("i32", 2, INF) == (2, INF, True)
    assert known("f32", 0, 7) == (0, 7, True)
    assert known("u64", 0, INF) == (0, INF, True)
    assert known("i32", -1.5, 7.5, f32) == (-1, 7, True)
    assert known("f64", 0, INF) == (0, INF, True)
    assert known("u8", 3, 255) == (3, 255, True)
    assert known("i4", 0, 7) == (0, 7, True)
    assert known("f16", 0, 2048) == (0, 2048, True)
    assert known("boolean", 1, 5) == (1, 1, False)
    assert known("boolean", 0, 5) == (0, 1, False)


@pytest.mark.parametrize(
    ("target", "lower", "upper", "expected"),
    [
        ("u8", 3, 256, None),
        ("i8", 3, 128, None),
        ("u4", 3, 16, None),
        ("u32", -1, 7, None),
        ("f32", 3, 2**24 + 2, (3, 2**24 + 2)),
        ("bf16", 3, 257, (3, 256)),
        ("f16", 3, 2050, (3, 2050)),
        ("f8e4m3", 0, INF, None),
    ],
)
def test_a_size_that_may_not_fit_loses_its_symbol(
    target: str, lower: float, upper: float, expected: tuple[float, float] | None
) -> None:
    assert known(target, lower, upper) == (None if expected is None else (*expected, False))


def promoted(first: str, second: str, *attributes: str, unsafe: bool = False) -> str | None:
    op = operation(" ".join(("ConvertPromoteTypes-14", f"promote_unsafe={unsafe}", *attributes)))
    try:
        return str(op.infer(*types(f"{first} {second}"))[0].element_type)
    except OperatorError:
        return None


SIGNED, UNSIGNED = ("i4", "i8", "i16", "i32", "i64"), ("u1", "u4", "u8", "u16", "u32", "u64")


@pytest.mark.parametrize("signed", SIGNED)
def test_a_common_type_of_integers_holds_those_of_both(signed: str) -> None:
    for other in (*SIGNED, *UNSIGNED):
        (low, high), (least, greatest) = value_range(ElementType.parse(signed)), value_range(ElementType.parse(other))
        is_kept = (low <= least and greatest <= high) or (other in SIGNED and least <= low and high <= greatest)
        ends = {t: value_range(ElementType.parse(t)) for t in SIGNED}
        holding = [t for t, (first, last) in ends.items() if first <= min(low, least) and max(high, greatest) <= last]
        expected = holding[0] if holding else "f32"
        for pair in ((signed, other), (other, signed)):
            pair = tuple(f"{one}[2]" for one in pair)
            assert promoted(*pair) == (expected if is_kept else None)
            assert promoted(*pair, unsafe=True) == expected
            if other == "u64":
                assert promoted(*pair, "u64_integer_promotion_target=i32", unsafe=True) == "i32"


@pytest.mark.parametrize(
    ("first", "second", "common", "is_safe"),
    [
        ("f16[2]", "i8[?,3]", "f16", True),
        ("f16[2]", "u16[2]", "f16", False),
        ("f32[2]", "i16[2]", "f32", True),
        ("f32[2]", "i32[2]", "f32", False),
        ("f64[2]", "u32[2]", "f64", True),
        ("f64[2]", "i64[2]", "f64", False),
        ("f16[2]", "bf16[2]", "f32", False),
        ("f8e4m3[2]", "f8e5m2[2]", "f16", False),
        ("f16[2]", "f64[2]", "f64", True),
        ("boolean[2]", "u4[2]", "u4", True),
        ("boolean[2]", "boolean[2]", "boolean", True),
        ("u8[2]", "u32[2]", "u32", True),
        ("dynamic[2]", "f32[2]", "dynamic", True),
    ],
)
def test_common_types_of_real_numbers(first: str, second: str, common: str, is_safe: bool) -> None:
    for pair in ((first, second), (second, first)):
        assert promoted(*pair) == (common if is_safe else None)
        assert promoted(*pair, unsafe=True) == common


@pytest.mark.parametrize(
    ("scalar", "other", "is_safe"),
    [
        ("i8[]", "i8[2]", True),
        ("i16[]", "i8[2]", False),
        ("u8[]", "u16[2]", True),
        ("u8[]", "i4[2]", True),
        ("u16[]", "i4[2]", False),
        ("i8[]", "u64[2]", False),
        ("f16[]", "f32[2]", True),
        ("f32[]", "f16[2]", False),
        ("f32[]", "i64[2]", None),
        ("i64[]", "f64[2]", False),
    ],
)
def test_a_scalar_takes_the_type_of_what_is_none(scalar: str, other: str, is_safe: bool | None) -> None:
    expected = "f32" if is_safe is None else other.partition("[")[0]
    for pair in ((scalar, other), (other, scalar)):
        assert promoted(*pair, "pytorch_scalar_promotion=true", unsafe=True) == expected
        assert promoted(*pair, "pytorch_scalar_promotion=true") == (expected if is_safe else None)


def test_conversions_of_what_is_not_known_or_text() -> None:
    for target, given in (("i64", "i32[?]"), ("i64", "i32[4000]"), ("string", "=[1]")):
        assert inferred_value(operation(f"Convert-1 destination_type={target}"), *types(given)) is None
