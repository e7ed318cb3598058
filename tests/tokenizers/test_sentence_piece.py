"""SentencepieceTokenizer with ends and special tokens."""

import io
import random
from importlib.metadata import version
from itertools import product
from string import ascii_lowercase
from typing import Any

import numpy as np
import pytest
from support.tokenizers_operations import run, strings

import ovir
from ovir.core.arrays import Array
from ovir.tokenizers.base import unpacked


def model(**options: Any) -> tuple[Any, Array]:
    """Return a processor, and its model as an input."""
    sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece, of the extra tokenizers, is missing")
    written = io.BytesIO()
    texts = iter(["the quick brown fox", "the lazy dog", "a fox and a dog"] * 9)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=texts, model_writer=written, vocab_size=40, hard_vocab_limit=False, minloglevel=2, **options
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    return processor, np.frombuffer(written.getvalue(), np.uint8)


def ids(proto: Array, texts: list[str], special: dict[str, int] | None = None, **attributes: Any) -> list[list[int]]:
    tokens = (*strings(*special), np.int32(list(special.values()))) if special else ()
    found = run("SentencepieceTokenizer", proto, *strings(*texts), *tokens, outputs=3, **attributes)
    return [found[1][found[0][:, 0] == row].tolist() for row in range(len(texts))]


@pytest.mark.parametrize("reverse", [False, True])
def test_parts_between_special_tokens(reverse: bool) -> None:
    processor, proto = model()
    quick, dog = processor.encode("quick"), processor.encode("dog")
    found = ids(
        proto,
        ["quick<x>dog<x>", "<x>", "", "the dog"],
        {"<x>": 77, "the": 88},
        add_bos="true",
        add_eos="true",
        reverse=str(reverse).lower(),
    )
    expected = [[1, *quick, 77, 1, *dog, 77, 2], [77, 2], [2], [88, 1, *dog, 2]]
    assert found == [row[::-1] if reverse else row for row in expected]


def test_the_model_names_the_pieces_at_the_ends() -> None:
    processor, proto = model(bos_piece="<begin>", eos_piece="<end>")
    assert ids(proto, ["dog"], add_bos="true", add_eos="true") == [[1, *processor.encode("dog"), 2]]


def test_a_piece_that_the_model_does_not_have() -> None:
    _, proto = model(bos_id=-1)
    with pytest.raises(ovir.OvirError, match="no piece that add_bos could add"):
        ids(proto, ["dog"], add_bos="true")


@pytest.mark.parametrize("seed", range(4))
def test_ties_are_broken_as_in_openvino_tokenizers(seed: int) -> None:
    """A sum is kept in f32, but compared in f64 before it is rounded; so one that rounds to the same may be better."""
    schema = pytest.importorskip("sentencepiece.sentencepiece_model_pb2", reason="protobuf, which writes the model")
    if version("sentencepiece").split(".") >= ["0", "2", "2"]:
        pytest.skip("this sentencepiece, which breaks ties otherwise, is newer than ovir[tokenizers] allows")
    proto = schema.ModelProto.FromString(model(add_dummy_prefix=False)[1].tobytes())
    del proto.pieces[3:]
    draw = random.Random(seed)
    scores = {letter: np.float32(-draw.randint(1, 99) / 10) for letter in ascii_lowercase}
    pairs = ["".join(pair) for pair in product(scores, repeat=2)]
    scores |= {pair: np.float32(scores[pair[0]] + scores[pair[1]]) for pair in pairs}
    for piece, score in scores.items():
        proto.pieces.add(piece=piece, score=score)
    numbers = {piece: number for number, piece in enumerate(scores, 3)}
    expected = [
        [numbers[a], numbers[b]] if float(scores[a]) + float(scores[b]) > float(scores[a + b]) else [numbers[a + b]]
        for a, b in pairs
    ]
    assert {len(row) for row in expected} == {1, 2}
    assert ids(np.frombuffer(proto.SerializeToString(), np.uint8), pairs) == expected


@pytest.mark.parametrize("kind", ["SentencepieceDetokenizer", "SentencepieceStreamDetokenizer"])
@pytest.mark.parametrize("outside", [-(2**31), -1, 1000, 2**31 - 1])
def test_ids_outside_the_vocabulary_have_no_text(kind: str, outside: int) -> None:
    processor, proto = model()
    row = processor.encode("the dog")
    known, found = (run(kind, proto, np.int32([numbers] * 2), outputs=3) for numbers in (row, [outside, *row, outside]))
    assert unpacked(*found) == unpacked(*known) != [b"", b""]
