"""A small model to compare with changed copies of itself."""

import numpy as np

import ovir
from ovir import opset13 as ops

X = np.float32([[1, -2, 3, 0.5], [0.1, 0.2, -0.3, 0.4]])


def small_net(*, scale: float = 1.0, axis: int = 1, element_type: str = "f32") -> ovir.Model:
    """x [?,4] -> product -> tanh -> soft; soft and the shape of tanh are outputs."""
    x = ops.parameter([-1, 4], element_type, name="x", tensor_names="x")
    weights = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    constant = ops.constant((weights * np.float32(scale)).astype(x.element_type.to_dtype()), name="weights")
    product = ops.matmul(x, constant, False, False, name="product", tensor_names="product")
    tanh = ops.tanh(product, name="tanh", tensor_names="tanh")
    soft = ops.softmax(tanh, axis, name="soft", tensor_names="soft")
    rows = ops.shape_of(tanh, name="rows", tensor_names="rows")
    return ovir.Model([soft, rows], [x], "small")
