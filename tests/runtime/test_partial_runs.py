"""Runs of some steps compute what runs of the whole model do."""

from typing import Any

import numpy as np
import pytest
from runtime.test_emulation import rounded
from runtime.test_taps import Models, assert_same

import ovir
from ovir.core.arrays import Array
from ovir.runtime import partial_runs
from ovir.runtime.emulation import Emulation
from ovir.runtime.partial_runs import PartialRuns

DATA = [np.float32([1.5, -700.3, 0.1])]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_steps_that_are_emulated_and_steps_that_are_not(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []
    run = partial_runs._Part.run
    monkeypatch.setattr(partial_runs._Part, "run", lambda part, *tensors: (ran.append(part), run(part, *tensors))[1])
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
    for index in steps:
        dependent = [index]
        for later in steps[index + 1 :]:
            if any(set(runs.steps[later].inputs) & set(runs.steps[earlier].outputs) for earlier in dependent):
                dependent.append(later)
        ran.clear()
        runs.rerun(recorded, [index])
        assert {part._plan.steps[0].layer.key for part in ran} <= {runs.steps[i].layer.key for i in dependent}
    for index in models.rng.sample(steps, min(3, len(steps))):
        some = [*models.rng.sample(steps, models.rng.randint(0, len(steps))), index]
        assert_same(runs.rerun(recorded, some), runs.run(known, some), some)
        found = {port: array for port, array in runs.run_step(recorded, index) if port in runs._results}
        alone = runs.rerun(recorded, [index])
        for port, array in zip(runs._results, alone, strict=True):
            np.testing.assert_array_equal(found.get(port, array), array)
    for index in [None, *models.rng.sample(runs.candidates, min(3, len(runs.candidates)))]:
        keys = [] if index is None else runs.keys(index)
        others = [layer.key for layer in model.walk() if layer.key not in keys]
        kept = ovir.compile_model(model, emulate=Emulation("bf16", others))(DATA)
        assert_same(list(kept.values()), runs.run(known, [] if index is None else [index]), keys)
