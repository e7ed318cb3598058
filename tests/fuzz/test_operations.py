"""Models of single operations, two of every version: none must show a fault. See ``fuzz.operations``."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fuzz import operations
from fuzz.cases import VERSIONS, choices_of, make_case
from ovir.fuzzing.cases import draw
from ovir.fuzzing.making import Make
from ovir.fuzzing.recipes import RECIPES, recipe_of
from ovir.ops import find

pytestmark = pytest.mark.slow

EXAMPLES = str(Path(__file__).parents[2] / "examples" / "xml")


RUNS: list[tuple[int, tuple[str, ...], float]] = [
    (2 * len(VERSIONS), (), 0.7),
    (2 * len(VERSIONS), ("--extreme",), 0.5),  # real numbers become integers in one way
    (2 * len(VERSIONS), ("--limits",), 0.5),
    (400, ("--broken", EXAMPLES), 0),
]
"""The number of models with certain flags, and the share of them that must run."""


def test_models_show_no_fault() -> None:
    cases = [(seed, flags) for count, flags, _ in RUNS for seed in range(count)]
    found = list(operations.fuzz(cases, processes=2))
    for count, flags, share in RUNS:
        trials = [trial for trial in found if trial.flags == flags]
        assert not [trial for trial in trials if trial.fault], operations.summary(trials)
        assert sum(trial.status == "ran" for trial in trials) > share * count
        names = Counter(trial.name for trial in trials)
        assert names.total() == count
        if not flags:
            assert (len(names), {*names.values()}) == (len(VERSIONS), {2})


def test_every_recipe_is_needed() -> None:
    used = {cls: recipe_of(cls) for version in VERSIONS if (cls := find(*version)) is not None}
    functions = set(RECIPES.values())
    assert set(used.values()) >= functions
    assert not [cls for cls, recipe in used.items() if cls.recipe and recipe in functions], "no function hides words"


def test_attributes_take_the_values_that_they_declare() -> None:
    left: set[tuple[str, str, str]] = set()
    for version in VERSIONS:
        cls = find(*version)
        values = choices_of(*version)
        for number in range(100):
            made = Make(version[0], random.Random(number), version[1])
            if values and draw(made, cls, np.random.default_rng(number)):
                values -= made.attributes.items()
        left.update((version[0], *choice) for choice in values)
    assert left == {("Interpolate", "mode", "area")}, "only the specification does not define"


def test_a_shift_may_be_a_scalar() -> None:
    roll = find("Roll", 7)
    made = [Make("Roll", random.Random(number), 7) for number in range(20)]
    for one in made:
        recipe_of(roll)(one)
    assert {len(one.inputs[1].shape) for one in made} == {0, 1}


def test_a_seed_makes_one_model() -> None:
    for seed in range(50):
        one, other = make_case(seed), make_case(seed)
        assert (one.name, one.text, one.weights) == (other.name, other.text, other.weights)
