"""Which tests of a file may be skipped because a package is missing."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

_SKIPS = "importorskip"


@cache
def names_that_skip(path: Path) -> frozenset[str] | None:
    """Return the functions and constants of a file that reach a call of ``pytest.importorskip`` through each other.

    The result is None if the file itself makes such a call, which skips all of its tests.
    """
    text = path.read_text(encoding="utf-8")
    uses: dict[str, set[str]] = {}
    for node in ast.parse(text).body if _SKIPS in text else ():
        used = {part for item in ast.walk(node) for part in _names_of(item)}
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            uses[node.name] = used
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and _SKIPS not in used:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            uses.update(
                (name.id, used) for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
            )
        elif _SKIPS in used:
            return None
    found: set[str] = set()
    while new := {name for name, used in uses.items() if used & {*found, _SKIPS}} - found:
        found |= new
    return frozenset(found)


def _names_of(node: ast.AST) -> list[str]:
    """Return what a node names; the parameters of a function name fixtures, which text in marks may do as well."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.arg):
        return [node.arg]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
