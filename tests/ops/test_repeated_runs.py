"""Edge cases give one result, in the first run, which calls the reference, and in later ones, which are bound."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from support.builder import Net

from ovir.core.arrays import Array
from ovir.ops.attention import ScaledDotProductAttention

Handle = tuple[int, int]


def _runs(feeds: Sequence[Array], build: Callable[[Net, list[Handle]], Handle], *, is_dynamic: bool) -> Array:
    """Return the result of a model, which is the same in each of three runs."""
    net = Net()
    shapes = ["..." if is_dynamic else ",".join(map(str, feed.shape)) for feed in feeds]
    types = [feed.dtype.name.replace("float", "f") for feed in feeds]
    inputs = [net.parameter(f"x{i}", shape, types[i]) for i, shape in enumerate(shapes)]
    net.result(build(net, inputs))
    compiled = net.compiled()
    results = [np.array(compiled(list(feeds))[0]) for _ in range(3)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    return results[0]


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric"])
@pytest.mark.parametrize("value", [np.float32(3), np.float32([3]), np.float32([[1, 2]]), np.zeros((2, 0), np.float32)])
def test_a_pad_value_that_the_mode_does_not_use(is_dynamic: bool, mode: str, value: Array) -> None:
    def build(net: Net, inputs: list[Handle]) -> Handle:
        pads = net.const(np.int64([1, 0]))
        return net.op("Pad", inputs[0], pads, pads, net.const(value), pad_mode=mode)

    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert _runs([data], build, is_dynamic=is_dynamic).tolist() == np.pad(data, [(1, 1), (0, 0)], mode).tolist()


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize(("shift", "axes"), [(1, 0), (-1, [0]), ([2], [-1]), ([], []), (7, [])])
@pytest.mark.parametrize("data", [np.float32(5), np.zeros(0, np.float32), np.ones((0, 2), np.float32)])
def test_roll_without_anything_to_move(is_dynamic: bool, shift: object, axes: object, data: Array) -> None:
    def build(net: Net, inputs: list[Handle]) -> Handle:
        return net.op("Roll", inputs[0], net.const(np.int64(shift)), net.const(np.int64(axes)), opset=7)

    result = _runs([data], build, is_dynamic=is_dynamic)
    assert result.shape == data.shape
    assert result.tolist() == data.tolist()


@pytest.mark.parametrize("mode", ["nearest", "linear", "linear_onnx", "cubic"])
@pytest.mark.parametrize("sizes", [(0, 0), (0, 3), (2, 0), (0, 7)])
@pytest.mark.parametrize("height", [2, 0])
@pytest.mark.parametrize("antialias", ["true", "false"])
def test_resizing_to_nothing(mode: str, sizes: tuple[int, int], height: int, antialias: str) -> None:
    def build(net: Net, inputs: list[Handle]) -> Handle:
        others = net.const(np.int64(sizes)), net.const(np.float32([1, 1])), net.const(np.int64([2, 3]))
        attributes = {"mode": mode, "shape_calculation_mode": "sizes", "antialias": antialias}
        return net.op("Interpolate", inputs[0], *others, opset=4, **attributes)

    if height or not sizes[0]:
        data = np.ones((1, 2, height, 3), np.float32)
        assert _runs([data], build, is_dynamic=False).shape == (1, 2, *sizes)


@pytest.mark.slow
@pytest.mark.parametrize("normalized", ["true", "false"])
@pytest.mark.parametrize("center", ["true", "false"])
@pytest.mark.parametrize(("size", "step", "window"), [(7, 12, 7), (8, 3, 4), (9, 8, 3), (6, 1, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_istft_with_sizes_that_only_the_run_shows(
    normalized: str, center: str, size: int, step: int, window: int, dtype: type
) -> None:
    random = np.random.default_rng(size)
    data = random.standard_normal((2, size // 2 + 1, 5, 2)).astype(dtype)
    weights = random.uniform(0.1, 1, window).astype(dtype)

    def run(is_given: bool) -> Array:
        net = Net()
        kind = np.dtype(dtype).name.replace("float", "f")
        x, w = net.parameter("x", "...", kind), net.parameter("w", "...", kind)
        numbers = [np.int64(size), np.int64(step)]
        given = [net.parameter(f"n{i}", "", "i64") if is_given else net.const(n) for i, n in enumerate(numbers)]
        net.result(net.op("ISTFT", x, w, *given, opset=16, center=center, normalized=normalized))
        compiled = net.compiled()
        results = [np.array(compiled([data, weights, *(numbers if is_given else [])])[0]) for _ in range(3)]
        assert all(np.array_equal(result, results[0]) for result in results[1:])
        return results[0]

    np.testing.assert_array_equal(run(True), run(False))


@pytest.mark.parametrize("score", [40, 59, 59.9])
@pytest.mark.parametrize("size", [1e10, 1e13, -1e20, 1e30])
@pytest.mark.parametrize("causal", ["true", "false"])
def test_attention_to_large_values(score: float, size: float, causal: str) -> None:
    query = np.full((2, 4, 16), score / 16, np.float32)
    key = np.ones((2, 64, 16), np.float32)
    value = (np.random.default_rng(0).uniform(0.5, 1, (2, 64, 8)) * size).astype(np.float32)

    def build(net: Net, inputs: list[Handle]) -> Handle:
        mask, scale = net.const(np.float32(0)), net.const(np.float32(1))
        return net.op("ScaledDotProductAttention", *inputs, mask, scale, opset=13, causal=causal)

    result = _runs([query, key, value], build, is_dynamic=False)
    op = ScaledDotProductAttention(causal=causal == "true")
    expected = op.run(query, key, value, np.float32(0), np.float32(1))
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(result, expected, rtol=1e-5)
