"""What commands write: complete or not at all, and never in place of what they read."""

import os
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.builder import Net
from support.command import Cli
from support.systems import small_files

import ovir
from ovir.io.tensor_files import load_npz


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the present folder, with a model x f32[100] -> Add -> Relu, its inputs, and files for other options."""
    net = Net()
    x = net.parameter("x", "100")
    added = net.op("Add", x, net.const(np.full(100, -0.5, np.float32), name="c"), name="added")
    net.result(net.op("Relu", added, name="out"))
    net.write(tmp_path)
    np.savez(tmp_path / "in.npz", x=np.arange(100, dtype=np.float32))
    np.savez(tmp_path / "recorded.npz", x=np.arange(100, dtype=np.float32), out=np.zeros(100, np.float32))
    shutil.copy(tmp_path / "in.npz", tmp_path / "part_input.npz")
    (tmp_path / "own.py").write_text("import ovir\n")
    (tmp_path / "known.json").write_text('{"version": 1, "diagnostics": []}')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# --------------------------------------------------------------------------- an output that is an input

COMMANDS = [
    ("run model.xml --input in.npz --output {}", "in.npz"),
    ("run model.xml --input x=in.npz --output {}", "in.npz"),
    ("run model.xml --input x=in.npz:x --record {}", "in.npz"),
    ("run model.xml --input in.npz --save-inputs {}", "in.npz"),
    ("run model.xml --extension own.py --output {}", "own.py"),
    ("run model.xml --output {}", "model.xml"),
    ("run model.xml --output {}", "model.bin"),
    ("run model.xml --node-data {}", "model.xml"),
    ("check model.xml --sarif {}", "model.bin"),
    ("check model.xml --baseline known.json --sarif {}", "known.json"),
    ("check model.xml --write-baseline {}", "model.xml"),
    ("compare model.xml --against recorded.npz --input in.npz --save-inputs {}", "recorded.npz"),
    ("compare model.xml --against recorded.npz --html {}", "recorded.npz"),
    ("bisect model.xml --against recorded.npz -o {}", "model.xml"),
    ("bisect model.xml --against recorded.npz --input part_input.npz -o part.xml", "part_input.npz"),
    ("precision model.xml --to f16 -o {}", "model.xml"),
    ("reduce model.xml --check 'false {{}}' -o {}", "model.xml"),
    ("reduce model.xml --check 'false {{}}' --input in.npz --save-inputs {} -o small.xml", "in.npz"),
    ("extract model.xml --outputs added -o {}", "model.xml"),
    ("export model.xml --verify --input in.npz --save-inputs {} -o out.onnx", "in.npz"),
    ("python model.xml --extension own.py -o {}", "own.py"),
    ("edit recorded.xml --weights model.bin -o {}", "model.xml"),
]


@pytest.mark.parametrize(("command", "target"), COMMANDS)
@pytest.mark.parametrize("kind", ["same", "path", "symbolic", "hard"])
def test_an_output_that_is_an_input_is_refused(cli: Cli, folder: Path, command: str, target: str, kind: str) -> None:
    name = target
    if kind == "path":
        name = f"../{folder.name}/./{target}"
    elif kind != "same":
        if "{}" not in command.replace("{{}}", ""):
            pytest.skip("the output has a name of its own")
        name = f"link{Path(target).suffix}"
        for path in folder.glob(f"{Path(target).stem}.*"):  # with the weights of a model
            link = folder / f"link{path.suffix}"
            link.symlink_to(path) if kind == "symbolic" else link.hardlink_to(path)
    before = content(folder)
    done = cli(*shlex.split(command.format(name)))
    assert (done.status, done.out) == (2, "")
    assert "would be overwritten" in done.err
    assert done.err.count("error[") == 1
    assert content(folder) == before


def test_a_message_names_the_input(cli: Cli, folder: Path) -> None:
    (folder / "out.npz").symlink_to("in.npz")
    done = cli("run", "model.xml", "--input", "in.npz", "--output", "out.npz")
    message = "error[OVIR902] --output out.npz: the input in.npz would be overwritten; give another name"
    assert done.err.splitlines() == [message]


def test_the_baseline_of_a_configuration_is_an_input(cli: Cli, folder: Path) -> None:
    (folder / "ovir.toml").write_text('[check]\nbaseline = "known.json"\n')
    before = content(folder)
    done = cli("check", "model.xml", "--sarif", "known.json")
    assert (done.status, done.out) == (2, "")
    assert "known.json would be overwritten" in done.err
    assert content(folder) == before
    assert cli("check", "model.xml", "--write-baseline", "known.json").status == 0


def test_two_outputs_cannot_be_links_of_one_file(cli: Cli, folder: Path) -> None:
    (folder / "a.npz").touch()
    (folder / "b.npz").hardlink_to(folder / "a.npz")
    done = cli("run", "model.xml", "--output", "a.npz", "--record", "b.npz")
    assert done.status == 2
    assert "--record b.npz: --output writes the same file" in done.err


@pytest.mark.parametrize("output", ["model.xml", "link.xml", "./model.xml"])
def test_a_model_can_be_edited_in_place(cli: Cli, folder: Path, output: str) -> None:
    (folder / "link.xml").symlink_to("model.xml")
    (folder / "link.bin").symlink_to("model.bin")
    done = cli("edit", "model.xml", "--name", "edited", "-o", output)
    assert (done.status, done.err) == (0, "")
    assert ovir.read_model(output).name == "edited"


def test_devices_are_no_files_that_could_be_overwritten(cli: Cli, folder: Path) -> None:
    assert cli("run", "model.xml", "--output", "/dev/null", "--record", "/dev/null").status == 0


def test_an_equal_text_is_no_input(cli: Cli, folder: Path) -> None:
    """An output may have the name of a layer that is tapped, and of the command."""
    for _ in range(2):
        assert cli("run", "model.xml", "--tap", "added", "--output", "added").status == 0
        assert cli("run", "model.xml", "--output", "run").status == 0


# --------------------------------------------------------------------------- a full disk


WRITERS = [
    ("run model.xml --output old.npz", "cannot write the results"),
    ("run model.xml --record old.npz", "cannot write the record"),
    ("run model.xml --save-inputs old.npz", "cannot write the inputs"),
    ("compare model.xml model.xml --save-inputs old.npz", "cannot write the inputs"),
    ("run model.xml --node-data old.json", "cannot write the node data"),
    ("check model.xml --sarif old.json", "cannot write the SARIF log"),
    ("check wrong.xml --write-baseline old.json", "cannot write the baseline"),
    ("check model.xml --html old.html", "cannot save the report"),
    ("edit model.xml -o old.xml", "cannot save the model"),
    ("extract model.xml -o old.xml", "cannot save the model"),
    ("python model.xml -o old.py", "cannot save the Python file"),
    ("export model.xml -o old.onnx", "cannot save the ONNX model"),
]


@pytest.mark.skipif(os.name != "posix", reason="the limit of a file's size is one of POSIX systems")
@pytest.mark.parametrize(("command", "message"), WRITERS)
def test_a_full_disk_keeps_the_older_file(cli: Cli, folder: Path, command: str, message: str) -> None:
    for ending, package in ((".onnx", "onnx"), (".html", "plotly"), (".html", "itables")):
        if ending in command:
            pytest.importorskip(package)
    text = (folder / "model.xml").read_text()
    (folder / "wrong.xml").write_text(text.replace("Relu", "Rely" * 100).replace('"ReLU"', f'"{"Rely" * 100}"'))
    for path in ("old.npz", "old.json", "old.html", "old.xml", "old.bin", "old.py", "old.onnx"):
        (folder / path).write_text("older")
    before = content(folder)
    with small_files(100):
        done = cli(*command.split())
    assert done.status == 2
    assert f"error[OVIR903] {message}: File too large" in done.err
    assert content(folder) == before
    assert cli(*command.split()).status in (0, 1)
    name = command.split()[-1]
    assert (folder / name).read_bytes() != b"older"


def test_an_output_may_be_a_pipe(cli: Cli, folder: Path) -> None:
    import threading

    os.mkfifo(folder / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((folder / "pipe").read_bytes()))
    reader.start()
    assert cli("run", "model.xml", "--input", "in.npz", "--output", "pipe").status == 0
    reader.join()
    (folder / "read.npz").write_bytes(read[0])
    assert load_npz("read.npz")["out"].tolist() == [0, *np.arange(99) + 0.5]
    assert cli("check", "model.xml", "--sarif", "/dev/null").status == 0
