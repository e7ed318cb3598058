"""Tokens are chosen from logits: the best one, or one that is drawn."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import ovir
from ovir.generation.sampling import Sampling

LOGITS = np.log(np.array([0.1, 0.4, 0.2, 0.3], np.float32))


def shares(sampling: Sampling, count: int = 1000) -> dict[int, float]:
    """Return the share of draws that give each token; the draws are spread evenly."""
    found = Counter(sampling.choose(LOGITS, (i + 0.5) / count) for i in range(count))
    return {token: number / count for token, number in found.items()}


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0), Sampling(top_k=1), Sampling(top_p=0.01)])
def test_the_best_token(sampling: Sampling) -> None:
    assert shares(sampling) == {1: 1.0}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"temperature": 1}, {0: 0.1, 1: 0.4, 2: 0.2, 3: 0.3}),
        ({"top_k": 2}, {1: 4 / 7, 3: 3 / 7}),
        ({"top_p": 0.5}, {1: 4 / 7, 3: 3 / 7}),
        ({"top_p": 0.75}, {1: 4 / 9, 3: 3 / 9, 2: 2 / 9}),
        ({"top_p": 1.0}, {0: 0.1, 1: 0.4, 2: 0.2, 3: 0.3}),
        ({"temperature": 0.5}, {0: 1 / 30, 1: 16 / 30, 2: 4 / 30, 3: 9 / 30}),
        ({"temperature": 0.5, "top_k": 3, "top_p": 0.8}, {1: 16 / 25, 3: 9 / 25}),
        ({"min_p": 0.45}, {1: 4 / 9, 3: 3 / 9, 2: 2 / 9}),
        ({"min_p": 1.0}, {1: 1.0}),
        ({"temperature": 0.5, "min_p": 0.5}, {1: 16 / 25, 3: 9 / 25}),
        ({"top_p": 0.75, "min_p": 0.7}, {1: 4 / 7, 3: 3 / 7}),
        ({"top_k": 2, "min_p": 0.01}, {1: 4 / 7, 3: 3 / 7}),
        ({"top_k": 100}, {0: 0.1, 1: 0.4, 2: 0.2, 3: 0.3}),
    ],
)
def test_shares_of_draws(arguments: dict[str, Any], expected: dict[int, float]) -> None:
    found = shares(Sampling(**arguments))
    assert found.keys() == expected.keys()
    assert all(abs(found[token] - share) < 0.003 for token, share in expected.items())


def test_ends_of_the_range_of_draws() -> None:
    assert Sampling(temperature=1).choose(LOGITS, 0.0) == 1
    assert Sampling(temperature=1).choose(LOGITS, 1.0) == 0


def test_tokens_that_are_impossible_are_never_drawn() -> None:
    logits = np.array([-np.inf, 2.0, -np.inf, 2.0], np.float32)
    found = {Sampling(temperature=5).choose(logits, draw) for draw in np.linspace(0, 1, 101)}
    assert found == {1, 3}


@pytest.mark.parametrize("penalty", [1.0, 1.3, 4.0, 0.5])
@pytest.mark.parametrize("seen", [[], [1], [3, 1, 3, 3], [0, 1, 2, 3, 4]])
@pytest.mark.parametrize("choice", [{}, {"temperature": 0.7, "min_p": 0.05}])
def test_tokens_that_were_there_are_less_probable(penalty: float, seen: list[int], choice: dict[str, Any]) -> None:
    logits = np.array([-1.0, 2.5, 0.0, 2.0, -0.1], np.float32)
    changed = [
        x if number not in seen else x / penalty if x > 0 else x * penalty for number, x in enumerate(logits.tolist())
    ]
    before = logits.copy()
    for draw in np.linspace(0.01, 0.99, 9):
        found = Sampling(**choice, repetition_penalty=penalty).choose(logits, draw, seen)
        assert found == Sampling(**choice).choose(np.array(changed, np.float32), draw)
    np.testing.assert_array_equal(logits, before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"temperature": -1}, "temperature must be a number of 0 or more, got -1"),
        ({"temperature": float("nan")}, "temperature must be"),
        ({"temperature": True}, "temperature must be"),
        ({"top_k": 0}, "top_k must be an integer of at least 1, got 0"),
        ({"top_k": 1.5}, "top_k must be"),
        ({"top_p": 0}, "top_p must be a number above 0 and at most 1, got 0"),
        ({"top_p": 1.01}, "top_p must be"),
        ({"min_p": 0}, "min_p must be a number above 0 and at most 1, got 0"),
        ({"temperature": 0, "min_p": 0.5}, "no effect with a temperature of 0"),
        ({"repetition_penalty": 0}, "repetition_penalty must be a number above 0, got 0"),
        ({"repetition_penalty": float("inf")}, "repetition_penalty must be"),
        ({"temperature": 1, "seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"seed": 1}, "seed has no effect"),
        ({"temperature": 0, "top_k": 5}, "no effect with a temperature of 0"),
    ],
)
def test_errors(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ovir.InputError, match=message):
        Sampling(**arguments)
