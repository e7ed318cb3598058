"""Parts of a model: the layers between given inputs and outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Generic, TypeVar, cast

from ovir.building.creation import new_operation, new_parameter, new_result
from ovir.diagnostics.diagnostic import in_place_of
from ovir.diagnostics.errors import InputError, ModelError
from ovir.editing.keys import TensorKeys, find_tensors, read_by, refuse
from ovir.editing.transaction import infer_edited, owner_of, with_types
from ovir.graph.connections import set_scopes
from ovir.graph.copies import copied
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port, join, path_text, separate
from ovir.graph.names import default_name, free_name, name_tensors, result_name, take_name
from ovir.graph.order import find_path, followers, trace_back
from ovir.inference.engines import state_readers
from ovir.inference.models import infer_if_edited, set_parameters
from ovir.ops.infrastructure import Parameter
from ovir.ops.state import AssignBase

G = TypeVar("G", bound=LayerGraph)


def extract(model: G, inputs: TensorKeys | None, outputs: TensorKeys | None, *, for_states: bool = True) -> G:
    """Return the part of a model between inputs and outputs; see ``Model.extract``.

    Without ``for_states``, it has no layers that only Assigns need.
    """
    with_types(model)
    cut = None if inputs is None else find_tensors(model, inputs)
    wanted = None if outputs is None else find_tensors(model, outputs)
    graph = _graph_of(model, [*(cut or []), *(wanted or [])])
    if wanted is None:
        wanted = [port.source for port in graph.outputs if port.source is not None]
    if not wanted:
        refuse("a part needs at least one output")
    needed = _Needed(cut or [], is_open=cut is None)
    for port in wanted:
        needed.require(port)
    assigns = [layer for layer in graph.layers if layer.type == "Assign"]
    needed.add_assigns(assigns if for_states else filter(needed.has_value_for, assigns))
    return _Part(graph, cut, needed.layers, has_own_results=outputs is None).model(wanted)


def runnable_part(model: G, inputs: TensorKeys, outputs: TensorKeys) -> G:
    """Return the part of a model between inputs and outputs, in which variables keep their values if no output depends
    on what their Assigns set."""
    part = extract(model, inputs, outputs, for_states=False)
    assign_unassigned(part)
    infer_if_edited(part)
    return part


def assign_unassigned(model: LayerGraph) -> None:
    """Let each variable that no Assign sets keep its value: OpenVINO does not run a ReadValue without an Assign."""
    assigned = {op.variable_id for layer in model.layers if isinstance(op := layer.operator, AssignBase)}
    for variable, reader in state_readers(model.layers).items():
        if variable not in assigned and reader.operator is not None:
            name, opset = f"{reader.name}/assign", reader.operator.opset
            assign = new_operation(model.next_id, name, "Assign", 1, opset, variable_id=variable)
            model.add_layer(assign, reader.outputs)


def _graph_of(model: G, ports: Sequence[Port]) -> G:
    """Return the model or body that all tensors are in: a graph of the same class."""
    graphs = list(dict.fromkeys(owner_of(port.layer) for port in ports)) or [model]
    if len(graphs) > 1:
        names = " and ".join(f"'{graph.scope.rstrip('/')}'" if graph.scope else "the model itself" for graph in graphs)
        hint = "give inputs and outputs that are in the same body"
        raise InputError.usage(f"a part cannot cross the border of a body: got tensors of {names}", hint=hint)
    return cast("G", graphs[0])


class _Needed:
    """The layers that outputs depend on, without those before the cut."""

    def __init__(self, cut: Collection[Port], *, is_open: bool) -> None:
        self._cut = frozenset(cut)
        self._is_open = is_open
        """Whether every Parameter may be an input of the part."""
        self.layers: set[Layer] = set()

    def require(self, output: Port) -> None:
        """Add the layers that an output depends on; raise InputError if it needs an input that is not given."""
        if output in self._cut:
            return
        before, missing = self._before(output.layer)
        if missing is not None:
            way = find_path([missing], output.layer, lambda layer: filter(before.__contains__, followers(layer, {})))
            path = path_text(way or ())
            message = f"the part leaves input '{missing.name}' undefined: '{output.any_name}' depends on it, by {path}"
            hint = f"add '{missing.name}' to the inputs, or cut at another tensor between the two"
            raise InputError.usage(message, missing.place, hint=hint)
        self.layers |= before

    def add_assigns(self, assigns: Iterable[Layer]) -> None:
        """Add the Assigns of variables that the part reads, with the layers before, if the part can compute them."""
        waiting = list(assigns)
        while True:
            read = state_readers(self.layers)
            ready = [
                layer for layer in waiting if isinstance(op := layer.operator, AssignBase) and op.variable_id in read
            ]
            if not ready:
                return
            waiting = [layer for layer in waiting if layer not in ready]
            for layer in ready:
                before, missing = self._before(layer)
                if missing is None:
                    self.layers |= before

    def has_value_for(self, assign: Layer) -> bool:
        """Return whether the part has the tensor that an Assign sets."""
        source = assign.inputs[0].source
        return source is not None and (source in self._cut or source.layer in self.layers)

    def _before(self, end: Layer) -> tuple[set[Layer], Layer | None]:
        """Return the layers before ``end`` that are not needed yet, and a missing Parameter."""
        before, _ = trace_back([end], lambda port: port not in self._cut and port.layer not in self.layers)
        for layer in before:
            for port in layer.inputs:
                read_by(port)
        parameters = (layer for layer in before if layer.type == "Parameter")
        return set(before), None if self._is_open else next(parameters, None)


class _Part(Generic[G]):
    """The copy of some layers of a model."""

    def __init__(
        self, graph: G, cut: Sequence[Port] | None, needed: Collection[Layer], *, has_own_results: bool
    ) -> None:
        self._graph = graph
        self._cut = cut
        self._has_own_results = has_own_results
        own = {port.layer for port in cut or [] if port.layer.type == "Parameter"}
        ends = ("Parameter", "Result")
        self._inner = [layer for layer in graph.file_order if layer in needed and layer.type not in ends]
        self._own_inputs = [port.layer for port in graph.inputs if port.layer in (needed if cut is None else own)]
        self._next_id = graph.next_id
        self._layer_names = {layer.name for layer in (*self._inner, *self._own_inputs)}

    def model(self, wanted: Sequence[Port]) -> G:
        """Return the part as a model with these outputs."""
        graph = self._graph
        results = self._own_results(wanted)
        kept = [*self._own_inputs, *self._inner, *dict.fromkeys(layer for layer in results if layer is not None)]
        copies = copied(kept)
        for layer in copies.values():
            layer.scope = ""
            set_scopes(layer)
        tensors = {a: b for old, new in copies.items() for a, b in zip(old.outputs, new.outputs, strict=True)}
        inputs = self._inputs(copies, tensors)
        for old, new in copies.items():
            for a, b in zip(old.inputs, new.inputs, strict=True):
                if a.source is not None:
                    separate(b)
                    join(tensors[a.source], b, a.edge_line)
        ends = self._results(wanted, results, copies, tensors)
        inner = [copies[layer] for layer in self._inner]
        part = type(graph).of_layers(
            [*inputs, *inner, *ends],
            name=graph.name,
            path=graph.path,
            rt_info=graph.rt_info,
            has_gaps=graph.has_gaps,
        )
        try:
            infer_edited(part)
        except ModelError as error:
            error.add_note("  hint: inference knows less of the part than of the whole model: " + _UNKNOWN)
            raise
        return part

    def _inputs(self, copies: dict[Layer, Layer], tensors: dict[Port, Port]) -> list[Layer]:
        """Return the Parameters of the part, and enter the tensors that they stand for in ``tensors``."""
        for layer in self._own_inputs:
            if self._graph.scope:  # what a body is fed need not be what its Parameter declares
                port = layer.outputs[0]
                set_parameters({copies[layer]: Parameter(element_type=port.element_type, shape=port.shape)})
        if self._cut is None:
            return [copies[layer] for layer in self._own_inputs]
        found = []
        taken = {name for port in tensors.values() for name in port.own_names}
        for port in self._cut:
            if port.layer in copies and port.layer.type == "Parameter":
                found.append(copies[port.layer])
                continue
            if port in tensors:  # another output of its layer is computed in the part
                taken -= port.own_names
                tensors[port].own_names = frozenset()
            wanted = default_name(port)
            name = take_name(port.any_name if wanted in self._layer_names else wanted, self._layer_names)
            with in_place_of(port.layer.place):
                new = new_parameter(self._new_id(), name, port.type)
            new.outputs[0].own_names = port.own_names or frozenset({free_name(default_name(port), taken)})
            taken |= new.outputs[0].own_names
            tensors[port] = new.outputs[0]
            found.append(new)
        return found

    def _own_results(self, wanted: Sequence[Port]) -> list[Layer | None]:
        """Return for each output the Result that the model has for it, if it has one."""
        if self._has_own_results:
            return [port.layer for port in self._graph.outputs if port.source is not None]
        return [next((r.layer for r in port.readers if r.layer.type == "Result"), None) for port in wanted]

    def _results(
        self,
        wanted: Sequence[Port],
        own: Sequence[Layer | None],
        copies: dict[Layer, Layer],
        tensors: dict[Port, Port],
    ) -> list[Layer]:
        new_ones = [tensors[port] for port, layer in zip(wanted, own, strict=True) if layer is None]
        name_tensors(new_ones, {name for port in tensors.values() for name in port.own_names})
        found = []
        for port, layer in zip(wanted, own, strict=True):
            if layer is not None:
                found.append(copies[layer])
                continue
            with in_place_of(port.layer.place):
                new = new_result(self._new_id(), take_name(result_name(tensors[port]), self._layer_names))
            join(tensors[port], new.inputs[0])
            found.append(new)
        return found

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1


_UNKNOWN = "the values of its inputs are unknown; cut at tensors that are not shapes"
