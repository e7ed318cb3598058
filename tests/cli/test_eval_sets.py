"""``ovir eval`` with metrics of all inputs together: boxes and class maps."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net
from support.detections import random_detections

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shared_workers")]


@pytest.fixture
def detector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model that returns the detections that it is fed with; inputs and labels of ten images."""
    monkeypatch.chdir(tmp_path)
    for name, offset in (("model", 0), ("moved", 4)):
        net = Net()
        shift = np.float32([[0, 0, offset, offset, offset, offset]])
        net.result(net.op("Add", net.parameter("x", "?,6"), net.const(shift), name="boxes"))
        net.write(tmp_path, name)
    rows = ["image,x1,y1,x2,y2,class"]
    (tmp_path / "in").mkdir()
    for number, (output, label) in enumerate(random_detections(3, 10)):
        np.savez(tmp_path / "in" / f"{number}.npz", x=output.astype(np.float32))
        rows += [f"{number}", *(",".join(map(str, [number, *row[:5]])) for row in label.tolist())]
    (tmp_path / "boxes.csv").write_text("\n".join(rows))
    return tmp_path


def test_the_command_with_boxes(detector: Path, cli: Any) -> None:
    pytest.importorskip("pycocotools")
    arguments = ("--inputs", "in", "--labels", "boxes.csv", "--metric", "map", "--workers", 1)
    done = cli("eval", "model.xml", *arguments, "--against", "moved.xml")
    assert done.status == 0, done.err
    assert done.out.startswith("model.xml: map 0.")
    assert "(jackknife, 10 groups); of 10 inputs together, higher is better" in done.out
    assert "the first model is better: p = " in done.out
    found = json.loads(cli("eval", "model.xml", *arguments, "--json").out)
    assert (found["metric"], found["inputs"], found["samples"], found["failed"]) == ("map", 10, 10, [])


def test_the_metric_says_what_it_needs(detector: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = cli("eval", "model.xml", "--inputs", "in", "--labels", "boxes.csv", "--metric", "map")
    assert done.status == 2
    assert 'pip install "ovir[metrics]"' in done.err
