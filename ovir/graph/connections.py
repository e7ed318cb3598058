"""Connected layers, and everything that is derived from their connections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol
from weakref import WeakSet

from ovir.diagnostics.codes import USAGE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import NotFoundError
from ovir.diagnostics.spelling import did_you_mean
from ovir.graph.layers import Layer, Port
from ovir.graph.order import dead_layers, topological_order

if TYPE_CHECKING:
    import networkx as nx


class Edge(NamedTuple):
    """A connection from an output port to an input port, given by the ids in the file."""

    from_layer: int
    from_port: int
    to_layer: int
    to_port: int
    line: int | None = None


class Dependent(Protocol):
    """An object that was made from a model and must know of it as it was then."""

    def before_change(self) -> None:
        """Copy what is needed from the model, which is about to change."""


class LayerGraph:
    """Layers and what is derived from their connections.

    Only the ports record connections: each input has a source, each output has readers. Everything else (edges, order,
    dead layers, inputs, outputs, the networkx graph) is derived on demand and cached until the next edit.
    """

    def __init__(self, layers: Iterable[Layer], *, name: str = "", path: str | None = None, has_gaps: bool = False):
        """Create a graph of layers with distinct ids whose ports are already joined.

        ``has_gaps`` means that some layers or edges are missing, so that no layer is known to be dead. Raises
        ModelError if the layers form a cycle.
        """
        self.name = name
        self.path = path
        self.has_gaps = has_gaps
        self._file_order = list(layers)
        self._by_id = {layer.id: layer for layer in self._file_order}
        self._layers: list[Layer] | None = None
        self._position: dict[Layer, int] | None = None
        self._in_file_order = False
        self._next_id: int | None = None
        self._set_order()
        for layer in self._file_order:
            layer.owner = self
        for layer in self._file_order:
            if layer.bodies and self.own_key(layer) != layer.name:
                set_scopes(layer)
        self._dependents: WeakSet[Dependent] = WeakSet()

    @property
    def scope(self) -> str:
        """Return the names of the layers around this body, such as ``loop/body/``; empty for a model that is not a
        body."""
        return self._file_order[0].scope if self._file_order else ""

    @property
    def layers(self) -> list[Layer]:
        """Return the layers in topological order, which is the order of the file if that is a topological one."""
        if self._layers is None:
            self._layers = list(self._positions)
        return self._layers

    @property
    def _positions(self) -> dict[Layer, int]:
        """Return the layers in topological order, each with a number that increases from layer to layer."""
        if self._position is None:
            self._set_order()
        assert self._position is not None
        return self._position

    def _set_order(self) -> None:
        order = topological_order(self._file_order)
        self._in_file_order = order is self._file_order
        self._position = {layer: i for i, layer in enumerate(order)}

    @property
    def edges(self) -> list[Edge]:
        """Return all edges, ordered by the layers and inputs that they lead to."""
        return [
            Edge(source.layer.id, source.id, layer.id, port.id, port.edge_line)
            for layer in self._file_order
            for port in layer.inputs
            if (source := port.source) is not None
        ]

    @cached_property
    def graph(self) -> nx.MultiDiGraph[int]:
        """Return the model as a frozen networkx graph.

        Nodes are layer ids with the attribute ``layer``. The key of an edge is the id of its input port; its attributes
        are ``from_port``, ``to_port`` and ``line``. To edit a model, use its own methods.
        """
        import networkx as nx  # importing networkx takes longer than reading a small file

        graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(name=self.name)
        for layer in self._file_order:
            graph.add_node(layer.id, layer=layer)
        for e in self.edges:
            graph.add_edge(e.from_layer, e.to_layer, e.to_port, from_port=e.from_port, to_port=e.to_port, line=e.line)
        return nx.freeze(graph)

    @cached_property
    def inputs(self) -> list[Port]:
        """Return the output ports of the Parameters, in the order of the file."""
        return [layer.outputs[0] for layer in self._file_order if layer.type == "Parameter"]

    @cached_property
    def outputs(self) -> list[Port]:
        """Return the input ports of the Results, in the order of the file; each has the names of the tensor that it
        reads."""
        return [layer.inputs[0] for layer in self._file_order if layer.type == "Result" and layer.inputs]

    @cached_property
    def dead_layers(self) -> frozenset[Layer]:
        """Return the layers that no Result and no Assign depends on."""
        return frozenset() if self.has_gaps else frozenset(dead_layers(self._file_order))

    def walk(self) -> Iterator[Layer]:
        """Yield the layers of the model and of all its bodies; the layers of a body follow the layer that has it."""
        for layer in self.layers:
            yield layer
            for body in layer.bodies.values():
                yield from body.walk()

    @cached_property
    def _numbered(self) -> dict[Layer, str]:
        """Return the layers that share their name with others, each with a name of its own."""
        first: dict[str, Layer] = {}
        for layer in self._file_order:
            first.setdefault(layer.name, layer)
        holders = [layer for layer in self._file_order if layer.bodies]
        imitated = {layer for layer in holders if any(name.startswith(f"{layer.name}/") for name in first)}
        found: dict[Layer, str] = {}
        taken = set(first)
        for layer in self._file_order:
            if first[layer.name] is layer and layer not in imitated:
                continue
            name = f"{layer.name}#{layer.id}"
            while name in taken:
                name += f"#{layer.id}"
            taken.add(name)
            found[layer] = name
        return found

    def own_key(self, layer: Layer) -> str:
        """Return the part of a layer's key that tells it from the other layers of this model."""
        return self._numbered.get(layer, layer.name)

    def layer(self, key: str | int) -> Layer:
        """Return the layer with this id, the first layer with this name, or the layer with this key.

        The key of a layer in a body is like ``loop/body/name``; see ``Layer.key``.

        Raises NotFoundError, which is also a KeyError, if there is none.
        """
        if isinstance(key, int):
            if key in self._by_id:
                return self._by_id[key]
            raise NotFoundError(diagnose(USAGE, f"no layer has the id {key}", Place(self.path)))
        for layer in self._file_order:
            if layer.name == key:
                return layer
        keys = key, f"{self.scope}{key}"
        for layer in self.walk():
            if layer.key in keys:
                return layer
        hint = did_you_mean(str(key), (layer.name for layer in self._file_order))
        raise NotFoundError(diagnose(USAGE, f"no layer is named {key!r}", Place(self.path), hint=hint))

    def dispose(self) -> None:
        """Disconnect layers and ports that are no longer needed.

        This frees their memory at once. Otherwise reference cycles would keep it until the next garbage collection.
        """
        for layer in self._file_order:
            for port in layer.outputs:
                port._readers = None
            layer.owner = None
            layer.inputs.clear()
            layer.outputs.clear()

    # ----- for edits

    def add_dependent(self, dependent: Dependent) -> None:
        """Let an object that was made from this model be called before the model changes."""
        self._dependents.add(dependent)

    def _prepare_change(self) -> None:
        """Call the dependents, which then no longer depend on this model."""
        dependents = list(self._dependents)
        self._dependents.clear()
        for dependent in dependents:
            dependent.before_change()

    def _clear_derived(self) -> None:
        """Clear everything that is derived, except the positions of layers."""
        self._layers = None
        for name in ("graph", "inputs", "outputs", "dead_layers", "_numbered"):
            vars(self).pop(name, None)

    def _edges_removed(self) -> None:
        """Clear what is derived after an edge was removed, because layers may now move closer to their order in the
        file."""
        if not self._in_file_order:
            self._position = None
        self._clear_derived()


def set_scopes(layer: Layer) -> None:
    """Update the scope of all layers in the bodies of a layer, after its name or scope has changed."""
    pending = [layer]
    while pending:
        outer = pending.pop()
        for key, body in outer.bodies.items():
            for inner in body.layers:
                inner.scope = f"{outer.key}/{key}/"
                pending.append(inner)
