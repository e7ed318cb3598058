"""CTCGreedyDecoder, CTCGreedyDecoderSeqLen, CTCLoss."""

from itertools import groupby, product
from typing import Any

import numpy as np
import pytest
from support.tensors import reports

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, bf16, f16, f32, f64, i64
from ovir.diagnostics.errors import OperatorError
from ovir.ops.ctc import CTCGreedyDecoder, CTCGreedyDecoderSeqLen, CTCLoss


def one_hot(sequences: list[str], element_type: ElementType = f32) -> Array:
    """Data [batch, time, 4] in which the letters a, b, c and * (the blank) are the most probable."""
    letters = np.array([["abc*".index(letter) for letter in sequence] for sequence in sequences])
    return np.eye(4)[letters].astype(element_type.to_dtype())


# ----- greedy decoders


@pytest.mark.parametrize("element_type", [f16, bf16, f32, f64])
@pytest.mark.parametrize(
    ("merge", "expected"),
    [
        (True, [[0, 1, 1, 1, -1, -1, -1], [2, -1, -1, -1, -1, -1, -1]]),
        (False, [[0, 1, 1, 1, 1, -1, -1], [2, 2, -1, -1, -1, -1, -1]]),
    ],
)
def test_greedy_decoder(element_type: ElementType, merge: bool, expected: list[list[int]]) -> None:
    data = one_hot(["abb*b*b", "*ccbaaa"], element_type).transpose(1, 0, 2)
    mask = np.ones((7, 2), data.dtype)
    mask[3, 1] = mask[5, 1] = 0  # the second sequence ends at the first 0
    found = CTCGreedyDecoder(ctc_merge_repeated=merge).run(data, mask)
    assert found.dtype == data.dtype
    assert np.array_equal(found, np.array(expected).reshape(2, 7, 1, 1))


@pytest.mark.parametrize(
    ("merge", "blank", "expected", "counts"),
    [
        (True, None, [[0, 1, 1, 1, -1, -1, -1], [2, -1, -1, -1, -1, -1, -1]], [4, 1]),
        (False, None, [[0, 1, 1, 1, 1, -1, -1], [2, 2, -1, -1, -1, -1, -1]], [5, 2]),
        (True, np.array(1), [[0, 3, 3, -1, -1, -1, -1], [3, 2, -1, -1, -1, -1, -1]], [3, 2]),
        (True, np.array([9]), [[0, 1, 3, 1, 3, 1, -1], [3, 2, -1, -1, -1, -1, -1]], [6, 2]),
    ],
)
def test_greedy_decoder_with_lengths(merge: bool, blank: Array | None, expected: Any, counts: list[int]) -> None:
    op = CTCGreedyDecoderSeqLen(merge_repeated=merge, classes_index_type=i64)
    inputs = [one_hot(["abb*b*b", "*ccbaaa"]), np.array([7, 3]), *([] if blank is None else [blank])]
    classes, lengths = op.run(*inputs)
    assert (classes.tolist(), lengths.tolist()) == (expected, counts)
    assert (classes.dtype, lengths.dtype) == (np.int64, np.int32)


def test_greedy_decoder_of_nothing() -> None:
    op = CTCGreedyDecoderSeqLen()
    for shape in ((0, 3, 4), (2, 0, 4), (2, 0, 0)):
        classes, lengths = op.run(np.zeros(shape, np.float32), np.zeros(shape[0], np.int64))
        assert classes.shape == shape[:2]
        assert lengths.tolist() == [0] * shape[0]
    with pytest.raises(OperatorError, match=r"data of shape \[1,2,0\] has no classes"):
        op.run(np.zeros((1, 2, 0), np.float32), np.array([1]))


@pytest.mark.parametrize("length", [-1, 8])
def test_length_outside(length: int) -> None:
    with pytest.raises(OperatorError, match=rf"sequence_length\[1\] = {length} is outside \[0, 7\]"):
        CTCGreedyDecoderSeqLen().run(one_hot(["abb*b*b", "*ccbaaa"]), np.array([7, length]))


# ----- CTCLoss


def by_paths(logits: Array, labels: list[int], blank: int, merge: bool) -> float:
    """The definition: the sum over all paths that decode to the labels."""
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    total = 0.0
    for path in product(range(logits.shape[1]), repeat=len(logits)):
        decoded = [c for c, _ in groupby(path)] if merge else list(path)
        if [c for c in decoded if c != blank] == labels:
            total += float(np.prod(probabilities[np.arange(len(path)), path]))
    return -np.log(total) if total else np.inf


def decoded_labels(labels: list[int], unique: bool, collapse: bool) -> list[int]:
    if unique:
        return list(dict.fromkeys(labels))
    return [c for c, _ in groupby(labels)] if collapse else labels


@pytest.mark.slow
@pytest.mark.parametrize("element_type", [f16, bf16, f32, f64])
@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize(("unique", "collapse"), [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("blank", [None, 1])
def test_loss(element_type: ElementType, merge: bool, unique: bool, collapse: bool, blank: int | None) -> None:
    logits = np.random.default_rng(0).normal(size=(5, 5, 4)).astype(element_type.to_dtype())
    steps = np.array([5, 4, 5, 3, 5], np.int32)
    labels = np.array([[0, 2, 2, 0, 9], [2, 2, 2, 9, 9], [0, 0, 2, 2, 0], [9, 9, 9, 9, 9], [2, 9, 9, 9, 9]])
    counts = np.array([4, 2, 5, 0, 1])
    op = CTCLoss(ctc_merge_repeated=merge, unique=unique, preprocess_collapse_repeated=collapse)
    found = op.run(logits, steps, labels, counts, *([] if blank is None else [np.array(blank)]))
    expected = []
    for row in range(5):
        target = decoded_labels(labels[row, : counts[row]].tolist(), unique, collapse)
        used = logits[row, : steps[row]].astype(np.float64)
        expected.append(by_paths(used, target, 3 if blank is None else blank, merge))
    tolerance = {f64: 1e-12, f32: 1e-5}.get(element_type, 1e-2)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=tolerance)
    assert found.dtype == logits.dtype


def test_loss_of_large_logits_is_finite() -> None:
    logits = np.array([[[1000, 0, -1000], [-1000, 500, 1000]]], np.float32)
    arguments = (np.array([2]), np.array([[0, 1]]), np.array([2]))
    assert CTCLoss().run(logits, *arguments).tolist() == [500]


def test_loss_of_no_steps_is_0() -> None:
    zero = np.array([0])
    found = CTCLoss().run(np.zeros((1, 2, 3), np.float32), zero, np.zeros((1, 2), np.int64), zero)
    assert found.tolist() == [0]
    assert not np.signbit(found[0])


def test_a_blank_among_the_labels_is_reported() -> None:
    with reports() as found:
        for labels in ([0, 1, 2], [0, 2, 1]):  # of which two count
            CTCLoss().run(np.zeros((1, 3, 3), np.float32), np.array([3]), np.array([labels]), np.array([2]))
    assert found == ["labels contain the blank, 2, to which no path decodes"]
