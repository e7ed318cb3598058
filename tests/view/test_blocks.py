"""Repeated blocks are found in sequences of kinds of layers."""

import pytest

from ovir.view.groups import Block, find_blocks


def ranges(text: str, crossings: list[int] | None = None) -> list[tuple[int, int]]:
    """Return the ranges of the blocks of a sequence, which is written with a letter for each kind."""
    found = find_blocks([ord(letter) for letter in text], crossings or [0] * (len(text) + 1))
    return [(block.start, block.stop) for block in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("xabcdabcdabcdyz", [(1, 5), (5, 9), (9, 13)]),
        ("abcdabcd", [(0, 4), (4, 8)]),
        ("abcdabcdXwxyzwxyz", [(0, 4), (4, 8), (9, 13), (13, 17)]),
        ("aaaaaaaaaaaa", []),  # one layer again and again
        ("abababababab", []),
        ("abcabcabcabc", []),  # shorter than a block
        ("abcdefgh", []),
        ("abcd", []),
        ("", []),
    ],
)
def test_blocks_are_the_smallest_units_that_repeat(text: str, expected: list[tuple[int, int]]) -> None:
    assert ranges(text) == expected


def test_the_repetition_that_covers_most_counts() -> None:
    # Each stage has three blocks and an end; the stage comes twice.
    found = find_blocks([ord(letter) for letter in "abcdabcdabcdE" * 2], [0] * 27)
    assert [(block.start, block.stop) for block in found] == [(0, 13), (13, 26)]
    assert found[1].inner == [Block(13, 17), Block(17, 21), Block(21, 25)]


def test_blocks_begin_where_few_tensors_pass() -> None:
    # bcda, cdab and dabc come as often; only between c and d a single tensor passes.
    text = "abcdabcdabcdabc"
    crossings = [0, *(1 if letter == "d" else 3 for letter in text[1:]), 0]
    assert ranges(text, crossings) == [(3, 7), (7, 11), (11, 15)]
