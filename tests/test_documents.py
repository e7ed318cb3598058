"""Generated documents are those that the code generates today."""

import inspect
import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from ovir.cli.main import main
from ovir.cli.ops import Entry, entries
from ovir.ops import operator

ROOT = Path(__file__).parent.parent
DOCS = Path(__file__).parent.parent / "docs"


def test_operations() -> None:
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert main(["ops", "--markdown"]) == 0
    hint = "docs/operations.md is out of date: ovir ops --markdown > docs/operations.md"
    assert printed.getvalue() == (DOCS / "operations.md").read_text(encoding="utf-8"), hint


OPERATIONS = {entry.name for entry in entries()}
EVERY_OPERATION = pytest.mark.parametrize("entry", entries(), ids=lambda entry: f"{entry.name}-{entry.opset}")


@EVERY_OPERATION
def test_the_first_sentence_says_what_an_operation_is(entry: Entry) -> None:
    # It is shown by itself, where no base class is at hand.
    assert entry.cls is not None
    assert len(entry.doc.split()) >= 5, entry.doc
    bases = {base.__name__ for base in entry.cls.__mro__[1:]} - OPERATIONS
    assert not bases & set(re.findall(r"\w+", entry.doc)), entry.doc


@EVERY_OPERATION
def test_the_last_line_names_the_specification(entry: Entry) -> None:
    assert entry.cls is not None
    last = inspect.cleandoc(entry.cls.__doc__ or "").splitlines()[-1]
    assert re.fullmatch(r"Source: \w+-\d+", last), last


def test_the_example_of_an_operation_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(operator, "_users", {})
    text = (DOCS / "adding-an-operation.md").read_text(encoding="utf-8")
    code = next(block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "ovir.register" in block)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code, "adding-an-operation.md", "exec"), {})
    promised = re.search(r"print\(.*# (.*)", code)
    assert promised is not None
    assert printed.getvalue().strip() == promised[1]
