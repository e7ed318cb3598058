"""A run computes the same whether anything looks at its tensors or not, in every mode."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from runtime.test_emulation import rounded

import ovir
from ovir import opset13 as ops
from ovir.core.arrays import Array
from ovir.runtime.emulation import Emulation
from ovir.runtime.executor import Executor
from ovir.runtime.listeners import matching_taps, tapped_ports
from ovir.runtime.state import Variables

MODES: dict[str, dict[str, Any]] = {
    "f32": {},
    "f16": {"emulate": "f16"},
    "bf16": {"emulate": "bf16"},
    "compressed": {"keep_compressed": True},
    "decompressed": {"keep_compressed": False},
}
BEYOND_BUDGET = 17 << 18
"""Elements of a constant that is too large to be folded."""


class Models:
    """Draws models of a few layers, many of which depend on constants or on sizes alone; tensors have 1 or 3 elements.

    Some constants are beyond the range of f16.
    """

    def __init__(self, seed: int) -> None:
        self.rng, self.numbers = random.Random(seed), np.random.default_rng(seed)

    def constant(self, *shape: int) -> Any:
        scale = self.rng.choice((1, 1e3, 1e5))
        return ops.constant((self.numbers.standard_normal(shape or (3,)) * scale).astype(np.float32))

    def of_three(self, x: Any) -> Any:
        return slice_of(ops.concat([x, x, x], 0), 3)

    def body(self, x: Any) -> Any:
        kinds: list[Callable[[], Any]] = [
            self.constant,
            lambda: ops.add(self.constant(), self.constant()),
            lambda: ops.multiply(x, self.constant()),
            lambda: ops.relu(x),
        ]
        return self.rng.choice(kinds)()

    def loop(self, x: Any) -> Any:
        state, condition = ops.parameter([3], "f32", name="state"), ops.constant(np.array(True))
        out = self.body(state)
        loop = ops.loop(ops.constant(np.int64(2)), condition)
        loop.set_function(ovir.Model([out, ops.constant(np.array(True))], [state], "body"))
        loop.set_special_body_ports([-1, 1])
        loop.set_merged_input(state, self.of_three(x).output(0), out.output(0))
        return loop.get_iter_value(out.output(0), -1)

    def branch(self, x: Any) -> Any:
        positive = ops.greater(ops.reduce_sum(x, ops.constant(np.int64(0)), False), ops.constant(np.float32(0)))
        one, other = ops.parameter([3], "f32"), ops.parameter([3], "f32")
        results = ops.result(self.body(one)), ops.result(self.body(other))
        branch = ops.if_op(positive)
        branch.set_then_body(ovir.Model([results[0]], [one], "then"))
        branch.set_else_body(ovir.Model([results[1]], [other], "else"))
        branch.set_input(self.of_three(x).output(0), one, other)
        return branch.set_output(*results)

    def layer(self, a: Any, b: Any) -> Any:
        kinds: list[Callable[[], Any]] = [
            self.constant,
            lambda: ops.add(a, b),
            lambda: ops.multiply(a, b),
            lambda: ops.divide(a, ops.constant(np.float32(7))),
            lambda: ops.softmax(a, 0),
            lambda: ops.reshape(a, ops.constant(np.int64([-1])), False),
            lambda: ops.convert(ops.convert(a, "f16"), "f32"),
            lambda: ops.reduce_max(a, ops.constant(np.int64([0])), True),
            lambda: slice_of(ops.broadcast(self.constant(1), ops.constant(np.int64([BEYOND_BUDGET]))), 3),
            lambda: ops.multiply(ops.convert(ops.constant(np.int8([100, -3, 7])), "f32"), self.constant(1)),
            lambda: self.loop(a),
            lambda: self.branch(a),
        ]
        return self.rng.choice(kinds)()

    def model(self) -> ovir.Model:
        x = ops.parameter([self.rng.choice((-1, 3))], "f32", name="x")
        found = [x, self.constant(), ops.convert(ops.shape_of(x), "f32")]
        for _ in range(self.rng.randint(1, 8)):
            found.append(self.layer(self.rng.choice(found), self.rng.choice(found)))
        outputs = [found[-1], *self.rng.choices(found, k=3)]
        return ovir.Model([ops.result(output) for output in outputs], [x], "drawn")


def slice_of(x: Any, stop: int) -> Any:
    return ops.slice(x, *(ops.constant(np.int64([n])) for n in (0, stop, 1, 0)))


def assert_same(found: list[Array], expected: list[Array], what: object) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other, str(what))
        np.testing.assert_array_equal(np.signbit(one), np.signbit(other), str(what))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_taps_change_nothing(seed: int) -> None:
    models = Models(seed)
    model = models.model()
    data = np.float32([1.5, -700.3, 0.1])
    keys = [layer.key for layer in model.walk() if not (layer.type == "Parameter" and layer.scope)]
    for mode, options in MODES.items():
        compiled = ovir.compile_model(model, **options)
        expected = [array.copy() for array in compiled([data]).values()]
        tapped = ovir.compile_model(model, **options)([data], taps=keys)
        assert_same(list(tapped.values()), expected, (mode, "all, in the first call"))
        choices = [[], keys, keys, [], *([key] for key in models.rng.sample(keys, 4)), []]
        for taps in choices:
            found = compiled([data], taps=taps)
            assert_same(list(found.values()), expected, (mode, taps))
            for key, arrays in found.taps.items():
                assert_same(arrays, tapped.taps[key], (mode, taps, key))


@pytest.mark.parametrize("seed", range(22, 28))
def test_a_walk_shows_what_listeners_see(seed: int) -> None:
    model, data = Models(seed).model(), np.float32([1.5, -700.3, 0.1])
    compiled, seen = ovir.compile_model(model), {}

    class Watcher(ovir.Listener):
        def did_run(self, layer: ovir.Layer, inputs: Any, outputs: Any) -> None:
            seen[layer.key] = [[np.array(array) for array in arrays] for arrays in (inputs, outputs)]

    expected = compiled([data], listeners=[Watcher()])
    outputs: list[Array] = []

    def walk() -> Any:
        outputs.extend((yield from Executor(compiled.plan().watched(), Variables()).walk([data])))

    steps = {step.layer.key: step for step in list(walk())}
    assert_same(outputs, list(expected.values()), "outputs")
    for key in (layer.key for layer in model.layers if layer.key in seen):
        for found, wanted in zip((steps[key].inputs, steps[key].outputs), seen[key], strict=True):
            assert_same(found, wanted, key)


OUTPUTS: dict[str, Callable[[Any], Any]] = {
    "a constant": lambda x: x,
    "a folded layer": lambda x: ops.add(x, ops.constant(np.float32(0))),
    "a view": lambda x: ops.reshape(x, ops.constant(np.int64([-1])), False),
    "decompressed weights": lambda x: ops.multiply(ops.convert(x, "f16"), ops.constant(np.float16(1))),
}


@pytest.mark.parametrize("emulate", ["f16", "bf16"])
@pytest.mark.parametrize("shape", [[2], [-1]])
@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_that_are_constants_are_rounded(name: str, shape: list[int], emulate: str) -> None:
    third = np.float32([1 / 3, 2 / 3])
    x = ops.parameter(shape, "f32", name="x")
    output = OUTPUTS[name](ops.constant(third))
    model = ovir.Model([output, ops.relu(x)], [x], "constants")
    compiled = ovir.compile_model(model, emulate=emulate)
    expected = third.astype(np.float16) if name == "decompressed weights" else rounded(third, emulate)
    for taps in ([], [output.key], []):
        np.testing.assert_array_equal(compiled([third], taps=taps)[0], expected)


def test_outputs_that_are_constants_stay_within_the_range_of_f16() -> None:
    x = ops.parameter([1], "f32", name="x")
    large = ops.constant(np.float32([1e6, -np.inf]), name="large")
    model = ovir.Model([large, ops.relu(x)], [x], "large")
    assert ovir.compile_model(model, emulate="f16")([np.float32([1])])[0].tolist() == [65504, -np.inf]


def test_a_layer_that_stays_in_f32_gives_its_output_in_f32() -> None:
    x = ops.parameter([1], "f32", name="x")
    large = ops.add(ops.constant(np.float32([1e6])), ops.constant(np.float32([0.125])), name="large")
    model = ovir.Model([large, ops.relu(x)], [x], "large")
    compiled = ovir.compile_model(model, emulate=Emulation("f16", ["large"]))
    assert compiled([np.float32([1])])[0].tolist() == [1000000.125]


def test_names_that_a_pattern_finds() -> None:
    x, state = ops.parameter([1], "f32", name="x"), ops.parameter([1], "f32", name="state")
    grown = ops.multiply(state, ops.constant(np.float32(2)), name="grown")
    loop = ops.loop(ops.constant(np.int64(3)), ops.constant(np.array(True)), name="loop")
    loop.set_function(ovir.Model([grown, ops.constant(np.array(True))], [state], "body"))
    loop.set_special_body_ports([-1, 1])
    loop.set_merged_input(state, x.output(0), grown.output(0))
    both = ops.split(ops.concat([loop.get_iter_value(grown.output(0), -1), x], 0), 0, 2, name="both")
    both.outputs[1].names = ["second"]
    results = [ops.result(both.output(0), name="out"), ops.result(both.output(1), name="other")]
    model = ovir.Model(results, [x], "loop")
    patterns = {
        "grown|state": "loop/body/grown",
        "out": "out",
        "second": "second",
        "out|both": "both",
        "^x|other": "x other",
    }
    assert {pattern: " ".join(matching_taps(model, pattern)) for pattern in patterns} == patterns
    found = {name: [port.index for port in tapped_ports(model, name)] for name in ("both", "second", "out", "other")}
    assert found == {"both": [0, 1], "second": [1], "out": [0], "other": [1]}
    taps = ovir.compile_model(model)([np.float32([1])], taps=["both", "second", "out", "loop/body/grown"]).taps
    assert {name: [array.tolist() for array in arrays] for name, arrays in taps.items()} == {
        "both": [[8], [1]], "second": [[1]], "out": [[8]], "loop/body/grown": [[8]]
    }  # fmt: skip


@pytest.mark.parametrize("method", ["will_run", "did_run", "see_inputs"])
def test_listeners_cannot_write_to_arrays_of_a_run(method: str) -> None:
    class Writer(ovir.Listener):
        pass

    def write(self: Writer, what: Any, inputs: Sequence[Any], outputs: Sequence[Any] = ()) -> None:
        for array in (*inputs, *outputs):
            array[...] = 7

    setattr(Writer, method, write)
    x = ops.parameter([-1, 4], "f32", name="x")
    model = ovir.Model([ops.relu(ops.add(x, x))], [x])
    given = np.ones((2, 4), np.float32)
    with pytest.raises(ValueError, match="read-only"):
        ovir.compile_model(model)([given], listeners=[Writer()])
    assert (given == 1).all()
