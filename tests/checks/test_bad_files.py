"""Every bad file gets the diagnostics that it says, each on its line, and no others; every code has its file and its text.

A file in ``data/bad`` is named after its first code. A comment at its head, or a ``.expect`` beside a file that can hold
none, has a line ``expect: OVIR305 line 34`` for each diagnostic (no line: one of the whole file) and may have
``options: runtime 2022.3``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ovir
from ovir.diagnostics.codes import CODES

DATA = Path(__file__).parent.parent / "data" / "bad"
FILES = sorted(DATA.glob("*.xml"))
OF_FILES = [code for code in CODES.values() if "OVIR1" <= code.id < "OVIR8"]
"""The codes of what can be wrong with a file."""
DOCUMENT = (Path(__file__).parent.parent.parent / "docs" / "diagnostics.md").read_text(encoding="utf-8")


def said(path: Path) -> str:
    """What a file says of itself."""
    beside = path.with_suffix(".expect")
    text = (beside if beside.exists() else path).read_text(encoding="utf-8")
    return text if beside.exists() else text[text.index("<!--") : text.index("-->")]


def expected(path: Path) -> list[tuple[str, int | None]]:
    found = re.findall(r"^ *expect: (OVIR\d+)(?: line (\d+))?$", said(path), re.MULTILINE)
    return [(code, int(line) if line else None) for code, line in found]


def options(path: Path) -> dict[str, tuple[int, int]]:
    found = re.findall(r"^ *options: (\w+) (\d+)\.(\d+)$", said(path), re.MULTILINE)
    return {name: (int(major), int(minor)) for name, major, minor in found}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_findings(path: Path) -> None:
    found = ovir.check(path, **options(path))
    assert sorted((d.code, d.line or 0) for d in found) == sorted((code, line or 0) for code, line in expected(path)), (
        "\n".join(map(str, found))
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_else_is_found_without_weights(path: Path) -> None:
    found = ovir.check(path, need_weights=False, **options(path))
    assert {(d.code, d.line) for d in found} <= set(expected(path)), "\n".join(map(str, found))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_named_after_its_first_finding(path: Path) -> None:
    assert re.fullmatch(rf"{expected(path)[0][0]}(_[a-z0-9]+)+", path.stem)


FOUND_LATER = {"OVIR218", "OVIR517"}
"""Errors that only ``check`` looks for; ``read_model`` leaves them to the run."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_read_model_refuses_what_has_errors(path: Path) -> None:
    """All errors but those that a reader can live with, of which it warns."""
    errors = {d.code for d in ovir.check(path) if d.severity is ovir.Severity.ERROR} - FOUND_LATER
    fatal = {code for code in errors if not CODES[code].tolerated}
    if fatal:
        with pytest.raises(ovir.OvirError) as caught:
            ovir.read_model(path)
        assert {d.code for d in caught.value.diagnostics} == fatal
    else:
        assert errors <= {d.code for d in ovir.read_model(path).diagnostics}


@pytest.mark.parametrize("code", OF_FILES, ids=lambda code: code.id)
def test_every_code_has_a_file(code: ovir.codes.Code) -> None:
    assert list(DATA.glob(f"{code.id}_*.xml"))


@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: code.id)
def test_every_code_has_its_section(code: ovir.codes.Code) -> None:
    section = re.search(rf"^## {code.id}: (.*?)\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert section is not None
    assert section[1].replace("`", "") == code.meaning
    assert len(section[2].strip().splitlines()) >= 2
