"""Sets of input files: which are found, what they are called, and the arrays that they hold for a model."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from support.builder import Net

import ovir
from ovir.io.input_files import InputFile, find_inputs, read_archive


def _touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def _names(given: object, **options: str) -> list[str]:
    return [file.name for file in find_inputs(str(given), **options)[0]]


def test_a_folder_is_searched_with_its_subfolders(tmp_path: Path) -> None:
    _touch(tmp_path, "b/x.npz", "a/x.npz", "a/y.JPG", "z.npy", "readme.md", ".hidden.npz", ".cache/x.npz")
    assert _names(tmp_path) == ["a/x.npz", "a/y.JPG", "b/x.npz", "z.npy"]
    assert _names(tmp_path, without=str(tmp_path / "a")) == ["b/x.npz", "z.npy"]


def test_other_files_are_returned(tmp_path: Path) -> None:
    _touch(tmp_path, "x.npz", "readme.md", ".hidden.npz", ".cache/x.npz", "a/notes", "out/manifest.jsonl")
    _, others = find_inputs(tmp_path, without=str(tmp_path / "out"))
    assert [Path(path).relative_to(tmp_path).as_posix() for path in others] == [".hidden.npz", "a/notes", "readme.md"]
    assert find_inputs(str(tmp_path / "*"))[1] == [str(tmp_path / "readme.md")]
    assert find_inputs(tmp_path / "x.npz")[1] == []


def test_names_of_a_pattern_begin_behind_its_fixed_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _touch(tmp_path, "data/a/x.npz", "data/b/x.npz", "data/b/x.md")
    assert _names(tmp_path / "data" / "*" / "*") == ["a/x.npz", "b/x.npz"]
    monkeypatch.chdir(tmp_path)
    assert _names("**/x.npz") == ["data/a/x.npz", "data/b/x.npz"]
    assert _names("data/b/x.npz") == ["x.npz"]


def test_a_list_keeps_its_order_and_has_each_file_once(tmp_path: Path) -> None:
    _touch(tmp_path, "data/b.npz", "data/a.npz", "other/a.npz")
    listed = tmp_path / "data" / "list.txt"
    listed.write_text(f"b.npz\n\n../data/b.npz\na.npz\n{tmp_path / 'other' / 'a.npz'}\n")
    assert _names(listed) == ["b.npz", "a.npz", (tmp_path / "other" / "a.npz").as_posix()]


@pytest.mark.parametrize(
    ("text", "message"),
    [("missing.npz", r"list\.txt:1: .*missing\.npz': there is no such file"), ("a.md", "'a.md' is not an input")],
)
def test_a_list_names_its_faulty_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "list.txt").write_text(text)
    with pytest.raises(ovir.InputError, match=message):
        find_inputs(tmp_path / "list.txt")


@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere", "there is no such file or folder"), ("", "no inputs were found"), ("*.npz", "no inputs were found")],
)
def test_a_set_without_inputs_is_an_error(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ovir.ReadError, match=message):
        find_inputs(tmp_path / name)


def _sum() -> ovir.Model:
    net = Net()
    net.result(net.op("Add", net.parameter("a", "2"), net.parameter("b", "2"), name="sum"))
    return net.model()


def _single(shape: str = "2") -> ovir.Model:
    net = Net()
    net.result(net.op("Relu", net.parameter("a", shape), name="relu"))
    return net.model()


def test_an_archive_may_hold_other_arrays_if_it_has_all_inputs(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npz")
    np.savez(path, a=[1.0, 2], b=[3.0, 4], other=[5])
    arrays, others = read_archive(_sum(), path)
    assert ({index: array.tolist() for index, array in arrays.items()}, others) == ({0: [1, 2], 1: [3, 4]}, ["other"])
    np.savez(path, a=[1.0, 2], other=[5])
    with pytest.raises(ovir.InputError, match=r"x\.npz: .*other"):
        read_archive(_sum(), path)


def test_a_file_with_one_array_is_for_models_with_one_input(tmp_path: Path) -> None:
    path = str(tmp_path / "x.npy")
    np.save(path, np.float32([1, 2]))
    file = pickle.loads(pickle.dumps(InputFile(path, "x.npy")))
    assert file.load(_single())[0].tolist() == [1, 2]
    with pytest.raises(ovir.InputError, match=r"x\.npy: .*an \.npy is the value of one input, but the model has 2"):
        file.load(_sum())


def test_images_are_prepared(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs Pillow, of the extra `image`")
    from ovir.io.images import Preparation

    image.fromarray(np.full((5, 7, 3), 100, np.uint8)).save(tmp_path / "x.png")
    (file,), _ = find_inputs(tmp_path, Preparation(mean=(90.0,), scale=(5.0,)))
    array = file.load(_single("1,3,5,7"))[0]
    assert (array.shape, set(array.ravel().tolist())) == ((1, 3, 5, 7), {2.0})
