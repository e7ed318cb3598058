"""A small model with bodies."""

import ovir
from ovir import opset13 as ops


def conditional() -> ovir.Model:
    """Return a model with an If, whose bodies have one layer called ``inner`` each."""
    x, chosen = ops.parameter([2], "f32", name="x"), ops.parameter([], "boolean", name="chosen")
    layer = ops.if_op(chosen, name="if")
    bodies = []
    for function in (ops.relu, ops.abs):
        inside = ops.parameter([2], "f32", name="inside")
        bodies.append(ovir.Model([ops.result(function(inside, name="inner"), name="out")], [inside]))
    layer.set_then_body(bodies[0])
    layer.set_else_body(bodies[1])
    layer.set_input(x, bodies[0].inputs[0], bodies[1].inputs[0])
    return ovir.Model([layer.set_output(bodies[0].outputs[0], bodies[1].outputs[0])], [x, chosen])
