"""``ovir eval``: accuracies and errors with their intervals, and the difference of two models on the same inputs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.builder import Net

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shared_workers")]

CLASSES = 3


def _net(folder: Path, name: str, bias: tuple[float, float, float] = (0, 0, 0), *, outputs: int = 1) -> Path:
    """Write scores = x + bias, x [?,3]."""
    net = Net()
    scores = net.op("Add", net.parameter("x", "?,3"), net.const(np.float32([bias])), name="scores")
    net.result(scores)
    if outputs == 2:
        net.result(net.op("Negative", scores, name="negative"))
    return net.write(folder, name)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write 30 inputs, ten of each class; those with a number below 6 have a higher score for class 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    rows = ["image,label"]
    for number in range(30):
        x = np.zeros((1, 3), np.float32)
        x[0, number % CLASSES] = 1
        x[0, 2] += 0.5 if number >= 6 else 1.5
        np.savez(tmp_path / "in" / f"{number:02}.npz", x=x)
        rows.append(f"{number:02}.png,{number % CLASSES}")
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    _net(tmp_path, "model")
    return tmp_path


def _called(cli: Any, *arguments: object) -> Any:
    return cli("eval", "model.xml", "--inputs", "in", "--workers", 1, *arguments)


def _evaluated(cli: Any, *arguments: object, status: int = 0) -> dict[str, Any]:
    done = _called(cli, "--json", *arguments)
    assert done.status == status, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_batches_and_dask_give_the_same(folder: Path, cli: Any) -> None:
    expected = _evaluated(cli, "--labels", "labels.csv")
    assert _evaluated(cli, "--labels", "labels.csv", "--batch", 7) == expected
    pytest.importorskip("distributed", reason="needs distributed, of the extra `dask`")
    assert _evaluated(cli, "--labels", "labels.csv", "--dask", "local") == expected


def test_a_device(folder: Path, cli: Any, device: pytest.MonkeyPatch) -> None:
    """The stand-in of OpenVINO computes one layer wrongly."""
    found = _evaluated(cli, "--labels", "labels.csv", "--against", "openvino:CPU")
    assert (found["against"]["model"], found["difference"]["value"]) == ("OpenVINO 1.2.3 on CPU", 0)
    device.setenv("OVIR_TEST_FAULT", "wrong:Add")
    found = _evaluated(cli, "--labels", "labels.csv", "--metric", "mse", "--against", "openvino:CPU", status=1)
    assert len(found["failed"]) == 30, "a class is not an array of scores"
