"""One run of a model in ovir, layer by layer, with the facts that comparisons need."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ovir.core.arrays import Array
from ovir.core.blas import single_thread
from ovir.debugging.layerwise_run import Depths
from ovir.diagnostics.codes import ENGINE
from ovir.diagnostics.diagnostic import diagnose
from ovir.diagnostics.errors import OvirError, RunError
from ovir.diagnostics.kernel_warnings import reporting_to
from ovir.graph.layers import Layer, Port
from ovir.inference.known_values import as_tuple
from ovir.model import Model
from ovir.ops.color import YuvToRgbBase
from ovir.ops.infrastructure import Const
from ovir.runtime.executor import Body, SeenStep
from ovir.runtime.failures import failed, inference_for
from ovir.runtime.plan import keywords_of, require_promised, results_of
from ovir.runtime.planning import make_plan
from ovir.runtime.state import Variables

_MOST_ELEMENTS = 1 << 22
_RANDOM = ("RandomUniform", "Multinomial")
_NOISY_RUNS = 6
Change = Callable[[Port, Array], Array]
"""Makes of a tensor the one that layers read in its place."""


@dataclass
class Reference:
    """One run in ovir."""

    model: Model
    inputs: Sequence[Array]
    outputs: list[Array]
    arrays: dict[Port, Array]
    depths: Depths
    has_warnings: bool
    """Whether kernels say something about values on which devices may differ."""

    @classmethod
    def of(cls, model: Model, inputs: Sequence[Array], change: Change | None = None) -> Reference:
        """Run the kernel of each layer on arrays for which it is inferred first.

        There is no plan, which takes longer to make than a small model takes to run. Raises RunError for a layer that
        fails, and for a tensor that is too large to be worth a comparison.
        """
        arrays: dict[Port, Array] = dict(zip(model.inputs, inputs, strict=True))
        depths, variables, warnings = Depths(), Variables(), list[str]()
        report = reporting_to(lambda code, message, effect: warnings.append(message))
        with np.errstate(all="ignore"), single_thread, report:
            for layer in model.layers:
                results: list[Any] = [arrays.get(port) for port in layer.outputs]
                if layer.type == "Result" or layer.is_dead:
                    continue
                if isinstance(layer.operator, Const):
                    results = [layer.operator.data]
                elif layer.type != "Parameter":
                    read = [arrays[port.source] for port in layer.inputs if port.source is not None]
                    results = _outputs(layer, read, variables)
                    depths.of(SeenStep(layer, list(read), results))
                for port, array in zip(layer.outputs, results, strict=False):
                    arrays[port] = array if change is None else change(port, array)
        outputs = [arrays[port.source] for port in model.outputs if port.source is not None]
        return cls(model, inputs, outputs, arrays, depths, bool(warnings))

    @property
    def is_repeatable(self) -> bool:
        """Return whether a second run gives the same results."""
        layers = list(self.model.walk())
        is_pure = all(layer.operator is None or layer.operator.pure or layer.bodies for layer in layers)
        return is_pure or not any(layer.type in _RANDOM for layer in layers)

    def with_rounding_errors(self) -> Iterator[list[Array]]:
        """Yield the outputs of runs in which a rounding error is added to each tensor of real numbers, and to colors
        before they become integers."""
        rng = np.random.default_rng(0)

        def changed(port: Port, array: Array, sign: int) -> Array:
            exact, unit = self.arrays[port], _ROUNDING.get(port.element_type.name)
            if isinstance(port.layer.operator, YuvToRgbBase) and unit is None:
                return self._colors(port.layer, sign).astype(array.dtype)
            if unit is None or port.layer.type == "Const" or not port.readers or array.shape != exact.shape:
                return array
            wide = exact.astype(np.float64)
            ports = [x.source for x in port.layer.inputs] if _SUMS.fullmatch(port.layer.type) else []
            inputs = [self.arrays[x] for x in ports if x is not None and self.arrays[x].dtype.kind == "f"]
            terms = max((np.abs(x[np.isfinite(x)]).max(initial=0) for x in inputs), default=0.0)
            error = unit * np.where(np.isfinite(wide), np.abs(wide) + terms, 0)
            return np.asarray(array + np.asarray(rng.uniform(-1, 1, wide.shape) * error).astype(array.dtype))

        for number in range(_NOISY_RUNS):
            try:
                yield Reference.of(self.model, self.inputs, partial(changed, sign=(-1) ** number)).outputs
            except OvirError:  # a size depends on rounding
                continue

    def _colors(self, layer: Layer, sign: int) -> Array:
        """Return the integers that a conversion of colors gives if halves are rounded up or, by the sign, down."""
        assert layer.operator is not None
        read = [self.arrays[port.source].astype(np.float32) for port in layer.inputs if port.source is not None]
        return np.rint(np.asarray(layer.operator.run(*read), np.float64) + sign * 255 * _ROUNDING["f32"])


def _outputs(layer: Layer, inputs: list[Array], variables: Variables) -> list[Any]:
    op = layer.operator
    if op is None or not hasattr(op, "run"):
        raise RunError(diagnose(ENGINE, f"ovir does not execute {layer.type}", layer.place))
    try:
        infer = inference_for(layer, inputs)
        types = [port.type for port in layer.inputs] if infer is None else infer.args
        outputs = [port.type for port in layer.outputs] if infer is None else as_tuple(infer())
        for tensor in outputs:
            if tensor.shape.size().lower > _MOST_ELEMENTS:
                raise RunError(diagnose(ENGINE, f"{tensor} is too large to be compared", layer.place))
        run, keywords = op.applied(types, outputs).run, dict[str, Any]()
        takes = keywords_of(run)
        if "bodies" in takes:
            keywords["bodies"] = {key: Body(make_plan(body), variables, {}) for key, body in layer.bodies.items()}
        if "variable" in takes:
            keywords["variable"] = variables.named(str(getattr(op, "variable_id", "")))
        results = results_of(run(*inputs, **keywords), len(layer.outputs))
        for port, array in zip(layer.outputs, results, strict=False):
            require_promised(port, array)
    except Exception as error:
        raise failed(layer, error, inputs) from error
    return list(results)


_ROUNDING = {"f64": 2.0**-22, "f32": 2.0**-22, "f16": 2.0**-11, "bf16": 2.0**-8}
_SUMS = re.compile(
    "Add|Subtract|SquaredDifference|(Floor)?Mod|CumSum|Reduce(Sum|Mean)|(Adaptive)?AvgPool|MatMul|Einsum|"
    "(Group)?Convolution(BackpropData)?|FakeQuantize|Interpolate|MVN|BatchNormInference|GroupNormalization|"
    "I?R?DFT|I?STFT"
)
"""Operations whose rounding errors depend on the size of their inputs."""
