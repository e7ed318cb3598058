"""Tensors in .npy and .npz files, including element types that these formats lack.

NumPy's formats lack bf16, f8 and 4-bit types: their bits are stored as unsigned integers, under a key that ends with
two underscores and the type's name (``mask__bf16``). Strings are stored as fixed-width unicode.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, Self

import numpy as np

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, bf16, f4e2m1, f8e4m3, f8e5m2, f8e8m0, i4, u2, u4
from ovir.core.files import replaced_file
from ovir.core.progress import counted
from ovir.diagnostics.codes import BAD_INPUT, UNREADABLE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import InputError, ReadError

RAW_TYPES = {t.name: t for t in (bf16, f8e4m3, f8e5m2, f8e8m0, f4e2m1, i4, u4, u2)}
"""The element types that are stored as raw bits."""

_BROKEN = (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, OverflowError, SyntaxError)
"""The exceptions that NumPy and zipfile raise on broken files."""


def load_npz(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Return the arrays of an .npz by key, raw ones in their type; raise ReadError for any other file."""
    with open_npz(path) as reader:
        return dict(reader)


def open_npz(path: str | os.PathLike[str]) -> NpzReader:
    """Return the arrays of an .npz by key, which are not read yet; raise ReadError for any other file."""
    loaded = _load(path)
    if isinstance(loaded, NpzReader):
        return loaded
    raise _unreadable(path, "this is a .npy file with one array, not an .npz", "give it as NAME=file.npy")


class NpzReader(Mapping[str, Array]):
    """The arrays of an .npz by key, raw ones in their type; each is read whenever it is asked for, and not kept.

    It is a context manager, which closes the file. Reading raises ReadError.
    """

    def __init__(self, path: str | os.PathLike[str], arrays: np.lib.npyio.NpzFile, file: BinaryIO) -> None:
        """Find the keys of an archive in an open file."""
        self._path = path
        self._arrays = arrays
        self._file = file
        self._keys = {self._name(key): key for key in arrays.files}

    def _name(self, key: str) -> str:
        """Return a key without the type of a raw array; only such arrays have to be read for that."""
        return _decoded(key, self._arrays[key])[0] if key.rpartition("__")[2] in RAW_TYPES else key

    def __getitem__(self, name: str) -> Array:
        key = self._keys[name]
        with _reading(self._path):
            array = self._arrays[key]
            if not isinstance(array, np.ndarray):
                raise ValueError(f"its member '{key}' is no array")
            return _decoded(key, array)[1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._arrays.close()
        self._file.close()


def load_tensor(path: str | os.PathLike[str], key: str | None = None, wanted: str = "") -> Array:
    """Return the array of an .npy, or the array of an .npz under ``key``, under ``wanted``, or its only one."""
    loaded = _load(path)
    if isinstance(loaded, NpzReader):
        with loaded:
            return _chosen(loaded, path, key, wanted)
    if key is not None:
        raise _unreadable(path, f"'{key}' names an array of an .npz, but this file is not one")
    return loaded


def _chosen(arrays: Mapping[str, Array], path: str | os.PathLike[str], key: str | None, wanted: str) -> Array:
    """Return the array under ``key``, under ``wanted``, or the only one."""
    name = key if key is not None else wanted if wanted in arrays else next(iter(arrays)) if len(arrays) == 1 else None
    if name is not None and name in arrays:
        return arrays[name]
    listed = ", ".join(f"'{k}'" for k in arrays) or "none"
    message = f"there is no array '{key}' in the file" if key is not None else "the file holds more than one array"
    hint = f"name one as {os.fspath(path)}:KEY"
    raise InputError(diagnose(BAD_INPUT, f"{message}; its arrays are {listed}", Place(os.fspath(path)), hint=hint))


def save_npz(path: str | os.PathLike[str], arrays: Mapping[str, Array], doing: str = "write the file") -> None:
    """Write an .npz under exactly this path, deterministically; raise WriteError, "cannot {doing}", if that fails."""
    with replaced_file(path, doing) as file:
        write_npz(file, arrays)


def write_npz(file: BinaryIO, arrays: Mapping[str, Array]) -> None:
    """Write an .npz to an open file."""
    with NpzWriter(file) as writer:
        for name, array in counted("writing", arrays.items()):
            writer.write(name, array)


class NpzWriter:
    """Writes the arrays of an .npz one after the other, so that none of them has to be kept in memory.

    It is a context manager, which completes the file.
    """

    def __init__(self, file: BinaryIO) -> None:
        """Begin an .npz in an open file."""
        self._archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True)

    def write(self, name: str, array: Array) -> None:
        """Append an array."""
        key, array = _encoded(_safe(name), array)
        entry = zipfile.ZipInfo(f"{key}.npy", date_time=(1980, 1, 1, 0, 0, 0))
        with self._archive.open(entry, "w", force_zip64=True) as file:
            np.lib.format.write_array(file, array, allow_pickle=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()


def with_element_type(array: Array, element_type: ElementType) -> Array:
    """Return the array in its intended type if an .npy could not name that type (bf16 is read as two raw bytes)."""
    if array.dtype.kind == "V" and element_type.name in RAW_TYPES:
        dtype = element_type.to_dtype()
        if array.dtype.itemsize == dtype.itemsize:
            return array.view(dtype)
    return array


# --------------------------------------------------------------------------- one array


def _encoded(key: str, array: Array) -> tuple[str, Array]:
    if array.dtype.kind == "T":
        return key, np.array(array.ravel().tolist(), "U").reshape(array.shape)
    for name, element_type in RAW_TYPES.items():
        if array.dtype == element_type.dtype:
            unsigned = np.uint16 if array.dtype.itemsize == 2 else np.uint8
            return f"{key}__{name}", np.ascontiguousarray(array).view(unsigned)
    return key, array


def _decoded(key: str, array: Array) -> tuple[str, Array]:
    name, _, type_name = key.rpartition("__")
    element_type = RAW_TYPES.get(type_name)
    if element_type is None or not name or array.dtype.kind not in "iuV":
        return key, array
    dtype = element_type.to_dtype()
    if array.dtype.itemsize != dtype.itemsize:
        return key, array
    return name, np.ascontiguousarray(array).view(dtype).reshape(array.shape)


def _safe(name: str) -> str:
    """Escape control characters and lone surrogates of a name as %XX, for an entry of a zip archive."""
    return "".join(c if c.isprintable() or c == " " else f"%{ord(c):02X}" for c in name)


# --------------------------------------------------------------------------- files


def _load(path: str | os.PathLike[str]) -> Array | NpzReader:
    """Return the array of an .npy, or an open .npz; nothing is unpickled."""
    with _reading(path):
        with open(path, "rb") as file:
            head = file.read(6)
        if not head:
            raise _unreadable(path, "the file is empty")
        if head[:2] != b"PK" and head != b"\x93NUMPY":
            hint = "write it with numpy.save or numpy.savez"
            raise _unreadable(path, "this is neither a .npy nor an .npz file", hint)
        with ExitStack() as opened:  # np.load would leave the file of a broken archive open
            file = opened.enter_context(open(path, "rb"))
            if head[:2] != b"PK":
                array: Array = np.lib.format.read_array(file, allow_pickle=False)
                return array
            # np.load would take a torn archive for a pickle.
            reader = NpzReader(path, np.lib.npyio.NpzFile(file, allow_pickle=False), file)
            opened.pop_all()
            return reader


@contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise ReadError for the errors of a broken file."""
    try:
        yield
    except (OSError, *_BROKEN) as error:
        raise _unreadable(path, f"cannot read the file: {_reason(error)}") from None


def _unreadable(path: str | os.PathLike[str], message: str, hint: str | None = None) -> ReadError:
    return ReadError(diagnose(UNREADABLE, message, Place(os.fspath(path)), hint=hint))


def _reason(error: BaseException) -> str:
    if isinstance(error, zipfile.BadZipFile):
        return f"it is no complete .npz ({error})"
    if isinstance(error, ValueError) and "allow_pickle" in str(error):  # ovir has no such option
        return _NO_OBJECTS if str(error).startswith("Object arrays") else "the header of its array is too large"
    text = getattr(error, "strerror", None) or str(error)
    return text.splitlines()[0] if text else type(error).__name__


_NO_OBJECTS = "arrays of Python objects are not read, because they are pickled"
