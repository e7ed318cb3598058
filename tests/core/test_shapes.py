import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest

from ovir.core.element_types import ELEMENT_TYPES, ElementType, bf16, f32, i64, nf4, string, u1
from ovir.core.shapes import Dimension, PartialShape, as_dimension, as_shape


@pytest.mark.parametrize("text", ["[]", "[1,?,2..5]", "[...]", "[3..,..4]", "[12]"])
def test_shape_text_round_trip(text: str) -> None:
    assert str(PartialShape(text)) == str(PartialShape(text.strip("[]") or text)) == text
    assert str(PartialShape.parse(text)) == text


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
        ("[2..5]", "[4..9]", "[4..5]"),
        ("[2..3]", "[4..9]", None),
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
        ("[2,1]", "[1,3]", "[2,3]"),
        ("[?,3]", "[2,1]", "[2,3]"),
        ("[1..4]", "[2..5]", "[2..5]"),
        ("[0]", "[1]", "[0]"),
        ("[0]", "[?]", "[0]"),
        ("[0]", "[2]", None),
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


def test_dimension_arithmetic() -> None:
    interval = Dimension(2, 5)
    assert interval + 3 == Dimension(5, 8)
    assert interval * Dimension(0, None) == Dimension(0, None)
    assert interval // 2 == Dimension(1, 2)
    assert interval.ceil_div(2) == Dimension(1, 3)
    assert Dimension(5, 7).exact_div(4) is None
    assert Dimension(5, 9).exact_div(4) == Dimension(2, 2)


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


def test_every_type_has_a_dtype_of_its_size() -> None:
    for element_type in ELEMENT_TYPES:
        if element_type.is_dynamic or element_type == string:
            continue
        assert element_type.to_dtype().itemsize == max(1, -(-element_type.bits // 8)), element_type
    assert ElementType.from_dtype(np.float16).name == "f16"
    assert ElementType.from_dtype(np.dtype("<U3")) == string
    with pytest.raises(ValueError, match="complex128"):
        ElementType.from_dtype(np.complex128)
