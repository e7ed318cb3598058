"""Generated documents are those that the code generates today."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from ovir.cli.main import main
from ovir.ops import operator

ROOT = Path(__file__).parent.parent
DOCS = Path(__file__).parent.parent / "docs"


def test_operations() -> None:
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert main(["ops", "--markdown"]) == 0
    hint = "docs/operations.md is out of date: ovir ops --markdown > docs/operations.md"
    assert printed.getvalue() == (DOCS / "operations.md").read_text(encoding="utf-8"), hint


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
