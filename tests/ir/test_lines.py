"""The line of a diagnostic, where it is not easy to know."""

from __future__ import annotations

import pytest
from builder import Net
from lxml import etree

import ovir
from ovir.ir.elements import line_of


def small() -> str:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "3")))
    return net.xml()


def test_lines_beyond_65535() -> None:
    """libxml2 keeps 16 bits of an element's line, and of longer files the lines of texts."""
    rows = ['<a b="1"/>', "<a>", "  <b/>", "", "  <b>1</b>", "  <b>", "  text", "  </b>", "</a>", "<a><b/></a><c/>", "<a><b>2</b>", "</a>"]  # fmt: skip
    lines = ["<net>", *rows * 8000, "</net>"]
    root = etree.fromstring("\n".join(lines))
    expected = [i for i, line in enumerate(lines, 1) for _ in range(line.count("<") - line.count("</"))]
    assert [line_of(element) for element in root.iter()] == expected


def test_findings_beyond_line_65535() -> None:
    text = small().replace("<layers>", "<layers>" + "\n" * 70_000).replace('from-layer="1"', 'from-layer="7"')
    line = 1 + next(i for i, row in enumerate(text.split("\n")) if 'from-layer="7"' in row)
    assert [(d.code, d.line) for d in ovir.check(text)] == [("OVIR206", line)]


HEAD = '<?xml version="1.0"?>\n<!-- <!DOCTYPE of old>\n<!ENTITY too> -->\n\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
@pytest.mark.parametrize(
    ("doctype", "code", "line"),
    [
        ("<!DOCTYPE net>", "OVIR108", 5),
        ('<!DOCTYPE net\n SYSTEM "ir.dtd">', "OVIR108", 5),
        ('<!DOCTYPE net [\n<!ELEMENT net ANY>\n<!ENTITY a "b">]>', "OVIR107", 7),
    ],
)
def test_declarations(doctype: str, code: str, line: int, encoding: str) -> None:
    head = HEAD.replace("?>", f' encoding="{encoding}"?>', 1)
    text = small().replace('<?xml version="1.0"?>', f"{head}{doctype}")
    assert [(d.code, d.line) for d in ovir.check(text.encode(encoding))] == [(code, line)]
