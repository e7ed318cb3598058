"""Ctrl-C at random moments, typed in a terminal: status 130, one word, no traceback, no processes and no files left.

OVIR_TEST_MOMENTS sets the number of moments for each command; with 50, they are 20 ms apart in the first second.
"""

import os
import random
import re
import select
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from support.builder import Net
from support.terminals import PATIENCE, needs_terminal, open_terminal, read_all, start_in_terminal

from ovir.cli.main import COMMANDS

pytestmark = [
    pytest.mark.slow,
    needs_terminal,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc"),
]
MOMENTS = int(os.environ.get("OVIR_TEST_MOMENTS", "1"))
SECONDS = 1.0
"""The moments lie in this time from the start of the command on."""

# What pip makes of the entry point in pyproject.toml.
SCRIPT = """\
#!{python}
import re
import sys
from ovir.__main__ import command
if __name__ == "__main__":
    sys.argv[0] = re.sub(r"(-script\\.pyw|\\.exe)?$", "", sys.argv[0])
    sys.exit(command())
"""

COMMAND_LINES = {
    "": "--help",
    "run": "run {model} --output {out}/out.npz",
    "run many": "run {model} --inputs {data} --output {out}/results --workers 2",
    "infer": "infer {large}",
    "show": "show {large} --memory",
    "check": "check {large} --sarif {out}/out.sarif",
    "check many": "check {many}",
    "check untrusted": "check --untrusted {many}",
    "diff": "diff {model} {large}",
    "compare": "compare {model} {model}",
    "bisect": "bisect {model} --against openvino:CPU",
    "reduce": "reduce {model} --check 'sleep 0.1; exit 3 # {{}}' -o {out}/small.xml",
    "precision": "precision {model} --to f16",
    "fuzz": "fuzz --against openvino:CPU -o {out}/findings",
    "extract": "extract {model} --outputs relu0 -o {out}/part.xml",
    "edit": "edit {large} --prune -o {out}/new.xml",
    "export": "export {model} -o {out}/model.onnx",
    "eval": "eval {model} --inputs {data} --labels {labels}",
    "explain": "explain OVIR402",
    "ops": "ops --json",
    "join": "join {large} {model} --connect result=x -o {out}/new.xml",
    "generate": "generate {data} --prompt Hello",
    "view": "view {large} --no-browser",
    "python": "python {large} -o {out}/build.py",
}
RESULTS = {"out.npz", "out.sarif", "small.xml", "small.bin", "part.xml", "part.bin", "new.xml", "new.bin"}
RESULTS |= {"results", "findings", "model.onnx", "build.py", "build.npz", ".ses"}  # the last one is of onnxruntime
"""What commands write if they end before; temporary files have other names."""


class Files(NamedTuple):
    """The folder of a test, and what commands read."""

    folder: Path
    script: Path
    names: dict[str, Path]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("moments")
    script = folder / "ovir"
    script.write_text(SCRIPT.format(python=sys.executable))
    script.chmod(0o755)
    names = {"model": _chain(folder / "model", 3), "large": _chain(folder / "large", 2000), "many": folder / "many"}
    (folder / "many").mkdir()
    for index in range(100):  # they take longer to check than the progress display waits
        for suffix in (".xml", ".bin"):
            shutil.copy(names["large"].with_suffix(suffix), folder / "many" / f"{index}{suffix}")
    names |= {"data": folder / "data", "labels": folder / "labels.csv"}
    names["data"].mkdir()
    for index in range(20):
        np.savez(names["data"] / f"{index}.npz", x=np.float32([index % 2, 0.5]))
    names["labels"].write_text("\n".join(f"{index}.npz,{1 - index % 2}" for index in range(20)))
    return Files(folder, script, names)


def _chain(folder: Path, layers: int) -> Path:
    folder.mkdir()
    net = Net()
    x = net.parameter("x", "2")
    for index in range(layers):
        x = net.op("ReLU", x, name=f"relu{index}")
    net.result(x)
    return net.write(folder)


class Ending(NamedTuple):
    """What has become of a command after Ctrl-C."""

    status: int
    text: str
    processes: list[int]
    files: set[str]


def _interrupt(files: Files, number: int, form: str, line: str, delay: float, shown: str | None = None) -> Ending:
    """Start a command, type Ctrl-C after some seconds, or once the terminal shows a text, and wait for its end."""
    out = files.folder / f"out{number}"
    temporary = files.folder / f"tmp{number}"
    out.mkdir()
    temporary.mkdir()
    user, programs = open_terminal()
    start = [str(files.script)] if form == "script" else [sys.executable, "-m", "ovir"]
    arguments = [quoted or word for quoted, word in re.findall(r"'([^']*)'|(\S+)", line.format(**files.names, out=out))]
    with start_in_terminal([*start, *arguments], programs, TMPDIR=str(temporary)) as process:
        os.close(programs)
        text = _read_for(user, delay, shown)
        os.write(user, b"\x03")
        text += read_all(user)
        status = process.wait(PATIENCE)
    left = _wait_for_processes(str(temporary))
    names = {path.name for path in (*out.iterdir(), *temporary.iterdir())} - RESULTS
    return Ending(status, text.decode().replace("^C", "").replace("\r\n", "\n"), left, names)


def _read_for(user: int, seconds: float, shown: str | None) -> bytes:
    """Return what a terminal shows in this time, or until it shows a text; a program may wait for its reader."""
    end = time.monotonic() + seconds
    text = b""
    while (shown is None or shown.encode() not in text) and select.select(
        [user], [], [], max(end - time.monotonic(), 0)
    )[0]:
        try:
            text += os.read(user, 1 << 16)
        except OSError:
            time.sleep(max(end - time.monotonic(), 0))
            break
    return text


def _wait_for_processes(temporary: str) -> list[int]:
    """Return the processes of a command that are left after some time."""
    end = time.monotonic() + PATIENCE
    while (left := _processes(temporary)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def _processes(temporary: str) -> list[int]:
    """Return the processes that have this folder for temporary files."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TMPDIR={temporary}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # it has ended, or belongs to another user
            continue
    return found


_numbers = count()


def test_at_random_moments(files: Files) -> None:
    """Commands wait for the moments, so that several of them run at one time."""
    cases = []
    for first, (name, line) in enumerate(COMMAND_LINES.items()):
        random_number = random.Random(name).random
        for moment in range(MOMENTS):
            form = ("script", "module")[(first + moment) % 2]
            cases.append((form, line, SECONDS / MOMENTS * (moment + random_number())))
    with ThreadPoolExecutor(4) as pool:
        endings = list(pool.map(lambda case: _interrupt(files, next(_numbers), *case), cases))
    for (form, line, delay), ending in zip(cases, endings, strict=True):
        what = f"{line!r}, {form}, after {delay:.3f} s: {ending}"
        assert not ending.processes, what
        assert not ending.files, what
        _check_text(ending, what)


def _check_text(ending: Ending, what: str) -> None:
    """Assert that a command has ended as it should, or before its first line runs, or by itself."""
    if "Traceback" in ending.text or ending.status < 0:
        assert set(re.findall(r'/ovir/([^"]*)"', ending.text)) <= {"__init__.py"}, what  # Python itself was starting
        return
    assert ending.status in (0, 1, 2, 130), what  # 2 if a package is missing
    if ending.status == 130:
        assert ending.text.count("interrupted") == 1, what
        assert ending.text.endswith("interrupted\n"), what
    else:
        assert "interrupted" not in ending.text, what


@pytest.mark.parametrize("options", ["", "--dask local"])
def test_while_other_processes_work(options: str, files: Files) -> None:
    if options:
        pytest.importorskip("distributed", reason="needs dask (ovir[dask])")
    line = f"check {{many}} {{many}}/.. --workers 2 {options}"
    ending = _interrupt(files, next(_numbers), "module", line, PATIENCE, "checking files")
    assert (ending.status, ending.processes, ending.files) == (130, [], set()), ending.text
    assert ending.text.endswith("interrupted\n")
    assert "Traceback" not in ending.text


def test_all_commands_are_interrupted() -> None:
    assert set(COMMANDS) <= {name.split()[0] if name else "" for name in COMMAND_LINES}
