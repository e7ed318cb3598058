"""Completion of command lines: what argcomplete answers, and shells that ask it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.terminals import PATIENCE, ROOT, needs_terminal, open_terminal, read_all, start_in_terminal

pytest.importorskip("argcomplete", reason="completion needs argcomplete (ovir[completion])")
pytestmark = [pytest.mark.slow, needs_terminal]

SCRIPT = """\
#!{python}
import sys
from ovir.__main__ import command
sys.exit(command())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with files of many kinds, and the console script in ``bin``."""
    for name in (
        *("model.xml", "model.bin", "more.xml", "inputs.npz", "photo.jpg", "ops.py", ".hidden.xml", "report.json"),
    ):
        (tmp_path / name).touch()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "inner.xml").touch()
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "ovir"
    script.write_text(SCRIPT.format(python=sys.executable))
    script.chmod(0o755)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    path = f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "TERM": "xterm", "HOME": str(folder)}


def completed(line: str, folder: Path, **more: str) -> list[str]:
    """Return what a shell gets for a command line with the cursor at its end."""
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_SUPPRESS_SPACE": "1", "COMP_LINE": line}
    done = subprocess.run(
        ["sh", "-c", 'exec 8>&1 1>/dev/null; exec "$@"', "sh", sys.executable, "-m", "ovir"],
        env={**os.environ, **environment(folder), **asked, "COMP_POINT": str(len(line)), "COMP_TYPE": "9", **more},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split("\n") if done.stdout else []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ovir run digits.xml --input im", ["image="]),
        ("ovir edit digits.xml --shape i", ["image="]),
        ("ovir edit digits.xml --set-constant conv1/", ["conv1/weights=", "conv1/bias="]),
        ("ovir edit digits.xml --rename pool", ["pool1=", "pool2="]),
        ("ovir edit digits.xml --add-output rel", ["relu1", "relu2"]),
        ("ovir edit digits.xml --remove-output ", ["probabilities"]),
        ("ovir extract digits.xml --outputs relu1,pool", ["relu1,pool1", "relu1,pool2"]),
        ("ovir edit digits.xml --runtime 2024", ["2024.0", "2024.5"]),
        ("ovir edit digits.xml --opset 1", ["1", "10", "11", "12", "13", "14", "15", "16", "17"]),
        ("ovir export digits.xml --target onnxruntime:1.2", [f"onnxruntime:1.{n}" for n in (21, 23, 24, 25)]),
        ("ovir edit no.xml --rename pool", []),
        ("ovir edit model.xml --rename pool", []),
    ],
)
def test_names_in_the_model_and_releases(line: str, expected: list[str], folder: Path) -> None:
    shutil.copy(ROOT / "examples" / "xml" / "digits.xml", folder)
    assert [found.replace("\\", "").rstrip() for found in completed(line, folder)] == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ovir ex", ["explain", "extract", "export"]),
        ("ovir run --emul", ["--emulate"]),
        ("ovir run --emulate ", ["f16", "bf16"]),
        ("ovir run ", ["model.xml", "more.xml", "bin/", "models/"]),
        ("ovir run mod", ["model.xml", "models/"]),
        ("ovir run models/", ["models/inner.xml"]),
        ("ovir run .", [".hidden.xml"]),
        ("ovir run nothing/", []),
        ("ovir run model.xml --extension ", ["ops.py", "bin/", "models/"]),
        ("ovir run model.xml --input image=p", ["image=photo.jpg"]),
        ("ovir run model.xml --input in", ["inputs.npz"]),
        ("ovir run model.xml --seed ", []),
        ("ovir check --baseline ", ["report.json", "bin/", "models/"]),
        ("ovir check --weights m", ["model.bin", "model.xml", "more.xml", "models/"]),
        ("ovir check model.xml mor", ["more.xml"]),
        ("ovir check --format=g", ["--format=github"]),
        ("ovir compare model.xml --against openvino:C", ["openvino:CPU"]),
        ("ovir explain OVIR402", ["OVIR402"]),
        ("ovir ops Gather", ["Gather", "GatherElements", "GatherND", "GatherTree"]),
    ],
)
def test_what_may_stand_at_the_cursor(line: str, expected: list[str], folder: Path) -> None:
    assert [found.replace("\\", "").rstrip() for found in completed(line, folder)] == expected


def test_options_have_descriptions(folder: Path) -> None:
    """Which zsh and fish show."""
    found = completed("ovir run --threa", folder, _ARGCOMPLETE_DFS="\t", _ARGCOMPLETE_SHELL="fish")
    assert found == ["--threads\tuse at most N threads (default: all cores)"]


def test_argcomplete_is_imported_for_completion_only(folder: Path) -> None:
    code = "import sys\nfrom ovir.__main__ import command\nsys.argv[1:] = ['explain', 'OVIR402']\n"
    code += "try:\n    command()\nexcept SystemExit:\n    print('argcomplete' in sys.modules, flush=True)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("False\n")


def test_argcomplete_finds_the_mark_of_the_console_script() -> None:
    from argcomplete._check_module import find

    assert "PYTHON_ARGCOMPLETE_OK" in Path(find("ovir")).read_text(encoding="utf-8")[:1024]
    assert find("ovir.__main__", return_package=True) == find("ovir")


REGISTER = {
    "bash": 'eval "$(register-python-argcomplete ovir)"\n',
    "zsh": 'autoload -U compinit && compinit; eval "$(register-python-argcomplete ovir)"\n',
    "fish": "register-python-argcomplete --shell fish ovir | source\n",
}
"""What docs/command-line.md says."""
OPTIONS = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"], "fish": ["--no-config", "-i"]}


@pytest.mark.parametrize("shell", REGISTER)
def test_shells(shell: str, folder: Path) -> None:
    """The keys are typed: the shell completes the command, and runs it."""
    if shutil.which(shell) is None or shutil.which("register-python-argcomplete") is None:
        pytest.skip(f"{shell} or register-python-argcomplete is not installed")
    user, programs = open_terminal()
    with start_in_terminal([shell, *OPTIONS[shell]], programs, **environment(folder)) as process:
        os.close(programs)
        os.write(user, f"cd {folder}\n{REGISTER[shell]}".encode())
        os.write(user, b"ovir expla\tOVIR402 > told\nexit\n")
        text = read_all(user).decode()
        process.wait(PATIENCE)
    assert "a declared shape differs" in (folder / "told").read_text(), text


def test_the_commands_are_documented() -> None:
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert all(command.strip() in text for command in REGISTER.values())
