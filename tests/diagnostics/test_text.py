"""Numbers with their nouns in messages."""

import pytest

from ovir.core.shapes import Dimension
from ovir.diagnostics.wording import filled, first_quoted, plural, reason_of
from ovir.ops.base.opsets import opset_range


@pytest.mark.parametrize(
    ("value", "noun", "text"),
    [
        (1, "channel", "1 channel"),
        (3, "channel", "3 channels"),
        (0, "axis", "0 axes"),
        (Dimension(1), "index", "1 index"),
        (Dimension(2, 5), "index", "2..5 indices"),
        (2, "batch dimension", "2 batch dimensions"),
    ],
)
def test_a_number_with_its_noun(value: object, noun: str, text: str) -> None:
    assert filled(f"it has {{:{noun}}}, not {{}}", [value, (1, 2)]) == f"it has {text}, not [1,2]"


def test_other_formats_stay_what_they_are() -> None:
    assert filled("{:.2f} {!r} {} {:d}", [0.5, "a", True, 7]) == "0.50 'a' True 7"


def test_plural() -> None:
    assert [plural(n, "info") for n in (1, 2)] == ["1 info", "2 infos"]


def test_an_opset_alone_is_no_range() -> None:
    assert opset_range(1, 1) == "opset1"
    assert opset_range(4, 16) == "opset4 to opset16"


def test_the_first_names_in_quotes() -> None:
    assert [first_quoted(["a", "b", "c"][:n], 2) for n in range(4)] == ["", "'a'", "'a', 'b'", "'a', 'b' and 1 more"]


def test_the_reason_of_an_error_is_what_the_system_says() -> None:
    assert reason_of(FileNotFoundError(2, "No such file", "a/b.xml")) == "No such file"
    assert reason_of(OSError("broken")) == "broken"
    assert reason_of(ValueError("embedded null byte")) == "embedded null byte"
