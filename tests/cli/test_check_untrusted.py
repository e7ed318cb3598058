"""``ovir check --untrusted``."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net


def written(folder: Path, rest: bytes = b"") -> Path:
    net = Net()
    net.result(net.op("Add", net.parameter("data", "3"), net.const(np.float32([1, 2, 3]))))
    (folder / "model.xml").write_text(net.xml(), encoding="utf-8")
    (folder / "model.bin").write_bytes(bytes(net.blob) + rest)
    return folder / "model.xml"


# --------------------------------------------------------------------------- the command


def test_the_command(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, b"payload")
    (tmp_path / "ovir.toml").write_text('[check]\nignore = ["OVIR"]\n', encoding="utf-8")
    (tmp_path / "numpy.py").write_text("raise SystemExit\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    result = cli("check", "--untrusted", ".", "--json", "--sarif", "log.sarif")
    assert result.status == 1
    assert [found["code"] for found in json.loads(result.out)] == ["OVIR508"]
    (rule,) = json.loads(Path("log.sarif").read_text(encoding="utf-8"))["runs"][0]["tool"]["driver"]["rules"]
    assert rule["properties"]["security-severity"] == "5.0"
    assert cli("check", "--untrusted", ".", "--ignore", "OVIR508").status == 0


@pytest.mark.parametrize("options", [["--timeout", "5"], ["--untrusted", "--timeout", "0"], ["--memory", "100"]])
def test_wrong_options(options: list[str], tmp_path: Path, cli: Any) -> None:
    assert cli("check", written(tmp_path), *options).status == 2
