"""Generated documents are those that the code generates today."""

import io
from contextlib import redirect_stdout
from pathlib import Path

from ovir.cli.main import main

DOCS = Path(__file__).parent.parent / "docs"


def test_operations() -> None:
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert main(["ops", "--markdown"]) == 0
    hint = "docs/operations.md is out of date: ovir ops --markdown > docs/operations.md"
    assert printed.getvalue() == (DOCS / "operations.md").read_text(encoding="utf-8"), hint
