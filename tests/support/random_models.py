"""Random models for property tests, built with the functions of an opset.

``models()`` is a strategy of hypothesis. The models have several inputs and outputs, dynamic dimensions, layers with
several outputs, constants of many types, shared and repeated sources, names with odd characters, decompressed weights,
bodies and variables.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import ovir
from ovir import opset13 as ops

Draw = Callable[[st.SearchStrategy[Any]], Any]

NAMES = st.one_of(
    st.sampled_from(
        ["x", "conv1/weights", "a,b", "a\\b", 'quote"s', "<&>", "żółw", " padded ", "MatMul_2", "for", "ops"]
    ),
    st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=8),
)
DTYPES = ("f32", "f16", "f64", "bf16", "i32", "i64", "i8", "u8", "i4", "u4", "u1", "boolean", "string", "nf4", "f8e4m3")


@dataclass
class Making:
    """A model while it is made: its parameters and Assigns, and the f32 tensors that new layers may read."""

    draw: Draw
    parameters: list[ovir.Layer] = field(default_factory=list)
    assigns: list[ovir.Layer] = field(default_factory=list)
    tensors: list[ovir.Port] = field(default_factory=list)
    extras: list[ovir.Port] = field(default_factory=list)
    """Outputs of other types."""

    def pick(self) -> ovir.Port:
        port: ovir.Port = self.draw(st.sampled_from(self.tensors))
        return port

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def name(self) -> str | None:
        name: str | None = self.draw(st.one_of(st.none(), NAMES))
        return name

    def numbers(self, *shape: int) -> Any:
        """Return f32 numbers of moderate size."""
        rng = np.random.default_rng(self.integer(0, 99))
        return rng.integers(-8, 9, shape).astype(np.float32) / 4


def _unary(m: Making) -> None:
    function = getattr(ops, m.draw(st.sampled_from(["relu", "tanh", "sigmoid", "abs", "hswish", "floor", "negative"])))
    m.tensors.append(function(m.pick(), name=m.name()).output())


def _arithmetic(m: Making) -> None:
    x = m.pick()
    other = m.draw(st.sampled_from([x, m.integer(-3, 3), 0.5]))
    m.tensors.append(m.draw(st.sampled_from([ops.add, ops.multiply, ops.maximum]))(x, other, name=m.name()).output())


def _reduce(m: Making) -> None:
    x = m.pick()
    axis = m.integer(0, (x.shape.rank or 1) - 1)
    m.tensors.append(ops.reduce_mean(x, [axis], True, name=m.name()).output())


def _softmax(m: Making) -> None:
    m.tensors.append(ops.softmax(m.pick(), -1, name=m.name()).output())


def _transpose(m: Making) -> None:
    x = m.pick()
    order = m.draw(st.permutations(range(x.shape.rank or 0)))
    m.tensors.append(ops.transpose(x, list(order), name=m.name()).output())


def _concat(m: Making) -> None:
    x = m.pick()
    m.tensors.append(ops.concat([x] * m.integer(1, 3), m.integer(0, (x.shape.rank or 1) - 1), name=m.name()).output())


def _flatten(m: Making) -> None:
    m.tensors.append(ops.reshape(m.pick(), [0, -1], True, name=m.name()).output())


def _flatten_by_shape(m: Making) -> None:
    x = m.pick()
    first = ops.gather(ops.shape_of(x, m.draw(st.sampled_from(["i64", "i32"]))), [0], 0)
    m.tensors.append(ops.reshape(x, ops.concat([first, [-1]], 0), False, name=m.name()).output())


def _split(m: Making) -> None:
    x = m.pick()
    axis = (x.shape.rank or 1) - 1
    doubled = ops.concat([x, x], axis)
    unique = f"part_{len(m.tensors)}"
    parts = ops.split(
        doubled, axis, 2, name=m.name(), tensor_names=m.draw(st.sampled_from([None, unique, [None, unique]]))
    )
    m.tensors.append(parts.output(m.integer(0, 1)))


def _top(m: Making) -> None:
    values, indices = ops.topk(m.pick(), 1, -1, "max", "value", name=m.name())
    m.tensors.append(values)
    m.extras.append(indices)


def _product(m: Making) -> None:
    """Append a product with weights; compressed ones have the layers that decompress them."""
    x = m.pick()
    columns = x.shape[-1]
    if not columns.is_static:
        return
    weights: Any = m.numbers(columns.length, m.integer(1, 20))
    if m.draw(st.booleans()):
        half = ops.constant(weights.astype(np.float16), name=m.name())
        weights = ops.convert(half, "f32", name=m.name(), rt_info={"decompression": ""})
    m.tensors.append(ops.matmul(x, weights, False, False, name=m.name()).output())


def _table(m: Making) -> None:
    """Append constants, some of which are never read and some results of the model."""
    dtype = m.draw(st.sampled_from(DTYPES))
    values = np.random.default_rng(m.integer(0, 99)).integers(0, 2, (2, m.integer(0, 12)))
    constant = ops.constant(values.astype(str) if dtype == "string" else values, dtype, name=m.name())
    if dtype != "nf4":  # no operation reads it directly
        m.extras.append(constant.output())


def _if(m: Making) -> None:
    x = m.pick()
    layer = ops.if_op(ops.greater(ops.reduce_sum(x, list(range(x.shape.rank or 0)), False), 0.0), name=m.name())
    bodies = []
    for change in (lambda p: p * 2, lambda p: ops.relu(p) + 1):
        p = ops.parameter([-1] * (x.shape.rank or 0), name="p")
        bodies.append(ovir.Model([change(p)], [p], "branch"))
    layer.set_then_body(bodies[0])
    layer.set_else_body(bodies[1])
    layer.set_input(x, bodies[0].inputs[0], bodies[1].inputs[0])
    m.tensors.append(layer.set_output(bodies[0].outputs[0], bodies[1].outputs[0]))


def _loop(m: Making) -> None:
    x = m.pick()
    state, part = (ops.parameter([-1] * (x.shape.rank or 0), name=name) for name in ("state", "part"))
    added = ops.add(state, part, name=m.name())
    layer = ops.loop(m.integer(1, 3), True, name=m.name())
    layer.set_function(ovir.Model([added, ops.constant(True)], [state, part], "body"))
    layer.set_special_body_ports([-1, 1])
    layer.set_merged_input(state, x, added)
    layer.set_invariant_input(part, x)
    m.tensors.append(layer.get_iter_value(added, -1))


def _state(m: Making) -> None:
    x = m.pick()
    if not x.shape.is_static:
        return
    name = f"variable{len(m.assigns)}"
    total = ops.add(x, ops.read_value(x, name, "f32", x.shape), name=m.name())
    m.assigns.append(ops.assign(total, name))
    m.tensors.append(total.output())


STEPS = (
    _unary, _arithmetic, _reduce, _softmax, _transpose, _concat, _flatten, _flatten_by_shape, _split, _top, _product,
    _table, _if, _loop, _state,
)  # fmt: skip


@st.composite
def models(draw: Draw, *, most_layers: int = 8) -> ovir.Model:
    """Return a strategy of models; random inputs of ``ovir.random_inputs`` suit them."""
    m = Making(draw)
    for number in range(m.integer(1, 3)):
        dims = draw(st.lists(st.sampled_from([1, 2, 3, -1, "2..4"]), min_size=2, max_size=4))
        parameter = ops.parameter(
            dims, "f32", name=f"in{number}", tensor_names=draw(st.sampled_from([None, f"t{number}"]))
        )
        m.parameters.append(parameter)
        m.tensors.append(parameter.output())
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=most_layers)):
        step(m)
    chosen = draw(st.lists(st.sampled_from([*m.tensors, *m.extras]), min_size=1, max_size=3))
    results = [ops.result(port, name=f"out{index}") for index, port in enumerate([*chosen, m.tensors[-1]])]
    return ovir.Model(results, m.assigns, m.parameters, draw(st.sampled_from(["", "model", 'a "name"'])))
