"""Files that are broken at random neither hang nor crash ovir, and get diagnostics. See ``mutants``, which makes them."""

import random
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


@pytest.mark.parametrize("mutation", sorted(set(mutants.MUTATIONS), key=lambda mutation: mutation.__name__))
def test_each_mutation_breaks_files(mutation, files) -> None:
    changed = [text for _, text, _ in files if mutation(text, random.Random(1)) != text]
    assert len(changed) > len(files) / 2


def test_a_mutant_is_made_of_its_seed_alone(files) -> None:
    _, text, _ = files[0]
    assert [mutants.mutate(text, seed) for seed in range(20)] == [mutants.mutate(text, seed) for seed in range(20)]


@pytest.mark.parametrize("text", [b"<net", (EXAMPLES / "digits.xml").read_bytes()], ids=["refused", "whole"])
def test_what_is_no_fault(text: bytes) -> None:
    assert mutants.fault(text, (EXAMPLES / "digits.bin").read_bytes()) is None


def test_a_fault_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ovir.check", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in (mutants.fault(b"<net/>", None) or "")


def test_a_hang_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*_: object) -> None:
        while True:
            pass

    monkeypatch.setattr("ovir.check", hang)
    assert mutants.fault(b"<net/>", None, seconds=1) == "more than 1 s"
