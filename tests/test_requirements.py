"""pyproject.toml, constraints.txt and CONTRIBUTING.md agree on the releases of other packages."""

import re
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("packaging", reason="packaging, which pytest needs, is not installed")

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TOOLS = {"test", "dev"}
"""The extras of contributors, who install the pinned releases."""


def requirements(extras: set[str]) -> list[Requirement]:
    """Return the requirements of ovir and of some extras, without ovir itself."""
    texts = [
        *PROJECT["dependencies"],
        *(text for extra in sorted(extras) for text in PROJECT["optional-dependencies"][extra]),
    ]
    return [found for found in map(Requirement, texts) if found.name != "ovir"]


def pins() -> dict[str, str]:
    """Return the pinned release of each package of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {canonicalize_name(name): release for name, release in (line.split("==") for line in lines)}


EXTRAS = set(PROJECT["optional-dependencies"])


def test_pinned_releases_lie_within_the_ranges() -> None:
    wrong = [str(r) for r in requirements(EXTRAS) if not r.specifier.contains(pins()[canonicalize_name(r.name)])]
    assert not wrong


def test_ranges_have_two_ends() -> None:
    open_ranges = [str(r) for r in requirements(EXTRAS - TOOLS) if {p.operator for p in r.specifier} != {">=", "<"}]
    assert not open_ranges


def test_the_table_of_releases_has_the_oldest_and_the_pinned_ones() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| ([\d.]+) \| ([\d.]+) \|", CONTRIBUTING, re.MULTILINE)
    tested = {canonicalize_name(name): ends for name, *ends in rows}
    for requirement in requirements(EXTRAS - TOOLS):
        name = canonicalize_name(requirement.name)
        oldest = next(part.version for part in requirement.specifier if part.operator == ">=")
        assert tested[name] == [oldest, pins()[name]], name
