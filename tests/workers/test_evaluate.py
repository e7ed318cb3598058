"""``ovir.evaluate``: the scores of ``ovir eval`` in Python."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops

INPUTS = [np.array([row], np.float32) for row in ([9, 0, 0], [0, 9, 0], [0, 0, 9], [9, 0, 0])]
LABELS = [0, 1, 2, 1]
HERE = ThreadPoolExecutor(1)


def scores(bias: list[float], name: str) -> ovir.Model:
    x = ops.parameter([-1, 3], "f32", name="x")
    return ovir.Model([ops.add(x, np.array([bias], np.float32), name="scores")], [x], name)


MANY = [np.array([row], np.float32) for row in ([9, 0, 0], [0, 9, 0], [0, 0, 9]) * 10]


@pytest.mark.parametrize("is_better", [True, False])
def test_what_is_said_of_two_models(is_better: bool) -> None:
    plain, other = scores([0, 0, 0], "plain"), scores([0, 20, 0], "other")
    one, two = (plain, other) if is_better else (other, plain)
    found = ovir.evaluate(one, MANY, [0, 1, 2] * 10, against=two, executor=HERE)
    lines = str(found).splitlines()
    assert sorted(lines[:2], reverse=is_better) == lines[:2]
    assert {*lines[:2]} == {
        "plain: top1 100.00%, 95% interval 88.65% to 100.00% (Wilson score); 30 of 30 right",
        "other: top1 33.33%, 95% interval 19.23% to 51.22% (Wilson score); 10 of 30 right",
    }
    interval, counts = ("+45.48% to +80.77%", (20, 0)) if is_better else ("-80.77% to -45.48%", (0, 20))
    assert lines[2] == (
        f"difference {'+' if is_better else '-'}66.67%, 95% interval {interval} (Newcombe, paired); "
        f"right in the first alone {counts[0]}, in the second alone {counts[1]}; 30 samples"
    )
    assert lines[3] == f"the first model is {'better' if is_better else 'worse'}: p = 1.91e-06 (McNemar, exact)"
    classes = found.classes_table().texts()
    all_right = [[str(number), "10", "10", "100.0%", "-"] for number in range(3)]
    most = [
        [str(number), "10", *(["10", "100.0%", "-"] if number == 1 else ["0", "0.0%", "1 (10)"])] for number in range(3)
    ]
    assert classes == (all_right if is_better else most)
    assert "<td" in found._repr_html_()


@pytest.mark.parametrize(
    ("biases", "verdict"), [((0, 0), "no difference is shown"), ((0, -1), "the first model is better"),
                            ((-1, 0), "the first model is worse")]
)  # fmt: skip
def test_a_metric_of_which_less_is_better(biases: tuple[float, float], verdict: str) -> None:
    labels = [array + 0.25 + 0.01 * i for i, array in enumerate(MANY)]
    one, other = (scores([bias] * 3, "model") for bias in biases)
    lines = str(ovir.evaluate(one, MANY, labels, "mse", against=other, executor=HERE)).splitlines()
    assert "; mean of 30 samples, lower is better" in lines[0]
    assert lines[-1].startswith(f"{verdict}: p = ")


def test_a_function_is_a_metric_and_inputs_that_fail_are_named() -> None:
    def first(output: Any, label: Any) -> float:
        return float(output[0, 0] - label)

    found = ovir.evaluate(
        scores([0, 0, 0], "plain"), [*INPUTS, np.zeros((1, 4), "f4")], [*LABELS, 0], first, executor=HERE
    )
    assert found.value == (9 - 0 + 0 - 1 + 0 - 2 + 9 - 1) / 4
    assert list(found.failed) == ["input 4"]
    assert str(found).endswith("; 1 input failed")


def test_a_value_that_is_not_known_has_a_reason() -> None:
    found = ovir.evaluate(scores([0, 0, 0], "plain"), [np.zeros((1, 4), "f4")], [0], executor=HERE)
    assert (found.value, str(found)) == (None, "plain: top1 is not known, because all inputs failed")
    found = ovir.evaluate(scores([0, 0, 0], "plain"), [], [], executor=HERE)
    assert str(found) == "plain: top1 is not known, because there are no inputs"
    x = ops.parameter([1, 3, 2, 2], "f32", name="x")
    masks = ovir.Model([ops.relu(x)], [x], "masks")
    found = ovir.evaluate(masks, [np.ones((1, 3, 2, 2), "f4")], [np.full((2, 2), 255)], "miou", executor=HERE)
    assert (found.value, str(found)) == (None, "masks: miou is not known, because no label has any class")


def test_models_of_files_have_their_paths_as_names(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("one.xml", "other.xml")]
    for path in paths:
        ovir.save_model(scores([0, 0, 0], "plain"), path)
    found = ovir.evaluate(paths[0], INPUTS, LABELS, against=paths[1], executor=HERE, batch=2)
    assert [(model.name, model.evaluation.value) for model in found.models] == [(path, 0.75) for path in paths]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"labels": LABELS[:3]}, "each input needs one label: there are 4 inputs and 3 labels"),
        ({"metric": 5}, "metric must be the name of a metric or a function, got 5"),
        ({"output": "score"}, "output score: there is no such output; the outputs are 'Result_"),
        ({"output": [0]}, r"output \[0\]: there is no such output"),
        ({"labels": 5}, "labels must be a list or another iterable, got 5"),
        ({"against": "a.npz"}, "against a.npz: expected other.xml, openvino:DEVICE or onnx:FILE"),
    ],
)
def test_wrong_arguments_are_named(changed: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"inputs": INPUTS, "labels": LABELS, "executor": HERE} | changed
    with pytest.raises(ovir.InputError, match=message):
        ovir.evaluate(scores([0, 0, 0], "plain"), **arguments)
