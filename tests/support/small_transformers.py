"""Small encoders whose attention is written out, for tests of precision."""

import numpy as np

import ovir
from ovir import opset13 as ops
from ovir.core.arrays import Array
from ovir.graph.layers import Layer

TOKENS, FEATURES, HEADS = 8, 32, 4
WIDTH = FEATURES // HEADS


def data(seed: int = 3) -> Array:
    return np.random.default_rng(seed).standard_normal((1, TOKENS, FEATURES)).astype(np.float32)


def encoder(layers: int = 3, *, planted: int = 1, factor: float = 1.0, undone: bool = True) -> ovir.Model:
    """Return an encoder; in one of its layers, queries and keys are too large by a factor.

    With ``undone``, the scores are divided by its square again, so that the outputs do not depend on it in f32.
    """
    rng = np.random.default_rng(0)

    def weights(rows: int, columns: int, factor: float = 1.0) -> Layer:
        return ops.constant((rng.standard_normal((rows, columns)) * factor / np.sqrt(rows)).astype(np.float32))

    def project(x: Layer, name: str, columns: int = FEATURES, factor: float = 1.0) -> Layer:
        return ops.matmul(x, weights(x.shape[2].length, columns, factor), False, False, name=name)

    def heads(x: Layer, name: str) -> Layer:
        parts = ops.reshape(x, [1, TOKENS, HEADS, WIDTH], False, name=f"{name}/heads")
        return ops.transpose(parts, [0, 2, 1, 3], name=f"{name}/first")

    x = ops.parameter([1, TOKENS, FEATURES], "f32", name="x")
    hidden: Layer = x
    for index in range(layers):
        part, scale = f"layer{index}", factor if index == planted else 1.0
        normal = ops.mvn(hidden, [2], True, 1e-5, "INSIDE_SQRT", name=f"{part}/norm1")
        query = heads(project(normal, f"{part}/query", factor=scale), f"{part}/query")
        key = heads(project(normal, f"{part}/key", factor=scale), f"{part}/key")
        value = heads(project(normal, f"{part}/value"), f"{part}/value")
        scores = ops.matmul(query, key, False, True, name=f"{part}/scores")
        smaller = 1 / np.sqrt(WIDTH) / (scale * scale if undone else 1)
        scaled = ops.multiply(scores, ops.constant(np.float32(smaller)), name=f"{part}/scaled")
        mixed = ops.matmul(ops.softmax(scaled, -1, name=f"{part}/probabilities"), value, False, False)
        joined = ops.reshape(ops.transpose(mixed, [0, 2, 1, 3]), [1, TOKENS, FEATURES], False)
        hidden = ops.add(hidden, project(joined, f"{part}/out"), name=f"{part}/add1")
        normal = ops.mvn(hidden, [2], True, 1e-5, "INSIDE_SQRT", name=f"{part}/norm2")
        inner = ops.gelu(project(normal, f"{part}/up", 2 * FEATURES), "erf", name=f"{part}/gelu")
        hidden = ops.add(hidden, project(inner, f"{part}/down"), name=f"{part}/add2")
    return ovir.Model([hidden], [x], "encoder")
