"""`--extension`: modules whose operations end workers or are exported; transcripts/run.md shows the rest."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.builder import unary_net

from ovir.cli.options import opening
from ovir.ops.base import registry

MODULE = """
import ovir

@ovir.register("Swirl", version="extension")
class Swirl(ovir.Operator):
    def infer(self, data: ovir.TensorType) -> ovir.TensorType:
        return data

    def run(self, data):
        return data[::-1]
"""
EXPORTER = """
@ovir.exports(Swirl, to="Slice")
def swirl(graph, op, data):
    return graph.Slice(data, [-1], [-(2**31)], [0], [-1])
"""


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_users", {})
    monkeypatch.setattr(opening, "_loaded", set())


@pytest.fixture
def swirling(tmp_path: Path) -> Path:
    path = unary_net("Swirl", "2,3").write(tmp_path, "swirling")
    text = path.read_text().replace('type="Swirl" version="opset1"', 'type="Swirl" version="extension"')
    path.write_text(text)
    return path


def written(folder: Path, text: str = MODULE) -> Path:
    (folder / "swirl.py").write_text(text)
    return folder / "swirl.py"


KILLER = """
import os, signal
from multiprocessing import parent_process
import ovir

@ovir.register("Killer", version="extension")
class Killer(ovir.Operator):
    def infer(self, data: ovir.TensorType) -> ovir.TensorType:
        assert parent_process() is not None, "this would end the tests"
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="other systems have no SIGKILL")
def test_a_file_that_kills_workers_is_reported(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "killer.py").write_text(KILLER)
    for number in range(40):
        unary_net("Relu", name="relu").write(tmp_path, f"{number:02}")
    text = (
        (tmp_path / "17.xml").read_text().replace('type="Relu" version="opset1"', 'type="Killer" version="extension"')
    )
    (tmp_path / "17.xml").write_text(text)
    done = cli("check", tmp_path, "--workers", 2, "--extension", tmp_path / "killer.py", "--select", "OVIR4", "--json")
    assert done.status == 1
    (found,) = json.loads(done.out)
    assert (found["code"], found["file"]) == ("OVIR807", str(tmp_path / "17.xml"))
    assert "40 files checked: 1 error" in done.err


def test_an_own_operation_has_a_form_in_onnx(cli: Any, swirling: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx_ir")
    module = written(tmp_path, MODULE + EXPORTER)
    done = cli("export", swirling, "--extension", module, "-o", tmp_path / "swirl.onnx")
    assert done.status == 0
    assert "1 node, checked by onnx.checker" in done.out


@pytest.mark.parametrize("wrong", ["graph.Slize(data", "graph.nothing.Slice(data"])
def test_a_fault_of_an_own_exporter_has_its_file_and_line(cli: Any, swirling: Path, tmp_path: Path, wrong: str) -> None:
    pytest.importorskip("onnx_ir")
    module = written(tmp_path, MODULE + EXPORTER.replace("graph.Slice(data", wrong))
    done = cli("export", swirling, "--extension", module, "-o", tmp_path / "swirl.onnx")
    assert done.status == 1
    assert "layer 1 'swirl1' (Swirl, extension): the exporter failed: A" in done.err
    assert f"fault of the class Swirl, which was registered for Swirl; it fails in {module}, line 14" in done.err
