"""Runs of some steps compute what runs of the whole model do."""

import numpy as np
import pytest
from runtime.test_emulation import rounded
from runtime.test_taps import Models, assert_same

import ovir
from ovir.core.arrays import Array
from ovir.runtime.emulation import Emulation
from ovir.runtime.partial_runs import PartialRuns

DATA = [np.float32([1.5, -700.3, 0.1])]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_steps_that_are_emulated_and_steps_that_are_not(seed: int) -> None:
    models = Models(seed)
    model = models.model()
    runs = PartialRuns(model, Emulation("bf16"))
    known, steps = runs.inputs(DATA), range(len(runs.steps))
    recorded = runs.record(known, np.copy)
    exact, emulated = (list(ovir.compile_model(model, emulate=mode)(DATA).values()) for mode in (None, "bf16"))

    def narrow(arrays: list[Array]) -> list[Array]:  # constants are outputs of no step
        return [rounded(array, "bf16") for array in arrays]

    assert_same(runs.outputs(recorded), exact, "recorded")
    assert_same(runs.run(known, ()), exact, "no step")
    assert_same(narrow(runs.run(known, steps)), narrow(emulated), "all steps")
    assert_same(runs.run(known, runs.candidates), runs.run(known, steps), "candidates")
    for index in models.rng.sample(steps, min(3, len(steps))):
        some = [*models.rng.sample(steps, models.rng.randint(0, len(steps))), index]
        assert_same(runs.rerun(recorded, some), runs.run(known, some), some)
        found = {port: array for port, array in runs.run_step(recorded, index) if port in runs._results}
        alone = runs.rerun(recorded, [index])
        for port, array in zip(runs._results, alone, strict=True):
            np.testing.assert_array_equal(found.get(port, array), array)
    layers = [key for index in steps for key in runs.keys(index)]
    others = [layer.key for layer in model.walk() if layer.key not in layers]
    kept = ovir.compile_model(model, emulate=Emulation("bf16", [*layers, *others]))(DATA)
    assert_same(list(kept.values()), exact, "all layers are kept")
