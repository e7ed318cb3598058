"""ovir needs nothing that only POSIX systems have; tests that need it are skipped elsewhere."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parent.parent / "examples" / "xml"
DIGITS = str(EXAMPLES / "digits.xml")

# The standard library has adapted itself when it was imported, so only ovir sees what is missing.
WITHOUT = """
import asyncio, concurrent.futures.process, http.server, logging, multiprocessing, os, signal, subprocess, sys, tempfile
import lxml.etree, networkx, numpy

class Missing:
    modules = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
    def find_spec(self, name, path=None, target=None):
        if name in self.modules:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
for name in Missing.modules:
    sys.modules.pop(name, None)
for module, names in {
    os: "fork wait4 killpg mkfifo getuid geteuid sysconf getloadavg sched_getaffinity setsid",
    signal: "SIGHUP SIGALRM SIGPIPE SIGCHLD pthread_sigmask SIG_BLOCK SIG_SETMASK setitimer pthread_kill",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
"""
MODULES = """
import importlib, pkgutil, ovir
programs = ("ovir.__main__", "ovir.debugging.engines.child")
for found in pkgutil.walk_packages(ovir.__path__, "ovir."):
    if found.name not in programs:
        importlib.import_module(found.name)
"""


def run_without(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter that lacks what Windows lacks."""
    return subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, timeout=120)


def test_all_modules_are_imported() -> None:
    pytest.importorskip("model_explorer", reason="a module is its adapter")
    done = run_without(MODULES)
    assert done.returncode == 0, done.stderr


def test_commands_work(tmp_path: Path) -> None:
    """They run one after the other in one interpreter, which starts slowly."""
    inputs = str(EXAMPLES / "digits_input.npz")
    commands = [
        ["check", DIGITS],
        ["run", DIGITS, "--input", inputs],
        ["compare", DIGITS, DIGITS],
        ["edit", DIGITS, "--batch", "2", "-o", f"{tmp_path}/edited.xml"],
        ["run", DIGITS, "--inputs", inputs, "--output", f"{tmp_path}/results"],
        ["run", DIGITS, "--inputs", inputs, "--workers", "2", "--output", f"{tmp_path}/more"],
    ]
    done = run_without(
        f"from ovir.cli.main import main\nfor command in {commands}:\n    assert main(command) == 0, command"
    )
    assert done.returncode == 0, done.stderr
    assert "OVIR999" not in done.stderr
