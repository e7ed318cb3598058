"""``--adapt``: constants that hold a size follow ``--shape``."""

from pathlib import Path
from typing import Any

import pytest
from support.adaptable import encoder, vit

import ovir

LENGTHS = 8, 5
"""The lengths that a network is exported for."""


@pytest.fixture
def exports(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{length}.xml" for length in LENGTHS]
    for path, length in zip(paths, LENGTHS, strict=True):
        ovir.save_model(encoder(length), path)
    return paths


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["1,?,8", "1,5,8"])
def test_edit(cli: Any, exports: list[Path], tmp_path: Path, shape: str) -> None:
    other = tmp_path / "other.xml"
    refused = cli("edit", exports[0], "--shape", "1,5,8", "-o", other)
    assert (refused.status, "--adapt lets constants follow --shape" in refused.err) == (1, True)
    for options, proof in ((), "proven"), (("--like", exports[1]), "proven"), (("--no-verify",), "not proven"):
        done = cli("edit", exports[0], "--adapt", "--shape", f"x={shape}", "--name", "n", "-o", other, *options)
        assert (done.status, done.err) == (0, "")
        moved, changed, verdict = done.out.splitlines()[:3]
        assert moved == f"input 'x': [1,8,8] -> [{shape}]"
        assert "layers now follow --shape: Reshape_" in changed
        assert verdict.startswith(proof)
    assert cli("compare", other, exports[1], "--shape", "1,5,8").status == 0


def test_run_and_compare(cli: Any, exports: list[Path]) -> None:
    refused = cli("run", exports[0], "--shape", "1,5,8")
    assert (refused.status, "--adapt lets constants" in refused.err) == (1, True)
    ran = cli("run", exports[0], "--shape", "1,5,8", "--adapt", "--json")
    assert (ran.status, '"shape":[1,5,8]' in ran.out.replace(" ", "").replace("\n", "")) == (0, True)
    assert "layers now follow --shape: Reshape_" in ran.err
    compared = cli("compare", *exports, "--shape", "1,6,8", "--adapt")
    assert (compared.status, compared.err.count("now follow --shape")) == (0, 2)


def test_a_refusal_names_the_constant(cli: Any, tmp_path: Path) -> None:
    ovir.save_model(vit(16, 16), tmp_path / "vit.xml")
    done = cli("edit", tmp_path / "vit.xml", "--shape", "1,3,?,?", "--adapt", "-o", tmp_path / "any.xml")
    assert (done.status, "'positions'" in done.err, (tmp_path / "any.xml").exists()) == (1, True, False)
