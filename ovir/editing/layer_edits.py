"""Replaces, inserts and removes layers, and brings in layers that belong to no model.

The names of an output of the model go with that output. New layers are made by hand, or by the functions of an opset,
which connect a layer with what it reads: tensors of the model, or other new layers, such as constants, which are
brought in as well. Where a new layer reads a Parameter that is in no model, as in ``ops.relu(ops.parameter([1, 8]))``,
the Parameter stands for what the edit connects with that input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from ovir.diagnostics.wording import plural
from ovir.editing import keys
from ovir.editing.transaction import editing, owner_of
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port, layers_before, separate
from ovir.graph.names import free_name
from ovir.lowering.decompose import new_layers


def replace(model: LayerGraph, layer: keys.LayerKey, new: Layer) -> Layer:
    """Replace a layer; see ``Model.replace``."""
    old = keys.find_layer(model, layer)
    graph = owner_of(old)
    added = NewLayers(graph, new, replaced=old)
    if old.type == "Result" and new.type != "Result":
        hint = "to compute something before this output, use insert_after with the tensor that it reads"
        keys.refuse(f"an output of the model cannot be replaced by a layer of type {new.type}", old, hint)
    is_connected = any(port.source is not None for port in new.inputs)
    with editing(model, added.layers):
        sources = added.include([port.source for port in old.inputs])
        graph.replace_layer(old, new, sources if is_connected else None)
        for before, after in zip(old.outputs, new.outputs, strict=False):
            after.own_names = after.own_names or before.own_names
    return new


def insert_after(
    model: LayerGraph, port: keys.TensorKey, layer: Layer, others: keys.TensorKeys, readers: keys.InputKeys | None
) -> Layer:
    """Insert a layer after a tensor; see ``Model.insert_after``."""
    source = keys.find_tensor(model, port)
    moved = source.readers if readers is None else keys.find_readers(model, source, readers)
    return _insert(model, source, layer, keys.find_tensors(model, others, repeated=True), moved)


def insert_before(model: LayerGraph, port: keys.InputKey, layer: Layer, others: keys.TensorKeys) -> Layer:
    """Insert a layer before an input; see ``Model.insert_before``."""
    target = keys.find_input(model, port)
    return _insert(model, keys.read_by(target), layer, keys.find_tensors(model, others, repeated=True), [target])


def _insert(model: LayerGraph, source: Port, layer: Layer, others: Sequence[Port], readers: Sequence[Port]) -> Layer:
    graph = owner_of(source.layer)
    new = NewLayers(graph, layer)
    if not (layer.inputs and layer.outputs):
        keys.refuse("the layer needs an input and an output to be inserted", layer)
    if len(others) >= len(layer.inputs):
        keys.refuse(
            f"the layer has {plural(len(layer.inputs), 'input')}, got {plural(1 + len(others), 'source')}", layer
        )
    with editing(model, new.layers):
        reads_source = source in new.reads
        sources = new.include([source, *others])
        if source not in sources and not reads_source:
            keys.refuse("the new layer does not read the tensor that it is inserted after", layer)
        if sources[0] is source:
            graph.insert_layer_after(source, layer, sources[1:], readers=readers)
        else:
            graph.add_layer(layer, sources)
            graph.move_readers(source, layer.outputs[0], readers)
        if feeds_result(layer.outputs[0]):
            _move_names(source, layer.outputs[0])
    return layer


def remove(model: LayerGraph, layer: keys.LayerKey) -> None:
    """Remove a layer; see ``Model.remove``."""
    old = keys.find_layer(model, layer)
    graph = owner_of(old)
    if old.type == "Result" and graph.holder is None and len(graph.outputs) == 1:
        hint = "make another tensor an output before: --add-output, or Model.add_outputs"
        keys.refuse("the only output of a model cannot be removed", old, hint)
    with editing(model):
        source = old.inputs[0].source if old.inputs else None
        outputs = [port for port in old.outputs if feeds_result(port)]
        graph.remove_layer(old, bypass=True)
        for port in outputs:
            if source is not None:
                _move_names(port, source)


def feeds_result(port: Port) -> bool:
    """Return whether a tensor is an output of its model."""
    return any(reader.layer.type == "Result" for reader in port.readers)


def _move_names(source: Port, target: Port) -> None:
    target.own_names |= source.own_names
    source.own_names = frozenset()


# --------------------------------------------------------------------------- new layers


class NewLayers:
    """A layer that belongs to no model, and the new layers that it depends on."""

    def __init__(self, graph: LayerGraph, layer: Layer, *, replaced: Layer | None = None) -> None:
        """Check that the layers can become part of ``graph``, where the last one may take the place of a layer."""
        if not isinstance(layer, Layer):
            keys.refuse(f"expected a layer, got {layer!r}")
        if layer.owner is not None:
            keys.refuse("the layer already belongs to a model", layer)
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
        sources = [port.source for port in self._last.inputs]
        found = list(new_layers(port for port in sources if port is not None and port.layer.type != "Parameter"))
        for layer in (*found, self._last):
            self._check(layer)
        return found

    def _check(self, layer: Layer) -> None:
        if layer is self._last and layer.type == "Parameter":
            self._refuse_parameter(layer)
        if layer.type == "Parameter":
            _refuse_dependence(layer)
        for source in layers_before(layer):
            if source.owner is not None and source.owner is not self._graph:
                keys.refuse(f"the new layer reads {source.title} of another model or body", layer)
            if source is self._replaced:
                hint = "to compute something from its output, use insert_after"
                keys.refuse("the new layer reads the one that it replaces", layer, hint)

    def _refuse_parameter(self, layer: Layer) -> NoReturn:
        if self._replaced is None or self._replaced.type != "Parameter":
            hint = "extract(inputs=...) makes tensors of the model inputs of a new model"
            keys.refuse("a Parameter cannot be added to the model: its inputs are fixed", layer, hint)
        hint = "reshape gives it another shape, rename another name; insert_after converts what it is fed"
        keys.refuse("an input of the model cannot be replaced by another Parameter", self._replaced, hint)

    def _check_names(self) -> None:
        given: dict[str, Layer] = {}
        for layer in self.layers:
            other = given.setdefault(layer.name, layer) if layer.name else layer
            if other is layer and layer.name:
                other = self._graph.named(layer.name) or layer
            if other is not layer and other is not self._replaced:
                keys.refuse(f"the name of the new layer is already used by {other.title}", layer)

    def include(self, default: Sequence[Port | None]) -> list[Port]:
        """Add the layers before the last one to the model; return the sources of the last one, now unconnected.

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
            keys.refuse(f"input {found.index(None)} of the new layer has no source", self._last)
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
    hint = "a new Parameter stands for a tensor that the edit connects, if the new layers do not read it themselves"
    keys.refuse("the new layer depends on a Parameter that is not in the model", parameter, hint)
