"""Finds the first diverging layer where the tensors of all layers are at hand, so that nothing has to be run again."""

from __future__ import annotations

from collections.abc import Iterator

from ovir.debugging.bisecting.bisection import Probe, Verdict, probe_of
from ovir.debugging.comparison import Comparison, LayerDifference
from ovir.debugging.reducing import candidates
from ovir.debugging.reducing.stage import Stage
from ovir.graph.layers import Layer


def probes_of(stage: Stage, found: Comparison) -> list[Probe]:
    """Return the beginnings of a model at which it changes whether all tensors of a comparison agree.

    The tensors of a beginning are those that later layers, or Results, read; see ``PrefixSearch``. Layers that were not
    compared count as agreeing. The whole model is the last probe.
    """
    probes: list[Probe] = []
    before: Probe | None = None
    for probe in _beginnings(stage, found):
        agreed = before is None or before.verdict.within
        if agreed != probe.verdict.within:
            probes += [item for item in (before, probe) if item is not None and item not in probes]
        before = probe
    if before is not None and before not in probes:
        probes.append(before)
    return probes


def _beginnings(stage: Stage, found: Comparison) -> Iterator[Probe]:
    """Yield the beginning that ends with each layer."""
    compared = {item.id: item for item in found.layers}
    layers = [stage.model.layer(number) for number in candidates.layers_of(stage)]
    place = {layer: i for i, layer in enumerate(layers)}
    last = {layer: _last_reader(layer, place) for layer in layers}
    diverging: list[Layer] = []
    for i, layer in enumerate(layers):
        diverging = [other for other in diverging if last[other] > i]
        item = compared.get(layer.id)
        if item is not None and not item.within:
            diverging.append(layer)
        worst = compared[diverging[0].id] if diverging else item
        yield probe_of(i + 1, layer, _verdict(worst, within=not diverging))


def _last_reader(layer: Layer, place: dict[Layer, int]) -> int:
    """Return the place of the last layer that reads this one; behind all layers for what is an output."""
    readers = [reader.layer for port in layer.outputs for reader in port.readers]
    return max((place.get(reader, len(place)) for reader in readers), default=len(place))


def _verdict(item: LayerDifference | None, *, within: bool) -> Verdict:
    if item is None:
        return Verdict(within)
    return Verdict(within, item.name, item.tensor.worst, item.tensor.worst.problem)
