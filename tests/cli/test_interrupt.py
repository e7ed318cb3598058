"""Ctrl-C at any time: exit status 130, one word on stderr, no traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

# Ctrl-C arrives when this module is imported for the first time.
INTERRUPTED = """
import os, runpy, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores it
sys.meta_path.insert(0, Interrupting())
sys.argv[:] = ["ovir", *{arguments!r}]
runpy.run_module("ovir", run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        *("ovir.cli.main", "ovir.cli", "argparse", "numpy", "ml_dtypes", "ovir.cli.commands.check"),
        *("lxml", "ovir.checks.rules.graph"),
    ],
)
def test_wherever_it_arrives(model: Path, module: str) -> None:
    code = INTERRUPTED.format(module=module, arguments=["check", str(model)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_after_the_command_has_ended(model: Path) -> None:
    code = INTERRUPTED.format(module="numpy.at_the_end", arguments=["check", str(model)])
    (model.parent / "late.py").write_text("import atexit\natexit.register(lambda: __import__('numpy.at_the_end'))\n")
    code = code.replace("'check'", f"'check', '--extension', {str(model.parent / 'late.py')!r}")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr.endswith("interrupted\n")
    assert "Traceback" not in done.stderr


def test_an_ignored_signal_stays_ignored(model: Path) -> None:
    """As for a job that the shell starts in the background."""
    code = INTERRUPTED.replace("default_int_handler", "SIG_IGN").format(module="numpy", arguments=["check", str(model)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
