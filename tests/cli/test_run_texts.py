"""Strings go into the command line and come out of it as text."""

import json
from pathlib import Path

import numpy as np
import pytest

import ovir
from ovir import opset15 as ops
from ovir.cli.main import main


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


def values_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["run", "texts.xml", "--json", *arguments]) == 0
    values: list[str] = json.loads(capsys.readouterr().out)["outputs"][0]["values"]
    return values


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Hello", ["Hello"]),
        ("a, b = [c]; \U0001f600 'd'", ["a, b = [c]; \U0001f600 'd'"]),
        ("", [""]),
        ("[Hello, world]", ["Hello", "world"]),
        ('["a, b", "c=d", "[e]"]', ["a, b", "c=d", "[e]"]),
    ],
)
@pytest.mark.usefixtures("texts")
def test_texts_are_values(value: str, expected: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert values_of(capsys, "--input", f"text={value}") == expected
    assert values_of(capsys, "--input", f"{'text=' if '=' in value else ''}{value}") == expected


def test_each_line_of_a_file_is_a_text(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts.with_name("lines.txt").write_text("first, with = and [\r\n\nGrüße\u2028 日本語\n", "utf-8", newline="")
    assert values_of(capsys, "--input", "text=lines.txt") == ["first, with = and [", "", "Grüße\u2028 日本語"]


def test_texts_are_shown_and_saved(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, html = texts.with_name("out.npz"), texts.with_name("report.html")
    arguments = ["--input", "text=[Grüße, b]", "--tap", "copy", "--output", str(output)]
    assert main(["run", "texts.xml", *arguments]) == 0
    assert capsys.readouterr().out.count("'Grüße' 'b'") == 2  # of the output and of the tap
    with np.load(output) as arrays:
        assert {name: array.tolist() for name, array in arrays.items()} == {
            "copied": ["Grüße", "b"],
            "tap:copy": ["Grüße", "b"],
        }
    assert main(["run", "texts.xml", "--input", f"text={output}:copied"]) == 0
    assert "'Grüße' 'b'" in capsys.readouterr().out
    pytest.importorskip("jinja2", reason="reports need jinja2")
    pytest.importorskip("plotly", reason="reports need plotly")
    pytest.importorskip("itables", reason="reports need itables")
    assert main(["run", "texts.xml", "--input", f"text=[{'word ' * 100}, b]", "--html", str(html)]) == 0
    assert "word " * 99 in html.read_text("utf-8")


@pytest.mark.usefixtures("texts")
def test_long_texts_are_cut_off_in_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "texts.xml", "--input", f"text={'long ' * 1000}"]) == 0
    assert len(capsys.readouterr().out.splitlines()[1]) < 200
    assert values_of(capsys, "--input", f"text={'long ' * 1000}") == ["long " * 1000]


@pytest.mark.usefixtures("texts")
def test_a_text_may_have_an_equals_sign(capsys: pytest.CaptureFixture[str]) -> None:
    assert values_of(capsys, "--input", "1 + 1 = 2") == ["1 + 1 = 2"]
    assert values_of(capsys, "--input", "text=a=b") == ["a=b"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[A] b", "put in quotes"),
        ("[[a, b], [c]]", "different lengths"),
        ("\udcff", "the text is not UTF-8"),
        ("empty.txt", "the file is empty"),
        ("latin.txt", "cannot read the texts"),
        ("a=b", 'a text with = is put in quotes and brackets: ["a = b"]'),
    ],
)
def test_errors(value: str, message: str, texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts.with_name("empty.txt").write_text("")
    texts.with_name("latin.txt").write_bytes(b"Gr\xfc\xdfe\n")
    assert main(["run", "texts.xml", "--input", value if value == "a=b" else f"text={value}"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_each_line_is_a_set_of_inputs(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts.with_name("lines.txt").write_text("first\nsecond\n", "utf-8")
    assert main(["run", "texts.xml", "--inputs", "lines.txt", "--output", "results", "--workers", "1"]) == 0
    with np.load(texts.with_name("results") / "lines.txt" / "2.npz") as arrays:
        assert arrays["copied"].tolist() == ["second"]


def test_a_comparison_names_the_text_that_differs(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ops.parameter([-1], "string", name="text", tensor_names={"text"})
    begins, ends, symbols = ops.string_tensor_unpack(text).outputs
    is_letter = ops.greater(symbols, np.uint8(ord("a")))
    changed = ops.select(is_letter, symbols, np.uint8(ord("_")))
    copy = ops.string_tensor_pack(begins, ends, changed, name="copy")
    copy.outputs[0].names = {"copied"}
    ovir.save_model(ovir.Model([copy], [text], "other"), texts.with_name("other.xml"))
    texts.with_name("lines.txt").write_text("second\nlast line\n", "utf-8")
    assert main(["compare", "texts.xml", "other.xml", "--inputs", "lines.txt"]) == 1
    out = capsys.readouterr().out
    assert "first layer beyond tolerance: StringTensorPack 'copy'" in out
    assert "with lines.txt/2 'last line'" in out
    assert "'l_st_line'" in out
    assert out.count("lines.txt/2") == 3  # in the first line, the output and the layer that differs
