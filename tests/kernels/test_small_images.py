"""A batch of many small images is computed together: the results are those of the images one by one, and as fast as
those of fewer, larger images."""

from time import process_time
from typing import Any

import numpy as np
import pytest
from support.builder import Net

import ovir

WINDOWS = {"strides": "2,1", "dilations": "1,1", "pads_begin": "1,0", "pads_end": "0,1", "auto_pad": "explicit"}
Arrays = list[np.ndarray[Any, Any]]


def compiled(
    kind: str, weights: Any, opset: int, outputs: int, element_type: str, **attributes: Any
) -> ovir.CompiledModel:
    """A model of one layer; ``weights`` is a constant second input, or True for a second parameter."""
    net = Net()
    ends = [net.parameter("x", "?,?,?,?", element_type)]
    if weights is True:
        ends.append(net.parameter("grid", "?,?,?,?"))
    elif weights is not None:
        ends.append(net.const(weights))
    layer, port = net.op(kind, *ends, opset=opset, outputs=outputs, **attributes)
    for index in range(outputs):
        net.result((layer, port + index))
    return net.compiled()


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).uniform(-1.2, 1.2, shape).astype(np.float32)


def colors(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).integers(0, 256, shape).astype(np.uint8)


CASES: dict[str, tuple[ovir.CompiledModel, Arrays]] = {
    "depthwise": (compiled("GroupConvolution", floats(3, 2, 1, 2, 2), 1, 1, "f32", **WINDOWS), [floats(3000, 3, 4, 5)]),
    "transposed": (
        compiled("GroupConvolutionBackpropData", floats(3, 1, 1, 2, 3), 1, 1, "f32", **WINDOWS),
        [floats(3000, 3, 4, 5)],
    ),
    **{
        f"sampled {mode}": (
            compiled("GridSample", True, 9, 1, "f32", mode=mode, padding_mode=padding, align_corners="false"),
            [floats(3000, 2, 4, 3), floats(3000, 2, 3, 2)],
        )
        for mode, padding in (("bilinear", "zeros"), ("nearest", "border"), ("bicubic", "reflection"))
    },
    "nv12": (compiled("NV12toRGB", None, 8, 1, "u8"), [colors(3000, 6, 4, 1)]),
    "i420": (compiled("I420toBGR", None, 8, 1, "u8"), [colors(3000, 6, 4, 1)]),
    "one plane": (compiled("RGBtoNV12", None, 17, 1, "u8", single_plane="true"), [colors(3000, 4, 4, 3)]),
    "two planes": (compiled("RGBtoNV12", None, 17, 2, "u8", single_plane="false"), [colors(3000, 4, 4, 3)]),
}


CONVOLUTIONS = ("depthwise", "transposed")
"""A single image may be convolved in another form, whose sums have another order."""


@pytest.mark.parametrize("name", [name for name in CASES if name not in CONVOLUTIONS])
def test_same_as_one_by_one(name: str) -> None:
    model, inputs = CASES[name]
    inputs = [array[:300] for array in inputs]
    together = list(model(inputs).values())
    single = [list(model([array[i : i + 1] for array in inputs]).values()) for i in range(300)]
    for index, found in enumerate(together):
        np.testing.assert_array_equal(found, np.concatenate([results[index] for results in single]))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_not_image_by_image(name: str) -> None:
    model, inputs = CASES[name]
    request = model.create_infer_request()
    request.infer(inputs)
    times = []
    for _ in range(3):
        start = process_time()
        request.infer(inputs)
        times.append(process_time() - start)
    assert min(times) < 3000 * 25e-6  # image by image, each takes 60 to 150 microseconds
