"""Export a model: its inputs, outputs, state and layers, under the names that they have."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from functools import cache, partial

import numpy as np
import onnx
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from ovir.core.element_types import bf16, f16, f32
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import INTERNAL, NOT_EXPORTED
from ovir.diagnostics.diagnostic import Diagnostic, Place, diagnose
from ovir.diagnostics.errors import ExportError, InputError, OvirError
from ovir.editing.states import StatePorts, expose_states
from ovir.export.equal_sizes import equal_sizes
from ovir.export.exported import Exported
from ovir.export.exporters import exporter_of, why_not_exported
from ovir.export.loops import ExportableBody
from ovir.export.onnx_graph import CONTRIB, Graph, NotExportable, Tensor
from ovir.export.support import OLDEST_OPSET
from ovir.graph.constant_layers import all_constant_layers
from ovir.graph.layers import Layer, Port
from ovir.graph.names import default_name, take_name
from ovir.graph.order import trace_back
from ovir.graph.rt_info import flat_entries
from ovir.inference.layer_weights import codes_of
from ovir.lowering.decompose import decomposed, new_layers
from ovir.lowering.registry import NotLowered
from ovir.model import Model
from ovir.ops.base.elementwise import BinaryBase
from ovir.ops.infrastructure import Const
from ovir.ops.state import ReadValueBase, StateBase
from ovir.runtime.decompression import find_decompressions
from ovir.system.progress import counted

NARROW = (f16, bf16)
_ENGINE_HINT = "to run the model in onnxruntime, with this layer in NumPy, use --engine onnxruntime"


def export_model(model: Model, opset: int, *, contrib: bool = False) -> Exported:
    """Export an inferred model; with ``contrib``, also with operators that only onnxruntime has.

    Raise ExportError with a diagnostic for each layer that cannot be exported.
    """
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= opset <= newest:
        message = f"{opset} of ONNX cannot be written; it can be {OLDEST_OPSET} to {newest}, the newest of this onnx"
        raise InputError.usage(message, Place(model.path), option="opset")
    states: dict[str, StatePorts] = {}
    inputs, outputs = len(model.inputs), len(model.outputs)
    if any(isinstance(layer.operator, ReadValueBase) for layer in model.layers):
        model = model.clone()
        states = expose_states(model)
    graph = Graph(opset, contrib=contrib)
    graph.name_equally(equal_sizes(model).to_sets())
    exporter = _ModelExporter(model, graph, model.inputs)
    exported = exporter.export({state.present: state.present_name for state in states.values()})
    assigned = [variable for variable, state in states.items() if state.present is not None]
    return Exported(
        exported.onnx,
        exported.inputs[:inputs],
        exported.outputs[:outputs],
        dict(zip(states, exported.inputs[inputs:], strict=True)),
        dict(zip(assigned, exported.outputs[outputs:], strict=True)),
    )


def layers_without_export(model: Model, graph: Graph) -> dict[Layer, Diagnostic]:
    """Return the layers of a model that cannot be exported to a graph, with the reason; bodies count as their
    layers."""
    layers = _live(model)
    states = [layer for layer in layers if isinstance(layer.operator, StateBase)]
    exporter = _ModelExporter(model, graph, [*model.inputs, *(port for layer in states for port in layer.outputs)])
    exporter.add_layers([layer for layer in layers if layer not in states])
    return exporter.blocked


def export_part(
    model: Model, layers: Collection[Layer], inputs: Sequence[Port], outputs: Sequence[Port], graph: Graph
) -> Exported:
    """Export some layers of a model, in their order, with the tensors of ports as inputs and outputs."""
    exporter = _ModelExporter(model, graph, inputs)
    exporter.add_layers(layers)
    return exporter.assembled([(exporter.tensor(port), _name(port)) for port in outputs])


class _LayersExporter:
    """Exports the layers of a model or of a body to a graph."""

    def __init__(self, model: Model, graph: Graph, around: _LayersExporter | None = None) -> None:
        self.model = model
        self.graph = graph
        self.tensors: dict[Port, Tensor] = {}
        self.names: set[str] = around.names if around else set()
        """The names of tensors that are taken."""
        self.node_names: set[str] = around.node_names if around else set()
        self.faults: dict[Layer, Diagnostic] = around.faults if around else {}
        """The layers that cannot be exported, those in bodies included."""
        weights = find_decompressions(model, lambda layer: False, False)
        self._decompressing = weights.absorbed | weights.folded.keys()
        """The layers that decompress weights. They compute in f32 instead of f16, as on devices."""
        constant = all_constant_layers(model)
        self._constant = {layer: index for index, layer in enumerate(model.layers) if layer in constant}
        """The layers that are computed from constants alone, with their positions in the order of the model."""
        self.blocked: dict[Layer, Diagnostic] = {}
        """The layers of this graph that cannot be exported, because of themselves or of their bodies."""

    def add_layers(self, layers: Collection[Layer]) -> None:
        """Export layers, in their order; record those that cannot be."""
        for layer in counted("exporting", layers):
            if layer not in self._constant:  # constants are exported when a layer reads them
                self._add_layer(layer)

    def _add_layer(self, layer: Layer) -> None:
        before = len(self.faults)
        try:
            self._add(layer)
        except NotExportable as reason:
            self._block(layer, reason)
        if len(self.faults) > before:
            self.blocked[layer] = list(self.faults.values())[before]

    def _add_constants(self, port: Port) -> None:
        """Export the constant layers that a tensor is computed from, unless they are exported already."""

        def is_missing(port: Port) -> bool:
            return port not in self.tensors and port.layer in self._constant and not is_known_size(port)

        if is_missing(port):
            found, _ = trace_back([port.layer], is_missing)
            for layer in sorted(found, key=self._constant.__getitem__):
                self._add_layer(layer)

    def _block(self, layer: Layer, reason: NotExportable) -> None:
        """Record why a layer cannot be exported, and let the layers after it be looked at."""
        message = f"cannot be exported to ONNX: {reason}"
        self.faults[layer] = diagnose(NOT_EXPORTED, message, layer.place, hint=reason.hint)
        for port in layer.outputs:
            value = ir.Value(type=ir.TensorType(ir.DataType.FLOAT))
            self.tensors[port] = Tensor(value, port.element_type, port.shape, port.type.constant)

    def _body(self, body: Model, graph: Graph, fed: Sequence[Tensor | None]) -> list[Tensor]:
        """Add a body to a graph, with tensors for its parameters, except for those that nothing reads."""
        child = _LayersExporter(body, graph, self)
        for port, tensor in zip(body.inputs, fed, strict=True):
            child.tensors[port] = tensor or child.input(port)
        child.add_layers(_live(body))
        return [child.tensor(_source(port)) for port in body.outputs]

    def input(self, port: Port) -> Tensor:
        """Return a new input of the graph for a Parameter or a variable."""
        return self.graph.input(port.element_type, port.shape, take_name(_name(port), self.names))

    # ----- one layer

    def _add(self, layer: Layer) -> None:
        graph = self.graph
        if isinstance(layer.operator, StateBase):
            raise NotExportable("a variable inside of a body cannot be exported")
        if isinstance(layer.operator, Const):
            (port,) = layer.outputs
            self.tensors[port] = self._initializer(port, layer.operator)
            return
        if layer.outputs and all(is_known_size(port) for port in layer.outputs):
            for port in layer.outputs:
                self.tensor(port)
            return
        first = len(graph.nodes)
        outputs = self._exported(layer)
        nodes = [node for node in graph.nodes[first:] if node.name is None]  # those of constants have names
        for node in nodes:
            node.metadata_props["ovir.layer"] = layer.key
            node.metadata_props["ovir.operation"] = f"{layer.type}, {layer.version}"
            node.name = take_name(f"{layer.key}/{node.op_type}", self.node_names)
        new = {value for node in nodes for value in node.outputs}
        for port, tensor in zip(layer.outputs, outputs, strict=True):
            if tensor.value not in new or tensor.value.name is not None:
                tensor = graph.Identity(tensor)
                graph.nodes[-1].name = take_name(f"{layer.key}/Identity", self.node_names)
            self._name(port, self._known(tensor, port))
        if nodes:
            nodes[-1].name = take_name(layer.key, self.node_names)
            nodes[-1].metadata_props.update(flat_entries(layer.rt_info, "/"))

    def _exported(self, layer: Layer) -> Sequence[Tensor]:
        operator = layer.operator
        if operator is None:
            raise NotExportable(f"ovir has no operation {layer.type} of {layer.version}")
        exporter = exporter_of(type(operator))
        if exporter is None:
            raise NotExportable(why_not_exported(type(operator)), hint=_ENGINE_HINT)
        if layer.outputs and all(map(_is_empty, layer.outputs)):  # onnxruntime refuses some nodes that make them
            return [self._nothing(port) for port in layer.outputs]
        if exporter.export is None:
            return self._exported_parts(layer, operator.opset)
        sources = [port.source for port in layer.inputs]
        types = [self._computed(port) for port in layer.inputs]
        op = operator.applied(types, [self._computed(port) for port in layer.outputs])
        wanted = _signature(exporter.export).parameters
        if "codes" in wanted:
            codes = [codes_of(port) if port and port.layer in self._constant else None for port in sources]
            if any(codes):
                pairs = zip(sources, codes, strict=True)
                others = (self.tensor(port) if port and code is None else None for port, code in pairs)
                compressed = exporter.export(self.graph, op, *others, codes=codes)
                if isinstance(compressed, Tensor):
                    return [self._declared(layer.outputs[0], compressed)]
        inputs = [None if source is None else self.tensor(source) for source in sources]
        while inputs and inputs[-1] is None:
            inputs.pop()
        if any(tensor is not None and tensor.element_type.is_dynamic for tensor in inputs):
            raise NotExportable("the element type of an input is unknown")
        if layer in self._decompressing:
            inputs = [self.graph.cast(t, f32) if t and t.element_type in NARROW else t for t in inputs]
        if isinstance(op, BinaryBase):
            a, b = filter(None, inputs)
            inputs = [a, self.graph.aligned(op, a, b)]
        keywords = {}
        if layer.bodies and "bodies" in wanted:
            keywords["bodies"] = {
                key: ExportableBody(body, partial(self._body, body)) for key, body in layer.bodies.items()
            }
        try:
            with np.errstate(all="ignore"):  # of kernels that compute constants
                result = exporter.export(self.graph, op, *inputs, **keywords)
        except (NotExportable, OvirError, MemoryError):
            raise
        except Exception as error:
            message = f"the exporter failed: {type(error).__name__}: {error}"
            hint = layer.fault_hint(error, exporter.export)
            raise ExportError(diagnose(INTERNAL, message, layer.place, hint=hint)) from error
        if result is None:
            return self._exported_parts(layer, operator.opset)
        outputs = [result] if isinstance(result, Tensor) else result
        if len(outputs) != len(layer.outputs):
            message = f"its exporter returns {len(outputs)} tensors, but the operation has {len(layer.outputs)} outputs"
            raise NotExportable(message)
        return [self._declared(port, tensor) for port, tensor in zip(layer.outputs, outputs, strict=True)]

    def _declared(self, port: Port, tensor: Tensor) -> Tensor:
        """Return an exporter's tensor for an output, in the element type of the output."""
        expected = self._computed(port).element_type
        return tensor if expected.is_dynamic else self.graph.cast(tensor, expected)

    def _exported_parts(self, layer: Layer, opset: int) -> Sequence[Tensor]:
        """Export the parts of a layer's decomposition, and return the tensors of its outputs."""
        try:
            ports = decomposed(layer, opset, layer.outputs)
        except NotLowered as error:
            raise NotExportable(error.reason, hint=error.hint or None) from error
        for part in new_layers(ports):
            for port, tensor in zip(part.outputs, self._part(part), strict=True):
                self.tensors[port] = self._known(tensor, port)
        return [self.tensor(port) for port in ports if port is not None]

    def _part(self, part: Layer) -> Sequence[Tensor]:
        if isinstance(part.operator, Const):
            return [self.graph.constant(part.operator.decoded(), part.operator.element_type)]
        if all(is_known_size(port) for port in part.outputs):
            return [self.graph.constant(port.type.constant, port.element_type) for port in part.outputs]
        return self._exported(part)

    def _nothing(self, port: Port) -> Tensor:
        """Return a constant without elements for an output that has none."""
        empty = np.empty(port.shape.to_tuple(), port.element_type.to_dtype())
        return self.graph.constant(empty, port.element_type)

    def tensor(self, port: Port) -> Tensor:
        """Return the tensor of an output; sizes that inference knows need not be computed in the graph."""
        self._add_constants(port)
        if port not in self.tensors and is_known_size(port):
            self._name(port, self._known(self.graph.constant(port.type.constant, port.element_type), port))
        return self.tensors[port]

    def _computed(self, port: Port) -> TensorType:
        """Return the type in which a tensor is computed."""
        if port.layer in self._decompressing and port.element_type in NARROW:
            return TensorType(f32, port.shape)
        return port.type

    def _initializer(self, port: Port, operator: Const) -> Tensor:
        if operator.is_packed and port.type.constant is None:  # it would be much to decode
            tensor = self.graph.deferred(operator.decoded, operator.element_type, operator.shape)
        else:
            tensor = self.graph.constant(operator.decoded(), operator.element_type)
        if tensor.value.name is None:
            self._name(port, tensor)
        return tensor

    def _known(self, tensor: Tensor, port: Port) -> Tensor:
        """Return the tensor with the shape and the constant that inference found for the port."""
        return Tensor(tensor.value, tensor.element_type, port.shape, port.type.constant)

    def _name(self, port: Port, tensor: Tensor) -> None:
        if tensor.value.name is None:
            tensor.value.name = take_name(_name(port), self.names)
            tensor.value.shape = self.graph.onnx_shape(port.shape)
        self.tensors[port] = tensor


class _ModelExporter(_LayersExporter):
    """Exports a whole model, or some layers of it, with given tensors as inputs."""

    def __init__(self, model: Model, graph: Graph, inputs: Sequence[Port]) -> None:
        super().__init__(model, graph)
        self._inputs = inputs
        for port in inputs:
            try:
                if port.element_type.is_dynamic:
                    raise NotExportable("the element type of this input is dynamic")
                self.tensors[port] = self.input(port)
            except NotExportable as reason:
                self._block(port.layer, reason)

    def export(self, names: Mapping[Port | None, str]) -> Exported:
        """Export everything, with other names for some outputs, and raise ExportError if that fails."""
        self.add_layers(_live(self.model))
        for port in (*self.model.inputs, *self.model.outputs):
            if port.shape.rank is None:
                what = "input" if port.is_output else "output"
                reason = NotExportable(f"the rank of this {what} is unknown, and ONNX requires it")
                self._block(port.layer, reason)
        results = [(self.tensor(_source(port)), names.get(port, port.any_name)) for port in self.model.outputs]
        return self.assembled(results)

    def assembled(self, results: Sequence[tuple[Tensor, str]]) -> Exported:
        """Return the model with these tensors and names as outputs; raise ExportError if a layer is missing."""
        if self.faults:
            raise ExportError(*self.faults.values())
        graph = self.graph
        inputs = [self.tensors[port] for port in self._inputs]
        outputs = self._outputs(results, inputs)
        self._name_rest()
        found = ir.Graph(
            [t.value for t in inputs],
            [t.value for t in outputs],
            nodes=graph.nodes,
            initializers=graph.initializers,
            opset_imports={"": graph.opset} | ({CONTRIB: 1} if graph.contrib else {}),
            name=self.model.name or "model",
        )
        version = onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", graph.opset)], ignore_unknown=True)
        properties = dict(flat_entries(self.model.rt_info, "/"))
        exported = ir.Model(found, ir_version=version, producer_name="ovir", metadata_props=properties)
        RemoveUnusedNodesPass()(exported)
        return Exported(exported, [t.name for t in inputs], [t.name for t in outputs])

    def _outputs(self, wanted: Sequence[tuple[Tensor, str]], taken: Sequence[Tensor]) -> list[Tensor]:
        """Return tensors under the names of outputs. An input, an initializer or another output is copied."""
        graph = self.graph
        used = {t.value for t in taken}
        named = []
        for tensor, name in wanted:
            if tensor.value in used or tensor.value.producer() is None or tensor.value.name != name:
                copied = graph.Identity(tensor)
                graph.nodes[-1].name = take_name(f"{name}/Result", self.node_names)
                copied.value.name = take_name(name, self.names)
                copied.value.shape = tensor.value.shape
                tensor = Tensor(copied.value, tensor.element_type, tensor.shape)
            used.add(tensor.value)
            named.append(tensor)
        return named

    def _name_rest(self) -> None:
        """Name the constants and the tensors between the nodes of a layer."""
        for value in self.graph.initializers:
            if value.name is None:
                value.name = take_name("constant", self.names, 1)
            assert value.const_value is not None
            value.const_value.name = value.name
        pending = list(self.graph.nodes)
        while pending:
            node = pending.pop()
            for index, value in enumerate(node.outputs):
                if value.name is None:
                    value.name = take_name(f"{node.name}:{index}", self.names)
            for attribute in node.attributes.values():
                if attribute.type == ir.AttributeType.GRAPH:
                    pending.extend(attribute.as_graph())
                    for inner in attribute.as_graph():
                        inner.name = inner.name or take_name(f"{node.name}/{inner.op_type}", self.node_names)
                    for value in attribute.as_graph().inputs:
                        if value.name is None:
                            value.name = take_name(f"{node.name}:input", self.names)


_signature = cache(inspect.signature)


def _live(model: Model) -> list[Layer]:
    """Return the layers that outputs or variables depend on, without Parameters and Results."""
    ends = ("Parameter", "Result")
    return [layer for layer in model.layers if not layer.is_dead and layer.type not in ends]


def _source(port: Port) -> Port:
    assert port.source is not None
    return port.source


def _name(port: Port) -> str:
    """Return the name of a tensor in ONNX: a tensor name, else the name of the layer."""
    return port.any_name if port.names else default_name(port)


def is_known_size(port: Port) -> bool:
    """Return whether inference knows an integer output, such as a shape; it then becomes a constant."""
    return port.element_type.is_integral and port.type.may_have_value and port.type.constant is not None


def _is_empty(port: Port) -> bool:
    """Return whether an output is known to have no elements."""
    return port.shape.is_static and 0 in port.shape.to_tuple() and not port.element_type.is_dynamic
