"""Every bad file gets the diagnostics that it says, each on its line, and no others; every code has its file and its text.

A file in ``data/bad`` is named after its first code. A comment at its head, or a ``.expect`` beside a file that can hold
none, has a line ``expect: OVIR305 line 34`` for each diagnostic (no line: one of the whole file) and may have
``options: runtime 2022.3`` or ``options: device NPU``. ``messages.txt`` has the texts of all of these diagnostics; after
a change, ``python -m tests.checks.test_bad_files`` writes it, and whoever made the change reads the difference.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import ovir
from ovir.checks.baseline import Baseline, write_baseline
from ovir.checks.checker import FoundDiagnostics, check_here, counts_by_code, counts_by_file
from ovir.checks.options import CheckOptions
from ovir.checks.recovering import read_recovering
from ovir.checks.rule import RULES, Context, Found, Rule
from ovir.checks.rules import CODES
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.inference.engines import Engine

DATA = Path(__file__).parent.parent / "data" / "bad"
FILES = sorted(DATA.glob("*.xml"))
TOO_LARGE = {"OVIR509"}
"""Tests make the files of these codes, which have megabytes of weights."""
OF_FILES = [code for code in CODES.values() if "OVIR1" <= code.id < "OVIR8" and code.id not in TOO_LARGE]
"""The codes of what can be wrong with a file of the folder."""


def said(path: Path) -> str:
    """What a file says of itself."""
    beside = path.with_suffix(".expect")
    text = (beside if beside.exists() else path).read_text(encoding="utf-8")
    return text if beside.exists() else text[text.index("<!--") : text.index("-->")]


def expected(path: Path) -> list[tuple[str, int | None]]:
    found = re.findall(r"^ *expect: (OVIR\d+)(?: line (\d+))?$", said(path), re.MULTILINE)
    return [(code, int(line) if line else None) for code, line in found]


def options(path: Path) -> dict[str, Any]:
    return dict(re.findall(r"^ *options: (\w+) (\S+)$", said(path), re.MULTILINE))


MESSAGES = DATA / "messages.txt"


def messages(diagnostics: Iterable[ovir.Diagnostic]) -> str:
    """Return the diagnostics of files as a user sees them, with their ports and fixes."""
    text = ""
    for found in diagnostics:
        text += f"{found}\n" if found.port is None else f"{found}\n  port: {found.port}\n"
        if found.fix is not None:
            text += f"  {'fix' if found.fix.is_safe else 'unsafe fix'}: {found.fix.what}\n"
    return re.sub("this machine has .*", "this machine has less", text.replace(f"{DATA}{os.sep}", ""))


def test_every_file_gets_the_diagnostics_that_it_says() -> None:
    wrong, all_found = {}, []
    for path in FILES:
        found = ovir.check(path, **options(path))
        all_found += found
        if sorted((d.code, d.line or 0) for d in found) != sorted((code, line or 0) for code, line in expected(path)):
            wrong[path.stem] = list(map(str, found))
    assert not wrong
    assert messages(all_found).splitlines() == MESSAGES.read_text(encoding="utf-8").splitlines()


def test_no_other_diagnostics_without_weights() -> None:
    wrong = {}
    for path in FILES:
        found = ovir.check(path, need_weights=False, **options(path))
        if not {(d.code, d.line) for d in found} <= set(expected(path)):
            wrong[path.stem] = list(map(str, found))
    assert not wrong


def test_files_are_named_after_their_first_diagnostic() -> None:
    wrong = [path for path in FILES if not re.fullmatch(rf"{expected(path)[0][0]}(_[a-z0-9]+)+", path.stem)]
    assert not wrong


FOUND_LATER = {"OVIR218", "OVIR517"}
"""Errors that only ``check`` looks for; ``read_model`` leaves them to the run."""


def test_read_model_raises_all_errors_that_are_not_tolerated() -> None:
    wrong = {}
    for path in FILES:
        errors = {d.code for d in ovir.check(path) if d.severity is ovir.Severity.ERROR} - FOUND_LATER
        fatal = {code for code in errors if not CODES[code].tolerated}
        try:
            warned, raised = {d.code for d in ovir.read_model(path).diagnostics}, set()
        except ovir.OvirError as error:
            warned, raised = set(), {d.code for d in error.diagnostics}
        if raised != fatal or (not fatal and not errors <= warned):
            wrong[path.stem] = (errors, raised, warned)
    assert not wrong


def test_a_file_is_inferred_at_most_with_declared_types_and_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    inferences: list[Engine] = []
    infer = Engine.infer

    def counted(engine: Engine, model: ovir.Model, *given: Any) -> Any:
        if model.holder is None:
            inferences.append(engine)
        return infer(engine, model, *given)

    monkeypatch.setattr(Engine, "infer", counted)
    often = {}
    for path in FILES:
        for call in (ovir.check, read_recovering):
            inferences.clear()
            with suppress(ovir.OvirError):
                call(path)
            if len(inferences) > 2:
                often[path.stem, call.__name__] = len(inferences)
    assert not often


def test_files_at_fault_are_read_as_far_as_they_can_be_understood() -> None:
    """What reading reports, a check reports as well; nothing can be read only of files that are unusable."""
    wrong = {}
    for path in FILES:
        found = ovir.check(path)
        errors = {(d.code, d.line) for d in found if d.severity is ovir.Severity.ERROR}
        is_unusable = any(CODES[d.code].unusable and d.code != "OVIR501" for d in found)
        try:
            more = {(d.code, d.line) for d in read_recovering(path).errors} - errors
        except ovir.ReadError:
            more = None
        if more != (None if is_unusable else set()):
            wrong[path.stem] = more
    assert not wrong


def test_a_baseline_takes_what_it_was_written_from(tmp_path: Path) -> None:
    """Each diagnostic as often as it was found, with and without a layer and a port."""
    found = [d for path in FILES for d in ovir.check(path)] + ovir.check(FILES[0])
    path = str(tmp_path / "baseline.json")
    write_baseline(path, found)
    known = Baseline.read(path)
    files = {d.file for d in found if d.file is not None}
    assert known.count_missing(files, lambda file, code: True) == len(found)
    assert all(known.takes(d) for d in found)
    assert not any(known.takes(d) for d in found)
    assert known.count_missing(files, lambda file, code: True) == 0
    assert sum(sum(row[1:]) for row in counts_by_file(found).rows) == len(found)
    assert sum(row[2] for row in counts_by_code(found).rows) == len(found)


def told(code: str, file: str = "", line: int | None = None, layer: str | None = None, port: int | None = None) -> Any:
    return diagnose(CODES[code], f"about {code}", Place(file or None, line, layer), port=port)


def test_a_baseline_names_what_it_holds(tmp_path: Path) -> None:
    """A key that is missing stands for no layer, no port, and one diagnostic."""
    path = str(tmp_path / "known" / "baseline.json")
    os.mkdir(tmp_path / "known")
    a, b, c = (
        told("OVIR401", str(tmp_path / "m.xml"), 7, "x", 0),
        told("OVIR401", str(tmp_path / "m.xml"), 9),
        told("OVIR215"),
    )
    write_baseline(path, [c, a, b, a])
    assert json.loads(Path(path).read_text())["diagnostics"] == [
        {"file": "", "code": "OVIR215", "message": "about OVIR215"},
        {"file": "../m.xml", "code": "OVIR401", "message": "about OVIR401"},
        {"file": "../m.xml", "code": "OVIR401", "layer": "x", "port": 0, "count": 2, "message": "about OVIR401"},
    ]
    known = Baseline.read(path)
    assert known.count_missing([str(tmp_path / "m.xml")], lambda file, code: True) == 3
    assert known.count_missing([str(tmp_path / "m.xml")], lambda file, code: code != "OVIR401") == 0
    assert known.count_missing([], lambda file, code: True) == 0
    other = told("OVIR401", str(tmp_path / "m.xml"), 7, "x", 1)
    assert [known.takes(d) for d in (a, a, a, b, b, c, other)] == [True, True, False, True, False, True, False]


@pytest.mark.parametrize(
    ("content", "message", "line"),
    [
        (None, "cannot read the baseline: No such file or directory", None),
        ("{\n", "the baseline is not JSON: ", 2),
        ("[]", "not a baseline of version 1, which `--write-baseline` writes", None),
        ('{"version": 2, "diagnostics": []}', "not a baseline of version 1, which `--write-baseline` writes", None),
        ('{"version": 1}', "entry 0 of the baseline's 'diagnostics' is not a diagnostic", None),
        ('{"version": 1, "diagnostics": [{"file": "a", "code": "b"}, {"file": "a"}]}', "entry 1 of the baseline's", None),
        ('{"version": 1, "diagnostics": [{"file": "a", "code": "b", "count": "c"}]}', "entry 0 of the baseline's", None),
    ],
)  # fmt: skip
def test_files_that_are_no_baselines(content: str | None, message: str, line: int | None, tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ovir.InputError) as caught:
        Baseline.read(str(path))
    found = caught.value.diagnostic
    assert (found.message[: len(message)], found.file, found.line) == (message, str(path), line)
    assert (found.hint is None) == (content is not None)


def test_tables_of_diagnostics() -> None:
    found = [
        told("OVIR401", "b.xml"),
        told("OVIR401", "a.xml", 0),
        told("OVIR702", "a.xml"),
        told("OVIR212"),
        told("OVIR212", "b.xml"),
    ]
    assert [row[:4] for row in counts_by_code(found).rows] == [
        ("OVIR212", "info", 2, 2),
        ("OVIR401", "error", 2, 2),
        ("OVIR702", "info", 1, 1),
    ]
    assert counts_by_file(found, ["c.xml", "a.xml"]).rows == [
        ("a.xml", 1, 0, 1),
        ("b.xml", 1, 0, 1),
        ("", 0, 0, 1),
        ("c.xml", 0, 0, 0),
    ]
    text = re.sub("<[^>]*>", "|", FoundDiagnostics([told("OVIR215"), told("OVIR401", "a", 7, "x")])._repr_html_())
    assert "||warning||OVIR215||||||about OVIR215||||" in text
    assert "||error||OVIR401||7||x||about OVIR401||||" in text


@pytest.mark.parametrize(("untrusted", "severity"), [(False, "warning"), (True, "error")])
def test_a_rule_that_fails_hides_no_other(untrusted: bool, severity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(context: Context) -> Iterator[Found]:
        raise ValueError("no")
        yield

    monkeypatch.setitem(RULES, "OVIR212", Rule(CODES["OVIR212"], failing))
    found = check_here(DATA / "OVIR213_duplicate_name.xml", None, CheckOptions(untrusted=untrusted))
    assert [(d.code, d.message, str(d.severity)) for d in found if d.code != "OVIR213"] == [
        ("OVIR999", "ovir failed in the rule of OVIR212: ValueError: no", severity)
    ]
    assert "OVIR213" in {d.code for d in found}


def test_every_code_has_a_file() -> None:
    assert not [code.id for code in OF_FILES if not list(DATA.glob(f"{code.id}_*.xml"))]


def test_every_code_has_an_example_and_says_how_to_fix_it() -> None:
    form = re.compile(r".+\n\n```(xml|text)\n.+\n```\n\n(.+\n\n)?Fix: .+", re.DOTALL)
    assert not [code.id for code in CODES.values() if form.fullmatch(code.section) is None]


if __name__ == "__main__":
    of_files = (d for path in FILES for d in ovir.check(path, **options(path)))
    MESSAGES.write_text(messages(of_files), encoding="utf-8")
