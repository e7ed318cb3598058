import pytest

from ovir.core.shapes import INT64, UINT64, OutOfRangeError, parse_integer, parse_value


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("+7", 7), ("\n -12", -12), ("007", 7), ("-0", 0), (str(2**63 - 1), 2**63 - 1), ("0" * 5000 + "1", 1)],
)
def test_integers(text: str, value: int) -> None:
    assert parse_integer(text) == value


@pytest.mark.parametrize(
    "text", ["", "-", "1_0", "\u0663", "\u00b2", "1.0", "0x1", "1e3", "- 1", "1 2", "\u00a01", "nan", "1 ", "1\n"]
)
def test_no_integers(text: str) -> None:
    with pytest.raises(ValueError, match="is not an integer"):
        parse_integer(text)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [(str(2**63), INT64), (str(-(2**63) - 1), INT64), ("-1", UINT64), (str(2**64), UINT64), ("9" * 5000, UINT64)],
)
def test_beyond_64_bits(text: str, allowed: range) -> None:
    with pytest.raises(OutOfRangeError, match="64-bit integers") as caught:
        parse_integer(text, allowed)
    assert len(str(caught.value)) < 200  # a long text is not repeated


@pytest.mark.parametrize(("text", "value"), [("7", 7), (" -7\n", -7), ("007", 7)])
def test_values_of_operations(text: str, value: int) -> None:
    assert parse_value(text) == value


@pytest.mark.parametrize("text", ["+7", " +7", "7\u00a0", "1_0", ""])
def test_no_values_of_operations(text: str) -> None:
    with pytest.raises(ValueError, match="is not an integer"):
        parse_value(text)
