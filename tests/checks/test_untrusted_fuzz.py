"""Files that are changed at random cost their check no more than its budget, and end in a verdict."""

from __future__ import annotations

import random
from functools import partial

import pytest
from fuzz import untrusted

FILES = 60


@pytest.mark.slow
def test_mutated_files_get_verdicts() -> None:
    seeds = untrusted.read_seeds([untrusted.EXAMPLES])
    result = untrusted.fuzz(partial(untrusted.mutate, seeds), range(FILES))
    assert result.faults == []
    assert result.errors > FILES // 2


@pytest.mark.slow
def test_two_tricks_together_are_refused() -> None:
    result = untrusted.fuzz(untrusted.composed, range(FILES))
    assert result.faults == []
    assert result.errors == FILES


@pytest.mark.parametrize("mutation", dict.fromkeys(untrusted.OF_XML), ids=lambda mutation: mutation.__name__)
def test_each_mutation_changes_files(mutation: untrusted.Mutation) -> None:
    seeds = untrusted.read_seeds([untrusted.EXAMPLES])
    assert sum(mutation(xml, random.Random(1)) != xml for xml, _ in seeds) > len(seeds) // 2


def test_a_mutant_is_made_of_its_seed_alone() -> None:
    seeds = untrusted.read_seeds([untrusted.EXAMPLES])
    assert untrusted.mutate(seeds, 5) == untrusted.mutate(seeds, 5)
