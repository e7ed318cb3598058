"""Runs the beginnings of a model on a device, so that errors add up as they do in the whole model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ovir.core.arrays import Array
from ovir.debugging.batches import HalvedBase
from ovir.debugging.devices import Device
from ovir.debugging.others import Answer, skipped_partner
from ovir.debugging.partners import Partners
from ovir.diagnostics.errors import ModelError, RunError
from ovir.graph.layers import Port
from ovir.inference.constant_layers import all_constant_layers
from ovir.runtime.executor import SeenStep


class Prefixes(HalvedBase[SeenStep]):
    """The model on a device, with tensors between its layers as further outputs; many of them in one run.

    The further outputs keep the device from computing several layers as one, so its results may differ from what the
    model gives as it is. After a layer that the device fails at, nothing is compared any more.
    """

    with_constants = False

    def __init__(self, device: Device, partners: Partners) -> None:
        super().__init__()
        self._device = device
        self._partners = partners
        self._folded = all_constant_layers(partners.b)
        self._inputs: list[Array] = []
        self._stopped: str | None = None

    @property
    def description(self) -> str:  # type: ignore[override]
        return self._device.description

    def begin(self, inputs: Sequence[Array]) -> None:
        self._inputs = self._partners.inputs(inputs)
        self._stopped = None

    def see(self, step: SeenStep) -> Iterator[Answer]:
        reason = skipped_partner(self._partners, step)
        if reason is None and not self._ports(step):
            reason = "nothing reads its outputs"
        if reason is not None:
            yield Answer(step, skipped=reason)
            return
        yield from self.wait(step, sum(array.nbytes for array in step.outputs))

    def _ports(self, step: SeenStep) -> list[Port]:
        """Return the outputs of the other model's layer that can be outputs of a prefix and that something reads."""
        other = self._partners.of(step.layer)
        if other is None or other in self._folded:
            return []
        return [port for port in other.outputs if port.readers]

    def run_together(self, items: Sequence[SeenStep]) -> list[Answer]:
        if self._stopped is not None:
            return [Answer(step, skipped=self._stopped) for step in items]
        ports = [port for step in items for port in self._ports(step)]
        prefix = self._partners.b.extract(outputs=ports)
        places = {port.layer.id: place for place, port in enumerate(self._partners.b.inputs)}
        results = self._device.run(prefix, [self._inputs[places[port.layer.id]] for port in prefix.inputs])
        given = dict(zip(ports, results, strict=True))
        answers = []
        for step in items:
            other = self._partners.of(step.layer)
            assert other is not None
            answers.append(Answer(step, [given.get(port) for port in other.outputs], other=other))
        return answers

    def failed(self, item: SeenStep, error: RunError | ModelError) -> Answer:
        self._stopped = f"the device fails before, at '{item.layer.key}'"
        return Answer(item, problem=error.diagnostic.message, other=self._partners.of(item.layer))
