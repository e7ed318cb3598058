"""The error function in f64, for which onnxruntime has no kernel, and its inverse, which ONNX lacks.

All tensors are f64. ``ovir.kernels.erf`` explains the formulas.
"""

from __future__ import annotations

from math import pi, sqrt

from ovir.export.graph import Graph
from ovir.export.tensors import Tensor
from ovir.kernels.erf import ERF_FAR, ERF_NEAR


def erf(graph: Graph, x: Tensor) -> Tensor:
    """Return the error function of each element."""
    size = graph.Clip(graph.Abs(x), 0, 6)
    return graph.Mul(graph.Sign(x), _erf_of_size(graph, size, _complement(graph, size)))


def _erf_of_size(graph: Graph, size: Tensor, complement: Tensor) -> Tensor:
    above, below = ERF_NEAR
    square = graph.Mul(size, size)
    near = graph.Div(graph.Mul(size, _polynomial(graph, above, square)), _polynomial(graph, below, square))
    return graph.Where(graph.Less(size, 1), near, graph.Sub(1, complement))


def _complement(graph: Graph, x: Tensor) -> Tensor:
    """Return 1 - erf(x) of numbers from 1 to 6."""
    above, below = ERF_FAR
    quotient = graph.Div(_polynomial(graph, above, x), _polynomial(graph, below, x))
    return graph.Mul(graph.Exp(graph.Neg(graph.Mul(x, x))), quotient)


def _polynomial(graph: Graph, coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    """Return the sum of coefficients[i] * x^i."""
    *rest, last = coefficients
    result = graph.Mul(x, last)
    for coefficient in rest[:0:-1]:
        result = graph.Mul(graph.Add(result, coefficient), x)
    return graph.Add(result, rest[0])


def erfinv(graph: Graph, x: Tensor) -> Tensor:
    """Return y with erf(y) = x for each element: infinite at -1 and 1, NaN outside."""
    size = graph.Abs(x)
    rest = graph.Sub(1, size)
    y = _start(graph, size, rest)
    for _ in range(2):
        y = _refined(graph, y, size, rest)
    ends = graph.Where(graph.Equal(size, 1), float("inf"), y)
    return graph.Mul(graph.Sign(x), ends)


def _start(graph: Graph, size: Tensor, rest: Tensor) -> Tensor:
    """Return a closed formula that is right to 0.2 %."""
    log = graph.Log(graph.Mul(rest, graph.Add(size, 1)))
    a = 0.147
    half = graph.Add(graph.Mul(log, 0.5), 2 / (pi * a))
    root = graph.Sqrt(graph.Sub(graph.Mul(half, half), graph.Div(log, a)))
    return graph.Sqrt(graph.Max(graph.Sub(root, half), 0))


def _refined(graph: Graph, y: Tensor, size: Tensor, rest: Tensor) -> Tensor:
    """Return y after a step that triples the number of correct digits."""
    complement = _complement(graph, y)
    # Near 1 the difference erf(y) - size is lost to rounding; the difference of the complements is not.
    near, far = graph.Sub(_erf_of_size(graph, y, complement), size), graph.Sub(rest, complement)
    error = graph.Where(graph.Less(y, 1), near, far)
    step = graph.Mul(graph.Mul(error, graph.Exp(graph.Mul(y, y))), sqrt(pi) / 2)
    return graph.Sub(y, graph.Div(step, graph.Add(graph.Mul(y, step), 1)))
