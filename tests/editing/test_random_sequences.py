"""Random sequences of edits: each one leaves an inferred model, or raises and changes nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.edited import everything, layer, operation, sample, with_body

import ovir
from ovir.model import Model

numbers = st.integers(0, 40)


def pick(items: list[Any], number: int) -> Any:
    return items[number % len(items)]


def edits(model: Model, a: int, b: int, flag: bool) -> list[Callable[[], object]]:
    """Return edits of layers and tensors that two numbers choose; many of them are refused."""
    layers = list(model.walk())
    one, other = pick(layers, a), pick(layers, b)
    new = layer(f"new {model.revision}", operation("ReLU" if flag else "LogicalNot"), 1, number=5000 + model.revision)
    return [
        lambda: model.rename({one.key: other.name if flag else f"name {model.revision}"}),
        lambda: model.add_outputs([one, other]),
        lambda: model.set_constant(one, np.ones([1 + b % 3] * (a % 3), np.int64 if flag else np.float32)),
        lambda: model.replace(one, new),
        lambda: model.insert_after((one, b % 2), new),
        lambda: model.remove(one),
        lambda: model.fold_constants(decompress=flag),
        lambda: model.prune(),
        lambda: model.strip_rt_info(),
        lambda: model.reshape({port: [1 + a % 4, 3] for port in model.inputs}),
        lambda: model.extract([one], [other]),
    ]


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(st.lists(st.tuples(st.integers(0, 10), numbers, numbers, st.booleans()), max_size=8), st.booleans())
def test_each_edit_leaves_an_inferred_model_or_changes_nothing(
    sequence: list[tuple[int, int, int, bool]], has_body: bool
) -> None:
    model = with_body() if has_body else sample()
    for kind, a, b, flag in sequence:
        if not model.layers:
            break
        before = everything(model)
        try:
            edits(model, a, b, flag)[kind]()
        except ovir.OvirError:
            assert everything(model) == before
        fresh = model.clone()
        fresh.infer_shapes()
        for edited, inferred in zip(model.walk(), fresh.walk(), strict=True):
            assert edited.key == inferred.key
            assert [str(p.type) for p in edited.outputs] == [str(p.type) for p in inferred.outputs]
    ovir.compile_model(model)
