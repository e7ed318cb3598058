"""Runs and copies of a model in which only weights are rounded, to integers of 4 or 8 bits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache, cached_property

from ovir.analysis.costs import stored_bytes
from ovir.core.arrays import Array
from ovir.diagnostics.errors import InputError
from ovir.editing import weight_compression
from ovir.editing.weight_compression import WeightType, compress
from ovir.graph.layers import Layer
from ovir.inference.layer_weights import Weights
from ovir.model import Model
from ovir.runtime.emulation import Emulation
from ovir.runtime.partial_runs import PartialRuns

Place = tuple[str, int]
"""The key of a layer, and the index of the input that reads weights."""


class WeightCompression:
    """The weights of a model in a type, those of layers to keep in int8, or as they are if that is the type."""

    def __init__(self, model: Model, kind: WeightType) -> None:
        """Find the weights; raise InputError for a model that has none to compress."""
        self._model = model
        self._kind = kind
        self._backup = weight_compression.BACKUP if kind.bits == 4 else None
        weights = weight_compression.compressible(model)
        self._weights = {(found.layer.key, found.input.index): found for found in weights}
        self._bytes_of = cache(self._count_bytes)
        self._chosen = self._weights
        if self._backup is not None:
            takes_4_bits = weight_compression.takes_4_bits
            self._chosen = {place: found for place, found in self._weights.items() if takes_4_bits(found)}
        if not self._chosen:
            what = "product or convolution" if self._backup is None else "MatMul"
            raise InputError.usage(f"no {what} of the model has constant weights that can be compressed")

    @property
    def kept_in(self) -> str:
        """Return the name of what the layers to keep have."""
        stored = {str(found.stored_type) for found in self._chosen.values()}
        return ", ".join(sorted(stored)) if self._backup is None else "int8"

    @cached_property
    def runs(self) -> PartialRuns:
        """Return runs in which each layer has its weights in the type, or is one of those to keep."""
        keys = {key for key, _ in self._weights}
        base = self._model if self._backup is None else self.model(keys)
        return PartialRuns(base, _RoundedWeights(self._kind, self._chosen))

    def model(self, keep: Collection[str]) -> Model:
        """Return a copy of the model with compressed weights."""
        changed = self._model.clone()
        weight_compression.compress_weights(changed, self._kinds(keep))
        return changed

    def bytes(self, keep: Collection[str]) -> int:
        """Return the bytes of the weights."""
        kinds = self._kinds(keep)
        return sum(self._bytes_of(place, kinds.get(place)) for place in self._weights)

    def _count_bytes(self, place: Place, kind: WeightType | None) -> int:
        found = self._weights[place]
        return stored_bytes(found.constant) if kind is None else compress(found, kind).bytes

    def _kinds(self, keep: Collection[str]) -> dict[Place, WeightType]:
        kinds = {
            place: self._kind if place in self._chosen and place[0] not in keep else self._backup
            for place in self._weights
        }
        return {place: kind for place, kind in kinds.items() if kind is not None}


class _RoundedWeights(Emulation):
    """Rounds weights as a type holds them; all other numbers stay as they are."""

    rounds_outputs = rounds_steps = False

    def __init__(self, kind: WeightType, weights: Mapping[Place, Weights]) -> None:
        self.element_type = f"int{kind.bits}"
        self._kind = kind
        self._weights = weights
        self._keys = {key for key, _ in weights}

    def covers(self, layer: Layer) -> bool:
        return layer.key in self._keys

    def constant(self, layer: Layer, position: int, array: Array) -> Array:
        found = self._weights.get((layer.key, position))
        return array if found is None else compress(found, self._kind).array.astype(array.dtype, copy=False)

    def input(self, layer: Layer, position: int, array: Array) -> Array:
        return array

    def output(self, layer: Layer, array: Array, out: Array | None) -> Array:
        return array if out is None else out
