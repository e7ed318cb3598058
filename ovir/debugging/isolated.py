"""Runs each layer of a model alone on a device, with the inputs that it has in ovir."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ovir.core.arrays import Array
from ovir.debugging.batches import HalvedBase
from ovir.debugging.devices import Device
from ovir.debugging.others import Answer, skipped_partner
from ovir.debugging.partners import Partners
from ovir.debugging.parts import LonePart, LoneParts
from ovir.diagnostics.errors import ModelError, RunError
from ovir.engines.process import EngineDiedError
from ovir.graph.layers import Layer
from ovir.inference.constant_layers import all_constant_layers
from ovir.ops.state import AssignBase
from ovir.runtime.executor import SeenStep


@dataclass(frozen=True)
class _Waiting:
    """A layer that waits for others to be run with."""

    step: SeenStep
    part: LonePart
    layer: Layer


class Isolated(HalvedBase[_Waiting]):
    """Layers alone on a device: they show how its kernels differ, whatever the layers before them do.

    Layers are collected and run together, as a model of layers that have nothing to do with each other. If the device
    fails on one, the model is halved until the layer is found.
    """

    accumulates = False
    with_constants = False
    most_layers = 200

    def __init__(self, device: Device, partners: Partners, *, runs_whole: bool) -> None:
        """Prepare for a model. ``runs_whole`` says that the device runs the whole model, so that it is no fault of the
        device if it refuses a layer alone."""
        super().__init__()
        self._device = device
        self._partners = partners
        self._runs_whole = runs_whole
        folded = all_constant_layers(partners.b)
        self._constants = {layer: place for place, layer in enumerate(partners.b.layers) if layer in folded}

    @property
    def description(self) -> str:  # type: ignore[override]
        return self._device.description

    def see(self, step: SeenStep) -> Iterator[Answer]:
        other = self._partners.of(step.layer)
        reason = skipped_partner(self._partners, step) or _not_alone(step.layer)
        if reason is None and other is not None and len(other.inputs) != len(step.inputs):
            reason = "the layer of the other model has another number of inputs"
        read = [port.index for port in step.layer.outputs if port.readers]
        if reason is None and not read:
            reason = "nothing reads its outputs"
        if reason is None and not any(step.outputs[index].size for index in read):
            reason = "its outputs have no elements"
        if reason is not None or other is None:
            yield Answer(step, skipped=reason)
            return
        size = sum(array.nbytes for array in (*step.inputs, *step.outputs))
        yield from self.wait(_Waiting(step, LonePart(other, step.inputs, read), other), size)

    def run_together(self, items: Sequence[_Waiting]) -> list[Answer]:
        results = iter(self._results(items))
        answers = []
        for item in items:
            arrays: list[Array | None] = [None] * len(item.step.outputs)
            for position in item.part.outputs:
                arrays[position] = next(results)
            answers.append(Answer(item.step, arrays, other=item.layer))
        return answers

    def _results(self, waiting: Sequence[_Waiting]) -> list[Array]:
        """Return the outputs that layers have together on the device.

        A device that refuses a single layer for the sizes of its inputs may accept it for unknown sizes: OpenVINO's CPU
        plugin does not run NonMaxSuppression alone otherwise.
        """
        chosen = [item.part for item in waiting]
        try:
            parts = LoneParts(chosen, self._constants)
            return self._device.run(parts.model, parts.inputs)
        except EngineDiedError:
            raise
        except RunError as error:
            if len(chosen) > 1:
                raise
            try:
                parts = LoneParts(chosen, self._constants, with_sizes=False)
                return self._device.run(parts.model, parts.inputs)
            except (RunError, ModelError):
                raise error from None

    def failed(self, item: _Waiting, error: RunError | ModelError) -> Answer:
        text = error.diagnostic.message
        is_fault = isinstance(error, EngineDiedError) or (isinstance(error, RunError) and not self._runs_whole)
        if is_fault:
            return Answer(item.step, problem=text, other=item.layer)
        return Answer(item.step, skipped=f"it cannot run alone: {text}", other=item.layer)


def _not_alone(layer: Layer) -> str | None:
    """Return why a layer has no result of its own; None if it has one."""
    op = layer.operator
    if isinstance(op, AssignBase):
        return "it only sets a state"
    seeds = [getattr(op, name) for name in ("global_seed", "op_seed") if hasattr(op, name)]
    if seeds and not any(seeds):
        return "it draws other numbers in each run"
    return None
