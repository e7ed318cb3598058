"""Runs the beginnings of a model on a device, so that errors add up as they do in the whole model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ovir.core.arrays import Array
from ovir.debugging.devices import Device
from ovir.debugging.others import Answer, OtherBase, skipped_partner
from ovir.debugging.partners import Partners
from ovir.diagnostics.errors import ModelError, RunError
from ovir.graph.layers import Port
from ovir.inference.constant_layers import all_constant_layers
from ovir.runtime.executor import SeenStep

MOST_BYTES = 32 << 20
"""The most bytes of tensors that are computed by one run, unless a single layer has more."""


class Prefixes(OtherBase):
    """The model on a device, with tensors between its layers as further outputs; many of them in one run.

    The further outputs keep the device from computing several layers as one, so its results may differ from what the
    model gives as it is. After a layer that the device fails at, nothing is compared any more.
    """

    def __init__(self, device: Device, partners: Partners) -> None:
        self._device = device
        self._partners = partners
        self.with_constants = False
        self._folded = all_constant_layers(partners.b)
        self._inputs: list[Array] = []
        self._waiting: list[SeenStep] = []
        self._bytes = 0
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
        size = sum(array.nbytes for array in step.outputs)
        if self._waiting and self._bytes + size > MOST_BYTES:
            yield from self.finish()
        self._waiting.append(step)
        self._bytes += size

    def finish(self) -> Iterator[Answer]:
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        yield from self._run(waiting)

    def _ports(self, step: SeenStep) -> list[Port]:
        """Return the outputs of the other model's layer that can be outputs of a prefix and that something reads."""
        other = self._partners.of(step.layer)
        if other is None or other in self._folded:
            return []
        return [port for port in other.outputs if port.readers]

    def _run(self, steps: Sequence[SeenStep]) -> Iterator[Answer]:
        if not steps:
            return
        if self._stopped is not None:
            yield from (Answer(step, skipped=self._stopped) for step in steps)
            return
        ports = [port for step in steps for port in self._ports(step)]
        results: Sequence[Array] | None
        try:
            prefix = self._partners.b.extract(outputs=ports)
            places = {port.layer.id: place for place, port in enumerate(self._partners.b.inputs)}
            results = self._device.run(prefix, [self._inputs[places[port.layer.id]] for port in prefix.inputs])
        except (RunError, ModelError) as error:
            results, message = None, error.diagnostic.message
        if results is None:
            if len(steps) == 1:
                self._stopped = f"the device fails before, at '{steps[0].layer.key}'"
                yield Answer(steps[0], problem=message, other=self._partners.of(steps[0].layer))
                return
            half = len(steps) // 2
            yield from self._run(steps[:half])
            yield from self._run(steps[half:])
            return
        given = dict(zip(ports, results, strict=True))
        for step in steps:
            other = self._partners.of(step.layer)
            assert other is not None
            yield Answer(step, [given.get(port) for port in other.outputs], other=other)
