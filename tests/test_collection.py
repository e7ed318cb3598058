"""All tests are run: pytest collects each file of tests, and each function that looks like a test is one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ovir

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parent
# Files are listed by pytest itself, with the settings of the project, but not imported, which takes long.
LISTING = """
import pytest

class Unread(pytest.File):
    def collect(self):
        return []

class Listing:
    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makemodule(self, module_path, parent):
        print("found", module_path)
        return Unread.from_parent(parent, path=module_path)

pytest.main(["--collect-only", "-p", "no:cacheprovider"], plugins=[Listing()])
"""


def test_every_file_of_tests_is_collected() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-c", LISTING], cwd=TESTS.parent, env=environment, capture_output=True, text=True, check=True
    )
    found = {line.removeprefix("found ") for line in done.stdout.splitlines() if line.startswith("found ")}
    assert found == {str(path) for path in TESTS.rglob("test_*.py")}


def test_ovir_is_that_of_the_checkout(tmp_path: Path) -> None:
    """So it is in this process, and in those that tests start in other folders, whatever is installed."""
    code = "import importlib.util as u; print(u.find_spec('ovir').origin)"
    # -S leaves out the packages that are installed, among which may be an ovir that refers to the checkout.
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert {done.stdout.strip(), ovir.__file__} == {str(TESTS.parent / "ovir" / "__init__.py")}


@pytest.mark.parametrize("options", [("-q",), ("-q", "--collect-only")])
def test_a_run_ends_with_a_total(options: tuple[str, ...]) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-n",
        "0",
        *options,
        "tests/core/test_shapes.py",
    ]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=True)
    assert re.search(r"^(=+ )?\d+ (passed|tests? collected)\b", done.stdout.splitlines()[-1]), done.stdout


def test_every_function_named_as_a_test_is_one() -> None:
    """A test in a class, in a block or in a file of another name would not run, or not everywhere."""
    lost = []
    for path in TESTS.rglob("*.py"):
        for found in re.finditer(
            r"^([ \t]*)(?:async +)?def +(test\w*)", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            if found[1] or not path.name.startswith("test_"):
                lost.append(f"{path}: {found[2]}")
    assert lost == []


def test_tests_that_scripts_name_are_there() -> None:
    """pytest runs no test at all if one of its arguments is missing."""
    root = TESTS.parent
    scripts = [*(root / ".ci").iterdir(), *(root / ".github").rglob("*.yml")]
    named = {name for script in scripts for name in re.findall(r"\btests/[\w/]+(?:\.py)?", script.read_text("utf-8"))}
    assert named
    assert [name for name in sorted(named) if not (root / name).exists()] == []
