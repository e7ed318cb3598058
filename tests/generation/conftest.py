"""The folder of a small language model, which the example writes."""

import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "write_language_model.py"


@pytest.fixture(scope="session")
def example() -> dict[str, Any]:
    """Return the functions of the example."""
    return runpy.run_path(str(EXAMPLE))


@pytest.fixture(scope="session")
def written(example: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("language_model")
    example["write"](folder)
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """Return a folder of this test, which it may change."""
    return Path(shutil.copytree(written, tmp_path / "model"))
