"""untrusted files as arguments: each is one clear message, at once, and never a fault of ovir."""

import json
import os
import shutil
import signal
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

from ovir.cli.main import main
from ovir.io.result_folder import NAME

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shared_workers")]


@pytest.fixture(autouse=True)
def _limited() -> Iterator[None]:
    """End a test that waits for a pipe, or reads a device without an end."""

    def stop(*_: object) -> None:
        raise TimeoutError("the command takes too long")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _write_model(folder: Path) -> Path:
    net = Net()
    x = net.parameter("x", "?,2")
    net.result(net.op("ReLU", x, name="y"), name="out")
    return net.write(folder)


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(_write_model(tmp_path))


def _require_message(result: Any, *texts: str) -> None:
    everything = result.out + result.err
    assert result.status != 0
    assert "OVIR999" not in everything
    assert "Traceback" not in everything
    for text in texts:
        assert text in everything


# --------------------------------------------------------------------------- special files

SPECIAL: dict[str, Callable[[str], None]] = {
    "pipe": os.mkfifo,
    "zeros": lambda path: os.symlink("/dev/zero", path),
    "terminal": lambda path: os.symlink("/dev/random", path),
}
COMMANDS = (
    ("check", "{0}.xml"),
    ("infer", "{model}", "--weights", "{0}.bin"),
    ("check", "{model}", "--baseline", "{0}.json"),
    ("run", "{model}", "--input", "{0}.npy"),
    ("run", "{model}", "--input", "x={0}.npz"),
    ("run", "{model}", "--input", "{0}.png"),
    ("run", "{model}", "--extension", "{0}.py"),
    ("run", "{model}", "--inputs", "{0}.npz", "--output", "{folder}/results"),
    ("run", "{model}", "--inputs", "{0}.txt", "--output", "{folder}/results"),
    ("run", "{model}", "--inputs", "{folder}/special", "--output", "{folder}/results"),
    ("eval", "{model}", "--inputs", "{folder}/good", "--labels", "{0}.csv"),
    ("eval", "{model}", "--inputs", "{folder}/good", "--labels", "{0}.npz"),
    ("eval", "{model}", "--inputs", "{folder}/good", "--labels", "{0}.json", "--metric", "map"),
    ("diff", "{model}", "{0}.xml"),
    ("edit", "{model}", "--set-constant", "c={0}.npy", "-o", "{folder}/out.xml"),
    ("compare", "{model}", "--executed", "{0}.xml"),
)


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_special_files(command: tuple[str, ...], kind: str, model: str, tmp_path: Path, cli: Any) -> None:
    (tmp_path / "special").mkdir()
    (tmp_path / "good").mkdir()
    np.save(tmp_path / "good" / "a.npy", np.float32([[1, 2]]))
    for ending in ("xml", "bin", "json", "npy", "npz", "png", "py", "txt", "csv"):
        SPECIAL[kind](str(tmp_path / "special" / f"a.{ending}"))
    first = str(tmp_path / "special" / "a")
    _require_message(cli(*(part.format(first, model=model, folder=tmp_path) for part in command)))


# --------------------------------------------------------------------------- manifests


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model, inputs and the results of a run, to be copied."""
    folder = tmp_path_factory.mktemp("finished")
    _write_model(folder)
    (folder / "in").mkdir()
    for name in "ab":
        np.save(folder / "in" / f"{name}.npy", np.float32([[1, -1]]))
    assert main(_again(folder)) == 0
    return folder


def _again(folder: Path) -> list[str]:
    paths = ["--inputs", str(folder / "in"), "--output", str(folder / "results")]
    return ["run", str(folder / "model.xml"), *paths, "--workers", "1", "--resume"]


@pytest.fixture
def arguments(finished: Path, tmp_path: Path) -> list[str]:
    """Copy the run to the folder of the test, and return the arguments that go on with it."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return _again(tmp_path)


ROWS: dict[str, dict[str, Any]] = {
    "a device": {"result": "/dev/zero"},
    "a folder above": {"result": "../../a.npy.npz"},
    "a null character": {"result": "a\0b"},
    "a number": {"result": 7},
    "a list as name": {"input": ["a.npy"]},
    "no name": {"input": None},
    "an object as model": {"model": {}},
    "a text as source": {"source": "12"},
    "a number as error": {"error": 3, "status": "failed"},
    "another status": {"status": ["done"]},
}


@pytest.mark.parametrize("damage", ROWS)
def test_a_damaged_row_runs_its_input_again(damage: str, arguments: list[str], tmp_path: Path, cli: Any) -> None:
    manifest = tmp_path / "results" / NAME
    head, *rows = manifest.read_text().splitlines()
    rows = [row for row in map(json.loads, rows) if row["input"] != "a.npy"] + [
        {**row, **ROWS[damage]} for row in map(json.loads, rows) if row["input"] == "a.npy"
    ]
    manifest.write_text("\n".join([head, *map(json.dumps, rows), ""]))
    result = cli(*arguments)
    assert result.status == 0
    assert "1 row cannot be read, and their inputs run again; line 3:" in result.err
    assert "2 done (1 of an earlier run)" in result.out


@pytest.mark.parametrize("change", [{"options": None}, {"options": [1]}, {"fingerprint": {}}, {"model": 5}])
def test_a_damaged_first_line(change: dict[str, Any], arguments: list[str], tmp_path: Path, cli: Any) -> None:
    manifest = tmp_path / "results" / NAME
    head, *rows = manifest.read_text().splitlines()
    manifest.write_text("\n".join([json.dumps({**json.loads(head), **change}), *rows, ""]))
    (name,) = change
    _require_message(cli(*arguments), f"{NAME}:1:", f"the manifest is damaged: '{name}'")


@pytest.mark.parametrize("head", ["[" * 100_000, '{"ovir_manifest": true}', '{"ovir_manifest": [1]}', "\x80"])
def test_a_file_that_is_no_manifest(head: str, arguments: list[str], tmp_path: Path, cli: Any) -> None:
    (tmp_path / "results" / NAME).write_text(head + "\n")
    _require_message(cli(*arguments), "this is not a manifest")


@pytest.mark.parametrize("place", [NAME, "a.npy.npz", "b.npy.npz"])
@pytest.mark.parametrize("target", ["/dev/zero", "elsewhere"])
def test_links_out_of_the_folder_of_results(
    place: str, target: str, arguments: list[str], tmp_path: Path, cli: Any
) -> None:
    other = tmp_path / "elsewhere"
    other.write_bytes((tmp_path / "results" / place).read_bytes())
    (tmp_path / "results" / place).unlink()
    (tmp_path / "results" / place).symlink_to(tmp_path / target)
    before = other.read_bytes()
    _require_message(cli(*arguments), "a link leads out of the folder of results")
    assert other.read_bytes() == before


# --------------------------------------------------------------------------- archives


def _archive(path: Path, members: dict[str, tuple[tuple[int, ...], int]]) -> None:
    """Write members with the header of a shape of f32, and a number of zeros, which compress well."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (shape, size) in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                for _ in range(size >> 20):
                    file.write(bytes(1 << 20))
                file.write(bytes(size & ((1 << 20) - 1)))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"stranger": ((1 << 22,), 1 << 24)}, "no input 'stranger'"),
        ({"x": ((1 << 22,), 1 << 24)}, "takes shape [?,2], got [4194304]"),
        ({"x": ((1, 2), 8), "stranger__bf16": ((1 << 22,), 1 << 24)}, ""),
        ({"x": ((1 << 40, 2), 8)}, "its header says 8.8 TB of data, but there are"),
        ({"x": ((1 << 20, 2), 8)}, "its header says 8.4 MB of data, but there are"),
    ],
)
def test_archives_are_refused_by_their_headers(
    members: dict[str, tuple[tuple[int, ...], int]],
    message: str,
    model: str,
    tmp_path: Path,
    cli: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[int] = []
    whole = np.lib.format.read_array

    def counted(file: Any, *arguments: Any, **options: Any) -> Any:
        array = whole(file, *arguments, **options)
        read.append(array.nbytes)
        return array

    monkeypatch.setattr("numpy.lib._npyio_impl.format.read_array", counted)
    _archive(tmp_path / "bomb.npz", members)
    result = cli("run", model, "--input", str(tmp_path / "bomb.npz"))
    if message:
        _require_message(result, message)
    assert sum(read) < 100, "nothing large was unpacked"
