"""Whatever is wrong: one clear message, status 1 or 2, no traceback."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ovir.cli.main import main
from ovir.cli.options.engine import EngineOptions

pytestmark = pytest.mark.slow

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 123\n"


@pytest.mark.parametrize("command", ["run", "infer", "show", "check"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        ("", "the file is empty"),
        ("hello, world\n", "this is not XML"),
        ("<net name='x' version='11'><layers><layer id='0'", "error[OVIR103]"),
        (LFS, "git-LFS pointer"),
        ("<html></html>", "the root element is <html>"),
        ("<net name='x' version='7'></net>", "IR version 7"),
    ],
)
def test_files_that_are_no_model(cli: Any, tmp_path: Path, command: str, content: str | None, message: str) -> None:
    path = tmp_path / "model.xml"
    if content is not None:
        path.write_text(content)
    result = cli(command, path)
    assert result.status == 2
    assert message in (result.out if command == "check" else result.err)
    assert str(path) in result.out + result.err


@pytest.mark.parametrize("command", ["run", "infer", "show", "check"])
@pytest.mark.parametrize(
    ("weights", "status", "message"),
    [
        (None, 2, "there is no file"),
        (b"123", 1, "the file is truncated, or belongs to another .xml"),
        (LFS.encode(), 2, "git-LFS pointer"),
        ("directory", 2, "Is a directory"),
    ],
)
def test_weights(cli: Any, model: Path, command: str, weights: Any, status: int, message: str) -> None:
    model.with_suffix(".bin").unlink()
    if weights == "directory":
        model.with_suffix(".bin").mkdir()
    elif weights is not None:
        model.with_suffix(".bin").write_bytes(weights)
    result = cli(command, model)
    if weights is None and command in ("infer", "show"):
        status = 0  # they describe the topology alone
    assert result.status == status
    assert message in result.out + result.err


def test_an_output_that_is_not_writable(cli: Any, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # permissions do not hold for root
    result = cli("run", model, "--output", tmp_path / "out.npz")
    assert result.status == 2
    assert f"--output {tmp_path / 'out.npz'}: the directory {tmp_path} is not writable" in result.err


def test_no_command(cli: Any) -> None:
    alone = cli()
    assert (alone.status, alone.out) == (2, "")
    assert "ovir check model.xml" in alone.err


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (RuntimeError("odd"), 1, "error[OVIR999] RuntimeError: odd\n  hint: this is a fault of ovir; please report"),
        (MemoryError("Unable to allocate 8 GiB"), 1, "error[OVIR804] there is not enough memory: Unable to allocate 8"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (PermissionError(13, "Permission denied", "out.npz"), 2, "out.npz: error[OVIR903] cannot write or read"),
    ],
)
def test_what_is_not_expected(
    cli: Any, model: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, message: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(EngineOptions, "open", fail)
    result = cli("run", model)
    assert result.status == status
    assert message in result.err


def test_debug_shows_the_traceback(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OVIR_DEBUG", "1")
    assert main(["run", "no-such-file.xml"]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(("closed", "command"), [("stdout", "check"), ("stderr", "run")])
def test_streams_that_are_closed(model: Path, closed: str, command: str) -> None:
    """As in `ovir check model.xml >&-`: what would stand there is lost, and nothing else."""
    shell = f'exec "$0" -m ovir {command} "$1" {">&-" if closed == "stdout" else "2>&-"}'
    process = subprocess.run(["sh", "-c", shell, sys.executable, str(model)], capture_output=True, check=False)
    assert process.returncode == 0
    assert b"Traceback" not in process.stderr
    assert (bool(process.stdout), bool(process.stderr)) == (closed == "stderr", closed == "stdout")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("arguments", [("infer", "{}"), ("run", "--help")])
def test_a_full_disk(arguments: tuple[str, ...], model: Path) -> None:
    command = [sys.executable, "-m", "ovir", *(text.format(model) for text in arguments)]
    with open("/dev/full", "w") as full:
        process = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert process.returncode == 2
    assert process.stderr == b"error[OVIR903] cannot write the output: No space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_an_output_file_on_a_full_disk(cli: Any, model: Path) -> None:
    result = cli("run", model, "--output", "/dev/full")
    assert result.status == 2
    assert "/dev/full: error[OVIR903] cannot write the results: No space left on device" in result.err


@pytest.mark.parametrize("is_written", [False, True])
def test_a_reader_that_goes_away(model: Path, is_written: bool) -> None:
    """As in `ovir infer model.xml | head`: quiet, but a report is written."""
    if is_written:
        pytest.importorskip("itables", reason="reports need itables")
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "ovir", "show", str(model), *(["--html", "a.html"] if is_written else [])]
    process = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, cwd=model.parent, check=False)
    os.close(write)
    assert process.returncode == 141
    assert process.stderr == (b"a.html: report written\n" if is_written else b"")
    assert (model.parent / "a.html").exists() == is_written
