"""The operations of openvino_tokenizers on small inputs made by hand."""

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.tokenizers_operations import model_of, run, strings

import ovir
from ovir.core.arrays import Array
from ovir.diagnostics.errors import OperatorError
from ovir.tokenizers import splitting
from ovir.tokenizers.base import Memo, ranges, unpacked
from ovir.tokenizers.charsmap import CompiledMap
from ovir.tokenizers.patterns import runs_of_classes, searched

NOTHING = np.zeros(0, np.uint8)


def matched(kind: str, *inputs: Array, **options: Any) -> list[Array]:
    """Return the outputs of an operation that searches a pattern."""
    pytest.importorskip("regex", reason="regex, of the extra tokenizers, is not installed")
    return run(kind, *inputs, **options)


def rows(*words: list[str | bytes]) -> tuple[Array, ...]:
    """Return rows of strings."""
    ends = np.cumsum([len(row) for row in words], dtype=np.int32)
    return np.int32([0, *ends[:-1]]), ends, *strings(*(word for row in words for word in row))


def text(value: str) -> Array:
    return np.frombuffer(value.encode(), np.uint8)


def i32(*numbers: int) -> Array:
    return np.int32(numbers)


def words(found: list[Array]) -> list[list[bytes]]:
    """Return the strings of rows."""
    texts = unpacked(*found[2:5])
    return [texts[begin:end] for begin, end in zip(found[0], found[1], strict=True)]


def ids(found: list[Array]) -> list[list[int]]:
    return [found[2][begin:end].tolist() for begin, end in zip(found[0], found[1], strict=True)]


# --------------------------------------------------------------------------- strings


def test_strings_are_unpacked_compared_and_packed() -> None:
    begins, ends, symbols = run("StringTensorUnpack", np.array(["hi", "żółw"]), outputs=3)
    assert (begins.tolist(), ends.tolist(), symbols.tobytes().decode()) == ([0, 2], [2, 9], "hiżółw")
    assert run("StringTensorPack", begins, ends, symbols)[0].tolist() == ["hi", "żółw"]
    assert run("EqualStr", *strings("a", "b", ""), *strings("a"))[0].tolist() == [1, 0, 0]


def test_packed_strings_of_older_files() -> None:
    data = np.int32([2, 0, 2, 5]).tobytes() + b"hiabc"
    begins, ends, symbols = run("StringTensorUnpack", np.frombuffer(data, np.uint8), outputs=3)
    assert unpacked(begins, ends, symbols) == [b"hi", b"abc"]
    for count in (9, 3, -1):
        with pytest.raises(ovir.RunError, match=f"16 bytes cannot hold {count} packed strings"):
            run("StringTensorUnpack", np.frombuffer(np.int32([count, 0, 2, 5]).tobytes(), np.uint8), outputs=3)
    types = [str(port.type) for port in model_of("StringTensorUnpack", np.zeros(21, np.uint8), outputs=3).outputs]
    assert types == ["i32[..3]", "i32[..3]", "u8[..21]"]


def test_bytes_that_are_not_utf_8() -> None:
    symbols = run("StringTensorUnpack", np.array([b"a\xff\xe2\x82", b"b"]), outputs=3)[2]
    assert symbols.tobytes() == b"a\xff\xe2\x82b"
    assert run("StringTensorPack", *strings(b"a\xff\xe2\x82"))[0].tolist() == ["a\ufffd\ufffd"]


def test_bytes_and_the_characters_that_stand_for_them() -> None:
    found = run("BytesToChars", *rows(["a b", b"\x00\xff"], ["\n", b"!~\x7f\xa0\xa1\xac\xad\xae"]), outputs=5)
    assert [[word.decode() for word in row] for row in words(found)] == [["aĠb", "Āÿ"], ["Ċ", "!~ġł¡¬Ń®"]]
    again = run("CharsToBytes", *found, outputs=3)
    assert unpacked(*again) == [b"a b\x00\xff", b"\n!~\x7f\xa0\xa1\xac\xad\xae"]
    with pytest.raises(ovir.RunError, match="stands for no byte"):
        run("CharsToBytes", *rows(["€"]), outputs=3)


NFC, NFD, NFKC, NFKD = ({"normalization_form": form, "remove_extra_whitespaces": "false"} for form in ("nfc", "nfd", "nfkc", "nfkd"))  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "source", "attributes", "expected"),
    [
        ("ByteFallback", "<0x0A>", {}, "\n"),
        ("ByteFallback", "<0xFF>", {}, b"\xff"),
        ("ByteFallback", "<user>", {}, "<user>"),
        ("UTF8Validate", b"a\xc3\xa9b", {"replace_mode": "true"}, "aéb"),
        ("UTF8Validate", b"a\xc3\xa9b", {}, "aéb"),
        ("UTF8Validate", b"a\xc3", {"replace_mode": "true"}, "a\ufffd"),
        ("UTF8Validate", b"a\xc3", {}, "a"),
        ("UTF8Validate", b"\xe2\x82x\x80", {"replace_mode": "true"}, "\ufffdx\ufffd"),
        ("UTF8Validate", b"\xe2\x82x\x80", {}, "x"),
        ("UTF8Validate", b"\xc0\xaf\xe0\x80\xaf", {"replace_mode": "true"}, "\ufffd" * 5),
        ("UTF8Validate", b"\xc0\xaf\xe0\x80\xaf", {}, ""),
        ("UTF8Validate", b"\xf0\x9f\x98\xf0\x9f\x98\x80", {"replace_mode": "true"}, "\ufffd\U0001f600"),
        ("UTF8Validate", b"\xf0\x9f\x98\xf0\x9f\x98\x80", {}, "\U0001f600"),
        ("UTF8Validate", b"\xff\xf8", {"replace_mode": "true"}, "\ufffd\ufffd"),
        ("UTF8Validate", b"\xff\xf8", {}, ""),
        ("CaseFold", "AÄ", {}, "aÄ"),
        ("CaseFold", "AÄ", {"encoding": "utf-8"}, "aä"),
        ("NormalizeUnicode", " É  x", {"normalization_form": "NFD"}, b" E\xcc\x81  x"),
        ("CharsMapNormalization", "é", NFD, "e\u0301"),
        ("CharsMapNormalization", "e\u0301 q\u0323\u0307", NFC, "é q\u0323\u0307"),
        ("CharsMapNormalization", "ﬁ①ｶﾞ", NFKC, "fi1ガ"),
        ("CharsMapNormalization", "ÀßẞΣİ", {**NFC, "normalization_form": "identity", "case_fold": "true"}, "àßßσİ"),
        ("CharsMapNormalization", "Å㎏", {**NFKD, "case_fold": "true"}, "a\u030akg"),
        ("CharsMapNormalization", "  a   b ", {"normalization_form": "nfd"}, "a b"),
        ("CharsMapNormalization", "a  b", {"normalization_form": "nfd"}, "a b"),
        ("CharsMapNormalization", " a", {"normalization_form": "nfd"}, "a"),
        ("CharsMapNormalization", "a ", {"normalization_form": "nfd"}, "a"),
        ("CharsMapNormalization", "a b", {**NFC, "add_dummy_prefix": "true", "escape_whitespaces": "true"}, "▁a▁b"),
        ("CharsMapNormalization", b"a\xffb", NFC, "a\ufffdb"),
    ],
)
def test_strings_are_changed(kind: str, source: str | bytes, attributes: dict[str, str], expected: str | bytes) -> None:
    wanted = expected.encode() if isinstance(expected, str) else expected
    assert unpacked(*run(kind, *strings(source), outputs=3, **attributes)) == [wanted]


def test_rows_are_fused() -> None:
    """As in openvino_tokenizers, a row without strings has the next string."""
    begins, ends = run("FuzeRagged", *rows(["a", "bc"], [], ["d"])[:4], outputs=2)
    assert (begins.tolist(), ends.tolist()) == ([0, 3, 3], [3, 4, 4])


def test_results_for_words_are_kept_up_to_a_length_and_a_number() -> None:
    computed: list[str] = []
    memo: Memo[str, int] = Memo(lambda key: computed.append(key) or len(key), 2)
    longest, longer = "x" * 256, "x" * 257
    keys = ["a", "a", "bb", "a", "ccc", "ccc", "a", longest, longest, longer, longer, longest]
    assert [memo[key] for key in keys] == list(map(len, keys))
    assert computed == ["a", "bb", "ccc", "a", longest, longer, longer]  # the third one begins anew


def test_begins_and_ends_that_do_not_fit() -> None:
    with pytest.raises(OperatorError, match="1 begins and 2 ends of strings do not fit"):
        unpacked(i32(0), i32(1, 2), NOTHING)
    with pytest.raises(OperatorError, match="2 begins and 1 ends of rows do not fit"):
        ranges(i32(0, 1), i32(1), 2)


# --------------------------------------------------------------------------- normalization


@pytest.mark.parametrize(
    ("pattern", "replacement", "source", "expected"),
    [
        (r"\s+", " ", "a \t\u00a0b\nc", "a b c"),
        (r"([\p{Han}])", r" $1 ", "a漢b", "a 漢 b"),
        (r"(^)(.)", r"_\2", "\nx", "_\nx"),
        (r"[\x{4E00}-\x{9FFF}]", "$$", "漢字x", "$$x"),
        (r"(a)|(b)", "$1", "xab", "xab"),  # group 1 has no match for b
        (r"\w", "w", "é_\u0301-", "www-"),
        (r"[[:punct:]]", "", "a!$€b", "a€b"),
        (r"\u0558", "x", "\u0558", "\u0558"),  # a letter since Unicode 18
    ],
)
def test_patterns_are_replaced(pattern: str, replacement: str, source: str, expected: str) -> None:
    pattern = pattern.replace(r"\u0558", r"\p{L}")
    found = matched("RegexNormalization", *strings(source), text(pattern), text(replacement), outputs=3)
    assert unpacked(*found) == [expected.encode()]


def test_what_is_cut_off_is_not_replaced() -> None:
    found = matched("RegexNormalization", *strings(b"ab\xe2\x82", b"a\xffb\xf0"), text("(?=)."), text("x"), outputs=3)
    assert unpacked(*found) == [b"xx\xe2\x82", b"xxx\xf0"]


def test_strings_may_be_left_as_they_are() -> None:
    found = matched(
        "RegexNormalization", *strings("aa", "aa"), np.array([True, False]), text("a"), text("b"), outputs=4,
        global_replace="false",
    )  # fmt: skip
    assert unpacked(*found[:3]) == [b"aa", b"ba"]
    assert found[3].tolist() == [True, False]
    folded = run("CaseFold", *strings("A", "A"), np.array([True, False]), outputs=4)
    assert unpacked(*folded[:3]) == [b"A", b"a"]


def compiled_map(texts: dict[bytes, bytes], draw: random.Random) -> bytes:
    """Return keys and their texts as SentencePiece compiles them; ``draw`` chooses where the children of a node are."""
    places, used, units, joined = dict[bytes, int](), {0}, dict[int, int](), b""
    for key, value in texts.items():
        places[key], joined = len(joined), joined + value + b"\0"

    def add(node: int, label: int, key: bytes) -> None:
        labels = sorted({other[len(key)] for other in texts if other.startswith(key) and other != key})
        labels = [0] * (key in texts) + labels
        while True:
            offset, is_far = draw.randrange(1, 400), draw.random() < 0.3
            children = [node ^ (offset << 8 if is_far else offset) ^ other for other in labels]
            if used.isdisjoint(children):
                break
        used.update(children)
        units[node] = label | offset << 10 | is_far << 9 | (key in texts) << 8
        for child, other in zip(children, labels, strict=True):
            if other:
                add(child, other, key + bytes([other]))
            else:
                units[child] = 1 << 31 | places[key]

    add(0, 0, b"")
    array = np.zeros(max(units) + 1, np.uint32)
    array[list(units)] = list(units.values())
    return int(array.nbytes).to_bytes(4, "little") + array.tobytes() + joined


@pytest.mark.parametrize("seed", range(4))
def test_the_longest_keys_of_a_compiled_map_are_replaced(seed: int) -> None:
    draw = random.Random(seed)
    keys = ["".join(draw.choices("abé漢", k=draw.randrange(1, 5))) for _ in range(30)]
    texts = {key: draw.choice(["", "x", "ÿ漢", key[:1]]) for key in keys}
    sources = ["".join(draw.choices("abé漢c", k=40)) for _ in range(8)]

    def mapped(text: str) -> str:
        if not text:
            return ""
        found = max((key for key in texts if text.startswith(key)), key=len, default="")
        return texts[found] + mapped(text[len(found) :]) if found else text[0] + mapped(text[1:])

    data = compiled_map({key.encode(): value.encode() for key, value in texts.items()}, draw)
    skips = np.array([number % 2 == 0 for number in range(8)])
    found = run(
        "CharsMapNormalization",
        *strings(*sources),
        skips,
        np.frombuffer(data, np.uint8),
        outputs=4,
        remove_extra_whitespaces="false",
    )
    expected = [text if skip else mapped(text) for text, skip in zip(sources, skips, strict=True)]
    assert [text.decode() for text in unpacked(*found[:3])] == expected
    assert CompiledMap(bytes(4)).alone("é").decode() == "é"
    compiled = CompiledMap(data)
    for character in "abé漢c":
        after = {key[1].encode()[0] for key in keys if key[0] == character and key[1:]}
        assert sorted(compiled.seconds(character)) == sorted(after)


@pytest.mark.parametrize("data", ["a", "\x10\x00\x00\x00ab", "\x05\x00\x00\x00abcde", "\x04\x00\x00\x00abc"])
def test_a_map_that_is_truncated(data: str) -> None:
    with pytest.raises(ovir.RunError, match=f"the compiled map of {len(data)} bytes is truncated"):
        run("CharsMapNormalization", *strings("a"), text(data), outputs=3)


# --------------------------------------------------------------------------- splitting


@pytest.mark.parametrize(
    ("source", "attributes", "expected"),
    [
        ("a, b", {"behaviour": "remove"}, ["a", "b"]),
        ("a, b", {"behaviour": "isolate"}, ["a", ",", " ", "b"]),
        ("a, b", {"behaviour": "contiguous"}, ["a", ", ", "b"]),
        ("a, b", {"behaviour": "mergedwithnext"}, ["a", " b"]),
        # As OpenVINO splits them.
        ("a, b", {"behaviour": "mergedwithprevious"}, ["a,", "a, ", "b"]),
        (",ab", {"behaviour": "mergedwithprevious"}, [",", "ab"]),
        ("a,", {"behaviour": "mergedwithprevious"}, ["a,"]),
        ("a, b", {"behaviour": "mergedwithprevious", "invert": "true"}, ["a", " b"]),
        (",a", {"behaviour": "mergedwithnext"}, [",a"]),
        ("a,", {"behaviour": "mergedwithnext"}, ["a", ","]),
        ("", {"behaviour": "mergedwithnext"}, [""]),
        ("a,", {"behaviour": "mergedwithnext", "invert": "true"}, ["a,"]),
        ("a,b", {"behaviour": "mergedwithnext", "invert": "true"}, ["a,"]),
        ("a,,b", {"behaviour": "mergedwithnext", "invert": "true"}, ["a,", "a,,"]),
        (",b", {"behaviour": "mergedwithnext", "invert": "true"}, [","]),
        ("ab", {"behaviour": "mergedwithnext", "invert": "true"}, []),
        ("", {"behaviour": "mergedwithnext", "invert": "true"}, []),
        ("a,b", {"behaviour": "mergedwithnext", "invert": "true", "max_splits": 1}, ["a,"]),
        ("a, b", {"behaviour": "isolate", "max_splits": 1}, ["a", ", b", " ", "b"]),
        ("a, b", {"behaviour": "remove", "invert": "true"}, [",", " "]),
        ("é,ü", {"behaviour": "remove"}, ["é", "ü"]),
        (b"a,\xff", {"behaviour": "remove"}, [b"a", b"\xff"]),
        (b"\xc3,a,b", {"behaviour": "remove"}, [b"\xc3,a", b"b"]),
        ("", {"behaviour": "isolate"}, []),
    ],
)
def test_strings_are_split(source: str | bytes, attributes: dict[str, Any], expected: list[str | bytes]) -> None:
    (found,) = words(matched("RegexSplit", *rows([source]), text("[, ]"), outputs=5, **attributes))
    assert found == [word.encode() if isinstance(word, str) else word for word in expected]


def test_special_tokens_are_left_as_they_are() -> None:
    pattern = text(r"(<s>|<é>)(?:\s*)|(?:\s*)(<m>)|x+")
    found = matched("SpecialTokensSplit", *rows(["ä<s> b<é>", "é <m>cxx"], [""]), pattern, outputs=6)
    assert words(found) == [
        ["ä".encode(), b"<s>", b"b", "<é>".encode(), "é".encode(), b"<m>", b"c", b"xx"],
        [],
    ]
    assert found[5].tolist() == [False, True, False, True] * 2
    again = matched("RegexSplit", *found, text("."), outputs=6, behaviour="isolate")
    assert words(again)[0] == words(found)[0]
    more = matched("SpecialTokensSplit", *found, text("s|c"), outputs=6)
    assert (words(more), more[5].tolist()) == (words(found), [False, True, False, True, False, True, True, True])


def test_empty_special_tokens_are_none() -> None:
    found = matched("SpecialTokensSplit", *rows(["axxb", "xa"]), text("x*"), outputs=6)
    assert (words(found), found[5].tolist()) == ([[b"a", b"xx", b"b", b"x", b"a"]], [False, True, False, True, False])


@pytest.mark.parametrize("count", [1, 5, 16, 40, 200, 5000])
def test_characters_and_their_places_in_the_bytes(count: int) -> None:
    draw = random.Random(count)
    text = "".join(draw.choice("a\x7f\x80\u07ff\u0800\uffff\U00010000\U0001f600\u0558") for _ in range(count)) + "é"
    seen, places = searched(text.encode())
    assert seen == text.replace("\u0558", "\u0378")  # which is newer than the Unicode of PCRE2
    assert list(places) == [len(text[:i].encode()) for i in range(count + 2)]


def test_characters_of_texts_that_are_not_utf_8() -> None:
    seen, places = searched("aé漢\U0001f600".encode() + b"\x80\xf0\x9f")
    assert (seen, list(places)) == ("aé漢\U0001f600\x80", [0, 1, 3, 6, 10, 11])


def test_a_pattern_is_searched_once_in_each_word(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    original = splitting.searched
    monkeypatch.setattr(splitting, "searched", lambda word: seen.append(word) or original(word))
    split = rows(["a-b", "é-", "a-b"], ["é-", "a-b"])
    found = matched("RegexSplit", *split, text("-(?!x)"), outputs=5, behaviour="isolate")
    assert [[word.decode() for word in row] for row in words(found)] == [
        ["a", "-", "b", "é", "-", "a", "-", "b"],
        ["é", "-", "a", "-", "b"],
    ]
    assert sorted(set(seen)) == [b"a-b", "é-".encode()]
    assert len(seen) == 2


CLASSES = (
    r"\s+",
    r"[!-/]|[:-@]|[\x{4E00}-\x{9FFF}]",
    r"\w+|[^\w\s]+",
    r"(\p{L})",
    r"a|\p{N}+",
    r"\w+|[a-z]+",
    r"(é|,)+",
    "▁",
)


def long_text(seed: int) -> str:
    """Return a text of some hundred characters of all sizes in UTF-8, with special tokens."""
    draw = random.Random(seed)
    return "".join(draw.choice(["<s>", *"ab,. \n▁é漢字9\u0301\u0558\U0001f600\U00020000"]) for _ in range(400))


@pytest.mark.parametrize("pattern", CLASSES)
@pytest.mark.parametrize("attributes", [{"behaviour": "isolate"}, {"behaviour": "contiguous"}, {}, {"invert": "true"},
                                        {"behaviour": "mergedwithnext"}, {"behaviour": "mergedwithprevious"}])  # fmt: skip
def test_splits_at_classes_of_characters(pattern: str, attributes: dict[str, str]) -> None:
    """Other patterns are searched in each string; ``(?=)`` makes a pattern such a one and changes no match."""
    some = rows([long_text(1), ""], [], [long_text(2), "a", long_text(3)])
    split = matched("SpecialTokensSplit", *some, text(r"(<s>)(?:\s*)"), outputs=6)  # leaves gaps between strings
    assert runs_of_classes(pattern)
    assert not runs_of_classes(f"(?=){pattern}")
    for given in (split, some):
        one, other = (
            matched("RegexSplit", *given, text(search), outputs=len(given), **attributes)
            for search in (pattern, f"(?=){pattern}")
        )
        assert words(one) == words(other)
        assert [array.tolist() for array in one[5:]] == [array.tolist() for array in other[5:]]


@pytest.mark.parametrize(
    ("pattern", "texts", "mode", "is_searched"),
    [
        *((pattern, [long_text(1), "", "a"], "isolate", pattern == r"\w+|[a-z]+") for pattern in CLASSES),
        (r"\s+", ["é" * 150], "remove", False),
        (r"\s+", ["é" * 149 + "a"], "remove", True),  # NumPy takes longer for short texts
        (r"\s+", ["é" * 150, "a"], "mergedwithnext", False),
        (r"\s+", ["é" * 150, ""], "mergedwithnext", True),  # an empty string is a word
        (r"\s+", ["é" * 150, b"\xff"], "remove", True),
        (r"\s+", ["é" * 150], "mergedwithprevious", True),
    ],
)
def test_when_strings_are_searched_one_by_one(
    pattern: str, texts: list[str | bytes], mode: str, is_searched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []
    original = splitting.searched
    monkeypatch.setattr(splitting, "searched", lambda word: seen.append(word) or original(word))
    matched("RegexSplit", *rows(texts), text(pattern), outputs=5, behaviour=mode)
    assert bool(seen) == is_searched


@pytest.mark.parametrize("pattern", CLASSES)
@pytest.mark.parametrize("replacement", ["", " $1 ", "[${1}$1]", "x"])
@pytest.mark.parametrize("ending", [b"", b"\xff\xe2"])
def test_characters_of_classes_are_replaced(pattern: str, replacement: str, ending: bytes) -> None:
    source = strings(long_text(4).encode() + ending)
    one, other = (
        matched("RegexNormalization", *source, text(search), text(replacement), outputs=3)
        for search in (pattern, f"(?=){pattern}")
    )
    assert unpacked(*one) == unpacked(*other)


@pytest.mark.parametrize("space", [*" \t\n\v\f\r\x85\xa0\u1680\u180e\u2000\u2003\u2028\u2029\u202f\u205f\u3000"])
def test_all_spaces_of_unicode_beside_special_tokens(space: str) -> None:
    source = f"a{space}<l>{space}b{space}{space}<r>{space}é{space}<b> {space}"
    pattern = text(r"(?:\s*)(<l>)|(<r>)(?:\s*)|(?:\s*)(<b>)(?:\s*)")
    found = matched("SpecialTokensSplit", *rows([source]), pattern, outputs=6)
    (row,) = words(found)
    assert [word.decode() for word in row] == ["a", "<l>", f"{space}b{space * 2}", "<r>", "é", "<b>"]


@pytest.mark.parametrize(("begins", "ends"), [((0, 100), (200, 380)), ((0, 400), (400, 400)), ((100, 0), (300, 90))])
def test_strings_that_overlap(begins: tuple[int, ...], ends: tuple[int, ...]) -> None:
    given = i32(0), i32(2), i32(*begins), i32(*ends), text("ab, c" * 80)
    one, other = (matched("RegexSplit", *given, text(search), outputs=5) for search in (r"\s+", r"(?=)\s+"))
    assert words(one) == words(other) != [[]]


def test_strings_that_older_files_leave_as_they_are() -> None:
    found = matched("RegexSplit", *rows(["a b", "<a b>"]), text(" "), *strings("<a b>"), outputs=5)
    assert words(found) == [[b"a", b"b", b"<a b>"]]


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        (r"[\81]|\o{101}|\07|\102|\N{U+43}|\x44\x{45}|\cA|\10", "8 x 1 y A \x07 z B C DE \x01 \x08"),
        (r"(?i)i", "x I i İı"),
        (r"(?i)[i]|[^\W\diı]", "x I i İ ı1"),
        (r"(?i:[^i])", "x Ii İ ı"),
        (r"(?i:\p{Lu})|\p{^L}|\PM", "a A 1 \u0301"),
        (r"\p{sc=Greek}|\p{scx:Cyrl}|\p{Han}|\p{L&}|\p{Common}", "α я a 漢 、 \u0301"),
        (r"\p{Lu}x|[\p{Ll}]y", "Ax axAyz ay"),
        (r"\p{Greek}y|\p{sc=Greek}z", "\u0342y \u0342zx αz"),
        (r"\Qa.b\E|[\Q^]\Ec]|[]^-]|[a-c-e]", "a.b x a c ] ^ - e"),
        (r"[[:^digit:]c]x|[[:upper:]\d]|\t\R", "1 ax 2 cx \t\r\n"),
        (r"a{ 1 , 2 }b|c{,2}d|e{2}?", "a aab ccd ee {,2}"),
        (r"(?<n>a)(?'m'b)\k<n>\g{m}|(?P<o>c)(?P=o)(?P>o)|(d)\g{-1}\4", "abab ccx ccc ddd"),
        (r"a(?i)b|c(?-i)d|(?i)(?^:e)", "aB Cd CDE e"),
        (r"(?i:a(?s-i:b.))(?:c|d(?i))e|(?m:^f$)", "Ab\nce deF\n f"),
        (r"a++b|(c)?(?(1)d|e)|(?<k>f)(?(<k>)g|h)|(?#no)i", "aab cd e fg i"),
        (r"(?<=a{1,2})b|(?<!x)c(?=d)|(e|f)\1|(g)(?2)", "a b bxc c d ee ff gg h"),
        (r"[\W\d]z|[^\W\d]y|[^[:alpha:]\P{L}]|\w\B|\bw\b", "1z -z ay by _ w- w"),
    ],
)
def test_what_the_constructs_of_pcre2_match(pattern: str, parts: str) -> None:
    """As in OpenVINO. The parts are written with spaces between them."""
    found = matched("RegexSplit", *rows([parts.replace(" ", "")]), text(pattern), outputs=5, behaviour="isolate")
    assert [word.decode() for word in words(found)[0]] == parts.split(" ")


BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (BLOOM, "a parenthesis is closed that is not open"),
        ("(", "a parenthesis is not closed"),
        ("[a", "a bracket is not closed"),
        ("[c-a]|a", "the range c-a is out of order"),
        (r"[\w-a]", "a range of characters begins or ends with a set"),
        ("[:alpha:]", "a class of POSIX is outside of brackets"),
        ("[[:letter:]]", r"\[:letter:\] is not a class of POSIX"),
        (r"\p{Letter}", "the property 'Letter' is unknown"),
        (r"\u0061", r"\\u means nothing"),
        (r"\g", r"\\g means nothing"),
        (r"\i<a>", r"\\i means nothing"),
        ("a{2,1}", r"a?\{2,1\} is not a number of times"),
        ("*a", r"\* repeats nothing"),
        ("(?:+a)", r"\+ repeats nothing"),
        ("a**", r"\* repeats nothing"),
        (r"\x{110000}", r"there is no character U\+110000"),
        (r"\x{d800}", r"there is no character U\+D800"),
        (r"\x{dfff}", r"there is no character U\+DFFF"),
        ("[[=a=]]", r"\[=a=\] is not a class of POSIX"),
        (r"\p{age=3}", "the property 'age=3' is unknown"),
        ("(?<=a+)a", r"\+ looks behind without limit"),
    ],
)
def test_patterns_that_pcre2_refuses_match_nothing(pattern: str, reason: str) -> None:
    for _ in range(2):  # the second model finds the pattern prepared
        warnings: list[str] = []
        pieces = matched(
            "RegexSplit", *rows(["a b.a"]), text(pattern), outputs=5, behaviour="isolate", warnings=warnings
        )
        assert words(pieces) == [[b"a b.a"]]
        assert len(warnings) == 1
        assert re.search(f"PCRE2 refuses the pattern .*: {reason}", warnings[0])
    assert unpacked(*matched("RegexNormalization", *strings("a b.a"), text(pattern), text("x"), outputs=3)) == [
        b"a b.a"
    ]


@pytest.mark.parametrize("opening", ["(", "(?:", "(?=", "(a|"])
@pytest.mark.parametrize("depth", [60, 3000, 20_000])
def test_groups_that_are_nested_too_deep(opening: str, depth: int) -> None:
    pattern = text(opening * depth + "a" + ")" * depth)
    if depth == 60:
        matched("RegexSplit", *rows(["a"]), pattern, outputs=5)
        return
    with pytest.raises(ovir.RunError, match=r"the pattern .* cannot be used: its groups are nested too deep"):
        matched("RegexSplit", *rows(["a"]), pattern, outputs=5)


@pytest.mark.parametrize("pattern", ["(?x)a", r"\X", r"(a)\g<1>", "(*UTF)a", r"\p{bc=L}", "(?C1)a"])
def test_patterns_that_have_no_translation(pattern: str) -> None:
    with pytest.raises(ovir.RunError, match=r"cannot be used: .*has no translation"):
        matched("RegexSplit", *rows(["a"]), text(pattern), outputs=5)


# --------------------------------------------------------------------------- models

VOCABULARY = ("a", "b", "c", "ab", "bc", "abc", "<0xC3>", "<0xA9>", "?")


@pytest.mark.parametrize(
    ("merges", "attributes", "expected"),
    [
        (("a b", "ab c"), {}, [[5, 2, 0], []]),
        (("b c", "a b"), {}, [[0, 4, 2, 0], []]),
        (("a b",), {"byte_fallback": "true"}, [[3, 2, 2, 0], [6, 7]]),
        (("a b",), {"unk_token": "?"}, [[3, 2, 2, 0], [8, 8]]),
        (("a b",), {"unk_token": "?", "byte_fallback": "true"}, [[3, 2, 2, 0], [6, 7]]),
    ],
)
def test_bpe(merges: tuple[str, ...], attributes: dict[str, str], expected: list[list[int]]) -> None:
    made = [merge.replace(" ", "") for merge in ("a b", "b c", "ab c") if merge not in merges]
    vocabulary = strings(*(f"<{word}>" if word in made else word for word in VOCABULARY))
    assert (
        ids(run("BPETokenizer", *rows(["abcca"], ["é"]), *vocabulary, *strings(*merges), outputs=3, **attributes))
        == expected
    )
    left, right = zip(*(merge.split(" ") for merge in merges), strict=True)
    pairs = (*strings(*left), *strings(*right))
    assert ids(run("BPETokenizer", *rows(["abcca"], ["é"]), *vocabulary, *pairs, outputs=3, **attributes)) == expected


@pytest.mark.parametrize(("unknown", "expected"), [("?", [0, 1, 2, 2, 2]), ("none", [0, 1])])
def test_bytes_without_a_token(unknown: str, expected: list[int]) -> None:
    vocabulary = (*strings("a", "<0xC3>", "?"), *strings())
    found = run("BPETokenizer", *rows(["aéxy"]), *vocabulary, outputs=3, byte_fallback="true", unk_token=unknown)
    assert ids(found) == [expected]


def test_further_tokens_and_the_end_of_words_of_bpe() -> None:
    vocabulary = strings("a", "a</w>", "</w>")
    added = (*strings("<s>"), i32(7))
    for merges in (strings("a </w>"), (*strings("a"), *strings("</w>"))):
        found = run("BPETokenizer", *rows(["aa", "<s>"]), *vocabulary, *merges, *added, outputs=3, end_suffix="&lt;/w>")
        assert ids(found) == [[0, 1, 7, 2]]
    with pytest.raises(ovir.RunError, match="a merge needs b'x', which is not in the vocabulary"):
        run("BPETokenizer", *rows(["a"]), *vocabulary, *strings("a x"), outputs=3)


def test_long_words_of_bpe_take_linear_time() -> None:
    vocabulary, merges = strings("a", "aa", "aaaa"), strings("a a", "aa aa")
    found = run("BPETokenizer", *rows(["a" * 100_001]), *vocabulary, *merges, outputs=3)
    assert ids(found) == [[2] * 25_000 + [0]]


def test_wordpiece() -> None:
    vocabulary = (*strings("[UNK]", "un", "##aff", "##able", "##a", "u"), i32(0)[0])
    found = run("WordpieceTokenizer", *rows(["unaffable", "unx", "u", "x"], ["u" * 101]), *vocabulary, outputs=3)
    assert ids(found) == [[1, 2, 3, 0, 5, 0], [0]]


def test_trie() -> None:
    vocabulary = (*strings("a", "ab", "c"), i32(10, 11, 12))
    assert ids(run("TrieTokenizer", *rows(["abac"], []), *vocabulary, outputs=3)) == [[11, 10, 12], []]
    with pytest.raises(ovir.RunError, match="no word of the vocabulary begins with b'xa'"):
        run("TrieTokenizer", *rows(["axa"]), *vocabulary, outputs=3)


def test_unigram() -> None:
    vocabulary = strings("<unk>", "a", "b", "ab", "é")
    scores = np.float32([0, -1, -1, -1.5, -3])
    found = run("UnigramTokenizer", *rows(["abaé", "xyb", b"\xc3"], [""]), *vocabulary, scores, outputs=3)
    assert ids(found) == [[3, 1, 4, 0, 2, 0], []]


def test_whole_words() -> None:
    known = (*strings("a", "b", "a"), i32(5, 6, 7), i32(-1)[0])
    assert run("VocabEncoder", *strings("b", "a", "x"), *known)[0].tolist() == [6, 5, -1]


@pytest.mark.parametrize("is_input", [True, False])
def test_ids_become_words(is_input: bool) -> None:
    skipped = ([i32(1)], {}) if is_input else ([], {"skip_tokens": "1"})
    found = run("VocabDecoder", i32([0, 1], [2, 9]), *strings("a", "</s>", "b"), *skipped[0], outputs=5, **skipped[1])
    assert words(found) == [[b"a", b""], [b"b", b""]]
    empty = run("VocabDecoder", np.zeros((2, 0), np.int32), *strings("a"), *skipped[0], outputs=5, **skipped[1])
    assert words(empty) == [[b""], [b""]]


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("TrieTokenizer", (*strings("a", "b"), i32(1))),
        ("TrieTokenizer", (*strings("a"), i32(1, 2))),
        ("UnigramTokenizer", (*strings("a", "b"), np.float32([1]))),
        ("BPETokenizer", (*strings("a", "b", "ab"), *strings("a"), *strings("b", "a"))),
        ("BPETokenizer", (*strings("a"), *strings(), *strings("b", "c"), i32(1))),
    ],
)
def test_parts_of_a_vocabulary_that_do_not_fit(kind: str, model: tuple[Array, ...]) -> None:
    with pytest.raises(ovir.RunError, match=r"longer|shorter"):
        run(kind, *rows(["a"]), *model, outputs=3)
    with pytest.raises(ovir.RunError, match=r"longer|shorter"):
        run("VocabEncoder", *strings("a"), *strings("a", "b"), i32(1), i32(-1)[0])


# --------------------------------------------------------------------------- shaping


def ragged(*lists: list[int]) -> tuple[Array, Array, Array]:
    ends = np.cumsum([len(row) for row in lists], dtype=np.int32)
    return np.int32([0, *ends[:-1]]), ends, np.int32([number for row in lists for number in row])


@pytest.mark.parametrize(("side", "expected"), [("right", [[1, 2], [4]]), ("left", [[2, 3], [4]])])
def test_rows_are_cut(side: str, expected: list[list[int]]) -> None:
    found = run("Truncate", *ragged([1, 2, 3], [4]), np.int32(2), text(side), text("longest_first"), outputs=3)
    assert ids(found) == expected


def halves(longest: int, first: int, second: int) -> tuple[int, int]:
    """Return the most equal lengths, of which the longer row has the larger one."""
    ways = [(n, longest - n) for n in range(first + 1) if 0 <= longest - n <= second]
    return min(ways, key=lambda way: (abs(way[0] - way[1]), (way[0] > way[1]) != (first >= second)))


@pytest.mark.parametrize("longest", range(8))
def test_pairs_of_rows_are_cut(longest: int) -> None:
    lengths = [(n, m) for n in range(6) for m in range(6)]
    rules: dict[str, Callable[[int, int], tuple[int, int]]] = {
        "longest_first": lambda n, m: halves(longest, n, m),
        "only_first": lambda n, m: (min(n, longest), m),
        "only_second": lambda n, m: (n, min(m, longest)),
    }
    for mode, rule in rules.items():
        pair = (ragged(*([7] * both[side] for both in lengths)) for side in (0, 1))
        found = run(
            "Truncate", *(x for rows in pair for x in rows), np.int32(longest), text("right"), text(mode), outputs=6
        )
        cut = [(len(one), len(other)) for one, other in zip(ids(found[:3]), ids(found[3:]), strict=True)]
        assert cut == [rule(n, m) if n + m > longest else (n, m) for n, m in lengths]
    with pytest.raises(ovir.RunError, match="unknown mode b'last' of truncation"):
        run("Truncate", *ragged([1, 2]), *ragged([1]), np.int32(1), text("right"), text("last"), outputs=6)
    with pytest.raises(ovir.RunError, match="the side is b'top', not left or right"):
        run("Truncate", *ragged([1, 2]), np.int32(1), text("top"), text("longest_first"), outputs=3)


def test_segments_are_combined() -> None:
    token = np.int32(0), np.int32(1), np.int64([101])
    rows_begin, rows_end, numbers = ragged([1, 2], [])
    found = run("CombineSegments", *token, rows_begin, rows_end, np.int64(numbers), *token, i32(0, 1, 2), outputs=6)
    assert ids(found[:3]) == [[101, 1, 2, 101], [101, 101]]
    assert ids(found[3:]) == [[0, 1, 1, 2], [0, 2]]
    none = [i32()] * 3
    assert [array.size for array in run("CombineSegments", *none, *none, i32(0, 1), outputs=6)] == [0] * 6


@pytest.mark.parametrize(("right", "expected"), [("true", [[1, 2, 9], [3, 9, 9]]), ("false", [[9, 1, 2], [9, 9, 3]])])
def test_rows_are_padded(right: str, expected: list[list[int]]) -> None:
    dense, mask = run("RaggedToDense", *ragged([1, 2], [3]), np.int32(3), np.int32(9), outputs=2, pad_right=right)
    assert dense.tolist() == expected
    assert mask.tolist() == (np.array(expected) != 9).tolist()


@pytest.mark.parametrize(("begin", "end"), [(0, 3), (0, 2**31 - 1), (-2, 1), (2, 1)])
def test_rows_outside_of_their_elements(begin: int, end: int) -> None:
    row = i32(begin), i32(end), i32(1, 2)
    message = rf"a row is \[{begin}, {end}\), outside of the 2 elements"
    with pytest.raises(ovir.RunError, match=message):
        run("CombineSegments", *row, i32(0), outputs=6)
    with pytest.raises(ovir.RunError, match=message):
        run("RaggedToDense", *row, np.int32(3), np.int32(9), outputs=2)
    of_strings = i32(begin), i32(end), *strings("a", "b")
    with pytest.raises(ovir.RunError, match=message):
        run("CharsToBytes", *of_strings, outputs=3)
    with pytest.raises(ovir.RunError, match=message):
        matched("RegexSplit", *of_strings, text(" "), outputs=5)


def test_the_largest_of_no_lengths() -> None:
    dense, mask = run("RaggedToDense", i32(), i32(), i32(), np.int32(-(2**31)), np.int32(9), outputs=2)
    assert (dense.shape, mask.shape) == ((0, 0), (0, 0))
    with pytest.raises(ovir.RunError, match="the length must not be negative, got -1"):
        run("RaggedToDense", *ragged([1]), np.int32(-1), np.int32(9), outputs=2)


# --------------------------------------------------------------------------- what goes wrong


TOKEN = np.int32(0), np.int32(1), np.int64([5])


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes", "types"),
    [
        ("Truncate", (*ragged([1], [2]), np.int32(2), text("right"), text("")), {}, "i32[2] i32[2] i32[2]"),
        ("CombineSegments", (*TOKEN, *ragged([1], [2])[:2], np.int64([1, 2]), i32(1, 2)), {},
         "i32[2] i32[2] i64[?] i32[2] i32[2] i32[?]"),
        ("RaggedToDense", (*ragged([1], [2]), np.int32(3), np.int32(9)), {}, "i32[2,?] boolean[2,?]"),
        ("RaggedToDense", (i32(), i32(), i32(), np.int32(3), np.int32(9)), {}, "i32[0,?] boolean[0,?]"),
        ("CaseFold", strings("a", "b"), {}, "i32[2] i32[2] u8[?]"),
        ("CaseFold", (*strings("a", "b"), np.array([True, False])), {}, "i32[2] i32[2] u8[?] boolean[2]"),
        ("CharsMapNormalization", (*strings("a"), np.zeros(4, np.uint8)), {}, "i32[1] i32[1] u8[?]"),
        ("RegexSplit", (*rows(["a"], ["b"]), text("a"), *strings("a")), {}, "i32[2] i32[2] i32[?] i32[?] u8[?]"),
        ("RegexSplit", (*rows(["a"], ["b"]), np.array([True, False]), text("a")), {},
         "i32[2] i32[2] i32[?] i32[?] u8[?] boolean[?]"),
        ("CombineSegments", TOKEN, {}, "three inputs for each ragged tensor and one more, got 3"),
        ("CombineSegments", (*TOKEN, i32(1), i32(1)), {}, "three inputs for each ragged tensor and one more, got 5"),
        ("CombineSegments", (np.int64(0), *TOKEN[1:], i32(0)), {}, "input 0 must be i32, got i64"),
        ("CombineSegments", (TOKEN[0], np.int64(1), TOKEN[2], i32(0)), {}, "input 1 must be i32, got i64"),
        ("CombineSegments", (*ragged([], []), *ragged([], [], []), i32(1, 2)), {}, "rows of shape [2] and [3] do not fit"),
        ("RegexSplit", (*rows(["a"]), text("a")), {"max_splits": 0}, "max_splits must be -1 or above 0, got 0"),
        ("RegexSplit", (*rows(["a"]), text("a")), {"max_splits": -2}, "max_splits"),
    ],
)  # fmt: skip
def test_types_of_outputs(kind: str, inputs: tuple[Array, ...], attributes: dict[str, Any], types: str) -> None:
    if "[" in types.split(" ")[0]:
        model = model_of(kind, *inputs, outputs=types.count("["), **attributes)
        assert " ".join(str(port.type) for port in model.outputs) == types
        return
    with pytest.raises(ovir.ModelError, match=re.escape(types)):
        model_of(kind, *inputs, outputs=6, **attributes)


def test_inputs_are_checked() -> None:
    with pytest.raises(ovir.ModelError, match=r"takes 8 inputs .* got 3"):
        run("VocabEncoder", *strings("a"))
    with pytest.raises(ovir.ModelError, match="symbols must be u8, got i32"):
        run("ByteFallback", i32(0), i32(1), i32(97), outputs=3)


def test_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ovir.InputError, match="the tokenizer needs regex") as caught:
        run("RegexSplit", *rows(["a"]), text("never used before"), outputs=5)
    assert caught.value.diagnostics[0].hint == 'pip install "ovir[tokenizers]"'


def test_a_user_may_replace_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    from ovir.ops.base import registry

    monkeypatch.setattr(registry, "_users", dict(registry._users))

    @ovir.register("ByteFallback", version="extension")
    class Mine(ovir.Operator):
        def infer(self, begins: ovir.TensorType, ends: ovir.TensorType, symbols: ovir.TensorType) -> Any:
            return begins, ends, symbols

        def run(self, begins: Array, ends: Array, symbols: Array) -> Any:
            return begins.copy(), ends.copy(), symbols.copy()

    assert unpacked(*run("ByteFallback", *strings("<0x0A>"), outputs=3)) == [b"<0x0A>"]
