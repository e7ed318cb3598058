"""README.md says what happens: its commands are run, and their output compared."""

from __future__ import annotations

import io
import math
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from itertools import zip_longest
from pathlib import Path

import pytest

from ovir.cli.main import main
from ovir.cli.ops import entries

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```console\n\$ ovir (.*?)\n(.*?)```", README, re.DOTALL)


def same(found: str, expected: str) -> bool:
    """Equal words, or numbers that differ no more than those of two machines do."""
    try:
        return math.isclose(float(found), float(expected), rel_tol=1e-2, abs_tol=1e-6)
    except ValueError:
        return found == expected


@pytest.mark.parametrize(("command", "expected"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_commands(command: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        main(shlex.split(command))
    for found, wanted in zip_longest(printed.getvalue().splitlines(), expected.splitlines(), fillvalue=""):
        pairs = zip_longest(re.findall(r"[^\s,()]+", found), re.findall(r"[^\s,()]+", wanted), fillvalue="")
        assert all(same(*pair) for pair in pairs), f"\nfound    {found}\nexpected {wanted}"


def test_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    code = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(code) == 1
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code[0], "README.md", "exec"), {})
    lines = printed.getvalue().splitlines()
    for line in re.findall(r"^print\(.*?# ([\[(].*)$", code[0], re.MULTILINE):
        assert line in lines


def test_counts_of_operations() -> None:
    listed = entries()
    declared = re.search(
        r"Of the (\d+) operation versions of opsets 1 to 17, (\d+) are inferred and (\d+) are run", README
    )
    assert declared is not None
    assert [int(n) for n in declared.groups()] == [
        len(listed), sum(e.infers for e in listed), sum(e.runs for e in listed)
    ]  # fmt: skip


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
