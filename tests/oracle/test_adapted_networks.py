"""OpenVINO computes of adapted networks what ovir computes of the networks that were built for these sizes."""

from pathlib import Path

import numpy as np
import pytest
from support.adaptable import ADAPTABLE, Make, opened, results

import ovir
from ovir.debugging.engines.process import EngineProcess

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("make", ADAPTABLE, ids=lambda make: make.__name__)
def test_openvino_runs_adapted_networks(make: Make, openvino: EngineProcess, tmp_path: Path) -> None:
    """A layer that an edit adds to a model of a file has all attributes, which OpenVINO requires."""
    old, *others = ADAPTABLE[make]
    ovir.save_model(make(*old), tmp_path / "old.xml")
    model = ovir.read_model(tmp_path / "old.xml")
    model.reshape(opened(make, old, *others), adapt=True, verify=False)
    with openvino.compiled(model) as loaded:
        for sizes in others:
            feeds = list(ovir.random_inputs(make(*sizes), 5).values())
            for found, expected in zip(loaded.infer(feeds), results(make(*sizes), feeds), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
