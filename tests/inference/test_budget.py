"""Small files whose layers take long or much memory cost nothing before they run: in check, inference and compilation."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from builder import Net, output

import ovir
from ovir.ops import import_all

Build = Callable[[Net], tuple[int, int]]
SECONDS, MEMORY = 0.3, 100 << 20

_rng = np.random.default_rng(0)


def _ints(net: Net, *values: int) -> tuple[int, int]:
    return net.const(np.int64(values))


def _ones(net: Net, *shape: int, dtype: Any = np.float32) -> tuple[int, int]:
    return net.const(np.ones(shape, dtype))


def _interpolate(net: Net, dtype: Any = np.float32, size: int = 2, **attributes: Any) -> tuple[int, int]:
    inputs = (
        _ones(net, 1, 1, 2, 2, dtype=dtype),
        _ints(net, size, size),
        net.const(np.float32([1, 1])),
        _ints(net, 2, 3),
    )
    return net.op("Interpolate", *inputs, opset=4, shape_calculation_mode="sizes", **attributes)


def _suppression(net: Net, kind: str, opset: int, boxes: int, classes: int = 1, *rest: Any) -> tuple[int, int]:
    width = 5 if kind == "NMSRotated" else 4
    places = _rng.random((1, boxes, width), np.float32)
    places[..., 2:] += 1
    scores = _rng.random((1, classes, boxes), np.float32)
    inputs = [net.const(array) for array in (places, scores, *rest)]
    return net.op(kind, *inputs, opset=opset, outputs=3, **({} if rest else {"background_class": -1}))


def _broadcast(net: Net, *shape: int) -> tuple[int, int]:
    return net.op("Broadcast", net.const(np.float32(0)), _ints(net, *shape), opset=3)


def _doubled(net: Net) -> tuple[int, int]:
    last = _broadcast(net, 1 << 20)
    for _ in range(10):
        last = net.op("Concat", last, last, axis=0)
    return last


def _many(net: Net) -> tuple[int, int]:
    return net.op("Concat", *(net.op("Exp", _broadcast(net, 1 << 22)) for _ in range(40)), axis=0)


def _unknown_range(net: Net) -> tuple[int, int]:
    total = net.op("ReduceSum", net.const(np.full(1000, 1e6, np.float32)), _ints(net, 0), keep_dims="false")
    stop = net.op("Convert", total, destination_type="i64")
    numbers = net.const(np.int64(0)), stop, net.const(np.int64(1))
    return net.op("Range", *numbers, opset=4, output_type="i64")


WINDOW = {"strides": "9000,9000", "pads_begin": "9000,9000", "pads_end": "9000,9000", "dilations": "1,1"}
PADDED = {"pads_begin": "0,0,5000,0", "pads_end": "0,0,0,5000", "antialias": "true"}
FIVE = np.int64(16000), np.float32(0.99), np.float32(0)

MODELS: dict[str, Build] = {
    "Interpolate to 100 MB": lambda net: _interpolate(net, size=5000, mode="linear_onnx"),
    "Interpolate of padded f32": lambda net: _interpolate(net, mode="cubic", **PADDED),
    "Interpolate of padded i32": lambda net: _interpolate(net, np.int32, mode="linear", **PADDED),
    "SparseFillEmptyRows": lambda net: net.op(
        "SparseFillEmptyRows",
        _ones(net, 2),
        _ints(net, 10**9, 3),
        net.const(np.int64([[0, 0], [1, 1]])),
        net.const(np.float32(0)),
        opset=16,
        outputs=3,
    ),
    "GroupConvolutionBackpropData": lambda net: net.op(
        "GroupConvolutionBackpropData",
        _ones(net, 1, 64, 8, 8, dtype=np.float64),
        _ones(net, 8, 8, 8, 3, 3, dtype=np.float64),
        strides="60,60",
        pads_begin="0,0",
        pads_end="0,0",
        dilations="1,1",
    ),
    "Convolution": lambda net: net.op(
        "Convolution", _ones(net, 1, 1, 2, 2, dtype=np.int32), _ones(net, 1, 1, 1, 1, dtype=np.int32), **WINDOW
    ),
    "ExtractImagePatches": lambda net: net.op(
        "ExtractImagePatches",
        _ones(net, 1, 1, 100, 100),
        opset=3,
        sizes="50,50",
        strides="1,1",
        rates="1,1",
        auto_pad="valid",
    ),
    "ExperimentalDetectronROIFeatureExtractor": lambda net: net.op(
        "ExperimentalDetectronROIFeatureExtractor",
        _ones(net, 10, 4),
        _ones(net, 1, 4, 16, 16),
        opset=6,
        outputs=2,
        output_size=1000,
        sampling_ratio=2,
        pyramid_scales="4",
        aligned="false",
    ),
    "NonMaxSuppression of many boxes": lambda net: _suppression(net, "NonMaxSuppression", 9, 16000, 1, *FIVE),
    "NonMaxSuppression of many classes": lambda net: _suppression(
        net, "NonMaxSuppression", 9, 256, 256, *FIVE, np.float32(0.5)
    ),
    "NMSRotated": lambda net: _suppression(net, "NMSRotated", 13, 4000, 1, *FIVE),
    "MatrixNms": lambda net: _suppression(net, "MatrixNms", 8, 16000),
    "MulticlassNms": lambda net: _suppression(net, "MulticlassNms", 9, 8000, 2),
    "Range": lambda net: net.op("Range", *(net.const(np.int64(n)) for n in (0, 10**9, 1)), opset=4, output_type="i64"),
    "Range of unknown length": _unknown_range,
    "Tile": lambda net: net.op("Tile", _ones(net, 10, 10), _ints(net, 10**4, 10**4)),
    "Broadcast": lambda net: _broadcast(net, 10**4, 10**5),
    "Concat of itself, ten times": _doubled,
    "many constants of 16 MB": _many,
    "OneHot": lambda net: net.op(
        "OneHot", _ints(net, 1, 2), net.const(np.int64(10**9)), *(net.const(np.float32(n)) for n in (1, 0)), axis=-1
    ),
    "Eye": lambda net: net.op(
        "Eye", *(net.const(np.int64(n)) for n in (30000, 30000, 0)), opset=9, output_type="f32"
    ),
    "RandomUniform": lambda net: net.op(
        "RandomUniform", _ints(net, 30000, 30000), *(net.const(np.float32(n)) for n in (0, 1)), opset=8, output_type="f32"
    ),
    "Pad": lambda net: net.op(
        "Pad", _ones(net, 2, 2), _ints(net, 30000, 0), _ints(net, 0, 30000), net.const(np.float32(0)), pad_mode="constant"
    ),
    "MatMul of f64": lambda net: net.op(
        "MatMul", _ones(net, 1000, 1000, dtype=np.float64), _ones(net, 1000, 1000, dtype=np.float64)
    ),
    "Einsum": lambda net: net.op(
        "Einsum", *(_ones(net, 200, dtype=np.int32) for _ in range(4)), opset=7, equation="a,b,c,d->"
    ),
    "DFT": lambda net: net.op("DFT", _ones(net, 2, 2), _ints(net, 0), _ints(net, 2 * 10**7), opset=7),
    "GatherTree": lambda net: net.op(
        "GatherTree",
        *(net.const(np.zeros((20000, 1, 1), np.int32)) for _ in range(2)),
        net.const(np.int32([20000])),
        net.const(np.int32(1)),
    ),
    "GRUSequence": lambda net: net.op(
        "GRUSequence",
        _ones(net, 1, 20000, 1),
        _ones(net, 1, 1, 2),
        net.const(np.int32([20000])),
        _ones(net, 1, 6, 1),
        _ones(net, 1, 6, 2),
        _ones(net, 1, 6),
        opset=5,
        outputs=2,
        hidden_size=2,
        direction="forward",
    ),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    import_all()
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "1")))
    ovir.check(net.xml().encode())
    net.compiled()


@pytest.mark.slow
@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS)
def test_nothing_large_is_computed_ahead(build: Build) -> None:
    net = Net()
    made = build(net)
    for index in range(net.layers[-1].count("names=")):
        net.result(output(made, index))
    text, weights = net.xml().encode(), bytes(net.blob)
    tracemalloc.start()
    try:
        start = time.process_time()
        assert not [d for d in ovir.check(text, weights) if d.severity is ovir.Severity.ERROR]
        checked = time.process_time()
        model = ovir.read_model(text, weights)
        read = time.process_time()
        ovir.compile_model(model)
        compiled = time.process_time()
        assert max(checked - start, read - checked, compiled - read) < SECONDS
        assert tracemalloc.get_traced_memory()[1] - len(weights) < MEMORY
    finally:
        tracemalloc.stop()


def test_what_is_cheap_is_folded() -> None:
    net = Net()
    weights = net.const(np.ones((512, 512), np.float16))
    converted = net.op("Convert", weights, destination_type="f32")
    scaled = net.op("Multiply", converted, net.const(np.float32(2)))
    net.result(net.op("MatMul", net.parameter("x", "1,512"), scaled))
    assert [step.layer.type for step in net.compiled().plan().steps] == ["MatMul"]


def test_exact_shapes_of_few_boxes() -> None:
    net = Net()
    net.result(_suppression(net, "NonMaxSuppression", 9, 3, 1, *FIVE))
    assert net.model().outputs[0].shape.is_static
