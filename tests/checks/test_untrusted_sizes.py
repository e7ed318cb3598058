"""Files whose run takes terabytes or billions of iterations are refused, whoever decides a size; honest ones pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.oversized import CODES, MODEST, OVERSIZED

import ovir
from ovir.checks.checker import check_here
from ovir.checks.options import CheckOptions


def errors_of(model: ovir.Model, folder: Path) -> set[str]:
    ovir.save_model(model, folder / "model.xml")
    found = check_here(folder / "model.xml", None, CheckOptions(untrusted=True))
    return {d.code for d in found if d.severity.value == "error"}


@pytest.mark.parametrize("name", OVERSIZED)
def test_a_size_that_the_file_or_the_run_decides_is_refused(name: str, tmp_path: Path) -> None:
    assert errors_of(OVERSIZED[name](), tmp_path) & CODES


@pytest.mark.parametrize("name", MODEST)
def test_a_size_that_the_caller_decides_passes(name: str, tmp_path: Path) -> None:
    assert errors_of(MODEST[name](), tmp_path) == set()
