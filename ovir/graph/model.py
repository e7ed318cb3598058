"""A model in memory: layers with ports, joined in a networkx graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ovir.core.dimensions import DimensionLike
from ovir.core.shapes import PartialShape
from ovir.diagnostics.codes import CYCLE, USAGE
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import InputError, ModelError, NotFoundError
from ovir.diagnostics.spelling import did_you_mean

if TYPE_CHECKING:
    import networkx as nx
    from lxml.etree import _Element


from ovir.graph.layers import Layer, Port, path_text

ShapeLike = PartialShape | Sequence[DimensionLike] | str


class Edge(NamedTuple):
    """From an output port to an input port, by the ids of the file."""

    from_layer: int
    from_port: int
    to_layer: int
    to_port: int
    line: int | None = None


class Model:
    """Layers and edges, checked to be an acyclic graph. Made by ``read_model``."""

    def __init__(
        self,
        layers: Iterable[Layer],
        edges: Iterable[Edge],
        *,
        name: str = "",
        version: int = 11,
        path: str | None = None,
        rt_info: _Element | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.path = path
        self.rt_info = rt_info
        self.edges = list(edges)
        self.read_diagnostics: list[Diagnostic] = []
        """What reading found that is not an error."""
        self.inference_diagnostics: list[Diagnostic] = []
        """What the last inference found that is not an error."""
        self.revision = 0
        """How often it has been inferred; what was made of an earlier inference is out of date."""
        self._file_order = list(layers)
        self._by_id = {layer.id: layer for layer in self._file_order}
        self.layers: list[Layer] = self._topological_order()
        """In topological order."""
        self._mark_dead()
        for layer in self._file_order:
            for port in layer.outputs:
                port.readers = []
        for layer in self._file_order:
            for port in layer.inputs:
                if port.source is not None:
                    cast("list[Port]", port.source.readers).append(port)
        for port in self.outputs:
            if port.source is not None:
                port.names |= port.source.names

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What reading and the last inference found that is not an error."""
        return [*self.read_diagnostics, *self.inference_diagnostics]

    @cached_property
    def graph(self) -> nx.MultiDiGraph[int]:
        """Nodes are layer ids with their Layer as ``layer``; edges are keyed by the to-port's id and
        have ``from_port``, ``to_port`` and ``line``."""
        import networkx as nx  # takes longer than a small file

        graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(name=self.name)
        for layer in self._file_order:
            graph.add_node(layer.id, layer=layer)
        for e in self.edges:
            graph.add_edge(e.from_layer, e.to_layer, e.to_port, from_port=e.from_port, to_port=e.to_port, line=e.line)
        return graph

    @cached_property
    def inputs(self) -> list[Port]:
        """The output ports of the Parameters, in the order of the file."""
        return [layer.outputs[0] for layer in self._file_order if layer.type == "Parameter"]

    @cached_property
    def outputs(self) -> list[Port]:
        """The input ports of the Results, in the order of the file; their names are those of the
        tensor that arrives there."""
        return [layer.inputs[0] for layer in self._file_order if layer.type == "Result" and layer.inputs]

    def layer(self, key: str | int) -> Layer:
        """A layer by id, or by name (the first that has it); NotFoundError, a KeyError too, where there is none."""
        if isinstance(key, int):
            if key in self._by_id:
                return self._by_id[key]
            raise NotFoundError(diagnose(USAGE, f"no layer has the id {key}", Place(self.path)))
        for layer in self._file_order:
            if layer.name == key:
                return layer
        hint = did_you_mean(str(key), (layer.name for layer in self._file_order))
        raise NotFoundError(diagnose(USAGE, f"no layer is named {key!r}", Place(self.path), hint=hint))

    def infer_shapes(self) -> None:
        """Infer the type and shape of every port; ``read_model`` has done it. ModelError where it fails."""
        from ovir.inference.engine import infer_model  # inference works on models, and so imports this module

        self.inference_diagnostics = infer_model(self)

    def reshape(self, shapes: Mapping[Any, ShapeLike] | ShapeLike) -> None:
        """Give inputs other shapes and infer again. ``shapes`` maps an input's name or position to its
        shape; one shape alone is for a model with one input. On an error nothing changes."""
        from ovir.inference.engine import reshape_model  # see infer_shapes

        self.inference_diagnostics = reshape_model(self, shapes if isinstance(shapes, Mapping) else {0: shapes})

    def input_index(self, key: str | int) -> int:
        """The position of an input given by position, tensor name or layer name; InputError for none."""
        if isinstance(key, int):
            if 0 <= key < len(self.inputs):
                return key
        else:
            for match in (lambda p: key in p.names, lambda p: key == p.layer.name):
                for index, port in enumerate(self.inputs):
                    if match(port):
                        return index
        known = ", ".join(f"{i} '{port.any_name}'" for i, port in enumerate(self.inputs)) or "none"
        message = f"the model has no input {key!r}; its inputs are {known}"
        raise InputError(diagnose(USAGE, message, Place(self.path)))

    def extended(self, added: Iterable[Layer], edges: Iterable[Edge]) -> Model:
        """The same model with more layers, and with ``edges`` in place of its own."""
        layers = [*self._file_order, *added]
        return Model(layers, edges, name=self.name, version=self.version, path=self.path, rt_info=self.rt_info)

    def dispose(self) -> None:
        """Take layers and ports apart, when nobody needs them any more: their memory is free at once, and no garbage
        collection has to find that out."""
        for layer in self._file_order:
            for port in layer.outputs:
                port.readers = ()
            layer.inputs.clear()
            layer.outputs.clear()

    # ----- the graph's order

    def _topological_order(self) -> list[Layer]:
        position = {layer.id: i for i, layer in enumerate(self._file_order)}
        pairs = [(e.from_layer, e.to_layer) for e in self.edges]
        pairs += self._state_order()
        if all(position[first] < position[second] for first, second in pairs):
            return list(self._file_order)  # as most writers do
        import networkx as nx

        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(position)
        graph.add_edges_from(pairs)
        try:
            order = list(nx.lexicographical_topological_sort(graph, key=position.__getitem__))
        except nx.NetworkXUnfeasible:
            ids = [edge[0] for edge in nx.find_cycle(graph)]
            path = path_text([self._by_id[i] for i in [*ids, ids[0]]])
            first = min((self._by_id[i] for i in ids), key=lambda layer: layer.line or 0)
            found = diagnose(CYCLE, f"these layers depend on each other: {path}", first.place)
            raise ModelError(found) from None
        return [self._by_id[i] for i in order]

    def _state_order(self) -> list[tuple[int, int]]:
        """An Assign writes the state that its ReadValue has read before: (reader, assign)."""
        readers: dict[Any, list[int]] = {}
        for layer in self._file_order:
            if layer.type == "ReadValue":
                readers.setdefault(layer.attributes.get("variable_id"), []).append(layer.id)
        assigns = (layer for layer in self._file_order if layer.type == "Assign") if readers else ()
        return [
            (reader, layer.id) for layer in assigns for reader in readers.get(layer.attributes.get("variable_id"), [])
        ]

    def _mark_dead(self) -> None:
        alive = {layer.id for layer in self._file_order if layer.type in ("Result", "Assign")}
        if not alive:  # it cannot be said what the model is for
            return
        for layer in reversed(self.layers):
            if layer.id in alive:
                for port in layer.inputs:
                    if port.source is not None:
                        alive.add(port.source.layer.id)
        for layer in self.layers:
            layer.is_dead = layer.id not in alive and layer.type != "Parameter"

    def __repr__(self) -> str:
        return (
            f"<Model {self.name!r}: {len(self.layers)} layers, {len(self.inputs)} inputs, {len(self.outputs)} outputs>"
        )
