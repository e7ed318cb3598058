"""Runs a model in ovir layer by layer, at the pace of whoever asks for the next layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ovir.core.arrays import Array
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.inference.constant_layers import all_constant_layers
from ovir.kernels.blas import single_thread
from ovir.model import Model
from ovir.runtime.bindings import Bindings
from ovir.runtime.compiled import CompiledModel
from ovir.runtime.executor import SeenStep
from ovir.runtime.listeners import Reports
from ovir.runtime.state import Variables

ENDS = ("Parameter", "Result", "Const")
"""Layers that compute nothing."""


class WalkPlan:
    """The plan of a model in which layers are steps that other plans fold. One walk at a time may use it."""

    def __init__(self, model: Model, *, with_constants: bool) -> None:
        """Plan a model: all layers that compute something are steps. Without ``with_constants``, those that depend on
        constants alone are folded."""
        folded = set() if with_constants else all_constant_layers(model)
        self.model = model
        self.layers = [
            layer for layer in model.layers if not layer.is_dead and layer.type not in ENDS and layer not in folded
        ]
        """The steps, in order."""
        self.variables = Variables()
        keep = frozenset(layer.key for layer in self.layers)
        self.bindings = Bindings(CompiledModel(model), self.variables, keep, watched=True)


class Walk(Iterator[SeenStep]):
    """One run of a model. Iterating runs the next layer and returns it with its arrays."""

    def __init__(self, plan: WalkPlan, inputs: Sequence[Array]) -> None:
        plan.variables.reset()
        self._executor = plan.bindings.executor_for(inputs)
        self._steps = self._executor.walk(inputs)
        self._reports = Reports(strict=False)
        self.results: list[Array] | None = None
        """The outputs, after the last layer has run."""

    def __next__(self) -> SeenStep:
        def report(*what: object) -> None:
            code, message = what
            self._reports.add(code, message, self._executor.innermost)  # type: ignore[arg-type]

        try:
            with np.errstate(all="ignore"), single_thread, reporting_to(report):
                return next(self._steps)
        except StopIteration as end:
            if self.results is None:
                self.results = end.value
            raise StopIteration from None

    def finish(self) -> list[Array]:
        """Run the layers that remain, and return the outputs."""
        for _ in self:
            pass
        assert self.results is not None
        return self.results

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Return the warnings of kernels about values on which devices may differ."""
        return self._reports.found
