"""The data of a model: connected layers, runtime information, and everything that is derived from the connections."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, SupportsIndex
from weakref import WeakSet

from ovir.core.public_names import PublicNames
from ovir.diagnostics.codes import TOO_DEEP
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import InputError, ModelError, NotFoundError, require_texts
from ovir.diagnostics.wording import did_you_mean
from ovir.graph.layers import Layer, Port, ReadOnlyDict, ReadOnlyList
from ovir.graph.order import NARROW, FileOrder, Ranks, dead_layers, topological_order, walk
from ovir.graph.rt_info import NO_RT_INFO, ModelRtInfo, RtInfo

if TYPE_CHECKING:
    import networkx as nx

MAX_DEPTH = 32
"""The deepest nesting of bodies; real models have two or three levels."""


class Edge(NamedTuple):
    """A connection from an output port to an input port, given by the ids in the file."""

    from_layer: int
    """The id of the layer that it comes from."""
    from_port: int
    """The id of the output port."""
    to_layer: int
    """The id of the layer that it leads to."""
    to_port: int
    """The id of the input port."""
    line: int | None = None
    """The line in the file, from 1; None for an edge that no file has."""


class Dependent(Protocol):
    """An object that was made from a model and must know of it as it was then."""

    def before_change(self) -> None:
        """Copy the needed data from the model, which is about to change."""


class ConnectedLayers(PublicNames):
    """The data of a model or a body: its layers, and data derived from their connections.

    Only the ports record connections: each input has a source, each output has readers. Everything else (edges, order,
    dead layers, inputs, outputs, the networkx graph) is derived on demand and cached until the next edit.
    """

    _internal = frozenset(
        [
            "holder",
            "scope",
            "has_gaps",
            "needs_inference",
            "graphs",
            "around",
            "require_depth",
            "own_key",
            "named",
            "dispose",
            "add_dependent",
            "read_diagnostics",
            "inference_diagnostics",
            "revision",
            "open_edits",
            "prepare_change",
            "rt_info_data",
            "has_id",
            "set_layer_names",
        ]
    )
    _elsewhere: ClassVar = {
        "friendly_name": "model.name",
        "get_friendly_name": "model.name",
        "set_friendly_name": "model.name = ...",
        "get_name": "model.name",
        "is_dynamic": "any(port.shape.is_dynamic for port in model.inputs)",
        "get_parameter_index": "model.input_index(port)",
        "get_result_index": "model.outputs.index(port)",
        "get_result": "model.get_results()[0]",
        "get_sinks": "[layer for layer in model.layers if layer.type == 'Assign']",
        "get_variables": "compile_model(model).create_infer_request().query_state()",
        "add_results": "model.add_outputs(tensors)",
        "remove_result": "model.remove(layer)",
        "remove_parameter": "model.remove(layer)",
        "replace_parameter": "model.extract(inputs, outputs)",
        "validate_nodes_and_infer_types": "model.infer_shapes()",
        "evaluate": "compile_model(model)(inputs)",
        "get_output_shape": "model.output(i).shape",
        "get_output_partial_shape": "model.output(i).shape",
        "get_output_element_type": "model.output(i).element_type",
        "get_output_size": "len(model.outputs)",
        "save": "ovir.save_model(model, path)",
    }

    def __init__(
        self,
        layers: Iterable[Layer],
        *,
        name: str = "",
        version: int = 11,
        path: str | None = None,
        rt_info: RtInfo = NO_RT_INFO,
        has_gaps: bool = False,
    ) -> None:
        """Create a graph; see ``of_layers``."""
        self.name = name
        self.version: int = version
        """The version of the file format."""
        self.path: str | None = path
        """The path of the file that it was read from; None for others."""
        self.rt_info_data: RtInfo = RtInfo(rt_info.elements)
        """The runtime information itself, which is immutable."""
        self.read_diagnostics: list[Diagnostic] = []
        """Warnings and infos of reading."""
        self.inference_diagnostics: list[Diagnostic] = []
        """Warnings and infos of the last inference."""
        self.revision = 0
        """The number of inferences so far, by which results of an earlier one are recognized as out of date."""
        self.open_edits: Any = None
        """The block of ``editing`` that has not ended, if there is one."""
        self.has_gaps = has_gaps
        self._order = FileOrder(layers)
        require_own_bodies(self._file_order)
        self._by_id = {layer.id: layer for layer in self._file_order}
        self._layers: list[Layer] | None = ReadOnlyList(topological_order(self._file_order))
        self._ranks: Ranks | None = None
        self._rank_gap = NARROW
        self._first_named: dict[str, Layer] | None = None
        self._next_id: int | None = None
        self.scope = self._file_order[0].scope if self._by_id else ""
        """The names of the layers around this body, such as ``loop/body/``; empty for a model that is not a body."""
        self.holder: Layer | None = None
        """The layer that has this body; None for a model that is not a body."""
        for layer in self._file_order:
            self._adopt(layer)
        for layer in self._file_order:
            if layer.bodies and self.own_key(layer) != layer.name:
                set_scopes(layer)
        self._dependents: WeakSet[Dependent] = WeakSet()
        self.needs_inference = True
        """Whether layers or connections have changed since the last inference without errors, or there was none."""

    @classmethod
    def of_layers(
        cls,
        layers: Iterable[Layer],
        *,
        name: str = "",
        version: int = 11,
        path: str | None = None,
        rt_info: RtInfo = NO_RT_INFO,
        has_gaps: bool = False,
    ) -> Self:
        """Return a model of exactly these layers, with the connections that they have; it is not inferred.

        The layers have distinct ids and are made by hand or read from a file. Layers from the functions of an opset
        are not connected in both directions: ``Model(results, parameters)`` takes them. Use ``connect`` for what is not
        connected yet, and then ``infer_shapes``.

        ``version`` is the version of the file format. ``has_gaps`` means that some layers or edges are missing, so that
        no layer is known to be dead. Raises ModelError for a cycle, and InputError for layers that share a body.
        """
        graph = cls.__new__(cls)
        ConnectedLayers.__init__(
            graph, layers, name=name, version=version, path=path, rt_info=rt_info, has_gaps=has_gaps
        )
        return graph

    @property
    def name(self) -> str:
        """Return the name of the model."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        require_texts(name=name)
        self._name = name

    @property
    def layers(self) -> list[Layer]:
        """Return the layers in topological order, which is the order of the file if that is a topological one."""
        if self._layers is None:
            self._layers = ReadOnlyList(topological_order(self._file_order))
        return self._layers

    @property
    def _file_order(self) -> list[Layer]:
        """Return the layers in the order of the file."""
        return self._order.layers

    @property
    def file_order(self) -> list[Layer]:
        """Return the layers in the order of the file, in which edits put new layers after those that they follow."""
        return ReadOnlyList(self._file_order)

    def _adopt(self, layer: Layer) -> None:
        """Make this model the owner of a layer, whose attributes are read-only from now on."""
        layer.owner = self
        for body in layer.bodies.values():
            body.holder = layer
        if type(layer.attributes) is not ReadOnlyDict:
            layer.attributes = ReadOnlyDict(layer.attributes)

    @property
    def edges(self) -> list[Edge]:
        """Return all edges, ordered by the layers and inputs that they lead to."""
        return [
            Edge(source.layer.id, source.id, layer.id, port.id, port.edge_line)
            for layer in self._file_order
            for port in layer.inputs
            if (source := port.source) is not None
        ]

    @property
    def rt_info(self) -> ModelRtInfo:
        """Return the runtime information of the model, which is empty if the file has none; its entries can be set."""
        return ModelRtInfo(self)

    @rt_info.setter
    def rt_info(self, info: RtInfo) -> None:
        self.rt_info_data = RtInfo(info.elements)

    def get_rt_info(self, path: str | Sequence[str] = ()) -> str | RtInfo:
        """Return an entry of ``rt_info``, or all of it; raise KeyError if there is none."""
        return self.rt_info[(path,) if isinstance(path, str) else tuple(path)]

    def set_rt_info(self, value: object, path: str | Sequence[str]) -> None:
        """Set an entry of ``rt_info``: a text, a number, or a list or mapping of them."""
        self.rt_info[(path,) if isinstance(path, str) else tuple(path)] = value

    def has_rt_info(self, path: str | Sequence[str]) -> bool:
        """Return whether ``rt_info`` has an entry."""
        try:
            self.get_rt_info(path)
        except KeyError:
            return False
        return True

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Return the warnings and infos of reading and of the last inference."""
        return [*self.read_diagnostics, *self.inference_diagnostics]

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
        return ReadOnlyList(layer.outputs[0] for layer in self._file_order if layer.type == "Parameter")

    @cached_property
    def outputs(self) -> list[Port]:
        """Return the input ports of the Results, in the order of the file; each has the names of the tensor that it
        reads."""
        return ReadOnlyList(layer.inputs[0] for layer in self._file_order if layer.type == "Result" and layer.inputs)

    def input(self, key: str | int | Port = 0) -> Port:
        """Return the input with this position or name. Raises InputError if there is none."""
        return port_of(self.inputs, key, "input", self.path)

    def output(self, key: str | int | Port = 0) -> Port:
        """Return the output with this position or name. Raises InputError if there is none."""
        return port_of(self.outputs, key, "output", self.path)

    def input_index(self, key: str | int | Port) -> int:
        """Return the position of an input that is given by position, tensor name, layer name or Port.

        Raises InputError if there is none.
        """
        return self.inputs.index(self.input(key))

    # ----- the same under OpenVINO's names

    @property
    def parameters(self) -> list[Layer]:
        """Return the Parameters, in the order of ``inputs``."""
        return [port.layer for port in self.inputs]

    @property
    def results(self) -> list[Layer]:
        """Return the Results, in the order of ``outputs``."""
        return [port.layer for port in self.outputs]

    def get_parameters(self) -> list[Layer]:
        """Return ``parameters``."""
        return self.parameters

    def get_results(self) -> list[Layer]:
        """Return ``results``."""
        return self.results

    def get_ops(self) -> list[Layer]:
        """Return ``layers``."""
        return self.layers

    def get_ordered_ops(self) -> list[Layer]:
        """Return ``layers``."""
        return self.layers

    @cached_property
    def dead_layers(self) -> frozenset[Layer]:
        """Return the layers that no Result and no Assign depends on."""
        return frozenset() if self.has_gaps else frozenset(dead_layers(self._file_order))

    def walk(self) -> Iterator[Layer]:
        """Return the layers of the model and of all its bodies; the layers of a body follow the layer that has it."""
        return walk(self.layers)

    def graphs(self) -> Iterator[Self]:
        """Yield this model and all its bodies; a body follows the model that has it, which may be edited meanwhile."""
        yield self
        for body in [body for layer in self._file_order for body in layer.bodies.values()]:
            yield from body.graphs()

    def around(self) -> Iterator[ConnectedLayers]:
        """Yield this model and, if it is a body, the models around it, from the inside out."""
        graph: Any = self
        while graph is not None:
            yield graph
            graph = graph.holder.owner if graph.holder is not None else None

    @cached_property
    def _numbered(self) -> dict[Layer, str]:
        """Return the layers that share their name with others, each with a name of its own."""
        first: dict[str, Layer] = {}
        for layer in self._file_order:
            first.setdefault(layer.name, layer)
        holders = [layer for layer in self._file_order if layer.bodies]
        names = sorted(first) if holders else []
        imitated = {layer for layer in holders if _any_starts_with(f"{layer.name}/", names)}
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

    def require_depth(self) -> None:
        """Raise ModelError if bodies are nested more deeply than functions that call themselves can follow."""
        graphs: list[ConnectedLayers] = [self]
        for _ in range(MAX_DEPTH + 1):
            holders = [layer for graph in graphs for layer in graph._file_order if layer.bodies]
            if not holders:
                return
            graphs = list({id(body): body for layer in holders for body in layer.bodies.values()}.values())
        message = f"bodies are nested more than {MAX_DEPTH} deep"
        raise ModelError(diagnose(TOO_DEEP, message, Place(self.path)))

    def own_key(self, layer: Layer) -> str:
        """Return the part of a layer's key that tells it from the other layers of this model."""
        return self._numbered.get(layer, layer.name)

    def layer(self, key: str | int) -> Layer:
        """Return the layer with this id, the first layer with this name, or the layer with this key.

        The key of a layer in a body is like ``loop/body/name``; see ``Layer.key``.

        Raises NotFoundError, which is also a KeyError, if there is none.
        """
        if not isinstance(key, (str, bool, type)) and isinstance(key, SupportsIndex):
            if key.__index__() in self._by_id:
                return self._by_id[key.__index__()]
            raise NotFoundError.usage(f"no layer has the id {key}", Place(self.path))
        found = self._find(str(key))
        if found is None or key not in (found.name, found.key, found.key.removeprefix(self.scope)):
            self._forget_names()  # someone may have set the name of a layer without ``rename_layers``
            found = self._find(str(key))
        if found is not None and isinstance(key, str):
            return found
        hint = did_you_mean(str(key), (layer.name for layer in self._file_order))
        raise NotFoundError.usage(f"no layer is named {key!r}", Place(self.path), hint=hint)

    def _find(self, key: str) -> Layer | None:
        """Return the first layer with this name, or else the layer with this key, with or without ``scope``."""
        return self.named(key) or self._keyed(key) or self._keyed(key.removeprefix(self.scope))

    @property
    def next_id(self) -> int:
        """Return an id that no layer has, and that none has had since this property was first read."""
        if self._next_id is None:
            self._next_id = max(self._by_id, default=-1) + 1
        return self._next_id

    def has_id(self, number: int) -> bool:
        """Return whether a layer of this model, bodies excluded, has this id."""
        return number in self._by_id

    def named(self, name: str) -> Layer | None:
        """Return the first layer with this name, without looking at keys and bodies."""
        if self._first_named is None:
            self._first_named = {layer.name: layer for layer in reversed(self._file_order)}
        return self._first_named.get(name)

    def _keyed(self, key: str) -> Layer | None:
        """Return the layer of this model or one of its bodies with this key, which is without ``scope``."""
        if (found := self._by_own_key.get(key)) is not None:
            return found
        end = key.find("/")
        while end >= 0:
            holder = self._by_own_key.get(key[:end])
            for name, body in holder.bodies.items() if holder is not None else ():
                start = f"{name}/"
                inner: ConnectedLayers = body
                if key.startswith(start, end + 1) and (found := inner._keyed(key[end + 1 + len(start) :])) is not None:
                    return found
            end = key.find("/", end + 1)
        return None

    @cached_property
    def _by_own_key(self) -> dict[str, Layer]:
        return {self.own_key(layer): layer for layer in self._file_order}

    def _forget_names(self) -> None:
        """Clear everything that is derived from the names of layers."""
        self._first_named = None
        for name in ("_numbered", "_by_own_key"):
            vars(self).pop(name, None)

    def dispose(self) -> None:
        """Disconnect layers and ports that are no longer needed.

        This frees their memory at once. Otherwise reference cycles would keep it until the next garbage collection.
        """
        for layer in self._file_order:
            for port in layer.outputs:
                port._readers = None
            layer.owner = None
            for body in layer.bodies.values():
                body.holder = None
            layer.inputs.clear()
            layer.outputs.clear()

    # ----- for edits

    def add_dependent(self, dependent: Dependent) -> None:
        """Let an object that was made from this model be called before the model changes."""
        self._dependents.add(dependent)

    def prepare_change(self) -> None:
        """Call the dependents of this model and of the models around it; they then no longer depend on it.

        Every edit does this before its first change.
        """
        for graph in self.around():
            dependents = list(graph._dependents)
            graph._dependents.clear()
            for dependent in dependents:
                dependent.before_change()

    def _clear_derived(self) -> None:
        """Clear everything that is derived from layers and connections, except data that edits keep up to date."""
        self._layers = None
        self.needs_inference = True
        for name in ("graph", "inputs", "outputs", "dead_layers", "_numbered", "_by_own_key"):
            vars(self).pop(name, None)


def port_of(ports: Sequence[Port], key: str | int | Port, kind: str, path: str | None = None) -> Port:
    """Return the input or output with a position, the name of its tensor or of its layer, or that is a Port.

    The names of an output include that of the layer that computes it. Raises NotFoundError if there is none.
    """
    if isinstance(key, Port):
        if key in ports:
            return key
    elif not isinstance(key, (str, bool, type)) and isinstance(key, SupportsIndex):  # the latter takes 8 us
        if 0 <= key.__index__() < len(ports):
            return ports[key.__index__()]
    else:
        for names in (_tensor_names, _layer_names):
            for port in ports:
                if key in names(port):
                    return port
    known = ", ".join(f"{i}: '{port.any_name}'" for i, port in enumerate(ports)) or "none"
    all_names = [name for port in ports for name in (*_tensor_names(port), *_layer_names(port))]
    hint = did_you_mean(key, all_names) if isinstance(key, str) else None
    raise NotFoundError.usage(f"the model has no {kind} {key!r}; its {kind}s are {known}", Place(path), hint=hint)


def _tensor_names(port: Port) -> Collection[str]:
    return port.names


def _layer_names(port: Port) -> Collection[str]:
    """Return the names of the layer of an input or output, and of the layer that computes an output."""
    layers = [port.layer] if port.source is None else [port.layer, port.source.layer]
    return [layer.name for layer in layers]


def require_own_bodies(layers: Iterable[Layer]) -> None:
    """Raise InputError if a body belongs to two layers: an edit through one of them would change the other."""
    holders: dict[ConnectedLayers, Layer] = {}
    for layer in layers:
        for name, body in layer.bodies.items():
            other = body.holder or holders.setdefault(body, layer)
            if other is not layer:
                message = f"'{name}' is also a body of {other.title}"
                raise InputError.usage(message, layer.place, hint="copy it with clone()")


def set_scopes(layer: Layer) -> None:
    """Update the scope of all layers in the bodies of a layer, after its name or scope has changed."""
    pending = [layer]
    while pending:
        outer = pending.pop()
        for key, body in outer.bodies.items():
            body.scope = f"{outer.key}/{key}/"
            for inner in body.layers:
                inner.scope = body.scope
                pending.append(inner)


def _any_starts_with(start: str, names: list[str]) -> bool:
    """Return whether any of the sorted names starts with ``start``."""
    place = bisect_left(names, start)
    return place < len(names) and names[place].startswith(start)
