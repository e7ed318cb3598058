"""Blocks of Markdown with commands and what they print in a terminal; ``...`` stands for any lines, words or characters."""

import difflib
import math
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from io import StringIO
from typing import NamedTuple
from unittest import mock

from ovir.cli.main import main
from support.terminals import Shown, run_in_terminal

ANY = "..."


class Block(NamedTuple):
    """A block of code in a document: its language, the number of its first line, and its lines without indentation."""

    language: str
    line: int
    code: str


def blocks_of(text: str) -> Iterator[Block]:
    for match in re.finditer(r"^( *)```(\w+)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        code = re.sub(rf"^{match[1]}", "", match[3], flags=re.MULTILINE)
        yield Block(match[2], text.count("\n", 0, match.start()) + 1, code)


def commands_of(code: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block, and what it is said to print."""
    first, *commands = re.split(r"^\$ ", code, flags=re.MULTILINE)
    assert first == "", "a console block begins with a command"
    for command in commands:
        line, _, printed = command.partition("\n")
        yield line, printed


def run_line(line: str, columns: int) -> Shown:
    """Run a command in this process if it is one of ovir, which may follow NAME=value, or else in a shell."""
    words = shlex.split(line, comments=True)
    environment = {}
    while "=" in words[0]:
        name, environment[name] = words.pop(0).split("=", 1)
    if words[0] == "cd":
        os.chdir(words[1])
        return Shown(0, "")
    if words[0] != "ovir":
        return _run_in_shell(line)
    arguments = words[1 : words.index("|")] if "|" in words else words[1:]
    with mock.patch.dict(os.environ, environment), ExitStack() as stack:
        if "<" in arguments:
            *arguments, _, name = arguments
            stack.enter_context(mock.patch("sys.stdin", stack.enter_context(open(name, encoding="utf-8"))))
        if "|" not in words:
            status, text = run_in_terminal(*arguments, columns=columns, NO_COLOR="1")
            return Shown(status, re.sub(r"[^\n]*\r", "", text))  # progress
        with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as errors:
            status = main(arguments)  # which is the status of all, as with the option pipefail of a shell
    return Shown(status, errors.getvalue() + _run_in_shell(line.partition(" | ")[2], out.getvalue()).text)


def _run_in_shell(line: str, given: str = "") -> Shown:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(line, shell=True, input=given, text=True, check=False, **pipes)
    return Shown(done.returncode, done.stdout)


# --------------------------------------------------------------------------- comparison


def is_same_text(found: str, expected: str) -> bool:
    return _agree(found.rstrip().splitlines(), expected.rstrip().splitlines(), _is_same_line)


def _is_same_line(found: str, expected: str) -> bool:
    return _agree(*(re.findall(r"[^\s,()]+|[,()]", line) for line in (found, expected)), _is_same_word)


def _is_same_word(found: str, expected: str) -> bool:
    """Return whether words are equal, or are real numbers that may differ so between two machines."""
    if found.isdecimal() and expected.isdecimal():
        return found == expected  # counts, sizes and line numbers
    try:
        return math.isclose(float(found), float(expected), rel_tol=1e-2, abs_tol=1e-6)
    except ValueError:
        return re.fullmatch(".*".join(map(re.escape, expected.split(ANY))), found) is not None


def _agree(found: Sequence[str], expected: Sequence[str], same: Callable[[str, str], bool]) -> bool:
    """Return whether each item is the same as the expected one; ``...`` stands for any number of items."""
    for index, wanted in enumerate(expected):
        if wanted == ANY:
            rest = expected[index + 1 :]
            return any(_agree(found[start:], rest, same) for start in range(index, len(found) + 1))
        if index == len(found) or not same(found[index], wanted):
            return False
    return len(found) == len(expected)


def difference(found: str, expected: str) -> str:
    return "\n".join(difflib.ndiff(expected.splitlines(), found.splitlines()))


def renewed(found: str, expected: str) -> str:
    """Return what was found, with the lines and the gaps of the expected text that still hold."""
    old, new = expected.splitlines(), found.rstrip().splitlines()
    result: list[str] = []
    at = 0
    for index, line in enumerate(old):
        following = old[index + 1] if index + 1 < len(old) else None
        if line == ANY and (index == 0 or (at and _is_same_line(new[at - 1], old[index - 1]))):
            end = next((i for i in range(at, len(new)) if following and _is_same_line(new[i], following)), None)
            if following is None or end is not None:
                result.append(ANY)
                at = len(new) if end is None else end
        elif line != ANY:  # which would hide the line that has changed
            end = next((i for i in range(at, len(new)) if _is_same_line(new[i], line)), None)
            if end is not None:
                result += [*new[at:end], line]
                at = end + 1
    return "".join(f"{line}\n" for line in [*result, *new[at:]])
