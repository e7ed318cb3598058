"""Layers that are connected, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ovir.diagnostics.codes import USAGE
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import NotFoundError
from ovir.diagnostics.spelling import did_you_mean
from ovir.graph.layers import Layer, Port
from ovir.graph.order import dead_layers, topological_order

if TYPE_CHECKING:
    import networkx as nx


class Edge(NamedTuple):
    """From an output port to an input port, by the ids of the file."""

    from_layer: int
    from_port: int
    to_layer: int
    to_port: int
    line: int | None = None


class LayerGraph:
    """Layers, and what their connections say of them.

    Only the ports record connections: each input has its source, each output its readers. Everything else (edges,
    order, dead layers, inputs, outputs, the networkx graph) is derived when it is asked for and cached until an edit.
    """

    def __init__(self, layers: Iterable[Layer], *, name: str = "", path: str | None = None, has_gaps: bool = False):
        """Take layers with distinct ids whose ports are joined; ModelError where they depend on each other.

        With ``has_gaps`` some layers or edges are missing, so that none is known to be dead.
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

    @property
    def scope(self) -> str:
        """In a body: the names of the layers around it, as ``loop/body/``; empty in a model of its own."""
        return self._file_order[0].scope if self._file_order else ""

    @property
    def layers(self) -> list[Layer]:
        """The layers in topological order: that of the file where it is one."""
        if self._layers is None:
            self._layers = list(self._positions)
        return self._layers

    @property
    def _positions(self) -> dict[Layer, int]:
        """The layers in topological order, each with a number that rises."""
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
        """All edges, in the order of the layers and inputs that they lead to."""
        return [
            Edge(source.layer.id, source.id, layer.id, port.id, port.edge_line)
            for layer in self._file_order
            for port in layer.inputs
            if (source := port.source) is not None
        ]

    @cached_property
    def graph(self) -> nx.MultiDiGraph[int]:
        """Nodes are layer ids with their Layer as ``layer``; edges are keyed by the to-port's id and
        have ``from_port``, ``to_port`` and ``line``. It is frozen: a model is edited by its own methods."""
        import networkx as nx  # takes longer than a small file

        graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(name=self.name)
        for layer in self._file_order:
            graph.add_node(layer.id, layer=layer)
        for e in self.edges:
            graph.add_edge(e.from_layer, e.to_layer, e.to_port, from_port=e.from_port, to_port=e.to_port, line=e.line)
        return nx.freeze(graph)

    @cached_property
    def inputs(self) -> list[Port]:
        """The output ports of the Parameters, in the order of the file."""
        return [layer.outputs[0] for layer in self._file_order if layer.type == "Parameter"]

    @cached_property
    def outputs(self) -> list[Port]:
        """The input ports of the Results, in the order of the file; their names are those of the
        tensor that arrives there."""
        return [layer.inputs[0] for layer in self._file_order if layer.type == "Result" and layer.inputs]

    @cached_property
    def dead_layers(self) -> frozenset[Layer]:
        """The layers that no result and no state depends on."""
        return frozenset() if self.has_gaps else frozenset(dead_layers(self._file_order))

    def layer(self, key: str | int) -> Layer:
        """Return a layer by id, or by name (the first that has it); NotFoundError, a KeyError too, if none."""
        if isinstance(key, int):
            if key in self._by_id:
                return self._by_id[key]
            raise NotFoundError(diagnose(USAGE, f"no layer has the id {key}", Place(self.path)))
        for layer in self._file_order:
            if layer.name == key:
                return layer
        hint = did_you_mean(str(key), (layer.name for layer in self._file_order))
        raise NotFoundError(diagnose(USAGE, f"no layer is named {key!r}", Place(self.path), hint=hint))

    def dispose(self) -> None:
        """Take layers and ports apart once they are not needed any more.

        Their memory is then free at once: no references are left that only a garbage collection would find.
        """
        for layer in self._file_order:
            for port in layer.outputs:
                port._readers = None
            layer.owner = None
            layer.inputs.clear()
            layer.outputs.clear()

    # ----- for edits

    def _changed(self) -> None:
        """Forget everything that is derived, except the positions of layers."""
        self._layers = None
        for name in ("graph", "inputs", "outputs", "dead_layers"):
            vars(self).pop(name, None)

    def _loosened(self) -> None:
        """The same after an edge has gone: layers may come nearer to their places in the file."""
        if not self._in_file_order:
            self._position = None
        self._changed()
