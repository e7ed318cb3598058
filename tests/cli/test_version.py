"""``ovir --version`` prints what is installed, as reports of faults need it."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import ovir
from ovir.cli.main import main
from ovir.cli.versions import PACKAGES

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["--version"]) == 0
    return capsys.readouterr().out.splitlines()


def test_all_packages_of_the_project_are_looked_for() -> None:
    extras = (PROJECT["optional-dependencies"][name] for name in PROJECT["optional-dependencies"])
    tools = ("docs", "test", "dev")
    of_tools = {text for name in tools for text in PROJECT["optional-dependencies"][name]}
    texts = {*PROJECT["dependencies"], *(text for extra in extras for text in extra)} - of_tools
    names = {re.split(r"[<>=\[]", text)[0] for text in texts} - {"ovir"}
    assert set(PACKAGES) == names | {"openvino-tokenizers"}
    assert len(PACKAGES) == len(set(PACKAGES))


def test_versions_of_what_is_installed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name in ("openvino", "onnx"):
            raise PackageNotFoundError(name)
        return f"1.{len(name)}"

    monkeypatch.setattr("importlib.metadata.version", version)
    first, python, *packages = printed(capsys)
    assert first == f"ovir {ovir.__version__}"
    assert python.startswith(f"Python {sys.version.split()[0]} on ")
    assert packages == [f"{name} 1.{len(name)}" for name in PACKAGES if name not in ("openvino", "onnx")]


@pytest.mark.slow
def test_packages_are_not_imported() -> None:
    code = "import sys; from ovir.cli.main import main; main(['--version']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"openvino", "onnx", "onnxruntime", "jinja2", "plotly", "PIL", "pycocotools", "distributed", "regex"}
    assert not heavy & set(done.stdout.splitlines()[-1].split())
