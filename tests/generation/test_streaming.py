"""Text appears token by token, and never in the middle of a character."""

from collections.abc import Sequence

import pytest

from ovir.generation.streaming import TextStream

WORDS = ["▁Hello", "▁world", "!", "\n", "▁", "▁the", "re"]


def of_bytes(ids: Sequence[int]) -> str:
    return bytes(ids).decode(errors="replace")


def of_bytes_without_errors(ids: Sequence[int]) -> str:
    return bytes(ids).decode(errors="ignore")


def of_words(ids: Sequence[int]) -> str:
    """Return the text of words as SentencePiece does, without the space before the first one."""
    return "".join(WORDS[number] for number in ids).replace("▁", " ").removeprefix(" ")


@pytest.mark.parametrize("decode", [of_bytes, of_bytes_without_errors])
@pytest.mark.parametrize("text", ["plain", "naïve 日本語 \U0001f600\U0001f469\u200d\U0001f680 end", "", "é"])
def test_pieces_end_between_characters(text: str, decode: type[of_bytes]) -> None:
    stream = TextStream(decode)
    pieces = [stream.add(number) for number in text.encode()]
    assert "".join(pieces) == stream.text == text
    assert [piece for piece in pieces if piece] == list(text)
    assert stream.close() == ""


def test_bytes_that_are_no_character_come_at_the_end() -> None:
    stream = TextStream(of_bytes)
    assert [stream.add(number) for number in b"a\xe6\x97"] == ["a", "", ""]
    assert stream.close() == "\ufffd"
    assert stream.text == "a\ufffd"


def test_bytes_that_are_no_character_may_be_followed_by_text() -> None:
    stream = TextStream(of_bytes)
    assert [stream.add(number) for number in b"\xe6\x97a\xff"] == ["", "", "\ufffda", ""]
    assert stream.close() == "\ufffd"


def test_spaces_between_words_are_kept() -> None:
    ids = [0, 1, 2, 3, 5, 6, 4, 4, 0]
    stream = TextStream(of_words)
    pieces = [stream.add(number) for number in ids]
    assert pieces[:3] == ["Hello", " world", "!"]
    assert "".join(pieces) == of_words(ids)


def test_few_tokens_are_decoded_at_a_time() -> None:
    longest = 0

    def decode(ids: Sequence[int]) -> str:
        nonlocal longest
        longest = max(longest, len(ids))
        return of_bytes(ids)

    stream = TextStream(decode)
    for number in "日本語".encode() * 50:
        stream.add(number)
    assert stream.text == "日本語" * 50
    assert longest <= 6


STOPS = ("STOP", "OVER", "\n\n", "ER")


@pytest.mark.parametrize("decode", [of_bytes, of_bytes_without_errors])
@pytest.mark.parametrize(
    ("text", "expected", "stopped"),
    [
        ("plain text", "plain text", False),
        ("a STOP b", "a ", True),
        ("STOP", "", True),
        ("a SSTOP", "a S", True),
        ("a STO", "a STO", False),
        ("a VERY", "a V", True),
        ("a OVE\nOVER", "a OVE\n", True),
        ("é\n\nx", "é", True),
        ("日\n本\n", "日\n本\n", False),
    ],
)
def test_a_text_ends_before_what_stops_it(decode: type[of_bytes], text: str, expected: str, stopped: bool) -> None:
    stream = TextStream(decode, STOPS)
    pieces = []
    for number in text.encode():
        pieces.append(stream.add(number))
        assert expected.startswith("".join(pieces))
        if stream.stopped:
            break
    assert "".join([*pieces, stream.close()]) == stream.text == expected
    assert stream.stopped == stopped


def test_what_stops_a_text_may_lie_inside_a_token() -> None:
    stream = TextStream(of_words, ("wor",))
    assert [stream.add(number) for number in (0, 1)] == ["Hello", " "]
    assert (stream.stopped, stream.close(), stream.text) == (True, "", "Hello ")
