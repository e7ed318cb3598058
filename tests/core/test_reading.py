"""One place opens the files that others name: ``ovir/core/reading.py``."""

import ast
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ovir.core.reading import (
    open_regular,
    parse_json,
    read_beginning,
    read_bytes,
    read_text,
    similar_file,
    why_not_regular,
)

ROOT = Path(__file__).parents[2] / "ovir"
OWN = {
    "core/reading.py": "it is the place",
    "debugging/engines/child.py": "a script that imports nothing of ovir reads a model that ovir has written",
    "debugging/precision.py": "an array in a temporary file that ovir creates",
    "diagnostics/codes.py": "a page of the package, in a package that imports nothing",
    "generated_files.py": "files of the repository",
    "reports/writing.py": "resources of packages",
}
"""The files that may open others by themselves, with the reason."""
LIBRARIES = {"np.load", "np.fromfile", "np.memmap", "np.loadtxt", "np.genfromtxt", "json.load", "tomllib.load"}


def _reads(tree: ast.AST) -> Iterator[int]:
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func)
        if name in LIBRARIES or name.endswith((".read_text", ".read_bytes")):
            yield call.lineno
        elif name == "open" or (name.endswith(".open") and call.args and isinstance(call.args[0], ast.Constant)):
            modes = [*call.args[name == "open" :], *(k.value for k in call.keywords if k.arg == "mode")]
            mode = modes[0].value if modes and isinstance(modes[0], ast.Constant) else "r"
            if not set(str(mode)) & set("wxa"):
                yield call.lineno


@pytest.mark.slow
def test_nothing_else_opens_files_to_read() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).as_posix() not in OWN
        for line in _reads(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert not found, "read files by open_regular, read_bytes or read_text of ovir/core/reading.py"


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(path))


@pytest.mark.parametrize("make", [_pipe, _device, _socket, Path.mkdir, lambda path: None])
@pytest.mark.parametrize("read", [open_regular, read_bytes, read_text])
def test_special_files_are_refused(
    tmp_path: Path, make: Callable[[Path], None], read: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    make(Path("x"))
    assert why_not_regular("x") is not None
    with pytest.raises(OSError, match=r"pipe or device|directory|No such"):
        read(Path("x"))


def test_regular_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes("é\r\n".encode())
    (tmp_path / "link").symlink_to(tmp_path / "x")
    assert why_not_regular(tmp_path / "link") is None
    assert read_bytes(tmp_path / "link") == "é\r\n".encode()
    assert read_text(tmp_path / "x") == "é\n"
    assert [read_beginning(tmp_path / "x", length) for length in (0, 3, 99)] == [b"", "é\r".encode(), "é\r\n".encode()]
    assert [read_beginning(path, 3) for path in (tmp_path / "y", "a\0b", tmp_path)] == [b""] * 3


def test_why_there_is_no_regular_file(tmp_path: Path) -> None:
    _pipe(tmp_path / "pipe")
    reasons = [why_not_regular(path) for path in (tmp_path, tmp_path / "x", tmp_path / "pipe", "a\0b")]
    assert reasons[:3] == ["it is a folder", "there is no such file", "it is a pipe or device, not a regular file"]
    assert "null" in str(reasons[3])


def test_the_file_that_was_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.xml").touch()
    assert similar_file(tmp_path / "modle.xml") == f"did you mean {tmp_path / 'model.xml'}?"
    assert [similar_file(tmp_path / name) for name in ("weights", "model.xml", "none/model.xml")] == [None] * 3
    assert similar_file("folder\0/model.xml") is None
    (tmp_path / "link.xml").symlink_to("gone/model.xml")
    assert similar_file(tmp_path / "link.xml") == "it is a symbolic link to gone/model.xml"
    monkeypatch.chdir(tmp_path)
    assert similar_file("modle.xml") == "did you mean model.xml?"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[[[1, {" + "[" * 50_000, "nothing"])
def test_json_that_cannot_be_read_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"nested too deep|Expecting"):
        parse_json(text)
