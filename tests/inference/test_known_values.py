"""Known values and sizes: computed when they are asked for, at any depth, at little cost, in types that may not hold them."""

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.builder import Net, output

import ovir
from ovir.ops import import_all
from ovir.ops.arithmetic import Add
from ovir.ops.base.operator import Operator

DEPTH = 3_000


def count_calls(monkeypatch: pytest.MonkeyPatch, cls: type[Operator], method: str) -> list[str]:
    calls: list[str] = []
    original = getattr(cls, method)

    def counted(self: Operator, *arguments: Any, **keywords: Any) -> Any:
        calls.append(method)
        return original(self, *arguments, **keywords)

    monkeypatch.setattr(cls, method, counted)
    return calls


def test_no_kernel_runs_for_a_chain_of_reals(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_calls(monkeypatch, Add, "run")
    net = Net()
    x = net.parameter("x", "1,64")
    for i in range(20):
        x = net.op("Add", x, net.const(np.full((1, 64), i, np.float32)))
    net.result(x)
    model = net.model()
    assert not calls
    assert model.outputs[0].type.value is None  # now it is asked for
    assert calls


def test_a_value_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_calls(monkeypatch, Add, "run")
    net = Net()
    total = net.op("Add", net.const(np.int64([2, 3])), net.const(np.int64([1, 1])))
    for name in ("a", "b"):
        net.result(net.op("Reshape", net.parameter(name, "12"), total, special_zero="false"))
    model = net.model()
    assert [str(port.shape) for port in model.outputs] == ["[3,4]", "[3,4]"]
    assert len(calls) == 1


def test_equal_values_of_equal_layers_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_calls(monkeypatch, Add, "infer_value")
    net = Net()
    x = net.parameter("x", "?,6")
    for added in (0, 0, 1):  # the batch plus a number, in a shape that is computed from data of the same shape
        sizes = net.op("ShapeOf", net.op("Relu", x), opset=3, output_type="i64")
        sizes = net.op("Add", sizes, net.const(np.int64([0, added])))
        net.result(net.op("Broadcast", net.const(np.float32(0)), sizes, opset=3))
    model = net.model()
    assert len(calls) == 2
    assert [str(port.shape[1]) for port in model.outputs] == ["6", "6", "7"]
    assert {port.shape[0].symbol for port in model.outputs} == {model.inputs[0].shape[0].symbol}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Add", "Reshape", "Slice"])
def test_chains_longer_than_the_stack_is_deep(kind: str) -> None:
    net = Net()
    shape = net.op("ShapeOf", net.parameter("x", "?,4"), opset=3, output_type="i64")
    others = {
        "Add": [np.int64([0, 0])],
        "Reshape": [np.int64([2])],
        "Slice": [np.int64([0]), np.int64([2]), np.int64([1])],
    }[kind]
    constants = [net.const(array) for array in others]
    attributes = {"special_zero": "false"} if kind == "Reshape" else {}
    for _ in range(DEPTH):
        shape = net.op(kind, shape, *constants, opset=8 if kind == "Slice" else 1, **attributes)
    net.result(net.op("Reshape", net.parameter("data", "?"), shape, special_zero="false"))
    assert str(net.model().outputs[0].shape) == "[?,4]"


Build = Callable[[Net], tuple[int, int]]
SECONDS, MEMORY = 0.3, 100 << 20

_rng = np.random.default_rng(0)


def _ints(net: Net, *values: int) -> tuple[int, int]:
    return net.const(np.int64(values))


def _ones(net: Net, *shape: int, dtype: Any = np.float32) -> tuple[int, int]:
    return net.const(np.ones(shape, dtype))


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


MODELS: dict[str, Build] = {
    "NonMaxSuppression": lambda net: net.op(
        "NonMaxSuppression",
        *(net.const(array) for array in (_rng.random((1, 16000, 4), np.float32) + np.float32([0, 0, 1, 1]), np.ones((1, 1, 16000), np.float32))),
        *(net.const(array) for array in (np.int64(16000), np.float32(0.99), np.float32(0))),
        opset=9,
        outputs=3,
    ),
    "Range of unknown length": _unknown_range,
    "Broadcast": lambda net: _broadcast(net, 10**4, 10**5),
    "Concat of itself, ten times": _doubled,
    "many constants of 16 MB": _many,
    "MatMul of f64": lambda net: net.op(
        "MatMul", _ones(net, 1000, 1000, dtype=np.float64), _ones(net, 1000, 1000, dtype=np.float64)
    ),
    "DFT": lambda net: net.op("DFT", _ones(net, 2, 2), _ints(net, 0), _ints(net, 2 * 10**7), opset=7),
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
    gc.collect()  # the garbage of earlier tests is not measured
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


def test_a_size_that_fits_is_folded() -> None:
    net = Net()
    size = net.op("ShapeOf", net.parameter("x", "1..200", "u8"), opset=3)
    converted = net.op("Convert", size, destination_type="u8")
    net.result(net.op("Equal", size, net.op("Convert", converted, destination_type="i64")))
    known = net.model().outputs[0].type.constant
    assert known is not None
    assert known.tolist() == [True]


HUGE, LARGEST = 2**62, 2**63 - 1
RANK = "a shape has at most 64 dimensions, got"
SIZE = "is larger than any memory"


def _parameter(shape: str) -> Net:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", shape)))
    return net


def _constant(shape: str) -> Net:
    net = Net()
    net.result(net.op("Const", element_type="f32", shape=shape, offset="0", size="0"))
    return net


def _behind(kind: str, *values: list[int], opset: int = 1, **attributes: str) -> Net:
    net = Net()
    inputs = [net.const(np.int64(value)) for value in values]
    net.result(net.op(kind, net.parameter("x", "2,3"), *inputs, opset=opset, **attributes))
    return net


def _message(net: Net) -> str:
    """Return the message of ``read_model``, after a test that ``check`` has the same with its line."""
    text, weights = net.xml().encode(), bytes(net.blob)
    with pytest.raises(ovir.ModelError) as caught:
        ovir.read_model(text, weights)
    errors = [d for d in ovir.check(text, weights) if d.severity is ovir.Severity.ERROR]
    assert [(d.message, d.line) for d in errors] == [(caught.value.diagnostic.message, caught.value.diagnostic.line)]
    assert errors[0].line
    assert errors[0].layer_id is not None
    return errors[0].message


@pytest.mark.slow
def test_a_shape_of_40_megabytes() -> None:
    text = _parameter(",".join(["7"] * 20_000_000)).xml().encode()
    start = time.process_time()
    with pytest.raises(ovir.ModelError, match=RANK):
        ovir.read_model(text)
    assert time.process_time() - start < 2


def test_dims_of_a_port() -> None:
    text = (
        _parameter("?")
        .xml()
        .replace('<port id="0" precision="UNSPECIFIED"/>', f'<port id="0">{"<dim>1</dim>" * 65}</port>')
    )
    errors = [d for d in ovir.check(text.encode()) if d.severity is ovir.Severity.ERROR]
    assert [d.message for d in errors if RANK in d.message] == [f"port 0: {RANK} 65"] * 2


@pytest.mark.parametrize("shape", [f"0..{LARGEST}", "1," * 63 + "1", f"0,{2**60}", "0"])
def test_what_can_be_held(shape: str) -> None:
    assert ovir.read_model(_parameter(shape).xml().encode()).outputs[0].shape == ovir.PartialShape.parse(shape)


@pytest.mark.parametrize(
    ("shape", "hint"), [(f"{HUGE}", None), (f"{HUGE},0", "sizes other than 0 count even in an empty tensor")]
)
def test_what_counts_in_an_empty_tensor(shape: str, hint: str | None) -> None:
    with pytest.raises(ovir.ModelError) as caught:
        ovir.read_model(_parameter(shape).xml().encode())
    assert caught.value.diagnostic.hint == hint


SHAPES = f"{HUGE}", f"{LARGEST}", f"{HUGE},0", f"0,{LARGEST},{LARGEST}", f"{LARGEST},{LARGEST}", f"{2**31},{2**31}"


@pytest.mark.parametrize(
    ("net", "message"),
    [
        *((_parameter(",".join([size] * 65)), f"attribute 'shape': {RANK} 65") for size in ("1", "?", "0", "2..5")),
        (_parameter(",".join(["1"] * 1_000_000)), f"attribute 'shape': {RANK} 1000000"),
        (_constant(",".join(["1"] * 65)), f"{RANK} 65"),
        (_constant(",".join(["1"] * 1_000_000)), "a list has at most 65536 items, got 1000000"),
        *((_parameter(shape), f"output 0, f32[{shape}], {SIZE}") for shape in SHAPES),
        *((_constant(shape), SIZE) for shape in SHAPES),
        (_behind("Reshape", [1] * 65, special_zero="false"), f"{RANK} 65"),
        (_behind("Broadcast", [1] * 64 + [2, 3], opset=3), f"{RANK} 66"),
        (_behind("Tile", [1] * 70), f"{RANK} 70"),
        (_behind("Unsqueeze", list(range(70))), f"{RANK} 72"),
        (_behind("Broadcast", [HUGE, 2, 3], opset=3), SIZE),
        (_behind("Broadcast", [LARGEST, LARGEST, 0, 2, 3], opset=3), SIZE),
        (_behind("Tile", [HUGE, HUGE]), SIZE),
    ],
)
def test_ranks_and_sizes_beyond_what_a_tensor_has(net: Net, message: str) -> None:
    assert message in _message(net)


def test_ranks_that_only_a_run_knows() -> None:
    net = Net()
    net.result(net.op("Reshape", net.parameter("x", "?"), net.parameter("shape", "?", "i64"), special_zero="false"))
    with pytest.raises(ovir.RunError, match=RANK):
        net.compiled()([np.ones(1, np.float32), np.ones(65, np.int64)])


@pytest.mark.parametrize("shape", [[1] * 65, {"x": ",".join(["1"] * 65)}, [HUGE, 0]])
def test_reshape(shape: Any) -> None:
    with pytest.raises(ovir.OvirError, match=SIZE if shape == [HUGE, 0] else RANK):
        _parameter("...").model().reshape(shape)
    with pytest.raises(ValueError, match=RANK):
        ovir.PartialShape([-1] * 65)
