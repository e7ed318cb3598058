"""The reference of the Python API describes every public name, from docstrings that say what a reader needs."""

import inspect
import re
from pathlib import Path

import pytest

import ovir

pytestmark = pytest.mark.documents

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"


def test_every_public_name_is_in_the_reference() -> None:
    described = [
        name
        for path in REFERENCE.glob("*.md")
        for name in re.findall(r"^::: ovir\.(\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    missing = sorted(set(ovir.__all__) - set(described))
    assert not missing, f"add `::: ovir.NAME` to a page of docs/reference: {', '.join(missing)}"
    assert sorted(described) == sorted(ovir.__all__)


def test_the_list_of_the_reference_names_the_page_of_each_name() -> None:
    rows = re.findall(
        r"^\| \[.*\]\((\w.*\.md)\) \| (.*) \|$", (REFERENCE / "python.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    listed = {(page, name) for page, names in rows for name in re.findall(r"`(\w+)`", names)}
    described = {
        (path.name, name)
        for path in REFERENCE.glob("*.md")
        for name in re.findall(r"^::: ovir\.(\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert listed == described, "the table of docs/reference/python.md has other names than the pages"


def described_objects() -> list[str]:
    """Return the names of all objects that pages of the reference describe, without the name of the package."""
    pages = [path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.md")]
    return sorted(name for page in pages for name in re.findall(r"^::: ovir\.([\w.]+)$", page, re.MULTILINE))


def test_everything_that_the_reference_shows_has_a_docstring() -> None:
    griffe = pytest.importorskip("griffe", reason="griffe, of the extra `docs`, is not installed")
    yaml = pytest.importorskip("yaml", reason="PyYAML, of the extra `dev`, is not installed")
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    (plugin,) = (plugin["mkdocstrings"] for plugin in config["plugins"] if "mkdocstrings" in plugin)
    hidden = [text.removeprefix("!") for text in plugin["handlers"]["python"]["options"]["filters"]]
    package = griffe.load("ovir", search_paths=[str(ROOT)])
    missing = []
    for name in described_objects():
        target = package[name]
        missing += [] if target.docstring else [name]
        if target.is_class:
            members = {**target.inherited_members, **target.members}
            shown = [member for member in members if not any(re.search(pattern, member) for pattern in hidden)]
            missing += [f"{name}.{member}" for member in shown if not members[member].docstring]
    assert not missing


def test_the_docstring_of_a_function_names_its_errors() -> None:
    functions = {name: target for name in ovir.__all__ if inspect.isfunction(target := getattr(ovir, name))}
    silent = [
        name for name, target in functions.items() if not re.search(r"\b[Rr]aises?\b", inspect.getdoc(target) or "")
    ]
    assert not silent


def test_a_list_of_parameters_names_all_of_them() -> None:
    functions = [getattr(ovir, name) for name in ovir.__all__ if inspect.isfunction(getattr(ovir, name))]
    listing = 0
    for function in [*functions, ovir.Model.preprocess, ovir.CompiledModel.__init__]:
        _, has_list, rest = (inspect.getdoc(function) or "").partition("Args:\n")
        if has_list:
            described = re.findall(r"^    (\w+): ", rest, re.MULTILINE)
            assert described == [name for name in inspect.signature(function).parameters if name != "self"], function
            listing += 1
    assert listing > 10
