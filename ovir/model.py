"""A model in memory: layers with ports, joined in a networkx graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from lxml import etree

from ovir.codes import CYCLE, USAGE
from ovir.diagnostics import OWN_FAULT, Diagnostic, InputError, ModelError, NotFoundError, Place, diagnostic
from ovir.element_types import ElementType, dynamic
from ovir.spelling import did_you_mean
from ovir.types import DimensionLike, PartialShape
from ovir.values import TensorType

if TYPE_CHECKING:
    import networkx as nx
    from lxml.etree import _Element

    from ovir.ops.operator import Operator

UNKNOWN_TENSOR = TensorType(dynamic, PartialShape(None))
ShapeLike = PartialShape | Sequence[DimensionLike] | str


@dataclass(eq=False, slots=True)
class Port:
    """An input or output of a layer.

    ``shape`` and ``element_type`` are inferred; ``stated_shape`` and ``stated_element_type`` are what
    the file claims (None where it says nothing). ``id`` is the file's number.
    """

    layer: Layer
    index: int
    id: int
    is_output: bool
    stated_shape: PartialShape | None = None
    stated_element_type: ElementType | None = None
    names: frozenset[str] = frozenset()
    line: int | None = None
    rt_info: _Element | None = None
    source: Port | None = None
    """For an input: the output port that feeds it."""
    readers: Sequence[Port] = ()
    """For an output: the input ports that it feeds."""
    inferred: TensorType | None = None
    """For an output: what inference knows of it; None before inference."""

    @property
    def type(self) -> TensorType:
        """Element type, shape and known content."""
        return (self if self.source is None else self.source).inferred or UNKNOWN_TENSOR

    @property
    def shape(self) -> PartialShape:
        return self.type.shape

    @property
    def element_type(self) -> ElementType:
        return self.type.element_type

    @property
    def place(self) -> Place:
        return self.layer.at(self.line)

    @property
    def any_name(self) -> str:
        """A tensor name (the first in order that is no mere number), or the layer's name where there is none."""
        return min(self.names, key=lambda name: (name.isdigit(), name)) if self.names else self.layer.name

    def __repr__(self) -> str:
        kind = "output" if self.is_output else "input"
        return f"<{kind} {self.index} of {self.layer.name!r}: {self.type}>"


@dataclass(eq=False, slots=True)
class Layer:
    """One operation of a model.

    ``version`` is the file's text (``opset6``); ``operator`` the operation with typed attributes, None
    where ovir has none for this type and version. ``attributes`` holds every attribute of the file by
    its name there, typed by the operation's declaration; one that it does not declare stays a text.
    """

    id: int
    name: str
    type: str
    version: str
    attributes: dict[str, Any] = field(default_factory=dict)
    operator: Operator | None = None
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    bodies: dict[str, Model] = field(default_factory=dict)
    line: int | None = None
    data_line: int | None = None
    """That of its <data>."""
    file: str | None = None
    scope: str = ""
    """Of a layer in a body: the names of the layers around it, as ``loop/body/``."""
    rt_info_source: _Element | str | None = None
    """Its <rt_info>, or the text of it."""
    is_dead: bool = False
    """Whether no result and no state depends on it; OpenVINO drops such layers."""

    @property
    def rt_info(self) -> _Element | None:
        """What its writer wanted to be kept with it; the text of it is parsed when it is first asked for."""
        if isinstance(self.rt_info_source, str):
            self.rt_info_source = etree.fromstring(self.rt_info_source, etree.XMLParser(huge_tree=True))
        return self.rt_info_source

    @property
    def title(self) -> str:
        """How messages name the layer."""
        inside = f" in {self.scope.rstrip('/')}" if self.scope else ""
        return f"layer {self.id} '{self.name}' ({self.type}, {self.version}){inside}"

    @property
    def place(self) -> Place:
        return self.at(None)

    @property
    def data_place(self) -> Place:
        """Where its attributes stand."""
        return self.at(self.data_line)

    @property
    def fault_hint(self) -> str:
        """A hint for an exception that its operation should not raise."""
        if self.operator is not None and not self.operator.opset:
            return f"this is a fault of the class {type(self.operator).__name__}, which was registered for {self.type}"
        return OWN_FAULT

    def at(self, line: int | None) -> Place:
        """A line that says something of the layer; without one, its own."""
        return Place(self.file, line or self.line, self.title, self.id)

    def __repr__(self) -> str:
        return f"<{self.title}>"


def path_text(layers: Sequence[Layer]) -> str:
    """A way through layers, as messages show it; of a long one the ends."""
    shown = [f"{layer.id} '{layer.name}'" for layer in layers]
    if len(shown) > 2 * _SHOWN:
        shown[_SHOWN:-_SHOWN] = [f"({len(shown) - 2 * _SHOWN} more)"]
    return " -> ".join(shown)


_SHOWN = 10  # layers at either end


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
            raise NotFoundError(diagnostic(USAGE, f"no layer has the id {key}", Place(self.path)))
        for layer in self._file_order:
            if layer.name == key:
                return layer
        hint = did_you_mean(str(key), (layer.name for layer in self._file_order))
        raise NotFoundError(diagnostic(USAGE, f"no layer is named {key!r}", Place(self.path), hint=hint))

    def infer_shapes(self) -> None:
        """Infer the type and shape of every port; ``read_model`` has done it. ModelError where it fails."""
        from ovir.inference import infer_model  # inference works on models, and so imports this module

        self.inference_diagnostics = infer_model(self)

    def reshape(self, shapes: Mapping[Any, ShapeLike] | ShapeLike) -> None:
        """Give inputs other shapes and infer again. ``shapes`` maps an input's name or position to its
        shape; one shape alone is for a model with one input. On an error nothing changes."""
        from ovir.inference import reshape_model  # see infer_shapes

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
        raise InputError(diagnostic(USAGE, message, Place(self.path)))

    def extended(self, added: Iterable[Layer], edges: Iterable[Edge]) -> Model:
        """The same model with more layers, and with ``edges`` in place of its own."""
        layers = [*self._file_order, *added]
        return Model(layers, edges, name=self.name, version=self.version, path=self.path, rt_info=self.rt_info)

    def let_go(self) -> None:
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
            found = diagnostic(CYCLE, f"these layers depend on each other: {path}", first.place)
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
