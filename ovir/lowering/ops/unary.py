"""Identity and ErfInv."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovir import opset7 as ops
from ovir.core.element_types import f32, f64
from ovir.graph.layers import Layer, Port
from ovir.lowering.registry import lowers
from ovir.lowering.sizes import polynomial, scalar
from ovir.ops.unary import ErfInv, Identity


@lowers("Identity", 16)
def identity(op: Identity, data: Port) -> Port:
    return data


# The coefficients of Giles' polynomials (Approximating the erfinv function, 2010), the highest power first.
_CENTRAL = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503),
    *(-0.00417768164, 0.246640727, 1.50140941),
)
_TAIL = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613),
    *(0.00943887047, 1.00167406, 2.83297682),
)
# Polynomials for f64, fitted to erfinv(x) / x with 40 digits at the nodes of Chebyshev, the highest power first.
_CENTRAL_F64 = (
    *(1.0928071162617886e-18, 2.499971227334203e-18, -1.2890376602058285e-16, 2.116677262132211e-16),
    *(6.5806359122985935e-15, -4.289703814851322e-14, -8.10622163184884e-14, 2.651291568351266e-12),
    *(-1.2977489104996726e-11, -5.4239068261012425e-11, 1.0512200794132154e-09, -4.11237950518973e-09),
    *(-2.9070386120922482e-08, 4.2347831976057054e-07, -1.3654691804754124e-06, -1.3882522908317002e-05),
    *(0.0001867342080217662, -0.0007407025343730223, -0.006033670871427106, 0.24015818242561737),
    *(1.6536545626831027,),
)
_MIDDLE_F64 = (
    *(-2.696774942073746e-07, 2.3550298844342487e-07, 1.4970484481225381e-06, -4.228071935535918e-06),
    *(2.9266306096958224e-06, 1.2587390344475703e-05, -4.731927267844687e-05, 6.825143845270289e-05),
    *(2.4031312787082385e-05, -0.00035503186794597595, 0.0009532893573994072, -0.0016882760633476935),
    *(0.002491442097369406, -0.0037512084871124023, 0.005370914553561692, 1.0052589676939185),
    *(3.0838856104922208,),
)
_TAIL_F64 = (
    *(-2.593477172782433e-10, 1.4061495622270323e-09, -3.775837616092054e-09, 7.767168259489013e-09),
    *(-1.4979796817260193e-08, 2.903351625975571e-08, -6.769723086952105e-08, 2.290506786708645e-07),
    *(-9.929887298150949e-07, 4.526053337974628e-06, -1.9681776827811103e-05, 7.599527781738656e-05),
    *(-0.00021503011942341832, -0.00013871931835191366, 1.010300464864538, 4.8499064014085835),
)


@lowers("ErfInv", 17)
def erf_inv(op: ErfInv, data: Port) -> Layer:
    """Multiply by a polynomial of ln(1 - x^2), one around the center, and one or two of its root towards the ends."""
    computed = f64 if data.element_type == f64 else f32
    x = ops.convert(data, computed)

    def of(value: float) -> Layer:
        return scalar(value, computed)

    def around(center: float, at: Layer, coefficients: Sequence[float]) -> Layer:
        return polynomial(ops.subtract(at, of(center)), *coefficients)

    # two logarithms, because 1 - x^2 loses the digits of x near 1
    log = ops.add(ops.log(ops.subtract(of(1), x)), ops.log(ops.add(of(1), x)))
    w = ops.negative(log)
    root = ops.sqrt(ops.maximum(w, of(0)))

    if computed == f64:
        far = ops.select(ops.less(w, of(16)), around(3.25, root, _MIDDLE_F64), around(5, root, _TAIL_F64))
        factor = ops.select(ops.less(w, of(6.25)), around(3.125, w, _CENTRAL_F64), far)
    else:
        factor = ops.select(ops.less(w, of(5)), around(2.5, w, _CENTRAL), around(3, root, _TAIL))
    result = ops.multiply(x, factor)
    at_end = ops.multiply(ops.sign(x), of(np.inf))
    result = ops.select(ops.equal(ops.abs(x), of(1)), at_end, result)
    result = ops.select(ops.less_equal(ops.abs(x), of(1)), result, of(np.nan))
    return ops.convert(result, data.element_type)
