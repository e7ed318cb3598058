"""How the caller's arrays lie in memory does not show in the results, and no call changes them."""

import numpy as np
import pytest
from fuzz.cases import VERSIONS, make_case
from support.builder import Net
from support.layouts import OF_USERS, Layout, elements

import ovir
from ovir.core.arrays import Array

MODELS, ATTEMPTS = 2, 8
"""Random models of each operation version that run, and those that are made at most, of which some are illegal."""


def differences(model: ovir.Model, feeds: dict[int, Array]) -> list[str]:
    """What depends on the layout of the inputs, or is done to them."""
    compiled = ovir.compile_model(model)
    expected = [elements(array) for array in compiled.create_infer_request().infer(feeds).values()]
    if expected != [elements(array) for array in compiled.create_infer_request().infer(feeds).values()]:
        return []  # random numbers
    return [
        f"{name}: {fault}"
        for name, layout in OF_USERS.items()
        for fault in _faults(compiled, {key: layout(array) for key, array in feeds.items()}, expected)
    ]


def _faults(compiled: ovir.CompiledModel, fed: dict[int, Array], expected: list[object]) -> list[str]:
    before = {key: elements(array) for key, array in fed.items()}
    results = list(compiled.create_infer_request().infer(fed).values())
    faults = [f"output {i} differs" for i, array in enumerate(results) if elements(array) != expected[i]]
    faults += [f"output {i} is a {type(a).__name__}" for i, a in enumerate(results) if type(a) is not np.ndarray]
    faults += [f"input {key} was changed" for key, array in fed.items() if elements(array) != before[key]]
    shared = [key for key, array in fed.items() if any(np.shares_memory(array, result) for result in results)]
    return faults + [f"input {key} is handed out" for key in shared]


def test_a_matmul_behind_normalization() -> None:
    net = Net()
    x, y = net.parameter("x", "1,17,33"), net.parameter("y", "1,33,9")
    attributes = {"eps": 1e-6, "normalize_variance": "true", "eps_mode": "inside_sqrt"}
    normalized = net.op("MVN", x, net.const(np.int64([0, 2])), opset=6, **attributes)
    for result in (net.op("MatMul", normalized, y), net.op("Power", x, net.const(np.float32(3.3))), x):
        net.result(result)
    rng = np.random.default_rng(0)
    feeds = {"x": rng.random((1, 17, 33), np.float32), "y": rng.random((1, 33, 9), np.float32)}
    assert differences(net.model(), feeds) == []


@pytest.mark.parametrize("layout", OF_USERS.values(), ids=OF_USERS)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1), (3, 4)])
def test_one_layer_of_each_kind(layout: Layout, shape: tuple[int, ...]) -> None:
    net = Net()
    x = net.parameter("x", ",".join(map(str, shape)))
    net.result(net.op("ReLU", x))
    net.result(
        net.op(
            "Reshape",
            x,
            net.const(np.int64([-1])) if 0 not in shape else net.const(np.int64([0])),
            special_zero="false",
        )
    )
    data = layout(np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape))
    before = elements(data)
    results = net.compiled()([data])
    np.testing.assert_array_equal(results[0], data)
    np.testing.assert_array_equal(results[1], np.ravel(data))
    assert elements(data) == before
    assert not any(np.shares_memory(result, data) for result in results.values())


@pytest.mark.slow
@pytest.mark.parametrize(("index", "version"), list(enumerate(VERSIONS)), ids=lambda value: str(value))
def test_random_models_of_each_operation_version(index: int, version: tuple[str, int]) -> None:
    faults: list[str] = []
    done = 0
    for attempt in range(ATTEMPTS):
        if done == MODELS:
            break
        case = make_case(index + attempt * len(VERSIONS))
        feeds = dict(enumerate(case.feeds))
        try:
            model = ovir.read_model(case.text, case.weights)
            ovir.compile_model(model)(feeds)
        except ovir.OvirError:  # whether it can be run is tested elsewhere
            continue
        done += 1
        faults += [f"attempt {attempt}: {fault}" for fault in differences(model, feeds)]
    assert faults == []
