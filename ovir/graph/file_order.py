"""The order of a model's layers in its file, which edits change at any place."""

from __future__ import annotations

from collections.abc import Iterable

from ovir.graph.layers import Layer


class FileOrder:
    """Layers in the order of the file.

    An edit is only recorded; the next access to ``layers`` carries out all of them in one pass. So a sequence of edits
    takes time in proportion to their number, not to the number of layers each.
    """

    def __init__(self, layers: Iterable[Layer]) -> None:
        self._layers = list(layers)
        self._behind: dict[Layer, list[Layer]] = {}
        """The layers inserted behind a layer, the nearest one last."""
        self._removed: set[Layer] = set()

    @property
    def layers(self) -> list[Layer]:
        """Return the layers in order; the list must not be changed."""
        if self._behind or self._removed:
            self._layers = self._edited()
            self._behind = {}
            self._removed = set()
        return self._layers

    def append(self, layer: Layer) -> None:
        """Add a layer behind all others."""
        self.layers.append(layer)

    def insert(self, layer: Layer, before: Layer) -> None:
        """Insert a layer directly behind the layer ``before``."""
        if layer in self._removed:
            self._layers = self.layers
        self._behind.setdefault(before, []).append(layer)

    def remove(self, layer: Layer) -> None:
        self._removed.add(layer)

    def _edited(self) -> list[Layer]:
        result: list[Layer] = []
        for first in self._layers:
            pending = [first]
            while pending:
                layer = pending.pop()
                if layer not in self._removed:
                    result.append(layer)
                pending.extend(self._behind.get(layer, ()))
        return result
