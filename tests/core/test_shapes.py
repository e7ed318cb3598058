import copy
import operator
import pickle
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product, starmap
from typing import Any

import numpy as np
import pytest

from ovir.core.element_types import ELEMENT_TYPES, ElementType, bf16, f32, i64, nf4, string, u1
from ovir.core.shapes import Dimension, PartialShape, as_dimension, as_shape, static_shape, symbol_of_sum


@pytest.mark.parametrize("text", ["[]", "[1,?,2..5]", "[...]", "[3..,..4]", "[12]"])
def test_shape_text_round_trip(text: str) -> None:
    assert str(PartialShape(text)) == str(PartialShape(text.strip("[]") or text)) == text
    assert str(PartialShape.parse(text)) == text


def test_equal_static_shapes_are_one_object() -> None:
    assert static_shape((2, 3)) is static_shape((2, 3))
    assert static_shape((2, 3)) == PartialShape("2,3")


@pytest.mark.parametrize("text", ["-2", "a", "5..2", "1.5", "", "1_0", "\u0663", str(2**63), f"1..{2**63}"])
def test_bad_dimension(text: str) -> None:
    with pytest.raises(ValueError, match="is not a dimension"):
        Dimension.parse(text)


@pytest.mark.parametrize("value", [-2, 1.5, 2.0, True, None, 2**63, (5, 2), (1, 2**63), (1, 2, 3), (1, 2.5)])
def test_no_dimension(value: Any) -> None:
    with pytest.raises(ValueError, match="is not a dimension"):
        as_dimension(value)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ((0, 5), "..5"),
        ((3, 3), "3"),
        ((5,), "5"),
        ((0,), "0"),
        ((np.int64(5),), "5"),
        ((), "?"),
        ((-1,), "?"),
        ((2, 5), "2..5"),
        ((2, -1), "2.."),
        ((2, None), "2.."),
        (("2..5",), "2..5"),
    ],
)
def test_dimension_means_what_it_means_in_openvino(arguments: tuple[Any, ...], shown: str) -> None:
    dim = Dimension(*arguments)
    assert str(dim) == shown
    assert Dimension.parse(shown) == dim
    if arguments and None not in arguments:
        assert as_dimension(arguments if len(arguments) == 2 else arguments[0]) == dim
    assert dim.is_static == shown.isdigit() == (not dim.is_dynamic)
    assert (dim.min_length, dim.max_length) == (dim.lower, -1 if dim.upper is None else dim.upper)
    assert type(dim.lower) is int
    assert pickle.loads(pickle.dumps(dim)) == copy.deepcopy(dim) == dim


@pytest.mark.parametrize(
    "arguments", [(-3,), (5, 2), (-1, 4), (1, -2), (2.0,), (1, 2.5), (True,), ("x",), (None, 3), (1, "5")]
)
def test_dimension_refuses_what_is_no_size(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=re.escape(str(arguments[0])) + ".* is not a dimension: expected"):
        Dimension(*arguments)


def test_static_dimension_is_like_its_size() -> None:
    assert Dimension(5) == 5 == Dimension(5).get_length()
    assert Dimension(5) != 4
    assert Dimension() == -1
    assert Dimension(2, None) != -1
    assert Dimension(1) != True  # noqa: E712
    assert {5: "five", -1: "any"}[Dimension(5)] == "five"
    assert {5: "five", -1: "any"}[Dimension()] == "any"  # type: ignore[index]
    assert np.zeros(PartialShape([2, 3])).shape == (2, 3)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=r"dimension 2\.\.5 is not static"):
        Dimension(2, 5).get_length()


def test_slice_of_a_shape_is_a_shape_and_a_number_is_none() -> None:
    shape = PartialShape([1, -1, 3])
    assert shape.is_dynamic
    assert str(shape[1:]) == "[?,3]"
    assert shape[:1].is_static
    assert str(PartialShape(None)[1:]) == "[...]"
    assert shape != ["a", "b", "c"]
    for value in (5, 1.5):
        with pytest.raises(ValueError, match=f"{value} is not a shape: expected a list"):
            PartialShape(value)
    for value in (None, 5, [1.5], [None]):
        with pytest.raises(ValueError, match="dimension"):
            as_shape(value)


@pytest.mark.parametrize(
    ("a", "b", "merged"),
    [
        ("[1,?]", "[1,3]", "[1,3]"),
        ("[1,2]", "[1]", None),
        ("[...]", "[7,?]", "[7,?]"),
    ],
)
def test_merge(a: str, b: str, merged: str | None) -> None:
    result = PartialShape.parse(a).merged_with(PartialShape.parse(b))
    assert (None if result is None else str(result)) == merged


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("[2,3]", "[3]", "[2,3]"),
        ("[?,3]", "[2,1]", "[2,3]"),
        ("[2]", "[3]", None),
        ("[...]", "[3]", "[...]"),
        ("[]", "[4,?]", "[4,?]"),
    ],
)
def test_broadcast(a: str, b: str, result: str | None) -> None:
    for left, right in ((a, b), (b, a)):
        shape = PartialShape.parse(left).broadcast_with(PartialShape.parse(right))
        assert (None if shape is None else str(shape)) == result


def test_equal_symbols_broadcast_to_themselves() -> None:
    size = Dimension(0, 7, symbol=3)
    result = size.broadcast_with(Dimension(0, 9, symbol=3))
    assert result == Dimension(0, 7)
    assert result is not None
    assert result.symbol == 3


INTERVALS = [(low, high) for low in range(4) for high in (*range(low, 4), None)]


def sizes(interval: tuple[int, int | None], most: int) -> range:
    """Return the sizes of an interval, those up to a number if it has no bound."""
    return range(interval[0], (most if interval[1] is None else interval[1]) + 1)


def hull(few: Iterable[int | None], more: Iterable[int | None]) -> Dimension | None:
    """Return the smallest interval of results; it has no bound if more sizes give a larger result."""
    found, further = ([size for size in results if size is not None] for results in (few, more))
    return Dimension(min(found), max(found) if max(found) == max(further) else None) if found else None


PAIRS: dict[Callable[[Any, Any], Any], Callable[[int, int], int | None]] = {
    operator.add: operator.add,
    operator.mul: operator.mul,
    Dimension.merged_with: lambda a, b: a if a == b else None,
    Dimension.broadcast_with: lambda a, b: b if a == 1 else a if b in (1, a) else None,
}


@pytest.mark.parametrize("rule", PAIRS)
def test_rules_of_two_intervals(rule: Callable[[Any, Any], Any]) -> None:
    """A result is the smallest interval, and has a symbol if it is always the size of this symbol, or a sum with it."""
    for a, b in product(INTERVALS, INTERVALS):
        few, more = (list(starmap(PAIRS[rule], product(sizes(a, most), sizes(b, most)))) for most in (8, 9))
        found = rule(Dimension(*a, symbol=1), Dimension(*b, symbol=2))
        assert found == rule(Dimension(*a), Dimension(*b)) == hull(few, more), (a, b)
        if found is not None and found.symbol:
            pairs = product(sizes(a, 8), sizes(b, 8))
            terms = {symbol_of_sum(i + 1, number): (i, number) for i in range(2) for number in range(9)}
            i, number = terms[found.symbol]
            assert all(size in (None, pair[i] + number) for size, pair in zip(few, pairs, strict=True)), (a, b)


def test_what_two_intervals_have_in_common() -> None:
    for a, b in product(INTERVALS, INTERVALS):
        one, other = Dimension(*a), Dimension(*b)
        assert one.union(other) == hull(*([*sizes(a, most), *sizes(b, most)] for most in (8, 9)))
        assert one.compatible(other) == bool({*sizes(a, 8)} & {*sizes(b, 8)})
        assert [one.contains(size) for size in range(9)] == [size in sizes(a, 8) for size in range(9)]


@pytest.mark.parametrize("divisor", [1, 2, 3])
def test_quotients_of_intervals(divisor: int) -> None:
    for interval in INTERVALS:
        dim, (few, more) = Dimension(*interval, symbol=1), (sizes(interval, most) for most in (8, 12))
        assert dim // divisor == hull(*([size // divisor for size in found] for found in (few, more)))
        assert dim.ceil_div(divisor) == hull(*([-(-size // divisor) for size in found] for found in (few, more)))
        exact = [[size for size in range(13) if size * divisor in found] for found in (few, more)]
        assert dim.exact_div(divisor) == hull(*exact)
        results = dim // divisor, dim.ceil_div(divisor), dim.exact_div(divisor)
        assert all((found is not None and found.symbol == 1) == (divisor == 1) for found in results)


@pytest.mark.parametrize(
    ("text", "element_type"),
    [("FP32", f32), ("f32", f32), ("F32", f32), ("BIN", u1), ("BF16", bf16), ("I64", i64), ("NF4", nf4)],
)
def test_element_type_spellings(text: str, element_type: ElementType) -> None:
    assert ElementType.parse(text) == element_type


@pytest.mark.parametrize(("text", "hint"), [("FP33", "fp32"), ("floaty", "expected one such as f32"), ("i128", "i8")])
def test_unknown_element_type_names_the_closest(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=rf"'{text}' is not an element type; .*{hint}"):
        ElementType.parse(text)


@pytest.mark.parametrize(
    ("text", "usual"), [("Fp16", "FP16"), ("Boolean", "BOOL"), ("unspecified", "UNSPECIFIED"), ("I64 ", "I64")]
)
def test_precisions_that_openvino_does_not_read(text: str, usual: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"'{text}' is not a precision: OpenVINO reads '{usual}'")):
        ElementType.parse_precision(text)
    assert ElementType.parse_precision(usual) == ElementType.parse(text)


def test_sizes_beyond_what_can_exist() -> None:
    """Products of products stay short numbers; of what is larger, nothing but this is known."""
    largest, beyond = Dimension(2**128, 2**128), Dimension(2**128 + 1, 2**128 + 1)
    assert (beyond, Dimension(7, 2**129)) == (largest, Dimension(7, None))
    assert Dimension(2**130, 2**131) == Dimension(2**128, None)
    assert Dimension(7, 2**128).upper == 2**128


@dataclass
class Openvinos:
    """A shape or a dimension of OpenVINO's API, which is known by what it has."""

    text: str

    def __getattr__(self, name: str) -> Any:
        if name == ("get_min_shape" if self.text.startswith("[") else "get_min_length"):
            return len
        raise AttributeError(name)

    def __str__(self) -> str:
        return self.text


def test_shapes_and_dimensions_of_openvino() -> None:
    assert as_shape(Openvinos("[1,2..5]")) == PartialShape("1,2..5")  # type: ignore[arg-type]
    assert PartialShape([Openvinos("2..5"), 7]) == PartialShape("2..5,7")  # type: ignore[list-item]
    with pytest.raises(ValueError, match="is not a shape"):
        as_shape(Openvinos("7"))  # type: ignore[arg-type]


def test_every_type_has_a_dtype_of_its_size() -> None:
    for element_type in ELEMENT_TYPES:
        if element_type.is_dynamic or element_type == string:
            continue
        assert element_type.to_dtype().itemsize == max(1, -(-element_type.bits // 8)), element_type
    assert ElementType.from_dtype(np.float16).name == "f16"
    assert ElementType.from_dtype(np.dtype("<U3")) == string
    with pytest.raises(ValueError, match="complex128"):
        ElementType.from_dtype(np.complex128)


@pytest.mark.parametrize("text", ["f32", "bf16", "BF16", "I64", "boolean", "STRING"])
def test_element_types_of_constants(text: str) -> None:
    assert ElementType.parse_stored(text) == ElementType.parse(text)


@pytest.mark.parametrize(
    ("text", "name"), [("F32", "f32"), ("FP32", "f32"), ("Boolean", "boolean"), ("BOOL", "boolean")]
)
def test_element_types_that_openvino_does_not_read_in_constants(text: str, name: str) -> None:
    with pytest.raises(ValueError, match=rf"^'{text}' is not an element type.*: OpenVINO reads '{name}'$"):
        ElementType.parse_stored(text)
