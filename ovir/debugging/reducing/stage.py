"""A model on the way to a smaller one, and the values of its tensors for the inputs of the whole model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property

from ovir.analysis.random_inputs import random_inputs
from ovir.core.arrays import Array
from ovir.diagnostics.errors import OvirError
from ovir.graph.layers import Port
from ovir.inference.constant_layers import all_constant_layers
from ovir.model import Model
from ovir.runtime.compiled import CompiledModel


class Stage:
    """A model, and the stage that it was made of.

    ``sources`` are the tensors of the earlier stage that the inputs of this one stand for, so that values can be
    computed for the inputs of the whole model. Values are computed when they are first needed.
    """

    def __init__(
        self,
        model: Model,
        before: Stage | None = None,
        sources: Sequence[Port] = (),
        given: Mapping[int, Array] | None = None,
        seed: int = 0,
    ) -> None:
        self.model = model
        self._before = before
        self._sources = list(sources)
        self._given = dict(given or {})
        self._seed: int = seed if before is None else before._seed
        self._feeds: list[Array] | None = None

    @cached_property
    def constant_layers(self) -> frozenset[int]:
        """Return the ids of the layers, Consts included, that are computed from constants alone."""
        return frozenset(layer.id for layer in all_constant_layers(self.model))

    @property
    def feeds(self) -> list[Array]:
        """Return an array for each input of the model."""
        waiting: list[Stage] = []
        stage: Stage | None = self
        while stage is not None and stage._feeds is None:  # chains of stages may be long
            waiting.append(stage)
            stage = stage._before
        for later in reversed(waiting):
            later._feeds = later._make_feeds()
            later._before, later._sources = None, []  # frees the models before
        assert self._feeds is not None
        return self._feeds

    def values(self, ports: Sequence[Port]) -> list[Array]:
        """Return the values of tensors; raise OvirError if ovir cannot compute them."""
        if not ports:
            return []
        part = self.model.extract(outputs=list(dict.fromkeys(ports)))
        by_id = {port.layer.id: array for port, array in zip(self.model.inputs, self.feeds, strict=True)}
        results = CompiledModel(part)([by_id[port.layer.id] for port in part.inputs])
        found = dict(zip(dict.fromkeys(ports), results.values(), strict=True))
        return [found[port] for port in ports]

    def _make_feeds(self) -> list[Array]:
        """Return the inputs; where their values cannot be computed, or have another type by now, random ones."""
        known = self._given if self._before is None else self._computed(self._before)
        fits = {
            i: known[i]
            for i, port in enumerate(self.model.inputs)
            if i in known and port.shape.contains(known[i].shape)
        }
        if len(fits) == len(self.model.inputs):
            return [fits[i] for i in range(len(fits))]
        drawn = list(random_inputs(self.model, self._seed).values())
        return [fits.get(i, array) for i, array in enumerate(drawn)]

    def _computed(self, before: Stage) -> dict[int, Array]:
        own = dict(zip(before.model.inputs, before.feeds, strict=True))
        others = [port for port in self._sources if port not in own]
        with suppress(OvirError):  # the fault that is looked for may be one of ovir's own
            own |= dict(zip(others, before.values(others), strict=True))
        return {i: own[port] for i, port in enumerate(self._sources) if port in own}
