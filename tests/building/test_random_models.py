"""Random models built with the functions: they run, and the code that is written for them builds them again."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from support.random_models import models
from support.rebuilding import described, difference, rebuilt

import ovir

pytestmark = pytest.mark.slow


@given(models())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_models_are_rebuilt(model: ovir.Model) -> None:
    with tempfile.TemporaryDirectory() as folder:
        again = rebuilt(model, Path(folder))
    assert difference(model, again, dict(ovir.random_inputs(model, seed=0))) == ""


@given(models())
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_layers_are_inferred_alike_alone_and_in_the_model(model: ovir.Model) -> None:
    before = described(model)
    model.infer_shapes()
    assert described(model) == before
    assert described(model.clone()) == before
