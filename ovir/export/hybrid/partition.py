"""Divide a model into a few large parts that onnxruntime runs, and make each part one layer of a new model."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import RLock

from ovir.core.arrays import Array
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.codes import CODES, ENGINE, SLOW_ENGINE
from ovir.diagnostics.diagnostic import Diagnostic, diagnose
from ovir.diagnostics.errors import InputError, ModelError, RunError
from ovir.diagnostics.kernel_warnings import report
from ovir.export.exported import Exported
from ovir.export.model_exporter import export_part, is_known_size
from ovir.export.onnx_graph import Graph
from ovir.export.session import OnnxRuntimeSession
from ovir.graph.constant_layers import all_constant_layers
from ovir.graph.copies import copied
from ovir.graph.layers import Layer, Port, join, separate
from ovir.graph.order import trace_back, walk
from ovir.model import Model
from ovir.ops.base.operator import Operator
from ovir.ops.recurrent import GruBase, LstmBase
from ovir.ops.sorting import Unique
from ovir.ops.state import AssignBase, StateBase, Variable
from ovir.runtime.compiled import CompiledModel

_ENDS = "Parameter", "Result"

_ENDED_BY_NOTHING = LstmBase, GruBase, Unique
"""Operations whose empty data ends the process in onnxruntime."""


@dataclass(frozen=True)
class HybridPart:
    """Layers that run together. No path between two of them leaves the part."""

    layers: list[Layer]
    exported: list[Layer]
    """The layers and the constant layers that they need, in the order of the model."""
    inputs: list[Port]
    outputs: list[Port]


def find_parts(model: Model, excluded: Collection[Layer], shown: Collection[Port] = ()) -> list[HybridPart]:
    """Return the parts of a model. ``excluded`` layers are in none; ``shown`` tensors become outputs.

    Each layer gets a stage: the stage of its latest source, or the next one if one of them runs in onnxruntime and the
    other in NumPy. All layers of a stage form one part, so that there are as many parts as a path changes sides.
    """
    constant = all_constant_layers(model)
    sizes = {dim.symbol for port in model.inputs if port.shape.rank is not None for dim in port.shape}
    stages: dict[Layer, int] = {}
    parts: dict[int, list[Layer]] = {}
    for layer in model.layers:
        if layer in constant or layer.is_dead:
            continue
        stage = max((stages.get(port.source.layer, 0) for port in layer.inputs if port.source is not None), default=0)
        is_part = not _runs_in_numpy(layer, sizes) and layer not in excluded
        if stage % 2 != is_part:
            stage += 1
        stages[layer] = stage
        if is_part:
            parts.setdefault(stage, []).append(layer)
    own = constant - set(excluded)
    return [_part(model, parts[stage], own, shown) for stage in sorted(parts)]


def _runs_in_numpy(layer: Layer, sizes: Collection[int]) -> bool:
    """Return whether NumPy runs a layer; ``sizes`` are the symbols of inputs, which a part is seen to have empty."""
    if layer.type in _ENDS or isinstance(layer.operator, StateBase):
        return True
    shapes = [inner.inputs[0].shape for inner in _ended_by_nothing([layer])]
    return any(s.rank is None or any(dim.contains(0) and dim.symbol not in sizes for dim in s) for s in shapes)


def _ended_by_nothing(layers: Iterable[Layer]) -> Iterator[Layer]:
    """Yield the layers, among these and those of their bodies, whose empty data ends the process in onnxruntime."""
    return (layer for layer in walk(layers) if isinstance(layer.operator, _ENDED_BY_NOTHING))


def _part(model: Model, layers: list[Layer], constant: Collection[Layer], shown: Collection[Port]) -> HybridPart:
    members, border = trace_back(layers, lambda port: port.layer in constant and not is_known_size(port))
    inputs = [port for port in border if port.layer not in members and not is_known_size(port)]
    outputs = [
        port
        for layer in layers
        for port in layer.outputs
        if port in shown or any(reader.layer not in members for reader in port.readers)
    ]
    return HybridPart(layers, [layer for layer in model.layers if layer in members], inputs, outputs)


# --------------------------------------------------------------------------- parts as layers


class PartRefused(Exception):  # noqa: N818  (another division of the model follows)
    """A part that onnxruntime cannot compile."""

    def __init__(self, layers: Collection[Layer], reason: Diagnostic) -> None:
        super().__init__(reason.message)
        self.layers = layers
        """The layers that are at fault; all of the part if that is unknown."""
        self.reason = reason


class NumpyPart:
    """A part of a model in NumPy, for values that onnxruntime does not compute with. It is compiled when it first
    runs."""

    def __init__(self, model: Model, part: HybridPart, threads: int | None) -> None:
        self._model = model
        self._part = part
        self._threads = threads
        self._compiled: CompiledModel | None = None
        self._lock = RLock()
        """Requests of several threads share the part, whose one request runs one call at a time."""
        sources = [port.source for layer in part.exported for port in layer.inputs]
        own, constant = {port for layer in part.exported for port in layer.outputs}, all_constant_layers(model)
        before = dict.fromkeys(s for s in sources if s is not None and s not in own and s not in part.inputs)
        self._known = {port: port.type.constant for port in before if port.layer not in constant}
        """Values that are not constants, but known to inference, so that the part treats them as constants."""
        model.add_dependent(self)

    def before_change(self) -> None:
        """Compile the part, because the model is about to be reshaped or edited."""
        with suppress(ModelError, InputError):
            self._compile()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs of the part; raise RunError for values that NumPy does not compute with either.

        Raises ModelError if inference, which knows less of the inputs of the part, refuses its layers.
        """
        with self._lock:
            results = self._compile()([*inputs, *self._known.values()])
        for found in results.diagnostics:
            report(f"{found.layer}: {found.message}", code=CODES[found.code])
        return list(results.values())

    def _compile(self) -> CompiledModel:
        with self._lock:
            if self._compiled is None:
                model = self._model.extract([*self._part.inputs, *self._known], self._part.outputs)
                self._compiled = CompiledModel(model, threads=self._threads)
            return self._compiled


class OnnxRuntimePart(Operator):
    """A part of a model that onnxruntime runs."""

    type = "onnxruntime"
    opset = 1
    guards_sizes = True

    def __init__(self, part: HybridPart, exported: Exported, session: OnnxRuntimeSession, in_numpy: NumpyPart) -> None:
        self._session, self._in_numpy = session, in_numpy
        self._inputs, self._outputs = exported.inputs, exported.outputs
        self._types = tuple(port.type for port in part.outputs)
        by_key = {layer.key: layer for layer in part.layers}
        nodes = ((node.name, node.metadata_props.get("ovir.layer", "")) for node in exported.onnx.graph.all_nodes())
        self._layers = {name: by_key[key] for name, key in nodes if name is not None and key in by_key}
        """The layers of the part by the names of their nodes."""
        self._takes_nothing = not any(True for _ in _ended_by_nothing(part.layers))
        """Whether the part computes with empty tensors."""

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        return self._types

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        try:
            if not self._takes_nothing and not all(array.size for array in inputs):
                raise RunError(diagnose(ENGINE, "onnxruntime would end the process for an empty tensor"))
            found = self._session.run(dict(zip(self._inputs, inputs, strict=True)), self._outputs)
        except RunError as error:
            try:
                found = self._in_numpy.run(inputs)
            except (ModelError, InputError):
                raise self._placed(error) from None
            report(error.diagnostic.message, "NumPy computes this part", code=SLOW_ENGINE)
        dtypes = [tensor.element_type.to_dtype() for tensor in self._types]
        return tuple(a if a.dtype == dtype else a.astype(dtype) for a, dtype in zip(found, dtypes, strict=True))

    def _placed(self, error: RunError) -> RunError:
        """Return an error of onnxruntime with the layer whose node it names, and a hint."""
        message = error.diagnostic.message
        named = re.search(r"Name:'([^']*)'", message)
        layer = self._layers.get(named[1]) if named else None
        hint = "run it with the engine numpy, which computes with such values or says what is wrong with them"
        return RunError(diagnose(ENGINE, message, layer.place if layer else None, hint=hint))


class AdoptingAssign(AssignBase):
    """An Assign of an output of a part, which onnxruntime makes anew in each call, so that no copy is needed."""

    type = "Assign"
    opset = 6

    def __init__(self, variable_id: str) -> None:
        self.variable_id = variable_id

    def run(self, new_value: Array, *, variable: Variable) -> Array:
        variable.take(new_value)
        return new_value


class ShownOutputs(Operator):
    """The outputs of a layer inside a part, under the name of the layer, for listeners."""

    type = "shown"
    opset = 1
    views = True
    guards_sizes = True

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        return inputs

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        return inputs


def hybrid_model(
    model: Model,
    parts: Sequence[HybridPart],
    shown: Collection[Layer],
    new_graph: Callable[[], Graph],
    threads: int | None,
) -> Model:
    """Return a copy of a model in which each part is one layer; ``new_graph`` begins the graph of a part.

    Raise PartRefused if onnxruntime cannot compile one.
    """
    replaced = {layer for part in parts for layer in part.layers}
    kept = [layer for layer in model.file_order if layer not in replaced and not layer.is_dead]
    copies = copied(kept)
    tensors = {a: b for old, new in copies.items() for a, b in zip(old.outputs, new.outputs, strict=True)}
    made = []
    for number, part in enumerate(parts, model.next_id):  # each reads parts before it
        operator = _part_operator(model, part, new_graph(), threads)
        name = f"part of {len(part.layers)} layers from '{part.layers[0].name}' on"
        sources = [tensors[port] for port in part.inputs]
        made.append(_layer(number, name, operator, sources, part.outputs, model.path))
        tensors.update(zip(part.outputs, made[-1].outputs, strict=True))
    for old, new in copies.items():
        for a, b in zip(old.inputs, new.inputs, strict=True):
            if a.source is not None and b.source is not tensors[a.source]:
                separate(b)
                join(tensors[a.source], b)
                # An output of static shape is copied to an array that the next call overwrites.
                if isinstance(old.operator, AssignBase) and not a.shape.is_static:
                    new.operator = AdoptingAssign(old.operator.variable_id)
    for old in (layer for layer in shown if layer in replaced):
        sources = [tensors[port] for port in old.outputs]
        made.append(_layer(old.id, old.name, ShownOutputs(), sources, old.outputs, old.file))
    return Model.of_layers([*copies.values(), *made], name=model.name, path=model.path)


def _part_operator(model: Model, part: HybridPart, graph: Graph, threads: int | None) -> OnnxRuntimePart:
    exported = export_part(model, part.exported, part.inputs, part.outputs, graph)
    try:
        session = OnnxRuntimeSession(exported, threads=threads)
    except RunError as error:
        raise PartRefused(_named_layers(error.diagnostic.message, exported, part), error.diagnostic) from None
    return OnnxRuntimePart(part, exported, session, NumpyPart(model, part, threads))


def _named_layers(message: str, exported: Exported, part: HybridPart) -> list[Layer]:
    """Return the layer whose node onnxruntime's message names, or all layers of the part."""
    named = re.search(r"node with name '([^']*)'", message)
    nodes = exported.onnx.graph.all_nodes() if named else ()
    keys = {node.metadata_props.get("ovir.layer", "") for node in nodes if named and node.name == named[1]}
    return [x for x in part.layers if any(f"{key}/".startswith(f"{x.key}/") for key in keys)] or part.layers


def _layer(
    number: int, name: str, operator: Operator, sources: Sequence[Port], outputs: Iterable[Port], file: str | None
) -> Layer:
    """Return a layer that reads some tensors, and has outputs of the types of others."""
    layer = Layer(number, name, operator.type, "opset1", operator=operator, file=file)
    layer.inputs = [Port(layer, index, index, is_output=False) for index in range(len(sources))]
    for source, target in zip(sources, layer.inputs, strict=True):
        join(source, target)
    layer.outputs = [
        Port(layer, index, len(sources) + index, is_output=True, inferred=TensorType(port.element_type, port.shape))
        for index, port in enumerate(outputs)
    ]
    return layer
