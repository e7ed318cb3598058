"""Docstrings of functions begin with an imperative verb, and no text uses a phrase of the list below."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = sorted((ROOT / "ovir").rglob("*.py"))
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

VERBS = re.findall(
    r"\w+",
    """
    Accept Add Allocate Answer Append Apply Assign Begin Bind Build Call Check Clear Clip Collect Combine Commit Compare Compile Compute
    Connect Convert Copy Count Create Decide Declare Decode Disable Discard Disconnect Divide Do Draw Drop Enter Erase Escape Evaluate Export
    Fill Find Fix Follow Forget Format Gather Generate Give Group Handle Import Infer Insert Join Keep Leave Let Load
    Look Make Map Match Merge Multiply Name Open Parse Pickle Place Plan Prepare Print Raise Read Record Reduce Register Release Remove Rename
    Repeat Replace Report Resample Reset Resize Restrict Return Round Run Select Send Set Show Skip Sort Split Start Stop Store Submit Subtract Suggest Sum Take
    Transform Turn Undo Unpack Update Visit Wrap Write Yield
    """,
)
"""The first words of docstrings of functions, methods and properties; add to it what is an imperative."""

BANNED = re.compile(
    r"\b(to speak of|such as has|belongs? into|no more than that|is told|are told|told of|can be lived with"
    r"|live with|none of a file|graver|does not fit to|the mend|Mend:)\b"
    r"|\b(that|those) of\b"
    r"|^(Of|That of|Those) (the|which|a|an|what|this|them)\b"
)
"""Phrases of a dialect that readers had to guess at. See the terms in docs/architecture.md."""


def _docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield node.lineno, text


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments and strings of a module, docstrings and messages included, with their lines."""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string.lstrip("# ")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


@pytest.mark.parametrize("path", PACKAGE, ids=str)
def test_docstrings_begin_with_a_verb(path: Path) -> None:
    found = [
        f"line {line}: {text.splitlines()[0]}"
        for line, text in _docstrings(ast.parse(path.read_text(encoding="utf-8")))
        if re.split(r"\W", text, maxsplit=1)[0] not in VERBS
    ]
    assert not found


@pytest.mark.parametrize("path", PACKAGE, ids=str)
def test_no_banned_phrases_in_code(path: Path) -> None:
    assert not [f"line {line}: {text}" for line, text in _texts(path) if BANNED.search(text)]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_no_banned_phrases_in_documents(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert not [f"line {number}: {line}" for number, line in enumerate(lines, 1) if BANNED.search(line)]
