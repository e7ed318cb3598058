"""Imports between the files of ovir go the way that docs/architecture.md says."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

PACKAGE = Path(__file__).parent.parent / "ovir"

DOCUMENT = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
FLOORS = {
    name: int(number)
    for number, names in re.findall(r"^(\d+)\. (`.*`)$", DOCUMENT, re.MULTILINE)
    for name in re.findall(r"`(\w+)(?:\.py)?`", names)
}
"""The number of each package in the list of the document. ``model`` and ``compiling`` are files."""
USERS_OF_KERNELS = {"kernels", "ops", "fast", "export"}

# Attributes of public classes have types that only packages above define. The imports are for type checkers only; a
# test fails for an entry that is no longer needed.
FOR_TYPES = {
    ("ovir.graph.layers", "ovir.ops.base.operator"),  # Layer.operator
    ("ovir.runtime.compiled", "ovir.model"),  # CompiledModel.model
}


@cache
def modules() -> dict[str, Path]:
    """Return the file of each module."""
    names = {
        ".".join(("ovir", *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in PACKAGE.rglob("*.py")
    }
    return {name.removesuffix(".__init__"): path for name, path in names.items()}


def imported(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the modules that a file imports, those inside of functions included, and those that its strings name, and
    whether it does so at run time, and not for type checkers only.

    A string such as ``"ovir.building.creation"`` is an argument of ``import_module``, here or where it is handed on.
    """
    pending = [(tree, True)]
    while pending:
        node, at_run_time = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            pending += [(child, False) for child in node.body] + [(child, at_run_time) for child in node.orelse]
            continue
        pending += [(child, at_run_time) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.Import):
            yield from ((alias.name, at_run_time) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "relative imports are not used"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in modules() or alias.name.startswith("opset") else node.module, at_run_time
        elif (name := named_module(node)) is not None:
            yield name, at_run_time


def named_module(node: ast.AST) -> str | None:
    """Return the module or package of ovir that a string, or the beginning of one, consists of."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    found = re.fullmatch(r"(ovir\.(\w+)(\.\w+)*)\.?", node.value)
    return found[1] if found is not None and found[2] in FLOORS else None


@cache
def _all_imports() -> frozenset[tuple[str, str, bool]]:
    found = set()
    for name, path in modules().items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found.update((name, target, at_run_time) for target, at_run_time in imported(tree))
    return frozenset(found)


def imports(*, run_time_only: bool = False) -> set[tuple[str, str]]:
    """Return the pairs of a module of ovir and a module that it imports."""
    return {(name, target) for name, target, at_run_time in _all_imports() if at_run_time or not run_time_only}


def package(module: str) -> str:
    """Return the package of ovir that a module is in; ``ovir`` for those that are in none.

    The modules of the opsets are the functions that ``building`` makes.
    """
    parts = module.split(".")
    if len(parts) == 2 and parts[1].startswith("opset"):
        return "building"
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else parts[0]


def may_import(one: str, other: str) -> bool:
    if other == "ovir":
        return one == "cli"
    if (one, other) in {("ops", "tokenizers"), ("tokenizers", "ops")}:
        return True
    return FLOORS[one] < FLOORS[other] and (other != "kernels" or one in USERS_OF_KERNELS)


def violations(*, run_time_only: bool = False) -> set[tuple[str, str]]:
    """Return the imports that the rules do not allow."""
    found = set()
    for importer, target in imports(run_time_only=run_time_only):
        one, other = package(importer), package(target)
        if one == "ovir" or one == other:
            continue
        if target.split(".")[0] == "ovir" and not may_import(one, other):
            found.add((importer, target))
        if other == "lxml" and one not in ("ir", "checks"):
            found.add((importer, "lxml"))
    return found


def test_every_package_has_its_rule_and_its_row_in_the_document() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders | {"compiling", "model"} == set(FLOORS)
    assert [name for name in sorted(folders) if f"| `ovir/{name}/` |" not in DOCUMENT] == []


@pytest.mark.slow
def test_imports_never_go_back_up() -> None:
    assert sorted(violations() - FOR_TYPES) == []


@pytest.mark.slow
def test_no_import_goes_up_at_run_time() -> None:
    assert sorted(violations(run_time_only=True)) == []


@pytest.mark.slow
def test_no_entry_for_types_is_stale() -> None:
    assert sorted(FOR_TYPES - violations()) == [], "these imports are gone: remove them from FOR_TYPES"


@pytest.mark.slow
def test_no_files_import_each_other() -> None:
    """This includes imports for type checkers only."""
    pairs = {pair for pair in imports() if pair[1] in modules() and pair[0] != pair[1]}
    circles = [sorted(group) for group in nx.strongly_connected_components(nx.DiGraph(sorted(pairs))) if len(group) > 1]
    assert circles == []


@pytest.mark.parametrize(
    ("folder", "others"),
    [("fast", {"registry", "elementwise", "suppression"}), ("export/ops", set()), ("lowering/ops", set())],
)
def test_modules_for_operations_have_the_names_of_their_modules(folder: str, others: set[str]) -> None:
    """A module of another name is never imported, so that its operations have no fast form, or no export."""
    names = {path.stem for path in (PACKAGE / folder).glob("*.py")}
    assert sorted(names - {path.stem for path in (PACKAGE / "ops").glob("*.py")}) == sorted(others)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["parallel", "fast_calls"])
def test_references_have_neither_threads_nor_lists_of_calls(name: str) -> None:
    users = {package(importer) for importer, target in imports() if target == f"ovir.core.{name}"}
    assert "fast" in users
    assert users.isdisjoint({"ops", "kernels"})
