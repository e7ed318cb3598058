"""Models of a given number of layers, one of which may be replaced by a culprit."""

from collections.abc import Callable

import numpy as np

import ovir
from ovir import opset13 as ops
from ovir.graph.layers import LayerOrPort

Culprit = Callable[[LayerOrPort], LayerOrPort]
"""Makes a layer of the type of the tensor that it reads."""


class Maker:
    """Counts the layers that are made, without constants, and puts the culprits in their places."""

    def __init__(self, culprits: dict[int, Culprit]) -> None:
        self.culprits = culprits
        self.count = 0
        self.rng = np.random.default_rng(0)

    def __call__(self, layer: ovir.Layer) -> LayerOrPort:
        """Return the layer, or the culprit that follows it if its number is reached."""
        self.count += 1
        culprit = self.culprits.pop(self.count, None)
        if culprit is None:
            return layer
        self.count += 1
        return culprit(layer)

    def weights(self, *shape: int) -> ovir.Layer:
        return ops.constant((self.rng.standard_normal(shape) / 4).astype(np.float32))


def chain(size: int, culprits: dict[int, Culprit]) -> ovir.Model:
    """Layers in a row, of which every third one has a constant."""
    make = Maker(dict(culprits))
    x = ops.parameter([1, 4, 6], "f32", name="x")
    y: LayerOrPort = x
    while make.count < size:
        y = make(ops.relu(y))
        y = make(ops.abs(y))
        y = make(ops.add(y, make.weights(1, 4, 6)))
    return ovir.Model([ops.result(y, name="out")], [x], "chain")


def branches(size: int, culprits: dict[int, Culprit]) -> ovir.Model:
    """Blocks of two branches with a shortcut around them, two inputs and an output of each of the last two blocks."""
    make = Maker(dict(culprits))
    x, z = ops.parameter([1, 4, 6], "f32", name="x"), ops.parameter([1, 4, 6], "f32", name="z")
    y: LayerOrPort = make(ops.add(x, z))
    before = y
    while make.count < size:
        before = y
        one = make(ops.relu(make(ops.matmul(y, make.weights(6, 6), False, False))))
        two = make(ops.sigmoid(make(ops.multiply(y, make.weights(1, 4, 1)))))
        joined = make(ops.add(make(ops.multiply(one, two)), z))
        y = make(ops.add(y, joined))
    return ovir.Model([ops.result(y, name="out"), ops.result(before, name="out2")], [x, z], "branches")


def transformer(size: int, culprits: dict[int, Culprit]) -> ovir.Model:
    """Blocks of attention with two heads, whose shapes follow from ShapeOf, and a feed-forward part."""
    make = Maker(dict(culprits))
    x = ops.parameter([1, 4, 6], "f32", name="x")
    y: LayerOrPort = x
    while make.count < size:
        length = make(ops.gather(make(ops.shape_of(y)), [1], 0))
        shape = make(ops.concat([[1], length, [2, 3]], 0))
        heads = []
        for _ in range(3):
            part = make(ops.add(make(ops.matmul(y, make.weights(6, 6), False, False)), make.weights(1, 1, 6)))
            heads.append(make(ops.transpose(make(ops.reshape(part, shape, False)), [0, 2, 1, 3])))
        q, k, v = heads
        scores = make(ops.softmax(make(ops.multiply(make(ops.matmul(q, k, False, True)), np.float32(0.5))), -1))
        mixed = make(ops.transpose(make(ops.matmul(scores, v, False, False)), [0, 2, 1, 3]))
        flat = make(ops.reshape(mixed, make(ops.concat([[1], length, [6]], 0)), False))
        y = make(ops.add(y, make(ops.matmul(flat, make.weights(6, 6), False, False))))
        wide = make(ops.gelu(make(ops.matmul(y, make.weights(6, 12), False, False)), "erf"))
        y = make(ops.add(y, make(ops.matmul(wide, make.weights(12, 6), False, False))))
        y = make(ops.mvn(y, [-1], True, 1e-5, "inside_sqrt"))
    return ovir.Model([ops.result(y, name="out")], [x], "transformer")
