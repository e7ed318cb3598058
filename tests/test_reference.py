"""The reference of the Python API describes every public name, from docstrings that say what a reader needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ovir

pytestmark = pytest.mark.documents

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"


def test_every_public_name_is_in_the_reference() -> None:
    described = [
        name
        for path in REFERENCE.glob("*.md")
        for name in re.findall(r"^::: ovir\.(\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    missing = sorted(set(ovir.__all__) - set(described))
    assert not missing, f"add `::: ovir.NAME` to a page of docs/reference: {', '.join(missing)}"
    assert sorted(described) == sorted(ovir.__all__)


def test_the_list_of_the_reference_names_the_page_of_each_name() -> None:
    rows = re.findall(
        r"^\| \[.*\]\((\w.*\.md)\) \| (.*) \|$", (REFERENCE / "python.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    listed = {(page, name) for page, names in rows for name in re.findall(r"`(\w+)`", names)}
    described = {
        (path.name, name)
        for path in REFERENCE.glob("*.md")
        for name in re.findall(r"^::: ovir\.(\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert listed == described
