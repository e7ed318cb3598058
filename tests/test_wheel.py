"""The wheel is small, fits every system, and works without a checkout."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import ovir
from ovir.generated_files import STUBS

pytest.importorskip("hatchling", reason="hatchling, which builds wheels, is not installed")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
LARGEST = 3_000_000
"""The bytes that a wheel may have."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (found,) = folder.iterdir()
    return found


def test_the_name_says_that_it_fits_every_system(wheel: Path) -> None:
    """Such a wheel holds no compiled code, so that installing it needs no compiler."""
    assert wheel.name == f"ovir-{ovir.__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < LARGEST


def test_it_holds_the_package_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "ovir").rglob("*") if path.is_file()}
    suffixes = {"", ".py", ".pyi", ".typed", ".md", ".html", ".css", ".js", ".json", ".tsv"}
    assert {Path(name).suffix for name in names} <= suffixes
    assert {name for name in files if "__pycache__" not in name} <= names
    assert set(STUBS) <= names
    assert all(name.startswith("ovir/") for name in names)


def test_a_source_distribution_has_no_stubs_and_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run([*build, "-t", "sdist"], cwd=ROOT, check=True, capture_output=True, timeout=120)
    with tarfile.open(tmp_path / f"ovir-{ovir.__version__}.tar.gz") as archive:
        assert not [name for name in archive.getnames() if name.endswith(".pyi")]
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / f"ovir-{ovir.__version__}"
    subprocess.run([*build, "-t", "wheel"], cwd=folder, check=True, capture_output=True, timeout=120)
    with zipfile.ZipFile(tmp_path / wheel.name) as one, zipfile.ZipFile(wheel) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())


def test_it_says_how_it_may_be_used(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("dist-info/METADATA"))
        metadata = archive.read(name).decode()
        files = archive.namelist()
    assert re.search(r"^License-Expression: Apache-2\.0$", metadata, re.MULTILINE)
    assert re.search(r"^Requires-Python: >=3\.11$", metadata, re.MULTILINE)
    assert any(name.endswith("licenses/LICENSE") for name in files)


def test_it_works_where_it_is_installed(wheel: Path, tmp_path: Path) -> None:
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(tmp_path)]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True, timeout=120)
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from ovir.__main__ import command; command()"
    for arguments in (["--version"], ["check", str(ROOT / "examples" / "xml" / "digits.xml")], ["explain", "OVIR402"]):
        run = [sys.executable, "-P", "-c", code, str(tmp_path), *arguments]
        done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, timeout=60)
        assert done.returncode == 0, done.stderr
