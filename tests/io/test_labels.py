"""Labels: tables with and without headings, arrays, folders, and which label is of which input."""

from pathlib import Path

import numpy as np
import pytest

import ovir
from ovir.io.input_files import match_names, read_labels, read_table


def table(folder: Path, text: str) -> dict[str, list[float]]:
    (folder / "labels.csv").write_text(text)
    return {name: values.tolist() for name, values in read_table(str(folder / "labels.csv")).items()}


@pytest.mark.parametrize(
    "text",
    [
        "a.jpg,3\nb.jpg,0\n",
        "name,label\na.jpg,3\nb.jpg,0\n",
        "\ufefffilename;class\r\na.jpg;3\r\n\r\nb.jpg;0",
        "a.jpg\t3\nb.jpg\t0\n",
        "file,width,label,height\na.jpg,10,3,20\nb.jpg,11,0,21\n",
        ' "a.jpg" , 3\n"b.jpg",0 \n',
    ],
)
def test_tables(tmp_path: Path, text: str) -> None:
    if text.startswith(" "):
        text = text.lstrip()
    assert table(tmp_path, text) == {"a.jpg": [3], "b.jpg": [0]}


def test_tables_of_numbers(tmp_path: Path) -> None:
    assert table(tmp_path, "name,x,y\na,1.5,2\n") == {"a": [1.5, 2]}
    assert read_table(str(tmp_path / "labels.csv"))["a"].dtype == np.float64
    assert table(tmp_path, "a,-1\n") == {"a": [-1]}
    assert read_table(str(tmp_path / "labels.csv"))["a"].dtype == np.int64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,hello\nb,world\n", {"a": ["hello"], "b": ["world"]}),
        ("image,text\na,0042\nb,17\n", {"a": ["0042"], "b": ["17"]}),
        ("image,label\na,x y\nb,17\n", {"a": ["x y"], "b": ["17"]}),
        ("image,x,y\na,1,2\nb,3,4\n", {"a": [1, 2], "b": [3, 4]}),
    ],
)
def test_tables_of_texts(tmp_path: Path, text: str, expected: dict[str, list[object]]) -> None:
    (tmp_path / "labels.csv").write_text(text)
    found = read_table(str(tmp_path / "labels.csv"), texts=True)
    assert {name: values.tolist() for name, values in found.items()} == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the table is empty"),
        ("a,1\nb,cat\n", r"labels\.csv:2: .*no number follows the name 'b'\n  hint: classes are numbered from 0"),
        ("name,label\na\n", r"labels\.csv:2: .*no number follows the name 'a'"),
        ("a,1\na,2\n", r"labels\.csv:2: .*'a' has a second label"),
    ],
)
def test_faulty_tables(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ovir.InputError, match=message):
        table(tmp_path, text)


def test_a_table_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ovir.OvirError, match="cannot read the labels"):
        read_table(str(tmp_path / "labels.csv"))


# --------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["a/x.jpg", "b/x.jpg"], ["a/x.jpg", "b/x.jpg"]),
        (["a/x.jpg", "b/x.jpg"], ["./a/x.jpg", "b\\x.jpg"]),
        (["a/x.jpg", "b/x.jpg"], ["a/x", "b/x.npz"]),
        (["a/x.jpg", "b/x.jpg"], ["a/x.jpg.npz", "b/x.jpg.npz"]),
        (["a/x.jpg", "b/y.jpg"], ["x.jpg", "y.jpg"]),
        (["x.jpg", "y.jpg"], ["data/a/x.jpg", "data/b/y.jpg"]),
        (["a/x.jpg", "b/y.jpg"], ["x", "y"]),
        (["x.1.jpg", "x.2.jpg"], ["x.1", "x.2"]),
    ],
)
def test_names_are_matched(names: list[str], labels: list[str]) -> None:
    assert match_names(names, [*labels, "other"], "labels.csv") == dict(zip(names, labels, strict=True))


@pytest.mark.parametrize(
    ("names", "labels", "message"),
    [
        (["a/x.jpg", "b/x.jpg"], ["x.jpg"], "inputs? without a label of their own"),
        (["x.jpg", "y.jpg"], ["x.jpg"], "1 input without a label of their own: 'y.jpg'\n  hint: .*such as 'x.jpg'"),
        (["x.jpg"], ["a/x.jpg", "b/x.jpg"], "1 input without a label"),
        (["x.jpg"], [], "there are no labels at all"),
        (["1", "2", "3", "4"], ["5"], "4 inputs without a label of their own: '1', '2', '3', ..."),
    ],
)
def test_inputs_without_a_label_of_their_own(names: list[str], labels: list[str], message: str) -> None:
    with pytest.raises(ovir.InputError, match=message):
        match_names(names, labels, "labels.csv")


# --------------------------------------------------------------------------- arrays


def test_labels_in_an_archive(tmp_path: Path) -> None:
    np.savez(tmp_path / "labels.npz", **{"a/x": [[1.0, 2]], "b": [[3.0, 4]]})
    found = read_labels(str(tmp_path / "labels.npz"), ["a/x.npy", "b.npz"], "out")
    assert [found[name]().tolist() for name in ("a/x.npy", "b.npz")] == [[[1, 2]], [[3, 4]]]


def test_labels_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "results" / "a").mkdir(parents=True)
    np.savez(tmp_path / "results" / "a" / "x.jpg.npz", out=[1.0], other=[2.0])
    np.save(tmp_path / "results" / "y.npy", [3.0])
    found = read_labels(str(tmp_path / "results"), ["a/x.jpg", "y.npz"], "out")
    assert [found[name]().tolist() for name in ("a/x.jpg", "y.npz")] == [[1], [3]]
