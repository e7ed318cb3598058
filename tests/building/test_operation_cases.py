"""Random models of every operation version are rebuilt by the functions of the opsets."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.cases import VERSIONS, make_case
from support.rebuilding import difference, rebuilt

import ovir

ATTEMPTS = 6
"""Random models of each operation version, of which some are illegal."""
ENOUGH = 3
"""Models that are rebuilt, after which no further one is made."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("index", "version"), list(enumerate(VERSIONS)), ids=lambda value: str(value))
def test_cases_are_rebuilt(index: int, version: tuple[str, int], tmp_path: Path) -> None:
    rebuilds = 0
    for attempt in range(ATTEMPTS):
        case = make_case(index + attempt * len(VERSIONS))
        try:
            model = ovir.read_model(case.text, case.weights)
        except ovir.OvirError:
            continue  # an illegal model
        feeds = {port.any_name: array for port, array in zip(model.inputs, case.feeds, strict=True)}
        assert difference(model, rebuilt(model, tmp_path), feeds) == "", f"attempt {attempt}"
        rebuilds += 1
        if rebuilds == ENOUGH:
            break
    assert rebuilds
