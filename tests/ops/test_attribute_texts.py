"""Texts of attributes: what ``format`` writes, ``parse`` reads."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovir import ops
from ovir.core.element_types import ELEMENT_TYPES, ElementType, f32
from ovir.core.shapes import Dimension, PartialShape
from ovir.ops.base import opsets
from ovir.ops.base.attributes import REQUIRED, Attribute, split_names

CLASSES = [
    cls for kind, births in opsets.OPERATIONS.items() for birth in births if (cls := ops.find(kind, birth)) is not None
]

int64 = st.integers(-(2**63), 2**63 - 1)
dimension = st.one_of(
    st.builds(Dimension, st.integers(0, 99)),
    st.builds(
        lambda low, more: Dimension(low, None if more is None else low + more),
        st.integers(0, 9),
        st.one_of(st.none(), st.integers(1, 9)),
    ),
)
texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters=","), min_size=1)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    int: int64,
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    str: st.text(),
    ElementType: st.sampled_from(ELEMENT_TYPES),
    PartialShape: st.builds(PartialShape, st.one_of(st.none(), st.lists(dimension, max_size=5))),
    Dimension: dimension,
    tuple[int, ...]: st.lists(int64).map(tuple),
    tuple[float, ...]: st.lists(st.floats(allow_nan=False)).map(tuple),
    tuple[str, ...]: st.lists(texts).map(tuple),
}


def spec_of(kind: Any) -> Attribute:
    return Attribute("a", "a", kind, REQUIRED, (), None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(data=st.data())
def test_every_value_is_read_as_it_was_written(kind: Any, data: st.DataObject) -> None:
    value = data.draw(VALUES[kind])
    assert spec_of(kind).parse(spec_of(kind).format(value)) == value


def test_defaults_and_choices_are_read_as_they_are_written() -> None:
    for cls, spec in ((owner, spec) for owner in CLASSES for spec in owner.attributes.values()):
        assert spec.type in VALUES, (cls, spec)
        values = [*spec.choices, *([] if spec.default in (REQUIRED, None) else [spec.default])]
        for value in values:
            try:
                spec.check(value)
            except ValueError:
                continue  # the default stands for a missing attribute, which is not written
            assert spec.parse(spec.format(value)) == value, (cls, spec)


def sample(spec: Attribute) -> Any:
    """Return a value that an attribute may have."""
    number = max(1, spec.minimum or 1)
    values = {
        int: number,
        float: float(number),
        bool: True,
        str: "a",
        ElementType: f32,
        PartialShape: PartialShape([1]),
    }
    values |= {tuple[int, ...]: (number,), tuple[float, ...]: (float(number),), tuple[str, ...]: ("a",)}
    return spec.choices[0] if spec.choices else values[spec.type]


def test_limits_of_attributes_hold_for_every_operation() -> None:
    for cls in CLASSES:
        required = {spec.field: sample(spec) for spec in cls.required_attributes}
        for spec in cls.attributes.values():
            others = {field: value for field, value in required.items() if field != spec.field}
            for choice in spec.choices:
                assert getattr(cls(**others, **{spec.field: choice.upper()}), spec.field) == choice
            wrong = [("none of them", "is not one of")] * bool(spec.choices)
            if spec.minimum is not None:
                below = spec.minimum - 1
                wrong.append((below if spec.type in (int, float) else (below,), f"is below {spec.minimum}"))
            for value, message in wrong:
                with pytest.raises(ValueError, match=rf"attribute '{spec.name}': .*{re.escape(message)}"):
                    cls(**others, **{spec.field: value})
            if spec.required:
                with pytest.raises(ValueError, match=f"attribute '{spec.name}' is missing"):
                    cls(**others)
        with pytest.raises(ValueError, match="has no attribute 'unheard_of'"):
            cls(**required, unheard_of=1)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (int, np.int64(-3), "-3"),
        (float, 0.1, "0.10000000000000001"),
        (float, float(np.float32(0.01)), "0.0099999997764825821"),
        (float, 1.0, "1"),
        (float, float("inf"), "inf"),
        (bool, np.True_, "true"),
        (bool, False, "false"),
        (ElementType, f32, "f32"),
        (PartialShape, PartialShape([1, -1, "2..5"]), "1,?,2..5"),
        (PartialShape, PartialShape(None), "..."),
        (PartialShape, PartialShape([]), ""),
        (tuple[int, ...], [1, 2], "1, 2"),
        (tuple[float, ...], (0.1, 16.0, 1e-7), "0.1, 16, 1e-07"),
        (tuple[str, ...], ("sigmoid", "tanh"), "sigmoid, tanh"),
        (tuple[str, ...], (), ""),
    ],
)
def test_texts_are_those_of_openvino(kind: Any, value: Any, text: str) -> None:
    assert spec_of(kind).format(value) == text


@pytest.mark.parametrize(
    ("kind", "texts", "value"),
    [
        (bool, ["true", "TRUE", " True\n", "1", "yes", "YES"], True),
        (bool, ["false", "False", "0", "no", ""], False),
        (float, [".5", "5e-1", "+0.5", " 0.5\n", "0.5E0"], 0.5),
        (float, ["-inf", "-Infinity"], -np.inf),
        (tuple[float, ...], ["1.,2", " 1 , 2e0 "], (1.0, 2.0)),
        (tuple[int, ...], ["", "  "], ()),
    ],
)
def test_texts_that_are_read_alike(kind: Any, texts: list[str], value: Any) -> None:
    assert [spec_of(kind).parse(text) for text in texts] == [value] * len(texts)


@pytest.mark.parametrize(
    ("kind", "texts"), [(bool, ["2", "on", "truee"]), (float, ["1_0", "0x1", "\u0663", "1.e", ".", "1 2", ""])]
)
def test_texts_that_are_no_values(kind: Any, texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=r"is neither true nor false|is not a number"):
            spec_of(kind).parse(text)


def test_a_list_is_limited() -> None:
    most = 1 << 16
    assert len(spec_of(tuple[int, ...]).parse(",".join("1" * most))) == most
    with pytest.raises(ValueError, match=f"at most {most} items, got {most + 1}"):
        spec_of(tuple[int, ...]).parse(",".join("1" * (most + 1)))


@pytest.mark.parametrize("items", [("a,b",), (" a",), ("",)])
def test_a_list_of_texts_that_no_text_stands_for(items: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="no text stands for the list"):
        spec_of(tuple[str, ...]).format(items)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b", ["a", "b"]),
        (r"a\,b,c\d", ["a,b", r"c\d"]),
        (r"e\\,f,g", [r"e\,f", "g"]),
        (r"x\,,y", ["x,", "y"]),
        (",x,,", ["x"]),
        ("z\\", ["z\\"]),
        ("", []),
    ],
)
def test_names_are_split_as_openvino_splits_them(text: str, names: list[str]) -> None:
    assert split_names(text) == names


def test_what_a_reader_assumes() -> None:
    def text(default: Any, assumed: str | None = None) -> str:
        return Attribute("a", "a", str, default, assumed=assumed).assumed_text

    assert [text(0), text((1, 2)), text("max"), text(""), text("", "none")] == ["0", "[1,2]", "max", "''", "none"]


def test_values_that_an_attribute_allows() -> None:
    mode, count = Attribute("m", "m", str, "a", choices=("a", "B")), Attribute("n", "n", int, 0, minimum=0)
    sizes = Attribute("s", "s", tuple[int, ...], (), minimum=1)
    assert [mode.allows(value) for value in ("a", "b", "c", "")] == [True, True, False, False]
    assert [count.allows(value) for value in (0, -1, float("nan"))] == [True, False, False]
    assert [sizes.allows(value) for value in ((), (1, 2), (1, 0))] == [True, True, False]
