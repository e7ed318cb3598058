"""Tensors in files, and numbers in arguments of commands."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from math import isinf, prod
from typing import IO, Any, BinaryIO, NamedTuple, Self

import numpy as np

from ovir.core.arrays import Array, listed_array
from ovir.core.element_types import ElementType, bf16, f4e2m1, f8e4m3, f8e5m2, f8e8m0, i4, string, u2, u4
from ovir.core.reading import Path, open_regular, read_text, similar_file
from ovir.core.shapes import PartialShape
from ovir.diagnostics.errors import InputError, ReadError
from ovir.diagnostics.wording import quoted, reason_of, size_text
from ovir.system.files import replaced_file
from ovir.system.progress import counted
from ovir.system.python_runtime import free_memory

RAW_TYPES = {t.name: t for t in (bf16, f8e4m3, f8e5m2, f8e8m0, f4e2m1, i4, u4, u2)}
"""The element types that are stored as raw bits."""

_BROKEN = (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, OverflowError, SyntaxError, RecursionError)
"""The exceptions that NumPy and zipfile raise on broken files."""


def load_npz(path: Path) -> dict[str, Array]:
    """Return the arrays of an .npz by key, raw ones in their type; raise ReadError for any other file."""
    with open_npz(path) as reader:
        return dict(reader)


def open_npz(path: Path) -> NpzReader:
    """Return the arrays of an .npz by key, which are not read yet; raise ReadError for any other file."""
    loaded = _load(path)
    if isinstance(loaded, NpzReader):
        return loaded
    raise ReadError.of_file(path, "this is a .npy file with one array, not an .npz", hint="give it as NAME=file.npy")


class Header(NamedTuple):
    """The content of the first bytes of an array in a file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


_MAGIC = b"\x93NUMPY"


def _checked_header(file: IO[bytes], size: int) -> Header:
    """Read the header of an array, after its first bytes, in a file of a size in bytes.

    Raise ValueError if the data cannot be in the file or in memory, because NumPy takes the memory before it reads.
    """
    version = file.read(2)
    read = np.lib.format.read_array_header_1_0 if version[:1] == b"\1" else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    needed = prod(shape) * dtype.itemsize
    if needed > size and not dtype.hasobject:
        raise ValueError(f"its header says {size_text(needed)} of data, but there are {size_text(size)}")
    memory = free_memory()
    if memory is not None and needed > memory:
        raise ValueError(f"its data takes {size_text(needed)}, but {size_text(memory)} of memory are free")
    return Header(shape, dtype)


class NpzReader(Mapping[str, Array]):
    """The arrays of an .npz by key, raw ones in their type; each is read whenever it is asked for, and not kept.

    It is a context manager, which closes the file. Reading raises ReadError.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        """Find the keys of an archive in an open file."""
        self._path = path
        self._file = file
        self._archive = zipfile.ZipFile(file)
        self._members = {self._name(member): member for member in self._archive.namelist()}

    def _name(self, member: str) -> str:
        """Return a key without the type of a raw array; only of such arrays the headers have to be read for that."""
        key = member.removesuffix(".npy")
        is_raw = key.rpartition("__")[2] in RAW_TYPES
        return _decoded(key, np.empty(0, self._header(member).dtype))[0] if is_raw else key

    def _header(self, member: str) -> Header:
        """Return the header of an array; ValueError for a member that is not one, and for data that cannot be there."""
        with self._archive.open(member) as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise ValueError(f"its member '{member.removesuffix('.npy')}' is not an array")
            return _checked_header(file, self._archive.getinfo(member).file_size)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array, of which only the header is unpacked."""
        with _reading(self._path):
            return self._header(self._members[name]).shape

    def __getitem__(self, name: str) -> Array:
        member = self._members[name]
        with _reading(self._path):
            self._header(member)
            with self._archive.open(member) as file:
                return _decoded(member.removesuffix(".npy"), np.lib.format.read_array(file, allow_pickle=False))[1]

    def __contains__(self, name: object) -> bool:
        return name in self._members  # without reading the array, as Mapping does

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._archive.close()
        self._file.close()


def load_tensor(path: Path, key: str | None = None, wanted: str = "") -> Array:
    """Return the array of an .npy, or the array of an .npz under ``key``, under ``wanted``, or its only one."""
    loaded = _load(path)
    if not isinstance(loaded, NpzReader):
        if key is not None:
            raise ReadError.of_file(path, f"'{key}' names an array of an .npz, but this file is not one")
        return loaded
    with loaded as arrays:
        only = next(iter(arrays)) if len(arrays) == 1 else None
        name = key if key is not None else wanted if wanted in arrays else only
        if name is not None and name in arrays:
            return arrays[name]
        listed = quoted(arrays) or "none"
    message = f"there is no array '{key}' in the file" if key is not None else "the file holds more than one array"
    hint = f"name one as {os.fspath(path)}:KEY"
    raise InputError.of_file(path, f"{message}; its arrays are {listed}", hint=hint)


def save_npz(path: Path, arrays: Mapping[str, Array], doing: str = "write the file") -> None:
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
        """Append an array; control characters and lone surrogates of its name are escaped as %XX."""
        safe = "".join(c if c.isprintable() or c == " " else f"%{ord(c):02X}" for c in name)
        key, array = _encoded(safe, array)
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
            return f"{key}__{name}", _viewed(array, np.dtype(unsigned))
    return key, array


def _decoded(key: str, array: Array) -> tuple[str, Array]:
    name, _, type_name = key.rpartition("__")
    element_type = RAW_TYPES.get(type_name)
    if element_type is None or not name or array.dtype.kind not in "iuV":
        return key, array
    dtype = element_type.to_dtype()
    if array.dtype.itemsize != dtype.itemsize:
        return key, array
    return name, _viewed(array, dtype)


def _viewed(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return the bits of an array as another dtype of the same size, in C order."""
    return np.ascontiguousarray(array).view(dtype).reshape(array.shape)  # which has rank 1 or more in between


# --------------------------------------------------------------------------- files


def _load(path: Path) -> Array | NpzReader:
    """Return the array of an .npy, or an open .npz; nothing is unpickled."""
    with _reading(path), ExitStack() as opened:  # which closes the file unless a reader needs it
        file = opened.enter_context(open_regular(path))
        head = file.read(len(_MAGIC))
        if head[:2] == b"PK":
            reader = NpzReader(path, file)
            opened.pop_all()
            return reader
        if not head:
            raise ReadError.of_file(path, "the file is empty")
        if head != _MAGIC:
            hint = "write it with numpy.save or numpy.savez"
            raise ReadError.of_file(path, "this is neither a .npy nor an .npz file", hint=hint)
        _checked_header(file, os.fstat(file.fileno()).st_size)
        file.seek(0)
        array: Array = np.lib.format.read_array(file, allow_pickle=False)
        return array


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raise ReadError for the errors of a broken file."""
    try:
        yield
    except (OSError, *_BROKEN) as error:
        raise ReadError.of_file(path, f"cannot read the file: {_reason(error)}", hint=similar_file(path)) from None


def _reason(error: BaseException) -> str:
    if isinstance(error, zipfile.BadZipFile):
        return f"it is not a complete .npz ({error})"
    if isinstance(error, ValueError) and "allow_pickle" in str(error):  # ovir has no such option
        return _NO_OBJECTS if str(error).startswith("Object arrays") else "the header of its array is too large"
    text = reason_of(error)
    return text.splitlines()[0] if text else type(error).__name__


_NO_OBJECTS = "arrays of Python objects are not read, because they are pickled"


# --------------------------------------------------------------------------- texts


def read_texts(path: Path) -> list[str]:
    """Return the lines of a text file, without their ends; raise ReadError if it has none, or is not UTF-8."""
    try:
        lines = read_text(path, "utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ReadError.of_file(path, f"cannot read the texts: {_reason(error)}") from None
    if not lines[-1]:  # after the end of the last line
        lines.pop()
    if not lines:
        raise ReadError.of_file(path, "the file is empty", hint="it holds a text in each line")
    return lines


def array_of_texts(texts: list[str], shape: PartialShape) -> Array:
    """Return strings as a row; axes of size 1 are put before it until it has the rank of an input of this shape."""
    array = _array(texts, string)
    if shape.rank == 0 and array.size == 1:
        return array.reshape(())
    return array.reshape((1,) * ((shape.rank or 0) - 1) + array.shape)


# --------------------------------------------------------------------------- values


MAX_DEPTH = 32
"""So deep lists may be nested; NumPy's arrays have at most 64 dimensions."""

_TOKEN = re.compile(r"""\s*(?:([\[\],])|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([^\s\[\],"'][^\[\],"']*))\s*""")
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def parse_literal(text: str, element_type: ElementType, shape: PartialShape) -> Array:
    """Return the array that a text stands for, for an input of this type and shape.

    Numbers are separated by commas; brackets make lists of lists, one pair for each axis. Values without brackets are
    one row: axes of size 1 are put before it until it has the rank of the input. A text for an input of strings is one
    string, unless it begins with a bracket. ValueError says what is wrong.
    """
    is_text = element_type.kind == "string"
    values: Any = text if is_text and not text.lstrip().startswith("[") else _Parser(text, element_type).value()
    array = _array(values, element_type)
    if not text.lstrip().startswith("["):
        if array.ndim and array.size == 1 and shape.rank == 0:
            return array.reshape(())
        missing = (shape.rank or 0) - array.ndim
        array = array.reshape((1,) * max(missing, 0) + array.shape)
    return array


def _array(values: Any, element_type: ElementType) -> Array:
    if element_type.kind == "string":
        try:
            return np.array(values, dtype=element_type.to_dtype())
        except UnicodeEncodeError:  # bytes of the command line that are not UTF-8 become surrogates
            raise ValueError("the text is not UTF-8") from None
        except ValueError:
            raise ValueError("the lists have different lengths") from None
    array = listed_array(values, element_type)
    return array.astype(np.float32) if array.dtype == np.float64 and element_type.is_dynamic else array


class _Parser:
    """Reads lists of values from left to right."""

    def __init__(self, text: str, element_type: ElementType) -> None:
        self._element_type = element_type
        self._tokens = list(_tokens(text))
        self._at = 0

    def value(self) -> Any:
        """Return everything: a list in brackets, one value, or a list of values without brackets."""
        values = [self._item(0)]
        while self._take(","):
            values.append(self._item(0))
        if self._at < len(self._tokens):
            raise ValueError(f"'{self._tokens[self._at]}' is unexpected")
        return values[0] if len(values) == 1 else values

    def _item(self, depth: int) -> Any:
        if not self._take("["):
            return self._scalar()
        if depth == MAX_DEPTH:
            raise ValueError(f"lists are nested more than {MAX_DEPTH} deep")
        if self._take("]"):
            return []
        items = [self._item(depth + 1)]
        while self._take(","):
            items.append(self._item(depth + 1))
        if not self._take("]"):
            raise ValueError("a ']' is missing")
        return items

    def _take(self, token: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == token:
            self._at += 1
            return True
        return False

    def _scalar(self) -> Any:
        if self._at == len(self._tokens) or self._tokens[self._at] in ("[", "]", ","):
            raise ValueError("a value is missing")
        self._at += 1
        return _scalar(self._tokens[self._at - 1], self._element_type)


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.end() == at:
            if not text[at:].strip():
                break
            raise ValueError(f"cannot read {text[at:].strip()!r}")
        found.append(match[1] or match[2] or match[3].rstrip())
        at = match.end()
    return found


def _scalar(token: str, element_type: ElementType) -> Any:
    if element_type.kind == "string":
        if token[0] not in "\"'":
            return token
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), token[1:-1])
    if element_type.kind == "boolean":
        if token.lower() not in _BOOLEANS:
            raise ValueError(f"'{token}' is not a boolean: write true or false")
        return _BOOLEANS[token.lower()]
    try:
        return int(token, 0) if not token.lstrip("+-").startswith("0") or "x" in token.lower() else int(token)
    except ValueError:
        pass
    try:
        number = float(token)
    except ValueError:
        raise ValueError(f"'{token}' is not a number") from None
    if element_type.is_integral:
        raise ValueError(f"'{token}' is not an integer")
    if isinf(number) and "inf" not in token.lower():
        raise ValueError(f"'{token}' is beyond the numbers of f64")
    return number


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
