"""Messages: names and values of any length and content, in one short line."""

import pytest

from ovir.diagnostics.codes import BAD_ATTRIBUTE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.wording import readable

LONG = "n" * 200_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("axis 5 is outside [-4, 3]", "axis 5 is outside [-4, 3]"),
        (f"layer 'a {LONG}' is", f"layer 'a {'n' * 63}…{'n' * 24}' is"),
        (f"the data's size is '{LONG}' x", f"the data's size is '{'n' * 65}…{'n' * 24}' x"),
        (f"{LONG} x", f"{'n' * 66}…{'n' * 25} x"),
        (f"kernel {[1] * 2000} has", f"kernel [{'1, ' * 21}1,…{', 1' * 8}] has"),
        ("no file " + "/directory" * 30 + "/model.bin", "no file " + "/directory" * 30 + "/model.bin"),
        ("two\nlines, \u202eturned, \x1b[31mred", r"two\nlines, \u202eturned, \x1b[31mred"),
    ],
    ids=["short", "in quotes", "after a possessive", "a word", "a list", "a path", "control characters"],
)
def test_readable(text: str, expected: str) -> None:
    assert readable(text) == expected


def test_quotes_without_an_end_take_no_time() -> None:
    assert len(readable(" 'a" * 100_000)) < 20_000


def test_a_finding_is_short_for_people_and_whole_for_programs() -> None:
    found = diagnose(
        BAD_ATTRIBUTE, f"'{LONG}' is not an axis", Place("model\n.xml", 3, f"layer 1 '{LONG}' (ReLU, opset1)")
    )
    assert len(str(found)) < 400
    assert str(found).startswith(r"model\n.xml:3: error[OVIR302] layer 1 'nnn")
    assert str(found).endswith("nnn' is not an axis")
    assert found.to_dict()["message"] == f"'{LONG}' is not an axis"
