"""Models of single operations, two of every version: none must show a fault. See ``fuzz.operations``."""

from __future__ import annotations

from collections import Counter

import pytest

from fuzz import operations
from fuzz.cases import VERSIONS, make_case
from ovir.fuzzing.recipes import RECIPES, recipe_name
from ovir.ops import find

pytestmark = pytest.mark.slow

COUNT = 2 * len(VERSIONS)


def test_models_of_all_operations() -> None:
    trials = list(operations.fuzz(0, COUNT, processes=2))
    assert not [trial for trial in trials if trial.fault], operations.summary(trials)
    assert sum(trial.status == "ran" for trial in trials) > 0.7 * COUNT
    counted = Counter(trial.name for trial in trials)
    assert len(counted) == len(VERSIONS)
    assert set(counted.values()) == {2}


def test_real_numbers_become_integers_in_one_way() -> None:
    trials = list(operations.fuzz(0, COUNT, processes=2, extreme=True))
    assert not [trial for trial in trials if trial.fault], operations.summary(trials)
    assert sum(trial.status == "ran" for trial in trials) > 0.5 * COUNT


def test_every_recipe_is_needed() -> None:
    assert {recipe_name(cls) for version in VERSIONS if (cls := find(*version)) is not None} == set(RECIPES)


def test_a_seed_makes_one_model() -> None:
    for seed in range(50):
        one, other = make_case(seed), make_case(seed)
        assert (one.name, one.text, one.weights) == (other.name, other.text, other.weights)
