"""Arrays of strings and their bytes, and arrays that cannot be written to."""

import numpy as np
import pytest

from ovir.core.arrays import decoded_strings, integer_text, join_strings, read_only, split_strings
from ovir.diagnostics.errors import OperatorError

TEXT = np.frombuffer("aé漢".encode(), np.uint8)


@pytest.mark.parametrize(
    ("begins", "ends", "expected"),
    [
        ([[0, 1], [3, 6]], [[1, 3], [6, 6]], [["a", "é"], ["漢", ""]]),
        ([], [], []),
        ([0, -1], [1, 2], "string 1 has bytes [-1, 2), outside the text of 6 bytes"),
        ([[0], [3]], [[1], [2]], "string 1 has bytes [3, 2), outside the text of 6 bytes"),
        ([3, 6], [7, 6], "string 0 has bytes [3, 7), outside the text of 6 bytes"),
        ([0, 0, 2], [1, 3, 3], "string 2 is not UTF-8"),
    ],
)
def test_strings_that_bytes_hold(begins: list[int], ends: list[int], expected: list[str] | str) -> None:
    places = np.array(begins, np.int64), np.array(ends, np.int64)
    if isinstance(expected, list):
        found = split_strings(TEXT, *places)
        assert found.tolist() == expected
        whole, stops = join_strings(found)
        assert (whole.tobytes().decode(), stops.tolist()) == ("".join(found.ravel()), sorted(stops))
        assert np.diff([0, *stops]).tolist() == [len(item.encode()) for item in found.ravel()]
        return
    with pytest.raises(OperatorError) as caught:
        split_strings(TEXT, *places)
    assert caught.value.message.startswith(expected)


def test_as_many_begins_as_ends() -> None:
    with pytest.raises(ValueError, match="shorter"):
        split_strings(TEXT, np.zeros(3, np.int64), np.ones(1, np.int64))


def test_bytes_that_are_not_utf_8() -> None:
    assert split_strings(TEXT, np.array([0, 2]), np.array([2, 3]), strict=False).tolist() == ["a\ufffd", "\ufffd"]
    found = decoded_strings(np.array([[b"\xff", "b"], [b"c", "\ue000"]], object))
    assert (found.dtype, found.tolist()) == (np.dtype(object), [["\udcff", "b"], ["c", "\ue000"]])
    assert join_strings(found)[0].tobytes() == b"\xffbc\xee\x80\x80"
    assert decoded_strings(np.array([b"c", "\x80"], object)).dtype.kind == "T"


def test_integers_of_messages() -> None:
    assert [integer_text(sign * (2**256 - 1)) for sign in (1, -1)] == [str(2**256 - 1), str(1 - 2**256)]
    assert [integer_text(sign * 2**256) for sign in (1, -1)] == ["2^256 or more", "-2^256 or more"]


def test_views_that_cannot_be_written_to() -> None:
    array = np.zeros(3)
    view = read_only(array)
    assert np.shares_memory(view, array)
    assert (view.flags.writeable, array.flags.writeable) == (False, True)
    assert read_only(view) is view
    assert read_only("text") == "text"
