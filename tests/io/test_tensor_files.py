"""Tensors in .npy and .npz files."""

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ovir import InputError, ReadError
from ovir.core.element_types import ELEMENT_TYPES, ElementType, bf16, string
from ovir.io.tensor_files import RAW_TYPES, load_npz, load_tensor, open_npz, save_npz, with_element_type


@pytest.mark.parametrize("element_type", list(RAW_TYPES.values()), ids=list(RAW_TYPES))
def test_types_that_numpy_lacks_come_back(tmp_path: Path, element_type: object) -> None:
    name, dtype = str(element_type), RAW_TYPES[str(element_type)].to_dtype()
    array = np.array([[1, 1], [0.5, 1]], np.float32).astype(dtype)
    save_npz(tmp_path / "x.npz", {"a": array})
    with np.load(tmp_path / "x.npz") as raw:
        assert raw.files == [f"a__{name}"]
        assert raw[f"a__{name}"].dtype.kind == "u"
    back = load_npz(tmp_path / "x.npz")["a"]
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0, 3), (1, 1)])
@pytest.mark.parametrize("element_type", [kind for kind in ELEMENT_TYPES if not kind.is_dynamic], ids=str)
def test_every_type_and_shape_comes_back(tmp_path: Path, element_type: ElementType, shape: tuple[int, ...]) -> None:
    array = np.ones(shape).astype(element_type.to_dtype())
    for given in (array, array[...].T):
        save_npz(tmp_path / "x.npz", {"a": given})
        with open_npz(tmp_path / "x.npz") as reader:
            assert reader.shape_of("a") == given.shape
            back = with_element_type(reader["a"], element_type)
        assert back.shape == given.shape
        assert element_type == string or back.dtype == given.dtype
        assert back.tolist() == given.tolist()


def test_strings_are_unicode(tmp_path: Path) -> None:
    save_npz(tmp_path / "x.npz", {"s": np.array(["a", "żółw"], np.dtypes.StringDType()), "e": np.array([], "T")})
    loaded = load_npz(tmp_path / "x.npz")
    assert loaded["s"].tolist() == ["a", "żółw"]
    assert loaded["s"].dtype.kind == "U"
    assert loaded["e"].shape == (0,)


def test_any_name_is_a_key(tmp_path: Path) -> None:
    names = ["file", "a/b:0", "", "../x", "tab\there", "\ud800", "x.npy", "déjà vu"]
    save_npz(tmp_path / "x.npz", {name: np.array(i) for i, name in enumerate(names)})
    loaded = load_npz(tmp_path / "x.npz")
    assert list(loaded) == ["file", "a/b:0", "", "../x", "tab%09here", "%D800", "x.npy", "déjà vu"]
    assert [int(a) for a in loaded.values()] == list(range(len(names)))


def test_files_are_deterministic_and_keep_their_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_npz(tmp_path / name, {"x": np.arange(3)})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_one_tensor(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3))
    np.savez(tmp_path / "one.npz", only=np.arange(4))
    np.savez(tmp_path / "two.npz", a=np.arange(5), b=np.arange(6))
    assert load_tensor(tmp_path / "x.npy").size == 3
    assert load_tensor(tmp_path / "one.npz", wanted="other").size == 4
    assert load_tensor(tmp_path / "two.npz", "a").size == 5
    assert load_tensor(tmp_path / "two.npz", wanted="b").size == 6
    with pytest.raises(InputError, match="no array 'c' in the file; its arrays are 'a', 'b'"):
        load_tensor(tmp_path / "two.npz", "c")
    with pytest.raises(ReadError, match=r"names an array of an \.npz"):
        load_tensor(tmp_path / "x.npy", "c")
    with pytest.raises(ReadError, match=r"one array, not an \.npz"):
        load_npz(tmp_path / "x.npy")


def test_a_truncated_array(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(100))
    (tmp_path / "x.npy").write_bytes(buffer.getvalue()[:200])
    with pytest.raises(ReadError, match="cannot read the file"):
        load_tensor(tmp_path / "x.npy")


def test_bf16_of_an_npy_is_recognized_by_the_type_wanted(tmp_path: Path) -> None:
    array = np.array([1.5, -2], ml_dtypes.bfloat16)
    np.save(tmp_path / "x.npy", array)
    np.testing.assert_array_equal(with_element_type(load_tensor(tmp_path / "x.npy"), bf16), array)


def test_an_array_is_read_when_it_is_asked_for(tmp_path: Path) -> None:
    arrays = {name: np.full(1000, number, np.float32) for number, name in enumerate("ab")}
    save_npz(tmp_path / "x.npz", {**arrays, "c": np.ones(3, ml_dtypes.bfloat16)})
    content = (tmp_path / "x.npz").read_bytes()
    ones = np.ones(1000, np.float32).tobytes()
    assert content.count(ones) == 1
    (tmp_path / "x.npz").write_bytes(content.replace(ones, ones[:-1] + b"@"))
    with open_npz(tmp_path / "x.npz") as reader:
        assert list(reader) == ["a", "b", "c"]
        np.testing.assert_array_equal(reader["a"], arrays["a"])
        assert reader["a"] is not reader["a"]
        assert reader["c"].dtype == ml_dtypes.bfloat16
        with pytest.raises(ReadError, match=r"x\.npz: .*it is not a complete \.npz \(Bad CRC-32 for file 'b\.npy'\)"):
            reader["b"]


def test_a_member_that_is_no_array(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("notes.txt", "hello")
    with pytest.raises(ReadError, match=r"cannot read the file: its member 'notes\.txt' is not an array"):
        load_npz(tmp_path / "x.npz")


def _npz(member: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x.npy", member)
    return buffer.getvalue()


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


_OBJECTS = _npy(np.array([{}, None]))
_LONG = _npy(np.zeros(2, [("n" * 300 + str(i), "f4") for i in range(60)]))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK", "it is not a complete .npz"),
        (b"PK\x03\x04", "it is not a complete .npz"),
        (b"PK\x05\x06", "it is not a complete .npz"),
        (_npz(_npy(np.arange(100)))[:300], "it is not a complete .npz"),
        (_npz(_npy(np.arange(100))[:20]), "EOF"),
        (_npz(b"PK"), "its member 'x' is not an array"),
        (_npz(pickle.dumps([1])), "its member 'x' is not an array"),
        (_OBJECTS, "arrays of Python objects are not read"),
        (_npz(_OBJECTS), "arrays of Python objects are not read"),
        (_LONG, "the header of its array is too large"),
        (_npz(_LONG), "the header of its array is too large"),
        (pickle.dumps([1]), "this is neither a .npy nor an .npz file"),
        (b"\x93NUM", "this is neither a .npy nor an .npz file"),
        (b"\x93NUMPY", "EOF"),
    ],
)
@pytest.mark.parametrize("load", [load_npz, load_tensor])
def test_broken_files_and_pickles(tmp_path: Path, content: bytes, reason: str, load: Callable[..., object]) -> None:
    """NumPy's texts would recommend an unsafe option that ovir does not have."""
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(ReadError) as caught:
        load(tmp_path / "x.npz")
    assert reason in str(caught.value)
    assert "allow_pickle" not in str(caught.value)
