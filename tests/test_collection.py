"""pytest collects every file of tests."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def test_every_file_is_collected(pytestconfig: pytest.Config) -> None:
    """A folder named build, dist or venv is left out by default, without a word."""
    left_out = pytestconfig.getini("norecursedirs")
    files = pytestconfig.getini("python_files")
    for path in TESTS.rglob("*test*.py"):
        place = path.relative_to(TESTS)
        assert not [part for part in place.parts[:-1] if any(fnmatch(part, pattern) for pattern in left_out)], place
        if path.name.startswith("test") or path.stem.endswith("_test"):
            assert any(fnmatch(path.name, pattern) for pattern in files), place
