"""Replace parts of a model by layers that call onnxruntime."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from ovir.core.arrays import Array
from ovir.core.tensor_types import TensorType
from ovir.diagnostics.diagnostic import Diagnostic
from ovir.diagnostics.errors import RunError
from ovir.export.exported import Exported
from ovir.export.exporter import export_part
from ovir.export.session import OnnxRuntimeSession
from ovir.graph.copies import independent, restore
from ovir.graph.layers import Layer, Port, join, separate
from ovir.hybrid.partition import Part
from ovir.model import Model
from ovir.ops.base.operator import Operator


class PartRefused(Exception):  # noqa: N818  (another division of the model follows)
    """A part that onnxruntime cannot compile."""

    def __init__(self, layers: Collection[Layer], reason: Diagnostic) -> None:
        super().__init__(reason.message)
        self.layers = layers
        """The layers that are at fault; all of the part if that is unknown."""
        self.reason = reason


class OnnxRuntimePart(Operator):
    """A part of a model that onnxruntime runs."""

    type = "onnxruntime"
    opset = 1
    guards_sizes = True

    def __init__(
        self, session: OnnxRuntimeSession, inputs: Sequence[str], outputs: Sequence[str], types: Sequence[TensorType]
    ) -> None:
        self._session = session
        self._types = tuple(types)
        self._inputs = inputs
        self._outputs = outputs

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        return self._types

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        found = self._session.run(dict(zip(self._inputs, inputs, strict=True)), self._outputs)
        dtypes = [tensor.element_type.to_dtype() for tensor in self._types]
        return tuple(a if a.dtype == dtype else a.astype(dtype) for a, dtype in zip(found, dtypes, strict=True))


class Shown(Operator):
    """The outputs of a layer inside of a part, under the name of the layer, for listeners."""

    type = "shown"
    opset = 1
    views = True
    guards_sizes = True

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        return inputs

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        return inputs


def hybrid_model(
    model: Model, parts: Sequence[Part], shown: Collection[Layer], opset: int, threads: int | None
) -> Model:
    """Return a copy of a model in which each part is one layer. Raise PartRefused if onnxruntime cannot compile one."""
    replaced = {layer for part in parts for layer in part.layers}
    kept = [layer for layer in model.file_order if layer not in replaced and not layer.is_dead]
    copies = dict(zip(kept, restore(independent(kept, {})), strict=True))
    tensors = {a: b for old, new in copies.items() for a, b in zip(old.outputs, new.outputs, strict=True)}
    number = model.next_id
    made = []
    for part in parts:
        made.append(_part_layer(model, part, number, opset, threads))
        tensors.update(zip(part.outputs, made[-1].outputs, strict=True))
        number += 1
    for part, layer in zip(parts, made, strict=True):
        for source, target in zip(part.inputs, layer.inputs, strict=True):
            join(tensors[source], target)
    for old, new in copies.items():
        for a, b in zip(old.inputs, new.inputs, strict=True):
            if a.source is not None and b.source is not tensors[a.source]:
                separate(b)
                join(tensors[a.source], b)
    made += [_shown_layer(layer, tensors) for layer in shown if layer in replaced]
    return Model.of_layers([*copies.values(), *made], name=model.name, path=model.path)


def _part_layer(model: Model, part: Part, number: int, opset: int, threads: int | None) -> Layer:
    exported = export_part(model, part.exported, part.inputs, part.outputs, opset)
    try:
        session = OnnxRuntimeSession(exported, threads=threads)
    except RunError as error:
        raise PartRefused(_named_layers(error.diagnostic.message, exported, part), error.diagnostic) from None
    types = [port.type for port in part.outputs]
    operator = OnnxRuntimePart(session, exported.inputs, exported.outputs, types)
    name = f"part of {len(part.layers)} layers from '{part.layers[0].name}' on"
    return _layer(number, name, operator, [port.type for port in part.inputs], part.outputs, model.path)


def _named_layers(message: str, exported: Exported, part: Part) -> list[Layer]:
    """Return the layer whose node onnxruntime's message names, or all layers of the part."""
    named = re.search(r"node with name '([^']*)'", message)
    nodes = exported.onnx.graph.all_nodes() if named else ()
    keys = {node.metadata_props.get("ovir.layer", "") for node in nodes if named and node.name == named[1]}
    return [x for x in part.layers if any(f"{key}/".startswith(f"{x.key}/") for key in keys)] or part.layers


def _shown_layer(old: Layer, tensors: Mapping[Port, Port]) -> Layer:
    new = _layer(old.id, old.name, Shown(), [port.type for port in old.outputs], old.outputs, old.file)
    for port, target in zip(old.outputs, new.inputs, strict=True):
        join(tensors[port], target)
    return new


def _layer(
    number: int,
    name: str,
    operator: Operator,
    inputs: Iterable[TensorType],
    outputs: Iterable[Port],
    file: str | None,
) -> Layer:
    layer = Layer(number, name, operator.type, "opset1", operator=operator, file=file)
    layer.inputs = [Port(layer, index, index, is_output=False) for index, _ in enumerate(inputs)]
    first = len(layer.inputs)
    layer.outputs = [
        Port(layer, index, first + index, is_output=True, inferred=TensorType(port.element_type, port.shape))
        for index, port in enumerate(outputs)
    ]
    return layer
