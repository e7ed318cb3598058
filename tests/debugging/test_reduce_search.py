"""One culprit among a thousand layers: fewer than ten layers are left after fewer than 150 runs.

The numbers hardly depend on the number of layers, so most tests have smaller models.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from large_models import Culprit, branches, chain, transformer

import ovir
from ovir import opset13 as ops
from ovir.graph.layers import LayerOrPort

pytestmark = pytest.mark.slow

SIZE = 1000
SMALLER = 200
MAKERS = {maker.__name__: maker for maker in (chain, branches, transformer)}
Check = Callable[[str], int]


def _named(name: str) -> Culprit:
    return lambda x: ops.floor(x, name=name)


def _sqrt(x: LayerOrPort) -> LayerOrPort:
    return ops.sqrt(ops.subtract(x, np.float32(1e6)), name="culprit")


def _has_floors(*names: str) -> Check:
    """Fail if the model has all layers of these names, which are Floor layers."""
    return _contains(*(f'name="{name}" type="Floor"' for name in names))


def _contains(*texts: str) -> Check:
    """Fail if the file contains all texts."""

    def check(path: str) -> int:
        text = Path(path).read_text()
        return int(all(wanted in text for wanted in texts))

    return check


def _gives_nan(output: str | None = None) -> Check:
    """Fail if an output, or the output of this name, is NaN; another status if there is none of this name."""

    def check(path: str) -> int:
        model = ovir.read_model(path)
        results = ovir.compile_model(model)(ovir.random_inputs(model))
        if output is None:
            return int(any(np.isnan(array).any() for array in results.values()))
        return int(np.isnan(results[output]).any()) if output in results else 2

    return check


def _has_constant(value: float) -> Check:
    def check(path: str) -> int:
        constants = (layer for layer in ovir.read_model(path).layers if layer.type == "Const")
        return int(any((layer.operator.data == value).any() for layer in constants))

    return check


def _runs_out_of_range(path: str) -> int:
    model = ovir.read_model(path)
    try:
        ovir.compile_model(model, strict=True)(ovir.random_inputs(model))
    except ovir.RunError:
        return 1
    return 0


def _gather(x: LayerOrPort) -> LayerOrPort:
    """Read rows by indices that follow from the values of x, most of which are out of range."""
    indices = ops.convert(ops.add(ops.floor(x), np.float32(100)), "i32")
    rows = ops.gather(np.zeros((3, 1), np.float32), indices, 0, name="culprit")
    return ops.add(x, ops.squeeze(rows, [-1]))


def _find(maker: str, culprits: dict[int, Culprit], check: Check, size: int = SMALLER) -> ovir.Reduction:
    """Put culprits at places in thousandths of the model, and reduce it."""
    model = MAKERS[maker](size, {place * size // 1000: culprit for place, culprit in culprits.items()})
    found = ovir.reduce(model, check)
    assert found.layers_before >= size
    assert found.runs < 150
    assert found.layers < 10
    assert found.complete
    return found


@pytest.mark.parametrize("maker", MAKERS)
def test_one_layer(maker: str) -> None:
    found = _find(maker, {617: _named("culprit")}, _has_floors("culprit"), SIZE)
    assert len(found.model.layers) < 10
    assert [layer.name for layer in found.model.layers if layer.inputs and layer.outputs] == ["culprit"]


@pytest.mark.parametrize(("maker", "size"), [("chain", SMALLER), ("branches", SIZE), ("transformer", SMALLER)])
def test_a_pair_far_apart(maker: str, size: int) -> None:
    culprits = {211: _named("first"), 873: _named("second")}
    found = _find(maker, culprits, _has_floors("first", "second"), size)
    assert found.layers == 2
    assert len(found.model.layers) < 10


def test_four_layers() -> None:
    culprits = {place: _named(f"culprit{place}") for place in (50, 423, 450, 951)}
    assert _find("branches", culprits, _has_floors(*(f"culprit{place}" for place in culprits))).layers == 4


def test_an_attribute() -> None:
    found = _find("transformer", {400: lambda x: ops.softmax(x, 0)}, _contains('axis="0"'))
    assert found.layers == 1


def test_a_shape() -> None:
    def widened(x: LayerOrPort) -> LayerOrPort:
        return ops.reduce_mean(ops.concat([x] * 7, 1), [1], True)

    found = _find("branches", {702: widened}, _contains("<dim>28</dim>"))
    assert found.layers <= 2


def test_a_value_of_a_constant() -> None:
    culprit = ops.constant(np.arange(24, dtype=np.float32).reshape(1, 4, 6) / 10 + 40)
    found = _find("chain", {333: lambda x: ops.maximum(x, culprit)}, _has_constant(np.float32(42.3)))
    assert found.layers <= 1


@pytest.mark.parametrize("maker", MAKERS)
def test_nan_in_any_output(maker: str) -> None:
    found = _find(maker, {333: _sqrt}, _gives_nan())
    assert "culprit" in [layer.name for layer in found.model.layers]


def test_nan_in_a_named_output_passes_through_the_layers_behind() -> None:
    found = _find("branches", {333: _sqrt}, _gives_nan("out"))
    assert "culprit" in [layer.name for layer in found.model.layers]


def test_computed_indices_become_constants() -> None:
    found = _find("chain", {333: _gather}, _runs_out_of_range)
    assert "culprit" in [layer.name for layer in found.model.layers]
