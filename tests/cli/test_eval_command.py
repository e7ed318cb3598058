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


def test_accuracy_with_its_interval(folder: Path, cli: Any) -> None:
    found = _evaluated(cli, "--labels", "labels.csv")
    assert (found["metric"], found["inputs"], found["samples"], found["right"]) == ("top1", 30, 30, 26)
    assert found["value"] == pytest.approx(26 / 30)
    assert found["interval"]["method"] == "Wilson score"
    assert (found["interval"]["low"], found["interval"]["high"]) == pytest.approx((0.7032, 0.9469), abs=5e-5)
    assert {"label": 0, "found": 2, "samples": 2} in found["confusion"]
    assert _evaluated(cli, "--labels", "labels.csv", "--metric", "top2")["right"] == 30


def test_what_people_read(folder: Path, cli: Any) -> None:
    done = _called(cli, "--labels", "labels.csv")
    assert (
        done.out.splitlines()[0]
        == "model.xml: top1 86.67%, 95% interval 70.32% to 94.69% (Wilson score); 26 of 30 right"
    )
    assert done.out.splitlines()[-3].split() == ["0", "10", "8", "80.0%", "2", "(2)"]


def test_a_second_model_is_compared_on_the_same_inputs(folder: Path, cli: Any) -> None:
    _net(folder, "other", (0, 0, -2))
    found = _evaluated(cli, "--labels", "labels.csv", "--compare-with", "other.xml")
    assert (found["right"], found["against"]["right"]) == (26, 22)
    difference = found["difference"]
    assert (difference["only_first"], difference["only_second"], difference["value"]) == (8, 4, pytest.approx(4 / 30))
    assert difference["p_value"] == pytest.approx(2 * sum((1, 12, 66, 220, 495)) / 2**12)
    assert difference["interval"]["method"] == "Newcombe, paired"
    done = _called(cli, "--labels", "labels.csv", "--against", "other.xml")
    assert "right in the first alone 8, in the second alone 4; 30 samples" in done.out
    assert "no difference is shown: p = 0.388 (McNemar, exact)" in done.out


def test_errors_against_the_results_of_another_run(folder: Path, cli: Any) -> None:
    _net(folder, "other", (0, 0, 0.1))
    assert cli("run", "other.xml", "--inputs", "in", "--output", "results", "--workers", 1).status == 0
    found = _evaluated(cli, "--labels", "results", "--metric", "mae", "--against", "other.xml")
    assert found["value"] == pytest.approx(0.1 / 3)
    assert found["interval"]["method"] == "Student t"
    assert found["against"]["value"] == 0
    assert (found["difference"]["value"], found["difference"]["test"]) == (pytest.approx(0.1 / 3), "paired t")
    done = _called(cli, "--labels", "results", "--metric", "mae", "--against", "other.xml")
    assert "mean of 30 samples, lower is better" in done.out
    assert "the first model is worse: p = " in done.out


def test_batches_and_dask_give_the_same(folder: Path, cli: Any) -> None:
    expected = _evaluated(cli, "--labels", "labels.csv")
    assert _evaluated(cli, "--labels", "labels.csv", "--batch", 7) == expected
    pytest.importorskip("distributed", reason="needs distributed, of the extra `dask`")
    assert _evaluated(cli, "--labels", "labels.csv", "--dask", "local") == expected


def test_inputs_that_fail_are_left_out_and_listed(folder: Path, cli: Any) -> None:
    (folder / "in" / "07.npz").write_bytes(b"PK")
    (folder / "labels.csv").write_text((folder / "labels.csv").read_text().replace("08.png,2", "08.png,3"))
    found = _evaluated(cli, "--labels", "labels.csv", status=1)
    assert found["samples"] == 28
    errors = {item["input"]: item["error"] for item in found["failed"]}
    assert errors.keys() == {"07.npz", "08.npz"}
    assert "the label 3 is not a class: the output has the classes 0 to 2" in errors["08.npz"]
    done = _called(cli, "--labels", "labels.csv")
    assert (done.status, "failed: 08.npz: error[OVIR901] the label 3" in done.out) == (1, True)


def test_inputs_with_the_same_fault_have_one_line(folder: Path, cli: Any) -> None:
    (folder / "in" / "notes.md").touch()
    for number in range(25):
        np.savez(folder / "in" / f"{number:02}.npz", x=np.zeros((1, 2), np.float32))
    arguments = ("--inputs", "in", "--workers", 1)
    evaluated = cli("eval", "model.xml", "--labels", "labels.csv", *arguments)
    ran = cli("run", "model.xml", "--output", "out", *arguments)
    for done, where in ((evaluated, "--json"), (ran, "out/manifest.jsonl")):
        assert done.status == 1
        assert done.err == "in: 1 other file is ignored, such as notes.md\n"
        failed = [line for line in done.out.splitlines() if line.startswith(("failed", "25 inputs"))]
        assert len(failed) == 2
        assert "and 22 more: error[OVIR901] layer 0 'x'" in failed[0]
        assert failed[1] == f"25 inputs failed; {where} lists all of them"


def test_a_device(folder: Path, cli: Any, device: pytest.MonkeyPatch) -> None:
    """The stand-in of OpenVINO computes one layer wrongly."""
    found = _evaluated(cli, "--labels", "labels.csv", "--against", "openvino:CPU")
    assert (found["against"]["model"], found["difference"]["value"]) == ("OpenVINO 1.2.3 on CPU", 0)
    device.setenv("OVIR_TEST_FAULT", "wrong:Add")
    found = _evaluated(cli, "--labels", "labels.csv", "--metric", "mse", "--against", "openvino:CPU", status=1)
    assert len(found["failed"]) == 30, "a class is not an array of scores"


def test_an_output_is_chosen(folder: Path, cli: Any) -> None:
    _net(folder, "model", outputs=2)
    done = cli("eval", "model.xml", "--inputs", "in", "--labels", "labels.csv")
    assert (
        done.status,
        "--output has to say which of several outputs is evaluated; they are 'scores', 'negative'" in done.err,
    ) == (2, True)
    assert _evaluated(cli, "--labels", "labels.csv", "--output", "scores")["right"] == 26
    assert _evaluated(cli, "--labels", "labels.csv", "--output", "negative")["right"] < 26


METRICS = """
def first(scores, label):
    return float(scores[0, int(label[0])])

def same_length(scores, text):
    return int(len(text) == scores.argmax() + 1)
same_length.is_share = True

def wrong(scores, label):
    return "many"

def fails(scores, label):
    return scores[0, 99]
fails.higher_is_better = False
"""


def test_a_function_of_the_user_is_a_metric(folder: Path, cli: Any) -> None:
    (folder / "mine.py").write_text(METRICS)
    found = _evaluated(cli, "--labels", "labels.csv", "--metric", "mine.py:first")
    assert (found["metric"], found["inputs"], found["interval"]["method"]) == ("first", 30, "Student t")
    assert found["value"] == pytest.approx((20 + 10 * 1.5 + 2) / 30)


def test_labels_may_be_texts(folder: Path, cli: Any) -> None:
    (folder / "mine.py").write_text(METRICS)
    rows = [f"{number:02}.png,{'9' * (number % CLASSES + 1)}" for number in range(30)]
    (folder / "texts.csv").write_text("image,text\n" + "\n".join(rows))
    found = _evaluated(cli, "--labels", "texts.csv", "--metric", "mine.py:same_length")
    assert (found["right"], found["interval"]["method"]) == (26, "Wilson score")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wrong", "the metric 'wrong' must return a number, or one for each sample, got 'many'"),
        ("fails", "mine.py:13: IndexError: index 99 is out of bounds"),
    ],
)
def test_a_faulty_function_is_named_for_each_input(folder: Path, cli: Any, name: str, message: str) -> None:
    (folder / "mine.py").write_text(METRICS)
    found = _evaluated(cli, "--labels", "labels.csv", "--metric", f"mine.py:{name}", status=1)
    assert len(found["failed"]) == 30
    assert message in found["failed"][0]["error"]
