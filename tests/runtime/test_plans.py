"""What plans consist of: others give the same results, so that only time and memory tell them apart."""

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runtime.test_growing_variables import WIDTH, cache
from runtime.test_requests import drawn_graph
from runtime.test_rewrites import shared_keys
from runtime.test_taps import MODES, Models
from runtime.test_weight_chains import Chain
from support.builder import Net

import ovir
from ovir import opset13 as ops
from ovir.core import parallel
from ovir.fast.base import products
from ovir.runtime import decompression, planning
from ovir.runtime.emulation import Emulation
from ovir.runtime.executor import Executor
from ovir.runtime.memory import memory_use
from ovir.runtime.unbound_calls import UnboundCall

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("calls_are_made_once")]

ROWS = (Path(__file__).parent / "plans.txt").read_text().splitlines()
"""The kind of a random model and its number; after four runs, the steps with their calls, ``?`` for unbound ones and ``!``
for those that have bound themselves; bytes of constants, of inputs and between the steps, tensors of unknown size; bytes of
the arena, constants of the file.
"""


def _cases(kind: str, number: int) -> tuple[ovir.Model, Any, dict[str, Any]]:
    """Return a model, its inputs, and the options with which it is compiled."""
    if kind == "chain":
        model, feeds, _ = Chain(number).model()
        return model, feeds, {"keep_compressed": (None, True, False)[number % 3]}
    if kind == "keys":
        query, new = (np.ones((2, heads, 1, 4), np.float32) for heads in (6, 2))
        repeats = ("each head", "tile", "all heads", "heads in turn")[number % 4]
        model = shared_keys(repeats, -1, 1, shows_keys=number > 3)
        kept = [layer.key for layer in model.layers if layer.type != ("Broadcast", "Reshape")[number % 2]]
        options = {"emulate": Emulation("bf16", kept)} if number > 7 else {}
        return model, {"query": query, "new": new}, options
    if kind == "beams":
        feeds = {"x": np.ones((2, 1, WIDTH), np.float32), "beams": np.int32([0, 1])}
        return cache(reorders=number > 0), dict([*feeds.items()][: number + 1]), {}
    if kind == "graph":  # a tensor takes a chunk of the arena
        data = np.random.default_rng(0).random((256, 512), np.float32)
        return drawn_graph(np.random.default_rng(number), *data.shape).model(), [data, data.copy()], {}
    return Models(number).model(), [np.float32([1.5, -700.3, 0.1])], list(MODES.values())[number % len(MODES)]


def _described(kind: str, number: int) -> str:
    model, feeds, options = _cases(kind, number)
    compiled = ovir.compile_model(model, **options)
    request = compiled.create_infer_request()
    with parallel.limit(2):
        for run in range(4):
            if kind == "keys":
                feeds["mask"] = np.zeros((2, 1, 1, run + 1), np.float32)
            request.infer(feeds)
    executors = filter(None, [*request._bindings._bound.values(), request._bindings._for_all_shapes])
    return " | ".join([*map(_executor, executors), f"{len(compiled.plan().steps)} steps"])


def _executor(executor: Executor) -> str:
    use, calls, steps = memory_use(executor.plan), iter(executor._calls), []
    for step, (count, after) in zip(executor.plan.steps, executor._counts, strict=True):
        found = [function for function, _ in islice(calls, count + after)]
        marks = ["?" if function._binding is None else "!" for function in found if isinstance(function, UnboundCall)]
        steps.append(f"{type(step.operator).__name__}{''.join(marks) or count}{',' * after}")
    assert not any(array.flags.writeable for array in executor.plan.constants.values())
    sizes = f"{use.weights} {use.inputs} {use.activations} {use.unknown}; {executor.memory}"
    return f"{' '.join(steps)}; {sizes}, {len(executor.plan.independent)} of {len(executor.plan.constants)}"


@pytest.mark.parametrize("row", ROWS)
def test_plans(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompression, "MAX_ELEMENTS", 0)
    monkeypatch.setattr(decompression, "SMALL", 0)
    monkeypatch.setattr(decompression, "free_memory", lambda: 0)
    monkeypatch.setattr(products, "has_small_products", lambda: True)
    name, _, expected = row.partition(" | ")
    kind, number = name.split()
    assert _described(kind, int(number)) == expected


@pytest.mark.parametrize(
    ("count", "size", "target", "steps"),
    [
        (1, 1, 4 << 20, 0),  # 16 MiB
        (1, 1, (4 << 20) + 1, 1),
        (1, 5 << 18, 20 << 18, 0),  # four times as much as there was
        (1, 5 << 18, 25 << 18, 1),
        (4, 1, 4 << 20, 0),  # 64 MiB
        (5, 1, 4 << 20, 1),
        (5, 1 << 19, 4 << 20, 0),  # and eight times the constants
    ],
)
def test_constants_that_are_folded(count: int, size: int, target: int, steps: int) -> None:
    x = end = ops.parameter([1], "f32", name="x")
    for number in range(count):
        small = ops.constant(np.full(size, number, np.float32))
        end = ops.reduce_max(ops.add(end, ops.tile(small, ops.constant(np.int64([target // size])))), [0])
    kinds = [step.layer.type for step in ovir.compile_model(ovir.Model([end], [x])).plan().steps]
    assert kinds.count("Tile") == steps


@pytest.mark.parametrize(("beyond", "steps"), [(0, 0), (1, 1)])
def test_kernels_that_take_long_run_in_each_call(beyond: int, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = ops.constant(np.ones((32, 32), np.float32))
    x = ops.parameter([1], "f32", name="x")
    model = ovir.Model([ops.add(x, ops.matmul(matrix, matrix, False, False))], [x])
    layer = next(layer for layer in model.layers if layer.type == "MatMul")
    assert layer.operator is not None
    time = layer.operator.kernel_time([port.type for port in layer.inputs], [port.type for port in layer.outputs])
    for in_all, per_byte in ((time - beyond, 0), (0, (time - beyond) / 8192)):
        monkeypatch.setattr(planning, "_TIME", in_all)
        monkeypatch.setattr(planning, "_TIME_PER_BYTE", per_byte)
        kinds = [step.layer.type for step in ovir.compile_model(model).plan().steps]
        assert kinds == ["MatMul"] * steps + ["Add"]


@pytest.mark.parametrize("number", [4, -4])
def test_constants_whose_size_only_folding_shows(number: int) -> None:
    terms = ops.multiply(ops.constant(np.full(70_000, number, np.float32)), ops.constant(np.float32(1)))
    shape = ops.convert(ops.reduce_max(terms, np.int64([0]), True), "i64")
    x = ops.parameter([1], "f32", name="x")
    compiled = ovir.compile_model(ovir.Model([ops.add(x, ops.broadcast(np.float32(2), shape))], [x]))
    if number > 0:
        assert [step.layer.type for step in compiled.plan().steps] == ["Add"]
        assert compiled([np.zeros(1, np.float32)])[0].tolist() == [2] * number
    else:
        with pytest.raises(ovir.RunError, match="must not be negative, got -4"):
            compiled([np.zeros(1, np.float32)])


@pytest.mark.parametrize("is_view", [False, True])
def test_views_of_constants_cost_no_memory(is_view: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_TOTAL", "_TOTAL_GROWTH"):
        monkeypatch.setattr(planning, name, 0)
    x, numbers = ops.parameter([2], "f32", name="x"), ops.constant(np.ones((2, 2), np.float32))
    end = ops.reshape(numbers, np.int64([4, 1]), False) if is_view else ops.relu(numbers)
    plan = ovir.compile_model(ovir.Model([ops.add(end, x)], [x])).plan()
    assert [step.layer.type for step in plan.steps] == ["ReLU", "Add"][is_view:]


def test_kernels_that_may_take_much_memory_run_in_each_call() -> None:
    image, weights = (ops.constant(np.ones((1, 1, size, size), np.float32)) for size in (3, 1))
    x = ops.parameter([1], "f32", name="x")
    end = ops.add(x, ops.convolution(image, weights, [1, 1], [0, 0], [0, 0], [1, 1]))
    steps = ovir.compile_model(ovir.Model([end], [x])).plan().steps
    assert [step.layer.type for step in steps] == ["Convolution", "Add"]


@pytest.mark.parametrize(
    ("shape", "element_type", "known", "certain"),
    [
        ("2,3", "f32", (0, 24, 72, 0), (0, 24, 72, 0)),
        ("2,3", "i8", (0, 6, 18, 0), (0, 6, 18, 0)),
        ("1..4,3", "f32", (0, 48, 144, 0), (0, 48, 0, 2)),
        ("?,3", "f32", (0, 0, 0, 3), (0, 0, 0, 3)),
        ("...", "f32", (0, 0, 0, 3), (0, 0, 0, 3)),
        ("2,3", "string", (0, 0, 0, 3), (0, 0, 0, 3)),
    ],
)
def test_memory_that_is_known(shape: str, element_type: str, known: tuple[int, ...], certain: tuple[int, ...]) -> None:
    net = Net()
    x = net.parameter("x", shape, element_type)
    copy = net.op("Concat", x, axis="0")
    net.result(net.op("Concat", copy, copy, axis="0"))
    plan = net.compiled().plan()
    for use, expected in ((memory_use(plan), known), (memory_use(plan, certain=True), certain)):
        assert (use.weights, use.inputs, use.activations, use.unknown) == expected
        assert use.total == sum(expected[:3])
