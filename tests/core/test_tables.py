"""Tables as data: columns, cells as texts, and what a place leaves out; and the JSON of results."""

from types import SimpleNamespace
from typing import Any

import pytest

from ovir.core.element_types import ElementType
from ovir.core.html import MOST_ROWS, html_table
from ovir.core.json_fields import json_fields
from ovir.core.shapes import PartialShape
from ovir.core.short_names import columns_of, short_names, without_middle
from ovir.core.tables import Column, Table, cell_text, columns


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        *(("count", 12345, "12,345"), ("count", 0, "0"), ("count", None, "-"), ("count", "fails", "fails")),
        *(("amount", 12345, "12.3 k"), ("amount", 0, "-"), ("amount", None, "?")),
        *(("bytes", 12345, "12.3 kB"), ("bytes", 0, "-"), ("bytes", None, "?")),
        *(("real", 0.12345678, "0.123457"), ("real", 7, "7"), ("real", None, "-"), ("error", 0.12345678, "0.123")),
        *(("ms", 1.23456, "1.235"), ("share", 0.12345, "12.3%"), ("decibels", 12.345, "12.3")),
        *(("cosine", 0.12345678, "0.123457"), ("counts", "2 NaN", "2 NaN"), ("counts", None, "-")),
        *(("layer", SimpleNamespace(key="body/act"), "body/act"), ("layer", "act", "act"), ("text", None, "")),
        ("tensor", PartialShape([1, 2]), "[1,2]"),
    ],
)
def test_a_cell_has_the_text_of_its_kind(kind: str, value: Any, text: str) -> None:
    assert cell_text(kind, value) == text


def test_columns_are_written_in_one_text() -> None:
    assert columns("max abs: error; : tag chosen; order: count in reports; of: x: layer 2.4 in texts") == [
        Column("max abs", "error"),
        Column("", "tag", filtered=True),
        Column("order", "count", only="reports"),
        Column("of: x", "layer", 2.4, only="texts"),
    ]


def test_a_notebook_has_the_columns_of_texts() -> None:
    table = Table(columns("a: text; b: count in reports; a: count in texts"), [("<x>", 1, 2)])
    assert table.without(["texts"]).rows == [["<x>", 1]]
    shown = table.in_notebook("title")
    assert shown.count('<th style="text-align:left">a</th>') == 2
    assert "&lt;x&gt;" in shown
    assert table.without(["a"]).columns == columns("b: count in reports")


@pytest.mark.parametrize(("count", "more"), [(0, ""), (MOST_ROWS, ""), (MOST_ROWS + 7, "<p>and 7 more</p>")])
def test_a_table_says_how_many_rows_it_does_not_show(count: int, more: str) -> None:
    found = html_table("many", ("n",), [(n,) for n in range(count)])
    assert (found.count("<td"), found.count("<th ")) == (min(count, MOST_ROWS), int(count > 0))
    assert found.endswith(f"{more}</div>")
    assert ("more" in found) == (more != "")


def test_json_has_attributes_under_their_names() -> None:
    shape = PartialShape([1, -1])
    inner = SimpleNamespace(to_dict=lambda: {"low": 1}, shape=shape, type=ElementType.parse("f16"))
    item = SimpleNamespace(name="x", sizes=(1, 2), inner=inner, all=[inner], none=None)
    found = json_fields(item, "none", "inner.shape", "kind=inner.type", "sizes", "all", "called=name")
    assert list(found.items()) == [
        *(("none", None), ("shape", str(shape)), ("kind", "f16"), ("sizes", [1, 2]), ("all", [{"low": 1}])),
        ("called", "x"),
    ]


LONG = [f"model/layers.{i}/{part}" for i in (1, 2, 10) for part in ("conv/weights", "漢字漢字/bias", "x" * 30 + str(i))]


@pytest.mark.parametrize("width", range(8, 40))
def test_short_names_fit_and_differ(width: int) -> None:
    names = [*LONG, "short", "a" * 20 + "b" * 20, "a" * 21 + "b" * 19, LONG[0]]
    found = dict(zip(names, short_names(names, width), strict=True))
    assert len(set(found.values())) == len(set(names))
    assert all(columns_of(text) <= width and (text == name or columns_of(name) > width) for name, text in found.items())


def test_numbers_and_rare_parts_remain_in_short_names() -> None:
    names = [f"model/encoder/layer.{i}/{part}/output" for i in (1, 2, 12) for part in ("attention", "gate")]
    assert short_names(names, 14)[:3] == ["…1/attention/…", "…1/gate/output", "…2/attention/…"]
    names = [f"a/{'x' * 30}/b", "a/c/longa/c/longa/c/long", "a/d"]
    assert short_names(names, 12) == ["a/…b", "a/c/…c/…c/…", "a/d"]
    # A part of two columns in two names costs as much as one of three columns in one name: what stands for it has one.
    assert short_names(["a/b/kv", "a/kvb/", "b/kva/"], 5) == ["a/…kv", "a/…", "b/…"]


@pytest.mark.parametrize(("width", "text"), [(7, "abcdefg"), (6, "a…defg"), (4, "a…fg"), (1, "…")])
def test_a_third_of_what_remains_is_the_beginning(width: int, text: str) -> None:
    assert without_middle("abcdefg", width) == text
