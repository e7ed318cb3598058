"""Brings layers that belong to no model into one: made by hand, or by the functions of an opset.

The functions of an opset connect a layer with what it reads: tensors of the model, or other new layers, such as
constants, which are brought in as well. Where a new layer reads a Parameter that is in no model, as in
``ops.relu(ops.parameter([1, 8]))``, the Parameter stands for what the edit connects with that input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from ovir.editing.keys import refuse
from ovir.graph.layers import Layer, Port, separate
from ovir.graph.model import Model
from ovir.graph.names import free_name

_DEPENDENCE_HINT = (
    "a new Parameter stands for a tensor that the edit connects, if the new layers do not read it themselves"
)


class NewLayers:
    """A layer that belongs to no model, and the new layers that it depends on."""

    def __init__(self, graph: Model, layer: Layer, *, replaced: Layer | None = None) -> None:
        """Check that the layers can become part of ``graph``, where the last one may take the place of a layer."""
        if not isinstance(layer, Layer):
            refuse(f"expected a layer, got {layer!r}")
        if layer.owner is not None:
            refuse("the layer already belongs to a model", layer)
        self._graph = graph
        self._last = layer
        self._replaced = replaced
        self._before = self._new_sources()
        self._check_names()

    @property
    def layers(self) -> list[Layer]:
        """Return the new layers, sources before their readers."""
        return [*self._before, self._last]

    @property
    def reads(self) -> list[Port]:
        """Return the tensors of the model that the new layers read."""
        sources = [port.source for layer in self.layers for port in layer.inputs]
        return [source for source in sources if source is not None and source.layer.owner is not None]

    def _new_sources(self) -> list[Layer]:
        """Return the new layers before the last one, in topological order."""
        order: dict[Layer, None] = {}
        pending = [self._last]
        opened: set[Layer] = set()
        while pending:
            layer = pending[-1]
            sources = [port.source.layer for port in layer.inputs if port.source is not None]
            new = [source for source in sources if source.owner is None and source not in order]
            if layer is self._last:
                new = [source for source in new if source.type != "Parameter"]
            if new and layer not in opened:
                opened.add(layer)
                pending += new
                continue
            order.setdefault(layer)
            pending.pop()
            self._check(layer, sources)
        return list(order)[:-1]

    def _check(self, layer: Layer, sources: Sequence[Layer]) -> None:
        if layer is self._last and layer.type == "Parameter":
            self._refuse_parameter(layer)
        if layer.type == "Parameter":
            _refuse_dependence(layer)
        for source in sources:
            if source.owner is not None and source.owner is not self._graph:
                refuse(f"the new layer reads {source.title} of another model or body", layer)
            if source is self._replaced:
                hint = "to compute something from its output, use insert_after"
                refuse("the new layer reads the one that it replaces", layer, hint)

    def _refuse_parameter(self, layer: Layer) -> NoReturn:
        if self._replaced is None or self._replaced.type != "Parameter":
            hint = "extract(inputs=...) makes tensors of the model inputs of a new model"
            refuse("a Parameter cannot be added to the model: its inputs are fixed", layer, hint)
        hint = "reshape gives it another shape, rename another name; insert_after converts what it is fed"
        refuse("an input of the model cannot be replaced by another Parameter", self._replaced, hint)

    def _check_names(self) -> None:
        given: dict[str, Layer] = {}
        for layer in self.layers:
            other = given.setdefault(layer.name, layer) if layer.name else layer
            if other is layer and layer.name:
                other = self._graph.named(layer.name) or layer
            if other is not layer and other is not self._replaced:
                refuse(f"the name of the new layer is already used by {other.title}", layer)

    def include(self, default: Sequence[Port | None]) -> list[Port]:
        """Add the layers before the last one to the model; return what the last one reads, which is then unconnected.

        An input that is not connected, or that reads a new Parameter, reads the source in ``default`` at its position.
        Inputs at the end that read nothing are left out. Raises InputError for a Parameter without a source to stand
        for, or that would stand for a tensor which the new layers read themselves.
        """
        own_reads = self.reads
        for layer in self._before:
            sources = [port.source for port in layer.inputs]
            self._name(layer)
            self._graph.add_layer(layer, [source for source in sources if source is not None])
        self._name(self._last)
        found: list[Port | None] = []
        for index, port in enumerate(self._last.inputs):
            source = port.source
            separate(port)
            if source is None or source.layer.owner is None:
                parameter = source
                source = default[index] if index < len(default) else None
                if parameter is not None and (source is None or source in own_reads):
                    _refuse_dependence(parameter.layer)
            found.append(source)
        while found and found[-1] is None:
            found.pop()
        if None in found:
            refuse(f"input {found.index(None)} of the new layer has no source", self._last)
        return [source for source in found if source is not None]

    def _name(self, layer: Layer) -> None:
        """Give a layer an id and a name that no other layer has, and disconnect its inputs."""
        graph = self._graph
        old = self._replaced if layer is self._last else None
        if graph.has_id(layer.id) and (old is None or layer.id != old.id):
            layer.id = graph.next_id
        if not layer.name:
            layer.name = f"{layer.type}_{layer.id}" if old is None else old.name
            if graph.named(layer.name) not in (None, old):
                layer.name = free_name(layer.name, {other.name for other in graph.layers})
        if layer is not self._last:
            for port in layer.inputs:
                separate(port)


def _refuse_dependence(parameter: Layer) -> NoReturn:
    refuse("the new layer depends on a Parameter that is not in the model", parameter, _DEPENDENCE_HINT)
