"""Models with another batch compute in OpenVINO what ovir computes, which other tests compare with single calls."""

from collections.abc import Callable

import numpy as np
import pytest
from support.batches import PINNED

import ovir
from ovir.debugging.engines.process import EngineProcess

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("make", PINNED)
@pytest.mark.parametrize("number", [3, -1])
def test_openvino_agrees_on_models_with_another_batch(
    make: Callable[[int], ovir.Model], number: int, openvino: EngineProcess
) -> None:
    model = make(1)
    model.set_batch(number)
    feeds = list(ovir.random_inputs(make(3), 1).values())
    with openvino.compiled(model) as loaded:
        for found, own in zip(loaded.infer(feeds), ovir.compile_model(model)(feeds).values(), strict=True):
            np.testing.assert_allclose(found, own, rtol=1e-4, atol=1e-5)
