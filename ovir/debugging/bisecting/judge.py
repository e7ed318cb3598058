"""Compares what a device computes for a model with what ovir computes."""

from __future__ import annotations

from collections.abc import Sequence

from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.debugging.bisecting.bisection import Verdict
from ovir.debugging.comparison import severity
from ovir.debugging.criterion import Criterion
from ovir.debugging.devices import Device
from ovir.debugging.reductions import Depths
from ovir.debugging.tensor_comparison import TensorComparison
from ovir.debugging.walk import Walk, WalkPlan
from ovir.diagnostics.errors import ModelError, RunError
from ovir.engines.process import EngineMissingError
from ovir.graph.layers import Port
from ovir.model import Model


class Judge:
    """Runs models in ovir and on a device, and compares all outputs."""

    def __init__(self, device: Device, criterion: Criterion) -> None:
        self.runs = 0
        self._device = device
        self._criterion = criterion

    def __call__(self, model: Model, feeds: Sequence[Array]) -> Verdict:
        """Return how far the outputs agree. Raises RunError if ovir cannot run the model."""
        depths = Depths()
        walk = Walk(WalkPlan(model, with_constants=False), feeds)
        for step in walk:
            depths.of(step)
        expected = walk.finish()
        self.runs += 1
        try:
            found = self._device.run(model, feeds)
        except EngineMissingError:
            raise
        except (RunError, ModelError) as error:
            return Verdict(within=False, problem=error.diagnostic.message)
        worst: tuple[Port, TensorComparison] | None = None
        for port, actual, reference in zip(model.outputs, found, expected, strict=True):
            terms, steps = depths.of_port(port.source) if port.source is not None else (0.0, 0.0)
            tolerance = self._criterion.between(_type(port, reference), actual, self._device.precision, terms, steps)
            compared = self._criterion.compare(actual, reference, tolerance)
            if worst is None or severity(compared) > severity(worst[1]):
                worst = port, compared
        if worst is None:
            return Verdict(within=True)
        return Verdict(worst[1].within, worst[0].any_name, worst[1])


def _type(port: Port, array: Array) -> ElementType:
    return ElementType.from_dtype(array.dtype) if port.element_type.is_dynamic else port.element_type
