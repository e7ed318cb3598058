"""What the command line pays on each call, however small the file: the modules that are imported."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from ovir.ops.base.attributes import attribute, declared_attributes

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parent.parent / "examples" / "xml"
DIGITS = str(EXAMPLES / "digits.xml")
INPUTS = str(EXAMPLES / "digits_input.npz")

# Packages that only some calls need, each of which takes longer to import than a small file to read.
HEAVY = {
    "argcomplete", "concurrent.futures", "difflib", "jinja2", "logging", "multiprocessing", "networkx", "numpy.random", "numpy.fft", "numpy.ma", "onnx", "openvino",
    "plotly", "traceback",
}  # fmt: skip
SMALL = {"csv", "hashlib", "html", "random", "secrets", "shlex", "tempfile"}
"""Modules that take a few hundred microseconds each."""
ARCHIVES = {"bz2", "glob", "lzma", "shutil", "zipfile"}
"""What reading an .npz needs."""
DRAWING = {"hashlib", "numpy.random", "random", "secrets"}
"""What random inputs need."""
LOADED = "import sys; print(*sys.modules, file=sys.stderr)"


def loaded(code: str) -> set[str]:
    """Return the modules that a new interpreter has imported after running the code."""
    done = subprocess.run([sys.executable, "-c", f"{code}\n{LOADED}"], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


@cache
def unavoidable() -> set[str]:
    """Return the modules that this interpreter imports for what every command needs: pathlib of Python 3.13 imports
    glob."""
    return loaded("import argparse, pathlib, lxml.etree, ml_dtypes, numpy")


def loaded_by(*arguments: str) -> set[str]:
    """Return the modules that a command imports."""
    return loaded(f"from ovir.cli.main import main; assert main({list(arguments)}) == 0")


def test_the_package_alone_imports_none_of_its_modules() -> None:
    modules = loaded("import ovir")
    assert {name for name in modules if name.startswith("ovir") and ".opset" not in name} == {"ovir"}
    assert not modules & {"lxml", "ml_dtypes", "numpy"}


def test_help_imports_the_commands_but_not_what_they_do() -> None:
    modules = loaded("from ovir.cli.main import main; main(['--help'])")
    assert "ovir.cli.commands.generate" in modules
    assert not modules & {
        *("importlib.metadata", "jinja2", "logging", "multiprocessing", "numpy.fft", "numpy.random", "onnx"),
        *("openvino", "plotly"),
    }
    assert not modules & {"ovir.generation.generate", "ovir.lowering.constructs", "ovir.cli.commands.run_many"}


def test_explaining_a_code_imports_nothing_that_models_need() -> None:
    modules = loaded_by("explain", "OVIR402")
    assert not modules & {"lxml", "ml_dtypes", "numpy", "ovir.model", "ovir.checks"}


def test_no_garbage_is_collected_while_modules_are_imported() -> None:
    code = (
        "import gc, sys\n"
        "from ovir.__main__ import command\n"  # which disables collections; this import may compile it before
        "gc.callbacks.append(lambda phase, about: print('collected', file=sys.stderr))\n"
        "sys.argv[1:] = ['--help']\n"
        "command()\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr == ""


def test_garbage_is_collected_when_a_command_runs(tmp_path: Path) -> None:
    extension = tmp_path / "extension.py"
    extension.write_text("import gc\nprint(gc.isenabled(), gc.get_freeze_count() > 10_000)\n", encoding="utf-8")
    command = [sys.executable, "-m", "ovir", "infer", DIGITS, "--extension", str(extension)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith("True True\n")


def test_all_public_names_import_no_operation_but_the_structural_ones() -> None:
    modules = loaded("from ovir import *")
    assert not modules & (HEAVY - unavoidable())
    assert not modules & {f"ovir.ops.{name}" for name in ("unary", "pooling", "recurrent", "random")}
    assert not {name for name in modules if name.startswith("ovir.checks.rules")}


@pytest.mark.parametrize(
    ("arguments", "unused"),
    [
        (
            ("check", DIGITS),
            {
                "ovir.cli.commands.run",
                "ovir.analysis.dynamic_dimensions",
                "ovir.io.sarif",
                "ovir.checks.baseline",
                "json",
                "tomllib",
            },
        ),
        (("infer", DIGITS), {"ovir.cli.commands.check", "ovir.checks.rules", "ovir.runtime.planning"}),
        (("run", DIGITS), {"ovir.analysis.metrics", "ovir.debugging.watch", "ovir.io.coco", "ovir.io.tensor_files"}),
        (
            ("run", DIGITS, "--input", INPUTS),
            {"ovir.cli.commands.check", "ovir.checks.rules", "ovir.analysis.random_inputs", "ovir.runtime.pickling"},
        ),
        (("show", DIGITS), {"ovir.cli.commands.check", "ovir.checks.rules"}),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_command_imports_what_it_needs(arguments: tuple[str, ...], unused: set[str]) -> None:
    modules = loaded_by(*arguments)
    needed = ARCHIVES if "--input" in arguments else DRAWING if arguments[0] == "run" else set()
    assert not modules & ((HEAVY | SMALL | ARCHIVES | unused) - needed - unavoidable())
    assert "ovir.ops.convolution" in modules
    assert not modules & {f"ovir.ops.{name}" for name in ("recurrent", "reduction", "interpolate", "random")}


def test_reading_imports_neither_building_nor_editing_nor_running() -> None:
    modules = loaded(f"import ovir; ovir.read_model({DIGITS!r})")
    assert "ovir.ir.reader" in modules
    assert not {name for name in modules if name.startswith(("ovir.building", "ovir.editing", "ovir.runtime"))}


def test_only_annotations_of_attributes_are_evaluated() -> None:
    class Base:
        other: NotThere  # type: ignore[name-defined]  # noqa: F821
        axis: int = attribute()

    class Derived(Base):
        mode: str = attribute("a", name="the-mode")

    assert {name: a.type for name, a in declared_attributes(Derived).items()} == {"axis": int, "the-mode": str}
