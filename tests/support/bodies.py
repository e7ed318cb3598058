"""Small models with bodies."""

from collections.abc import Callable
from functools import partial

import numpy as np

import ovir
from ovir import opset13 as ops
from ovir.graph.layers import Layer, LayerOrPort

Step = Callable[[Layer], Layer]


def choice(
    condition: LayerOrPort, then: Callable[..., Layer], other: Callable[..., Layer], *inputs: Layer, name: str = "if"
) -> Layer:
    """Return an If of two functions of the same inputs, each with one result."""
    layer, bodies = ops.if_op(condition, name=name), []
    for function in (then, other):
        inside = [ops.parameter(x.output().shape, x.output().element_type, name="inside") for x in inputs]
        bodies.append(ovir.Model([ops.result(function(*inside), name="out")], inside))
    layer.set_then_body(bodies[0])
    layer.set_else_body(bodies[1])
    for x, first, second in zip(inputs, bodies[0].inputs, bodies[1].inputs, strict=True):
        layer.set_input(x, first, second)
    layer.set_output(bodies[0].outputs[0], bodies[1].outputs[0])
    return layer


def conditional() -> ovir.Model:
    """Return a model with an If, whose bodies have one layer called ``inner`` each."""
    x, chosen = ops.parameter([2], "f32", name="x"), ops.parameter([], "boolean", name="chosen")
    relu, absolute = (partial(function, name="inner") for function in (ops.relu, ops.abs))
    return ovir.Model([choice(chosen, relu, absolute, x).outputs[0]], [x, chosen])


def looped(step: Step, size: int = 2, after: Callable[..., Layer] = ops.relu) -> ovir.Model:
    """Return a model with three iterations of a step, whose layers are those of the body of ``loop``, and of a layer
    after it."""
    x, state = (ops.parameter([size], "f32", name=name) for name in ("x", "state"))
    last = step(state)
    loop = ops.loop(ops.constant(np.int64(3)), ops.constant(np.array(True)), name="loop")
    loop.set_function(ovir.Model([last, ops.constant(np.array(True))], [state], "body"))
    loop.set_special_body_ports([-1, 1])
    loop.set_merged_input(state, x.output(0), last.output(0))
    return ovir.Model([after(loop.get_iter_value(last.output(0), -1), name="out")], [x], "loop")
