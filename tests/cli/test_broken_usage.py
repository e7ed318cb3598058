"""Whatever is wrong: one clear message, status 1 or 2, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovir
from ovir.cli import run as run_command
from ovir.cli.main import main

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 123\n"


@pytest.mark.parametrize("command", ["run", "infer", "show", "check"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        ("", "the file is empty"),
        ("hello, world\n", "this is not XML"),
        ("<net name='x' version='11'><layers><layer id='0'", "error[OVIR002]"),
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
def test_a_directory(cli: Any, tmp_path: Path, command: str) -> None:
    result = cli(command, tmp_path)
    assert result.status == 2
    assert "Is a directory" in result.out + result.err


@pytest.mark.parametrize("command", ["run", "infer", "show", "check"])
@pytest.mark.parametrize(
    ("weights", "status", "message"),
    [
        (None, 1, "there is no file"),
        (b"123", 1, "the file is truncated, or belongs to another .xml"),
        (LFS.encode(), 2, "git-LFS pointer"),
    ],
)
def test_weights(cli: Any, model: Path, command: str, weights: bytes | None, status: int, message: str) -> None:
    model.with_suffix(".bin").unlink()
    if weights is not None:
        model.with_suffix(".bin").write_bytes(weights)
    result = cli(command, model)
    assert result.status == status
    assert message in result.out + result.err


def test_weights_option(cli: Any, model: Path, tmp_path: Path) -> None:
    assert cli("show", model, "--weights", tmp_path / "none.bin").status == 2
    model.with_suffix(".bin").rename(tmp_path / "other.bin")
    assert cli("run", model, "--weights", tmp_path / "other.bin").status == 0


@pytest.mark.parametrize(
    ("option", "status", "message"),
    [
        ("nothing={d}", 2, "the model has no input 'nothing'; its inputs are 0 'data', 1 'indices'"),
        ("7={d}", 2, "the model has no input 7"),
        ("data=none.npy", 2, "none.npy: error[OVIR001] cannot read the file: No such file"),
        ("data={text}", 2, "neither a .npy nor an .npz"),
        ("data={empty}", 2, "the file is empty"),
        ("{zip}", 2, "cannot read"),
        ("{d}", 2, "one array, not an .npz"),
        ("data={npz}:nokey", 1, "there is no array 'nokey' in the file; its arrays are 'a', 'b'"),
        ("data={npz}", 1, "the file holds more than one array"),
        ("{npz}", 2, "the model has no input 'a'"),
        ("data={pickle}", 2, "cannot read"),
        ("data={complex}", 1, "takes f32, got an array of complex128"),
        ("data={long}", 1, "input 'data' takes shape [?,3], got [2,4]"),
        ("data={flat}", 1, "the input has 2 dimensions, the array 1"),
    ],
)
def test_inputs(cli: Any, model: Path, tmp_path: Path, option: str, status: int, message: str) -> None:
    files = {name: tmp_path / name for name in ("d.npy", "text.npy", "empty.npy", "zip.npz", "npz.npz", "pickle.npy")}
    arrays = {"d": np.ones((2, 3), np.float32), "complex": np.ones((2, 3), complex)}
    arrays |= {"long": np.ones((2, 4), np.float32), "flat": np.ones(3, np.float32)}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
        files[f"{name}.npy"] = tmp_path / f"{name}.npy"
    files["text.npy"].write_text("1 2 3")
    files["empty.npy"].touch()
    files["zip.npz"].write_bytes(b"PK\3\4 and no more")
    np.savez(files["npz.npz"], a=np.zeros(1), b=np.zeros(1))
    np.save(files["pickle.npy"], np.array([{}], object), allow_pickle=True)
    text = option.format(**{path.stem: path for path in files.values()})
    result = cli("run", model, "--input", text, "--seed", 0)
    assert result.status == status, result.err
    assert message in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shape", "data=1,x"], "'x' is not a dimension"),
        (["--shape", "1,3"], "say for which input"),
        (["--shape", "nothing=1,3"], "no input 'nothing'"),
        (["--shape", "data=1,3", "--shape", "data=2,3"], "has two shapes"),
        (["--tap", "("], "not a regular expression"),
        (["--tap", "nowhere"], "no layer's name matches"),
        (["--threads", "0"], "threads must be at least 1"),
        (["--threads", "many"], "invalid int value"),
        (["--seed", "-1"], "-1 is negative"),
        (["--output", "nowhere/out.npz"], "there is no directory nowhere"),
        (["--output", "."], "this is a directory"),
        (["--unknown"], "unrecognized arguments: --unknown"),
        (["--js"], "unrecognized arguments: --js"),
    ],
)
def test_wrong_usage(cli: Any, model: Path, arguments: list[str], message: str) -> None:
    result = cli("run", model, *arguments)
    assert result.status == 2
    assert message in result.err
    assert result.out == ""


def test_a_shape_that_the_model_refuses(cli: Any, model: Path) -> None:
    result = cli("run", model, "--shape", "data=2,5")
    assert result.status == 1
    assert "layer" in result.err
    assert "MatMul" in result.err


def test_no_command_and_unknown_command(cli: Any) -> None:
    assert cli().status == 2
    assert "invalid choice" in cli("walk").err


def test_version_and_help(cli: Any) -> None:
    assert cli("--version") == (0, f"ovir {ovir.__version__}\n", "")
    assert "examples:" in cli("--help").out
    for command in ("run", "infer", "show", "check", "ops"):
        assert f"ovir {command}" in cli(command, "--help").out


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (RuntimeError("odd"), 1, "RuntimeError: odd"),
        (MemoryError(), 1, "out of memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (PermissionError(13, "Permission denied", "out.npz"), 2, "out.npz: error: Permission denied"),
    ],
)
def test_what_is_not_expected(
    cli: Any, model: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, message: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(run_command, "open_model", fail)
    result = cli("run", model)
    assert result.status == status
    assert message in result.err


def test_debug_shows_the_traceback(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OVIR_DEBUG", "1")
    assert main(["run", "no-such-file.xml"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_goes_away(model: Path) -> None:
    """As in `ovir infer model.xml | head`: quiet."""
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "ovir", "infer", str(model), "--json"], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert process.returncode == 141
    assert process.stderr == b""
