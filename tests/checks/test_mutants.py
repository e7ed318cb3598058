"""Files that are broken at random neither hang nor crash ovir, and get diagnostics. See ``mutants``, which makes them."""

from pathlib import Path

import pytest
from support import mutants

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "xml"
COUNT = 100
"""Mutants of each test. With `python tests/support/mutants.py` as many as you like can be tried."""


@pytest.fixture(scope="module")
def files() -> list[tuple[str, bytes, bytes | None]]:
    return mutants.seeds([str(EXAMPLES)])


@pytest.mark.parametrize("first", [0, COUNT, 2 * COUNT, 3 * COUNT])
def test_mutants_of_the_examples(first: int, files: list[tuple[str, bytes, bytes | None]]) -> None:
    wrong = {}
    for seed in range(first, first + COUNT):
        name, text, weights = files[seed % len(files)]
        if (fault := mutants.fault(mutants.mutate(text, seed), weights)) is not None:
            wrong[f"seed {seed} of {Path(name).name}"] = fault
    assert wrong == {}
