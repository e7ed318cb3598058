"""Small models with bodies."""

from collections.abc import Callable
from functools import partial

import numpy as np

import ovir
from ovir import opset13 as ops
from ovir.graph.layers import Layer, LayerOrPort, Port

Step = Callable[[Layer], Layer]


def either(condition: LayerOrPort, value: Layer, then: Step, otherwise: Step, name: str = "if") -> Port:
    """Return the output of an If, whose bodies apply one step each to a value."""
    layer, bodies = ops.if_op(condition, name=name), []
    for step in (then, otherwise):
        inside = ops.parameter(value.output().shape, value.output().element_type, name="inside")
        bodies.append(ovir.Model([ops.result(step(inside), name="out")], [inside]))
    layer.set_then_body(bodies[0])
    layer.set_else_body(bodies[1])
    layer.set_input(value, bodies[0].inputs[0], bodies[1].inputs[0])
    return layer.set_output(bodies[0].outputs[0], bodies[1].outputs[0])


def conditional() -> ovir.Model:
    """Return a model with an If, whose bodies have one layer called ``inner`` each."""
    x, chosen = ops.parameter([2], "f32", name="x"), ops.parameter([], "boolean", name="chosen")
    relu, absolute = (partial(function, name="inner") for function in (ops.relu, ops.abs))
    return ovir.Model([either(chosen, x, relu, absolute)], [x, chosen])


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
