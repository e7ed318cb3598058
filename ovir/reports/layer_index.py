"""The layers that a report shows, numbered, so that tables, charts and other layers can link to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ovir.diagnostics.wording import escaped, readable, shown
from ovir.graph.layers import Layer
from ovir.model import Model


class LayerIndex:
    """Layers by number. The layers of one model are numbered in the order of ``model.walk()``."""

    def __init__(self) -> None:
        self._numbers: dict[Layer, int] = {}
        self._keys: dict[str, int] = {}
        self._models: list[str] = []
        self._of: list[int] = []
        """The number of the model of each layer."""

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, model: Model, title: str = "", only: Iterable[Layer] | None = None) -> None:
        """Add the layers of a model and of its bodies, or only some of them.

        ``title`` says which model it is, in a report about several.
        """
        self._models.append(title)
        wanted = None if only is None else set(only)
        for layer in model.walk():
            if wanted is None or layer in wanted:
                number = self._numbers[layer] = len(self._numbers)
                self._keys.setdefault(layer.key, number)
                self._of.append(len(self._models) - 1)

    def number(self, layer: Layer | None) -> int | None:
        """Return the number of a layer; None if it was not added."""
        return None if layer is None else self._numbers.get(layer)

    def find(self, key: str) -> int | None:
        """Return the number of the first layer with a key; None if there is none."""
        return self._keys.get(key)

    def cell(self, layer: Layer) -> int | str:
        """Return what a column of layers has for a layer: its number, or its name if it was not added."""
        number = self._numbers.get(layer)
        return escaped(layer.key) if number is None else number

    def to_data(self) -> dict[str, Any]:
        """Return the names of the models, and a record for each layer."""
        return {
            "models": [escaped(title) for title in self._models],
            "records": [self._record(layer, of) for layer, of in zip(self._numbers, self._of, strict=True)],
        }

    def _record(self, layer: Layer, model: int) -> list[Any]:
        """Return id, key, type, opset, model, line, inputs, outputs and attributes.

        An input is the number or the key of a layer, and which of its outputs it reads; None if nothing feeds it.
        """
        return [
            layer.id,
            escaped(layer.key),
            escaped(layer.type),
            escaped(layer.version),
            model,
            layer.line,
            [None if p.source is None else [self.cell(p.source.layer), p.source.index] for p in layer.inputs],
            [str(port.type) for port in layer.outputs],
            {escaped(name): readable(str(shown(value))) for name, value in layer.attributes.items()},
        ]
