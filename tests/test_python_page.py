"""docs/python.md names the fields that commands print as JSON, and the words that tables use."""

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from ovir.cli.main import main

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
XML = ROOT / "examples" / "xml"
CALLS = {
    "run": ("run", XML / "digits.xml", "--json"),
    "infer": ("infer", XML / "dynamic_shapes.xml", "--json"),
    "show": ("show", XML / "digits.xml", "--json"),
    "check": ("check", XML / "broken" / "wrong_declared_shape.xml", "--json"),
    "ops": ("ops", "Gather", "--json"),
}


@pytest.mark.parametrize("command", CALLS)
def test_fields_of_json_are_documented(command: str) -> None:
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(io.StringIO()):
        main([str(argument) for argument in CALLS[command]])
    document = json.loads(output.getvalue())
    fields = document[0] if isinstance(document, list) else document
    row = re.search(rf"^\| `{command}` \| (.*) \|$", PAGE, re.MULTILINE)
    assert row is not None
    assert set(fields) <= set(re.findall(r"`(\w+)`", row[1]))


def test_words_of_tables_are_explained() -> None:
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        main(["infer", str(XML / "dynamic_shapes.xml")])
        main(["run", str(XML / "dynamic_shapes.xml")])
    for text in ("left open by the model", "size chosen"):
        assert text in output.getvalue()
        assert f"`{text}`" in PAGE
