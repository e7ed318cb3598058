"""Whatever is wrong: one clear message, status 1 or 2, no traceback."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

from ovir.cli.commands import run as run_command
from ovir.cli.main import main

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
def test_a_directory(cli: Any, tmp_path: Path, command: str) -> None:
    result = cli(command, tmp_path)
    assert result.status == 2
    assert ("the folder holds no .xml file" if command == "check" else "Is a directory") in result.out + result.err


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


def test_a_topology_alone_can_be_checked(cli: Any, model: Path) -> None:
    model.with_suffix(".bin").unlink()
    assert "error[OVIR501]" in cli("check", model).out
    assert cli("check", model, "--ignore", "OVIR501").status == 0


@pytest.mark.parametrize("command", ["run", "infer", "show", "check"])
def test_a_cycle_is_the_fault_of_the_model(cli: Any, tmp_path: Path, command: str) -> None:
    net = Net()
    net.result(net.op("ReLU", net.op("ReLU", net.parameter("x", "2"), name="first"), name="second"))
    path = net.write(tmp_path)
    path.write_text(
        re.sub(r'<edge from-layer="0" from-port="\d+"', '<edge from-layer="2" from-port="1"', path.read_text())
    )
    result = cli(command, path)
    assert "error[OVIR211]" in result.out + result.err
    assert result.status == 1


def test_a_model_without_results(cli: Any, tmp_path: Path) -> None:
    net = Net()
    net.op("ReLU", net.parameter("x", "2"))
    path = net.write(tmp_path)
    result = cli("run", path)
    assert (result.status, result.out) == (1, "")
    assert f"{path}: error[OVIR215] the model has no Result: there is nothing to compute" in result.err
    path.write_text("<net name='x' version='11'><layers/><edges/></net>")
    assert "error[OVIR215] the model has no layers" in cli("run", path).err
    checked = cli("check", path)
    assert (checked.status, checked.out.count("warning[OVIR215] the model has no layers")) == (0, 1)
    assert cli("show", path).out.splitlines()[0] == "x: IR version 11, 0 layers"


def test_weights_option(cli: Any, model: Path, tmp_path: Path) -> None:
    assert cli("show", model, "--weights", tmp_path / "none.bin").status == 2
    model.with_suffix(".bin").rename(tmp_path / "other.bin")
    assert cli("run", model, "--weights", tmp_path / "other.bin").status == 0


@pytest.mark.parametrize(
    ("option", "status", "message"),
    [
        ("nothing={d}", 2, "the model has no input 'nothing'; its inputs are 0 'data', 1 'indices'"),
        ("7={d}", 2, "the model has no input 7"),
        ("data=none.npy", 2, "none.npy: error[OVIR101] cannot read the file: No such file"),
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
        (["--tap", "("], "argument --tap: '(' is not a regular expression: missing ), unterminated"),
        (["--tap", "nowhere"], "no name of a layer or a tensor matches"),
        (["--threads", "0"], "argument --threads: must be at least 1, got 0"),
        (["--threads", "many"], "argument --threads: 'many' is not an integer"),
        (["--seed", "abc"], "argument --seed: 'abc' is not an integer"),
        (["--seed", "-1"], "argument --seed: must be at least 0, got -1"),
        (["--output", "nowhere/out.npz"], "there is no directory nowhere"),
        (["--output", "."], "this is a directory"),
        (["--output", "out.txt"], "--output out.txt: the arrays are written as .npz; give a name that ends in .npz"),
        (["--output", "out.npy"], "give a name that ends in .npz"),
        (["--save-inputs", "in.txt"], "--save-inputs in.txt: the arrays are written as .npz"),
        (["--output", ""], "argument --output: the name of the file is empty"),
        (["--weights", ""], "argument --weights: the name of the file is empty"),
        (["--unknown"], "unrecognized arguments: --unknown"),
        (["--repeat", "0"], "error[OVIR902] argument --repeat: must be at least 1, got 0\n  hint: `ovir run --help`"),
        (["--emulate", "f16", "--engine", "onnxruntime"], "error[OVIR902] emulate needs the engine 'numpy'"),
        (["--js"], "unrecognized arguments: --js"),
    ],
)
def test_wrong_usage(cli: Any, model: Path, arguments: list[str], message: str) -> None:
    result = cli("run", model, *arguments)
    assert result.status == 2
    assert message in result.err
    assert "usage:" not in result.err
    assert result.out == ""


@pytest.mark.parametrize("command", ["run", "infer", "show", "check"])
def test_an_unknown_option_has_a_hint(cli: Any, model: Path, command: str) -> None:
    result = cli(command, model, "--weigths", "w.bin")
    assert result.status == 2
    assert result.err == "error[OVIR902] unrecognized arguments: --weigths w.bin\n  hint: did you mean --weights?\n"
    result = cli(command, model, "--xyzzyxyzzy")
    hint = f"`ovir {command} --help` lists what it takes"
    assert result.err == f"error[OVIR902] unrecognized arguments: --xyzzyxyzzy\n  hint: {hint}\n"


@pytest.mark.parametrize("arguments", [["--tap", "["], ["--threads", "0"], ["--output", "nowhere/out.npz"]])
def test_wrong_usage_is_found_before_the_model_is_read(cli: Any, arguments: list[str]) -> None:
    result = cli("run", "no-such-model.xml", *arguments)
    assert result.status == 2
    assert "no-such-model.xml" not in result.err
    assert arguments[1] in result.err


def test_an_output_that_is_not_writable(cli: Any, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # permissions do not hold for root
    result = cli("run", model, "--output", tmp_path / "out.npz")
    assert result.status == 2
    assert f"--output {tmp_path / 'out.npz'}: the directory {tmp_path} is not writable" in result.err


@pytest.mark.parametrize("command", ["run", "infer", "show", "check"])
def test_an_empty_name(cli: Any, command: str) -> None:
    result = cli(command, "")
    assert result.status == 2
    assert "argument MODEL.xml: the name of the file is empty" in result.err


def test_names_that_are_long_or_odd(cli: Any, tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("x\u202ey", "2,3")
    net.result(net.op("ReLU", x, name="n" * 200_000, unheard_of="1"))
    net.result(net.op("ReLU", x, name="two\u2028lines", unheard_of="1"))
    result = cli("run", net.write(tmp_path))
    assert result.status == 0
    warnings = [line for line in result.err.splitlines() if "OVIR304" in line]
    assert len(warnings) == 2
    assert max(map(len, warnings)) < 500
    assert "nnn…nnn" in warnings[0]
    assert "'two\\u2028lines'" in warnings[1]
    assert "random input: x\\u202ey f32[2,3]" in result.err


def test_no_command_and_unknown_command(cli: Any) -> None:
    alone = cli()
    assert (alone.status, alone.out) == (2, "")
    assert "ovir check model.xml" in alone.err
    assert cli("chekc", "model.xml") == (
        2,
        "",
        "error[OVIR902] there is no command 'chekc'\n  hint: did you mean `ovir check`?\n",
    )
    assert "`ovir --help` lists the commands: run, generate, eval" in cli("walk").err
    assert "hint: `ovir run` shows tensors of layers with --tap, --record and --watch" in cli("trace", "model.xml").err


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

    monkeypatch.setattr(run_command, "open_runnable", fail)
    result = cli("run", model)
    assert result.status == status
    assert message in result.err


def test_debug_shows_the_traceback(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OVIR_DEBUG", "1")
    assert main(["run", "no-such-file.xml"]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
@pytest.mark.parametrize("command", ["run", "check"])
def test_streams_that_are_closed(model: Path, closed: str, command: str) -> None:
    """As in `ovir check model.xml >&-`: what would stand there is lost, and nothing else."""
    shell = f'exec "$0" -m ovir {command} "$1" {">&-" if closed == "stdout" else "2>&-"}'
    process = subprocess.run(["sh", "-c", shell, sys.executable, str(model)], capture_output=True, check=False)
    assert process.returncode == 0
    assert b"Traceback" not in process.stderr
    assert bool(process.stdout) == (closed == "stderr" and command == "run")
    assert bool(process.stderr) == (closed == "stdout")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk(model: Path) -> None:
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "ovir", "infer", str(model)], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert process.returncode == 2
    assert process.stderr == b"error[OVIR903] cannot write the output: No space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_an_output_file_on_a_full_disk(cli: Any, model: Path) -> None:
    result = cli("run", model, "--output", "/dev/full")
    assert result.status == 2
    assert "/dev/full: error[OVIR903] cannot write the results: No space left on device" in result.err


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
