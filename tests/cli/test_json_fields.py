"""The tables of JSON fields in the documents are those that the commands print."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_transformers import encoder

import ovir

DOCS = Path(__file__).parent.parent.parent / "docs"
CHECK = shlex.join([sys.executable, "-c", "import sys; sys.exit('Gelu' in open(sys.argv[1]).read())"]) + " {}"


def documented(page: str, title: str) -> set[str]:
    """Return the fields in the table of a page that begins with this title."""
    text = (DOCS / page).read_text(encoding="utf-8")
    table = re.search(rf"^\| {re.escape(title)} \| Contents \|\n.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table is not None
    return {field for row in table[1].splitlines() for field in re.findall(r"`(.+?)`", row.split("|")[1])}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    ovir.save_model(encoder(1, planted=0, factor=300), tmp_path / "model.xml")
    return tmp_path / "model.xml"


def printed(cli: Any, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cli(*arguments, "--json").out)
    return found


def test_bisect(cli: Any, model: Path, tmp_path: Path) -> None:
    other = ovir.read_model(model)
    weights = other.layer("layer0/out").inputs[1].source.layer
    other.set_constant(weights.key, np.asarray(weights.operator.data) * np.float32(2))
    ovir.save_model(other, tmp_path / "other.xml")
    found = printed(cli, "bisect", model, tmp_path / "other.xml", "-o", tmp_path / "part.xml")
    assert set(found) == documented("bisect.md", "Field")
    for probe in (found["first"], *found["probes"]):
        assert set(probe) == documented("bisect.md", "Field of a beginning")
    assert set(found["part"]) == documented("bisect.md", "Field of the part")


def test_reduce(cli: Any, model: Path, tmp_path: Path) -> None:
    found = printed(cli, "reduce", model, "--check", CHECK, "-o", tmp_path / "small.xml", "--max-runs", 20)
    assert set(found) == documented("reduce.md", "Field")
    assert set(found["remaining"][0]) == documented("reduce.md", "Field of a remaining layer")
    assert set(found["steps"][0]) == documented("reduce.md", "Field of a step")


def test_precision(cli: Any, model: Path) -> None:
    found = printed(cli, "precision", model, "--to", "f16")
    assert set(found) == documented("precision.md", "Field of the search")
    assert set(found["layers"][0]) == documented("precision.md", "Field of a layer")
    assert set(found["lost_marks"][0]) == documented("precision.md", "Field of a lost mark")


def test_watch(cli: Any, model: Path) -> None:
    found, plain = printed(cli, "run", model, "--watch", "overflow:f16"), printed(cli, "run", model)
    assert set(found) - set(plain) == documented("precision.md", "Field")
    assert set(found["watch"][0]) == documented("precision.md", "Field of a report")
    assert set(found["watch"][0]["inputs"][0]) == documented("precision.md", "Field of an input")
    assert set(found["margins"][0]) == documented("precision.md", "Field of a margin")
