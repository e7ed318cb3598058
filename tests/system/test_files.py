"""Files appear when they are complete; links, pipes and devices keep what they are."""

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from ovir.diagnostics.errors import WriteError
from ovir.system.files import TEMPORARY, is_special, older_files, replaced_file, replaced_files, unwritable, write_text


def test_a_file_is_replaced_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("older")
    with replaced_file(path) as file:
        file.write(b"newer")
        file.flush()
        assert path.read_text() == "older"
        other = next(item for item in tmp_path.iterdir() if item != path)
        assert TEMPORARY.fullmatch(other.name)
    assert path.read_text() == "newer"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("length", [36, 37, 38, 39, 40, 41, 60, 200])
def test_files_with_long_names_are_replaced_together(tmp_path: Path, length: int) -> None:
    paths = [tmp_path / f"{'a' * length}.{ending}" for ending in ("xml", "bin")]
    for text in (b"older", b"newer"):
        with replaced_files(paths, "save the model") as files:
            for file in files:
                file.write(text)
    assert [path.read_bytes() for path in paths] == [b"newer", b"newer"]
    assert sorted(tmp_path.iterdir()) == sorted(paths)


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
def test_an_error_keeps_the_older_file(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "out"
    path.write_text("older")
    expected = WriteError if isinstance(error, OSError) else type(error)

    def fail() -> None:
        with replaced_file(path, "write the notes", hint="try again") as file:
            file.write(b"newer")
            raise error

    with pytest.raises(expected) as caught:
        fail()
    if isinstance(error, OSError):
        message = f"{path}: error[OVIR903] cannot write the notes: No space left on device\n  hint: try again"
        assert str(caught.value) == message
    assert path.read_text() == "older"
    assert list(tmp_path.iterdir()) == [path]


def test_the_longest_name_that_a_system_takes(tmp_path: Path) -> None:
    for name in ("n" * 251 + ".txt", "\N{SNOWMAN}" * 80):
        write_text(tmp_path / name, "text", "write")
        assert (tmp_path / name).read_text() == "text"


def test_permissions_stay(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.touch()
    path.chmod(0o640)
    write_text(path, "newer", "write")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_a_link(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "folder").mkdir()
    path, target = tmp_path / "link", tmp_path / "folder" / "target"
    path.symlink_to("folder/target")
    if exists:
        target.write_text("older")
    write_text(path, "newer", "write")
    assert path.is_symlink()
    assert target.read_text() == "newer"
    assert list((tmp_path / "folder").iterdir()) == [target]


def test_links_of_a_pair_are_replaced(tmp_path: Path) -> None:
    """So the file that another model shares is not changed."""
    shared = tmp_path / "shared.bin"
    shared.write_text("shared")
    (tmp_path / "m.bin").symlink_to(shared)
    with replaced_files([tmp_path / "m.xml", tmp_path / "m.bin"], "save") as (text, data):
        text.write(b"text")
        data.write(b"data")
    assert shared.read_text() == "shared"
    assert (tmp_path / "m.bin").read_text() == "data"


# --------------------------------------------------------------------------- what is written directly


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_text(path, "text", "write")
    reader.join()
    assert read == [b"text"]
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_devices_are_written_to(tmp_path: Path) -> None:
    write_text("/dev/null", "text", "write")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(WriteError, match=r"/dev/full: .*cannot write: No space left"):
        write_text("/dev/full", "text", "write")
    (tmp_path / "link").symlink_to("/dev/null")
    write_text(tmp_path / "link", "text", "write")
    assert (tmp_path / "link").is_symlink()


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="the system has no paths of open files")
def test_an_open_file_is_written_to_even_if_it_is_regular(tmp_path: Path) -> None:
    with open(tmp_path / "log", "w+b") as log:
        path = f"/dev/fd/{log.fileno()}"
        (tmp_path / "link").symlink_to(path)
        assert is_special(path)
        assert is_special(tmp_path / "link")
        write_text(tmp_path / "link", "text", "write")
        assert log.read() == b"text", "it is still the file of this name"
    assert not is_special(tmp_path / "log")
    assert not is_special(tmp_path / "missing")


# --------------------------------------------------------------------------- what cannot be written


def test_what_cannot_be_written(tmp_path: Path) -> None:
    assert unwritable(tmp_path / "new") is None
    (tmp_path / "old").touch()
    assert unwritable(tmp_path / "old") is None
    (tmp_path / "old").chmod(0o444)
    assert unwritable(tmp_path / "old") == "the file"
    with pytest.raises(WriteError, match="it is read-only"):
        write_text(tmp_path / "old", "text", "write")
    with pytest.raises(WriteError, match="it is a folder"):
        write_text(tmp_path, "text", "write")
    with pytest.raises(WriteError, match=r"the folder .*nowhere does not exist"):
        write_text(tmp_path / "nowhere" / "out", "text", "write")


def test_older_files_belong_to_one_replacement(tmp_path: Path) -> None:
    text, data = tmp_path / "m.xml", tmp_path / "m.bin"
    for name in (
        ".m.xml.aaaaaaaaaaaa.old",
        ".m.bin.aaaaaaaaaaaa.old",
        ".m.bin.bbbbbbbbbbbb.old",
        ".n.xml.bbbbbbbbbbbb.old",
    ):
        (tmp_path / name).touch()
    expected = {os.fspath(path): f"{tmp_path}/.{path.name}.aaaaaaaaaaaa.old" for path in (text, data)}
    assert older_files([text, data]) == expected
    text.touch()
    assert older_files([text, data]) == {}
