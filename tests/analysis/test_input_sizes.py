"""Sizes that are chosen for dynamic inputs: windows lie inside their tensors, and comparisons see what they compute."""

from collections.abc import Callable
from math import isqrt
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import ovir
from ovir import opset16 as ops
from ovir.analysis.input_sizes import MOST_BYTES, OTHER, NarrowTensor, _promising, fix_image_sizes, fix_shapes
from ovir.cli.main import main

Layer = Callable[[Any], Any]
ONES, ZEROS = [1, 1], [0, 0]


def weights(*shape: int) -> Any:
    return ops.constant(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def pool(kernel: int, dilation: int = 1, stride: int = 1) -> Layer:
    pad = (kernel - 1) * dilation // 2
    return lambda x: ops.max_pool(x, [stride] * 2, [dilation] * 2, [pad] * 2, [pad] * 2, [kernel] * 2)[0]


def average(kernel: int, stride: int = 1) -> Layer:
    pad = [kernel // 2] * 2
    return lambda x: ops.avg_pool(x, [stride] * 2, pad, pad, [kernel] * 2, False)


def convolution(kernel: int, dilation: int = 1, stride: int = 1) -> Layer:
    pad = [(kernel - 1) * dilation // 2] * 2
    return lambda x: ops.convolution(x, weights(3, 3, kernel, kernel), [stride] * 2, pad, pad, [dilation] * 2)


def resize(factor: float) -> Layer:
    scales, axes = np.float32([factor] * 2), np.int64([2, 3])
    return lambda x: ops.interpolate(x, scales, "linear", "scales", axes=axes)


def patches(size: int, rate: int) -> Layer:
    return lambda x: ops.extract_image_patches(x, [size] * 2, ONES, [rate] * 2, "same_upper")


def adaptive(count: int) -> Layer:
    return lambda x: ops.adaptive_avg_pool(x, np.int64([count] * 2))


def detector(layer: Layer, shape: Any = (-1, 3, -1, -1), stride: int = 32) -> ovir.Model:
    """Return a model with a layer behind convolutions that make an image smaller."""
    x = ops.parameter(list(shape), "f32", name="image")
    y: Any = x
    while stride > 1:
        y, stride = ops.convolution(y, weights(3, 3, 3, 3), [2, 2], ONES, ONES, ONES), stride // 2
    return ovir.Model([ops.abs(layer(y), name="end")], [x])


KINDS: dict[str, tuple[Layer, Layer]] = {
    "kernel of a pool": (pool(5), pool(3)),
    "dilation of a pool": (pool(3, dilation=2), pool(3, dilation=1)),
    "kernel of an average": (average(5), average(3)),
    "kernel of a convolution": (convolution(3, dilation=2), convolution(3, dilation=1)),
    "resize": (resize(2), lambda x: ops.interpolate(x, np.float32([2, 2]), "nearest", "scales", axes=np.int64([2, 3]))),
    "patches": (patches(3, 2), patches(3, 1)),
    "adaptive pool": (adaptive(3), lambda x: ops.adaptive_max_pool(x, np.int64([3, 3]))[0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_comparison_without_inputs_sees_a_wrong_layer(kind: str) -> None:
    right, wrong = (detector(layer) for layer in KINDS[kind])
    found = ovir.compare(right, wrong)
    assert not found
    (note,) = [item for item in found.diagnostics if item.code == "OVIR810"]
    _, batch, *_ = note.message.replace(",", "=").split("=")
    assert batch == "1"
    assert "OVIR811" not in {item.code for item in found.diagnostics}
    bisected = ovir.bisect(right, wrong)
    assert not bisected
    assert note in bisected.diagnostics


@pytest.mark.slow
@pytest.mark.parametrize("stride", [1, 2, 8, 32])
@pytest.mark.parametrize(
    "layer", [pool(5), pool(3, dilation=3), convolution(7), resize(2), adaptive(4), average(3, stride=7)]
)
@pytest.mark.parametrize("shape", [(-1, 3, -1, -1), (1, 3, -1, -1), (1, 3, 512, -1), (-1, 3, "16..300", "..400")])
def test_no_window_exceeds_its_tensor(stride: int, layer: Layer, shape: Any) -> None:
    model = detector(layer, shape, stride)
    found = fix_shapes(model)
    assert found.narrow == []
    (sizes,) = found.shapes.values()
    assert sizes == model.inputs[0].shape.to_tuple()
    assert ovir.PartialShape(shape).contains(sizes)
    assert all(size <= 16 * stride or size == 512 for size in sizes[2:])


@pytest.mark.parametrize(
    "layer", [pool(3), convolution(3), resize(2), ops.relu, lambda x: ops.reduce_mean(x, np.int64([2, 3]), True)]
)
def test_small_models_stay_small(layer: Layer) -> None:
    assert fix_shapes(detector(layer, stride=1)).shapes == {0: (1, 3, OTHER, OTHER)}


def test_only_what_a_window_depends_on_grows() -> None:
    image, ids = ops.parameter([-1, 3, -1, 32], "f32", name="image"), ops.parameter([-1, -1], "i64", name="ids")
    model = ovir.Model([pool(15)(image), ops.convert(ids, "f32")], [image, ids])
    assert fix_shapes(model).shapes == {0: (1, 3, 16, 32), 1: (1, 8)}


def test_given_sizes_are_kept() -> None:
    model = detector(pool(5))
    found = fix_shapes(model, {0: [2, 3, 32, 32]})
    assert str(model.inputs[0].shape) == "[2,3,32,32]"
    assert {(item.size, item.needed) for item in found.narrow} == {(2, 3), (1, 5)}


def test_memory_bounds_sizes() -> None:
    model = detector(lambda x: pool(201)(ops.concat([x] * 64, 1)), stride=32)
    found = fix_shapes(model)
    assert found.narrow
    assert np.prod(found.shapes[0]) * 4 < MOST_BYTES


@pytest.mark.parametrize(("size", "stride"), [(640, 8), (416, 16), (300, 1)])
def test_sizes_that_anchors_imply(size: int, stride: int) -> None:
    count = (size // stride) ** 2

    def head(x: Any) -> Any:
        return ops.add(ops.reshape(x, np.int64([1, 3, -1]), False), weights(1, 1, count))

    assert fix_shapes(detector(head, stride=stride)).shapes == {0: (1, 3, size, size)}


@pytest.mark.parametrize("count", [37, 750, 1500])
def test_sizes_that_positions_imply(count: int) -> None:
    """Positions of one element are broadcast, so that inference accepts a size at which no window fits."""
    x = ops.parameter([1, 4, -1], "f32", name="features")
    y = ops.convolution(x, weights(4, 4, 3), [2], [1], [1], [1])
    model = ovir.Model([ops.add(y, weights(1, 4, count))], [x])
    assert fix_shapes(model).shapes == {0: (1, 4, 2 * count)}


@pytest.mark.parametrize(("patch", "positions"), [(16, 37), (14, 65), (8, 26), (20, 51)])
def test_sizes_of_a_grid_of_patches(patch: int, positions: int) -> None:
    """A vision transformer adds a learned position to each patch, and to up to two tokens before them."""
    image = ops.parameter([-1, 3, -1, -1], "f32", name="image")
    patches = ops.convolution(image, weights(4, 3, patch, patch), [patch] * 2, [0, 0], [0, 0], [1, 1])
    rows = ops.transpose(ops.reshape(patches, np.int64([0, 4, -1]), True), np.int64([0, 2, 1]))
    side = isqrt(positions)
    tokens = positions - side**2
    rows = ops.pad(rows, np.int64([0, tokens, 0]), np.int64([0, 0, 0]), "constant")
    model = ovir.Model([ops.add(rows, weights(1, positions, 4))], [image])
    assert fix_shapes(model).shapes == {0: (1, 3, side * patch, side * patch)}


@pytest.mark.parametrize("states", [1, 2])
@pytest.mark.parametrize("is_joined", [True, False])
def test_batch_of_a_state_is_that_of_the_input(states: int, is_joined: bool) -> None:
    x = ops.parameter([-1, 6], "f32", name="x")
    first, *others = (ops.parameter([2, -1, 6], "f32", name=f"state{i}") for i in range(states))
    if is_joined:  # a batch of 1 would meet any other
        found = [ops.add(x, ops.gather(state, np.int64(0), np.int64(0))) for state in (first, *others)]
        model = ovir.Model([ops.multiply(y, y) for y in found], [x, first, *others])
    else:
        model = ovir.Model([ops.relu(x), *map(ops.relu, (first, *others))], [x, first, *others])
    sizes = fix_shapes(model).shapes
    assert sizes == {0: (1, 6), **{1 + i: (2, 1 if is_joined else 8, 6) for i in range(states)}}


@pytest.mark.parametrize("shape", [[1, -1], [-1], [-1, -1]])
@pytest.mark.parametrize("frames", [1, 10, 100])
def test_windows_of_sounds(shape: list[int], frames: int) -> None:
    wave = ops.parameter(shape, "f32", name="wave")
    row = ops.reshape(wave, np.int64([1, 1, -1]), False)
    spectra = ops.convolution(row, weights(4, 1, 400), [160], [0], [0], [1])
    model = ovir.Model([ops.avg_pool(spectra, [1], [0], [0], [frames], True)], [wave])
    assert fix_shapes(model).narrow == []
    assert model.outputs[0].shape.is_static


def test_commands_say_for_which_inputs_no_sizes_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = ops.parameter([1, 1, -1], "f32", name="wave")
    path = str(tmp_path / "model.xml")
    ovir.save_model(ovir.Model([ops.convolution(x, weights(1, 1, 40001), [1], [0], [0], [1])], [x]), path)
    for command in (["run", path], ["compare", path, path], ["bisect", path, path]):
        assert main(command) != 0
        printed = capsys.readouterr().err
        assert "no sizes were found for the dynamic inputs wave=[1,1,?]" in printed
        assert "26 sizes from 1 to 32768 were tried for each axis in turn, and 20 from 224 to 1280" in printed


@pytest.mark.parametrize(("size", "has"), [(4, 4), (3, 3), (1, 1)])
def test_a_comparison_warns_of_inputs_that_are_too_small(size: int, has: int) -> None:
    model = detector(pool(5), stride=1)
    inputs = {"image": np.ones((1, 3, size, 9), np.float32)}
    for found in (ovir.compare(model, model.clone(), inputs=inputs), ovir.bisect(model, model.clone(), inputs=inputs)):
        (warning,) = [item for item in found.diagnostics if item.code == "OVIR811"]
        assert (
            f"its window, stride or resize takes 5 elements along axis 2 of its input, which has {has}"
            in warning.message
        )
    model.reshape([1, 3, size, 9])  # which only these sizes fit
    assert not ovir.compare(model, model.clone(), inputs=inputs).diagnostics


@pytest.mark.parametrize("command", ["compare", "bisect"])
def test_commands_print_chosen_sizes(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.xml"
    ovir.save_model(detector(pool(5)), path)
    assert main([command, str(path), str(path)]) == 0
    text = capsys.readouterr().err
    assert "sizes were chosen for the random inputs: image=1,3,160,160" in text
    assert main([command, str(path), str(path), "--shape", "image=1,3,64,64"]) == 0
    assert "sizes were chosen" not in capsys.readouterr().err


def test_a_run_warns_if_no_size_is_large_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.xml"
    ovir.save_model(detector(pool(5), (-1, 3, "..40", "..40")), path)
    assert main(["run", str(path)]) == 0
    text = capsys.readouterr().err
    assert "image f32[1,3,40,40], size chosen" in text or "(size chosen)" in text
    assert "warning[OVIR811]" in text


@pytest.mark.parametrize("rank", range(6))
def test_a_rank_is_chosen_that_inference_accepts(rank: int) -> None:
    x = ops.parameter("[...]", "i64", name="x")
    end = ops.concat([x, ops.constant(np.zeros([1] * rank, np.int64))], 0) if rank else ops.one_hot([1, 2], x, 1, 0, -1)
    model = ovir.Model([end], [x])
    fix_shapes(model)
    assert model.inputs[0].shape.is_static
    assert model.inputs[0].shape.rank == rank


def test_open_axes_but_those_of_batches_get_one_size_of_images() -> None:
    model = detector(ops.relu)
    assert fix_image_sizes(model)
    batch, channels, height, width = model.inputs[0].shape.to_tuple()
    assert (batch, channels) == (1, 3)
    assert height == width
    refusing = detector(lambda x: ops.reshape(x, [7], False))
    assert not fix_image_sizes(refusing)
    assert refusing.inputs[0].shape.is_dynamic


@pytest.mark.parametrize("stride", [2, 3, 32])
@pytest.mark.parametrize("needed", [2, 3, 9])
def test_sizes_that_cannot_suffice_are_not_tried(stride: int, needed: int) -> None:
    """The limit is less than one step below the least size that suffices."""
    for size in range(stride, stride * needed):
        item = NarrowTensor(Mock(), 0, size // stride, needed)
        if size % stride == 0:
            assert stride * (needed - 1) <= _promising(size, [item]) < stride * needed
        assert _promising(size, [item, NarrowTensor(Mock(), 0, 1, 2 * needed * size)]) == _promising(size, [item])
    assert _promising(5, []) == 0
    assert _promising(5, [NarrowTensor(Mock(), 0, 0, 3)]) == 10
