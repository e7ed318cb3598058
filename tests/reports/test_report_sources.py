"""The lines of files that reports show."""

from pathlib import Path

import pytest

from ovir.reports.layers import AROUND, LONGEST, Sources


def lines(count: int) -> str:
    return "\n".join(f"line {number}" for number in range(1, count + 1))


def test_lines_around_places_are_kept_once(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(lines(100), encoding="utf-8")
    sources = Sources()
    assert all(sources.add(str(path), line) for line in (50, 52, 1, 100))
    runs = sources.to_data()[str(path)]
    assert [(first, len(texts)) for first, texts in runs] == [(1, 1 + AROUND), (44, 15), (94, 1 + AROUND)]
    assert runs[1][1][0] == "line 44"


@pytest.mark.parametrize("line", [0, 4])
def test_a_line_that_the_file_does_not_have_is_not_kept(tmp_path: Path, line: int) -> None:
    path = tmp_path / "model.xml"
    path.write_text(lines(3), encoding="utf-8")
    sources = Sources()
    assert not sources.add(str(path), line)
    assert sources.to_data() == {}


@pytest.mark.parametrize("name", ["missing.xml", ".", "a\0b"])
def test_a_file_that_cannot_be_read_has_no_lines(tmp_path: Path, name: str) -> None:
    assert not Sources().add(str(tmp_path / name), 1)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "model.xml"
    path.write_bytes("<net name='é'>\r\n\t<layers/>".encode(encoding))
    sources = Sources()
    assert sources.add(str(path), 2)
    assert sources.to_data()[str(path)] == [(1, ["<net name='é'>", "\t<layers/>"])]


def test_lines_are_made_safe_to_show(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_bytes(b"\xff\x00\x1b[31m" + b"x" * 1_000_000)
    sources = Sources()
    assert sources.add(str(path), 1)
    ((_, (text,)),) = sources.to_data()[str(path)]
    assert text.startswith("�\\x00\\x1b[31mxxx")
    assert len(text) < LONGEST + 20
