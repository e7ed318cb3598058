"""Inference for chosen sizes knows as much as the inference of a model that has these sizes from the beginning."""

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from support.random_models import models

import ovir
from ovir.checks.owners import OwningEngine, counted_sizes
from ovir.diagnostics.errors import Diagnostics
from ovir.fuzzing.models import Choice
from ovir.inference.models import infer_into, reshaped_parameters, set_parameters


def assert_equal_shapes(model: ovir.Model) -> None:
    """Compare both inferences for the sizes that the gate for untrusted files chooses."""
    shapes = {index: counted_sizes(port.shape) for index, port in enumerate(model.inputs)}
    whole = model.clone()
    set_parameters(reshaped_parameters(whole, shapes))
    infer_into(whole, found := Diagnostics())
    if found.fatal:
        return  # a layer keeps what is known of it
    set_parameters(reshaped_parameters(model, shapes))
    OwningEngine().infer(model)
    for layer, other in zip(model.layers, whole.layers, strict=True):
        for port, expected in zip(layer.outputs, other.outputs, strict=True):
            assert port.shape.merged_with(expected.shape) == port.shape, (layer.title, expected.shape)


@pytest.mark.slow
@given(models())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_models(model: ovir.Model) -> None:
    assert_equal_shapes(model)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 240, 40))
def test_operations_with_open_sizes(first: int) -> None:
    for number in range(first, first + 40):
        try:
            made = Choice().make(number)
        except ovir.OvirError:  # some random models do not fit together
            continue
        if made is None:
            continue
        for axes in (slice(0, 1), slice(None), slice(1, None)):
            model = made[0].clone()
            open_sizes = {i: list(port.shape.dims) for i, port in enumerate(model.inputs) if port.shape.rank}
            for dims in open_sizes.values():
                dims[axes] = [-1] * len(dims[axes])
            with contextlib.suppress(ovir.OvirError):
                model.reshape(open_sizes)
            assert_equal_shapes(model)
