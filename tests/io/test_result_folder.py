"""A folder of results: what a resumed run keeps, and what it refuses; faults at every point of writing."""

import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.systems import small_files

import ovir
from ovir.diagnostics.errors import InputError, ReadError, WriteError
from ovir.io import tensor_files
from ovir.io.input_files import InputFile, find_inputs
from ovir.io.result_folder import NAME, ResultFolder, checksum, fingerprint, result_name

pytestmark = pytest.mark.slow

A = {"out": np.float32([1, 2, 3])}


@pytest.fixture
def inputs(tmp_path: Path) -> list[InputFile]:
    (tmp_path / "in").mkdir()
    for number in range(4):
        np.savez(tmp_path / "in" / f"{number}.npz", x=number)
    return find_inputs(tmp_path / "in")[0]


def _open(
    folder: Path, *, resume: bool = True, model: str = "model.xml", mark: str = "m", **options: object
) -> ResultFolder:
    return ResultFolder(str(folder / "out"), model, mark, options, resume=resume)


def _fill(folder: Path, inputs: list[InputFile]) -> None:
    with _open(folder) as results:
        results.pending(inputs)
        for file in inputs:
            results.keep(file, A, 0.1)


def _pending(folder: Path, inputs: list[InputFile], **options: str) -> list[str]:
    with _open(folder, **options) as results:
        return [file.name for file in results.pending(inputs)]


def test_what_is_complete_is_kept(tmp_path: Path, inputs: list[InputFile]) -> None:
    _fill(tmp_path, inputs[:3])
    assert _pending(tmp_path, inputs) == ["3.npz"]
    row = json.loads((tmp_path / "out" / NAME).read_text().splitlines()[1])
    assert (row["input"], row["status"], row["seconds"], row["result"]) == ("0.npz", "done", 0.1, "0.npz")
    assert row["sha256"] == checksum(str(tmp_path / "out" / "0.npz"))
    assert tensor_files.load_npz(tmp_path / "out" / "0.npz")["out"].tolist() == [1, 2, 3]


def test_what_is_missing_changed_or_failed_is_pending(tmp_path: Path, inputs: list[InputFile]) -> None:
    _fill(tmp_path, inputs)
    (tmp_path / "out" / "0.npz").unlink()
    (tmp_path / "out" / "1.npz").write_bytes(b"PK damaged")
    np.savez(tmp_path / "in" / "2.npz", x=[2, 2])
    assert _pending(tmp_path, inputs) == ["0.npz", "1.npz", "2.npz"]
    assert _pending(tmp_path, inputs, mark="changed") == ["0.npz", "1.npz", "2.npz", "3.npz"]
    with _open(tmp_path) as results:
        results.fail(inputs[3], "no")
        assert [row.error for row in results.failures(inputs)] == ["no"]
    assert not (tmp_path / "out" / "3.npz").exists(), "a result that is no longer right"
    assert "3.npz" in _pending(tmp_path, inputs)


def test_an_input_that_changes_during_the_run_is_pending_again(tmp_path: Path, inputs: list[InputFile]) -> None:
    with _open(tmp_path) as results:
        results.pending(inputs)
        np.savez(tmp_path / "in" / "0.npz", x=[7, 7])
        results.keep(inputs[0], A, 0.1)
        assert results.pending(inputs[:1]) == inputs[:1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "other.xml", "mark": "other"}, "results of another model, .*model.xml"),
        ({"taps": ["a"]}, r"results with other options: taps was not given, and is now \['a'\]"),
        ({"resume": False}, "the folder has results of an earlier run"),
    ],
)
def test_other_results_are_refused(
    tmp_path: Path, inputs: list[InputFile], change: dict[str, object], message: str
) -> None:
    _fill(tmp_path, inputs)
    with pytest.raises(ovir.InputError, match=message):
        _open(tmp_path, **change)  # type: ignore[arg-type]
    _pending(tmp_path, inputs)  # the refused folder is not left locked


def test_a_model_may_move(tmp_path: Path, inputs: list[InputFile]) -> None:
    _fill(tmp_path, inputs)
    assert _pending(tmp_path, inputs, model="elsewhere/model.xml") == []


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").touch()
    with pytest.raises(ovir.InputError, match=r"other files, such as 'thesis\.txt'"):
        _open(tmp_path)
    with pytest.raises(ovir.InputError, match=r"thesis\.txt: .*this is a file"):
        ResultFolder(tmp_path / "out" / "thesis.txt", "model.xml", "m", {})


def test_only_one_run_at_a_time(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="there are no such locks on this system")
    with _open(tmp_path), pytest.raises(ovir.InputError, match="another run is writing"):
        _open(tmp_path)


# --------------------------------------------------------------------------- crashes


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_last_row_is_dropped(tmp_path: Path, inputs: list[InputFile], cut: int) -> None:
    _fill(tmp_path, inputs)
    manifest = tmp_path / "out" / NAME
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[:-cut])
    assert _pending(tmp_path, inputs) == ["3.npz"]
    assert manifest.read_bytes() == whole[: whole[:-1].rindex(b"\n") + 1]
    with _open(tmp_path) as results:
        results.pending(inputs)
        results.keep(inputs[3], A, 0.2)
    assert _pending(tmp_path, inputs) == []


@pytest.mark.parametrize("left", [b"", b"\0" * 30, b'{"ovir', b'{"ovir_manifest": 1, "model": "/a', b'{"ovir_m\0\0'])
def test_a_manifest_without_a_complete_line_begins_anew(tmp_path: Path, inputs: list[InputFile], left: bytes) -> None:
    _fill(tmp_path, inputs)
    manifest = tmp_path / "out" / NAME
    whole = manifest.read_bytes()
    manifest.write_bytes(left)
    with pytest.raises(ovir.InputError, match="--resume continues"):
        _open(tmp_path, resume=False)
    with _open(tmp_path) as results:
        assert results.manifest.is_anew
        assert results.pending(inputs) == inputs, "results without rows are not trusted"
        results.keep(inputs[0], A, 0.1)
    assert manifest.read_bytes().startswith(whole[: whole.index(b"\n") + 1])
    with _open(tmp_path) as results:
        assert not results.manifest.is_anew
        assert results.pending(inputs) == inputs[1:]


@pytest.mark.parametrize("text", ["notes", '{"ovir_manifest": 2}\n', '\n{"input": "0.npz"}\n', '{"other": '])
def test_a_file_that_is_no_manifest_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / NAME).write_text(text)
    with pytest.raises(ReadError, match=r"manifest\.jsonl:1: .*this is not a manifest"):
        _open(tmp_path)
    assert (tmp_path / "out" / NAME).read_text() == text


@pytest.mark.parametrize("point", ["makedirs", "fsync"])
def test_resume_is_not_recommended_before_there_is_a_manifest(
    tmp_path: Path, inputs: list[InputFile], monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, point, fail)
        with pytest.raises(WriteError, match="No space left") as caught:
            _open(tmp_path, resume=False)
    assert "--resume" not in str(caught.value)
    assert not (tmp_path / "out" / NAME).exists()
    with _open(tmp_path, resume=False) as results:
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(WriteError, match="--resume continues"):
            results.keep(inputs[0], A, 0.1)
        monkeypatch.undo()


def test_rows_that_a_loss_of_power_has_left_are_passed_over(tmp_path: Path, inputs: list[InputFile]) -> None:
    _fill(tmp_path, inputs)
    manifest = tmp_path / "out" / NAME
    lines = manifest.read_bytes().splitlines(keepends=True)
    lines[2] = b"\0" * 20 + b"\n"
    lines[3] = b'{"input": "2.npz", "status": "done", "time": ""}\n'
    manifest.write_bytes(b"".join(lines))
    with _open(tmp_path) as results:
        assert [file.name for file in results.pending(inputs)] == ["1.npz", "2.npz"]
        assert len(results.manifest.unreadable) == 2


def test_temporary_files_of_a_killed_process_are_removed(tmp_path: Path, inputs: list[InputFile]) -> None:
    code = f"""
import os, signal, numpy as np
from ovir.io import result_folder
from ovir.io.input_files import find_inputs
folder = result_folder.ResultFolder({str(tmp_path / "out")!r}, "model.xml", "m", {{}})
inputs, _ = find_inputs({str(tmp_path / "in")!r})
folder.keep(inputs[0], {{"out": np.zeros(3)}}, 0.1)
os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)
folder.keep(inputs[1], {{"out": np.zeros(3)}}, 0.1)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".jsonl", ".npz", ".tmp"]
    assert _pending(tmp_path, inputs) == ["1.npz", "2.npz", "3.npz"]
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".jsonl", ".npz"]


@contextmanager
def _small_disk(folder: Path, size: str) -> Iterator[None]:
    """Mount a small file system for the block; skip the test where that is not allowed."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("mounting a small file system needs more rights")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def _fill_the_disk(tmp_path: Path, inputs: list[InputFile], limit: int) -> None:
    """Keep results until the disk is full; then everything that was written must be complete."""
    kept = 0

    def keep_all() -> None:
        nonlocal kept
        for number in range(limit):
            results.keep(inputs[number % 4], {"out": np.zeros(1000 * (number + 1))}, 0.1)
            kept += 1

    with _open(tmp_path) as results:
        results.pending(inputs)
        with pytest.raises(WriteError, match=r"cannot write the results: .*\n  hint: .*--resume continues"):
            keep_all()
    assert kept > 0
    assert not list((tmp_path / "out").glob(".*.tmp"))
    with _open(tmp_path) as results:
        assert results.manifest.unreadable == []
        done = [file for file in inputs[:kept] if file not in results.pending(inputs)]
        assert len(done) == min(kept, 4)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs")
def test_a_full_disk(tmp_path: Path, inputs: list[InputFile]) -> None:
    (tmp_path / "out").mkdir()
    with _small_disk(tmp_path / "out", "200k"):
        _fill_the_disk(tmp_path, inputs, 1000)


@pytest.mark.skipif(os.name != "posix", reason="the limit of a file's size is one of POSIX systems")
def test_a_limit_of_the_size_of_files(tmp_path: Path, inputs: list[InputFile]) -> None:
    with small_files(50_000):
        _fill_the_disk(tmp_path, inputs, 1000)


@pytest.mark.skipif(os.name != "posix", reason="the limit of a file's size is one of POSIX systems")
def test_a_row_that_cannot_be_written_leaves_no_part(tmp_path: Path, inputs: list[InputFile]) -> None:
    _fill(tmp_path, inputs[:3])
    size = (tmp_path / "out" / NAME).stat().st_size
    with _open(tmp_path) as results:
        with small_files(size + 30), pytest.raises(WriteError):
            results.fail(inputs[3], "no")
        assert (tmp_path / "out" / NAME).stat().st_size == size


# --------------------------------------------------------------------------- two runs at once

_ROUNDS = 60


_RACES = {
    "new": (False, False),
    "new, one goes on": (False, True),
    "new, both go on": (True, True),
    "old": (True, True),  # a run that does not resume is refused in any case
}
"""The folders, and whether each of the two runs resumes."""


def _race(folder: str, racer: int, barrier: Any, outcomes: Any) -> None:
    """Open each folder at the same moment as another process, and send which of them this process has got."""
    won = []
    for name, resume in _RACES.items():
        for number in range(_ROUNDS):
            barrier.wait()
            try:
                opened = ResultFolder(f"{folder}/{name} {number}", "model.xml", "m", {}, resume=resume[racer])
            except (InputError, WriteError) as error:
                won.append(str(error))
            else:
                won.append("")
            barrier.wait()  # so that nobody closes a folder before the others have tried
            if not won[-1]:
                opened.manifest.close()
    outcomes.put(won)


def test_two_runs_at_once_do_not_share_a_folder(tmp_path: Path) -> None:
    for number in range(_ROUNDS):
        ResultFolder(f"{tmp_path}/old {number}", "model.xml", "m", {}).manifest.close()
    context = multiprocessing.get_context("spawn")
    barrier, outcomes = context.Barrier(2, timeout=60), context.Queue()
    racers = [context.Process(target=_race, args=(str(tmp_path), each, barrier, outcomes)) for each in range(2)]
    for racer in racers:
        racer.start()
    results = [outcomes.get(timeout=60) for _ in racers]
    for racer in racers:
        racer.join()
    for one, other in zip(*results, strict=True):
        assert (one == "") != (other == ""), (one, other)
        assert re.search("another run is writing results|has results of an earlier run", one + other)
    folders = list(tmp_path.iterdir())
    assert len(folders) == len(_RACES) * _ROUNDS
    assert all((folder / NAME).read_bytes().count(b"\n") == 1 for folder in folders)


@pytest.mark.parametrize("moment", ["os.fsync", "ResultFolder.keep"])
def test_the_lock_of_a_killed_process_is_gone(tmp_path: Path, inputs: list[InputFile], moment: str) -> None:
    code = f"""
import os, signal
from ovir.io.input_files import find_inputs
from ovir.io.result_folder import ResultFolder
{moment} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
ResultFolder({str(tmp_path / "out")!r}, "model.xml", "m", {{}}).keep(None, None, None)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert _pending(tmp_path, inputs) == ["0.npz", "1.npz", "2.npz", "3.npz"]


# --------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a/x.npz", "a/x.npz"),
        ("b/x.npz", "b/x.npz"),
        ("x.jpg", "x.jpg.npz"),
        ("x.jpg.npz", "x.jpg.npz.npz"),
        ("x.jpg.npz.npz", "x.jpg.npz.npz.npz"),
        ("x.npy", "x.npy.npz"),
        ("x.NPZ", "x.NPZ.npz"),
        ("x.tar.npz", "x.tar.npz"),
    ],
)
def test_names_of_results(name: str, expected: str) -> None:
    assert result_name(name) == expected


def test_no_two_inputs_share_a_result() -> None:
    endings = ["", ".npz", ".npy", ".jpg", ".png", ".x"]
    names = {f"{a}x{b}{c}{d}" for a in ("", "a/", "/a/", "/b/") for b in endings for c in endings for d in endings[1:5]}
    assert len({result_name(name) for name in names}) == len(names)


def test_fingerprints_follow_the_content(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name)
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    assert len({fingerprint(a), fingerprint(b), fingerprint(a, b), fingerprint(b, a), fingerprint(a, None)}) == 5
    assert fingerprint(a, None) == fingerprint(a, str(tmp_path / "missing"))


def _remove(out: Path) -> None:
    shutil.rmtree(out)


def _remove_manifest(out: Path) -> None:
    (out / NAME).unlink()


def _replace(out: Path) -> None:
    out.rename(out.with_name("moved"))
    out.mkdir()


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed")
@pytest.mark.parametrize("change", [_remove, _remove_manifest, _replace])
def test_a_folder_that_is_removed_while_results_are_written(
    change: Callable[[Path], None], tmp_path: Path, inputs: list[InputFile]
) -> None:
    with _open(tmp_path) as results:
        results.pending(inputs)
        results.keep(inputs[0], A, 0.1)
        change(tmp_path / "out")
        for act in (
            lambda: results.keep(inputs[1], A, 0.1),
            lambda: results.fail(inputs[2], "wrong"),
            results.require_there,
        ):
            with pytest.raises(WriteError, match="removed or replaced by another while the run went on"):
                act()
    left = [] if change is not _remove_manifest else ["0.npz"]
    names = [file.name for file in inputs if file.name not in left]
    assert _pending(tmp_path, inputs) == names  # a run that resumes takes what is left


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed")
def test_a_folder_of_results_does_not_come_back(tmp_path: Path, inputs: list[InputFile]) -> None:
    """Results without their manifest could not be continued."""
    deep = InputFile("deep/er/0.npz", inputs[0].path)
    with _open(tmp_path) as results:
        results.keep(deep, A, 0.1)
        shutil.rmtree(tmp_path / "out")
        results.manifest.is_there = lambda: True  # type: ignore[method-assign]  # it was, a moment ago
        with pytest.raises(WriteError):
            results.keep(deep, A, 0.1)
    assert not (tmp_path / "out").exists()


def test_results_that_are_removed_are_missing(tmp_path: Path, inputs: list[InputFile]) -> None:
    with _open(tmp_path) as results:
        results.pending(inputs)
        for file in inputs:
            results.keep(file, A, 0.1)
        assert not results.missing(inputs)
        (tmp_path / "out" / "1.npz").unlink()
        assert [row.input for row in results.missing(inputs)] == ["1.npz"]
    assert _pending(tmp_path, inputs) == ["1.npz"]
