"""Ids, masks and texts are equal to those of openvino_tokenizers."""

import multiprocessing
import random
import warnings
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovir
from ovir.core.arrays import Array
from ovir.tokenizers.base import unpacked
from ovir.tokenizers.patterns import known
from ovir.tokenizers.splitting import RegexSplit
from tests.support.pcre2_patterns import PATTERNS
from tests.support.tokenizer_texts import texts
from tests.support.tokenizers_operations import run, strings

for _package in ("openvino_tokenizers", "tokenizers", "transformers", "sentencepiece", "regex"):
    pytest.importorskip(_package, reason=f"{_package}, which makes or runs tokenizers, is not installed")

from tests.tokenizers.patterns_worker import split_by_all  # noqa: E402  (it imports these packages)
from tests.tokenizers.tokenizers_worker import tokenize  # noqa: E402

pytestmark = pytest.mark.oracle

KINDS = (
    "gpt2", "gpt2-left", "gpt2-padded", "qwen2", "llama2", "bert-cased", "bert-uncased", "bert-pair", "t5", "xlm-r",
    "words", "sp-unigram", "sp-bpe",
)  # fmt: skip
BATCHES = 150


STRIPPED = ("gpt2-stripped", "qwen2-stripped", "llama2-stripped", "bert-stripped", "t5-stripped", "xlm-r-stripped")
SPACES = [*map(chr, (9, 10, 11, 12, 13, 0x1C, 0x1F, 32, 0x85, 0xA0, 0x1680, 0x180E, *range(0x2000, 0x200C))), "\u2028",
          "\u2029", "\u202f", "\u205f", "\u2060", "\u3000", "\ufeff"]  # fmt: skip
"""All spaces of Unicode, and characters that are taken for spaces elsewhere."""


def batches() -> list[list[str]]:
    """Return batches in which a text is not empty; OpenVINO makes one row of others, or cannot run them."""
    draw = random.Random(5)
    sizes = [1 if draw.random() < 0.7 else draw.randint(2, 12) for _ in range(BATCHES)]
    drawn = iter(texts(sum(sizes)))
    return [[next(drawn) for _ in range(size - 1)] + [next(drawn) + "a"] for size in sizes]


def beside_spaces() -> list[list[str]]:
    """Return texts with special tokens that have spaces beside them."""
    tokens = [f"<{sides}>" for sides in ("00", "01", "10", "11")]
    forms = ("{s}{t}{s}", "a{s}{s}{t} {s}b", "é {s}{t}{s} é", "{t}{s}{t}", "{s}x{t}x{s}")
    return [[form.format(s=space, t=token) for form in forms] for space in SPACES for token in tokens]


def any_ids() -> list[Array]:
    """Return batches of ids, of which many are beyond the vocabulary, which has some 2,500."""
    draw = np.random.default_rng(7)
    ends = (3, 2600, 5000, 2**20, 2**31)
    return [draw.integers(0, end, (rows, length)) for end in ends for rows in (1, 3) for length in (1, 9)]


@pytest.fixture(scope="module")
def openvino() -> Iterator[Executor]:
    """Run what tests submit in one process of its own, which imports OpenVINO and transformers once."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, warnings.simplefilter, ("ignore",)) as executor:
        yield executor


def ran(openvino: Executor, folder: Path, kind: str, batches: list[list[str]]) -> tuple[Any, Any, Any, Any]:
    """Return tokenizer and detokenizer in ovir, and what OpenVINO made of texts and of ids."""
    expected = openvino.submit(tokenize, kind, folder, batches, any_ids()).result()
    models = [ovir.compile_model(folder / f"{kind}_{part}.xml") for part in ("tokenizer", "detokenizer")]
    return *models, *expected


def require_equal(tokenizer: Any, batches: list[list[str]], expected: Any) -> None:
    for batch, (outputs, _) in zip(batches, expected, strict=True):
        found = tokenizer([np.array(part, object) for part in (batch, batch[::-1])[: len(tokenizer.inputs)]])
        assert [array.dtype for array in found.values()] == [array.dtype for array in outputs]
        for name, one, other in zip(found, found.values(), outputs, strict=True):
            assert np.array_equal(one, other), (name, batch)


@pytest.mark.parametrize("kind", KINDS)
def test_ids_masks_and_texts(openvino: Executor, tmp_path: Path, kind: str) -> None:
    some = [*batches(), *([[""]] if kind != "bert-pair" else [])]
    tokenizer, detokenizer, expected, texts_of_ids = ran(openvino, tmp_path, kind, some)
    require_equal(tokenizer, some, expected)
    for batch, (outputs, decoded) in zip(some, expected, strict=True):
        assert detokenizer([outputs[0]])[0].tolist() == decoded, batch
    for ids, decoded in zip(any_ids(), texts_of_ids, strict=True):
        assert detokenizer([ids])[0].tolist() == decoded, ids
        assert detokenizer([-1 - ids])[0].tolist() == [""] * len(ids)
    require_rows_of_empty_texts(tokenizer)


def require_rows_of_empty_texts(tokenizer: Any) -> None:
    """Hold the rows of several empty texts, or of none, against the row of one."""
    one, *others = (tokenizer([np.array([""] * count, object)] * len(tokenizer.inputs)) for count in (1, 0, 2, 8))
    for count, found in zip((0, 2, 8), others, strict=True):
        for name, array in found.items():
            if array.ndim == 2:  # no shape
                assert (len(array), array.dtype) == (count, one[name].dtype)
                assert all(row.tolist() == one[name][0].tolist() for row in array)


@pytest.mark.parametrize("kind", STRIPPED)
def test_spaces_beside_special_tokens(openvino: Executor, tmp_path: Path, kind: str) -> None:
    tokenizer, _, expected, _ = ran(openvino, tmp_path, kind, beside_spaces())
    require_equal(tokenizer, beside_spaces(), expected)


CHARACTERS = [
    "".join(character for character in map(chr, range(start, start + 256)) if known(character) == character).encode()
    for start in (*range(0, 0x3200, 256), 0xFB00, 0xFE00, 0xFF00, 0x10300, 0x1D400, 0x1F300, 0x1F600)
]
"""Characters up to Unicode 17; newer ones match like unassigned ones."""
SHORT = [
    b"aAbB 12{3} a{e} ]x [y] (z) a-b \\w\\ \n\nfoo fo\tfooo aa-aa ababab k{,2} \"q\" 'x' \r\n_", b"aab|]-^$.*+?",
    "é\u0301İıiIßẞſ\u212a".encode(), b"x\n", b"abc123ABC\n\n",
]  # fmt: skip


def require_equal_words(openvino: Executor, searches: list[tuple[str, dict[str, Any]]], texts: list[bytes]) -> None:
    """Hold the words of texts, in rows of their own, against those of OpenVINO, for patterns and attributes."""
    every = openvino.submit(split_by_all, searches, texts).result()
    rows = np.arange(len(texts), dtype=np.int32), np.arange(1, len(texts) + 1, dtype=np.int32)
    for (pattern, attributes), expected in zip(searches, every, strict=True):
        search = np.frombuffer(pattern.encode(), np.uint8)
        given: dict[str, Any] = {name: str(value).lower() for name, value in attributes.items()}
        begins, ends, *found = run("RegexSplit", *rows, *strings(*texts), search, outputs=5, **given)
        words = unpacked(*found)
        split = [words[begin:end] for begin, end in zip(begins, ends, strict=True)]
        assert split == expected, (pattern, attributes)


def test_patterns_match_as_in_pcre2(openvino: Executor) -> None:
    """Split texts at the matches of many patterns, of which some match nothing because PCRE2 refuses them."""
    require_equal_words(openvino, [(pattern, {"behaviour": "isolate"}) for pattern in PATTERNS], [*SHORT, *CHARACTERS])


@pytest.mark.parametrize("count", [20, 500])
def test_what_becomes_of_matches(openvino: Executor, count: int) -> None:
    """Split texts with and without matches at their ends, in all ways; more than a few are split at once."""
    attributes = [
        {"behaviour": kind, "invert": invert, "max_splits": splits}
        for kind in RegexSplit.attributes["behaviour"].choices
        for invert in (False, True)
        for splits in (-1, 1, 2)
    ]
    every = [bytes(text) for length in range(7) for text in product(b"a,;", repeat=length)]
    some = random.Random(3).sample(every, count)
    texts = [b"", *some, b"", *some]
    searches = [(pattern, each) for pattern in (",", "[,;]", "[,;]+", ",|(?<=a);") for each in attributes]
    require_equal_words(openvino, searches, texts)


def test_files_have_no_faults(openvino: Executor, tmp_path: Path) -> None:
    ran(openvino, tmp_path, "gpt2", [])
    for part in ("tokenizer", "detokenizer"):
        assert [d for d in ovir.check(tmp_path / f"gpt2_{part}.xml") if d.severity == ovir.Severity.ERROR] == []
