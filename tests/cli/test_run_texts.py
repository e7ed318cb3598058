"""Strings go into the command line and come out of it as text; transcripts/run.md shows the rest."""

from pathlib import Path

import pytest
from support.command import Cli, require_row

import ovir
from ovir import opset15 as ops


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with a model that returns the strings that it takes, and return its path."""
    text = ops.parameter([-1], "string", name="text", tensor_names={"text"})
    begins, ends, symbols = ops.string_tensor_unpack(text).outputs
    copy = ops.string_tensor_pack(begins, ends, symbols, name="copy")
    copy.outputs[0].names = {"copied"}
    monkeypatch.chdir(tmp_path)
    ovir.save_model(ovir.Model([copy], [text], "texts"), tmp_path / "texts.xml")
    return tmp_path / "texts.xml"


RESULTS = r"""
run texts.xml --json --input text=Hello => 0 => "values": ["Hello"]
run texts.xml --json --input Hello => 0 => "values": ["Hello"]
run texts.xml --json --input "text=a, b = [c]; 😀 'd'" => 0 => "values": ["a, b = [c]; \ud83d\ude00 'd'"]
run texts.xml --json --input '' => 0 => "values": [""]
run texts.xml --json --input 'text=[Hello, world]' => 0 => "values": ["Hello", "world"]
run texts.xml --json --input 'text=["a, b", "c=d", "[e]"]' => 0 => "values": ["a, b", "c=d", "[e]"]
run texts.xml --json --input '1 + 1 = 2' => 0 => "values": ["1 + 1 = 2"]
run texts.xml --json --input text=a=b => 0 => "values": ["a=b"]
run texts.xml --json --input text=lines.txt => 0 => "values": ["first, with = and [", "", "Gr\u00fc\u00dfe\u2028 \u65e5\u672c\u8a9e"]
run texts.xml --json --input text=long.txt => 0 => long long
run texts.xml --input text=long.txt => 0 => long ... && !"values"
run texts.xml --input 'text=[A] b' => 2 => put in quotes
run texts.xml --input 'text=[[a, b], [c]]' => 2 => different lengths
run texts.xml --input text=\udcff => 2 => the text is not UTF-8
run texts.xml --input text=empty.txt => 2 => the file is empty
run texts.xml --input text=latin.txt => 2 => cannot read the texts
run texts.xml --input a=b => 2 => a text with = is put in quotes and brackets: ["a = b"]
"""


@pytest.mark.parametrize("row", RESULTS.strip().splitlines())
def test_texts_are_values(texts: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    texts.with_name("lines.txt").write_text("first, with = and [\r\n\nGrüße\u2028 日本語\n", "utf-8", newline="")
    texts.with_name("long.txt").write_text("long " * 1000)
    texts.with_name("empty.txt").write_text("")
    texts.with_name("latin.txt").write_bytes(b"Gr\xfc\xdfe\n")
    require_row(cli, monkeypatch, row.replace("=\\udcff", "=\udcff"))
