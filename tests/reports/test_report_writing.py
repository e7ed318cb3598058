"""The file of a report: it has all that it needs, runs no script but its own, and appears at once or not at all."""

import base64
import gzip
import hashlib
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import ovir
from ovir.core.tables import Column, Table, columns
from ovir.diagnostics import errors
from ovir.diagnostics.wording import escaped
from ovir.reports import writing
from ovir.reports.charts import bars
from ovir.reports.page import Detail, Figure, Page, Text

pytest.importorskip("jinja2", reason="jinja2, of the extra `html`, is not installed")
pytest.importorskip("plotly", reason="plotly, of the extra `html`, is not installed")
pytest.importorskip("itables", reason="itables, of the extra `html`, is not installed")

NASTY = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>\"'&amp;\u2028{{ 7 * 7 }}"


class Elements(HTMLParser):
    """The elements of a page, with their attributes and texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("", {}, ""))  # what follows is not a text of the element

    def handle_data(self, data: str) -> None:
        if self.found:
            tag, attributes, text = self.found[-1]
            self.found[-1] = tag, attributes, text + data

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for name, attributes, text in self.found if name == tag]


def test_columns_without_anything_are_left_out() -> None:
    page = Page("check", "model", "done")
    page.add("Part", Table(columns("a: text; b: text; c: count"), [("", "x", None), (None, "y", 0)]))
    (found,) = writing.to_data(page)["tables"]
    assert [column["name"] for column in found["columns"]] == ["b", "c"]
    assert found["rows"] == [["x", None], ["y", 0]]


def nasty_page() -> Page:
    """Return a page whose every text looks like markup."""
    table = Table([Column(NASTY), Column("name", "name")], [(NASTY, NASTY)], [Detail(NASTY, [Text(NASTY)])])
    page = Page("check", NASTY, NASTY, figures=[Figure(NASTY, NASTY, NASTY)])
    page.add("Diagnostics", table, Text(NASTY), note=NASTY)
    return page


def charted_page() -> Page:
    page = Page("run", "model.xml", "done")
    page.add("Times", bars(NASTY, [NASTY], [1.0], axis="ms"))
    return page


def data_of(text: str) -> Any:
    (data,) = (content for attributes, content in Elements(text).all("script") if attributes.get("id") == "data")
    return json.loads(data)


@pytest.mark.parametrize("page", [nasty_page(), charted_page()], ids=["table", "chart"])
def test_texts_of_a_model_are_no_markup(page: Page) -> None:
    elements = Elements(writing.render(page, "1.0"))
    scripts = elements.all("script")
    assert [a.get("id") for a, _ in scripts] == ["data", "plotly" if page.command == "run" else "datatables", None]
    assert not elements.all("img")
    assert not any("alert" in text for attributes, text in scripts if attributes.get("id") != "data")


def test_the_data_has_the_texts_unchanged() -> None:
    (table,) = data_of(writing.render(nasty_page(), "1.0"))["tables"]
    shown = NASTY.replace("\u2028", "\\u2028")
    assert table["rows"] == [[shown, shown]]
    assert table["details"][0]["title"] == shown


@pytest.mark.parametrize("value", ["</script>", "<!--", "]]>", "&lt;", "\u2028\u2029", "é\ud800"])
def test_embedded_json_has_no_character_of_markup(value: str) -> None:
    text = writing.embedded({"a": [value]})
    assert not re.search("[<>&]", text)
    assert text.isascii()
    assert json.loads(text) == {"a": [value]}


@pytest.mark.parametrize("page", [nasty_page(), charted_page()], ids=["table", "chart"])
def test_the_policy_allows_the_scripts_of_the_page_and_nothing_else(page: Page) -> None:
    elements = Elements(writing.render(page, "1.0"))
    (policy,) = (
        a["content"] or "" for a, _ in elements.all("meta") if a.get("http-equiv") == "Content-Security-Policy"
    )
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert "unsafe" not in directives["script-src"]
    scripts = {attributes.get("id"): text for attributes, text in elements.all("script")}
    allowed = [hash_of(scripts[None])]
    if "datatables" in scripts:
        allowed.append("blob:")  # only a script of the page can make such an address
    if "plotly" in scripts:
        allowed.append(hash_of(gzip.decompress(base64.b64decode(scripts["plotly"])).decode()))
    assert directives["script-src"].split() == allowed


def hash_of(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


@pytest.mark.parametrize("page", [nasty_page(), charted_page()], ids=["table", "chart"])
def test_nothing_is_loaded(page: Page) -> None:
    elements = Elements(writing.render(page, "1.0"))
    addresses = [a[name] for _, a, _ in elements.found for name in ("src", "href") if name in a]
    assert all(address and address.startswith(("#", "data:")) for address in addresses)
    styles = " ".join(text for _, text in elements.all("style"))
    assert "url(" not in styles
    assert "@import" not in styles


def test_libraries_are_only_in_pages_that_need_them() -> None:
    assert len(writing.render(Page("show", "model.xml", "done"), "1.0")) < 60_000
    assert 200_000 < len(writing.render(nasty_page(), "1.0")) < 400_000
    assert 1_000_000 < len(writing.render(charted_page(), "1.0")) < 3_000_000


def test_long_names_have_short_forms_that_differ() -> None:
    page = Page("run", "model.xml", "done")
    names = [f"__module.encoder.layers.{number}.attention/{NASTY}" for number in range(20)]
    page.add("Layers", Table(columns("layer: name; note: text"), [[name, name] for name in names]))
    short = data_of(writing.render(page, "1.0"))["short"]
    assert list(short) == [escaped(name) for name in names]
    assert len(set(short.values())) == len(names)
    assert max(map(len, short.values())) <= writing.SHORTEST_COLUMN


def test_equal_pages_are_equal_files(tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        writing.write_report(charted_page(), tmp_path / name, "1.0")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_failure_leaves_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("older")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ovir.OvirError, match="cannot save the report: No space left on device"):
        writing.write_report(nasty_page(), path, "1.0")
    assert path.read_text() == "older"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["model.xml", "model.bin", "report", "report.htm"])
def test_another_ending_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ovir.InputError, match=r"the path of a saved report must end in \.html") as raised:
        writing.write_report(nasty_page(), tmp_path / name, "1.0")
    assert raised.value.diagnostic.hint is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", [["jinja2"], ["plotly"], ["jinja2", "plotly"]])
def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: list[str]) -> None:
    monkeypatch.setattr(errors.importlib.util, "find_spec", lambda name: None if name in missing else name)
    with pytest.raises(ovir.InputError) as raised:
        writing.require_report(tmp_path / "report.html")
    assert raised.value.diagnostic.message == f"a report needs {' and '.join(missing)}, which cannot be imported"
    assert raised.value.diagnostic.hint == 'pip install "ovir[html]"'
