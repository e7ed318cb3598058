"""``ovir.compare``: finds the layers at which a model differs from another model, an engine or a recording."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from ovir.analysis.metrics import top_scores
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType
from ovir.debugging.comparison import (
    Agreement,
    Comparison,
    Findings,
    Tally,
    noise,
    severity,
)
from ovir.debugging.side import Answer, Mode, Side
from ovir.debugging.sides import Against, Inputs, InputSet, as_model, open_side, sets_for
from ovir.debugging.tensor_comparison import Criterion, TensorComparison, Tolerance
from ovir.debugging.walk import Depths, Walk, WalkPlan, local
from ovir.diagnostics.diagnostic import Place
from ovir.diagnostics.errors import InputError, RunError
from ovir.engines.process import EngineMissingError
from ovir.graph.layers import Layer, Port
from ovir.model import Model
from ovir.runtime.executor import SeenStep

Progress = Callable[[int, int, str], None]
"""Called with the number of layers that are done, their total, and the layer that is next."""


def compare(
    model: Model | str | os.PathLike[str],
    against: Against = "openvino:CPU",
    *,
    inputs: Inputs = None,
    samples: int | None = None,
    seed: int = 0,
    device: str | None = None,
    config: Mapping[str, str] | None = None,
    mode: Mode | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    metric: str | None = None,
    timeout: float | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare the outputs and layers of a model in ovir with another side. The result is true if all are within
    tolerance.

    ``against`` is a device of OpenVINO (``openvino:CPU``), an ONNX model (``onnx:model.onnx``), a second model (a Model
    or the path of an .xml), or recorded tensors by name (a mapping, or the path of an .npz). A second model runs in
    ovir, or on ``device``. ``config`` has properties of the device, ``timeout`` the seconds that one of its runs may
    take.

    ``inputs`` is one set of inputs as in a run, a list of mappings, the path of an .npz, of a folder of them, or a
    pattern such as ``data/**/*.npz``; by default, recorded inputs, or ``samples`` sets of random ones.

    On a device, layers are compared only if outputs differ, or with a ``mode``: ``isolated`` runs each layer alone with
    the inputs that it has in ovir, ``cumulative`` compares the tensors between layers as errors add up. All other sides
    are compared cumulatively; a second model can be isolated, too.

    By default the tolerance of a tensor follows from its element type and how many numbers are summed up; ``rtol`` and
    ``atol`` replace it, or a ``metric`` with its limit, such as ``cosine=0.999``. Integers must be equal.

    Raises InputError for arguments that do not fit, ReadError for files, RunError if the model itself cannot be run. A
    device that fails is part of the result.
    """
    criterion = Criterion.of(rtol, atol, metric)
    if mode not in (None, "isolated", "cumulative"):
        raise InputError.usage(f"mode must be 'isolated' or 'cumulative', got {mode!r}")
    first = as_model(model)
    with open_side(first, against, device, mode, config, timeout) as side:
        return Session(first, side, criterion, progress).run(sets_for(first, side, inputs, samples, seed), mode)


class Session:
    """One comparison of a model with another side."""

    def __init__(self, model: Model, side: Side, criterion: Criterion, progress: Progress | None) -> None:
        self._model = model
        self._side = side
        self._criterion = criterion
        self._progress = progress
        self._plan = WalkPlan(model, with_constants=side.with_constants)
        self._done = self._total = 0
        self._noise: dict[Port, float] = {}
        self._scales: dict[Layer, tuple[float, float]] = {}
        self.found = Findings([layer.key for layer in self._plan.layers])

    def run(self, sets: Sequence[InputSet], mode: Mode | None) -> Comparison:
        """Compare for all sets of inputs."""
        names = [inputs.name for inputs in sets]
        if self._side.outputs_first:
            shown_mode = self._run_on_device(sets, names, mode)
        else:
            shown_mode = "cumulative"
            self.compare_layers(sets, with_outputs=True)
        self.found.describe(self._side)
        self._require_something()
        return self.found.result(self._model, self._criterion, shown_mode, names)

    def _run_on_device(self, sets: Sequence[InputSet], names: Sequence[str], mode: Mode | None) -> str:
        """Compare the outputs, and the layers if they differ or a mode is given; return how layers were compared."""
        self.compare_outputs(sets)
        if mode is None and self.found.outputs_agree(names):
            return "outputs"
        self.compare_layers_on_device(sets, mode or "isolated", runs_whole=not self.found.failed)
        return mode or "isolated"

    def compare_outputs(self, sets: Sequence[InputSet], first: int = 0) -> None:
        """Compare the outputs for sets of inputs, which are numbered from ``first`` on."""
        self._total += len(self._plan.layers) * len(sets)
        for number, inputs in enumerate(sets, first):
            self._compare_outputs(number, inputs())

    def compare_layers_on_device(
        self, sets: Sequence[InputSet], mode: Mode, first: int = 0, *, runs_whole: bool
    ) -> None:
        """Compare the layers for sets of inputs on a device, which may run the whole model or fail to."""
        self._side.compare_layers(mode, runs_whole=runs_whole)
        self.compare_layers(sets, first)

    def compare_layers(self, sets: Sequence[InputSet], first: int = 0, *, with_outputs: bool = False) -> None:
        """Compare the layers for sets of inputs, which are numbered from ``first`` on."""
        self._total += len(self._plan.layers) * len(sets)
        for number, inputs in enumerate(sets, first):
            self._compare_layers(number, inputs(), with_outputs=with_outputs)

    def _require_something(self) -> None:
        """Raise InputError if nothing was compared, which says nothing about the model."""
        if not self.found.is_empty:
            return
        if self._side.has_only_inputs:
            place = Place(self._side.description)
            raise InputError.usage("nothing was compared: the recording has only inputs", place)
        require_something(self.found)

    # ----- one set of inputs

    def _compare_outputs(self, number: int, inputs: list[Array]) -> None:
        """Compare the outputs for one set of inputs."""
        walk, depths = Walk(self._plan, inputs), Depths()
        for step in walk:
            depths.of(step)
            self._advance(step.layer)
        self._take_outputs(number, inputs, walk, depths)

    def _compare_layers(self, number: int, inputs: list[Array], *, with_outputs: bool = False) -> None:
        """Compare layers for one set of inputs."""
        side, walk, depths = self._side, Walk(self._plan, inputs), Depths()
        self._noise.clear()

        def steps() -> Iterator[SeenStep]:
            for step in walk:
                scale = depths.of(step)
                self._scales[step.layer] = scale if side.accumulates else local(step)
                yield step
                self._advance(step.layer)

        for answer in side.layers(inputs, steps()):
            self._take(number, answer)
        if with_outputs:
            self._take_outputs(number, inputs, walk, depths)

    def tensors(self, inputs: list[Array], wanted: Collection[Port]) -> dict[Port, Array]:
        """Run both sides once more, and return the wanted tensors as far as the other side has them."""
        found: dict[Port, Array] = {}
        for answer in self._side.layers(inputs, Walk(self._plan, inputs)):
            for port, array in zip(answer.step.layer.outputs, answer.arrays, strict=False):
                if port in wanted and array is not None:
                    found[port] = array
        if any(port.source in wanted for port in self._model.outputs):
            with suppress(RunError):  # the other side may fail at a later layer
                sources = [output.source for output in self._model.outputs]
                for source, array in zip(sources, self._side.outputs(inputs), strict=True):
                    if source is not None and source in wanted and array is not None:
                        found[source] = array
        return found

    def _advance(self, layer: Layer) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total, f"{layer.type} {layer.name}")

    # ----- outputs

    def _take_outputs(self, number: int, inputs: list[Array], walk: Walk, depths: Depths) -> None:
        """Compare the outputs of a finished run with the outputs of the other side."""
        references = walk.finish()
        self.found.diagnostics.update(dict.fromkeys(walk.diagnostics))
        try:
            others = self._side.outputs(inputs)
        except EngineMissingError:
            raise
        except RunError as error:
            if not self._side.outputs_first and not self.found.layers:
                raise  # nothing is known about the model
            self.found.failed = True
            self.found.diagnostics.update(dict.fromkeys(error.diagnostics))
            return
        for index, (reference, actual) in enumerate(zip(references, others, strict=True)):
            if actual is None:
                continue
            port = self._model.outputs[index]
            assert port.source is not None
            tolerance = self._tolerance(port, reference, actual, depths.of_port(port.source))
            found = self._found(port, actual, reference, tolerance, counts_errors=True)
            agreement = None if found.lone or found.problem else agreement_of(actual, reference)
            tally = self.found.outputs.setdefault(index, Tally())
            tally.add(number, found, tolerance, _type_of(port, reference), reference.shape, agreement)

    def _found(
        self, port: Port, actual: Array, reference: Array, tolerance: Tolerance, *, counts_errors: bool = False
    ) -> TensorComparison:
        """Compare a tensor with its reference."""
        problem = self._side.mismatch(_element_type(port, reference), actual)
        if problem is not None:
            return TensorComparison(reference.size, within=False, beyond=reference.size, problem=problem)
        return self._criterion.compare(actual, reference, tolerance, counts_errors=counts_errors)

    def _tolerance(self, port: Port, reference: Array, actual: Array, scale: tuple[float, float]) -> Tolerance:
        """Return the tolerance for a tensor."""
        return self._criterion.between(_element_type(port, reference), actual, self._side.precision, *scale)

    # ----- layers

    def _take(self, number: int, answer: Answer) -> None:
        """Compare the outputs of a layer."""
        step = answer.step
        layer = step.layer
        if answer.skipped is not None:
            self.found.skipped.setdefault(layer.key, answer.skipped)
            return
        if answer.other is not None and answer.other is not layer and answer.other.name != layer.name:
            self.found.others[layer.key] = answer.other.key
        worst: TensorComparison | None = None
        if answer.problem is not None:
            size = step.outputs[0].size if step.outputs else 0
            worst = TensorComparison(size, within=False, beyond=size, problem=answer.problem)
            shape = step.outputs[0].shape if step.outputs else ()
            self.found.tally(layer, 0).add(number, worst, Tolerance(), _type_of(layer.outputs[0], None), shape)
        for position, actual in enumerate(answer.arrays):
            if actual is not None:
                found = self._compare_one(number, step, position, actual)
                worst = found if worst is None or severity(found) > severity(worst) else worst
        if worst is not None:
            self._contribute(layer, worst)

    def _compare_one(self, number: int, step: SeenStep, position: int, actual: Array) -> TensorComparison:
        port, reference = step.layer.outputs[position], step.outputs[position]
        tolerance = self._tolerance(port, reference, actual, self._scales[step.layer])
        found = self._found(port, actual, reference, tolerance)
        tally = self.found.tally(step.layer, position)
        tally.add(number, found, tolerance, _type_of(port, reference), reference.shape)
        self._noise[port] = noise(found)
        return found

    def _contribute(self, layer: Layer, found: TensorComparison) -> None:
        """Record how much noise a layer adds to what its inputs have."""
        own = noise(found)
        if self._side.accumulates:
            sources = [self._noise.get(port.source, 0.0) for port in layer.inputs if port.source is not None]
            before = max(sources, default=0.0)
            own = max(own - before, 0.0) if own > before else 0.0
        contributions = self.found.contributions
        contributions[layer.key] = max(contributions.get(layer.key, 0.0), own)


def require_something(found: Findings) -> None:
    """Raise InputError if nothing was compared, with the reason if all layers have the same."""
    if not found.is_empty:
        return
    reasons = dict.fromkeys(found.skipped.values())
    reason = f": {next(iter(reasons))}" if len(reasons) == 1 else ""
    message = f"nothing was compared: no layer and no output can be{reason}"
    raise InputError.usage(message, Place(found.description))


def _element_type(port: Port, array: Array) -> ElementType:
    return ElementType.from_dtype(array.dtype) if port.element_type.is_dynamic else port.element_type


def _type_of(port: Port, array: Array | None) -> str:
    return str(port.element_type if array is None else _element_type(port, array))


def agreement_of(actual: Array, reference: Array) -> Agreement | None:
    """Return how far the highest scores of two tensors agree; None for tensors that are no rows of scores."""
    shape = [size for size in reference.shape if size != 1]
    if actual.shape != reference.shape or not 1 <= len(shape) <= 2 or reference.dtype.kind not in "fV":
        return None
    rows = [top_scores(array.reshape(shape), _HIGHEST) for array in (actual, reference)]
    if rows[0] is None or rows[1] is None:
        return None
    top1 = top5 = 0.0
    for one, other in zip(*rows, strict=True):
        top1 += one[0].number == other[0].number
        numbers = {score.number for score in other}
        top5 += len(numbers & {score.number for score in one}) / len(numbers)
    return Agreement(top1 / len(rows[0]), top5 / len(rows[0]))


_HIGHEST = 5
