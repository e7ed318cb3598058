"""A NonMaxSuppression that is added to a detector selects what a simple loop selects, in OpenVINO and ONNX as well."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.cli.main import main
from ovir.core.arrays import Array


def detector(boxes: list[int], scores: list[int]) -> ovir.Model:
    """Return a model whose outputs are its inputs."""
    inputs = [ops.parameter(shape, "f32", name=f"given_{name}") for name, shape in (("b", boxes), ("s", scores))]
    outputs = [
        ops.convert(port, "f32", tensor_names=[[name]]) for port, name in zip(inputs, ("boxes", "scores"), strict=True)
    ]
    return ovir.Model(outputs, inputs, "detector")


def drawn(images: int, boxes: int, classes: int) -> tuple[Array, Array]:
    """Return corners of boxes [images, N, 4] of which many overlap, and scores [images, classes, N]."""
    rng = np.random.default_rng(boxes)
    first = rng.random((images, boxes, 2))
    corners = np.concatenate([first, first + 0.2 + rng.random((images, boxes, 2))], -1)
    return corners.astype(np.float32), rng.random((images, classes, boxes)).astype(np.float32)


def selected(corners: Array, scores: Array, iou: float, score: float, most: int) -> set[tuple[int, int, int]]:
    """Return the image, class and number of the boxes that remain, from the definition."""
    found = set()
    for image, kind in np.ndindex(*scores.shape[:2]):
        kept: list[int] = []
        for number in np.argsort(-scores[image, kind], kind="stable"):
            if scores[image, kind, number] > score and len(kept) < most:
                overlaps = [_iou(corners[image, number], corners[image, other]) for other in kept]
                kept += [int(number)] if all(overlap <= iou for overlap in overlaps) else []
        found |= {(image, kind, number) for number in kept}
    return found


def _iou(a: Array, b: Array) -> float:
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    common = float(np.prod(np.maximum(high - low, 0)))
    return common / float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)


LAYOUTS = [
    ([2, 20, 4], [2, 3, 20], lambda b: b, lambda s: s),
    ([2, 4, 20], [2, 20, 3], lambda b: b.swapaxes(1, 2), lambda s: s.swapaxes(1, 2)),
    ([-1, -1, 4], [-1, -1, 3], lambda b: b, lambda s: s.swapaxes(1, 2)),
    ([20, 4], [3, 20], lambda b: b[0], lambda s: s[0]),
    ([4, 20], [20, 3], lambda b: b[0].T, lambda s: s[0].T),
    ([2, 20, 4], [2, 20], lambda b: b, lambda s: s[:, 0]),
    ([20, 4], [20], lambda b: b[0], lambda s: s[0, 0]),
]


@pytest.mark.parametrize(("boxes", "scores", "of_boxes", "of_scores"), LAYOUTS)
@pytest.mark.parametrize("form", ["corners", "centers"])
def test_layouts_are_derived(boxes: list[int], scores: list[int], of_boxes: Any, of_scores: Any, form: str) -> None:
    model = detector(boxes, scores)
    outputs = model.add_nms("boxes", "scores", iou=0.3, score=0.2, most=5, form=form)
    assert [port.any_name for port in outputs] == ["selected_indices", "selected_scores", "selected_count"]
    corners, numbers = drawn(2 if len(boxes) == 3 else 1, 20, 3 if len(scores) == len(boxes) else 1)
    given = corners
    if form == "centers":
        sizes = corners[..., 2:] - corners[..., :2]
        given = np.concatenate([corners[..., :2] + sizes / 2, sizes], -1)
    found = ovir.compile_model(model)([of_boxes(given), of_scores(numbers)])
    expected = selected(corners, numbers, 0.3, 0.2, 5)
    assert 3 < len(expected) < 60
    assert set(map(tuple, found["selected_indices"].tolist())) == expected
    assert found["selected_count"].tolist() == [len(expected)]
    picked = [numbers[tuple(row)] for row in found["selected_indices"].tolist()]
    np.testing.assert_array_equal(found["selected_scores"][:, 2], np.float32(picked))
    np.testing.assert_array_equal(found["boxes"], of_boxes(given))


@pytest.mark.parametrize(
    ("boxes", "scores", "form", "message"),
    [
        ([1, 4, 4], [1, 3, 4], "corners", r"no single axis of 4 numbers"),
        ([1, 20, 5], [1, 3, 20], "corners", r"no single axis of 4 numbers"),
        ([4], [1], "corners", r"no single axis of 4 numbers"),
        ([1, 20, 4], [1, 3, 21], "corners", r"scores of f32\[1,3,21\] do not fit boxes of f32\[1,20,4\]"),
        ([1, 20, 4], [1, 20, 20], "corners", "do not fit"),
        ([1, 20, 4], [20], "corners", "do not fit"),
        ([-1, -1, 4], [-1, -1, -1], "corners", "do not fit"),
        ([1, 20, 4], [1, 3, 20], "polar", "form has to be one of corners, centers, not 'polar'"),
    ],
)
def test_what_shapes_do_not_say_is_asked_for(boxes: list[int], scores: list[int], form: str, message: str) -> None:
    model = detector(boxes, scores)
    before = len(model.layers)
    with pytest.raises(ovir.InputError, match=message):
        model.add_nms("boxes", "scores", form=form)
    assert len(model.layers) == before


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"iou": 1, "score": 0, "most": 1}, None),
        ({"iou": 0}, "iou has to be above 0 and at most 1, and score 0 or more, not 0 and 0.0"),
        ({"iou": 1.01}, "iou has to be above 0 and at most 1, and score 0 or more, not 1.01 and 0.0"),
        ({"score": -0.01}, "iou has to be above 0 and at most 1, and score 0 or more, not 0.5 and -0.01"),
        ({"score": float("nan")}, "score 0 or more, not 0.5 and nan"),
        ({"most": 0}, "most"),
    ],
)
def test_limits(limits: dict[str, Any], message: str | None) -> None:
    model = detector([1, 20, 4], [1, 3, 20])
    if message is not None:
        with pytest.raises(ovir.InputError, match=message):
            model.add_nms("boxes", "scores", **limits)
    else:
        model.add_nms("boxes", "scores", **limits)
        names = [port.any_name for port in model.add_nms("boxes", "scores", **limits)]
        assert names == ["selected_indices_2", "selected_scores_2", "selected_count_2"]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = str(tmp_path / "model.xml"), str(tmp_path / "nms.xml")
    ovir.save_model(detector([1, 20, 4], [1, 3, 20]), path)
    assert main(["edit", path, "--add-nms", "boxes,scores:iou=0.3,score=0.2,max=5,form=centers", "-o", output]) == 0
    assert "output 'selected_scores': f32[..15,3]" in capsys.readouterr().out
    nms = next(layer for layer in ovir.read_model(output).layers if layer.type == "NonMaxSuppression")
    assert [port.source.layer.name for port in nms.inputs[2:]] == ["max_boxes", "iou_threshold", "score_threshold"]  # type: ignore[union-attr]
    numbers = [float(port.type.constant) for port in nms.inputs[2:]]  # type: ignore[arg-type]
    assert numbers == [5, pytest.approx(0.3), pytest.approx(0.2)]
    assert nms.attributes["box_encoding"] == "center"
    for given, message in (
        ("boxes", "expected the names of boxes and scores"),
        ("boxes,scores:iou=2", "'2' is not a number above 0 and at most 1"),
        ("boxes,other", "no tensor and no layer is named 'other'"),
    ):
        assert main(["edit", path, "--add-nms", given, "--dry-run"]) == 2
        assert message in capsys.readouterr().err


def test_thresholds_become_inputs() -> None:
    model = detector([1, 20, 4], [1, 3, 20])
    model.add_nms("boxes", "scores")
    adjustable = model.extract(inputs=["given_b", "given_s", "iou_threshold", "score_threshold"])
    corners, numbers = drawn(1, 20, 3)
    for iou, score in ((0.3, 0.2), (0.9, 0.5)):
        found = ovir.compile_model(adjustable)([corners, numbers, np.float32(iou), np.float32(score)])
        expected = selected(corners, numbers, iou, score, 300)
        assert set(map(tuple, found["selected_indices"].tolist())) == expected


@pytest.mark.oracle
def test_openvino_and_onnxruntime_select_the_same(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    runtime = pytest.importorskip("onnxruntime")
    model = detector([2, 20, 4], [2, 20, 3])
    model.add_nms("boxes", "scores", iou=0.3, score=0.2, most=5)
    corners, numbers = drawn(2, 20, 3)
    expected = selected(corners, numbers, 0.3, 0.2, 5)
    ovir.save_model(model, tmp_path / "model.xml")
    done = openvino.Core().compile_model(str(tmp_path / "model.xml"), "CPU")([corners, numbers.swapaxes(1, 2)])
    assert set(map(tuple, done["selected_indices"].tolist())) == expected
    ovir.export_onnx(model, tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    feeds = dict(zip((item.name for item in session.get_inputs()), (corners, numbers.swapaxes(1, 2)), strict=True))
    (indices,) = session.run(["selected_indices"], feeds)
    assert set(map(tuple, indices.tolist())) == expected
