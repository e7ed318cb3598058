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


def run_without(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter that lacks what Windows lacks."""
    command = [sys.executable, "-c", WITHOUT + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_all_modules_are_imported() -> None:
    pytest.importorskip("model_explorer", reason="a module is its adapter")
    done = run_without(MODULES)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", DIGITS],
        ["run", DIGITS, "--input", str(EXAMPLES / "digits_input.npz")],
        ["compare", DIGITS, DIGITS],
        ["edit", DIGITS, "--batch", "2", "-o", "TARGET/edited.xml"],
        ["run", DIGITS, "--inputs", str(EXAMPLES / "digits_input.npz"), "--output", "TARGET/results"],
        ["run", DIGITS, "--inputs", str(EXAMPLES / "digits_input.npz"), "--workers", "2", "--output", "TARGET/more"],
    ],
    ids=lambda arguments: " ".join(arguments[::2][:2]),
)
def test_commands_work(arguments: list[str], tmp_path: Path) -> None:
    found = [argument.replace("TARGET", str(tmp_path)) for argument in arguments]
    done = run_without("from ovir.cli.main import main; sys.exit(main(sys.argv[1:]))", *found)
    assert done.returncode == 0, done.stderr
    assert "OVIR999" not in done.stderr
