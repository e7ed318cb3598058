"""Applies OpenVINO's changes to files of IR version 10: pre-processing, and types and names of inputs and outputs.

Both add layers to the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn, TypeVar

import numpy as np
from lxml import etree

from ovir.building.creation import new_constant, new_operation
from ovir.core.arrays import Array
from ovir.core.element_types import ElementType, f16, f32, i32, i64, u32, u64
from ovir.core.shapes import UINT64, parse_integer
from ovir.diagnostics.codes import NAME_COLLISION, PRE_PROCESS, Code
from ovir.diagnostics.diagnostic import Place, diagnose
from ovir.diagnostics.errors import Diagnostics, ModelError, OperatorError
from ovir.graph.layer_graph import LayerGraph
from ovir.graph.layers import Layer, Port
from ovir.graph.names import legacy_name
from ovir.inference.models import infer_if_edited, infer_model, set_parameters
from ovir.ir.elements import line_of
from ovir.ir.weights import WeightBytes
from ovir.ops.base.attributes import parse_float
from ovir.ops.infrastructure import Const, Parameter

G = TypeVar("G", bound=LayerGraph)
N = TypeVar("N", int, float)


def _add(model: LayerGraph, layer: Layer, line: int | None, sources: Sequence[Port] = ()) -> Port:
    """Add a layer with one output to the model, connect its inputs with ``sources``, and return its output.

    The line is that of the file which asks for the layer.
    """
    layer.file, layer.line = model.path, line
    return model.add_layer(layer, sources).outputs[0]


# --------------------------------------------------------------------------- <pre-process>


def apply_pre_process(
    model: LayerGraph, element: etree._Element, weights: WeightBytes, diagnostics: Diagnostics
) -> None:
    """Subtract the means of a ``<pre-process>`` from an input: one number or one image per channel.

    If the element is wrong, report it and leave the model unchanged.
    """
    try:
        reader = _PreProcess(model, element, weights)
        mean = reader.mean()
    except ModelError as error:
        diagnostics.extend(error.diagnostics)
        return
    if mean is None:
        return
    port, parameter = reader.port, reader.parameter
    mean_layer = new_constant(model.next_id, f"{port.layer.name}/mean", Const.of(mean, parameter.element_type))
    line = line_of(element)
    numbers = _add(model, mean_layer, line)
    name = f"{port.layer.name}/minus_mean"
    subtract = new_operation(model.next_id, name, "Subtract", 2, auto_broadcast="numpy")  # which a saved file says, too
    model.move_readers(port, _add(model, subtract, line, [port, numbers]))


class _PreProcess:
    """Reads a ``<pre-process>``; raises ModelError if it contradicts the model."""

    def __init__(self, model: LayerGraph, element: etree._Element, weights: WeightBytes) -> None:
        self.model = model
        self.element = element
        self.weights = weights
        self.port = self._reference()
        self.parameter = _parameter(self.port)
        shape = self.parameter.shape
        if not shape.is_static or shape.rank not in (2, 3, 4, 5):
            self.fail(element, f"input '{self.port.layer.name}' must have a static shape of rank 2 to 5, got {shape}")
        element_type = self.parameter.element_type
        if not (element_type.is_real or element_type.is_integral):
            self.fail(element, f"input '{self.port.layer.name}' must have a numeric type, got {element_type}")
        sizes = shape.to_tuple()
        # The batch comes first; a shape of three dimensions has no batch.
        self.channels, *self.image = sizes if len(sizes) == 3 else sizes[1:]

    def fail(self, element: etree._Element, message: str, code: Code = PRE_PROCESS) -> NoReturn:
        place = Place(self.model.path, line_of(element))
        raise ModelError(diagnose(code, f"<{element.tag!s}>: {message}", place))

    def _reference(self) -> Port:
        """Return the input that is meant: the named one, else the first of rank 4, else the first."""
        known = [port for port in self.model.inputs if port.layer.operator is not None]
        name = self.element.get("reference-layer-name", "").strip()
        if name:
            for port in known:
                if port.layer.name == name:
                    return port
            names = [port.layer.name for port in known]
            self.fail(self.element, f"no input is named '{name}'; the inputs are {names}")
        if not known:
            self.fail(self.element, "the model has no input")
        return next((port for port in known if _parameter(port).shape.rank == 4), known[0])

    def mean(self) -> Array | None:
        """Return the array to subtract; None if no channel has a mean."""
        values: dict[int, Array] = {}
        images: dict[int, Array] = {}
        for channel, mean in self._means():
            if mean.get("value") is not None:
                value = self._number(mean, "value", parse_float)
                values[channel] = np.full([1] * len(self.image), value, np.float32)
            elif mean.get("size") is not None and mean.get("offset") is not None:
                images[channel] = self._image(mean)
            else:
                self.fail(mean, "expected a value, or an offset and a size")
        if values and images:
            self.fail(self.element, "some channels have a mean value, others a mean image: all must have the same")
        means = values or images
        if not means:
            return None
        if len(means) != self.channels:
            name = self.port.layer.name
            message = f"{len(means)} of the {self.channels} channels of input '{name}' have a mean: all must have one"
            self.fail(self.element, message)
        dtype = self.parameter.element_type.to_dtype()
        return np.stack([means[channel] for channel in range(self.channels)]).astype(dtype)

    def _means(self) -> Iterator[tuple[int, etree._Element]]:
        seen: set[int] = set()
        for position, item in enumerate(self.element.iterfind("channel")):
            channel = self._number(item, "id", _unsigned) if item.get("id") is not None else position
            if not 0 <= channel < self.channels:
                self.fail(item, f"channel {channel} is outside [0, {self.channels - 1}]")
            if channel in seen:
                self.fail(item, f"channel {channel} occurs twice")
            seen.add(channel)
            if (mean := item.find("mean")) is not None:
                yield channel, mean

    def _number(self, element: etree._Element, key: str, parse: Callable[[str], N]) -> N:
        try:
            return parse(element.get(key, ""))
        except ValueError as error:
            self.fail(element, f"attribute '{key}': {error}")

    def _image(self, element: etree._Element) -> Array:
        offset, size = (self._number(element, key, _unsigned) for key in ("offset", "size"))
        element_type = self.parameter.element_type
        needed = math.prod(self.image) * element_type.bits // 8
        if size != needed:
            shown = f"{element_type}{self.image}"
            self.fail(element, f"{size} bytes at offset {offset}: the image of a channel, {shown}, takes {needed}")
        try:
            return self.weights.constant(element_type, tuple(self.image), offset, size).array()
        except OperatorError as error:
            self.fail(element, error.message, error.code or PRE_PROCESS)


def _unsigned(text: str) -> int:
    return parse_integer(text, UINT64)


def _parameter(port: Port) -> Parameter:
    operator = port.layer.operator
    assert isinstance(operator, Parameter)
    return operator


# --------------------------------------------------------------------------- inputs and outputs


def check_names(model: LayerGraph, diagnostics: Diagnostics) -> None:
    """Report names of inputs and outputs of a version 10 file that are ambiguous; OpenVINO refuses such a file.

    Such a file may name inputs and outputs by their layers, so a layer name must not be the name of another tensor.
    """
    owner: dict[str, Port] = {}
    sources = [port.source for port in model.outputs if port.source is not None]
    for port in (*model.inputs, *sources):
        for name in sorted(port.names):
            _claim(name, port, owner, diagnostics)
    for port in (*sources, *model.inputs):
        _claim(legacy_name(port), port, owner, diagnostics)


def _claim(name: str, port: Port, owner: dict[str, Port], diagnostics: Diagnostics) -> None:
    other = owner.setdefault(name, port)
    if other is not port:
        message = f"'{name}' is a name both of this layer's tensor and of a tensor of {other.layer.title}"
        hint = "convert the original model again, to version 11, which separates tensor names from layer names"
        diagnostics.report(NAME_COLLISION, message, port.layer.place, hint)


def upgraded(model: G) -> G:
    """Return a model of version 11 with the layers that OpenVINO adds to inputs and outputs of version 10."""
    if model.version != 10:
        return model
    infer_if_edited(model)
    result = model.clone()
    apply_legacy_io(result)
    infer_model(result)
    return result


def apply_legacy_io(model: LayerGraph) -> None:
    """Give the model the inputs and outputs that OpenVINO gives a file of version 10, after shapes have been inferred.

    An f16 input becomes f32. An output of i64, u64 or u32 becomes i32, any other output f32. Names of layers become
    tensor names. Afterwards the model has the layers for this, so that it is one of version 11.
    """
    model.version = 11
    for port in model.inputs:
        port.names |= {legacy_name(port)}
    outputs = [(port, port.source) for port in model.outputs if port.source is not None]
    names = {source: source.names | {legacy_name(source)} for _, source in outputs}
    for port, source in outputs:
        wanted = i32 if source.element_type in (i32, i64, u32, u64) else f32
        if wanted == source.element_type:
            source.names = names[source]
            continue
        name = f"{legacy_name(source)}/{port.layer.name}_to_{wanted}"
        converted = _add(model, _convert(model, name, wanted), port.layer.line, [source])
        model.connect(converted, port)
        converted.names = names[source]
        if source.layer.type != "Parameter":  # the names move to the converted output
            source.names = frozenset()
    for port in model.inputs:
        parameter = _parameter(port)
        if parameter.element_type == f16:
            set_parameters({port.layer: Parameter(element_type=f32, shape=parameter.shape)})
            name = f"{port.layer.name}/to_f16"
            model.move_readers(port, _add(model, _convert(model, name, f16), port.layer.line, [port]))


def _convert(model: LayerGraph, name: str, element_type: ElementType) -> Layer:
    return new_operation(model.next_id, name, "Convert", 1, destination_type=element_type)
