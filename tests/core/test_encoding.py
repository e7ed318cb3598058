"""The bytes of tensors in a .bin."""

import numpy as np
import pytest

from ovir.core.element_types import ELEMENT_TYPES, ElementType, boolean, string, u3, u6
from ovir.core.encoding import decode, encode, longest_string
from ovir.diagnostics.errors import OperatorError


@pytest.mark.parametrize(
    ("element_type", "raw", "values"),
    [
        ("u1", "b180", [1, 0, 1, 1, 0, 0, 0, 1, 1, 0]),
        ("u2", "e401", [0, 1, 2, 3, 1]),
        ("u4", "2103", [1, 2, 3]),
        ("i4", "2f08", [-1, 2, -8]),
        ("nf4", "700f", [0, 7, 15]),
        ("f4e2m1", "2107", [0.5, 1.0, 6.0]),
        ("u3", "1b1b0f400000", [0, 1, 2, 3, 4, 5, 6, 7, 1]),
        ("u3", "1b1b0f40", [0, 1, 2, 3, 4, 5, 6, 7, 1]),
        ("u6", "121f0b500000", [1, 2, 33, 63, 5]),
        ("f8e4m3", "38", [1.0]),
        ("f8e5m2", "3c", [1.0]),
        ("f8e8m0", "7f", [1.0]),
        ("bf16", "803f", [1.0]),
        ("boolean", "0100", [True, False]),
    ],
)
def test_layouts(element_type: str, raw: str, values: list[float]) -> None:
    kind = ElementType.parse(element_type)
    array = decode(np.frombuffer(bytes.fromhex(raw), np.uint8), kind, [len(values)])
    assert array.dtype == kind.to_dtype()
    assert array.astype(np.float64).tolist() == values
    assert not array.flags.writeable
    assert encode(array, kind).tobytes()[: len(raw) // 2].hex() == raw


@pytest.mark.parametrize("kind", [kind for kind in ELEMENT_TYPES if kind.bits], ids=str)
def test_values_of_any_number_are_written_as_they_are_read(kind: ElementType) -> None:
    """Values that fill their bytes have one form; others end with bits that are ignored and written as zeros."""
    rng = np.random.default_rng(5)
    for count in range(33):
        raw = rng.integers(0, 2 if kind == boolean else 256, -(-count * kind.bits // 24) * 3, np.uint8)
        values = decode(raw, kind, [count])
        written = encode(values, kind)
        assert decode(written, kind, [count]).tobytes() == values.tobytes()
        if count * kind.bits % 24 == 0:
            assert written.tobytes() == raw.tobytes()
        elif kind not in (u3, u6):  # these fill whole blocks
            assert written.size == -(-count * kind.bits // 8)


def test_every_byte_but_zero_is_true() -> None:
    array = decode(np.array([0, 1, 2, 255], np.uint8), boolean, [2, 2])
    assert array.tolist() == [[False, True], [True, True]]
    assert encode(array, boolean).tolist() == [0, 1, 1, 1]


def _strings(*items: str) -> bytes:
    encoded = [item.encode() for item in items]
    ends = np.cumsum([0, *map(len, encoded)])
    return np.array([len(items), *ends], "<i4").tobytes() + b"".join(encoded)


def test_strings() -> None:
    raw = bytes.fromhex("03000000 00000000 02000000 09000000 09000000") + "hiżółw".encode()
    assert raw == _strings("hi", "żółw", "")
    values = decode(np.frombuffer(raw, np.uint8), string, [3, 1])
    assert values.tolist() == [["hi"], ["żółw"], [""]]
    assert encode(values, string).tobytes() == raw


@pytest.mark.parametrize(
    ("raw", "longest"),
    [
        (_strings("hi", "żółw", ""), 7),
        (_strings("a", "", "hi") + b"bc", 2),
        (np.array([1, 0, 99, 500], "<i4").tobytes(), 16),
        (np.array([-3, 0, 7], "<i4").tobytes(), 0),
        (b"abc", 0),
        (b"", 0),
    ],
)
def test_the_longest_of_strings_that_may_be_broken(raw: bytes, longest: int) -> None:
    assert longest_string(np.frombuffer(raw, np.uint8)) == longest


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"ab", "has 2 bytes: it ends within the count"),
        (_strings("a"), "holds 1 strings, the shape 2"),
        (np.array([2, 0, 1, 9], "<i4").tobytes() + b"ab", r"string 1 has bytes \[1, 9\), outside the text of 2"),
        (np.array([2, 0, 1, 2], "<i4").tobytes() + b"\xff\xfe", "string 0 is not UTF-8"),
        (np.array([2, 0], "<i4").tobytes(), "ends within the offsets"),
    ],
)
def test_broken_strings(raw: bytes, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        decode(np.frombuffer(raw, np.uint8), ElementType.parse("string"), [2])
