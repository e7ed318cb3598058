"""Files that are changed at random cost their check no more than its budget, and end in a verdict."""

from __future__ import annotations

from functools import partial

import pytest
from fuzz import untrusted
from support import mutants

FILES = 60


@pytest.mark.slow
def test_mutated_files_get_verdicts() -> None:
    seeds = mutants.seeds([untrusted.EXAMPLES])
    result = untrusted.fuzz(partial(untrusted.mutate, seeds), range(FILES))
    assert result.faults == []
    assert result.errors > FILES // 2


@pytest.mark.slow
def test_two_tricks_together_are_refused() -> None:
    result = untrusted.fuzz(untrusted.composed, range(FILES))
    assert result.faults == []
    assert result.errors == FILES
