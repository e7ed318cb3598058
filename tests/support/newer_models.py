"""Models with operation versions that older releases do not know."""

import ovir
from ovir import opset13 as ops


def attention() -> ovir.Model:
    """Return a model with a causal attention of any batch, and a layer after it."""
    query, key = (ops.parameter([-1, length, 8], "f32", name=name) for name, length in (("query", 4), ("key", 5)))
    attended = ops.scaled_dot_product_attention(query, key, key, causal=True, name="attn", tensor_names={"context"})
    return ovir.Model([ops.relu(attended, name="relu", tensor_names="out")], [query, key])


def faulty() -> ovir.Model:
    """Return a model with a layer that can be rewritten, and two that cannot."""
    x, scale = ops.parameter([4, 4], "f32", name="x"), ops.constant(1.0, "f32")
    converted = ops.fake_convert(ops.softsign(x, name="sign"), scale, name="fake")
    drawn = ops.multinomial(converted, 2, "i64", with_replacement=True, log_probs=False, name="drawn")
    return ovir.Model([drawn], [x])


def versions(model: ovir.Model) -> set[str]:
    """Return the operation versions of a model and its bodies."""
    return {f"{layer.operator.type}-{layer.operator.opset}" for layer in model.walk() if layer.operator is not None}
