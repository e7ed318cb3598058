"""``ovir eval`` with devices, with clusters, and with metrics of all inputs together; transcripts/eval.md shows the rest."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net
from support.detections import random_detections

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shared_workers")]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go to a folder with models that add to their input, and with inputs and labels of classes and of boxes."""
    monkeypatch.chdir(tmp_path)
    for name, shift in (("scores", np.zeros(3)), ("boxes", np.zeros(6)), ("moved", np.array([0, 0, 4, 4, 4, 4]))):
        net = Net()
        data = net.parameter("x", f"?,{len(shift)}")
        net.result(net.op("Add", data, net.const(shift[None].astype(np.float32)), name="sums"))
        net.write(tmp_path, name)
    rows = ["image,x1,y1,x2,y2,class"]
    for folder in ("of_scores", "of_boxes"):
        Path(folder).mkdir()
    for number, (output, label) in enumerate(random_detections(3, 10)):
        np.savez(f"of_scores/{number}.npz", x=np.eye(3, dtype=np.float32)[[number % 3]])
        np.savez(f"of_boxes/{number}.npz", x=output.astype(np.float32))
        rows += [f"{number}", *(",".join(map(str, [number, *row[:5]])) for row in label.tolist())]
    Path("boxes.csv").write_text("\n".join(rows))
    Path("classes.csv").write_text("\n".join(f"{number},{number % 2}" for number in range(10)))


SCORES = ("eval", "scores.xml", "--inputs", "of_scores", "--labels", "classes.csv", "--workers", 1)
BOXES = ("eval", "boxes.xml", "--inputs", "of_boxes", "--labels", "boxes.csv", "--metric", "map", "--workers", 1)


def test_batches_and_dask_give_the_same(cli: Any) -> None:
    expected = cli(*SCORES, "--json")
    assert cli(*SCORES, "--json", "--batch", 7) == expected
    pytest.importorskip("distributed", reason="needs distributed, of the extra `dask`")
    assert cli(*SCORES, "--json", "--dask", "local") == expected


@pytest.mark.usefixtures("device")
def test_a_device(cli: Any) -> None:
    found = json.loads(cli(*SCORES, "--json", "--against", "openvino:CPU").out)
    assert (found["against"]["model"], found["difference"]["value"]) == ("OpenVINO 1.2.3 on CPU", 0)
    done = cli(*SCORES, "--json", "--metric", "mse", "--against", "openvino:CPU")
    assert (done.status, len(json.loads(done.out)["failed"])) == (1, 10), "a class is not an array of scores"


def test_boxes(cli: Any) -> None:
    pytest.importorskip("pycocotools")
    done = cli(*BOXES, "--against", "moved.xml")
    assert done.status == 0, done.err
    assert done.out.startswith("boxes.xml: map 0.")
    assert "(jackknife, 10 groups); of 10 inputs together, higher is better" in done.out
    assert "the first model is better: p = " in done.out
    found = json.loads(cli(*BOXES, "--json").out)
    assert (found["metric"], found["inputs"], found["samples"], found["failed"]) == ("map", 10, 10, [])


def test_the_metric_says_what_it_needs(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = cli(*BOXES)
    assert (done.status, 'pip install "ovir[metrics]"' in done.err) == (2, True)
