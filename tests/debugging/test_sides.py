"""The parts of comparisons: batches of layers, models of single layers, layers of two models, agreement of scores."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import ovir
from ovir import opset13 as ops
from ovir.analysis.tensor_comparison import Criterion
from ovir.core.arrays import Array
from ovir.debugging import sides
from ovir.debugging.comparison import Agreement, agreement_of
from ovir.debugging.comparison_session import Session
from ovir.debugging.comparison_setup import InputSet
from ovir.debugging.devices import DeviceSide, LonePart, LoneParts, OvirDevice
from ovir.debugging.layerwise_run import Walk, WalkPlan
from ovir.debugging.sides import LayerAnswer, Partners, Side, in_batches, in_halves
from ovir.diagnostics.codes import ENGINE
from ovir.diagnostics.diagnostic import diagnose
from ovir.graph.constant_layers import all_constant_layers


@pytest.mark.parametrize("most", [None, 3])
def test_batches_are_as_large_as_the_limits_allow(most: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "MOST_BYTES", 10)
    sizes = [4, 6, 1, 25, 3, 3, 2, 1, 0, 0, 10, 10, 2]
    answers = [LayerAnswer(Mock(), problem=str(number)) for number in range(len(sizes) + 1)]
    batches: list[list[int]] = []

    def run(numbers: Sequence[int]) -> list[LayerAnswer]:
        batches.append(list(numbers))
        return [answers[number] for number in numbers]

    found = list(in_batches([answers[-1], *enumerate(sizes)], run, most))
    assert found == [answers[-1], *answers[:-1]]
    assert [number for batch in batches for number in batch] == list(range(len(sizes)))
    for batch, following in zip(batches, [*batches[1:], None], strict=True):
        size = sum(sizes[number] for number in batch)
        assert size <= 10 or len(batch) == 1
        assert len(batch) <= (most or 99)
        assert following is None or size + sizes[following[0]] > 10 or len(batch) == most


@pytest.mark.parametrize("bad", [{0}, {4}, {2, 3}, set()])
def test_halves_find_the_layers_at_fault(bad: set[int]) -> None:
    runs = 0

    def run(numbers: Sequence[int]) -> list[LayerAnswer]:
        nonlocal runs
        runs += 1
        if bad & set(numbers):
            raise ovir.RunError(diagnose(ENGINE, "refused"))
        return [LayerAnswer(Mock(), problem=str(number)) for number in numbers]

    found = in_halves(
        range(5), run, lambda number, error: LayerAnswer(Mock(), skipped=f"{number} {error.diagnostic.message}")
    )
    assert [answer.skipped or answer.problem for answer in found] == [
        f"{i} refused" if i in bad else str(i) for i in range(5)
    ]
    assert runs <= {0: 1, 1: 7, 2: 9}[len(bad)]


class Watched(OvirDevice):
    """A device that keeps the models that it gets."""

    def __init__(self, model: ovir.Model) -> None:
        super().__init__(model)
        self.models: list[ovir.Model] = []

    def run(self, model: ovir.Model, inputs: Sequence[Array]) -> list[Array]:
        self.models.append(model)
        return super().run(model, inputs)


def isolated(model: ovir.Model, *arrays: Array) -> tuple[Any, list[ovir.Model]]:
    device = Watched(model)
    side = DeviceSide(device, Partners(model, model))
    side.open()
    session = Session(model, side, Criterion(), None)
    return session.run([InputSet("one", lambda: list(arrays))], "isolated"), device.models


def test_a_model_of_single_layers() -> None:
    """Each has Parameters of its own; constants, and sizes that inference reads, are constants."""
    x = ops.parameter([-1, 4], "f32", name="x")
    weights = ops.convert(ops.constant(np.ones((4, 4)), "f16"), "f32", name="weights")
    product = ops.matmul(x, weights, False, False, name="product")
    sizes = ops.gather(ops.shape_of(product, name="shape"), [1, 0], 0, name="sizes")
    turned = ops.reshape(product, sizes, False, name="turned")
    ranged = ops.range(
        *(ops.squeeze(ops.slice(sizes, [i], [i + 1], [1]), [0]) for i in (1, 0, 0)), "f32", name="ranged"
    )
    values, _ = ops.topk(turned, 1, 0, "max", "value", name="top")
    state = ops.read_value(np.zeros((1, 2), np.float32), "v", "f32", [1, 2], name="state")
    model = ovir.Model([ops.add(values, state, name="sum"), ranged], [ops.assign(state, "v")], [x])
    found, (made,) = isolated(model, np.ones((2, 4), np.float32))
    assert found
    layers = {layer.name.partition("/")[2]: layer for layer in made.layers}
    read = {
        name: [port.source.layer.type for port in layers[name].inputs]
        for name in ("product", "sizes", "turned", "ranged", "top", "sum", "state")
    }
    assert read == {
        "product": ["Parameter", "Convert"],
        "sizes": ["Parameter", "Const", "Const"],
        "turned": ["Parameter", "Const"],
        "ranged": ["Parameter"] * 3,  # else it would be folded
        "top": ["Parameter", "Const"],
        "sum": ["Parameter"] * 2,
        "state": ["Const"],
    }
    assert all(len(port.readers) == 1 for port in made.inputs)
    assert len({layer.name for layer in made.layers}) == len(made.layers)
    assert len(made.outputs) == len(found.layers), "outputs that nothing reads are left out"
    assert [layer.inputs[0].source.layer for layer in made.layers if layer.type == "Assign"] == [layers["state"]]


@pytest.mark.parametrize("share", [True, False])
def test_arrays_of_a_walk_are_copied_unless_they_are_shared(share: bool) -> None:
    x = ops.parameter([4], "f32", name="x")
    model = ovir.Model([ops.sqrt(ops.abs(ops.negative(x)))], [x])
    plan = WalkPlan(model, with_constants=False)
    kept, results = [], []
    for number in range(3):
        walk = Walk(plan, [np.full(4, number, np.float32)], share=share)
        kept.append([step.outputs[0] for step in walk])
        results.append(walk.finish()[0])
    assert all((a is b) == share for a, b in zip(kept[0], kept[2], strict=True))
    assert [array[0] for array in results] == pytest.approx([0, 1, 2**0.5])
    assert share or [array[0] for array in kept[1]] == [-1, 1, 1]


@pytest.mark.parametrize("only_outputs", [True, False])
def test_a_walk_for_outputs_alone_is_a_plain_run(only_outputs: bool) -> None:
    x = ops.parameter([-1], "f32", name="x")
    model = ovir.Model([ops.sqrt(ops.abs(x))], [x])
    plan = WalkPlan(model, with_constants=False, only_outputs=only_outputs)
    for size in (2, 3, 3, 3, 2):
        walk = Walk(plan, [np.full(size, -4, np.float32)])
        assert len(list(walk)) == (0 if only_outputs else 2)
        np.testing.assert_array_equal(walk.finish()[0], np.full(size, 2))


@pytest.mark.parametrize("with_sizes", [True, False])
def test_layers_alone_compute_what_they_do_in_the_model(with_sizes: bool) -> None:
    x = ops.parameter([-1, 4], "f32", name="x")
    weights = ops.convert(ops.constant(np.full((4, 4), 0.5), "f16"), "f32")
    parts = ops.split(ops.tanh(ops.matmul(x, weights, False, False)), 1, 2)
    model = ovir.Model([ops.concat([parts[1], ops.abs(parts[0])], 1)], [x])
    data = np.float32([[1, -2, 3, -4], [0.5, 0, 0.25, 1]])
    steps = list(Walk(WalkPlan(model, with_constants=False), [data]))
    chosen = [LonePart(step, step.layer, range(len(step.outputs))[-1:]) for step in steps]
    fixed = all_constant_layers(model)
    folded = {layer: place for place, layer in enumerate(model.layers) if layer in fixed}
    alone = LoneParts(chosen, folded, with_sizes=with_sizes)
    assert [layer.id for layer in alone.model.layers] == list(range(len(alone.model.layers)))
    assert {str(port.shape) for port in alone.model.inputs} == ({"[2,4]", "[2,2]"} if with_sizes else {"[?,?]"})
    results = ovir.compile_model(alone.model)(alone.inputs).values()
    for step, result in zip(steps, results, strict=True):
        np.testing.assert_array_equal(result, step.outputs[-1])


def test_a_layer_with_another_number_of_inputs_does_not_run_alone() -> None:
    def joined(count: int) -> ovir.Model:
        x = ops.parameter([2], "f32", name="x")
        return ovir.Model([ops.concat([ops.relu(x, name="relu")] * count, 0, name="joined")], [x])

    found = ovir.compare(joined(2), joined(3), mode="isolated")
    assert [layer.name for layer in found.layers] == ["relu"]
    assert [(item.name, item.reason) for item in found.not_compared] == [
        ("joined", "the layer of the other model has another number of inputs")
    ]


def test_layers_that_have_no_result_of_their_own() -> None:
    x = ops.parameter([2], "f32", name="x")
    size = ops.constant([3])
    names = {(0, 0): "unseeded", (0, 1): "operation", (2, 0): "global"}
    drawn = [ops.random_uniform(size, 0.0, 1.0, "f32", *seeds, name=name) for seeds, name in names.items()]
    empty = ops.slice(x, [2], [2], [1], name="empty")
    model = ovir.Model([*drawn, ops.concat([x, ops.relu(empty, name="nothing")], 0, name="joined")], [x])
    found, _ = isolated(model, np.ones(2, np.float32))
    assert {item.name: item.reason for item in found.not_compared} == {
        "unseeded": "it draws other numbers in each run",
        "empty": "its outputs have no elements",
        "nothing": "its outputs have no elements",
    }


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ({"q": ops.exp, "p": ops.sin, "s": ops.cos}, [1, 0]),
        ({"q": ops.exp, "r": ops.sin, "s": ops.cos}, [None, 0]),
        ({"s": ops.cos, "r": ops.sin, "q": ops.exp}, [None, 2]),
        ({"r": ops.sin}, [None, None]),
        ({"r": ops.sin, "s": ops.cos}, [0, 1]),
        ({"r": ops.sin, "p": ops.cos}, [1, None]),
    ],
)
def test_outputs_of_two_models_are_matched(layers: dict[str, Any], expected: list[int | None]) -> None:
    """By the layers before them, by their names, or, if there are as many, by position."""

    def model(made: dict[str, Any]) -> ovir.Model:
        x = ops.parameter([2], "f32", name="x")
        return ovir.Model([ops.result(make(x, name=name, tensor_names=name)) for name, make in made.items()], [x])

    assert Partners(model({"p": ops.relu, "q": ops.exp}), model(layers)).outputs == expected


class OfOutputs(Side):
    """A side that has one output of two, and fails at the layers."""

    def __init__(self) -> None:
        self.asked = 0

    def layer_outputs(self, inputs: Sequence[Array], steps: Any) -> Any:
        return iter([LayerAnswer(step, [None] * len(step.outputs)) for step in steps])

    def outputs(self, inputs: Sequence[Array]) -> list[Array | None]:
        self.asked += 1
        return [np.float32([7, 8]), None]


def test_tensors_of_outputs_are_those_of_a_whole_run() -> None:
    x = ops.parameter([2], "f32", name="x")
    inner = ops.relu(x)
    model = ovir.Model([ops.abs(inner), ops.exp(inner)], [x])
    first, second = (port.source for port in model.outputs)
    for wanted, found, asked in (({first, second}, [first], 1), ({second}, [], 1), ({inner.outputs[0]}, [], 0)):
        side = OfOutputs()
        tensors = Session(model, side, Criterion(), None).tensors([np.float32([1, 2])], wanted)
        assert {port: array.tolist() for port, array in tensors.items()} == {port: [7, 8] for port in found}
        assert side.asked == asked


@pytest.mark.parametrize("kind", ["end", "outputs", "none"])
def test_layers_that_cannot_be_compared_with_their_partners(kind: str) -> None:
    partners, other = Mock(of=lambda layer: other), Mock(outputs=[Mock(), Mock()])
    step = Mock(layer=Mock(outputs=[Mock()] * (2 if kind != "outputs" else 1)))
    other.type = "Parameter" if kind == "end" else "ReLU"
    expected = {
        "end": "it is a Parameter in the other model",
        "outputs": "the layer of the other model has another number of outputs",
        "none": None,
    }
    assert Partners.missing(partners, step) == expected[kind]
    assert Partners.missing(Mock(of=lambda layer: None), step) == "the other model has no such layer"


ROWS = np.float32([[0.4, 0.3, 0.1, 0.1, 0.05, 0.05, 0, 0], [0.9, 0.1, 0, 0, 0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("actual", "reference", "agreement"),
    [
        (ROWS, ROWS, Agreement(1, 1)),
        (ROWS[:, [1, 0, 2, 3, 4, 5, 6, 7]], ROWS, Agreement(0, 1)),
        (np.stack([ROWS[0], ROWS[1, ::-1]]), ROWS, Agreement(0.5, 0.8)),
        (ROWS[:1, :, np.newaxis], ROWS[:1, :, np.newaxis], Agreement(1, 1)),
        (ROWS[:1, [0, 1, 2, 3, 7, 4, 5, 6]], ROWS[:1], Agreement(1, 0.8)),
        (np.float32([0.3, 0.7]), np.float32([0.6, 0.4]), Agreement(0, 1)),
        (ROWS, ROWS[:1], None),
        (ROWS, ROWS * 2, None),
        (ROWS[:, :1], ROWS[:, :1], None),
        (ROWS[:0], ROWS[:0], None),
        (np.full((2, 2, 4), 0.25), np.full((2, 2, 4), 0.25), None),
    ],
)  # fmt: skip
def test_the_agreement_of_the_highest_scores(actual: Array, reference: Array, agreement: Agreement | None) -> None:
    found = agreement_of(actual, reference)
    assert (found and (found.top1, found.top5)) == (agreement and pytest.approx((agreement.top1, agreement.top5)))
